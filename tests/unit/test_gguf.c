/* Single GGUF files, made by each test: values, arrays, and files that are not models. */
#include "config.h"

#include <sys/mman.h>

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/format/catalogue.h"
#include "engine/format/gguf.h"
#include "engine/format/reader.h"
#include "tests/lib/chance.h"
#include "tests/lib/gguf_write.h"

static char path[256];

/* Write the bytes to a file that is named after the test. */
static const char *write_file(const struct gguf_out *g)
{
    const char *tmp = getenv("TMPDIR");
    int fd;

    snprintf(path, sizeof path, "%s/memwall-gguf-XXXXXX", tmp != NULL ? tmp : "/tmp");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, g->bytes, g->n), g->n);
    close(fd);
    return path;
}

static int remove_file(void **state)
{
    (void)state;
    if (path[0] != '\0')
        unlink(path);
    path[0] = '\0';
    return 0;
}

static struct gguf *read_bytes(const struct gguf_out *g, int *fd)
{
    struct gguf *out = NULL;
    struct err e = ERR_INIT;

    *fd = memfd_create("gguf", MFD_CLOEXEC);
    assert_int_equal(write(*fd, g->bytes, g->n), g->n);
    assert_int_equal(gguf_read(&out, *fd, g->n, NULL, &e), 0);
    return out;
}

struct kind {
    const char *name, *key, *value, *says;
};

static struct kind kinds[] = {
    { "the name of a snapshot", "general.architecture", "mixtral", "runs: arcee, bailingmoe2, " },
    { "an adapter says so", "general.type", "adapter", "an adapter (LoRA)" },
    { "an importance matrix says so", "general.type", "imatrix", "an importance matrix" },
    { "a projector says so", "general.type", "mmproj", "a vision or audio projector" },
    { "a vocabulary says so", "general.type", "vocab", "a vocabulary only" },
    { "an old projector says so", "general.architecture", "clip", "a vision projector" },
    { "a drafting model says so", "general.architecture", "gemma4-assistant",
      "a drafting model" },
    { "a neighbour of a known family is refused by name", "general.architecture", "gemma3n",
      "architecture \"gemma3n\" is not supported; memwall runs: " },
};

static void a_file_that_is_not_a_model_is_named(void **state)
{
    const struct kind *k = *state;
    struct gguf_out g = { .n = 0 };
    struct catalogue *c = NULL;
    struct err e = ERR_INIT;

    gguf_put_header(&g, 1, 1);
    gguf_put_text(&g, k->key, k->value);
    gguf_put_tensor(&g, "a.weight", 0, 8, 4, 0);
    gguf_put_data(&g, 128);
    write_file(&g);
    assert_int_equal(catalogue_open(&c, path, &e), -1);
    assert_null(c);
    assert_int_equal(e.code, ERR_UNSUPPORTED);
    assert_string_equal(e.field, k->key);
    if (strstr(e.what, k->says) == NULL)
        fail_msg("%s", e.what);
    assert_int_equal(catalogue_open_bare(&c, path, &e), 0);
    assert_int_equal(c->n_tensor, 1);
    assert_int_equal(tensor_rows(&c->tensors[0]), 4);
    catalogue_close(c);
}

static void a_type_of_another_program_is_named(void **state)
{
    struct gguf_out g = { .n = 0 };
    struct catalogue *c = NULL;
    struct err e = ERR_INIT;

    (void)state;
    gguf_put_header(&g, 1, 0);
    gguf_put_tensor(&g, "blk.0.ffn_up.weight", 139, 256, 4, 0);
    gguf_put_data(&g, 4096);
    write_file(&g);
    assert_int_equal(catalogue_open(&c, path, &e), -1);
    assert_string_equal(e.field, "blk.0.ffn_up.weight");
    assert_non_null(strstr(e.what, "weight type 139 (a type of ik_llama.cpp) is not supported; "
                                   "memwall runs: F32, F16, Q4_0"));
    assert_non_null(strstr(e.what, ", MXFP4")); /* the list fits */
}

static void a_mixture_of_experts_of_another_family_is_refused(void **state)
{
    struct gguf_out g = { .n = 0 };
    struct catalogue *c = NULL;
    struct err e = ERR_INIT;

    (void)state;
    gguf_put_header(&g, 1, 8);
    gguf_put_text(&g, "general.architecture", "qwen2");
    gguf_put_number(&g, "qwen2.block_count", 1);
    gguf_put_number(&g, "qwen2.embedding_length", 32);
    gguf_put_number(&g, "qwen2.context_length", 64);
    gguf_put_number(&g, "qwen2.feed_forward_length", 64);
    gguf_put_number(&g, "qwen2.attention.head_count", 2);
    gguf_put_float(&g, "qwen2.attention.layer_norm_rms_epsilon", 1e-5f);
    gguf_put_number(&g, "qwen2.expert_count", 8);
    gguf_put_tensor(&g, "token_embd.weight", 0, 32, 4, 0);
    gguf_put_data(&g, 512);
    write_file(&g);
    assert_int_equal(catalogue_open(&c, path, &e), -1);
    assert_int_equal(e.code, ERR_UNSUPPORTED);
    assert_string_equal(e.field, "qwen2.expert_count");
}

