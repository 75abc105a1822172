/*
 * The next id from a row of logits: ids are drawn as often as their probabilities say, among
 * those that top-k, top-p and min-p keep.  The expected probabilities are computed by sorting
 * all of them.
 */
#include "config.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/memwall.h"
#include "engine/session/model.h"
#include "engine/session/sampler.h"
#include "tests/lib/model_path.h"

#define N_MAX  512
#define N_DRAW 40000

static struct mw_model *model;
static uint32_t n_vocab;

static int open_model(void **state)
{
    struct err e = ERR_INIT;
    struct mw_model_info info;
    const char *path = model_path("gemma4-tiny-q4_0.gguf");

    (void)state;
    if (path == NULL || mw_model_open(&model, path, &e) != 0 ||
        model_tokenizer(model, NULL, &e) == NULL)
        return -1;
    mw_model_info(model, &info);
    n_vocab = info.n_vocab;
    return n_vocab <= N_MAX ? 0 : -1;
}

static int close_model(void **state)
{
    (void)state;
    mw_model_close(model);
    return 0;
}

/* Make logits: shape 0 is flat, 1 spread, 2 steep. */
static void fill(float *logits, int shape)
{
    uint64_t x = 88172645463325252u;

    for (uint32_t i = 0; i < n_vocab; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        logits[i] = (float)shape * 3 * ((float)(x >> 40) / 16777216.0f - 0.5f);
    }
}

static bool is_suppressed(uint32_t id)
{
    const struct generation_hparams *g = &model->catalogue->generation;

    for (uint32_t i = 0; i < g->n_suppress; i++)
        if (g->suppress[i] == id)
            return true;
    return tokenizer_is_unusable(model->tokenizer, id);
}

static uint32_t first_usable(uint32_t from)
{
    while (is_suppressed(from))
        from++;
    return from;
}

struct choice {
    uint32_t id;
    double share;
};

