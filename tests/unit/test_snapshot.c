/*
 * A snapshot and the GGUF file made from it are one model: equal hyper-parameters, the same
 * tensors, the same values bit for bit.  The converter makes three differences: it widens
 * vectors to F32, adds 1 to Gemma's norms, and permutes llama's rows of q and k.
 */
#include "config.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/cancel.h"
#include "engine/format/arch.h"
#include "engine/format/catalogue.h"
#include "engine/format/snapshot_index.h"
#include "engine/format/vocab.h"
#include "tests/lib/tree.h"

struct pair {
    const char *snapshot, *gguf;
    bool same_windows; /* the config states the same windows as the GGUF file */
    bool same_scale;
};

static struct pair pairs[] = {
    { "gemma2-tiny-hf", "gemma2-tiny.gguf", true, false },
    { "gemma3-tiny-hf", "gemma3-tiny.gguf", true, true },
    { "gemma4-tiny-hf", "gemma4-tiny2.gguf", true, true },
    { "llama-tiny-hf", "llama-tiny.gguf", true, true },
    { "llama31-tiny-hf", "llama31-tiny.gguf", true, true },
    { "mistral-tiny-hf", "mistral-tiny.gguf", false, true },
    { "phi3-longrope-short-tiny-hf", "phi3-longrope-short-tiny.gguf", true, true },
    { "phi3-longrope-tiny-hf", "phi3-longrope-tiny.gguf", true, true },
    { "phi3-tiny-hf", "phi3-tiny.gguf", true, true },
    { "qwen2-tiny-hf", "qwen2-tiny.gguf", true, true },
    { "qwen3-tiny-hf", "qwen3-tiny.gguf", true, true },
};

static struct catalogue *open_model(const char *name)
{
    const char *shared = getenv("MW_SHARED");
    struct err e = ERR_INIT;
    struct catalogue *c = NULL;
    struct stat st;
    char path[512], text[600];

    snprintf(path, sizeof path, "%s/conformance/models/%s", shared != NULL ? shared : "", name);
    if (stat(path, &st) != 0)
        skip();
    if (catalogue_open(&c, path, &e) != 0) {
        err_text(&e, text, sizeof text);
        fail_msg("%s", text);
    }
    return c;
}

static void assert_close(double a, double b)
{
    if (!(fabs(a - b) <= 1e-6 * fabs(b)))
        fail_msg("%.9g is not %.9g", a, b);
}

static void compare_rope(const struct rope_hparams *a, const struct rope_hparams *b)
{
    assert_true(a->base == b->base);
    assert_int_equal(a->n_rot, b->n_rot);
    assert_int_equal(a->scaling, b->scaling);
    assert_true(a->factor == b->factor);
    if (a->scaling == ROPE_YARN)
        assert_true(a->beta_fast == b->beta_fast && a->beta_slow == b->beta_slow);
    assert_close(a->attn_factor, b->attn_factor);
    assert_int_equal(a->n_factor, b->n_factor);
    for (uint32_t i = 0; i < a->n_factor; i++) {
        assert_close((double)a->factors[i], (double)b->factors[i]);
        assert_close((double)a->factors_long[i], (double)b->factors_long[i]);
    }
    if (a->scaling == ROPE_LONGROPE)
        assert_int_equal(a->n_ctx_orig, b->n_ctx_orig);
}

static void compare_hparams(const struct hparams *a, const struct hparams *b,
                            const struct pair *p)
{
    assert_string_equal(a->arch->name, b->arch->name);
    assert_int_equal(a->n_layer, b->n_layer);
    assert_int_equal(a->n_embd, b->n_embd);
    assert_int_equal(a->n_vocab, b->n_vocab);
    assert_int_equal(a->n_ctx_train, b->n_ctx_train);
    assert_int_equal(a->n_layer_kv_shared, b->n_layer_kv_shared);
    assert_int_equal(a->n_embd_per_layer, b->n_embd_per_layer);
    assert_int_equal(a->n_expert, b->n_expert);
    assert_int_equal(a->n_expert_used, b->n_expert_used);
    assert_int_equal(a->n_ff_expert, b->n_ff_expert);
    assert_true(a->rms_eps == b->rms_eps);
    assert_true(a->softcap_attn == b->softcap_attn && a->softcap_final == b->softcap_final);
    if (p->same_scale)
        assert_true(a->attn_scale == b->attn_scale);
    compare_rope(&a->rope, &b->rope);
    if (p->same_windows) {
        assert_int_equal(a->n_swa, b->n_swa);
        compare_rope(&a->rope_swa, &b->rope_swa);
    }
    for (uint32_t i = 0; i < a->n_layer; i++) {
        const struct layer_hparams *x = &a->layers[i], *y = &b->layers[i];

        if (p->same_windows)
            assert_int_equal(x->is_sliding, y->is_sliding);
        assert_int_equal(x->n_head, y->n_head);
        assert_int_equal(x->n_head_kv, y->n_head_kv);
        assert_int_equal(x->head_dim_k, y->head_dim_k);
        assert_int_equal(x->head_dim_v, y->head_dim_v);
        assert_int_equal(x->n_ff, y->n_ff);
    }
}

