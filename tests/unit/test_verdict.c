/* The verdict: the limit of the speed, and the figures of the advice. */
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
#include "engine/telemetry/rates.h"
#include "engine/telemetry/verdict.h"
#include "tests/lib/made_sample.h"

#define MS ((uint64_t)1000000)

static int make_sample(void **state)
{
    *state = calloc(1, sizeof(struct mw_sample));
    return *state == NULL ? -1 : 0;
}

static int drop_sample(void **state)
{
    free(*state);
    return 0;
}

/* n tokens with these shares of 100 ms. */
static void tokens(struct mw_sample *s, uint64_t n, unsigned stall_ms, unsigned attention_ms,
                   uint64_t bytes)
{
    memset(s, 0, sizeof *s);
    snprintf(s->run.io, sizeof s->run.io, "direct");
    snprintf(s->run.kv_k, sizeof s->run.kv_k, "f16");
    s->run.hot_bytes = 4 * GIB;
    s->n_decoded = s->n_token = n;
    s->decode_ns = (n - 1) * 100 * MS;
    for (uint64_t i = 0; i < n; i++)
        s->recent[i % MW_RECENT] = (struct mw_token){ .t_ns = (i + 1) * 100 * MS,
                                                      .n = i + 1,
                                                      .wall_ns = 100 * MS + i,
                                                      .stall_ns = stall_ms * MS,
                                                      .compute_ns = (100 - stall_ms) * MS,
                                                      .attention_ns = attention_ms * MS,
                                                      .bytes_pass = bytes,
                                                      .n_col = 1 };
}

static void assert_near(double got, double want)
{
    if (fabs(got - want) > 0.01 * fabs(want))
        fail_msg("%g instead of %g", got, want);
}

static void nothing_measured_binds_nothing(void **state)
{
    struct mw_sample *s = *state;
    struct mw_rates r;

    made_idle(s);
    verdict_fill(s);
    assert_int_equal(s->verdict.binds, MW_BINDS_NONE);
    assert_string_equal(s->verdict.advice, "");
    mw_rates(s, &r);
    assert_true(r.decode_last < 0 && r.decode_mean < 0 && r.stall_share < 0 && r.first_s < 0);
}

static void stalls_are_the_share_of_the_disk(void **state)
{
    struct mw_sample *s = *state;

    tokens(s, 10, 70, 5, GIB);
    verdict_fill(s);
    assert_int_equal(s->verdict.binds, MW_BINDS_DISK);
    assert_near(s->verdict.share, 0.70);
    assert_near(s->verdict.part.disk, 0.70);
    assert_near(s->verdict.part.attention, 0.05);
    assert_near(s->verdict.part.arithmetic, 0.25);
    assert_string_equal(s->verdict.advice, ""); /* a plan is needed for it */
}

static void long_contexts_are_bound_by_keys_and_values(void **state)
{
    struct mw_sample *s = *state;

    tokens(s, 10, 0, 60, 0);
    verdict_fill(s);
    assert_int_equal(s->verdict.binds, MW_BINDS_KV);
    assert_near(s->verdict.share, 0.6);
}

/* 4 GiB in 90 ms are 47.7 GB/s. */
/* The sentence of the verdict panel begins like this. */
static void says(const struct mw_sample *s, const char *text)
{
    char buf[MW_DIAGNOSIS_TEXT];
    struct mw_diagnosis d;

    mw_diagnosis_of_sample(s, &d);
    mw_diagnosis_text(&d, "", buf, sizeof buf);
    if (strncmp(buf, text, strlen(text)) != 0)
        fail_msg("\"%s\" instead of \"%s\"", buf, text);
}

