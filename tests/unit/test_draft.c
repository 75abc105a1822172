/*
 * Drafts: where they come from, how many there are, and that no token depends on them.
 */
#include "config.h"

#include <math.h>
#include <poll.h>
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
#include "engine/draft/depth.h"
#include "engine/draft/ngram.h"
#include "engine/memwall.h"
#include "engine/plan/plan.h"
#include "engine/session/chat_internal.h"
#include "engine/session/draft_model.h"
#include "engine/session/options.h"
#include "engine/session/sampler.h"
#include "engine/session/session_internal.h"
#include "tests/lib/calls.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/hash.h"
#include "tests/lib/model_path.h"

static uint32_t next_number(uint32_t *x)
{
    *x = *x * 1664525u + 1013904223u;
    return *x >> 8;
}

/* ---- n-grams ---- */

static uint32_t draft_by_index(struct ngram *g, const uint32_t *ids, uint32_t n, uint32_t most,
                               uint32_t *out, uint32_t *match)
{
    uint32_t next = ngram_find(g, ids, n, match);

    if (next > 0)
        ngram_copy(ids, n, next, most, out);
    return next > 0 ? most : 0;
}

/* The same by looking at every earlier place. */
static uint32_t draft_by_scan(const uint32_t *ids, uint32_t n, uint32_t most, uint32_t *out,
                              uint32_t *match)
{
    uint32_t next = 0;

    *match = 0;
    for (uint32_t at = n > 0 ? n - 1 : 0; at-- > 0;) {
        uint32_t same = 0;

        while (same <= at && same < NGRAM_MATCH && ids[at - same] == ids[n - 1 - same])
            same++;
        if (same >= NGRAM_MIN && same > *match) {
            *match = same;
            next = at + 1;
        }
    }
    for (uint32_t i = 0; *match > 0 && i < most; i++)
        out[i] = next + i < n ? ids[next + i] : out[next + i - n];
    return *match > 0 ? most : 0;
}

static void an_index_finds_what_a_scan_finds(void **state)
{
    enum { ROOM = 400, MOST = 6 };
    uint32_t ids[ROOM + MOST], n = 0, x = 1, n_found = 0;
    struct ngram g = { 0 };
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(ngram_new(&g, ROOM, &e), 0);
    for (int step = 0; step < 4000; step++) {
        uint32_t got[MOST] = { 0 }, want[MOST] = { 0 }, got_match, want_match, n_got;

        /* Mostly grow, sometimes go back and take another way; at times copy a passage. */
        if (n == ROOM || next_number(&x) % 40 == 0) {
            n = next_number(&x) % (n + 1);
            ngram_cut(&g, ids, n);
        }
        if (n > 60 && next_number(&x) % 30 == 0) {
            uint32_t from = next_number(&x) % (n - 20);

            for (uint32_t i = 0; i < 20 && n < ROOM; i++)
                ids[n++] = ids[from + i];
        } else if (n < ROOM) {
            ids[n++] = next_number(&x) % 9;
        }
        n_got = draft_by_index(&g, ids, n, MOST, got, &got_match);
        assert_int_equal(n_got, draft_by_scan(ids, n, MOST, want, &want_match));
        assert_int_equal(got_match, want_match);
        assert_memory_equal(got, want, sizeof got);
        n_found += n_got > 0;
    }
    assert_in_range(n_found, 500, 3900);
    ngram_free(&g);
}

static void a_repetition_goes_on(void **state)
{
    uint32_t ids[16] = { 7, 8, 7, 8, 7, 8 }, out[5], match;
    const uint32_t want[5] = { 7, 8, 7, 8, 7 };
    struct ngram g = { 0 };
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(ngram_new(&g, 16, &e), 0);
    assert_int_equal(draft_by_index(&g, ids, 6, 5, out, &match), 5);
    assert_int_equal(match, 4);
    assert_memory_equal(out, want, sizeof want);
    assert_int_equal(draft_by_index(&g, ids, 2, 5, out, &match), 0);
    ngram_free(&g);
}

/* A conversation in which all ids are the same has as many earlier places as tokens. */
static void a_question_looks_at_few_places(void **state)
{
    enum { N = 100000 };
    uint32_t *ids = calloc(N, sizeof *ids), out[8], match;
    struct ngram g = { 0 };
    struct err e = ERR_INIT;

    (void)state;
    assert_non_null(ids);
    assert_int_equal(ngram_new(&g, N, &e), 0);
    for (uint32_t n = N - 1000; n <= N; n++) {
        assert_int_equal(draft_by_index(&g, ids, n, 8, out, &match), 8);
        assert_int_equal(match, NGRAM_MATCH);
    }
    ngram_free(&g);
    free(ids);
}

#define TEXT_MOST 4000

/* A prompt, and an answer that is about to come. */
struct text {
    uint32_t ids[TEXT_MOST + DRAFT_MOST];
    uint32_t n, n_prompt;
};

static void say(struct text *t, uint32_t id)
{
    assert_true(t->n < TEXT_MOST);
    t->ids[t->n++] = id;
}

/* Returns the passes that the answer takes with 15 drafts for each. */
static uint32_t passes_of(const struct text *t)
{
    static uint32_t ids[TEXT_MOST + DRAFT_MOST];
    struct drafter *d;
    struct err e = ERR_INIT;
    uint32_t n_pass = 0;

    assert_int_equal(ngram_drafter_new(&d, TEXT_MOST, &e), 0);
    for (uint32_t n = t->n_prompt + 1; n < t->n; n++, n_pass++) {
        uint32_t n_draft = 0;

        memcpy(ids, t->ids, n * sizeof *ids);
        if (d->calls->look(d, ids, n).most > 0)
            assert_int_equal(d->calls->propose(d, ids, n, DRAFT_MOST, NULL, &n_draft, &e), 0);
        for (uint32_t i = 0; i < n_draft && n < t->n && ids[n] == t->ids[n]; i++)
            n++;
    }
    drafter_free(d);
    return n_pass;
}

/* A prompt of 400 words, of which some are much more frequent than others. */
static void prompt_of_words(struct text *t, uint32_t *x)
{
    t->n = 0;
    while (t->n < 400) {
        uint32_t a = next_number(x) % 30, b = next_number(x) % 30;

        say(t, a * b);
    }
    t->n_prompt = t->n;
}

enum change { REPLACE, REPLACE_BY_TWO, ADD, LEAVE_OUT, LEAVE_OUT_FIVE, N_CHANGE };

/* Drafts go on after a change: one pass in 40 words meets it, and at most one more finds the
 * place again. */
static void drafts_follow_a_text_past_changes(void **state)
{
    static struct text t;
    uint32_t x = 7;

    (void)state;
    for (int change = REPLACE; change < N_CHANGE; change++) {
        prompt_of_words(&t, &x);
        for (uint32_t i = 0; i < t.n_prompt; i++) {
            if (i % 40 != 20) {
                say(&t, t.ids[i]);
                continue;
            }
            if (change != LEAVE_OUT && change != LEAVE_OUT_FIVE)
                say(&t, 1000 + next_number(&x) % 1000);
            if (change == REPLACE_BY_TWO)
                say(&t, 1000 + next_number(&x) % 1000);
            if (change == ADD)
                say(&t, t.ids[i]);
            if (change == LEAVE_OUT_FIVE)
                i += 4;
        }
        assert_in_range(passes_of(&t), 25, change == REPLACE_BY_TWO ? 60 : 50);
    }
}

/* Lines of a program begin with many blanks, so most places look the same. */
static void drafts_follow_a_text_of_equal_lines(void **state)
{
    static struct text t;
    uint32_t x = 3;

    (void)state;
    t.n = 0;
    while (t.n < 1800) {
        uint32_t indent = 4 * (1 + next_number(&x) % 4);

        for (uint32_t i = 0; i < indent; i++)
            say(&t, 1);
        for (uint32_t i = 0; i < 5; i++)
            say(&t, 2 + next_number(&x) % 6);
        say(&t, 0);
    }
    t.n_prompt = t.n;
    for (uint32_t i = 0; i < t.n_prompt; i++)
        say(&t, t.ids[i]);
    assert_in_range(passes_of(&t), t.n_prompt / 16, t.n_prompt / 16 + 20);
}

/* ---- depth ---- */

/* The passes with which the time of one without drafts is known. */
static void measure_narrow(struct depth *d, double seconds)
{
    depth_pass(d, 0, 10 * seconds); /* the first one reads more */
    depth_pass(d, 0, seconds);
}

/* Depth after n passes at these costs and n results with this share accepted. */
static uint32_t depth_with(double narrow_s, double column_s, double draft_s, double accepted,
                           uint32_t quality)
{
    struct depth d;
    double sum = 0;

    depth_begin(&d);
    measure_narrow(&d, narrow_s);
    for (int i = 0; i < 200; i++) {
        uint32_t n = 1 + (uint32_t)i % DRAFT_MOST;

        depth_drafted(&d, quality, n, n * draft_s);
        depth_pass(&d, n, narrow_s + n * column_s);
        sum += accepted;
        depth_result(&d, quality, sum >= 1, sum < 1);
        sum -= sum >= 1;
    }
    d.stake = DEPTH_STAKE; /* whatever these have lost */
    return depth_choose(&d, quality, DRAFT_MOST);
}