static void integers_pass_in_any_type_that_holds_them(void **state)
{
    struct gguf_out g = { .n = 0 };
    struct err e = ERR_INIT;
    struct gguf *out;
    int64_t v = 0;
    double f = 0;
    bool b = false;
    int fd;

    (void)state;
    gguf_put_header(&g, 0, 5);
    gguf_put_string(&g, "u8");
    gguf_put_u32(&g, 0);
    gguf_put(&g, "\xfe", 1);
    gguf_put_string(&g, "i16");
    gguf_put_u32(&g, 3);
    gguf_put(&g, "\xfe\xff", 2);
    gguf_put_string(&g, "u64");
    gguf_put_u32(&g, 10);
    gguf_put_u64(&g, UINT64_MAX);
    gguf_put_float(&g, "f32", 0.5f);
    gguf_put_string(&g, "bool");
    gguf_put_u32(&g, 7);
    gguf_put(&g, "\x01", 1);
    out = read_bytes(&g, &fd);
    assert_int_equal(gguf_int(out, "u8", &v, &e), 1);
    assert_int_equal(v, 254);
    assert_int_equal(gguf_int(out, "i16", &v, &e), 1);
    assert_int_equal(v, -2);
    assert_int_equal(gguf_int(out, "u64", &v, &e), -1);
    assert_string_equal(e.field, "u64");
    assert_int_equal(gguf_int(out, "f32", &v, &e), -1);
    assert_int_equal(gguf_int(out, "absent", &v, &e), 0);
    assert_int_equal(gguf_float(out, "f32", &f, &e), 1);
    assert_true(f == 0.5);
    assert_int_equal(gguf_float(out, "u8", &f, &e), 1);
    assert_int_equal(gguf_bool(out, "bool", &b, &e), 1);
    assert_true(b);
    assert_int_equal(gguf_bool(out, "u8", &b, &e), -1);
    gguf_free(out);
    close(fd);
}

static void arrays_are_read_in_order_from_the_file(void **state)
{
    enum { N = 300 };
    struct gguf_out g = { .n = 0 };
    struct err e = ERR_INIT;
    struct gguf_array a;
    struct gguf *out;
    const char *text;
    size_t len;
    int fd, has;
    uint32_t i = 0;

    (void)state;
    gguf_put_header(&g, 0, 1);
    gguf_put_string(&g, "words");
    gguf_put_u32(&g, 9);
    gguf_put_u32(&g, 8);
    gguf_put_u64(&g, N);
    for (uint32_t k = 0; k < N; k++) {
        gguf_put_u64(&g, k % 7);
        gguf_put(&g, "abcdefg", k % 7);
    }
    out = read_bytes(&g, &fd);
    assert_null(gguf_find(out, "words")->data); /* left in the file */
    has = gguf_array_open(&a, out, "words", &e);
    assert_int_equal(a.count, N);
    while (has == 1 && (has = gguf_array_string(&a, &text, &len, &e)) == 1) {
        assert_int_equal(len, i % 7);
        assert_memory_equal(text, "abcdefg", len);
        i++;
    }
    assert_int_equal(has, 0);
    assert_int_equal(i, N);
    gguf_array_close(&a);
    assert_int_equal(gguf_array_open(&a, out, "absent", &e), 0);
    gguf_array_close(&a);
    gguf_free(out);
    close(fd);
}

static void a_long_text_is_read_on_request(void **state)
{
    static char text[3000];
    struct gguf_out g = { .n = 0 };
    struct err e = ERR_INIT;
    struct gguf *out;
    const char *kept;
    char *whole = NULL;
    size_t len = 0;
    int fd;

    (void)state;
    memset(text, 'x', sizeof text - 1);
    gguf_put_header(&g, 0, 1);
    gguf_put_text(&g, "tokenizer.chat_template", text);
    out = read_bytes(&g, &fd);
    assert_int_equal(gguf_string(out, "tokenizer.chat_template", &kept, &len, &e), -1);
    assert_int_equal(gguf_long_string(out, "tokenizer.chat_template", 4096, &whole, &len, &e),
                     1);
    assert_string_equal(whole, text);
    assert_int_equal(len, sizeof text - 1);
    free(whole);
    assert_int_equal(gguf_long_string(out, "tokenizer.chat_template", 100, &whole, &len, &e),
                     -1);
    gguf_free(out);
    close(fd);
}

static void a_file_that_shrinks_is_an_error_and_not_zeros(void **state)
{
    struct gguf_out g = { .n = 0 };
    struct catalogue *c = NULL;
    struct err e = ERR_INIT;

    (void)state;
    gguf_put_header(&g, 1, 0);
    gguf_put_tensor(&g, "a.weight", 0, 8, 4, 0);
    gguf_put_data(&g, 128);
    write_file(&g);
    assert_int_equal(catalogue_open_bare(&c, path, &e), 0);
    assert_int_equal(catalogue_check_files(c, &e), 0);
    assert_int_equal(truncate(path, 100), 0);
    assert_int_equal(catalogue_check_files(c, &e), -1);
    assert_string_equal(e.file, path);
    catalogue_close(c);
}

