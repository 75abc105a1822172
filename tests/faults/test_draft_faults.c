/*
 * A failing disk while tokens are drafted.  A file that only drafts ends no answer; of the others,
 * an answer ends with one error, and the next try gives the tokens that it would have given.
 */
#include "config.h"

#include <sys/stat.h>

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/greatest.h"
#include "engine/base/units.h"
#include "engine/memwall.h"
#include "engine/session/session_internal.h"
#include "tests/faults/inject.h"
#include "tests/lib/calls.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/model_path.h"

#define N_PROMPT 40
#define N_ANSWER 24
#define DEPTH    3

struct row {
    const char *name, *model;
    enum mw_draft draft;
    const char *other; /* the file that drafts, if any */
    bool reads;        /* which is read for each draft, not only when it is opened */
};

static char folder[4200], other[4352];

/* The tests can let reads of files in a folder of this name fail, and no others. */
static void copy_other(const char *name)
{
    size_t n;
    void *data = model_read(name, &n);
    FILE *f;

    if (data == NULL)
        skip();
    snprintf(folder, sizeof folder, "%s/draft-faults-%ld",
             getenv("MW_BUILDDIR") != NULL ? getenv("MW_BUILDDIR") : ".", (long)getpid());
    mkdir(folder, 0700);
    snprintf(folder + strlen(folder), sizeof folder - strlen(folder), "/copy");
    mkdir(folder, 0700);
    snprintf(other, sizeof other, "%s/%s", folder, name);
    f = fopen(other, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    free(data);
}

static void remove_other(void)
{
    unlink(other);
    rmdir(folder);
    folder[strlen(folder) - strlen("/copy")] = '\0';
    rmdir(folder);
}

/* The largest budget below 8 MiB above the smallest with which weights stream and tokens are drafted,
 * with copies if the model drafts for itself; or one that fits all weights. */
static void choose_budget(struct mw_model *m, struct mw_options *o)
{
    uint64_t least = smallest_budget(m, o);
    struct err e = ERR_INIT;
    struct plan p;

    for (uint64_t more = 8 * MIB; more > 0; more -= 16 * KIB) {
        o->memory_bytes = least + more;
        if (mw_plan(m, o, &p, &e) == 0 && p.streamed_share > 0.2 && p.n_draft > 0)
            return;
    }
    assert_int_not_equal(o->draft, MW_DRAFT_SELF);
    o->memory_bytes = 192 * MIB;
}

/* Open the model and a session with the drafter, or without: then with the same budget. */
static struct mw_session *open_row(const struct row *row, bool drafts, struct mw_model **m)
{
    struct mw_options o = small_options(256);
    struct mw_session *s;
    struct err e = ERR_INIT;

    *m = open_model(row->model);
    o.no_uring = true;
    o.block_bytes = 4096;
    o.chunk = 16;
    if (row->draft == MW_DRAFT_MTP && row->other != NULL && drafts)
        no_error(mw_model_attach(*m, other, &e), &e);
    o.draft = drafts ? row->draft : MW_DRAFT_OFF;
    o.draft_file = drafts && row->draft == MW_DRAFT_FILE ? other : NULL;
    o.draft_depth = DEPTH;
    choose_budget(*m, &o);
    s = open_session(*m, &o);
    assert_int_equal(s->drafter != NULL, drafts);
    return s;
}

/* A repeated text, which n-grams continue. */
static void ask_prompt(struct mw_session *s, struct err *e)
{
    uint32_t ids[N_PROMPT];

    for (uint32_t i = 0; i < N_PROMPT; i++)
        ids[i] = 3 + i % 7;
    if (mw_session_eval(s, ids + mw_session_tokens(s), N_PROMPT - mw_session_tokens(s), NULL, NULL,
                        e) == 0)
        return;
    assert_int_equal(e->code, ERR_IO); /* what is there stays */
    inject_nothing();
    no_error(mw_session_eval(s, ids + mw_session_tokens(s), N_PROMPT - mw_session_tokens(s), NULL,
                             NULL, e),
             e);
}

/* Greedy tokens up to number n.  A token whose pass fails is tried again, once the disk works. */
static void answer(struct mw_session *s, uint32_t *ids, uint32_t from, uint32_t n)
{
    struct err e = ERR_INIT;

    for (uint32_t i = from; i < n; i++) {
        ids[i] = greatest_of(session_logits(s), s->m->desc->n_vocab);
        if (mw_session_eval_sampled(s, ids[i], &e) == 0)
            continue;
        assert_int_equal(e.code, ERR_IO);
        assert_true(e.what[0] != '\0');
        assert_int_equal(mw_session_tokens(s), N_PROMPT + i);
        inject_nothing();
        no_error(mw_session_eval_sampled(s, ids[i], &e), &e);
    }
}

static void without_drafts(const struct row *row, uint32_t *want)
{
    struct mw_model *m;
    struct mw_session *s = open_row(row, false, &m);
    struct err e = ERR_INIT;

    ask_prompt(s, &e);
    answer(s, want, 0, N_ANSWER);
    mw_session_close(s);
    mw_model_close(m);
}

static uint64_t n_drafted(struct mw_session *s)
{
    struct mw_sample sample;

    mw_session_sample(s, &sample);
    return sample.draft.drafted;
}

/* The n-th read from now on fails, and those after it as well, or only those of the drafter. */
static void fail_reads(int n, int times, bool of_drafter)
{
    inject.read_skip = n;
    inject.read_times = times;
    inject.of_copies = of_drafter;
    inject.read_error = EIO;
}

static void a_file_that_drafts_ends_no_answer(void **state)
{
    const struct row *row = *state;
    uint32_t want[N_ANSWER], ids[N_ANSWER];

    copy_other(row->other);
    without_drafts(row, want);
    for (int when = 0; when < 3; when++) {
        struct err e = ERR_INIT;
        struct mw_model *m;
        struct mw_session *s = open_row(row, true, &m);
        uint64_t before;

        if (when == 0) /* while the prompt is evaluated */
            fail_reads(0, INT_MAX, true);
        ask_prompt(s, &e);
        assert_int_equal(e.code, ERR_NONE);
        answer(s, ids, 0, 4);
        before = n_drafted(s);
        assert_true(when == 0 || before > 0);
        if (when == 1)
            fail_reads(0, INT_MAX, true);
        else if (when == 2)
            fail_reads(2, INT_MAX, true);
        answer(s, ids, 4, N_ANSWER);
        assert_memory_equal(ids, want, sizeof want);
        assert_int_equal(inject.read_error, EIO); /* no pass has failed */
        if (row->reads) {
            assert_true(n_drafted(s) - before <= 2 * DEPTH);
            assert_true(session_lost_drafter(s, &e)); /* a notice says it, once */
            assert_int_equal(e.code, ERR_IO);
            assert_false(session_lost_drafter(s, &e));
        }
        inject_nothing();
        mw_session_close(s);
        mw_model_close(m);
    }
    remove_other();
}

static void any_read_may_fail(void **state)
{
    const struct row *row = *state;
    uint32_t want[N_ANSWER], ids[N_ANSWER];
    int n = 0;

    if (row->other != NULL)
        copy_other(row->other);
    without_drafts(row, want);
    for (bool is_over = false; !is_over; n += 1 + n / 6) {
        struct err e = ERR_INIT;
        struct mw_model *m;
        struct mw_session *s = open_row(row, true, &m);

        fail_reads(n, 1 + n % 3, false);
        ask_prompt(s, &e);
        answer(s, ids, 0, N_ANSWER);
        assert_memory_equal(ids, want, sizeof want);
        is_over = atomic_load(&inject.read_skip) > 0;
        inject_nothing();
        mw_session_close(s);
        mw_model_close(m);
    }
    print_message("%s: failures up to read %d\n", row->name, n);
    assert_true(n > 20);
    if (row->other != NULL)
        remove_other();
}

int main(void)
{
    static struct row files[] = {
        { "a model that drafts", "llama-tiny.gguf", MW_DRAFT_FILE, "llama-tiny-q4_k.gguf", true },
        { "an assistant that drafts", "gemma4-tiny.gguf", MW_DRAFT_MTP,
          "gemma4-tiny-assistant.gguf", false },
    };
    static struct row rows[] = {
        { "earlier text drafts", "llama-tiny.gguf", MW_DRAFT_NGRAM, NULL, false },
        { "it drafts for itself", "llama-tiny.gguf", MW_DRAFT_SELF, NULL, false },
        { "a model drafts", "llama-tiny.gguf", MW_DRAFT_FILE, "llama-tiny-q4_k.gguf", false },
        { "an assistant drafts", "gemma4-tiny.gguf", MW_DRAFT_MTP, "gemma4-tiny-assistant.gguf",
          false },
        { "its own head drafts", "mtp-qwen35.gguf", MW_DRAFT_MTP, NULL, false },
        { "its own head with experts drafts", "mtp-qwen35moe.gguf", MW_DRAFT_MTP, NULL, false },
    };
    enum { N_FILE = sizeof files / sizeof files[0], N_ROW = sizeof rows / sizeof rows[0] };
    struct CMUnitTest tests[N_FILE + N_ROW];

    for (int i = 0; i < N_FILE + N_ROW; i++) {
        struct row *r = i < N_FILE ? &files[i] : &rows[i - N_FILE];

        tests[i] = (struct CMUnitTest){ .name = r->name,
                                        .test_func = i < N_FILE ? a_file_that_drafts_ends_no_answer
                                                                : any_read_may_fail,
                                        .initial_state = r };
    }
    return cmocka_run_group_tests_name("draft_faults", tests, NULL, NULL);
}
