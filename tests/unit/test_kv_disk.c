/*
 * Keys and values on the disk: the bits of a session do not change, whatever part of them is in
 * memory, and the memory is what the plan says.
 */
#include "config.h"

#include <sys/resource.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/session/saved_kv.h"
#include "engine/session/session_internal.h"
#include "tests/lib/calls.h"
#include "tests/lib/chance.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/kv_folder.h"
#include "tests/lib/model_copy.h"

#define N_CTX  24000
#define N_IDS  900
#define N_ROW  3
#define N_VOCAB 2048

static uint32_t ids[N_IDS + N_ROW];
static struct chance chance;

struct rows {
    float row[N_ROW][N_VOCAB];
};

static struct mw_options large(void)
{
    struct mw_options o = small_options(N_CTX);

    o.memory_bytes = 4 * GIB;
    return o;
}

/* The least budget, which keeps no page that can be on the disk, and some more. */
static struct mw_options little(struct mw_model *m, const struct mw_options *like, uint64_t more)
{
    struct mw_options o = *like;

    o.cache_folder = kv_folder;
    o.memory_bytes = 0;
    o.memory_bytes = smallest_budget(m, &o) + more;
    return o;
}

static void take_rows(struct mw_model *m, struct mw_session *s, struct rows *out)
{
    struct mw_model_info info;

    mw_model_info(m, &info);
    assert_true(info.n_vocab <= N_VOCAB);
    memset(out, 0, sizeof *out);
    for (int i = 0; i < N_ROW; i++) {
        eval(s, ids + N_IDS + i, 1);
        memcpy(out->row[i], mw_session_logits(s), info.n_vocab * sizeof(float));
    }
}

static void new_ids(struct mw_model *m)
{
    struct mw_model_info info;

    mw_model_info(m, &info);
    for (int i = 0; i < N_IDS + N_ROW; i++)
        ids[i] = chance_below(&chance, info.n_vocab);
}

static void whole(struct mw_model *m, const struct mw_options *o, struct rows *out)
{
    struct mw_session *s = open_session(m, o);

    eval(s, ids, N_IDS);
    take_rows(m, s, out);
    mw_session_close(s);
}

/* The same with pages on the disk. */
static void paged(struct mw_model *m, const struct mw_options *o, const char *name,
                  const char *what, const struct rows *want)
{
    struct rows *got = malloc(sizeof *got);
    struct mw_session *s = open_session(m, o);

    if (!s->plan.has_kv_disk)
        fail_msg("%s, %s: the plan has no pages on the disk", name, what);
    eval(s, ids, N_IDS);
    take_rows(m, s, got);
    if (kv_disk_bytes(s->kv) == 0)
        fail_msg("%s, %s: no page is on the disk", name, what);
    if (kv_global_bytes(s->kv) > s->plan.row[MW_ROW_KV_GLOBAL])
        fail_msg("%s, %s: %llu bytes of pages, planned %llu", name, what,
                 (unsigned long long)kv_global_bytes(s->kv),
                 (unsigned long long)s->plan.row[MW_ROW_KV_GLOBAL]);
    if (memcmp(want, got, sizeof *want) != 0)
        fail_msg("%s: different bits with %s", name, what);
    mw_session_close(s);
    free(got);
}

struct way {
    const char *name;
    uint64_t more; /* bytes over the least budget */
    uint32_t chunk;
    int n_thread;
    bool no_uring;
    enum mw_io io;
    enum mw_blas blas;
};

static const struct way ways[] = {
    { "the least budget", 0, 0, 2, false, MW_IO_AUTO, MW_BLAS_NEVER },
    { "chunks of 7, one thread", 60 * KIB, 7, 1, true, MW_IO_AUTO, MW_BLAS_NEVER },
    { "chunks of 300, three threads", 0, 300, 3, false, MW_IO_AUTO, MW_BLAS_NEVER },
    { "buffered reads of weights", 40 * KIB, 64, 2, false, MW_IO_BUFFERED, MW_BLAS_NEVER },
};