static uint8_t *read_tensor(const struct catalogue *c, const struct tensor_info *t)
{
    uint8_t *bytes = test_malloc(t->bytes);

    assert_int_equal(pread(c->files[t->file].fd, bytes, t->bytes, (off_t)t->offset), t->bytes);
    return bytes;
}

static float half_to_float(uint16_t h)
{
    int exponent = h >> 10 & 31;
    double m = (h & 1023) / 1024.0;
    double v = exponent == 0 ? ldexp(m, -14) : ldexp(1 + m, exponent - 15);

    return (float)(h >> 15 != 0 ? -v : v);
}

static float value(const uint8_t *bytes, enum tensor_type type, uint64_t i)
{
    uint32_t bits = 0;
    uint16_t half;
    float f;

    switch (type) {
    case TYPE_F32: memcpy(&f, bytes + 4 * i, 4); return f;
    case TYPE_BF16:
        memcpy(&half, bytes + 2 * i, 2);
        bits = (uint32_t)half << 16;
        memcpy(&f, &bits, 4);
        return f;
    case TYPE_F16: memcpy(&half, bytes + 2 * i, 2); return half_to_float(half);
    default: break;
    }
    fail_msg("unexpected type %d", (int)type);
    return 0;
}

/* Returns the row of the snapshot's tensor that the converter moved to row r of the GGUF
 * file's. */
static uint64_t source_row(const struct catalogue *gguf, const struct tensor_info *t,
                           uint64_t r)
{
    const struct hparams *h = &gguf->hparams;
    uint64_t d = h->layers[0].head_dim_k, in_head = r % d;

    if (!h->rope_interleaved ||
        (strstr(t->name, ".attn_q.") == NULL && strstr(t->name, ".attn_k.") == NULL))
        return r;
    return r - in_head + in_head / 2 + (in_head % 2) * (d / 2);
}

static void compare_values(const struct catalogue *hf, const struct tensor_info *a,
                           const struct catalogue *gguf, const struct tensor_info *b)
{
    uint8_t *x = read_tensor(hf, a), *y = read_tensor(gguf, b);
    /* A vector is permuted like the rows of a matrix. */
    bool is_vector = a->n_dims == 1;
    uint64_t rows = is_vector ? a->ne[0] : tensor_rows(a), cols = is_vector ? 1 : a->ne[0];

    for (uint64_t r = 0; r < rows; r++) {
        uint64_t from = source_row(gguf, b, r);

        for (uint64_t k = 0; k < cols; k++) {
            float want = value(x, a->type, from * cols + k) + (a->add_one ? 1.0f : 0.0f);
            float got = value(y, b->type, r * cols + k);

            if (memcmp(&want, &got, sizeof got) != 0)
                fail_msg("%s: value %llu of row %llu is %.9g, not %.9g", a->name,
                         (unsigned long long)k, (unsigned long long)r, (double)want,
                         (double)got);
        }
    }
    test_free(x);
    test_free(y);
}

static void a_snapshot_is_the_model_of_its_gguf_file(void **state)
{
    const struct pair *p = *state;
    struct catalogue *hf = open_model(p->snapshot), *gguf = open_model(p->gguf);
    uint32_t n_equal = 0;

    assert_int_equal(hf->kind, CATALOGUE_SNAPSHOT);
    compare_hparams(&hf->hparams, &gguf->hparams, p);
    assert_false(hf->hparams.rope_interleaved);
    for (uint32_t i = 0; i < gguf->n_tensor; i++) {
        const struct tensor_info *b = &gguf->tensors[i], *a = catalogue_find(hf, b->name);

        if (strncmp(b->name, "rope_f", 6) == 0)
            continue; /* computed by the converter; compared with the hyper-parameters */
        if (a == NULL)
            fail_msg("%s is not in the snapshot", b->name);
        assert_true(a->is_text && b->is_text);
        assert_int_equal(a->n_dims, b->n_dims);
        assert_memory_equal(a->ne, b->ne, sizeof a->ne);
        /* Converters widen vectors, and nothing else. */
        assert_true(a->type == b->type || (b->type == TYPE_F32 && b->n_dims == 1));
        compare_values(hf, a, gguf, b);
        n_equal++;
    }
    assert_int_equal(n_equal, hf->n_tensor - hf->n_tensor_other);
    catalogue_close(hf);
    catalogue_close(gguf);
}