static void depth_follows_acceptance_and_cost(void **state)
{
    struct depth d;

    (void)state;
    /* The disk is the limit: a column costs nothing, so all are drafted. */
    assert_int_equal(depth_with(1, 0, 0, 0.9, 3), DRAFT_MOST);
    /* Arithmetic is the limit: a column costs as much as a pass, or a draft does. */
    assert_int_equal(depth_with(1, 1, 0, 0.9, 3), 0);
    assert_int_equal(depth_with(1, 0, 1, 0.9, 3), 0);
    /* In between, better drafts go deeper, and so do drafts that cost less. */
    assert_in_range(depth_with(1, 0.1, 0, 0.5, 1), 1, 5);
    assert_true(depth_with(1, 0.1, 0, 0.9, 1) > depth_with(1, 0.1, 0, 0.5, 1));
    assert_true(depth_with(1, 0.05, 0, 0.7, 1) > depth_with(1, 0.3, 0, 0.7, 1));
    assert_true(depth_with(1, 0.05, 0, 0.7, 1) > depth_with(1, 0.05, 0.25, 0.7, 1));
    /* Drafts that are never right are not made, even for little. */
    assert_int_equal(depth_with(1, 0.05, 0, 0, 0), 0);
    /* Nothing is drafted before a pass was measured, and little before one with drafts was. */
    depth_begin(&d);
    assert_int_equal(depth_choose(&d, 3, DRAFT_MOST), 0);
    measure_narrow(&d, 1);
    assert_int_equal(depth_choose(&d, 3, DRAFT_MOST), 1);
    depth_drafted(&d, 3, 1, 0);
    depth_pass(&d, 1, 1);
    assert_int_equal(depth_choose(&d, 3, DRAFT_MOST), DRAFT_MOST);
    /* Those of another source may take longer. */
    assert_int_equal(depth_choose(&d, DEPTH_HEAD, DRAFT_MOST), 1);
    /* The first one that is measured counts as it is. */
    depth_forget_costs(&d);
    measure_narrow(&d, 1);
    depth_pass(&d, 2, 3);
    assert_int_equal(depth_choose(&d, 3, DRAFT_MOST), 0);
}

/* The first pass with other weights in memory reads them, and a pass over drafts before the next
 * one says nothing about their cost: by neither, drafts would seem to cost nothing, or too much. */
static void a_time_of_another_plan_is_not_used(void **state)
{
    struct depth d;

    (void)state;
    depth_begin(&d);
    measure_narrow(&d, 1);
    depth_pass(&d, 1, 1.3);
    depth_forget_costs(&d);
    depth_pass(&d, 4, 2.2); /* of a depth that was asked for */
    assert_true(d.column.n == 0 && d.narrow_s <= 0);
    depth_pass(&d, 0, 30);
    assert_true(d.narrow_s <= 0);
    assert_int_equal(depth_choose(&d, 3, DRAFT_MOST), 0);
    depth_pass(&d, 0, 2);
    assert_true(d.narrow_s >= 2 && d.narrow_s <= 2);
    depth_pass(&d, 4, 4);
    assert_true(d.column.s >= 0.5 && d.column.s <= 0.5);
    depth_result(&d, 3, 15, false);
    assert_true(d.stake > DEPTH_STAKE && d.stake <= DEPTH_BANK);
    /* A budget that changes a little: as it is predicted. */
    depth_scale(&d, 1.5);
    assert_true(d.narrow_s >= 3 && d.narrow_s <= 3);
    /* A pass for one token cannot take longer than one for several. */
    for (int i = 0; i < 40; i++)
        depth_pass(&d, 4, 1);
    assert_in_range((int)(1000 * d.narrow_s), 1000, 1010);
}

/* All drafts are right. */
static void drafted_pass(struct depth *d, uint32_t n, double draft_s, double pass_s)
{
    depth_drafted(d, 3, n, draft_s);
    depth_pass(d, n, pass_s);
    depth_result(d, 3, n, false);
}

/* Returns how many tokens go by before one is drafted again. */
static int looks_without(struct depth *d)
{
    int n = 0;

    for (; n < 10000 && depth_choose(d, 3, DRAFT_MOST) == 0; n++)
        depth_pass(d, 0, 1);
    return n;
}

/* One pass that took long, as at the first touch of memory, does not decide. */
static void a_bad_measurement_is_forgotten(void **state)
{
    struct depth d;
    uint32_t before;

    (void)state;
    depth_begin(&d);
    measure_narrow(&d, 1);
    drafted_pass(&d, 1, 3, 40);
    assert_int_equal(depth_choose(&d, 3, DRAFT_MOST), 0);
    assert_in_range(looks_without(&d), 1, 16);
    /* The next ones are as they should be. */
    drafted_pass(&d, 1, 0.01, 1.05);
    assert_in_range(depth_choose(&d, 3, DRAFT_MOST), 2, DRAFT_MOST);
    drafted_pass(&d, 2, 0.02, 1.1);
    before = depth_choose(&d, 3, DRAFT_MOST);
    assert_in_range(before, 2, DRAFT_MOST);
    /* Nor does one among many, however long it took. */
    for (int i = 0; i < 8; i++)
        drafted_pass(&d, before, 0.01 * before, 1 + 0.05 * before);
    before = depth_choose(&d, 3, DRAFT_MOST);
    drafted_pass(&d, before, 1000, 1000);
    assert_int_equal(depth_choose(&d, 3, DRAFT_MOST), before);
    drafted_pass(&d, before, 0.01 * before, 1 + 0.05 * before);
    assert_int_equal(depth_choose(&d, 3, DRAFT_MOST), before);
}

/* If the second one says so, too, drafts are tried again much later. */
static void a_measured_loss_lasts(void **state)
{
    struct depth d;

    (void)state;
    depth_begin(&d);
    measure_narrow(&d, 1);
    drafted_pass(&d, 2, 0.1, 21);
    assert_in_range(looks_without(&d), 1, 16);
    drafted_pass(&d, 1, 0.1, 12);
    assert_in_range(looks_without(&d), 64, 4000);
}

/* Returns the tokens a second of sessions of 100 tokens, in those without drafts.  The first passes
 * take `first` times as long, whether there are drafts or not. */
static double rate_after_slow_passes(double first, double column, double draft, double accepted)
{
    uint32_t x = 5;
    double time_s = 0, without_s = 0;

    for (int session = 0; session < 200; session++) {
        struct depth d;
        uint32_t n_token = 0, n_pass = 0;

        depth_begin(&d);
        while (n_token < 100) {
            uint32_t n = depth_choose(&d, DEPTH_HEAD, DRAFT_MOST), good = 0;
            double s = (1 + n * column) * (n_pass++ < 4 ? first : 1);

            depth_drafted(&d, DEPTH_HEAD, n, n * draft);
            depth_pass(&d, n, s);
            while (good < n && next_number(&x) % 1000 < accepted * 1000)
                good++;
            if (n > 0)
                depth_result(&d, DEPTH_HEAD, good, good < n);
            time_s += s + n * draft;
            n_token += 1 + good;
        }
        without_s += n_token + 3 * (first - 1);
    }
    return without_s / time_s;
}

/* Drafts are measured against a pass for one token.  If that took too long at the beginning, they
 * seem to gain where they lose, and no such pass would show it. */
static void a_slow_first_pass_is_measured_again(void **state)
{
    (void)state;
    assert_true(rate_after_slow_passes(1.5, 0.25, 0.43, 0.7) > 0.98);
    assert_true(rate_after_slow_passes(2, 0.25, 0.43, 0.7) > 0.97);
    assert_true(rate_after_slow_passes(1.5, 0.3, 0.1, 0.5) > 0.98);
    /* Where drafts gain much, passes for one token would only cost. */
    assert_true(rate_after_slow_passes(1.5, 0.01, 0.03, 0.9) > 4);
}

/* A drafter whose memory costs a token for each pass cannot gain with one draft at a time, and its
 * evaluation of the text is paid, too. */
static void a_predicted_gain_begins_with_more_drafts(void **state)
{
    struct depth d;
    double before;

    (void)state;
    depth_begin(&d);
    measure_narrow(&d, 1);
    assert_int_equal(depth_choose(&d, DEPTH_HEAD, DRAFT_MOST), 1);
    d.trial = 3;
    assert_int_equal(depth_choose(&d, DEPTH_HEAD, DRAFT_MOST), 3);
    d.share = 0.5;
    before = d.stake;
    depth_followed(&d, 0.25);
    assert_true(before - d.stake > 0.499 && before - d.stake < 0.501);
    /* All right, they pay for their pass, and more. */
    before = d.stake;
    depth_drafted(&d, DEPTH_HEAD, 3, 0.03);
    depth_pass(&d, 3, 1.03);
    depth_result(&d, DEPTH_HEAD, 3, false);
    assert_true(d.stake > before + 1.5);
}

/* Loss and gain by the law over texts with any acceptance and any cost of a column. */
static void drafting_never_loses_much(void **state)
{
    static const double costs[] = { 0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8 };
    static const double shares[] = { 0, 0.2, 0.4, 0.6, 0.8, 0.95 };
    double best = 0, worst = 1e9;

    (void)state;
    for (size_t c = 0; c < sizeof costs / sizeof *costs; c++)
        for (size_t a = 0; a < sizeof shares / sizeof *shares; a++) {
            uint32_t x = 3;
            struct depth d;
            double time_s = 0;
            uint32_t n_token = 0;

            depth_begin(&d);
            while (n_token < 2000) {
                uint32_t n = depth_choose(&d, 0, DRAFT_MOST), good = 0;
                double s = 1 + n * costs[c];

                while (good < n && next_number(&x) % 1000 < shares[a] * 1000)
                    good++;
                depth_result(&d, 0, good, good < n);
                depth_drafted(&d, 0, n, 0);
                depth_pass(&d, n, s);
                time_s += s;
                n_token += 1 + good;
            }
            if (n_token / time_s < worst)
                worst = n_token / time_s;
            if (n_token / time_s > best)
                best = n_token / time_s;
        }
    assert_true(worst > 0.97);
    assert_true(best > 8);
}

/* A drafter, in passes without drafts. */
struct costs {
    double share;         /* of a token without it and its memory */
    double column, draft; /* of a draft */
    uint32_t quality;
    double open; /* of making it again, and its copies of weights */
};

/* A session with it. */
struct outcome {
    double times;     /* its time, for that without the drafter */
    double worst;     /* the greatest of these from the hundredth token on */
    bool is_closed;   /* at the end */
    uint32_t n_closed; /* how often it was closed */
};

#define N_ANSWERED 60 /* tokens of an answer */

/* A session of n_most tokens with drafts, of which this share is right.  The first pass reads as
 * much without the drafter, and each pass after opening or closing it as much as one with it. */
static struct outcome play(const struct costs *c, uint32_t n_most, double accepted, uint32_t seed)
{
    double with_s = 1, without_s = 1;
    struct outcome o = { .worst = 0 };
    struct depth_gap gap = { 0 };
    uint32_t n_token = 1, answered = 0;
    struct depth d;