static const char *const names[] = {
    "llama-tiny.gguf",    "gemma4-tiny-q4_0.gguf", "gemma4-31b-tiny.gguf", "gemma4-moe-tiny.gguf",
    "f-mixtral.gguf",        "f-gptoss",             "f-qwen35",
    "f-qwen35moe",        "f-deepseek2lite.gguf",  "f-deepseek3.gguf",     "f-glm47flash.gguf",
    "f-kimilinear.gguf",  "f-nemotronh.gguf",      "f-falconh1.gguf",      "f-lfm2.gguf",
    "f-ling3.gguf",       "gemma3-tiny.gguf",
};

static const char *const typed[] = { "gemma4-tiny-q4_k_m.gguf", "llama-tiny-mix.gguf" };
static const char *const walked[] = { "llama-tiny.gguf", "gemma4-tiny-q4_0.gguf", "f-qwen35",
                                      "f-deepseek3.gguf", "gemma4-moe-tiny.gguf" };

static const char *const choosing[] = { "q4e-a.gguf", "f-glm53flash.gguf" };

static void all_ways(struct mw_model *m, const char *name, struct mw_options o)
{
    struct rows *want = malloc(sizeof *want);

    whole(m, &o, want);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const struct way *w = &ways[i];
        struct mw_options other = o;

        other.chunk = w->chunk;
        other.n_thread = w->n_thread;
        other.no_uring = w->no_uring;
        other.io = w->io;
        other = little(m, &other, w->more);
        paged(m, &other, name, w->name, want);
    }
    free(want);
}

static void a_family_gives_the_same_bits(void **state)
{
    struct mw_model *m = open_model_copy(*state);

    chance.state = 1;
    new_ids(m);
    all_ways(m, *state, large());
    mw_model_close(m);
}

/* --- types of keys and values --- */

static void all_types_give_their_bits(void **state)
{
    static const enum mw_kv types[][2] = { { MW_KV_F32, MW_KV_F32 },
                                           { MW_KV_Q8_0, MW_KV_Q8_0 },
                                           { MW_KV_Q8_0, MW_KV_Q4_0 },
                                           { MW_KV_F16, MW_KV_Q4_0 } };
    struct mw_model *m = open_model_copy(*state);

    chance.state = 2;
    new_ids(m);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct mw_options o = large();

        o.kv_k = types[i][0];
        o.kv_v = types[i][1];
        all_ways(m, *state, o);
    }
    mw_model_close(m);
}

/* --- a session that goes back, changes and is saved --- */

#define N_STEP 60

struct walk {
    struct mw_model *m;
    struct mw_session *s, *fresh;
    struct mw_options o;
    uint32_t n; /* tokens */
    uint32_t n_vocab, n_disk, cancel_in;
};

static void cancel_soon(void *ctx, uint32_t done, uint32_t total, bool is_within)
{
    struct walk *w = ctx;

    (void)done, (void)total, (void)is_within;
    if (w->cancel_in > 0 && --w->cancel_in == 0)
        mw_session_cancel(w->s);
}

static void open_again(struct walk *w)
{
    mw_session_close(w->s);
    w->s = open_session(w->m, &w->o);
    session_set_progress(w->s, cancel_soon, w);
}

static void change(struct walk *w, uint32_t n_ctx, uint64_t memory, enum mw_kv_disk disk)
{
    struct mw_options o = w->o;
    struct err e = ERR_INIT;

    o.n_ctx = n_ctx;
    o.kv_disk = disk;
    o.memory_bytes = memory;
    if (session_set(w->s, &o, &e) != 0)
        fail_with(&e);
    w->o = o;
}

/* The least budget of a context and some more, or room for everything. */
static void change_any(struct walk *w)
{
    struct mw_options o = w->o;
    uint64_t more = chance_below(&chance, 900) * KIB;

    o.n_ctx = N_CTX + chance_below(&chance, 9) * 1000;
    o.kv_disk = chance_below(&chance, 4) == 0 ? MW_KV_DISK_NEVER : MW_KV_DISK_AUTO;
    o.memory_bytes = 0;
    change(w, o.n_ctx, chance_below(&chance, 5) == 0 ? GIB : smallest_budget(w->m, &o) + more,
           o.kv_disk);
}