static void towers_count_in_no_sum(void **state)
{
    struct catalogue *c = open_model("gemma4-tiny-hf");
    uint64_t n = 0, bytes = 0;

    (void)state;
    for (uint32_t i = 0; i < c->n_tensor; i++) {
        if (c->tensors[i].is_text)
            continue;
        n++;
        bytes += c->tensors[i].bytes;
        assert_null(strstr(c->tensors[i].name, "blk."));
    }
    assert_true(n > 0);
    assert_int_equal(n, c->n_tensor_other);
    assert_int_equal(bytes, c->bytes_other);
    catalogue_close(c);
}

static void generation_settings_come_from_their_own_file(void **state)
{
    struct catalogue *c = open_model("gemma4-tiny-hf");
    const struct generation_hparams *g = &c->generation;

    (void)state;
    assert_true(g->has_temp && g->temp == 1.0f);
    assert_true(g->has_top_k && g->top_k == 64);
    assert_true(g->has_top_p && g->top_p == 0.95f);
    assert_false(g->has_min_p);
    assert_int_equal(g->n_stop, 3);
    assert_int_equal(g->stop[0], 1);
    assert_int_equal(g->stop[1], 16);
    assert_int_equal(g->stop[2], 9);
    catalogue_close(c);
}

static void a_window_in_mistrals_config_applies_to_every_layer(void **state)
{
    struct catalogue *c = open_model("mistral-tiny-hf");

    (void)state;
    assert_int_equal(c->hparams.n_swa, 12);
    for (uint32_t i = 0; i < c->hparams.n_layer; i++)
        assert_true(c->hparams.layers[i].is_sliding);
    catalogue_close(c);
}

static void the_scale_of_scores_comes_from_the_config(void **state)
{
    struct catalogue *c = open_model("gemma2-tiny-hf");

    (void)state;
    assert_close((double)c->hparams.attn_scale, 1 / sqrt(40));
    catalogue_close(c);
}

static void any_file_of_a_snapshot_names_it(void **state)
{
    struct catalogue *a = open_model("llama-tiny-hf/model-00001-of-00002.safetensors");
    struct catalogue *b = open_model("llama-tiny-hf/model.safetensors.index.json");

    (void)state;
    assert_int_equal(a->n_file, 2);
    assert_int_equal(a->n_tensor, b->n_tensor);
    assert_string_equal(a->hparams.name, "llama-tiny-hf");
    catalogue_close(a);
    catalogue_close(b);
}

/* The names of the files are read before their tensors and count toward the same limit. */
static void the_index_counts_toward_the_limit_of_headers(void **state)
{
    struct catalogue *c = open_model("llama-tiny-hf");
    struct header_room room = { 0 };
    struct err e = ERR_INIT;
    char path[512];

    (void)state;
    catalogue_close(c);
    snprintf(path, sizeof path, "%s/conformance/models/llama-tiny-hf", getenv("MW_SHARED"));
    assert_int_equal(catalogue_open_within(&c, path, &room, &e), 0);
    catalogue_close(c);
    assert_int_equal(room.used, 0);
    room.limit = SHARD_MAX * sizeof(char *);
    assert_int_equal(catalogue_open_within(&c, path, &room, &e), -1);
    assert_int_equal(e.code, ERR_BUDGET);
    assert_non_null(strstr(e.file, "index.json"));
    assert_int_equal(room.used, 0);
}

/* Loading a model can be stopped while its vocabulary is read. */
static void a_cancelled_vocabulary_is_not_read(void **state)
{
    struct catalogue *c = open_model("qwen2-tiny-hf");
    struct cancel cancel = { .is_set = true };
    struct vocab_info info;
    struct err e = ERR_INIT;

    (void)state;
    c->cancel = &cancel;
    assert_int_equal(vocab_info(c, &info, &e), -1);
    assert_int_equal(e.code, ERR_CANCELLED);
    cancel_clear(&cancel);
    assert_int_equal(vocab_info(c, &info, &e), 0);
    catalogue_close(c);
}

/* A folder for links into the conformance models; remove_cache removes it. */
static char cache[256];

static void link_into_cache(const char *dir, const char *name, const char *target)
{
    char from[512], to[512];

    snprintf(to, sizeof to, "%s/%s/%s", cache, dir, name);
    snprintf(from, sizeof from, "%s/conformance/models/%s", getenv("MW_SHARED"), target);
    assert_int_equal(symlink(from, to), 0);
}