    depth_begin(&d);
    d.share = c->share;
    depth_pass(&d, 0, 5);
    while (n_token < n_most) {
        uint32_t n = 0, good = 0;

        if (o.is_closed && n_token / N_ANSWERED > answered &&
            depth_gap_is_over(&gap, depth_moving(c->share) + c->open / c->share)) {
            depth_begin(&d);
            d.share = c->share;
            with_s += c->open;
            o.is_closed = false;
        }
        answered = n_token / N_ANSWERED;
        if (o.is_closed) {
            with_s += gap.n_token++ == 0 ? 1 : c->share;
        } else {
            n = depth_choose(&d, c->quality, DRAFT_MOST);
            while (good < n && next_number(&seed) % 1000 < 1000 * accepted)
                good++;
            depth_drafted(&d, c->quality, n, n * c->draft);
            depth_pass(&d, n, 1 + n * c->column);
            depth_result(&d, c->quality, good, good < n);
            with_s += 1 + n * (c->column + c->draft);
            if (depth_is_lost(&d)) {
                o.is_closed = true;
                o.n_closed++;
                depth_gap_begin(&gap, &d);
            }
        }
        n_token += 1 + good;
        without_s = 1 + (n_token - 1) * c->share;
        o.times = with_s / without_s;
        if (n_token >= 100 && o.times > o.worst)
            o.worst = o.times;
    }
    return o;
}

/* Would a plan have it, with the highest acceptance that plans assume? */
static bool may_be_planned(const struct costs *c)
{
    double tokens = 1, next = 1, best = 1;

    for (uint32_t n = 1; n <= DRAFT_MOST; n++) {
        next *= 0.8;
        tokens += next;
        best = fmax(best, tokens / (1 + n * (c->column + c->draft)));
    }
    return best * c->share >= 1;
}

/* However bad the drafts are, whatever they cost, and however long it is. */
static void a_session_loses_at_most_three_per_cent(void **state)
{
    static const double shares[] = { 1, 0.97, 0.9, 0.75, 0.62, 0.55 };
    static const double columns[] = { 0, 0.02, 0.1, 0.35 };
    static const double drafts[] = { 0, 0.01, 0.025, 0.1, 0.25, 0.5 };
    static const double accepted[] = { 0, 0.1, 0.3 };
    static const double opens[] = { 0, 4, 40 };
    static const struct {
        uint32_t n_token, n_seed;
    } lengths[] = { { 100, 20 }, { 1000, 4 }, { 10000, 1 } };

    (void)state;
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        double worst = 0, last = 0;

        for (size_t i = 0; i < 6 * 4 * 6 * 3 * DEPTH_CLASSES; i++) {
            struct costs c = { shares[i % 6], columns[i / 6 % 4], drafts[i / 24 % 6],
                               (uint32_t)(i / 432), opens[i % 3] };

            if (!may_be_planned(&c))
                continue;
            for (uint32_t seed = 1; seed <= lengths[l].n_seed; seed++) {
                struct outcome o = play(&c, lengths[l].n_token, accepted[i / 144 % 3], seed);

                worst = o.worst > worst ? o.worst : worst;
                last = o.times > last ? o.times : last;
            }
        }
        print_message("%u tokens: at worst %.4f times as long as without drafts, %.4f at the end\n",
                      lengths[l].n_token, worst, last);
        assert_true(worst < 1.03);
    }
}

/* A plan that predicted too well may choose a drafter that takes several passes for a draft.  It
 * makes two drafts, the second one in case that the first was slow for another reason. */
static void a_drafter_slower_than_its_model_is_known_by_two_drafts(void **state)
{
    static const double shares[] = { 1, 0.97, 0.9 };

    (void)state;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        for (int passes = 2; passes <= 10; passes += 4) {
            struct costs c = { shares[i], 0.05, passes, 3, 0 };
            double two = 2 * passes / shares[i];
            struct outcome o = play(&c, 100, 0, 1), later = play(&c, 10000, 0, 1);

            print_message("share %.2f, %d passes for a draft: %.3f times as long, then %.3f\n",
                          shares[i], passes, o.worst, later.times);
            assert_true(o.worst < 1.02 + two / 100);
            assert_true(later.times < 1.02);
        }
}

/* The stake does not end drafts that gain for long, although bad luck may close the drafter. */
static void drafts_that_gain_go_on(void **state)
{
    /* Copies in Q4_0 of E2B in BF16 in 2 GB, a small model, earlier text in memory. */
    static const struct costs costs[] = { { 0.62, 0, 0.025, 3, 0 }, { 0.9, 0, 0.1, 2, 2 },
                                          { 1, 0.2, 0, 2, 0 } };

    (void)state;
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++)
        for (int a = 7; a <= 9; a += 2)
            for (uint32_t n = 100; n <= 10000; n *= 10) {
                uint32_t n_closed = 0, n_once = 0;
                double sum = 0;

                for (uint32_t seed = 1; seed <= 400; seed++) {
                    struct outcome o = play(&costs[i], n, a / 10.0, seed);

                    sum += o.times;
                    n_closed += o.is_closed;
                    n_once += o.n_closed > 0;
                }
                print_message("%u tokens, share %.2f, accepted 0.%d: %u of 400 closed, %u at the "
                              "end, %.3f times as long\n", n, costs[i].share, a, n_once, n_closed,
                              sum / 400);
                if (n == 100)
                    assert_true(n_closed < (a == 9 ? 20 : 140));
                else
                    assert_true(n_closed < (n == 1000 ? 20 : 2));
                assert_true(sum / 400 < (a == 9 ? 0.5 : 0.8));
            }
}

/* A drafter that loses is tried seldom, and one that has gained meanwhile soon. */
static void gaps_double(void **state)
{
    struct depth_gap gap = { 0 };
    struct depth d;

    (void)state;
    depth_begin(&d);
    for (uint64_t n = (uint64_t)(DEPTH_GAP * (DEPTH_STAKE + 1)); n < 5000; n *= 2) {
        depth_gap_begin(&gap, &d);
        gap.n_token = n - 1;
        assert_false(depth_gap_is_over(&gap, 1));
        gap.n_token = n + 1;
        assert_true(depth_gap_is_over(&gap, 1));
        assert_false(depth_gap_is_over(&gap, 1.1));
        assert_false(depth_gap_is_over(&gap, INFINITY));
    }
    depth_result(&d, 3, 15, false);
    depth_gap_begin(&gap, &d);
    gap.n_token = (uint64_t)(DEPTH_GAP * (DEPTH_STAKE + 1)) + 1;
    assert_true(depth_gap_is_over(&gap, 1));
}

/* ---- sessions ---- */

#define N_PROMPT 24
#define N_TOKEN  90
#define N_TEXT   (N_PROMPT + N_TOKEN)

/* The results of a session with these ids. */
struct shown {
    uint64_t logits[N_TOKEN]; /* hashes of all bits */
    uint32_t sampled[N_TOKEN];
    uint32_t held; /* by the session at the end */
    uint64_t drafted, accepted;
};

/* A passage that comes again and again, with every tenth id changed. */
static void make_text(uint32_t n_vocab, uint32_t seed, uint32_t *ids)
{
    for (uint32_t i = 0; i < N_TEXT; i++)
        ids[i] = i < 11 || next_number(&seed) % 10 == 0 ? next_number(&seed) % n_vocab
                                                        : ids[i - 11];
}

/* Go back over a few tokens, accepted drafts perhaps, and come again to position pos. */
static void evaluate_again(struct mw_session *s, const uint32_t *text, uint32_t pos)
{
    struct err e = ERR_INIT;
    uint32_t kept;

    if (mw_session_rewind(s, pos - 3, &kept, &e) != 0)
        fail_with(&e);
    eval(s, text + kept, pos + 1 - kept);
}

/* Something that happens in mid-answer, after the token at position pos. */
static void disturb(struct mw_session *s, int how, const uint32_t *text, uint32_t pos)
{
    struct mw_options o = *session_options(s);
    struct err e = ERR_INIT;

    if (how == 0 || pos % 29 != 28)
        return;
    switch (how) {
    case 1: o.n_ctx += 64; break;
    case 2: o.n_thread = 3 - o.n_thread; break;
    case 3: o.memory_bytes = 384 * MIB - o.memory_bytes; break;
    case 4: o.chunk = o.chunk == 5 ? 64 : 5; break;
    case 5: evaluate_again(s, text, pos); return;
    }
    if (session_set(s, &o, &e) != 0)
        fail_with(&e);
}

/* The figures by number of drafts and by place add up to the others. */
static void check_figures(const struct mw_drafts *d)
{
    uint64_t passes = 0, drafted = 0, accepted = 0;

    for (uint32_t n = 0; n <= MW_DRAFT_MOST; n++) {
        passes += d->passes_over[n];
        drafted += n * d->passes_over[n];
        assert_int_equal(d->passes_over[n] > 0, d->pass_ns[n] > 0);
    }
    for (uint32_t n = 0; n < MW_DRAFT_MOST; n++) {
        accepted += d->accepted_at[n];
        if (n > 0)
            assert_true(d->accepted_at[n] <= d->accepted_at[n - 1]);
    }
    assert_int_equal(passes, d->passes);
    assert_int_equal(drafted, d->drafted);
    assert_int_equal(accepted, d->accepted);
    assert_true(drafted == 0 || d->draft_ns > 0);
}