static void weights_in_memory_are_bound_by_bandwidth_or_arithmetic(void **state)
{
    struct mw_sample *s = *state;

    tokens(s, 10, 0, 10, 0);
    s->memory_limit = 50000000000u;
    verdict_fill(s);
    assert_int_equal(s->verdict.binds, MW_BINDS_MEMORY);
    assert_near(s->verdict.part.memory, 4.294967296 / 5);
    assert_near(s->verdict.share, s->verdict.part.memory); /* the bar has the same */
    s->memory_limit = 90000000000u;
    verdict_fill(s);
    assert_int_equal(s->verdict.binds, MW_BINDS_COMPUTE);
    assert_near(s->verdict.share, s->verdict.part.memory + s->verdict.part.arithmetic);
    says(s, "compute-bound: 90 % of each token is memory and arithmetic");
    s->memory_limit = 0;
    verdict_fill(s);
    assert_int_equal(s->verdict.binds, MW_BINDS_COMPUTE);
    says(s, "compute-bound: 90 % of each token is arithmetic");
}

static void swapping_is_reported_before_everything_else(void **state)
{
    struct mw_sample *s = *state;

    tokens(s, 10, 70, 5, GIB);
    s->os.swap_own.value = 200 * MIB;
    s->os.psi_memory_some10.value = 3000;
    verdict_fill(s);
    assert_int_equal(s->verdict.binds, MW_BINDS_SWAP);
    assert_near(s->verdict.share, 0.3);
    s->os.psi_memory_some10.why_not = "switched off";
    verdict_fill(s);
    assert_int_equal(s->verdict.binds, MW_BINDS_DISK);
}

static void faults_of_a_mapping_count_as_disk(void **state)
{
    struct mw_sample *s = *state;

    tokens(s, 10, 0, 5, 0);
    snprintf(s->run.io, sizeof s->run.io, "mmap");
    s->os.psi_io_some10.value = 6000;
    verdict_fill(s);
    assert_int_equal(s->verdict.binds, MW_BINDS_DISK);
    assert_string_equal(s->verdict.advice, "direct_io");
}

static void rates_are_those_of_the_newest_tokens(void **state)
{
    struct mw_sample *s = *state;
    struct mw_rates r;

    tokens(s, 200, 70, 5, GIB);
    mw_rates(s, &r);
    assert_near(r.decode_last, 10);
    assert_near(r.decode_mean, 10);
    assert_near(r.read_bytes_s, 10.0 * (double)GIB);
    assert_int_equal(r.n_token, 16);
    assert_near(r.wall_s, 0.1);
    assert_near(r.token_s, 0.1);
    for (uint64_t i = 0; i < MW_RECENT; i++)
        s->recent[i].sample_ns = 20 * MS;
    mw_rates(s, &r);
    assert_near(r.wall_s, 0.1);
    assert_near(r.token_s, 0.12);
    assert_near(r.decode_last, 1 / 0.12);
    for (uint64_t i = 192; i < 200; i++) /* a slow end: half of the newest 16 */
        s->recent[i % MW_RECENT].wall_ns = 980 * MS;
    mw_rates(s, &r);
    assert_near(r.token_s, (0.12 + 1) / 2);
    assert_near(r.decode_last, 1 / r.token_s); /* one rate for the bar of a token and the figure */
    assert_near(r.decode_mean, 10);

    made_decode(s, 40);
    mw_rates(s, &r);
    assert_near(r.prefill, 250);
    assert_near(r.first_s, 8.192);
    assert_true(r.overlap >= 0 && r.overlap <= 1);
}

/* Three passes of a second make four tokens each: the newest tokens came at once, and the rate
 * is that of complete passes. */