static void save_and_load(struct walk *w)
{
    static const struct saved_kv_call usual = { .max_bytes = 0 };
    struct err e = ERR_INIT;
    struct saved_kv out;
    char path[440];

    snprintf(path, sizeof path, "%s/saved.kv", kv_folder);
    no_error(session_save_kv(w->s, path, &usual, &out, &e), &e);
    assert_int_equal(out.n_token, w->n);
    if (chance_below(&chance, 2) == 0)
        open_again(w);
    no_error(session_load_kv(w->s, path, &usual, &out, &e), &e);
    assert_int_equal(out.n_token, w->n);
    unlink(path);
}

static void go_back(struct walk *w, uint32_t n)
{
    struct err e = ERR_INIT;
    uint32_t kept;

    no_error(mw_session_rewind(w->s, n, &kept, &e), &e);
    assert_true(kept <= n);
    w->n = kept;
}

static void go_on(struct walk *w, uint32_t most)
{
    uint32_t n = 1 + chance_below(&chance, most);

    n = n < N_IDS - w->n ? n : N_IDS - w->n;
    for (uint32_t i = w->n; i < w->n + n; i++)
        ids[i] = chance_below(&chance, w->n_vocab);
    if (n > 0)
        eval(w->s, ids + w->n, n);
    w->n += n;
}

/* The same, stopped in the middle of a pass. */
static void be_stopped(struct walk *w)
{
    uint32_t n = N_IDS - w->n < 300 ? N_IDS - w->n : 300;
    struct err e = ERR_INIT;

    for (uint32_t i = w->n; i < w->n + n; i++)
        ids[i] = chance_below(&chance, w->n_vocab);
    w->cancel_in = 1 + chance_below(&chance, 30);
    if (n > 0 && mw_session_eval(w->s, ids + w->n, n, NULL, NULL, &e) != 0)
        assert_int_equal(e.code, ERR_CANCELLED);
    w->cancel_in = 0;
    w->n = mw_session_tokens(w->s);
}

static void one_step(struct walk *w)
{
    switch (chance_below(&chance, 13)) {
    case 0: go_back(w, chance_below(&chance, w->n + 1)); break;
    case 1:
    case 2: go_back(w, w->n - chance_below(&chance, w->n < 40 ? w->n + 1 : 40)); break;
    case 3: session_mark(w->s); break;
    case 4:
    case 5: change_any(w); break;
    case 6:
        if (w->n > 0)
            save_and_load(w);
        break;
    case 7: go_on(w, 3); break;
    case 8: be_stopped(w); break;
    default: go_on(w, 400); break;
    }
    w->n_disk += kv_disk_bytes(w->s->kv) > 0;
    assert_true(kv_global_bytes(w->s->kv) <=
                w->s->plan.row[MW_ROW_KV_GLOBAL] +
                    (w->s->plan.budget_bytes - w->s->plan.sum_bytes));
}

/* The last row is that of a session that evaluates all ids at once. */
static void compare(struct walk *w)
{
    uint32_t n = w->n, kept;
    struct err e = ERR_INIT;

    if (n == 0)
        return;
    if (mw_session_logits(w->s) == NULL) {
        go_back(w, n - 1);
        eval(w->s, ids + w->n, n - w->n);
        w->n = n;
    }
    no_error(mw_session_rewind(w->fresh, 0, &kept, &e), &e);
    eval(w->fresh, ids, n);
    assert_memory_equal(mw_session_logits(w->s), mw_session_logits(w->fresh),
                        w->n_vocab * sizeof(float));
}

static void any_walk_gives_the_bits_of_its_ids(void **state)
{
    struct walk w = { .m = open_model_copy(*state), .o = large() };
    struct mw_model_info info;

    mw_model_info(w.m, &info);
    w.n_vocab = info.n_vocab;
    chance.state = 77;
    w.fresh = open_session(w.m, &w.o);
    w.o = little(w.m, &w.o, 100 * KIB);
    w.s = NULL;
    open_again(&w);
    for (int i = 0; i < N_STEP; i++) {
        one_step(&w);
        if (i % 3 == 0)
            compare(&w);
    }
    if (w.n_disk < N_STEP / 8)
        fail_msg("%s: pages were on the disk in %u of %d steps", (const char *)*state, w.n_disk,
                 N_STEP);
    mw_session_close(w.s);
    mw_session_close(w.fresh);
    mw_model_close(w.m);
}