/* is_own: the text goes on with what is sampled. */
static void show(struct mw_model *m, const struct mw_options *o,
                 const struct mw_sampling *sampling, int how, bool is_own, struct shown *to)
{
    struct err e = ERR_INIT;
    struct mw_sampler *sampler;
    struct mw_model_info info;
    struct mw_session *s;
    struct mw_sample sample;
    uint32_t text[N_TEXT];

    /* As a chat does.  A session opens it only if there would be no room for that later, and a
     * sampler without it knows no ids that are never sampled. */
    (void)model_tokenizer(m, NULL, &e);
    s = open_session(m, o);
    mw_model_info(m, &info);
    make_text(info.n_vocab, (uint32_t)sampling->seed.value, text);
    if (mw_sampler_new(&sampler, m, sampling, &e) != 0)
        fail_with(&e);
    session_set_sampler(s, sampler);
    telemetry_answer(session_telemetry(s), N_PROMPT);
    eval(s, text, N_PROMPT);
    for (uint32_t i = 0; i < N_TOKEN; i++) {
        assert_int_equal(mw_session_tokens(s), N_PROMPT + i);
        to->logits[i] = hash_of(mw_session_logits(s), info.n_vocab);
        to->sampled[i] = mw_sampler_next(sampler, session_logits(s), session_ids(s),
                                         mw_session_tokens(s));
        if (is_own)
            text[N_PROMPT + i] = to->sampled[i];
        if (mw_session_eval_sampled(s, text[N_PROMPT + i], &e) != 0)
            fail_with(&e);
        disturb(s, how, text, N_PROMPT + i);
        if (mw_session_logits(s) == NULL) /* the change took them */
            evaluate_again(s, text, N_PROMPT + i);
    }
    session_drop_drafts(s);
    mw_session_sample(s, &sample);
    to->held = mw_session_tokens(s);
    assert_int_equal(sample.kv.tokens, to->held);
    to->drafted = sample.draft.drafted;
    to->accepted = sample.draft.accepted;
    assert_int_equal(sample.draft.passes + to->accepted, N_TOKEN);
    check_figures(&sample.draft);
    mw_sampler_free(sampler);
    mw_session_close(s);
}

static void same_bits(const char *name, int n_kv, int n_round)
{
    static const enum mw_kv kv[] = { MW_KV_F32, MW_KV_F16, MW_KV_Q8_0, MW_KV_Q4_0 };
    struct mw_model *m = open_model_copy(name);
    struct mw_options o = small_options(256);
    uint64_t accepted = 0, rejected = 0, least = smallest_budget(m, &o);

    for (int i = 0; i < n_round; i++) {
        struct mw_sampling sampling = { .temp = (float)(i % 3) * 0.4f,
                                        .top_k = 40,
                                        .top_p = 0.95f,
                                        .repeat_penalty = i % 5 == 4 ? 1.1f : 1,
                                        .repeat_last = 64,
                                        .seed = { true, (uint64_t)i } };
        struct shown without, with;

        o.kv_k = o.kv_v = kv[i % n_kv];
        o.exact = i % 7 == 6;
        o.n_thread = 1 + i % 2;
        o.memory_bytes = i % 4 < 2 ? 192 * MIB : least + 3 * MIB;
        o.draft = MW_DRAFT_OFF;
        show(m, &o, &sampling, i % 6, false, &without);
        o.draft = MW_DRAFT_NGRAM;
        o.draft_depth = 1 + (uint32_t)i % DRAFT_MOST;
        show(m, &o, &sampling, i % 6, false, &with);
        assert_memory_equal(with.logits, without.logits, sizeof with.logits);
        assert_memory_equal(with.sampled, without.sampled, sizeof with.sampled);
        assert_int_equal(with.held, without.held);
        assert_int_equal(without.drafted, 0);
        accepted += with.accepted;
        rejected += with.drafted - with.accepted;
    }
    assert_true(accepted > 5 * (uint64_t)n_round && rejected > (uint64_t)n_round);
    mw_model_close(m);
}

/* A draft that another id replaced was wrong; of those left when an answer ends, nobody knows. */
static void drafts_that_nobody_asked_for_do_not_count(void **state)
{
    struct mw_model *m = open_model_copy("llama-tiny.gguf");
    struct mw_options o = small_options(256);
    struct mw_session *s;
    struct err e = ERR_INIT;
    struct depth before;
    uint32_t ids[24];

    (void)state;
    o.draft = MW_DRAFT_NGRAM;
    o.draft_depth = 5;
    s = open_session(m, &o);
    for (uint32_t i = 0; i < 24; i++)
        ids[i] = 3 + i % 5;
    eval(s, ids, 23);
    assert_int_equal(mw_session_eval_sampled(s, ids[23], &e), 0);
    assert_int_equal(s->drafts.n_left, 5);
    before = s->drafts.depth;
    session_drop_drafts(s);
    assert_memory_equal(before.accept, s->drafts.depth.accept, sizeof before.accept);
    assert_int_equal(mw_session_tokens(s), 24);
    assert_int_equal(mw_session_eval_sampled(s, ids[4], &e), 0);
    assert_int_equal(s->drafts.n_left, 5);
    assert_int_equal(mw_session_eval_sampled(s, 99, &e), 0);
    assert_memory_not_equal(before.accept, s->drafts.depth.accept, sizeof before.accept);
    mw_session_close(s);
    mw_model_close(m);
}

/* Another model drafts: the answer is the same, and most drafts are right if the two models
 * are.  At every temperature, since both draw with the same numbers. */
static void draft_with(const char *name, const char *draft, double least_accepted)
{
    struct mw_model *m = open_model_copy(name);
    struct mw_options o = small_options(256);
    uint64_t drafted = 0, accepted = 0;
    char path[4096];

    snprintf(path, sizeof path, "%s", model_path(draft));
    for (int i = 0; i < 18; i++) {
        struct mw_sampling sampling = { .temp = (float)(i % 3) * 0.5f,
                                        .top_p = 0.95f,
                                        .repeat_penalty = 1,
                                        .repeat_last = 64,
                                        .seed = { true, (uint64_t)i } };
        struct shown without, with;

        o.n_thread = 1 + i % 2;
        o.memory_bytes = 192 * MIB;
        o.draft = MW_DRAFT_OFF;
        o.draft_file = NULL;
        show(m, &o, &sampling, i % 6, true, &without);
        o.draft = MW_DRAFT_FILE;
        o.draft_file = path;
        o.draft_depth = 1 + (uint32_t)i % DRAFT_MOST;
        show(m, &o, &sampling, i % 6, true, &with);
        assert_memory_equal(with.logits, without.logits, sizeof with.logits);
        assert_memory_equal(with.sampled, without.sampled, sizeof with.sampled);
        assert_int_equal(with.held, without.held);
        drafted += with.drafted;
        accepted += with.accepted;
    }
    assert_true(drafted > 500);
    assert_true((double)accepted >= least_accepted * (double)drafted);
    mw_model_close(m);
}

/* The largest budget below `most` with which a part of the weights streams and has copies. */
static bool budget_with_copies(struct mw_model *m, struct mw_options *o)
{
    uint64_t least = smallest_budget(m, o);
    struct err e = ERR_INIT;
    struct plan p;

    for (uint64_t more = 8 * MIB; more > 0; more -= 16 * KIB) {
        o->memory_bytes = least + more;
        if (mw_plan(m, o, &p, &e) == 0 && p.low_bytes > 0 && p.streamed_share > 0.2)
            return true;
    }
    return false;
}

/* The model drafts with copies of its streamed weights: the answer is that of the file. */
static void draft_with_itself(const char *name, enum mw_copies copies, double least_accepted)
{
    struct mw_model *m = open_model_copy(name);
    struct mw_options o = small_options(256);
    uint64_t drafted = 0, accepted = 0;

    o.block_bytes = 4096;
    o.chunk = 16;
    for (int i = 0; i < 18; i++) {
        struct mw_sampling sampling = { .temp = (float)(i % 3) * 0.5f,
                                        .top_p = 0.95f,
                                        .repeat_penalty = 1,
                                        .repeat_last = 64,
                                        .seed = { true, (uint64_t)i } };
        struct shown without, with;
        int how = i % 6 == 3 || i % 6 == 4 ? 0 : i % 6; /* budget and chunk stay */

        o.n_thread = 1 + i % 2;
        o.draft = MW_DRAFT_SELF;
        o.draft_copies = copies;
        o.draft_depth = 1 + (uint32_t)i % DRAFT_MOST;
        assert_true(budget_with_copies(m, &o));
        show(m, &o, &sampling, how, true, &with);
        o.draft = MW_DRAFT_OFF;
        show(m, &o, &sampling, how, true, &without);
        assert_memory_equal(with.logits, without.logits, sizeof with.logits);
        assert_memory_equal(with.sampled, without.sampled, sizeof with.sampled);
        assert_int_equal(with.held, without.held);
        drafted += with.drafted;
        accepted += with.accepted;
    }
    assert_true(drafted > 300);
    assert_true((double)accepted >= least_accepted * (double)drafted);
    mw_model_close(m);
}

static void a_model_drafts_for_itself(void **state)
{
    (void)state;
    draft_with_itself("llama-tiny.gguf", MW_COPIES_Q4_0, 0.3);
    draft_with_itself("gemma2-tiny.gguf", MW_COPIES_Q4_0, 0.3);
    draft_with_itself("llama-tiny.gguf", MW_COPIES_Q3_K, 0.15);
    draft_with_itself("gemma2-tiny.gguf", MW_COPIES_Q3_K, 0.15);
    draft_with_itself("llama-tiny.gguf", MW_COPIES_Q2_K, 0.05);
    draft_with_itself("gemma2-tiny.gguf", MW_COPIES_AUTO, 0.05);
}

struct rows {
    uint32_t n;
    uint64_t hash[6];
    uint32_t n_vocab;
};

static int keep_row(void *ctx, uint32_t pos, const float *row, struct err *e)
{
    struct rows *r = ctx;

    (void)pos;
    (void)e;
    r->hash[r->n++] = hash_of(row, r->n_vocab);
    return 0;
}

/* Drafted rows are taken back, and those of the text stay: a second draft gives the same. */
static void a_head_keeps_the_rows_of_the_text(void **state)
{
    static const char *const names[][2] = { { "mtp-qwen35.gguf", NULL },
                                            { "mtp-qwen35moe.gguf", NULL },
                                            { "mtp-qwen3next.gguf", NULL },
                                            { "q4e-a.gguf", "q4e-a-mtp.gguf" } };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct mw_model *m = open_model_copy(names[i][0]);
        struct mw_options o = small_options(256);
        struct mw_session *s;
        struct err e = ERR_INIT;
        uint32_t ids[40];

        if (names[i][1] != NULL && mw_model_attach(m, model_path(names[i][1]), &e) != 0)
            fail_with(&e);
        o.draft = MW_DRAFT_MTP;
        o.chunk = 8; /* the head has hidden rows of the last chunk only */
        s = open_session(m, &o);
        for (uint32_t k = 0; k < 40; k++)
            ids[k] = 3 + k * 7 % 50;
        eval(s, ids, 40);
        for (int n = 0; n < 3; n++) {
            struct rows first = { .n_vocab = m->desc->n_vocab }, again = first;

            assert_int_equal(mw_session_draft(s, 6, keep_row, &first, &e), 0);
            assert_int_equal(mw_session_draft(s, 6, keep_row, &again, &e), 0);
            assert_int_equal(again.n, 6);
            assert_memory_equal(first.hash, again.hash, sizeof first.hash);
            eval(s, ids + n, 1);
        }
        mw_session_close(s);
        mw_model_close(m);
    }
}

