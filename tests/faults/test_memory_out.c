/*
 * Every allocation of opening a model, a session, a few passes, drafts and a change of options
 * fails: once, or from then on for good, closing included.  Each time there is an error message,
 * nothing leaks (sanitizers check), and the session gives the same result as soon as there is
 * memory again.
 *
 * The models have dense layers, sliding windows, experts, latent attention, index keys, and all
 * kinds of recurrent state, as GGUF files and as folders.
 *
 * The linker puts these wrappers before the allocator for all code that is linked statically,
 * which is the engine.
 */
#include "config.h"

#include <sys/mman.h>

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/memwall.h"
#include "engine/session/model.h"
#include "engine/session/session.h"
#include "tests/lib/calls.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/model_copy.h"

enum kind { KIND_HEAP = 1, KIND_MAP = 2, KIND_THREAD = 4, KIND_ALL = 7 };

static struct {
    atomic_long countdown; /* calls until one fails; negative: none fails */
    atomic_bool lasts;     /* all later ones fail, too */
    atomic_bool is_out;    /* they do now */
    atomic_int kinds;      /* calls that count */
} faults = { .countdown = -1, .kinds = KIND_ALL };

static bool fails(enum kind kind)
{
    if ((atomic_load(&faults.kinds) & kind) == 0)
        return false;
    if (atomic_load(&faults.countdown) >= 0 && atomic_fetch_sub(&faults.countdown, 1) == 0) {
        atomic_store(&faults.is_out, atomic_load(&faults.lasts));
        return true;
    }
    return atomic_load(&faults.is_out);
}

/* Let the n-th call from now fail; negative: none. */
static void set_faults(long n, bool lasts, int kinds)
{
    atomic_store(&faults.countdown, -1);
    atomic_store(&faults.is_out, false);
    atomic_store(&faults.lasts, lasts);
    atomic_store(&faults.kinds, kinds);
    atomic_store(&faults.countdown, n);
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);
int __real_mprotect(void *at, size_t n, int prot);
int __real_posix_memalign(void **out, size_t align, size_t n);
char *__real_strdup(const char *s);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *ctx);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);
int __wrap_mprotect(void *at, size_t n, int prot);
int __wrap_posix_memalign(void **out, size_t align, size_t n);
char *__wrap_strdup(const char *s);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *ctx);

void *__wrap_malloc(size_t n)
{
    if (!fails(KIND_HEAP))
        return __real_malloc(n);
    errno = ENOMEM;
    return NULL;
}

void *__wrap_calloc(size_t n, size_t size)
{
    if (!fails(KIND_HEAP))
        return __real_calloc(n, size);
    errno = ENOMEM;
    return NULL;
}

void *__wrap_realloc(void *p, size_t n)
{
    if (!fails(KIND_HEAP))
        return __real_realloc(p, n);
    errno = ENOMEM;
    return NULL;
}

void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    if (!fails(KIND_MAP))
        return __real_mmap(at, n, prot, flags, fd, offset);
    errno = ENOMEM;
    return MAP_FAILED;
}

/* Areas take back memory that they have just given away. */
int __wrap_mprotect(void *at, size_t n, int prot)
{
    if (!fails(KIND_MAP))
        return __real_mprotect(at, n, prot);
    errno = ENOMEM;
    return -1;
}

int __wrap_posix_memalign(void **out, size_t align, size_t n)
{
    return fails(KIND_HEAP) ? ENOMEM : __real_posix_memalign(out, align, n);
}

/* The C library's own calls of malloc() do not go through the wrapper. */
char *__wrap_strdup(const char *s)
{
    if (!fails(KIND_HEAP))
        return __real_strdup(s);
    errno = ENOMEM;
    return NULL;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *ctx)
{
    return fails(KIND_THREAD) ? EAGAIN : __real_pthread_create(thread, attr, fn, ctx);
}

/* A hash of the last row of logits. */
static double row_sum(const struct mw_model *m, const struct mw_session *s)
{
    struct mw_model_info info;
    double sum = 0;

    mw_model_info(m, &info);
    for (uint32_t i = 0; i < info.n_vocab; i++)
        sum += (double)mw_session_logits(s)[i] * (i + 1);
    return sum;
}