static void a_replaced_file_is_noticed(void **state)
{
    struct gguf_out g = { .n = 0 };
    struct catalogue *c = NULL;
    struct err e = ERR_INIT;
    char first[sizeof path], other[sizeof path];

    (void)state;
    gguf_put_header(&g, 1, 0);
    gguf_put_tensor(&g, "a.weight", 0, 8, 4, 0);
    gguf_put_data(&g, 128);
    strcpy(first, write_file(&g));
    strcpy(other, write_file(&g));
    assert_int_equal(catalogue_open_bare(&c, first, &e), 0);
    assert_int_equal(rename(other, first), 0);
    assert_int_equal(catalogue_check_files(c, &e), -1);
    assert_int_equal(unlink(first), 0);
    assert_int_equal(catalogue_check_files(c, &e), 0); /* still the old contents */
    catalogue_close(c);
}

/* --- the reader --- */

#define N_BYTE 900000

/* Returns N_BYTE random bytes, which the caller frees; they are also in a file without a name. */
static unsigned char *random_file(FILE **file, struct reader *r, size_t capacity)
{
    unsigned char *bytes = malloc(N_BYTE);
    struct chance chance = { .state = 5 };
    struct err e = ERR_INIT;

    assert_non_null(bytes);
    for (size_t i = 0; i < N_BYTE; i++)
        bytes[i] = (unsigned char)chance_below(&chance, 256);
    *file = tmpfile();
    assert_non_null(*file);
    assert_int_equal(fwrite(bytes, 1, N_BYTE, *file), N_BYTE);
    assert_int_equal(fflush(*file), 0);
    assert_int_equal(reader_open(r, fileno(*file), N_BYTE, capacity, &e), 0);
    return bytes;
}

/* They have any size, in order and after a seek, forwards and back. */
static void pieces_are_those_of_the_file(void **state)
{
    enum { CAPACITY = 100000 };
    struct chance chance = { .state = 7 };
    struct reader r;
    FILE *file;
    unsigned char *bytes = random_file(&file, &r, CAPACITY);
    uint32_t at = 0;

    (void)state;
    for (int i = 0; i < 4000; i++) {
        uint32_t n = chance_below(&chance, chance_below(&chance, 9) == 0 ? CAPACITY + 1 : 200);
        struct err e = ERR_INIT;
        const unsigned char *p;

        if (chance_below(&chance, 20) == 0 || n > N_BYTE - at) {
            at = chance_below(&chance, N_BYTE - CAPACITY);
            reader_seek(&r, at);
        }
        p = reader_take(&r, n, &e);
        assert_non_null(p);
        assert_memory_equal(p, bytes + at, n);
        at += n;
    }
    reader_close(&r);
    fclose(file);
    free(bytes);
}

/* Most headers are short: the first read is, too, and those that go on become longer. */
static void a_short_header_is_a_short_read(void **state)
{
    struct err e = ERR_INIT;
    struct reader r;
    FILE *file;
    unsigned char *bytes = random_file(&file, &r, 0);

    (void)state;
    assert_non_null(reader_take(&r, 8, &e));
    assert_int_equal(r.high, 32 << 10);
    reader_seek(&r, 32 << 10);
    assert_non_null(reader_take(&r, 8, &e));
    assert_int_equal(r.high, 96 << 10);
    for (uint32_t at = (32 << 10) + 8; at < 700000; at += 8)
        assert_memory_equal(reader_take(&r, 8, &e), bytes + at, 8);
    assert_int_equal(r.buf_len, READER_BUFFER);
    reader_close(&r);
    fclose(file);
    free(bytes);
}

int main(void)
{
    enum { N = sizeof kinds / sizeof kinds[0] };
    static const struct CMUnitTest others[] = {
        cmocka_unit_test_teardown(a_type_of_another_program_is_named, remove_file),
        cmocka_unit_test_teardown(a_mixture_of_experts_of_another_family_is_refused,
                                  remove_file),
        cmocka_unit_test(integers_pass_in_any_type_that_holds_them),
        cmocka_unit_test(arrays_are_read_in_order_from_the_file),
        cmocka_unit_test(a_long_text_is_read_on_request),
        cmocka_unit_test_teardown(a_file_that_shrinks_is_an_error_and_not_zeros, remove_file),
        cmocka_unit_test_teardown(a_replaced_file_is_noticed, remove_file),
        cmocka_unit_test(pieces_are_those_of_the_file),
        cmocka_unit_test(a_short_header_is_a_short_read),
    };
    struct CMUnitTest tests[N];
    int failed;

    for (size_t i = 0; i < N; i++)
        tests[i] = (struct CMUnitTest){ kinds[i].name, a_file_that_is_not_a_model_is_named,
                                        NULL, remove_file, &kinds[i] };
    failed = cmocka_run_group_tests_name("files that are not models", tests, NULL, NULL);
    failed += cmocka_run_group_tests_name("gguf", others, NULL, NULL);
    return failed;
}