/* The logits after n ids. */
static void last_row(struct mw_model *m, const struct mw_options *o, uint32_t n, float *out)
{
    struct mw_session *s = open_session(m, o);
    struct mw_model_info info;

    mw_model_info(m, &info);
    assert_true(info.n_vocab <= N_VOCAB);
    eval(s, ids, n);
    memcpy(out, mw_session_logits(s), info.n_vocab * sizeof *out);
    mw_session_close(s);
}

static void assert_last_row(struct mw_model *m, const struct mw_session *s, const float *want)
{
    struct mw_model_info info;

    mw_model_info(m, &info);
    assert_memory_equal(mw_session_logits(s), want, info.n_vocab * sizeof *want);
}

/* A page that a rewind left incomplete is in memory, or on the disk, or was to go there.  One
 * thread is enough: others would wait for pages, too. */
static void fewer_pages_may_stay_after_a_rewind(void **state)
{
    static const uint32_t back[] = { 200, 300, 520, 700, 780, 899 };
    enum { N_BACK = sizeof back / sizeof back[0] };
    static float want[N_BACK][N_VOCAB];
    struct mw_options all = large(), least;
    struct walk w = { .m = open_model_copy(*state) };

    all.n_thread = 1;
    chance.state = 8;
    new_ids(w.m);
    for (size_t i = 0; i < N_BACK; i++)
        last_row(w.m, &all, back[i] + 1, want[i]);
    least = little(w.m, &all, 0);
    for (uint64_t more = 0; more < 1000; more += 100)
        for (size_t i = 0; i < N_BACK; i++) {
            w.o = little(w.m, &all, more * KIB);
            open_again(&w);
            eval(w.s, ids, N_IDS);
            go_back(&w, back[i]);
            change(&w, N_CTX, least.memory_bytes, MW_KV_DISK_AUTO);
            eval(w.s, ids + w.n, back[i] + 1 - w.n);
            assert_last_row(w.m, w.s, want[i]);
        }
    mw_session_close(w.s);
    mw_model_close(w.m);
}

/* --- drafts --- */

#define N_PROMPT 700
#define N_TOKEN  80

struct drafted {
    uint64_t sum[N_TOKEN]; /* of the bits of the logits before each token */
    uint64_t accepted;
};

static uint64_t bits_of(const float *row, uint32_t n)
{
    uint64_t sum = 14695981039346656037u;
    const unsigned char *at = (const unsigned char *)row;

    for (size_t i = 0; i < n * sizeof *row; i++)
        sum = (sum ^ at[i]) * 1099511628211u;
    return sum;
}

static uint32_t likeliest(const float *row, uint32_t n)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < n; i++)
        best = row[i] > row[best] ? i : best;
    return best;
}

static void answer(struct mw_model *m, const struct mw_options *o, struct drafted *out)
{
    struct mw_session *s = open_session(m, o);
    struct mw_sample *sample = malloc(sizeof *sample);
    struct mw_model_info info;
    struct err e = ERR_INIT;

    mw_model_info(m, &info);
    assert_true(o->cache_folder == NULL || s->plan.n_draft > 0);
    eval(s, ids, N_PROMPT);
    for (uint32_t i = 0; i < N_TOKEN; i++) {
        uint32_t next;

        out->sum[i] = bits_of(mw_session_logits(s), info.n_vocab);
        next = likeliest(mw_session_logits(s), info.n_vocab);
        no_error(mw_session_eval_sampled(s, next, &e), &e);
    }
    assert_true(o->cache_folder == NULL || kv_disk_bytes(s->kv) > 0);
    mw_session_sample(s, sample);
    out->accepted = sample->draft.accepted;
    free(sample);
    mw_session_close(s);
}

/* The least budget with drafts and with pages on the disk. */
static struct mw_options little_with_drafts(struct mw_model *m, const struct mw_options *like)
{
    struct mw_options o = little(m, like, 0);
    struct err e = ERR_INIT;
    struct plan p = { 0 };

    for (int i = 0; i < 100 && p.n_draft == 0; i++) {
        o.memory_bytes += MIB;
        no_error(mw_plan(m, &o, &p, &e), &e);
    }
    if (p.n_draft == 0 || !p.has_kv_disk)
        fail_msg("%u drafts, on the disk: %d, %llu of %llu bytes for the drafter", p.n_draft,
                 p.has_kv_disk, (unsigned long long)p.row[MW_ROW_DRAFTER],
                 (unsigned long long)p.sum_bytes);
    return o;
}