#define N_ANSWER 120

/* Make a greedy answer of n ids.  If it is known, each draft is wrong.  Without the drafter, the
 * plan promises `undrafted` times as many tokens a second. */
static void draft_wrongly(struct mw_session *s, double undrafted, const uint32_t *known, uint32_t n,
                          uint32_t *ids)
{
    struct err e = ERR_INIT;

    s->plan.pass_tps = 1;
    s->plan.undrafted_tps = undrafted;
    if (known != NULL)
        mw_session_expect(s, known, n, 0);
    for (uint32_t i = 0; i < n; i++) {
        ids[i] = greatest_of(session_logits(s), s->m->desc->n_vocab);
        assert_int_equal(mw_session_eval_sampled(s, ids[i], &e), 0);
    }
}

/* Returns the session after such an answer of N_ANSWER ids to a few made-up ones. */
static struct mw_session *answer_with_wrong_drafts(struct mw_model *m, const struct mw_options *o,
                                                   double undrafted, const uint32_t *known,
                                                   uint32_t *ids)
{
    static const uint32_t prompt[] = { 3, 9, 4, 17, 5, 33, 6, 80 };
    struct mw_session *s = open_session(m, o);

    eval(s, prompt, 8);
    draft_wrongly(s, undrafted, known, N_ANSWER, ids);
    return s;
}

static struct mw_model *open_with_head(const char *name, const char *head)
{
    struct mw_model *m = open_model_copy(name);
    struct err e = ERR_INIT;

    if (head != NULL)
        no_error(mw_model_attach(m, model_path(head), &e), &e);
    return m;
}

/* A model whose drafts are wrong gives its memory to weights, in the middle of an answer. */
static void leaves_a_drafter(const char *name, const char *head, struct mw_options *o)
{
    struct mw_model *m = open_with_head(name, head);
    enum mw_draft draft = o->draft;
    uint32_t ids[N_ANSWER], with[N_ANSWER];
    struct mw_options again;
    struct err e = ERR_INIT;
    struct mw_session *s;

    o->memory_bytes = 192 * MIB;
    if (draft == MW_DRAFT_SELF)
        assert_true(budget_with_copies(m, o));
    o->draft = MW_DRAFT_OFF;
    mw_session_close(answer_with_wrong_drafts(m, o, 0, NULL, ids));
    o->draft = draft;
    s = answer_with_wrong_drafts(m, o, 1.5, ids, with);
    assert_memory_equal(with, ids, sizeof ids);
    assert_null(s->drafter);
    assert_int_equal(s->plan.n_draft, 0);
    assert_int_equal(s->plan.row[MW_ROW_DRAFTER], 0);
    assert_int_equal(s->plan.no_drafter, MW_DRAFTER_CLOSED);
    /* Options that ask for the same, such as those of each request, do not try it again. */
    again = s->settled.asked;
    again.draft = draft;
    assert_int_equal(session_set(s, &again, &e), 0);
    assert_int_equal(session_set(s, &again, &e), 0);
    assert_null(s->drafter);
    assert_int_equal(s->plan.no_drafter, MW_DRAFTER_CLOSED);
    again.draft_depth = 2; /* others do */
    assert_int_equal(session_set(s, &again, &e), 0);
    assert_non_null(s->drafter);
    assert_int_equal(s->plan.no_drafter, MW_DRAFTER_IS_USED);
    mw_session_close(s);
    /* It stays if its memory would gain nothing, or if it has to draft. */
    s = answer_with_wrong_drafts(m, o, 0.1, ids, with);
    assert_memory_equal(with, ids, sizeof ids);
    assert_non_null(s->drafter);
    mw_session_close(s);
    o->draft_depth = 2;
    s = answer_with_wrong_drafts(m, o, 1.5, ids, with);
    assert_memory_equal(with, ids, sizeof ids);
    assert_non_null(s->drafter);
    mw_session_close(s);
    mw_model_close(m);
}

/* Copies, another model, an assistant, and a head of the file. */
static void with_each_drafter(void (*test)(const char *name, const char *head,
                                           struct mw_options *o))
{
    struct mw_options o = small_options(256);
    char path[4096];

    o.block_bytes = 4096;
    o.chunk = 16;
    o.draft = MW_DRAFT_SELF;
    test("llama-tiny.gguf", NULL, &o);
    snprintf(path, sizeof path, "%s", model_path("llama-tiny-q4_k.gguf"));
    o = small_options(256);
    o.draft = MW_DRAFT_FILE;
    o.draft_file = path;
    test("llama-tiny.gguf", NULL, &o);
    o = small_options(256);
    o.draft = MW_DRAFT_MTP;
    test("gemma4-tiny.gguf", "gemma4-tiny-assistant.gguf", &o);
    o = small_options(256);
    o.draft = MW_DRAFT_MTP;
    test("mtp-qwen35.gguf", NULL, &o);
}

static void a_losing_drafter_is_closed(void **state)
{
    (void)state;
    with_each_drafter(leaves_a_drafter);
}

/* Returns a session whose drafter was closed because it lost.  *ids and more[n_more] are the tokens
 * without drafts, of an answer and of the one after it. */
static struct mw_session *session_with_closed_drafter(struct mw_model *m, struct mw_options *o,
                                                      uint32_t *ids, uint32_t *more,
                                                      uint32_t n_more)
{
    enum mw_draft draft = o->draft;
    uint32_t with[N_ANSWER];
    struct mw_session *s;

    o->memory_bytes = 192 * MIB;
    if (draft == MW_DRAFT_SELF)
        assert_true(budget_with_copies(m, o));
    o->draft = MW_DRAFT_OFF;
    s = answer_with_wrong_drafts(m, o, 0, NULL, ids);
    eval(s, ids, 30);
    draft_wrongly(s, 0, NULL, n_more, more);
    mw_session_close(s);
    o->draft = draft;
    s = answer_with_wrong_drafts(m, o, 1.5, ids, with);
    assert_memory_equal(with, ids, sizeof with);
    assert_null(s->drafter);
    return s;
}

/* A closed drafter comes back at the beginning of an answer once the gap is over, without reading
 * pinned weights again, and its next loss counts as the second one. */
static void tries_a_drafter_again(const char *name, const char *head, struct mw_options *o)
{
    enum { N_MORE = 40 };
    struct mw_model *m = open_with_head(name, head);
    enum mw_draft draft = o->draft;
    uint32_t ids[N_ANSWER], more[N_MORE], again[N_MORE];
    const struct stream *stream;
    struct mw_options refused;
    struct mw_session *s;
    struct err e = ERR_INIT;

    s = session_with_closed_drafter(m, o, ids, more, N_MORE);
    assert_int_equal(s->drafts.gap.n_lost, 1);
    assert_in_range(s->drafts.gap.n_token, 1, N_ANSWER);
    stream = s->weights.stream;
    s->drafts.gap.n_token = 0;
    assert_false(session_try_drafter(s, NULL, NULL, &e));
    assert_null(s->drafter);
    s->drafts.gap.n_token = UINT32_MAX;
    assert_true(session_try_drafter(s, NULL, NULL, &e));
    assert_non_null(s->drafter);
    assert_true(s->plan.n_draft > 0 && s->weights.stream == stream);
    assert_false(session_try_drafter(s, NULL, NULL, &e));
    eval(s, ids, 30);
    draft_wrongly(s, 1.5, more, N_MORE, again);
    assert_memory_equal(again, more, sizeof more);
    assert_null(s->drafter);
    assert_int_equal(s->drafts.gap.n_lost, 2);
    /* Options that are refused change nothing. */
    refused = s->settled.asked;
    refused.draft = draft;
    refused.draft_depth = 2;
    refused.memory_bytes = 1;
    assert_int_equal(session_set(s, &refused, &e), -1);
    e = (struct err)ERR_INIT;
    assert_int_equal(s->drafts.gap.n_lost, 2);
    /* A budget that a person chooses opens it at once, and so does another depth. */
    assert_int_equal(mw_session_set_memory(s, o->memory_bytes, &e), 0);
    assert_non_null(s->drafter);
    assert_int_equal(s->drafts.gap.n_lost, 0);
    mw_session_close(s);
    mw_model_close(m);
}

static void a_closed_drafter_is_tried_again(void **state)
{
    (void)state;
    with_each_drafter(tries_a_drafter_again);
}

static void stop_opening(void *ctx, const struct mw_options *o)
{
    struct mw_session *s = ctx;

    (void)o;
    cancel_set(s->cancel);
}

/* A person who does not want to wait stops the answer while the drafter is read.  The session is as
 * before, and the next answers begin without it or with it. */
static void may_be_stopped_while_it_opens(const char *name, const char *head, struct mw_options *o)
{
    enum { N_MORE = 20 };
    struct mw_model *m = open_with_head(name, head);
    uint32_t ids[N_ANSWER], more[N_MORE], again[N_MORE];
    struct mw_session *s;
    struct err e = ERR_INIT;

    s = session_with_closed_drafter(m, o, ids, more, N_MORE);
    s->drafts.gap.n_token = UINT32_MAX;
    if (session_try_drafter(s, stop_opening, s, &e)) /* it read nothing yet */
        assert_non_null(s->drafter);
    else
        assert_int_equal(e.code, ERR_CANCELLED);
    assert_non_null(s->work);
    cancel_clear(s->cancel);
    eval(s, ids, 30);
    draft_wrongly(s, 1.5, more, N_MORE, again);
    assert_memory_equal(again, more, sizeof more);
    mw_session_close(s);
    mw_model_close(m);
}

static void opening_a_drafter_may_be_stopped(void **state)
{
    (void)state;
    with_each_drafter(may_be_stopped_while_it_opens);
}

/* The price of reading the text again is measured by the tokens that the drafter has evaluated:
 * it leaves a few to the next draft. */