static int descending(const void *a, const void *b)
{
    const struct choice *x = a, *y = b;

    if (x->share != y->share)
        return x->share > y->share ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

/* Compute the probability of each id by the definition. */
static void expect(const struct mw_sampling *s, const float *logits, double *p)
{
    struct choice all[N_MAX];
    size_t n = 0, kept = 0;
    double total = 0, sum = 0;

    for (uint32_t id = 0; id < n_vocab; id++) {
        p[id] = 0;
        if (!is_suppressed(id))
            all[n++] = (struct choice){ id, exp((double)logits[id] / (double)s->temp) };
    }
    qsort(all, n, sizeof all[0], descending);
    if (s->top_k > 0 && (size_t)s->top_k < n)
        n = (size_t)s->top_k;
    for (size_t i = 0; i < n; i++)
        total += all[i].share;
    while (kept < n && (kept == 0 || (sum < (double)s->top_p * total &&
                                      all[kept].share >= (double)s->min_p * all[0].share)))
        sum += all[kept++].share;
    for (size_t i = 0; i < kept; i++)
        p[all[i].id] = all[i].share / sum;
}

/* The ids before a draw: only their number counts without a penalty. */
static const uint32_t before[N_DRAW];

static uint32_t draw_at(struct mw_sampler *sampler, const float *logits, size_t pos)
{
    float row[N_MAX];

    memcpy(row, logits, n_vocab * sizeof *row);
    return mw_sampler_next(sampler, row, before, pos);
}

static struct mw_sampler *new_sampler(const struct mw_sampling *s)
{
    struct err e = ERR_INIT;
    struct mw_sampler *sampler;

    assert_int_equal(mw_sampler_new(&sampler, model, s, &e), 0);
    return sampler;
}

#define EXPECTED_LEAST 8 /* draws of a cell; rarer ids are counted together */

/* How many standard deviations the chi-squared of these counts is from its mean. */
static double deviation_of(const uint32_t *count, const double *p, size_t n, double n_draw)
{
    double sum = 0, rare = 0, rare_counted = 0, cells = 0;

    for (size_t i = 0; i < n; i++) {
        double expected = n_draw * p[i];

        if (expected < EXPECTED_LEAST) {
            rare += expected;
            rare_counted += count[i];
        } else {
            sum += (count[i] - expected) * (count[i] - expected) / expected;
            cells++;
        }
    }
    if (rare > 0) {
        sum += (rare_counted - rare) * (rare_counted - rare) / fmax(rare, 1);
        cells++;
    } else {
        assert_true(rare_counted == 0); /* ids that no step keeps */
    }
    return cells > 1 ? (sum - (cells - 1)) / sqrt(2 * (cells - 1)) : 0;
}

/* Draw at many positions of an answer. */
static void check_draws(const struct mw_sampling *s, int shape)
{
    static uint32_t count[N_MAX];
    float logits[N_MAX];
    double p[N_MAX], deviation;
    struct mw_sampler *sampler = new_sampler(s);

    memset(count, 0, sizeof count);
    fill(logits, shape);
    expect(s, logits, p);
    for (size_t i = 0; i < N_DRAW; i++)
        count[draw_at(sampler, logits, i)]++;
    mw_sampler_free(sampler);
    deviation = deviation_of(count, p, n_vocab, N_DRAW);
    if (!(fabs(deviation) < 5))
        fail_msg("shape %d, top-k %d, top-p %g, min-p %g: chi-squared is off by %.1f", shape,
                 s->top_k, (double)s->top_p, (double)s->min_p, deviation);
}

static void ids_are_drawn_as_often_as_their_shares_say(void **state)
{
    static const struct mw_sampling all[] = {
        { .temp = 1, .top_p = 1, .seed = { true, 1 } },
        { .temp = 0.5f, .top_p = 1, .seed = { true, 2 } },
        { .temp = 1, .top_k = 7, .top_p = 1, .seed = { true, 3 } },
        { .temp = 1, .top_k = 1, .top_p = 1, .seed = { true, 4 } },
        { .temp = 1, .top_k = 100000, .top_p = 0.9f, .seed = { true, 5 } },
        { .temp = 1, .top_p = 0.5f, .seed = { true, 6 } },
        { .temp = 1, .top_p = 0, .seed = { true, 7 } },
        { .temp = 1, .top_p = 1, .min_p = 0.3f, .seed = { true, 8 } },
        { .temp = 1, .top_p = 1, .min_p = 1, .seed = { true, 9 } },
        { .temp = 1.5f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f, .seed = { true, 10 } },
        { .temp = 2, .top_k = 60, .top_p = 0.6f, .min_p = 0.2f, .seed = { true, 11 } },
    };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        for (int shape = 1; shape <= 3; shape++)
            check_draws(&all[i], shape);
    check_draws(&all[0], 0);
    check_draws(&all[2], 0);
}

/* The same for many seeds, and for many answers with one seed, at one position. */
static void seeds_and_attempts_are_drawn_alike(void **state)
{
    static uint32_t count[N_MAX];
    struct mw_sampling s = { .temp = 1, .top_p = 1, .seed = { true, 0 } };
    struct mw_sampler *sampler = new_sampler(&s);
    float logits[N_MAX];
    double p[N_MAX];

    (void)state;
    fill(logits, 2);
    expect(&s, logits, p);
    for (int by_seed = 0; by_seed < 2; by_seed++) {
        memset(count, 0, sizeof count);
        for (uint32_t i = 0; i < N_DRAW; i++) {
            s.seed.value = by_seed ? i : 5;
            sampler_set(sampler, &s);
            sampler_begin(sampler, by_seed ? 0 : i);
            count[draw_at(sampler, logits, 77)]++;
        }
        assert_true(fabs(deviation_of(count, p, n_vocab, N_DRAW)) < 5);
    }
    mw_sampler_free(sampler);
}

/* A draw says nothing about the one at the next position, with another seed or of another
 * answer: pairs of draws are as frequent as the product of their shares. */
static void draws_do_not_depend_on_each_other(void **state)
{
    enum { KINDS = 8 };
    struct mw_sampling s = { .temp = 1, .top_p = 1, .seed = { true, 9 } };
    struct mw_sampler *sampler = new_sampler(&s), *other;
    float logits[N_MAX];
    double p[N_MAX], of_kind[KINDS] = { 0 }, pair[KINDS * KINDS];

    (void)state;
    s.seed.value = 10;
    other = new_sampler(&s);
    fill(logits, 1);
    expect(&s, logits, p);
    for (uint32_t id = 0; id < n_vocab; id++)
        of_kind[id % KINDS] += p[id];
    for (int i = 0; i < KINDS * KINDS; i++)
        pair[i] = of_kind[i / KINDS] * of_kind[i % KINDS];
    for (int how = 0; how < 3; how++) {
        uint32_t count[KINDS * KINDS] = { 0 };

        for (uint32_t i = 0; i + 1 < N_DRAW; i++) {
            uint32_t first = draw_at(sampler, logits, i), second;

            if (how == 0) {
                second = draw_at(sampler, logits, i + 1);
            } else if (how == 1) {
                second = draw_at(other, logits, i);
            } else {
                sampler_begin(sampler, 1);
                second = draw_at(sampler, logits, i);
                sampler_begin(sampler, 0);
            }
            count[first % KINDS * KINDS + second % KINDS]++;
        }
        assert_true(fabs(deviation_of(count, pair, KINDS * KINDS, N_DRAW - 1)) < 5);
    }
    mw_sampler_free(sampler);
    mw_sampler_free(other);
}

/* A model whose logits are nearly those of another one draws nearly always the same id. */
static void similar_rows_share_their_draws(void **state)
{
    struct mw_sampling s = { .temp = 1, .top_k = 40, .top_p = 0.95f, .seed = { true, 3 } };
    struct mw_sampler *sampler = new_sampler(&s);
    float logits[N_MAX], similar[N_MAX];
    uint32_t same = 0, same_later = 0;

    (void)state;
    fill(logits, 2);
    for (uint32_t id = 0; id < n_vocab; id++)
        similar[id] = logits[id] + 0.1f * (float)(id * 7 % 11) / 11;
    for (uint32_t i = 0; i + 1 < N_DRAW; i++) {
        uint32_t id = draw_at(sampler, logits, i);

        same += draw_at(sampler, similar, i) == id;
        same_later += draw_at(sampler, similar, i + 1) == id;
    }
    assert_true(same > 0.9 * N_DRAW);
    assert_true(same_later < 0.1 * N_DRAW);
    mw_sampler_free(sampler);
}

/* Rows that no sum, difference or share survives unchanged: huge, steep, infinite, or not a
 * number. */
enum { HOSTILE = 14 };

static void fill_hostile(float *row, int kind)
{
    static const float spread[HOSTILE][2] = {
        { -5e8f, 5e8f },
        { 5e8f, 5e8f },
        { -1e30f, 1e30f },
        { -FLT_MAX, FLT_MAX },
        { FLT_MAX, FLT_MAX },
        { -FLT_MAX, -FLT_MAX },
        { -1e-45f, 1e-45f },
        { 0, 0 },
        { -INFINITY, -INFINITY },
        { -INFINITY, INFINITY },
        { -INFINITY, 0 },
        { NAN, NAN },
        { NAN, 3 },
        { -3e8f, -5e8f },
    };
    uint32_t top = first_usable(200);

    for (uint32_t id = 0; id < n_vocab; id++)
        row[id] = id % 5 == 2 ? spread[kind][0] : spread[kind][kind == 12];
    row[top] = spread[kind][1];
    row[first_usable(top + 1)] = spread[kind][1];
}

static bool is_candidate(const float *row, uint32_t id)
{
    return !is_suppressed(id) && row[id] > -INFINITY;
}

/* The greatest logit among the ids that may be sampled; -INFINITY without any. */
static float top_of(const float *row)
{
    float top = -INFINITY;

    for (uint32_t id = 0; id < n_vocab; id++)
        if (is_candidate(row, id) && row[id] > top)
            top = row[id];
    return top;
}

/*
 * Whatever the logits and the values are, an id that may be sampled is returned, and with a
 * tiny temperature one with the greatest logit.
 */
static void every_row_and_every_value_gives_an_id(void **state)
{
    static const float temps[] = { 0,   1e-45f,  1e-38f, 1e-8f, 0.5f,     1,
                                   100, FLT_MAX, -1,     NAN,   INFINITY, -INFINITY };
    static const float shares[] = {
        0, 1e-45f, 0.5f, 0.95f, 1, 2, -1, NAN, INFINITY, -INFINITY
    };
    static const float penalties[] = { 1, 0.01f, 100, 1e-45f, FLT_MAX, INFINITY, NAN, 0, -2 };
    static const int top_k[] = { 0, 1, 2, 40, INT32_MAX, -1 };
    enum { N_TEMP = 12, N_SHARE = 10, N_PENALTY = 9, N_TOP_K = 6 };
    struct err e = ERR_INIT;

    (void)state;
    for (int i = 0; i < HOSTILE * N_TEMP * N_SHARE * N_PENALTY; i++) {
        struct mw_sampling s = { .temp = temps[i % N_TEMP],
                                 .top_p = shares[i / N_TEMP % N_SHARE],
                                 .min_p = shares[i * 7 / N_TEMP % N_SHARE],
                                 .top_k = top_k[i * 5 / 3 % N_TOP_K],
                                 .repeat_penalty =
                                     penalties[i / (N_TEMP * N_SHARE) % N_PENALTY],
                                 .repeat_last = 64,
                                 .seed = { true, (uint64_t)i } };
        int kind = i / (N_TEMP * N_SHARE * N_PENALTY);
        uint32_t earlier[] = { first_usable(200), 7, first_usable(300), UINT32_MAX };
        float row[N_MAX], asked[N_MAX], top;
        struct mw_sampler *sampler;
        uint32_t id;

        fill_hostile(row, kind);
        memcpy(asked, row, sizeof row);
        assert_int_equal(mw_sampler_new(&sampler, model, &s, &e), 0);
        id = mw_sampler_next(sampler, row, earlier, s.repeat_penalty == 1 ? 0 : 4);
        mw_sampler_free(sampler);
        assert_true(id < n_vocab);
        top = top_of(asked);
        if (top > -INFINITY && !is_candidate(asked, id))
            fail_msg("row %d, temp %g, top-p %g, min-p %g, top-k %d, penalty %g: id %u", kind,
                     (double)s.temp, (double)s.top_p, (double)s.min_p, s.top_k,
                     (double)s.repeat_penalty, id);
        if (top > -INFINITY && s.repeat_penalty == 1 && !(s.temp > 1e-30f))
            assert_true(asked[id] == top || kind == 6);
    }
}

static uint32_t best_of(const struct mw_sampling *s, float *row, const uint32_t *earlier,
                        size_t n_earlier)
{
    struct mw_sampler *sampler = new_sampler(s);
    uint32_t id = mw_sampler_next(sampler, row, earlier, n_earlier);

    mw_sampler_free(sampler);
    return id;
}

static void without_a_temperature_the_first_of_the_greatest_is_taken(void **state)
{
    struct mw_sampling s = { .temp = 0, .top_p = 1 };
    uint32_t a = first_usable(100), b = first_usable(a + 1);
    float row[N_MAX] = { 0 };

    (void)state;
    row[b] = row[a] = 4;
    assert_int_equal(best_of(&s, row, NULL, 0), a);
}

static void ids_without_a_text_are_never_drawn(void **state)
{
    struct mw_sampling s = { .temp = 0, .top_p = 1 };
    float row[N_MAX] = { 0 };
    uint32_t n = 0;

    (void)state;
    for (uint32_t id = 0; id < n_vocab; id++) {
        n += is_suppressed(id);
        row[id] = is_suppressed(id) ? 9 : 0;
    }
    assert_true(n > 0);
    assert_false(is_suppressed(best_of(&s, row, NULL, 0)));
}

static void an_id_of_the_window_is_penalised_once(void **state)
{
    struct mw_sampling s = { .temp = 0, .repeat_penalty = 2, .repeat_last = 4 };
    uint32_t a = first_usable(100), b = first_usable(a + 1), c = first_usable(b + 1);
    uint32_t earlier[6] = { c, a, a, b, a, 4000000000u };
    float row[N_MAX];

    (void)state;
    fill(row, 0);
    row[a] = 8;
    row[b] = -3;
    row[c] = 5;
    assert_int_equal(best_of(&s, row, earlier, 6), c); /* c has left the window */
    assert_true(row[a] == 4 && row[b] == -6 && row[c] == 5);
}

/* The ids at the first positions, from the last one if is_backward. */
static uint64_t drawn(struct mw_sampler *sampler, bool is_backward)
{
    static const float flat[N_MAX];
    uint64_t sum = 0;

    for (uint32_t i = 0; i < 8; i++) {
        uint32_t pos = is_backward ? 7 - i : i;

        sum += (uint64_t)draw_at(sampler, flat, pos) << 8 * pos;
    }
    return sum;
}

/* Every number is a seed.  The ids follow from it and from the answer, whatever was drawn
 * before; without a seed they are others each time. */
static void the_same_seed_gives_the_same_ids(void **state)
{
    static const uint64_t seeds[] = { 0, 1, UINT64_MAX };
    uint64_t got[9];

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct mw_sampling s = { .temp = 1, .top_p = 1, .seed = { true, seeds[i] } };
        struct mw_sampler *sampler = new_sampler(&s);

        for (uint32_t attempt = 0; attempt < 3; attempt++) {
            uint64_t *now = &got[3 * i + (int)attempt];

            sampler_begin(sampler, attempt);
            *now = drawn(sampler, false);
            assert_true(drawn(sampler, true) == *now);
            for (const uint64_t *one = got; one < now; one++)
                assert_true(*one != *now);
        }
        s.seed.is_set = false;
        sampler_set(sampler, &s);
        got[3 * i + 1] = drawn(sampler, false);
        sampler_begin(sampler, 2);
        assert_true(drawn(sampler, false) != got[3 * i + 1]);
        s.seed.is_set = true; /* another seed, although its number is the same */
        sampler_set(sampler, &s);
        assert_true(drawn(sampler, false) == got[3 * i + 2]);
        mw_sampler_free(sampler);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_gives_the_same_ids),
        cmocka_unit_test(ids_are_drawn_as_often_as_their_shares_say),
        cmocka_unit_test(seeds_and_attempts_are_drawn_alike),
        cmocka_unit_test(draws_do_not_depend_on_each_other),
        cmocka_unit_test(similar_rows_share_their_draws),
        cmocka_unit_test(every_row_and_every_value_gives_an_id),
        cmocka_unit_test(without_a_temperature_the_first_of_the_greatest_is_taken),
        cmocka_unit_test(ids_without_a_text_are_never_drawn),
        cmocka_unit_test(an_id_of_the_window_is_penalised_once),
    };

    return cmocka_run_group_tests_name("sampler", tests, open_model, close_model);
}
