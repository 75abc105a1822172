/*
 * The next id from a row of logits: ids are drawn as often as their probabilities say, among
 * those that top-k, top-p and min-p keep.  The expected probabilities are computed by sorting
 * all of them.
 */
#include "config.h"

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
        model_tokenizer(model, &e) == NULL)
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

static void check_draws(const struct mw_sampling *s, int shape)
{
    static uint32_t count[N_MAX];
    float logits[N_MAX], row[N_MAX];
    double p[N_MAX];
    struct err e = ERR_INIT;
    struct mw_sampler *sampler;

    memset(count, 0, sizeof count);
    fill(logits, shape);
    expect(s, logits, p);
    assert_int_equal(mw_sampler_new(&sampler, model, s, &e), 0);
    for (int i = 0; i < N_DRAW; i++) {
        memcpy(row, logits, sizeof row);
        count[mw_sampler_next(sampler, row, NULL, 0)]++;
    }
    mw_sampler_free(sampler);
    for (uint32_t id = 0; id < n_vocab; id++) {
        double deviation = sqrt(N_DRAW * p[id] * (1 - p[id]));

        if (fabs(count[id] - N_DRAW * p[id]) > 6 * deviation + (p[id] > 0 ? 3 : 0))
            fail_msg("shape %d, top-k %d, top-p %g, min-p %g: id %u drawn %u times, not %.1f",
                     shape, s->top_k, (double)s->top_p, (double)s->min_p, id, count[id],
                     N_DRAW * p[id]);
    }
}

static void ids_are_drawn_as_often_as_their_shares_say(void **state)
{
    static const struct mw_sampling all[] = {
        { .temp = 1, .top_p = 1, .seed = 1 },
        { .temp = 0.5f, .top_p = 1, .seed = 2 },
        { .temp = 1, .top_k = 7, .top_p = 1, .seed = 3 },
        { .temp = 1, .top_k = 1, .top_p = 1, .seed = 4 },
        { .temp = 1, .top_k = 100000, .top_p = 0.9f, .seed = 5 },
        { .temp = 1, .top_p = 0.5f, .seed = 6 },
        { .temp = 1, .top_p = 0, .seed = 7 },
        { .temp = 1, .top_p = 1, .min_p = 0.3f, .seed = 8 },
        { .temp = 1, .top_p = 1, .min_p = 1, .seed = 9 },
        { .temp = 1.5f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f, .seed = 10 },
        { .temp = 2, .top_k = 60, .top_p = 0.6f, .min_p = 0.2f, .seed = 11 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        for (int shape = 1; shape <= 3; shape++)
            check_draws(&all[i], shape);
    check_draws(&all[0], 0);
    check_draws(&all[2], 0);
}

static uint32_t best_of(const struct mw_sampling *s, float *row, const uint32_t *before,
                        size_t n_before)
{
    struct err e = ERR_INIT;
    struct mw_sampler *sampler;
    uint32_t id;

    assert_int_equal(mw_sampler_new(&sampler, model, s, &e), 0);
    id = mw_sampler_next(sampler, row, before, n_before);
    mw_sampler_free(sampler);
    return id;
}

static uint32_t first_usable(uint32_t from)
{
    while (is_suppressed(from))
        from++;
    return from;
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
    uint32_t before[6] = { c, a, a, b, a, 4000000000u };
    float row[N_MAX];

    (void)state;
    fill(row, 0);
    row[a] = 8;
    row[b] = -3;
    row[c] = 5;
    assert_int_equal(best_of(&s, row, before, 6), c); /* c has left the window */
    assert_true(row[a] == 4 && row[b] == -6 && row[c] == 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_drawn_as_often_as_their_shares_say),
        cmocka_unit_test(without_a_temperature_the_first_of_the_greatest_is_taken),
        cmocka_unit_test(ids_without_a_text_are_never_drawn),
        cmocka_unit_test(an_id_of_the_window_is_penalised_once),
    };

    return cmocka_run_group_tests_name("sampler", tests, open_model, close_model);
}