static void only_evaluated_text_has_a_price(void **state)
{
    struct mw_model *m = open_model("llama-tiny.gguf");
    struct mw_options o = small_options(256);
    uint32_t ids[60], answer[40];
    struct mw_session *s;
    char path[4096];

    (void)state;
    snprintf(path, sizeof path, "%s", model_path("llama-tiny-q4_k.gguf"));
    o.memory_bytes = 192 * MIB;
    o.draft = MW_DRAFT_FILE;
    o.draft_file = path;
    for (uint32_t i = 0; i < 60; i++)
        ids[i] = 3 + i * 7 % 50;
    s = open_session(m, &o);
    eval(s, ids, 15);
    assert_int_equal(s->drafts.n_text, 0);
    eval(s, ids, 5);
    assert_int_equal(s->drafts.n_text, 20);
    assert_true(s->drafts.text_s > 0);
    eval(s, ids, 10);
    assert_int_equal(s->drafts.n_text, 20);
    /* Without a stake, the drafter falls behind in an answer, and reads that with the next text. */
    s->drafts.depth.stake = -1;
    draft_wrongly(s, 1, NULL, 40, answer);
    assert_int_equal(s->drafts.n_text, 20);
    eval(s, ids, 60);
    assert_int_equal(s->drafts.n_text, 130);
    mw_session_close(s);
    mw_model_close(m);
}

/* A head with keys of its own evaluates the tokens of each pass, drafts or not.  The stake pays for
 * that, and without one the head does not. */
static void following_with_a_head_has_a_price(void **state)
{
    struct mw_model *m = open_model("mtp-qwen35.gguf");
    struct mw_options o = small_options(256);
    struct mw_session *s;
    struct depth *d;
    struct err e = ERR_INIT;
    uint32_t ids[8], answer[8];
    double text_s;

    (void)state;
    for (uint32_t i = 0; i < 8; i++)
        ids[i] = 3 + i * 7 % 50;
    o.memory_bytes = 192 * MIB;
    o.draft = MW_DRAFT_MTP;
    s = open_session(m, &o);
    d = &s->drafts.depth;
    eval(s, ids, 8);
    assert_true(s->drafts.text_s > 0); /* of a prompt: nothing pays for it */
    draft_wrongly(s, 1, NULL, 4, answer);
    session_drop_drafts(s);
    depth_begin(d);
    d->accept[DEPTH_HEAD] = 0; /* so that nothing is drafted */
    assert_int_equal(mw_session_eval_sampled(s, ids[0], &e), 0);
    d->narrow_s = 1e-9;
    text_s = s->drafts.text_s;
    assert_int_equal(mw_session_eval_sampled(s, ids[1], &e), 0);
    assert_int_equal(s->drafts.n, 0);
    assert_true(s->drafts.text_s > text_s && d->stake < 0);
    text_s = s->drafts.text_s;
    for (uint32_t i = 2; i < 5; i++)
        assert_int_equal(mw_session_eval_sampled(s, ids[i], &e), 0);
    assert_true(s->drafts.text_s <= text_s);
    d->stake = 2;
    assert_int_equal(mw_session_eval_sampled(s, ids[5], &e), 0);
    assert_true(s->drafts.text_s > text_s);
    assert_non_null(s->head);
    mw_session_close(s);
    mw_model_close(m);
}

/* Copies of weights are made by the first pass that reads them, and have a price like reading. */
static void making_copies_is_a_part_of_the_price(void **state)
{
    struct mw_model *m = open_model("llama-tiny.gguf");
    struct mw_options o = small_options(256);
    uint32_t ids[30], answer[20];
    struct err e = ERR_INIT;
    struct mw_session *s;
    double made_s, open_s;

    (void)state;
    for (uint32_t i = 0; i < 30; i++)
        ids[i] = 3 + i * 7 % 50;
    o.block_bytes = 4096;
    o.chunk = 16;
    o.draft = MW_DRAFT_SELF;
    assert_true(budget_with_copies(m, &o));
    s = open_session(m, &o);
    assert_int_equal(stream_low_ns(s->weights.stream), 0);
    eval(s, ids, 30);
    made_s = (double)stream_low_ns(s->weights.stream) / 1e9;
    open_s = s->drafts.open_s;
    assert_true(made_s > 0);
    draft_wrongly(s, 0.1, NULL, 20, answer);
    assert_true((double)stream_low_ns(s->weights.stream) / 1e9 <= made_s); /* they are made once */
    s->drafts.depth.share = 0.5;
    s->drafts.depth.stake = -1;
    leave_losing_drafter(s);
    assert_null(s->drafter);
    assert_true(s->drafts.left_s >= made_s + open_s);
    /* They take as long as 50 passes, so the gap is 50 hundred tokens longer. */
    s->drafts.depth.narrow_s = s->drafts.left_s / 50;
    s->drafts.gap.n_token = 50 * DEPTH_GAP;
    assert_false(session_try_drafter(s, NULL, NULL, &e));
    s->drafts.gap.n_token = 50 * DEPTH_GAP + (uint64_t)(DEPTH_GAP * (DEPTH_STAKE + 1)) + 1;
    assert_true(session_try_drafter(s, NULL, NULL, &e));
    mw_session_close(s);
    mw_model_close(m);
}

/* Without its head, `auto` goes on with drafts from earlier text. */
static void auto_closes_its_head_only(void **state)
{
    const char *src = getenv("MW_SRCDIR");
    struct mw_options o = small_options(256);
    uint32_t ids[N_ANSWER], with[N_ANSWER];
    struct mw_options again;
    struct err e = ERR_INIT;
    struct mw_session *s;
    struct mw_model *m;
    char path[2][4096];

    (void)state;
    for (int i = 0; i < 2; i++)
        snprintf(path[i], sizeof path[i], "%s/share/models/memwall-guide%s.gguf",
                 src != NULL ? src : ".", i == 0 ? "" : "-assistant");
    no_error(mw_model_open(&m, path[0], &e), &e);
    no_error(mw_model_attach(m, path[1], &e), &e);
    o.draft = MW_DRAFT_OFF;
    mw_session_close(answer_with_wrong_drafts(m, &o, 0, NULL, ids));
    o.draft = MW_DRAFT_AUTO;
    s = answer_with_wrong_drafts(m, &o, 1.5, ids, with);
    assert_memory_equal(with, ids, sizeof ids);
    assert_true(s->head == NULL && !s->plan.has_head);
    assert_true(s->drafter != NULL && s->plan.n_draft > 0);
    assert_int_equal(s->settled.o.draft, MW_DRAFT_NGRAM);
    assert_int_equal(s->drafts.gap.n_lost, 1);
    again = s->settled.asked;
    again.draft = MW_DRAFT_AUTO;
    no_error(session_set(s, &again, &e), &e);
    assert_null(s->head);
    s->drafts.gap.n_token = UINT32_MAX;
    assert_true(session_try_drafter(s, NULL, NULL, &e));
    assert_true(s->head != NULL && s->settled.o.draft == MW_DRAFT_AUTO);
    /* The time of opening is that of the head. */
    s->drafts.open_s = 5;
    s->drafts.depth.share = 0.5;
    s->drafts.depth.stake = -1;
    leave_losing_drafter(s);
    assert_null(s->head);
    assert_true(s->drafts.left_s >= 5);
    mw_session_close(s);
    mw_model_close(m);
}

/* Returns the number of drafts of the plan that the next answer of a chat begins with.
 * said[0 .. 600): the notices before that. */
static uint32_t drafts_of_next_answer(struct mw_chat *c, char *said)
{
    struct err e = ERR_INIT;
    struct mw_event event;
    uint32_t n_draft = UINT32_MAX;

    said[0] = '\0';
    assert_int_equal(mw_chat_send(c, "two", 3, &e), 0);
    for (;;) {
        struct pollfd p = { .fd = mw_chat_fd(c), .events = POLLIN };

        assert_int_equal(poll(&p, 1, 60000), 1);
        while (mw_chat_next(c, &event)) {
            if (event.kind == MW_EVENT_NOTICE && n_draft == UINT32_MAX)
                snprintf(said + strlen(said), 600 - strlen(said), "%.*s\n", (int)event.len,
                         event.text);
            if (event.kind == MW_EVENT_STARTED)
                n_draft = event.plan.n_draft;
            if (event.kind == MW_EVENT_DONE) {
                assert_int_equal(event.receipt.done, MW_DONE_LENGTH);
                return n_draft;
            }
        }
    }
}

/* Returns a chat whose drafter was closed. */
static struct mw_chat *chat_without_drafter(struct mw_model *m, const struct mw_options *engine)
{
    struct mw_chat_options o = { .engine = *engine, .n_predict = 2 };
    struct mw_session *s;
    struct mw_chat *c;
    struct said said;

    o.sampling.repeat_penalty = 1;
    c = open_chat(m, &o);
    ask(c, "one", &said);
    s = c->session; /* its thread waits for a command */
    assert_non_null(s->drafter);
    s->drafts.depth.share = 0.5;
    s->drafts.depth.stake = -1;
    leave_losing_drafter(s);
    assert_null(s->drafter);
    return c;
}

static void may_try_again(struct mw_chat *c)
{
    c->session->drafts.depth.narrow_s = 1;
    c->session->drafts.gap.n_token = UINT32_MAX;
}

/* Reading a model takes a while, so a notice comes first. */
static void begins_with_the_closed_drafter(const char *name, const char *head, struct mw_options *o)
{
    static const char *const says[] = {
        [MW_DRAFT_SELF] = "drafts are tried again: copies of the weights are made while these are "
                          "read\n",
        [MW_DRAFT_FILE] = "drafts are tried again: the model that makes them is read, ",
        [MW_DRAFT_MTP] = "drafts are tried again: the head that makes them is read\n",
    };
    struct mw_model *m = open_with_head(name, head);
    struct mw_chat *c;
    char said[600];

    o->memory_bytes = 192 * MIB;
    if (o->draft == MW_DRAFT_SELF)
        assert_true(budget_with_copies(m, o));
    c = chat_without_drafter(m, o);
    assert_int_equal(drafts_of_next_answer(c, said), 0);
    assert_string_equal(said, "");
    may_try_again(c);
    assert_true(drafts_of_next_answer(c, said) > 0);
    assert_memory_equal(said, says[o->draft], strlen(says[o->draft]));
    assert_true(c->plan.n_draft > 0 && c->settled.o.draft == o->draft);
    mw_chat_close(c);
    mw_model_close(m);
}

