/*
 * A session that was saved to a KV file and loaded goes on with the bits of one that never
 * stopped: for all families and KV types, after going back, and after damage.  A file that does
 * not fit, is damaged or is made by somebody else never gives other bits.
 */
#include "config.h"

#include <sys/resource.h>
#include <sys/stat.h>

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

#include "engine/base/build_name.h"
#include "engine/plan/plan.h"
#include "engine/session/saved_kv.h"
#include "tests/lib/calls.h"
#include "tests/lib/chance.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/kv_folder.h"
#include "tests/lib/model_path.h"
#include "tests/lib/tree.h"

#define N_CTX  720
#define N_HELD 530 /* two pages and a part of a third one */
#define N_MORE 12
#define TINY   "gemma4-tiny-q4_0.gguf" /* windows of 16 tokens, shared layers */

static const struct saved_kv_call usual = { .max_bytes = 0 };
static uint32_t ids[N_CTX];

/* --- calls --- */

static void make_ids(const struct mw_model *m, uint64_t seed)
{
    struct chance chance = { .state = seed };
    uint32_t n = vocab_of(m);

    for (uint32_t i = 0; i < N_CTX; i++)
        ids[i] = chance_below(&chance, n);
}

static struct saved_kv save(struct mw_session *s)
{
    struct err e = ERR_INIT;
    struct saved_kv out;

    no_error(session_save_kv(s, kv_path, &usual, &out, &e), &e);
    assert_int_equal(out.n_token, mw_session_tokens(s));
    return out;
}

static uint32_t load(struct mw_session *s)
{
    struct err e = ERR_INIT;
    struct saved_kv out;

    no_error(session_load_kv(s, kv_path, &usual, &out, &e), &e);
    assert_int_equal(out.n_token, mw_session_tokens(s));
    return out.n_token;
}