static void make_cache(const char *const *dirs)
{
    const char *tmp = getenv("TMPDIR");
    char path[512];

    snprintf(cache, sizeof cache, "%s/memwall-cache-XXXXXX", tmp != NULL ? tmp : "/tmp");
    assert_non_null(mkdtemp(cache));
    for (; *dirs != NULL; dirs++) {
        snprintf(path, sizeof path, "%s/%s", cache, *dirs);
        assert_int_equal(mkdir(path, 0700), 0);
    }
}

static int remove_cache(void **state)
{
    (void)state;
    if (cache[0] != '\0')
        tree_remove(cache);
    cache[0] = '\0';
    return 0;
}

static struct catalogue *open_in_cache(const char *name)
{
    struct err e = ERR_INIT;
    struct catalogue *c = NULL;
    char path[512];

    snprintf(path, sizeof path, "%s/%s", cache, name);
    if (catalogue_open(&c, path, &e) != 0)
        fail_msg("%s: %s", e.file, e.what);
    return c;
}

static void the_cache_of_the_hub_is_read_in_place(void **state)
{
    static const char *const dirs[] = { "models--acme--tiny-7b", "models--acme--tiny-7b/blobs",
                                        "models--acme--tiny-7b/snapshots",
                                        "models--acme--tiny-7b/snapshots/0123abcd", NULL };
    static const char *const files[] = { "config.json", "model.safetensors", "tokenizer.json" };
    struct catalogue *c = open_model("qwen3-tiny-hf");

    (void)state;
    catalogue_close(c);
    make_cache(dirs);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char from[64], to[512], target[64];

        snprintf(target, sizeof target, "qwen3-tiny-hf/%s", files[i]);
        snprintf(from, sizeof from, "blob%zu", i);
        link_into_cache("models--acme--tiny-7b/blobs", from, target);
        snprintf(target, sizeof target, "../../blobs/blob%zu", i);
        snprintf(to, sizeof to, "%s/%s/%s", cache, dirs[3], files[i]);
        assert_int_equal(symlink(target, to), 0);
    }
    c = open_in_cache(dirs[3]);
    assert_string_equal(c->hparams.name, "tiny-7b");
    assert_string_equal(c->hparams.arch->name, "qwen3");
    catalogue_close(c);
}

/* Every folder gives a name.  Only folders of the hub's cache give the name of the
 * repository. */
static void a_folder_of_any_name_gives_a_name(void **state)
{
    static const struct {
        const char *folder, *name;
    } rows[] = {
        { "models--acme--tiny-7b/snapshots/0123abcd", "tiny-7b" },
        { "models--foo/snapshots/a--b", "foo" },
        { "models--foo/snapshots/models--b", "foo" },
        { "models--foo/snapshots/--", "foo" },
        { "models--a--b--c/snapshots/x", "b--c" },
        { "models--a--/snapshots/x", "a--" },
        { "models--/snapshots/x--y", "x--y" },
        { "models----/snapshots/x", "--" },
        { "models--a--b/other/snapshots/x", "x" },
        { "models--a--b", "models--a--b" },
        { "snapshots/models--a--b", "models--a--b" },
        { "snapshots/a--b", "a--b" },
        { "models--a--b/snapshots/x/deeper", "b" },
        { "models--a--b/snapshots/models--c--d/snapshots/x", "d" },
    };
    static const char *const none[] = { NULL };
    struct catalogue *c = open_model("qwen3-tiny-hf");

    (void)state;
    catalogue_close(c);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char path[512];

        make_cache(none);
        for (const char *end = rows[i].folder; *end != '\0';) {
            end += strcspn(end, "/");
            snprintf(path, sizeof path, "%s/%.*s", cache, (int)(end - rows[i].folder),
                     rows[i].folder);
            assert_int_equal(mkdir(path, 0700), 0);
            end += *end == '/';
        }
        link_into_cache(rows[i].folder, "config.json", "qwen3-tiny-hf/config.json");
        link_into_cache(rows[i].folder, "model.safetensors", "qwen3-tiny-hf/model.safetensors");
        c = open_in_cache(rows[i].folder);
        assert_string_equal(c->hparams.name, rows[i].name);
        catalogue_close(c);
        remove_cache(state);
    }
}