static void an_answer_begins_with_the_closed_drafter(void **state)
{
    (void)state;
    with_each_drafter(begins_with_the_closed_drafter);
}

/* The file of a drafter ends early when it is opened again. */
static void check_damaged(const char *name, const char *file, enum mw_draft draft)
{
    struct mw_model *m = open_model(name);
    struct mw_options o = small_options(256);
    char path[4096], said[600];
    struct err e = ERR_INIT;
    struct mw_chat *c;
    size_t n;
    void *data = model_read(file, &n);
    FILE *f;

    snprintf(path, sizeof path, "%s/drafter-%ld.gguf",
             getenv("MW_BUILDDIR") != NULL ? getenv("MW_BUILDDIR") : ".", (long)getpid());
    f = fopen(path, "wb");
    assert_true(data != NULL && f != NULL);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    free(data);
    o.memory_bytes = 192 * MIB;
    o.draft = draft;
    if (draft == MW_DRAFT_FILE)
        o.draft_file = path;
    else
        no_error(mw_model_attach(m, path, &e), &e);
    c = chat_without_drafter(m, &o);
    may_try_again(c);
    assert_int_equal(truncate(path, (off_t)n / 2), 0);
    assert_int_equal(drafts_of_next_answer(c, said), 0);
    assert_memory_equal(said, "drafts are tried again: the ", 28);
    assert_non_null(strstr(said, "\nthere are no such drafts: "));
    assert_non_null(strstr(said, path));
    assert_int_equal(c->session->drafts.gap.n_token, 1); /* it is tried again later */
    assert_int_equal(c->session->drafts.gap.n_lost, 1);
    assert_true(c->session->drafts.was_left);
    mw_chat_close(c);
    mw_model_close(m);
    unlink(path);
}

/* The same when a person asks for it.  Its memory is of no use, so it counts as closed. */
static void a_head_that_is_asked_for_and_does_not_open_is_named(void **state)
{
    struct mw_model *m = open_model("gemma4-tiny.gguf");
    struct mw_options o = small_options(256);
    char path[4096];
    struct err e = ERR_INIT, why = ERR_INIT;
    struct mw_session *s;
    size_t n;
    void *data = model_read("gemma4-tiny-assistant.gguf", &n);
    FILE *f;

    (void)state;
    snprintf(path, sizeof path, "%s/head-%ld.gguf",
             getenv("MW_BUILDDIR") != NULL ? getenv("MW_BUILDDIR") : ".", (long)getpid());
    f = fopen(path, "wb");
    assert_true(data != NULL && f != NULL);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    free(data);
    no_error(mw_model_attach(m, path, &e), &e);
    o.memory_bytes = 192 * MIB;
    s = open_session(m, &o);
    assert_false(session_lost_drafter(s, &why));
    assert_int_equal(truncate(path, (off_t)n / 2), 0);
    o.draft = MW_DRAFT_MTP;
    no_error(session_set(s, &o, &e), &e);
    assert_true(session_lost_drafter(s, &why));
    assert_string_equal(why.file, path);
    assert_false(session_lost_drafter(s, &why)); /* once */
    assert_false(s->plan.has_head);
    assert_int_equal(s->plan.row[MW_ROW_DRAFTER], 0);
    assert_int_equal(s->plan.no_drafter, MW_DRAFTER_CLOSED);
    assert_true(s->drafts.was_left && s->drafts.left == MW_DRAFT_MTP);
    assert_int_equal(s->drafts.gap.n_lost, 1);
    mw_session_close(s);
    mw_model_close(m);
    unlink(path);
}

static void a_drafter_that_does_not_open_is_named(void **state)
{
    (void)state;
    check_damaged("llama-tiny.gguf", "llama-tiny-q4_k.gguf", MW_DRAFT_FILE);
    check_damaged("gemma4-tiny.gguf", "gemma4-tiny-assistant.gguf", MW_DRAFT_MTP);
}

/* The weights of a drafter go with it.  Its header stays, and is in the plan. */
static void a_closed_drafter_leaves_no_weights(void **state)
{
    struct mw_model *m = open_model_copy("gemma4-tiny.gguf"), *draft;
    struct mw_options o = small_options(256);
    struct model_head *head;
    struct mw_session *s;
    struct err e = ERR_INIT;
    uint64_t header;
    char path[2][4096];

    (void)state;
    snprintf(path[0], sizeof path[0], "%s", model_path("gemma4-tiny-q4_0.gguf"));
    snprintf(path[1], sizeof path[1], "%s", model_path("gemma4-tiny-assistant.gguf"));
    o.memory_bytes = 192 * MIB;
    o.draft = MW_DRAFT_FILE;
    o.draft_file = path[0];
    s = open_session(m, &o);
    no_error(draft_model_open(&draft, m, path[0], &e), &e);
    assert_non_null(draft->resident.base);
    for (int i = 0; i < 2; i++) {
        o.draft_file = path[1];
        no_error(session_set(s, &o, &e), &e);
        no_error(model_head_open(&head, m, path[1], &e), &e);
        assert_null(draft->resident.base);
        assert_non_null(head->resident.base);
        o.draft_file = path[0];
        no_error(session_set(s, &o, &e), &e);
        assert_null(head->resident.base);
        assert_non_null(draft->resident.base);
    }
    header = draft->header.used;
    o.draft = MW_DRAFT_OFF;
    no_error(session_set(s, &o, &e), &e);
    assert_null(draft->resident.base);
    assert_true(header > 0);
    assert_int_equal(draft_models_bytes(m), header);
    assert_int_equal(s->plan.row[MW_ROW_DRAFTER], 0);
    mw_session_close(s);
    mw_model_close(m);
}

/* The drafter changes every few tokens: a head in a file, a head in a folder, models, text. */
static void another_drafter_in_mid_answer_changes_no_token(void **state)
{
    enum { N = 96, EACH = 12 };
    static const uint32_t prompt[] = { 3, 9, 4, 17, 5, 33, 6, 80 };
    static const struct {
        enum mw_draft draft;
        const char *file;
        bool has_head, is_refused;
    } turns[] = {
        { MW_DRAFT_FILE, "gemma4-tiny-assistant.gguf", true, false },
        { MW_DRAFT_FILE, "gemma4-tiny-assistant-hf", true, false },
        { MW_DRAFT_FILE, "gemma4-tiny-q4_0.gguf", false, false },
        { MW_DRAFT_MTP, NULL, false, true }, /* none belongs to the model */
        { MW_DRAFT_FILE, "llama-tiny.gguf", false, true },
        { MW_DRAFT_FILE, "gemma4-tiny-assistant.gguf", true, false },
        { MW_DRAFT_NGRAM, NULL, false, false },
    };
    struct mw_model *m = open_model_copy("gemma4-tiny.gguf");
    struct mw_options o = small_options(256);
    uint32_t want[8 + N], got[8 + N];
    char path[7][4096];
    struct err e = ERR_INIT;
    struct mw_sample sample;

    (void)state;
    for (int with = 0; with < 2; with++) {
        uint32_t *ids = with ? got : want;
        struct mw_session *s;

        o.draft = MW_DRAFT_OFF;
        o.draft_file = NULL;
        o.draft_depth = 4;
        s = open_session(m, &o);
        memcpy(ids, prompt, sizeof prompt);
        eval(s, ids, 8);
        for (uint32_t i = 0; i < N; i++) {
            uint32_t n = i / EACH;

            ids[8 + i] = greatest_of(session_logits(s), m->desc->n_vocab);
            if (mw_session_eval_sampled(s, ids[8 + i], &e) != 0)
                fail_with(&e);
            if (!with || i % EACH != EACH - 1 || n >= 7)
                continue;
            o.draft = turns[n].draft;
            o.draft_file = NULL;
            if (turns[n].file != NULL) {
                snprintf(path[n], sizeof path[n], "%s", model_path(turns[n].file));
                o.draft_file = path[n];
            }
            assert_int_equal(session_set(s, &o, &e) != 0, turns[n].is_refused);
            if (!turns[n].is_refused)
                assert_int_equal(s->head != NULL, turns[n].has_head);
            mw_session_sample(s, &sample);
            print_message("%u: %lu drafted, %lu by a head\n", n,
                          (unsigned long)sample.draft.drafted,
                          (unsigned long)sample.draft.by_head);
            if (mw_session_logits(s) == NULL)
                evaluate_again(s, ids, 8 + i);
        }
        mw_session_sample(s, &sample);
        assert_int_equal(sample.draft.drafted > 40, with);
        assert_int_equal(sample.draft.by_head > 15, with);
        mw_session_close(s);
    }
    assert_memory_equal(got, want, sizeof want);
    mw_model_close(m);
}

/* A depth that was asked for may lose any number of tokens, and other settings begin again. */
static void other_settings_have_a_stake_of_their_own(void **state)
{
    struct mw_model *m = open_model_copy("llama-tiny.gguf");
    struct mw_options o = small_options(256);
    struct mw_session *s;
    struct err e = ERR_INIT;
    uint32_t ids[12];

    (void)state;
    o.draft = MW_DRAFT_NGRAM;
    o.memory_bytes = 192 * MIB;
    o.draft_depth = 8;
    s = open_session(m, &o);
    for (uint32_t i = 0; i < 12; i++)
        ids[i] = 3 + 7 * i;
    eval(s, ids, 8);
    s->drafts.depth.stake = -200;
    assert_int_equal(session_set(s, &o, &e), 0); /* the same, as of each request */
    assert_true(s->drafts.depth.stake <= -200);
    o.draft_depth = 0;
    assert_int_equal(session_set(s, &o, &e), 0);
    assert_true(s->drafts.depth.stake >= DEPTH_STAKE);
    s->drafts.depth.stake = -1;
    assert_int_equal(mw_session_set_memory(s, 128 * MIB, &e), 0);
    assert_true(s->drafts.depth.stake >= DEPTH_STAKE);
    /* Gains stay, also when another answer begins. */
    s->drafts.depth.stake = 5;
    assert_int_equal(mw_session_set_memory(s, 192 * MIB, &e), 0);
    eval(s, ids + 8, 4);
    assert_true(s->drafts.depth.stake >= 5);
    mw_session_close(s);
    mw_model_close(m);
}