/* Another model drafts, which is the same one, so its drafts are right. */
static void drafts_are_as_without(void **state)
{
    struct mw_model *m = open_model_copy(*state);
    struct drafted *want = malloc(sizeof *want), *got = malloc(sizeof *got);
    struct mw_options o = large();

    o.kv_k = o.kv_v = MW_KV_F32; /* twice as much as that of the model that drafts */
    chance.state = 9;
    new_ids(m);
    answer(m, &o, want);
    o.draft = MW_DRAFT_FILE;
    o.draft_file = model_copy(*state);
    o.draft_depth = 6;
    o = little_with_drafts(m, &o);
    answer(m, &o, got);
    assert_memory_equal(want->sum, got->sum, sizeof want->sum);
    assert_true(got->accepted > N_TOKEN / 4);
    free(want);
    free(got);
    mw_model_close(m);
}

/* --- a disk that fails --- */

/* A full disk ends an evaluation with an error that says so; the session goes on. */
static void a_full_disk_is_an_error(void **state)
{
    struct mw_model *m = open_model_copy("llama-tiny.gguf");
    struct rows *want = malloc(sizeof *want), *got = malloc(sizeof *got);
    struct mw_options o = large();
    struct err e = ERR_INIT;
    struct mw_session *s;

    (void)state;
    chance.state = 5;
    new_ids(m);
    whole(m, &o, want);
    o = little(m, &o, 0);
    s = open_session(m, &o);
    kv_folder_limit(100 * KIB);
    assert_int_equal(mw_session_eval(s, ids, N_IDS, NULL, NULL, &e), -1);
    kv_folder_limit(RLIM_INFINITY);
    assert_int_equal(e.code, ERR_IO);
    assert_non_null(strstr(e.what, "could not write keys and values to the disk"));
    assert_true(kv_global_bytes(s->kv) <= s->plan.row[MW_ROW_KV_GLOBAL]);
    assert_in_range(mw_session_tokens(s), 256, N_IDS - 1);
    eval(s, ids + mw_session_tokens(s), N_IDS - mw_session_tokens(s));
    take_rows(m, s, got);
    assert_memory_equal(want, got, sizeof *want);
    mw_session_close(s);
    free(want);
    free(got);
    mw_model_close(m);
}

/* Pages that cannot be read back end an evaluation with an error that names them; then the
 * session holds nothing, and evaluates again. */
static void lost_pages_are_an_error(void **state)
{
    struct mw_model *m = open_model_copy("llama-tiny.gguf");
    struct rows *want = malloc(sizeof *want), *got = malloc(sizeof *got);
    struct mw_options o = large();
    struct err e = ERR_INIT;
    struct mw_session *s;

    (void)state;
    chance.state = 6;
    new_ids(m);
    whole(m, &o, want);
    o = little(m, &o, 0);
    s = open_session(m, &o);
    eval(s, ids, N_IDS - 10);
    assert_int_equal(ftruncate(kv_disk_fd(s->kv), 0), 0);
    assert_int_equal(mw_session_eval(s, ids + N_IDS - 10, 10, NULL, NULL, &e), -1);
    assert_int_equal(e.code, ERR_IO);
    assert_string_equal(e.file, "keys and values on the disk");
    assert_int_equal(mw_session_tokens(s), 0);
    eval(s, ids, N_IDS);
    take_rows(m, s, got);
    assert_memory_equal(want, got, sizeof *want);
    mw_session_close(s);
    free(want);
    free(got);
    mw_model_close(m);
}