static void accepted_drafts_share_the_time_of_their_pass(void **state)
{
    struct mw_sample *s = *state;
    struct mw_rates r;

    tokens(s, 13, 60, 0, GIB);
    for (uint64_t i = 1; i < 13; i++) {
        struct mw_token *k = &s->recent[i % MW_RECENT];
        uint64_t pass = (i + 3) / 4;

        k->t_ns = s->recent[0].t_ns + pass * 1000 * MS + (i - 1) % 4;
        k->wall_ns = 1000 * MS;
        k->stall_ns = 600 * MS;
        if (i % 4 != 1)
            k->wall_ns = k->stall_ns = k->compute_ns = k->bytes_pass = k->n_col = 0;
    }
    mw_rates(s, &r);
    assert_near(r.decode_last, 4);
    assert_int_equal(r.n_token, 12);
    assert_near(r.passes_per_token, 0.25);
    assert_near(r.wall_s, 0.25);
    assert_near(r.read_per_token, (double)GIB / 4);
    assert_near(r.stall_share, 0.6);
}

static void drafts_have_a_share_by_place_and_a_cost(void **state)
{
    /* 5 passes over none took 10 ms each; 4 over three took 12, 2 over one 11. */
    const struct mw_drafts d = { .passes = 11,
                                 .drafted = 14,
                                 .accepted = 9,
                                 .draft_ns = 13 * MS,
                                 .accepted_at = { 6, 2, 1 },
                                 .passes_over = { 5, 2, 0, 4 },
                                 .pass_ns = { 50 * MS, 22 * MS, 0, 48 * MS } },
                           none = { .passes = 7, .passes_over = { 7 }, .pass_ns = { 70 * MS } };
    struct mw_draft_rates r;

    (void)state;
    mw_draft_rates(&d, 130 * MS, &r);
    assert_near(r.tokens_per_pass, 20.0 / 11);
    assert_int_equal(r.depth, 3);
    assert_int_equal(r.usual, 3);
    assert_near(r.accepted_at[0], 1.0);
    assert_near(r.accepted_at[1], 0.5);
    assert_near(r.accepted_at[2], 0.25);
    assert_true(r.accepted_at[3] < 0);
    assert_near(r.cost[0], 1.0);
    assert_near(r.cost[1], 1.1);
    assert_true(r.cost[2] < 0);
    assert_near(r.cost[3], 1.2);
    assert_true(r.usual_cost < 0); /* of few passes */
    assert_near(r.drafter_share, 0.1);

    mw_draft_rates(&none, 70 * MS, &r);
    assert_int_equal(r.depth, 0);
    assert_near(r.tokens_per_pass, 1);
    assert_near(r.drafter_share, 0);
}

/* The first token comes from the prompt's pass, which does not predict later tokens. */
static void the_pass_of_the_prompt_is_not_a_token(void **state)
{
    struct mw_sample *s = *state;
    struct mw_rates r;

    tokens(s, 2, 70, 5, GIB);
    s->recent[0].wall_ns = 9000 * MS;
    mw_rates(s, &r);
    assert_int_equal(r.n_token, 1);
    assert_near(r.wall_s, 0.1);
    made_prefill(s, 512);
    mw_rates(s, &r);
    assert_int_equal(r.n_token, 0);
    assert_true(r.wall_s < 0 && r.token_s < 0);
    assert_near(r.stall_share, 160.0 / 1024);
}

/* All weights are in memory.  A token waits for its row of the embedding table. */
static void no_more_memory_is_advised_if_only_rows_are_read(void **state)
{
    struct mw_sample *s = *state;

    tokens(s, 20, 60, 5, 8192);
    verdict_fill(s);
    assert_int_equal(s->verdict.binds, MW_BINDS_DISK);
    assert_string_equal(s->verdict.advice, "rows_only");
    assert_true(s->verdict.advice_to == 0);
}

static void lookups_bind_only_if_they_take_most_of_the_time(void **state)
{
    struct mw_sample *s = *state;

    tokens(s, 20, 40, 5, 8192);
    verdict_fill(s);
    assert_int_equal(s->verdict.binds, MW_BINDS_COMPUTE);
    assert_near(s->verdict.share, 0.55);
    tokens(s, 20, 40, 50, 8192);
    verdict_fill(s);
    assert_int_equal(s->verdict.binds, MW_BINDS_KV);
}