/* A chat looks for the head beside its model even if nothing drafts, and its order of tokens is in
 * memory from then on. */
static void a_plan_has_what_an_idle_head_takes(void **state)
{
    static const enum mw_draft drafts[] = { MW_DRAFT_OFF, MW_DRAFT_NGRAM };
    struct mw_model *m = open_model_copy("gemma4-tiny.gguf");
    struct plan_input before[2], after[2];
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(model_heads_bytes(m), 0);
    for (int i = 0; i < 4; i++) {
        struct mw_options o = small_options(256);

        if (i == 2)
            no_error(mw_model_attach(m, model_path("gemma4-tiny-assistant-hf"), &e), &e);
        o.draft = drafts[i % 2];
        no_error(options_resolve(m, &o, &e), &e);
        no_error(plan_input_of(m, &o, (i < 2 ? before : after) + i % 2, &e), &e);
    }
    assert_int_equal(model_heads_bytes(m), m->desc->n_vocab * sizeof(uint32_t));
    for (int i = 0; i < 2; i++)
        assert_true(after[i].program_bytes >= before[i].program_bytes + model_heads_bytes(m));
    mw_model_close(m);
}

/* A plan may leave a model that drafts out.  Its header was read for the plan, and stays. */
static void a_plan_has_the_header_of_a_drafter_that_it_leaves_out(void **state)
{
    struct mw_model *m = open_model_copy("llama-tiny.gguf"), *draft;
    struct mw_options o = small_options(256);
    struct plan_input before, after;
    struct plan without, p;
    struct err e = ERR_INIT;
    char path[4096];

    (void)state;
    no_error(options_resolve(m, &o, &e), &e);
    no_error(plan_input_of(m, &o, &before, &e), &e);
    before.budget_bytes = 0;
    assert_int_equal(plan_make(&before, &without, &e), -1);
    snprintf(path, sizeof path, "%s", model_path("llama-tiny-q4_k.gguf"));
    o.draft = MW_DRAFT_FILE;
    o.draft_file = path;
    no_error(plan_input_of(m, &o, &after, &e), &e);
    no_error(draft_model_open(&draft, m, path, &e), &e);
    assert_true(draft->header.used > 0);
    after.budget_bytes = without.sum_bytes + 2 * draft->header.used;
    e = (struct err)ERR_INIT;
    no_error(plan_make(&after, &p, &e), &e);
    assert_int_equal(p.n_draft, 0);
    assert_int_equal(p.row[MW_ROW_DRAFTER], 0);
    assert_true(p.row[MW_ROW_PROGRAM] >= without.row[MW_ROW_PROGRAM] + draft->header.used);
    mw_model_close(m);
}

/* The times of passes are those of one plan. */
static void another_budget_forgets_what_passes_took(void **state)
{
    struct mw_model *m = open_model_copy("llama-tiny.gguf");
    struct mw_options o = small_options(256);
    struct mw_session *s;
    struct err e = ERR_INIT;
    uint32_t ids[12];

    (void)state;
    o.draft = MW_DRAFT_NGRAM;
    o.memory_bytes = 192 * MIB;
    s = open_session(m, &o);
    for (uint32_t i = 0; i < 12; i++)
        ids[i] = 3 + 7 * i;
    eval(s, ids, 8);
    for (uint32_t i = 8; i < 10; i++)
        assert_int_equal(mw_session_eval_sampled(s, ids[i], &e), 0);
    assert_true(s->drafts.depth.narrow_s > 0);
    assert_int_equal(mw_session_set_memory(s, 128 * MIB, &e), 0);
    assert_true(s->drafts.depth.narrow_s <= 0);
    assert_int_equal(mw_session_eval_sampled(s, ids[10], &e), 0);
    assert_true(s->drafts.depth.narrow_s <= 0);
    assert_int_equal(mw_session_eval_sampled(s, ids[11], &e), 0);
    assert_true(s->drafts.depth.narrow_s > 0);
    mw_session_close(s);
    mw_model_close(m);
}

/* Copies in fewer bits are assumed to be right less often. */
static void copies_have_an_assumed_acceptance(void **state)
{
    struct mw_model *m = open_model_copy("llama-tiny.gguf");
    struct plan_input in = { 0 };
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(self_types(m, MW_COPIES_AUTO, 100, &in, &e), 0);
    assert_int_equal(in.n_low, 3);
    for (uint32_t i = 1; i < in.n_low; i++) {
        assert_true(in.low[i].all_bytes <= in.low[i - 1].all_bytes);
        assert_true(in.low[i].acceptance < in.low[i - 1].acceptance - 0.05);
    }
    mw_model_close(m);
}

static void a_model_drafts_for_another(void **state)
{
    (void)state;
    /* The same logits; drafts that a change or the end leaves over are not accepted. */
    draft_with("llama-tiny.gguf", "llama-tiny.gguf", 0.8);
    draft_with("llama-tiny.gguf", "llama-tiny-q4_k.gguf", 0); /* other weights */
    draft_with("gemma4-tiny-q4_0.gguf", "gemma4-tiny-q4_0.gguf", 0.8);
}

static void a_dense_model_has_the_same_bits(void **state)
{
    (void)state;
    same_bits("gemma4-tiny-q4_0.gguf", 2, 36);
    same_bits("llama-tiny.gguf", 2, 36);
}

static void quantised_keys_and_values_have_the_same_bits(void **state)
{
    (void)state;
    same_bits("gemma4-tiny-q4_k_m.gguf", 4, 36);
    same_bits("qwen3-tiny.gguf", 4, 36);
}

static void a_mixture_of_experts_has_the_same_bits(void **state)
{
    (void)state;
    same_bits("gemma4-moe-tiny-q4_0.gguf", 2, 36);
}

/* Gated delta nets, Kimi's delta attention, Mamba-2 alone and beside attention, short
 * convolutions: their state goes back to the last token that was right. */
static void recurrent_state_has_the_same_bits(void **state)
{
    (void)state;
    same_bits("f-qwen35moe", 2, 24);
    same_bits("f-ling3.gguf", 2, 24);
    same_bits("f-nemotronh-moe.gguf", 2, 24);
    same_bits("f-falconh1.gguf", 2, 24);
    same_bits("f-lfm2moe.gguf", 2, 24);
    same_bits("f-deepseek4.gguf", 2, 24);
    same_bits("f-glm53flash.gguf", 2, 24);
}

static void other_recurrent_families_have_the_same_bits(void **state)
{
    static const char *const names[] = { "f-qwen35", "f-qwen3next", "f-kimilinear.gguf",
                                         "f-granite4h.gguf", "f-lfm2.gguf" };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        same_bits(names[i], 2, 12);
}

/* Their n-grams and the index keys of the open block go back, too. */
static void n_grams_and_index_keys_have_the_same_bits(void **state)
{
    (void)state;
    same_bits("q4e-a.gguf", 2, 24);
    same_bits("q4e-q.gguf", 4, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_index_finds_what_a_scan_finds),
        cmocka_unit_test(a_repetition_goes_on),
        cmocka_unit_test(a_question_looks_at_few_places),
        cmocka_unit_test(drafts_follow_a_text_past_changes),
        cmocka_unit_test(drafts_follow_a_text_of_equal_lines),
        cmocka_unit_test(depth_follows_acceptance_and_cost),
        cmocka_unit_test(a_bad_measurement_is_forgotten),
        cmocka_unit_test(a_measured_loss_lasts),
        cmocka_unit_test(a_time_of_another_plan_is_not_used),
        cmocka_unit_test(a_slow_first_pass_is_measured_again),
        cmocka_unit_test(a_predicted_gain_begins_with_more_drafts),
        cmocka_unit_test(drafting_never_loses_much),
        cmocka_unit_test(a_session_loses_at_most_three_per_cent),
        cmocka_unit_test(a_drafter_slower_than_its_model_is_known_by_two_drafts),
        cmocka_unit_test(drafts_that_gain_go_on),
        cmocka_unit_test(gaps_double),
        cmocka_unit_test(drafts_that_nobody_asked_for_do_not_count),
        cmocka_unit_test(a_model_drafts_for_another),
        cmocka_unit_test(a_model_drafts_for_itself),
        cmocka_unit_test(a_head_keeps_the_rows_of_the_text),
        cmocka_unit_test(a_losing_drafter_is_closed),
        cmocka_unit_test(a_closed_drafter_is_tried_again),
        cmocka_unit_test(opening_a_drafter_may_be_stopped),
        cmocka_unit_test(only_evaluated_text_has_a_price),
        cmocka_unit_test(following_with_a_head_has_a_price),
        cmocka_unit_test(making_copies_is_a_part_of_the_price),
        cmocka_unit_test(auto_closes_its_head_only),
        cmocka_unit_test(an_answer_begins_with_the_closed_drafter),
        cmocka_unit_test(a_drafter_that_does_not_open_is_named),
        cmocka_unit_test(a_head_that_is_asked_for_and_does_not_open_is_named),
        cmocka_unit_test(a_closed_drafter_leaves_no_weights),
        cmocka_unit_test(another_drafter_in_mid_answer_changes_no_token),
        cmocka_unit_test(other_settings_have_a_stake_of_their_own),
        cmocka_unit_test(a_plan_has_what_an_idle_head_takes),
        cmocka_unit_test(a_plan_has_the_header_of_a_drafter_that_it_leaves_out),
        cmocka_unit_test(another_budget_forgets_what_passes_took),
        cmocka_unit_test(copies_have_an_assumed_acceptance),
        cmocka_unit_test(a_dense_model_has_the_same_bits),
        cmocka_unit_test(quantised_keys_and_values_have_the_same_bits),
        cmocka_unit_test(a_mixture_of_experts_has_the_same_bits),
        cmocka_unit_test(recurrent_state_has_the_same_bits),
        cmocka_unit_test(other_recurrent_families_have_the_same_bits),
        cmocka_unit_test(n_grams_and_index_keys_have_the_same_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