static void a_blob_without_a_suffix_is_recognised_by_its_content(void **state)
{
    static const char *const dirs[] = { "blobs", NULL };
    struct catalogue *c = open_model("llama-tiny.gguf");

    (void)state;
    catalogue_close(c);
    make_cache(dirs);
    link_into_cache("blobs", "sha256-0123456789abcdef", "llama-tiny.gguf");
    c = open_in_cache("blobs/sha256-0123456789abcdef");
    assert_int_equal(c->kind, CATALOGUE_GGUF);
    catalogue_close(c);
}

/* Returns the number of cached pages of file fd; -1 if the kernel does not report it. */
static long cached_pages(int fd)
{
    struct {
        uint64_t off, len;
    } range = { 0, 0 };
    struct {
        uint64_t cache, dirty, writeback, evicted, recently;
    } count = { 0, 0, 0, 0, 0 };

    return syscall(451, fd, &range, &count, 0) == 0 ? (long)count.cache : -1;
}

/* Make a copy, write it to the disk, and drop it from the page cache. */
static int copy_cold(const char *from, const char *to)
{
    char bytes[65536];
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ssize_t n;

    assert_true(in >= 0 && out >= 0);
    while ((n = read(in, bytes, sizeof bytes)) > 0)
        assert_int_equal(write(out, bytes, (size_t)n), n);
    close(in);
    assert_int_equal(fsync(out), 0);
    posix_fadvise(out, 0, 0, POSIX_FADV_DONTNEED);
    return out;
}

static void opening_leaves_no_page_in_the_cache(void **state)
{
    static const char *const dirs[] = { "d", NULL };
    struct catalogue *c = open_model("gemma4-tiny.gguf");
    char from[512], to[300];
    int fd;

    (void)state;
    snprintf(from, sizeof from, "%s", c->path);
    catalogue_close(c);
    make_cache(dirs);
    snprintf(to, sizeof to, "%s/d/copy.gguf", cache);
    fd = copy_cold(from, to);
    if (cached_pages(fd) != 0) { /* unknown, or its file system keeps it in memory */
        close(fd);
        skip();
    }
    c = open_in_cache("d/copy.gguf");
    assert_int_equal(cached_pages(fd), 0);
    catalogue_close(c);
    close(fd);
}

static void an_assistant_model_is_named(void **state)
{
    static const char *const names[] = { "gemma4-tiny-assistant-hf",
                                         "gemma4-tiny-assistant.gguf" };
    const char *shared = getenv("MW_SHARED");

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct catalogue *c = NULL;
        struct err e = ERR_INIT;
        char path[512];

        snprintf(path, sizeof path, "%s/conformance/models/%s", shared != NULL ? shared : "",
                 names[i]);
        if (access(path, R_OK) != 0)
            skip();
        assert_int_equal(catalogue_open(&c, path, &e), -1);
        assert_int_equal(e.code, ERR_UNSUPPORTED);
        assert_non_null(strstr(e.what, "drafting model"));
        assert_int_equal(catalogue_open_bare(&c, path, &e), 0);
        assert_true(c->n_tensor > 40);
        catalogue_close(c);
    }
}

int main(void)
{
    enum { N = sizeof pairs / sizeof pairs[0] };
    static const struct CMUnitTest others[] = {
        cmocka_unit_test(towers_count_in_no_sum),
        cmocka_unit_test(generation_settings_come_from_their_own_file),
        cmocka_unit_test(a_window_in_mistrals_config_applies_to_every_layer),
        cmocka_unit_test(the_scale_of_scores_comes_from_the_config),
        cmocka_unit_test(any_file_of_a_snapshot_names_it),
        cmocka_unit_test(the_index_counts_toward_the_limit_of_headers),
        cmocka_unit_test(a_cancelled_vocabulary_is_not_read),
        cmocka_unit_test_teardown(the_cache_of_the_hub_is_read_in_place, remove_cache),
        cmocka_unit_test_teardown(a_folder_of_any_name_gives_a_name, remove_cache),
        cmocka_unit_test_teardown(a_blob_without_a_suffix_is_recognised_by_its_content,
                                  remove_cache),
        cmocka_unit_test_teardown(opening_leaves_no_page_in_the_cache, remove_cache),
        cmocka_unit_test(an_assistant_model_is_named),
    };
    struct CMUnitTest tests[N];
    int failed;

    for (size_t i = 0; i < N; i++)
        tests[i] =
            (struct CMUnitTest){ pairs[i].snapshot, a_snapshot_is_the_model_of_its_gguf_file,
                                 NULL, NULL, &pairs[i] };
    failed = cmocka_run_group_tests_name("snapshots equal their GGUF files", tests, NULL, NULL);
    failed += cmocka_run_group_tests_name("snapshot", others, NULL, NULL);
    return failed;
}