/* Evaluate a prompt, go back, draft, and go on with another context and another budget. */
static int evaluate(struct mw_session *s, const struct mw_options *first, struct err *e)
{
    static const uint32_t ids[] = { 2, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43 };
    struct mw_options o = *first;
    uint32_t next = 5, kept;

    if (mw_session_eval(s, ids, 6, NULL, NULL, e) != 0)
        return -1;
    session_mark(s);
    if (mw_session_eval(s, ids + 6, 6, NULL, NULL, e) != 0 ||
        mw_session_eval(s, &next, 1, NULL, NULL, e) != 0 ||
        mw_session_rewind(s, 6, &kept, e) != 0 ||
        mw_session_eval(s, ids + kept, 12 - kept, NULL, NULL, e) != 0)
        return -1;
    for (int i = 1; i < 5; i++) /* a repetition, which is drafted */
        if (mw_session_eval_sampled(s, ids[i], e) != 0)
            return -1;
    o.memory_bytes -= o.draft == MW_DRAFT_SELF ? 16 * KIB : 16 * MIB;
    o.n_ctx = 128;
    return session_set(s, &o, e) != 0 ? -1 : mw_session_eval(s, &next, 1, NULL, NULL, e);
}

/* There is memory again.  Like a chat, go back before the options are set. */
static int evaluate_again(struct mw_session *s, const struct mw_options *first, struct err *e)
{
    uint32_t kept;

    session_mark(s);
    if (mw_session_rewind(s, 0, &kept, e) != 0 || session_set(s, first, e) != 0)
        return -1;
    return evaluate(s, first, e);
}

/* Some of the models have a tokenizer.json that is refused. */
static bool has_tokenizer;

static void find_tokenizer(const char *model)
{
    struct mw_model *m;
    struct err e = ERR_INIT;

    no_error(mw_model_open(&m, model, &e), &e);
    has_tokenizer = model_tokenizer(m, NULL, &e) != NULL;
    mw_model_close(m);
}

/* Use the tokenizer of a model, and a sampler. */
static int encode(struct mw_model *m, struct err *e)
{
    struct mw_sampling sampling = { .temp = 1, .top_p = 0.9f, .seed = { true, 3 } };
    struct mw_sampler *sampler;
    const struct tokenizer *t = model_tokenizer(m, NULL, e);
    struct ids out = { 0 };
    int rc = t != NULL ? tokenizer_encode(t, "a b <b>", 7, true, true, &out, e) : -1;

    ids_free(&out);
    if (rc != 0 || mw_sampler_new(&sampler, m, &sampling, e) != 0)
        return -1;
    mw_sampler_free(sampler);
    return 0;
}

struct row {
    const char *name, *model;
    enum mw_draft draft;
    const char *other; /* the file that drafts, if any */
};
static const struct row *row; /* of the test that runs */

/* Choose what drafts.  The path is kept. */
static int add_drafter(struct mw_model *m, struct mw_options *o, struct err *e)
{
    static char other[4352];

    o->draft = row->draft;
    if (row->other == NULL)
        return 0;
    snprintf(other, sizeof other, "%s", model_copy(row->other));
    if (row->draft == MW_DRAFT_MTP)
        return mw_model_attach(m, other, e);
    o->draft_file = other;
    return 0;
}

/* The budget of a model that drafts for itself: a part of its weights streams. */
static uint64_t budget_for_self;

static void set_self(struct mw_options *o)
{
    o->block_bytes = 4096;
    o->chunk = 16;
    o->draft_depth = 3;
    o->memory_bytes = budget_for_self;
}

static void find_budget_for_self(const char *model)
{
    struct mw_options o;
    struct mw_model *m;
    struct err e = ERR_INIT;
    struct plan p = { .low_bytes = 0 };

    mw_options_default(&o);
    o.n_ctx = 128; /* that of the change, too */
    o.n_thread = 2;
    o.draft = MW_DRAFT_SELF;
    no_error(mw_model_open(&m, model, &e), &e);
    for (budget_for_self = smallest_budget(m, &o) + 8 * MIB; p.low_bytes == 0;) {
        budget_for_self -= 16 * KIB;
        set_self(&o);
        no_error(mw_plan(m, &o, &p, &e), &e);
    }
    mw_model_close(m);
}

struct use {
    struct mw_model *m;
    struct mw_session *s;
    struct mw_options o;
    double sum; /* over the last row, to compare */
};

/* Open a model and evaluate some tokens. */
static int use(struct use *u, const char *model, struct err *e)
{
    int rc;

    *u = (struct use){ .m = NULL };
    mw_options_default(&u->o);
    u->o.memory_bytes = 192 * MIB; /* with the library of a sanitizer, the program is larger */
    u->o.n_ctx = 64;
    u->o.n_thread = 2;
    rc = mw_model_open(&u->m, model, e);
    if (rc == 0)
        rc = add_drafter(u->m, &u->o, e);
    if (u->o.draft == MW_DRAFT_SELF)
        set_self(&u->o);
    if (rc == 0 && has_tokenizer)
        rc = encode(u->m, e);
    if (rc == 0)
        rc = mw_session_open(&u->s, u->m, &u->o, e);
    if (rc == 0)
        rc = evaluate(u->s, &u->o, e);
    if (rc == 0)
        u->sum = row_sum(u->m, u->s);
    return rc;
}