static void refuses(struct mw_session *s, enum err_code code, const char *why)
{
    struct err e = ERR_INIT;
    struct saved_kv out;

    assert_int_equal(session_load_kv(s, kv_path, &usual, &out, &e), -1);
    assert_int_equal(e.code, code);
    if (strstr(e.what, why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", e.what, why);
}

static uint32_t go_back(struct mw_session *s, uint32_t n)
{
    struct err e = ERR_INIT;
    uint32_t kept;

    no_error(mw_session_rewind(s, n, &kept, &e), &e);
    return kept;
}

/* Both sessions evaluate the ids from their positions up to n, and have the same logits. */
static void go_on_alike(struct mw_session *a, struct mw_session *b, uint32_t n,
                        uint32_t n_vocab)
{
    struct mw_session *both[] = { a, b };

    for (int i = 0; i < 2; i++) {
        uint32_t held = mw_session_tokens(both[i]);

        eval(both[i], ids + held, n - held);
    }
    assert_memory_equal(mw_session_logits(a), mw_session_logits(b), n_vocab * sizeof(float));
}

/* --- families and types --- */

static void a_loaded_session_has_the_bits(struct mw_model *m, const char *name, enum mw_kv k,
                                          enum mw_kv v)
{
    struct mw_options o = small_options(N_CTX);
    uint32_t n_vocab = vocab_of(m);
    struct mw_session *a, *b;
    struct err e = ERR_INIT;
    struct plan plan;

    o.kv_k = k;
    o.kv_v = v;
    o.draft = strncmp(name, "mtp-", 4) == 0 ? MW_DRAFT_MTP : MW_DRAFT_OFF;
    if (mw_plan(m, &o, &plan, &e) != 0 && e.code == ERR_UNSUPPORTED)
        return; /* its heads are too short for this type */
    a = open_session(m, &o);
    b = open_session(m, &o);
    eval(a, ids, N_HELD - 40);
    session_mark(a);
    session_mark_at(a, N_HELD - 16);
    eval(a, ids + N_HELD - 40, 40);
    save(a);
    eval(b, ids + 100, 30); /* another conversation, which goes */
    assert_int_equal(load(b), N_HELD);
    go_on_alike(a, b, N_HELD + N_MORE, n_vocab);
    /* Going back, within the rings and to a copy, is as cheap as it was. */
    for (uint32_t back = 5; back <= 35; back += 30) {
        uint32_t kept = go_back(a, N_HELD + N_MORE - back);

        assert_int_equal(go_back(b, N_HELD + N_MORE - back), kept);
        go_on_alike(a, b, N_HELD + N_MORE, n_vocab);
    }
    print_message("%s, kv %s %s\n", name, mw_kv_name(k), mw_kv_name(v));
    mw_session_close(a);
    mw_session_close(b);
}

static void a_family_goes_on_with_the_same_bits(void **state)
{
    static const enum mw_kv types[][2] = { { MW_KV_F32, MW_KV_F32 },
                                           { MW_KV_F16, MW_KV_F16 },
                                           { MW_KV_Q8_0, MW_KV_Q8_0 },
                                           { MW_KV_Q4_0, MW_KV_Q4_0 },
                                           { MW_KV_Q8_0, MW_KV_Q4_0 } };
    struct mw_model *m = open_model(*state);

    make_ids(m, 11);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        a_loaded_session_has_the_bits(m, *state, types[i][0], types[i][1]);
    mw_model_close(m);
}

/* --- what is written --- */

static void only_new_pages_are_written(void **state)
{
    struct mw_options o = small_options(N_CTX);
    struct mw_model *m = open_model("llama-tiny.gguf"); /* no rings: all in pages */
    struct mw_session *a, *b;
    struct saved_kv first, second, third;
    struct stat st;

    (void)state;
    make_ids(m, 12);
    a = open_session(m, &o);
    b = open_session(m, &o);
    eval(a, ids, N_HELD);
    first = save(a);
    eval(a, ids + N_HELD, 4);
    second = save(a);
    /* The third page is written, and everything beside pages. */
    assert_true(second.bytes < first.bytes * 2 / 3);
    assert_int_equal(load(b), N_HELD + 4);
    go_on_alike(a, b, N_HELD + 9, vocab_of(m));
    /* Another end: what was written before is not in the file any longer. */
    go_back(a, 300);
    ids[300]++;
    eval(a, ids + 300, 10);
    third = save(a);
    assert_true(third.bytes < first.bytes);
    assert_int_equal(load(b), 310);
    go_on_alike(a, b, 320, vocab_of(m));
    assert_int_equal(stat(kv_path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    mw_session_close(a);
    mw_session_close(b);
    mw_model_close(m);
}

static void the_budget_may_be_another_one(void **state)
{
    struct mw_options o = small_options(N_CTX);
    struct mw_model *m = open_model(TINY);
    struct mw_session *a = open_session(m, &o), *b;

    (void)state;
    make_ids(m, 13);
    eval(a, ids, N_HELD);
    save(a);
    o.saves_kv = true;
    o.memory_bytes = smallest_budget(m, &o);
    o.chunk = 4; /* the smallest rings */
    o.n_thread = 1;
    b = open_session(m, &o);
    assert_int_equal(load(b), N_HELD);
    go_on_alike(a, b, N_HELD + N_MORE, vocab_of(m));
    mw_session_close(a);
    /* And the other way round. */
    save(b);
    o = small_options(N_CTX);
    a = open_session(m, &o);
    assert_int_equal(load(a), N_HELD + N_MORE);
    go_on_alike(a, b, N_HELD + 2 * N_MORE, vocab_of(m));
    mw_session_close(a);
    mw_session_close(b);
    mw_model_close(m);
}

/* --- files that do not fit --- */

static void a_file_that_does_not_fit_is_refused(void **state)
{
    struct mw_options o = small_options(N_CTX), other = o;
    struct mw_model *m = open_model(TINY), *n = open_model("llama-tiny.gguf");
    struct mw_session *a = open_session(m, &o), *b;
    struct err e = ERR_INIT;
    struct saved_kv out;
    struct saved_kv_call small = { .max_bytes = 1000 };

    (void)state;
    make_ids(m, 14);
    eval(a, ids, N_HELD);
    unlink(kv_path);
    refuses(a, ERR_IO, "No such file");
    assert_int_equal(session_save_kv(a, kv_path, &small, &out, &e), -1);
    assert_int_equal(e.code, ERR_BUDGET);
    save(a);
    other.kv_v = MW_KV_F32;
    b = open_session(m, &other);
    refuses(b, ERR_ARGUMENT, "KV types");
    mw_session_close(b);
    other = o;
    other.exact = true;
    b = open_session(m, &other);
    refuses(b, ERR_ARGUMENT, "--exact");
    mw_session_close(b);
    other = o;
    other.n_ctx = N_HELD - 1;
    b = open_session(m, &other);
    refuses(b, ERR_CONTEXT, "do not fit the context");
    mw_session_close(b);
    b = open_session(n, &o);
    refuses(b, ERR_ARGUMENT, "another model");
    mw_session_close(b);
    mw_session_close(a);
    mw_model_close(m);
    mw_model_close(n);
}

static struct mw_model *open_snapshot_here(void)
{
    struct err e = ERR_INIT;
    struct mw_model *m;

    no_error(mw_model_open(&m, tree_path("/snapshot"), &e), &e);
    return m;
}

/* A snapshot computes with numbers of its config.json, while its weights stay the same. */
static void a_changed_configuration_is_another_model(void **state)
{
    static const char *const links[] = { "model.safetensors", "tokenizer.json",
                                         "tokenizer_config.json" };
    struct mw_options o = small_options(500);
    char *config, *theta, from[64], to[64];
    struct mw_session *s;
    struct mw_model *m;
    size_t n;

    (void)state;
    config = model_read("f-gptoss/config.json", &n);
    if (config == NULL)
        skip();
    assert_int_equal(tree_make(NULL), 0);
    tree_put("/snapshot/config.json", config);
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        snprintf(from, sizeof from, "f-gptoss/%s", links[i]);
        snprintf(to, sizeof to, "/snapshot/%s", links[i]);
        assert_int_equal(symlink(model_path(from), tree_path(to)), 0);
    }
    m = open_snapshot_here();
    make_ids(m, 18);
    s = open_session(m, &o);
    eval(s, ids, 300);
    save(s);
    mw_session_close(s);
    mw_model_close(m);
    m = open_snapshot_here();
    s = open_session(m, &o);
    assert_int_equal(load(s), 300);
    mw_session_close(s);
    mw_model_close(m);
    theta = strstr(config, "150000.0");
    assert_non_null(theta);
    theta[0] = '2';
    tree_put("/snapshot/config.json", config);
    m = open_snapshot_here();
    s = open_session(m, &o);
    refuses(s, ERR_ARGUMENT, "another model");
    mw_session_close(s);
    mw_model_close(m);
    free(config);
    assert_int_equal(tree_drop(NULL), 0);
}

/* --- damage --- */

static unsigned char *file_bytes;
static size_t file_size;

static void keep_file(void)
{
    struct stat st;
    int fd = open(kv_path, O_RDONLY | O_CLOEXEC);

    assert_int_equal(fstat(fd, &st), 0);
    file_size = (size_t)st.st_size;
    free(file_bytes);
    file_bytes = malloc(file_size);
    assert_int_equal(read(fd, file_bytes, file_size), file_size);
    close(fd);
}

static void put_file(const void *bytes, size_t n)
{
    int fd = open(kv_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    assert_int_equal(close(fd), 0);
}

/* Whatever is loaded, the row after the same ids is the same. */
static bool loads_right(struct mw_session *b, const float *row, uint32_t n, uint32_t n_vocab)
{
    struct err e = ERR_INIT;
    struct saved_kv out;
    uint32_t held = go_back(b, 0);
    bool ok = session_load_kv(b, kv_path, &usual, &out, &e) == 0;

    held = mw_session_tokens(b);

    if (!ok)
        assert_true(e.code != ERR_NONE && e.what[0] != '\0');
    assert_true(held <= n - 1);
    eval(b, ids + held, n - held);
    assert_memory_equal(mw_session_logits(b), row, n_vocab * sizeof(float));
    return ok;
}

/* A session with 250 + 280 tokens and a copy, in a file and in file_bytes, and the row after
 * one more. */
static float *save_and_row(struct mw_model *m)
{
    struct mw_options o = small_options(N_CTX);
    struct mw_session *a = open_session(m, &o);
    float *row = malloc(vocab_of(m) * sizeof *row);

    make_ids(m, 15);
    eval(a, ids, 250);
    session_mark(a);
    eval(a, ids + 250, N_HELD - 250);
    unlink(kv_path);
    save(a);
    eval(a, ids + N_HELD, 1);
    memcpy(row, mw_session_logits(a), vocab_of(m) * sizeof *row);
    mw_session_close(a);
    keep_file();
    return row;
}

static void damage_never_gives_other_bits(void **state)
{
    struct mw_options o = small_options(N_CTX);
    struct mw_model *m = open_model(*state);
    struct mw_session *b = open_session(m, &o);
    struct chance chance = { .state = 77 };
    float *row = save_and_row(m);
    uint32_t n_loaded = 0;

    for (int i = 0; i < 60; i++) {
        size_t at = chance_below(&chance, (uint32_t)file_size);
        unsigned char was = file_bytes[at];

        file_bytes[at] ^= (unsigned char)(1u << chance_below(&chance, 8));
        put_file(file_bytes, file_size);
        n_loaded += loads_right(b, row, N_HELD + 1, vocab_of(m));
        file_bytes[at] = was;
    }
    for (int i = 0; i < 12; i++) { /* a file that ends early */
        put_file(file_bytes, chance_below(&chance, (uint32_t)file_size));
        n_loaded += loads_right(b, row, N_HELD + 1, vocab_of(m));
    }
    put_file(file_bytes, file_size);
    assert_int_equal(load(b), N_HELD);
    print_message("%s: %u of 72 damaged files were used\n", (const char *)*state, n_loaded);
    free(row);
    mw_session_close(b);
    mw_model_close(m);
}

/* --- a disk that is full --- */

static void a_full_disk_leaves_the_old_file(void **state)
{
    struct mw_options o = small_options(N_CTX);
    struct mw_model *m = open_model(TINY);
    struct mw_session *a = open_session(m, &o), *b = open_session(m, &o);
    struct err e = ERR_INIT;
    struct saved_kv out;
    struct stat before, after;

    (void)state;
    make_ids(m, 16);
    eval(a, ids, 100);
    unlink(kv_path);
    for (rlim_t n = 0; n <= 2 * KV_PIECE; n += KV_PIECE / 2) { /* no file at all */
        kv_folder_limit(n);
        assert_int_equal(session_save_kv(a, kv_path, &usual, &out, &e), -1);
        kv_folder_limit(RLIM_INFINITY);
        assert_int_equal(e.code, ERR_IO);
        assert_int_equal(access(kv_path, F_OK), -1);
    }
    save(a);
    assert_int_equal(stat(kv_path, &before), 0);
    eval(a, ids + 100, N_HELD - 100);
    for (rlim_t more = 0; more < 4 * KV_PIECE; more += KV_PIECE * 6 / 5) {
        kv_folder_limit((rlim_t)before.st_size + more);
        assert_int_equal(session_save_kv(a, kv_path, &usual, &out, &e), -1);
        kv_folder_limit(RLIM_INFINITY);
        assert_int_equal(stat(kv_path, &after), 0);
        assert_int_equal(after.st_size, before.st_size); /* the space is free again */
        assert_int_equal(load(b), 100);
        go_on_alike(a, b, mw_session_tokens(a) + 1, vocab_of(m));
    }
    mw_session_close(a);
    mw_session_close(b);
    mw_model_close(m);
}

/* --- files that somebody made: their checksums are right --- */

#define PART_MOST (4 * MIB)

struct parts {
    unsigned char *bytes[16];
    size_t n[16];
    uint32_t n_part;
    struct kv_file_head head;
};

static void read_parts(struct parts *p)
{
    struct err e = ERR_INIT;
    struct kv_file *f;

    no_error(kv_file_open(&f, kv_path, 4096, &e), &e);
    p->head = *kv_file_head(f);
    p->n_part = kv_file_parts(f);
    for (uint32_t i = 0; i < p->n_part; i++) {
        p->n[i] = 0;
        p->bytes[i] = malloc(PART_MOST);
        kv_file_seek(f, i);
        while (p->n[i] < PART_MOST && kv_file_read(f, p->bytes[i] + p->n[i], 1, &e) == 0)
            p->n[i]++;
    }
    kv_file_close(f);
}

static void write_parts(const struct parts *p)
{
    struct err e = ERR_INIT;
    struct kv_file *f;

    no_error(kv_file_change(&f, kv_path, 4096, &e), &e);
    kv_file_begin(f);
    for (uint32_t i = 0; i < p->n_part; i++) {
        no_error(kv_file_write(f, p->bytes[i], p->n[i], &e), &e);
        no_error(kv_file_end_part(f, &e), &e);
    }
    no_error(kv_file_commit(f, &p->head, &e), &e);
    kv_file_close(f);
}

/* Change a word at the beginning of the last part, where its counts and ids are. */
static void forge_word(struct parts *p, struct chance *chance)
{
    static const uint32_t values[] = { 0,     1,          255,         256,        721,
                                       65536, 0x7fffffff, 0x80000000u, 0xffffffffu };
    size_t n = sizeof values / sizeof values[0], most = p->n[p->n_part - 1] / 4;
    uint32_t at = chance_below(chance, most < 600 ? (uint32_t)most : 600);

    if (chance_below(chance, 2) == 0)
        at = chance_below(chance, 5);
    memcpy(p->bytes[p->n_part - 1] + 4 * (size_t)at, &values[chance_below(chance, (uint32_t)n)],
           4);
}

/* Change words anywhere in a part: keys, values, states, copies of them. */
static void forge_values(unsigned char *bytes, size_t n, struct chance *chance)
{
    /* not a number, infinite, as two halves, the largest one, a fraction, nearly 0 */
    static const uint32_t values[] = { 0x7fc00000u, 0x7f800000u, 0xff800000u, 0x7e007c00u,
                                       0x7f7fffffu, 0xffffffffu, 0x3f000000u, 1 };
    uint32_t n_word = (uint32_t)(n / 4), at = chance_below(chance, n_word);
    uint32_t value = values[chance_below(chance, sizeof values / sizeof values[0])];

    for (uint32_t left = 1 + chance_below(chance, 64); left > 0 && at < n_word; left--, at++)
        memcpy(bytes + 4 * (size_t)at, &value, 4);
}

/* Evaluate, and go back to a copy: numbers that mean nothing may be an error, and no more. */
static void use_what_was_taken(struct mw_session *s)
{
    for (int i = 0; i < 2; i++) {
        uint32_t held = mw_session_tokens(s), kept;
        struct err e = ERR_INIT;

        assert_true(held <= N_CTX);
        if (held < N_CTX && mw_session_eval(s, ids + held, 1, NULL, NULL, &e) != 0)
            assert_true(e.code != ERR_NONE && e.what[0] != '\0');
        e = (struct err)ERR_INIT;
        no_error(mw_session_rewind(s, held - held / 4, &kept, &e), &e);
        assert_true(kept <= held - held / 4);
    }
}

static void a_forged_file_does_no_harm(void **state)
{
    struct mw_options o = small_options(N_CTX);
    struct mw_model *m = open_model(*state);
    struct mw_session *b = open_session(m, &o);
    struct chance chance = { .state = 78 };
    float *row = save_and_row(m);
    struct parts own, forged;
    struct err e;

    read_parts(&own);
    for (int i = 0; i < 150; i++) {
        struct saved_kv out;
        uint32_t last = own.n_part - 1, how = chance_below(&chance, 8);
        uint32_t which = how > 2 && how < 6 ? last : chance_below(&chance, own.n_part);

        forged = own;
        forged.bytes[which] = malloc(own.n[which]);
        memcpy(forged.bytes[which], own.bytes[which], own.n[which]);
        switch (how) {
        case 0: forged.n[which] = 1 + chance_below(&chance, (uint32_t)own.n[which]); break;
        case 1: forged.n_part = 1 + chance_below(&chance, own.n_part); break;
        case 2: forged.head.n_token = chance_below(&chance, 2 * N_CTX); break;
        case 3:
        case 4: forge_word(&forged, &chance); break;
        default: forge_values(forged.bytes[which], own.n[which], &chance); break;
        }
        write_parts(&forged);
        e = (struct err)ERR_INIT;
        (void)session_load_kv(b, kv_path, &usual, &out, &e);
        use_what_was_taken(b);
        free(forged.bytes[which]);
    }
    write_parts(&own);
    assert_true(loads_right(b, row, N_HELD + 1, vocab_of(m)));
    for (uint32_t i = 0; i < own.n_part; i++)
        free(own.bytes[i]);
    free(row);
    mw_session_close(b);
    mw_model_close(m);
}

/* --- OpenBLAS --- */

/* Libraries of other versions, or for other cores, round differently. */
static void a_file_of_another_openblas_is_refused(void **state)
{
    struct mw_options o = small_options(N_CTX);
    struct mw_model *m = open_model("llama-tiny-mix.gguf");
    const char *name = mw_blas_name();
    struct mw_session *a;
    struct parts p;
    char *at;

    (void)state;
    if (name[0] == '\0') {
        mw_model_close(m);
        skip();
    }
    o.memory_bytes = 256 * MIB;
    o.blas = MW_BLAS_ALWAYS;
    a = open_session(m, &o);
    make_ids(m, 17);
    eval(a, ids, N_HELD);
    unlink(kv_path);
    save(a);
    read_parts(&p);
    at = strstr(p.head.facts, name);
    assert_non_null(at);
    assert_int_equal(load(a), N_HELD);
    at[strlen(name) - 1] ^= 1; /* the end of the core's name */
    write_parts(&p);
    refuses(a, ERR_ARGUMENT, "another OpenBLAS");
    for (uint32_t i = 0; i < p.n_part; i++)
        free(p.bytes[i]);
    mw_session_close(a);
    mw_model_close(m);
}

/* A clone of the repository has the same version for many commits. */
static void a_file_of_another_build_is_refused(void **state)
{
    struct mw_options o = small_options(N_CTX);
    struct mw_model *m = open_model(TINY);
    struct mw_session *a = open_session(m, &o);
    char build[BUILD_NAME_BYTES], *at;
    struct parts p;

    (void)state;
    make_ids(m, 19);
    eval(a, ids, 20);
    unlink(kv_path);
    save(a);
    read_parts(&p);
    build_name(build);
    at = strstr(p.head.facts, build);
    assert_non_null(at);
    at[strlen(build) - 1] ^= 1;
    write_parts(&p);
    refuses(a, ERR_ARGUMENT, "another version of memwall");
    for (uint32_t i = 0; i < p.n_part; i++)
        free(p.bytes[i]);
    mw_session_close(a);
    mw_model_close(m);
}

/* --- predictions --- */

/* Half of a second for each GB from the disk, and 2.5 s to fetch the memory for it. */
static void reading_is_predicted_from_disk_and_fresh_memory(void **state)
{
    struct mw_limits l = {
        .disk_bytes_s = 2e9, .fresh_bytes_s = 4e8, .memory_bytes_s = 2e10, .measured_s = 1
    };
    struct mw_options o = small_options(N_CTX);
    struct mw_model *m = open_model(TINY);
    struct mw_session *s = open_session(m, &o);

    (void)state;
    make_ids(m, 4);
    eval(s, ids, 1); /* no weights are read ahead after that */
    mw_model_set_limits(m, &l);
    assert_float_equal(session_kv_read_s(s, 4000000000), 12, 1e-9);
    assert_float_equal(session_kv_write_s(s, 4000000000), 16, 1e-9); /* fetches none */
    l.fresh_bytes_s = 0;
    mw_model_set_limits(m, &l);
    assert_float_equal(session_kv_read_s(s, 4000000000), 2, 1e-9);
    mw_session_close(s);
    mw_model_close(m);
}

/* --- frame --- */

static int end(void **state)
{
    free(file_bytes);
    return kv_folder_end(state);
}

#define OF(test, name)                                                                         \
    {                                                                                          \
#test ": " name, test, NULL, NULL, (void *)(uintptr_t)name                             \
    }
#define FAMILY(name) OF(a_family_goes_on_with_the_same_bits, name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FAMILY(TINY),
        FAMILY("llama-tiny.gguf"),
        FAMILY("gemma2-tiny.gguf"),
        FAMILY("qwen3-tiny.gguf"),
        FAMILY("phi3-longrope-short-tiny.gguf"),
        FAMILY("gemma4-moe-tiny-q4_0.gguf"),
        FAMILY("f-mixtral.gguf"),
        FAMILY("f-gptoss"),
        FAMILY("f-laguna.gguf"),        /* heads of queries that differ by layer, windows */
        FAMILY("f-deepseek3.gguf"),     /* latent attention */
        FAMILY("f-qwen35moe"),          /* gated delta nets */
        FAMILY("mtp-qwen35moe.gguf"),   /* the same with a draft head */
        FAMILY("f-lfm2moe.gguf"),       /* short convolutions */
        FAMILY("f-nemotronh-moe.gguf"), /* Mamba-2 */
        FAMILY("f-falconh1.gguf"),      /* the same beside attention */
        FAMILY("f-ling3.gguf"),         /* Kimi's delta attention, and latent attention */
        FAMILY("f-deepseek4.gguf"),     /* windows and entries, which are open pools at first */
        FAMILY("f-glm53flash.gguf"),    /* index keys that are pools */
        FAMILY("f-museglimmer.gguf"),   /* hyper entries, n-grams */
        FAMILY("q4e-a.gguf"),
        FAMILY("gemma4-tiny-q4_k_m.gguf"), /* heads of 64, for quantised types */
        FAMILY("llama-tiny-mix.gguf"),
        cmocka_unit_test(only_new_pages_are_written),
        cmocka_unit_test(the_budget_may_be_another_one),
        cmocka_unit_test(a_file_that_does_not_fit_is_refused),
        cmocka_unit_test(a_changed_configuration_is_another_model),
        OF(damage_never_gives_other_bits, "llama-tiny.gguf"),
        OF(damage_never_gives_other_bits, TINY),
        OF(damage_never_gives_other_bits, "f-qwen35moe"),
        cmocka_unit_test(a_full_disk_leaves_the_old_file),
        cmocka_unit_test(a_file_of_another_openblas_is_refused),
        cmocka_unit_test(a_file_of_another_build_is_refused),
        OF(a_forged_file_does_no_harm, TINY),
        OF(a_forged_file_does_no_harm, "f-deepseek4.gguf"),
        OF(a_forged_file_does_no_harm, "f-qwen35moe"),
        OF(a_forged_file_does_no_harm, "f-museglimmer.gguf"),
        OF(a_forged_file_does_no_harm, "f-glm53flash.gguf"),
        OF(a_forged_file_does_no_harm, "q4e-a.gguf"),
        cmocka_unit_test(reading_is_predicted_from_disk_and_fresh_memory),
    };

    return cmocka_run_group_tests_name("saved_kv", tests, kv_folder_begin, end);
}