/* A thread had no processor in 45 of 100 ms. */
static void other_programs_are_not_called_arithmetic(void **state)
{
    struct mw_sample *s = *state;
    struct mw_rates r;

    tokens(s, 20, 10, 5, GIB);
    for (uint64_t i = 0; i < 20; i++)
        s->recent[i].wait_ns = 45 * MS;
    verdict_fill(s);
    assert_int_equal(s->verdict.binds, MW_BINDS_OTHERS);
    assert_near(s->verdict.share, 0.45);
    assert_string_equal(s->verdict.advice, "other_programs");
    assert_string_equal(mw_binds_name(s->verdict.binds), "others");
    assert_string_equal(mw_binds_label(s->verdict.binds), "others-bound");
    mw_rates(s, &r);
    assert_near(r.wait_share, 0.45);

    tokens(s, 20, 70, 5, GIB); /* the disk takes longer */
    for (uint64_t i = 0; i < 20; i++)
        s->recent[i].wait_ns = 20 * MS;
    verdict_fill(s);
    assert_int_equal(s->verdict.binds, MW_BINDS_DISK);
}

/* Waits are in the tokens, so nothing that happens later changes the shares of an answer. */
static void the_shares_of_an_answer_stay_when_the_machine_gets_busy(void **state)
{
    struct mw_sample *s = *state;
    struct mw_shares before;

    tokens(s, 20, 0, 5, 0);
    for (uint64_t i = 0; i < 20; i++)
        s->recent[i].wait_ns = 18 * MS;
    s->os.t_ns = 1;
    verdict_fill(s);
    assert_int_equal(s->verdict.binds, MW_BINDS_OTHERS);
    assert_near(s->verdict.share, 0.18);
    before = s->verdict.part;
    s->state = MW_IDLE;
    s->os.cpu_stolen.value = 4000;
    verdict_fill(s);
    assert_near(s->verdict.share, 0.18);
    assert_memory_equal(&before, &s->verdict.part, sizeof before);
}

/* 100 ms of a pass and 25 ms between two of them. */
static void the_time_between_passes_is_a_part_of_a_token(void **state)
{
    struct mw_sample *s = *state;

    tokens(s, 20, 50, 5, GIB);
    for (uint64_t i = 0; i < 20; i++)
        s->recent[i].sample_ns = 25 * MS;
    verdict_fill(s);
    assert_near(s->verdict.part.fixed, 0.2);
    assert_near(s->verdict.part.disk, 0.4);
    assert_near(s->verdict.share, 0.4);
}

int main(void)
{
#define with_a_sample(test) cmocka_unit_test_setup_teardown(test, make_sample, drop_sample)
    const struct CMUnitTest tests[] = {
        with_a_sample(nothing_measured_binds_nothing),
        with_a_sample(stalls_are_the_share_of_the_disk),
        with_a_sample(long_contexts_are_bound_by_keys_and_values),
        with_a_sample(weights_in_memory_are_bound_by_bandwidth_or_arithmetic),
        with_a_sample(swapping_is_reported_before_everything_else),
        with_a_sample(faults_of_a_mapping_count_as_disk),
        with_a_sample(rates_are_those_of_the_newest_tokens),
        with_a_sample(no_more_memory_is_advised_if_only_rows_are_read),
        with_a_sample(lookups_bind_only_if_they_take_most_of_the_time),
        with_a_sample(other_programs_are_not_called_arithmetic),
        with_a_sample(the_shares_of_an_answer_stay_when_the_machine_gets_busy),
        with_a_sample(the_time_between_passes_is_a_part_of_a_token),
        with_a_sample(accepted_drafts_share_the_time_of_their_pass),
        cmocka_unit_test(drafts_have_a_share_by_place_and_a_cost),
        with_a_sample(the_pass_of_the_prompt_is_not_a_token),
    };

    return cmocka_run_group_tests_name("verdict", tests, NULL, NULL);
}