static void close_all(struct use *u)
{
    mw_session_close(u->s);
    mw_model_close(u->m);
}

static double sum_without_faults(const char *model)
{
    struct err e = ERR_INIT;
    struct use u;

    no_error(use(&u, model, &e), &e);
    close_all(&u);
    return u.sum;
}

/* Let the n-th call fail.  Returns false if there are fewer calls.  Every second time that the
 * failures last, everything is closed without memory; else the session is used again first. */
static bool try_without(const char *model, long n, bool lasts, int kinds, double want)
{
    struct err e = ERR_INIT;
    struct use u;
    bool is_over;
    int rc;

    set_faults(n, lasts, kinds);
    rc = use(&u, model, &e);
    is_over = atomic_load(&faults.countdown) >= 0;
    /* Some parts are optional (a ring of the kernel, a larger buffer).  Without them the result
     * is the same. */
    if (rc == 0)
        assert_true(u.sum == want);
    else
        assert_true(e.code != ERR_NONE && e.what[0] != '\0');
    if (rc != 0 && u.s != NULL && (!lasts || n % 2 == 0)) {
        set_faults(-1, false, KIND_ALL);
        e = (struct err)ERR_INIT;
        no_error(evaluate_again(u.s, &u.o, &e), &e);
        assert_true(row_sum(u.m, u.s) == want);
    }
    close_all(&u);
    set_faults(-1, false, KIND_ALL);
    return !is_over;
}

static void each_allocation_may_fail(void **state)
{
    static const int lasting[] = { KIND_HEAP, KIND_MAP, KIND_THREAD, KIND_ALL };
    const char *found;
    char model[4352];
    double want;
    long n = 0;

    row = *state;
    found = model_copy(row->model);
    if (found == NULL)
        skip();
    snprintf(model, sizeof model, "%s", found);
    find_tokenizer(model);
    if (row->draft == MW_DRAFT_SELF)
        find_budget_for_self(model);
    want = sum_without_faults(model);
    while (try_without(model, n, false, KIND_ALL, want))
        n++;
    print_message("%s: %ld allocations, each failed once\n", row->name, n);
    assert_true(n > 20);
    for (size_t i = 0; i < sizeof lasting / sizeof lasting[0]; i++)
        for (n = 0; try_without(model, n, true, lasting[i], want);)
            n += lasting[i] == KIND_ALL ? 1 : 1 + n / 8; /* all of the first ones, then fewer */
    assert_true(sum_without_faults(model) == want);
}

int main(void)
{
    static char names[][32] = { "llama-tiny.gguf",
                                "gemma3-tiny.gguf",
                                "gemma4-tiny-q4_0.gguf",
                                "gemma4-moe-tiny-q4_0.gguf",
                                "f-mixtral.gguf",
                                "f-qwen3moe.gguf",
                                "f-gptoss",
                                "f-deepseek3.gguf",
                                "f-laguna.gguf",
                                "f-qwen35moe",
                                "f-qwen3next",
                                "f-ling3.gguf",
                                "f-lfm2moe.gguf",
                                "f-nemotronh-moe.gguf",
                                "f-falconh1.gguf",
                                "q4e-a.gguf" };
    static struct row with_drafters[] = {
        { "a model drafts", "llama-tiny.gguf", MW_DRAFT_FILE, "llama-tiny-q4_k.gguf" },
        { "an assistant drafts", "gemma4-tiny.gguf", MW_DRAFT_MTP, "gemma4-tiny-assistant.gguf" },
        { "it drafts for itself", "llama-tiny.gguf", MW_DRAFT_SELF, NULL },
    };
    enum {
        N_NAME = sizeof names / sizeof names[0],
        N = N_NAME + sizeof with_drafters / sizeof with_drafters[0]
    };
    static struct row plain[N_NAME];
    struct CMUnitTest tests[N];

    for (int i = 0; i < N; i++) {
        struct row *r = i < N_NAME ? &plain[i] : &with_drafters[i - N_NAME];

        if (i < N_NAME)
            *r = (struct row){ names[i], names[i], MW_DRAFT_NGRAM, NULL };
        tests[i] = (struct CMUnitTest){ .name = r->name,
                                        .test_func = each_allocation_may_fail,
                                        .initial_state = r };
    }
    return cmocka_run_group_tests_name("memory_out", tests, NULL, NULL);
}