/* The same if the pass verifies drafts, which a session otherwise tries again without them. */
static void lost_pages_are_an_error_beside_drafts(void **state)
{
    struct mw_model *m = open_model_copy("llama-tiny.gguf");
    struct mw_options o = large();
    struct err e = ERR_INIT;
    struct mw_session *s;
    struct mw_model_info info;

    (void)state;
    mw_model_info(m, &info);
    chance.state = 10;
    new_ids(m);
    o.kv_k = o.kv_v = MW_KV_F32;
    o.draft = MW_DRAFT_FILE;
    o.draft_file = model_copy("llama-tiny.gguf");
    o.draft_depth = 6;
    o = little_with_drafts(m, &o);
    s = open_session(m, &o);
    eval(s, ids, N_PROMPT);
    assert_int_equal(ftruncate(kv_disk_fd(s->kv), 0), 0);
    assert_int_equal(
        mw_session_eval_sampled(s, likeliest(mw_session_logits(s), info.n_vocab), &e), -1);
    assert_int_equal(e.code, ERR_IO);
    assert_int_equal(mw_session_tokens(s), 0);
    mw_session_close(s);
    mw_model_close(m);
}

/* With room for all pages, nothing has to be written any longer. */
static void memory_helps_when_the_disk_is_full(void **state)
{
    struct mw_model *m = open_model_copy("llama-tiny.gguf");
    struct rows *want = malloc(sizeof *want), *got = malloc(sizeof *got);
    struct mw_options o = large(), more;
    struct err e = ERR_INIT;
    struct mw_session *s;

    (void)state;
    chance.state = 11;
    new_ids(m);
    whole(m, &o, want);
    more = o;
    o = little(m, &o, 0);
    more.cache_folder = kv_folder;
    more.kv_disk = MW_KV_DISK_NEVER;
    s = open_session(m, &o);
    kv_folder_limit(100 * KIB);
    assert_int_equal(mw_session_eval(s, ids, N_IDS, NULL, NULL, &e), -1);
    e = (struct err)ERR_INIT;
    no_error(session_set(s, &more, &e), &e);
    eval(s, ids + mw_session_tokens(s), N_IDS - mw_session_tokens(s));
    take_rows(m, s, got);
    kv_folder_limit(RLIM_INFINITY);
    assert_memory_equal(want, got, sizeof *want);
    mw_session_close(s);
    free(want);
    free(got);
    mw_model_close(m);
}

/* A folder without such files, or a disk without space, is a reason to refuse the context. */
static void a_plan_says_why_there_is_no_disk(void **state)
{
    struct mw_model *m = open_model_copy("llama-tiny.gguf");
    struct mw_options o = large(), other;
    struct err e = ERR_INIT;
    struct plan p;

    (void)state;
    o = little(m, &o, 0);
    assert_int_equal(mw_plan(m, &o, &p, &e), 0);
    assert_true(p.has_kv_disk && p.kv_disk_bytes > 0 && p.kv_read_bytes > 0);
    other = o;
    other.kv_disk = MW_KV_DISK_NEVER;
    assert_int_equal(mw_plan(m, &other, &p, &e), -1);
    assert_non_null(strstr(e.what, "--kv-disk never"));
    other = o;
    other.cache_folder = "/proc";
    e = (struct err)ERR_INIT;
    assert_int_equal(mw_plan(m, &other, &p, &e), -1);
    assert_non_null(strstr(e.what, "cache folder"));
    mw_model_close(m);
}

/* A layer that keeps its first page has the next ones on the disk: memory is within the plan. */
static void pages_after_those_that_stay_go_to_the_disk(void **state)
{
    struct mw_model *m = open_model_copy(*state);
    struct mw_options all = large(), o;
    struct mw_session *s;
    struct err e = ERR_INIT;
    struct plan p = { 0 };

    chance.state = 9;
    new_ids(m);
    for (uint64_t more = 0; p.kv_keep[0] != KV_PAGE; more += 4) {
        o = little(m, &all, more * KIB);
        no_error(mw_plan(m, &o, &p, &e), &e);
        assert_true(p.has_kv_disk && p.kv_keep[0] <= KV_PAGE);
    }
    s = open_session(m, &o);
    eval(s, ids, N_IDS);
    assert_true(kv_disk_bytes(s->kv) > 0);
    assert_true(kv_page_bytes(s->kv) <= s->plan.row[MW_ROW_KV_GLOBAL]);
    mw_session_close(s);
    mw_model_close(m);
}

/* Pages come into whole huge pages, unless they are fewer: reads into small ones are slow.  The plan
 * has the bytes of the store. */
static void pages_come_into_huge_pages(void **state)
{
    static const struct kv_spec specs[] = { { .n_head_kv = 4, .head_dim_k = 64, .head_dim_v = 64 } };
    static const uint32_t n_slot[] = { 2, 12, 13 }; /* of 256 KiB */
    struct err e = ERR_INIT;
    struct kv *kv;

    (void)state;
    for (size_t i = 0; i < sizeof n_slot / sizeof n_slot[0]; i++) {
        struct kv_disk_options o = { .folder = kv_folder, .n_slot = n_slot[i], .tail = KV_PAGE };
        uint64_t bytes = n_slot[i] * 256 * KIB, before;

        assert_int_equal(kv_new(&kv, specs, 1, KV_F16, KV_F16, N_CTX, N_CTX, 0, &e), 0);
        before = kv_global_bytes(kv);
        assert_int_equal(kv_disk_open(kv, &o, &e), 0);
        assert_int_equal(kv_global_bytes(kv) - before,
                         i == 0 ? bytes : align_up(bytes, HUGE_BYTES));
        assert_int_equal((uintptr_t)kv_disk_range(kv, 0, 0, 0).dst % HUGE_BYTES, 0);
        kv_free(kv);
    }
}

/* Layers that choose positions by index keys need them in memory, which the plan names. */
static void a_family_that_chooses_positions_keeps_them(void **state)
{
    struct mw_model *m = open_model_copy(*state);
    struct mw_options o = large();
    struct err e = ERR_INIT;
    struct plan p;

    o.cache_folder = kv_folder;
    o.memory_bytes = 0;
    o.memory_bytes = smallest_budget(m, &o);
    assert_int_equal(mw_plan(m, &o, &p, &e), 0);
    assert_false(p.has_kv_disk);
    o.memory_bytes -= MIB;
    assert_int_equal(mw_plan(m, &o, &p, &e), -1);
    assert_non_null(strstr(e.what, "choose among all of them"));
    mw_model_close(m);
}

int main(void)
{
    struct CMUnitTest tests[60];
    uint64_t free_bytes;
    const char *why;
    size_t n = 0;

    why = kv_disk_why_not(getenv("MW_BUILDDIR"), &free_bytes); /* /tmp may be in memory */
    if (why != NULL) {
        printf("SKIP: no file for keys and values in the build folder: %s\n", why);
        return 77;
    }

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        tests[n++] = (struct CMUnitTest){ names[i], a_family_gives_the_same_bits, NULL, NULL,
                                          (void *)(uintptr_t)names[i] };
    for (size_t i = 0; i < sizeof typed / sizeof typed[0]; i++)
        tests[n++] = (struct CMUnitTest){ typed[i], all_types_give_their_bits, NULL, NULL,
                                          (void *)(uintptr_t)typed[i] };
    for (size_t i = 0; i < sizeof walked / sizeof walked[0]; i++)
        tests[n++] = (struct CMUnitTest){ walked[i], any_walk_gives_the_bits_of_its_ids, NULL,
                                          NULL, (void *)(uintptr_t)walked[i] };
    for (size_t i = 0; i < sizeof walked / sizeof walked[0]; i++)
        tests[n++] = (struct CMUnitTest){ walked[i], fewer_pages_may_stay_after_a_rewind, NULL,
                                          NULL, (void *)(uintptr_t)walked[i] };
    tests[n++] = (struct CMUnitTest){ "drafts_are_as_without", drafts_are_as_without, NULL, NULL,
                                      (void *)(uintptr_t)typed[1] };
    for (size_t i = 0; i < sizeof choosing / sizeof choosing[0]; i++)
        tests[n++] = (struct CMUnitTest){ choosing[i], a_family_that_chooses_positions_keeps_them,
                                          NULL, NULL, (void *)(uintptr_t)choosing[i] };
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(a_full_disk_is_an_error);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(memory_helps_when_the_disk_is_full);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(lost_pages_are_an_error);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(lost_pages_are_an_error_beside_drafts);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(a_plan_says_why_there_is_no_disk);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(pages_come_into_huge_pages);
    tests[n++] = (struct CMUnitTest){ "pages_after_those_that_stay_go_to_the_disk",
                                      pages_after_those_that_stay_go_to_the_disk, NULL, NULL,
                                      (void *)(uintptr_t)names[0] };
    return _cmocka_run_group_tests("kv_disk", tests, n, kv_folder_begin, kv_folder_end);
}
