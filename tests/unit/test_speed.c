/* Predicted times: the terms of a pass, by hand. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/base/units.h"
#include "engine/plan/advice.h"
#include "engine/plan/speed.h"
#include "engine/stream/shape.h"
#include "tests/lib/plan_example.h"

/* cmocka's own macro compares floats. */
static void assert_near(double got, double want)
{
    assert_true(got > want - 1e-9 && got < want + 1e-9);
}

/* The time of a token at an empty context. */
static double token_s(const struct plan_input *in, double streamed_share, double missed_share,
                      bool keeps_rows, struct plan_time *t)
{
    struct plan_pass pass = { .streamed_share = streamed_share,
                              .missed_share = missed_share,
                              .keeps_rows = keeps_rows };

    return speed_token(in, &pass, 1, t);
}

static struct plan_input weights_alone(void)
{
    struct plan_input in = plan_example();

    in.resident_bytes = 0;
    in.kv_far_bytes[0] = in.kv_near_bytes[1] = 0;
    return in;
}

static void lookups_and_experts_take_time(void **state)
{
    struct plan_input in = weights_alone();
    struct err e = ERR_INIT;
    struct plan_time t;
    struct plan p;

    (void)state;
    in.lookup_s = 0.001;
    in.n_lookup = 2;
    in.costs.wake_s = 0.0001;
    assert_near(token_s(&in, 0, 0, false, &t), 4.531 / 15 + 0.001 + 3 * 0.0001);
    assert_near(token_s(&in, 0, 0, true, &t), 4.531 / 15);
    assert_near(token_s(&in, 3.0 / 4.531, 0, false, &t), 2); /* while blocks are read */
    in.lookup_s = 0;
    in.n_expert_layer = 8;
    in.n_expert_used = 2;
    in.experts_token_bytes = 150000000;
    in.weights[0].expert_bytes[PLAN_REST] = 150e6;
    assert_near(token_s(&in, 0, 0, false, &t), 4.681 / 15);
    assert_near(token_s(&in, 0, 1, false, &t), 4.531 / 15 + 0.1);
    assert_int_equal(t.binds, MW_BINDS_DISK); /* 22 % of the time are stalls */
    assert_near(token_s(&in, 3.0 / 4.531, 1, false, &t), 2.1);
    in.experts_token_bytes = 1500000000;
    in.weights[0].expert_bytes[PLAN_REST] = 1500e6;
    assert_near(token_s(&in, 0, 1, false, &t), 4.531 / 15 + 1);
    assert_int_equal(t.binds, MW_BINDS_DISK);
    in.lookup_s = 0.0005; /* the first read of each layer */
    in.n_moe_layer = 10;
    assert_near(token_s(&in, 0, 1, true, &t),
                4.531 / 15 + 0.1 + 1.005 - 10 * (1 - exp(-2)) * 0.1 / 10);
    /* Few misses overlap with the experts of few layers: 0.2 experts of each layer are missed. */
    in.lookup_s = 0;
    assert_near(token_s(&in, 0, 0.1, true, &t),
                4.531 / 15 + 0.1 + 0.1 - 10 * (1 - exp(-0.2)) * 0.1 / 10);
    assert_near(t.missing_layers, 10 * (1 - exp(-0.2)));
    in.n_moe_layer = 0;
    in.budget_bytes = 8 * GIB;
    in.expert_slot_bytes = GIB;
    in.n_expert_min = 1;
    in.n_expert_all = 8;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_int_equal(p.n_expert, 3);
    assert_false(p.hits_measured);
    assert_near(p.expert_hits, 0.375);
    assert_int_equal(p.streamed_bytes, 937500000);
    assert_near(p.decode_tps, 1 / (4.531 / 15 + 0.625));
    /* Half of the experts are three times as popular as the others; 3 of 8 are 6 parts. */
    in.expert_use.observed_s = 1;
    for (int i = 0; i < MW_USE_PARTS; i++)
        in.expert_use.share[i] = i < 8 ? 3.0 / 32 : 1.0 / 32;
    assert_int_equal(plan_make(&in, &p, &e), 0);
    assert_true(p.hits_measured);
    assert_near(p.expert_hits, 18.0 / 32);
    assert_int_equal(p.streamed_bytes, 656250000);
    in.disk_bytes_s = 0;
    assert_near(token_s(&in, 0, 1, false, &t), 0);
}

static void pinned_blocks_of_a_product_are_one_round(void **state)
{
    const struct plan_steps s = { .n_round = 10, .n_product = 4, .n_block = 100 };

    (void)state;
    assert_near(speed_rounds(&s, 0), 10 + 4);
    assert_near(speed_rounds(&s, 0.1), 10 + 10 + 14); /* a run before each, and at the end */
    assert_near(speed_rounds(&s, 0.9), 10 + 90 + 10);
    assert_near(speed_rounds(&s, 1), 10 + 100);
}

static void the_larger_term_binds(void **state)
{
    struct plan_input in = weights_alone();
    struct plan_pass pass = { .chunk = 50 };
    struct plan_time t;

    (void)state;
    assert_near(token_s(&in, 3.0 / 4.531, 0, false, &t), 2);
    assert_int_equal(t.binds, MW_BINDS_DISK);
    assert_near(token_s(&in, 0, 0, false, &t), 4.531 / 15);
    assert_int_equal(t.binds, MW_BINDS_MEMORY);
    in.kv_far_bytes[PLAN_REST] = 9e6;
    assert_near(speed_token(&in, &pass, 1000, &t), 13.531 / 15);
    assert_int_equal(t.binds, MW_BINDS_KV);
    in.kv_far_bytes[PLAN_REST] = 0;
    in.steps[PLAN_PROMPT].n_round = 1000;
    in.costs.round_s = 0.001;
    assert_near(token_s(&in, 0, 0, true, &t), 1 + 4.531 / 15);
    assert_int_equal(t.binds, MW_BINDS_COMPUTE);
    in.costs.round_s = 0;
    in.disk_bytes_s = 0;
    assert_near(token_s(&in, 0.5, 0, false, &t), 0);
    assert_true(token_s(&in, 0, 0, false, &t) > 0);
    in.memory_bytes_s = 0;
    assert_near(token_s(&in, 0, 0, false, &t), 0);
}

/*
 * A layer of 2 GB that every token runs through, and 1 GB that only the last one does.  By
 * hand: one column takes 2 GB / 10 GB/s = 0.2 s, 64 columns 64 * 2 GFLOP / 100 GFLOP/s = 1.28
 * s, and each further column (1.28 - 0.2) / 63 s.
 */
static void a_prompt_grows_with_its_columns(void **state)
{
    struct plan_input in = weights_alone();
    struct plan_pass pass = { .chunk = 64, .keeps_rows = true };
    double more_s = (1.28 - 0.2) / 63;
    struct plan_time t;

    (void)state;
    in.hot_bytes = 3000000000;
    in.prompt_bytes = 2000000000;
    in.weights[0] = (struct plan_weights){ .type = "Q8_0",
                                           .token_bytes = { 2e9, 1e9 },
                                           .token_flops = 2e9,
                                           .column_bytes_s = 10e9,
                                           .chunk_flops_s = 100e9 };
    assert_near(speed_chunk(&in, &pass, 0, 1, false, &t), 0.2);
    assert_near(speed_chunk(&in, &pass, 0, 16, false, &t), 0.2 + 15 * more_s);
    assert_near(speed_chunk(&in, &pass, 0, 64, false, &t), 1.28);
    assert_near(speed_chunk(&in, &pass, 0, 64, true, &t), 1.28 + 0.1);
    assert_near(speed_prompt(&in, &pass, 0, 80), 1.28 + 0.2 + 15 * more_s + 0.1);
    /* Half of it is streamed at 1.5 GB/s. */
    pass.streamed_share = 0.5;
    assert_near(speed_chunk(&in, &pass, 0, 16, true, &t), 1 / 1.5 + 0.5 / 1.5);

    /* Attention: with all threads, more the longer the context. */
    pass.streamed_share = 0;
    in.n_thread = 2;
    in.n_near = 32;
    in.costs.load_s = 1e-6;
    in.costs.mac_s = 1e-7;
    in.steps[PLAN_PROMPT] = (struct plan_steps){ .far_load = 2, .far_mac = 10, .near_load = 4 };
    assert_near(speed_chunk(&in, &pass, 100, 64, false, &t),
                1.28 + 64 * (132.5 * (2e-6 + 1e-6) + 32 * 4e-6) / 2);
    /* Tokens 1 to 31 see that many positions in the window, the other 33 see 32. */
    assert_near(speed_chunk(&in, &pass, 0, 64, false, &t) - 1.28 - 64 * 32.5 * 3e-6 / 2,
                (496 + 33 * 32) * 4e-6 / 2);
    in.costs = (struct plan_costs){ .value_s = 1e-6 };
    in.steps[PLAN_PROMPT] = (struct plan_steps){ .n_value = 1000 };
    assert_near(speed_chunk(&in, &pass, 0, 64, false, &t), 1.28 + 64 * 0.001 / 2);
    assert_near(speed_chunk(&in, &pass, 0, 1, false, &t), 0.2 + 0.001); /* one thread */
}

/* With 8 experts and 2 per token, 3 tokens use 8 * (1 - 0.75^3) = 4.625 in all. */
static void a_chunk_reads_each_expert_once(void **state)
{
    struct plan_input in = weights_alone();
    struct plan_pass pass = { .chunk = 64, .keeps_rows = true };
    struct plan_time t;

    (void)state;
    in.memory_bytes_s = 20e9;
    in.n_expert_layer = 8;
    in.n_expert_used = 2;
    assert_near(speed_expert_share(&in, 1), 1);
    assert_near(speed_expert_share(&in, 3), 4.625 / 2);
    assert_true(speed_expert_share(&in, 1000) <= 4);
    in.experts_token_bytes = 1000000000;
    in.hot_bytes = in.prompt_bytes = 0;
    in.weights[0] = (struct plan_weights){ .type = "Q4_0",
                                           .expert_bytes = { 1e9, 0 },
                                           .expert_flops = 4e9,
                                           .column_bytes_s = 20e9,
                                           .chunk_flops_s = 320e9 };
    /* One column of what a token uses takes 0.05 s, 64 take 0.8 s. */
    assert_near(speed_chunk(&in, &pass, 0, 3, false, &t),
                2.3125 * 0.05 + (3 - 2.3125) * (0.8 - 0.05) / 63);
    pass.missed_share = 0.5;
    assert_near(speed_chunk(&in, &pass, 0, 3, false, &t), 2.3125 * 0.5 / 1.5);
    assert_int_equal(t.binds, MW_BINDS_DISK);
    /* Cold, the first 3 tokens miss all they use, and 3 more those that are new: 0.9756 of the
     * 3.2881 that 6 tokens use. */
    pass.starts_cold = true;
    assert_near(speed_chunk(&in, &pass, 0, 3, false, &t), 2.3125 / 1.5);
    assert_near(speed_chunk(&in, &pass, 3, 3, false, &t),
                (0.975585938 + (2.3125 - 0.975585938) * 0.5) / 1.5);
}

/* 4 of 8 experts are popular: each is chosen with 3/8 and each of the others with
 * 1/8, so 3 tokens use 4 * (1 - (5/8)^3) + 4 * (1 - (7/8)^3) = 4.34375 of them. */
static void popular_experts_are_in_memory(void **state)
{
    struct plan_input in = weights_alone();
    struct plan_pass pass = { .missed_share = 0.5 };

    (void)state;
    in.n_expert_layer = 8;
    in.n_expert_used = 2;
    in.expert_use.observed_s = 1;
    for (int i = 0; i < MW_USE_PARTS; i++)
        in.expert_use.share[i] = i < 8 ? 3.0 / 32 : 1.0 / 32;
    assert_near(speed_use(&in, 0), 3.0 / 8);
    assert_near(speed_expert_share(&in, 1), 1);
    assert_near(speed_expert_share(&in, 3), 4.34375 / 2);
    /* The half in memory has the popular ones. */
    assert_near(speed_missed_experts(&in, &pass, 0, 1), 1.0 / 4);
    assert_near(speed_missed_experts(&in, &pass, 0, 3), 4 * (1 - 0.669921875) / 2);
    /* Cold: those too that the 3 tokens before did not choose. */
    pass.starts_cold = true;
    assert_near(speed_missed_experts(&in, &pass, 3, 1), 1.0 / 4 + 4 * 0.244140625 * 3 / 8 / 2);
    in.expert_use.share[0] = 1; /* never more often than always */
    assert_near(speed_use(&in, 0), 1);
}

/* No kernel is more than a quarter faster than the memory that it reads from. */
static void a_rate_above_that_of_memory_is_a_mistake(void **state)
{
    struct plan_input in = weights_alone();

    (void)state;
    in.memory_bytes_s = 10e9;
    assert_near(speed_column_rate(&in, 12e9) / 1e9, 12);
    assert_near(speed_column_rate(&in, 200e9) / 1e9, 12.5);
    assert_near(speed_column_rate(&in, 0) / 1e9, 10);
}

/* 4 GB of Q4_0 at 20 GB/s, 1 GB of Q6_K at 10 GB/s, and 0.1 GB of types that were not measured
 * and are taken to be as fast as the first. */
static void each_weight_type_has_its_rate(void **state)
{
    struct plan_input in = weights_alone();
    struct plan_pass pass = { .keeps_rows = true };
    struct plan_time t;

    (void)state;
    in.memory_bytes_s = 40e9;
    in.n_weights = 3;
    in.weights[0] = (struct plan_weights){ .type = "Q4_0",
                                           .token_bytes = { 4e9 },
                                           .token_flops = 8e9,
                                           .column_bytes_s = 20e9,
                                           .chunk_flops_s = 100e9 };
    in.weights[1] = (struct plan_weights){ .type = "Q6_K",
                                           .token_bytes = { 1e9 },
                                           .token_flops = 1e9,
                                           .column_bytes_s = 10e9,
                                           .chunk_flops_s = 50e9 };
    in.weights[2] = (struct plan_weights){ .token_bytes = { 0.1e9 }, .token_flops = 0.2e9 };
    (void)token_s(&in, 0, 0, true, &t);
    assert_near(t.products_s, 0.2 + 0.1 + 0.005);
    assert_near(t.wall_s, 0.305);
    assert_near(speed_chunk(&in, &pass, 0, 64, false, &t), 64 * (0.08 + 0.02 + 0.002));
    assert_near(speed_prompt_token(&in), 0.102);
    in.weights[1].speedup = 2; /* OpenBLAS */
    assert_near(speed_prompt_token(&in), 0.08 + 0.01 + 0.002);

    /* Memory is the upper bound of a type that was not measured; prompts have none. */
    in.weights[1].column_bytes_s = in.weights[1].chunk_flops_s = 0;
    (void)token_s(&in, 0, 0, true, &t);
    assert_near(t.products_s, 0.2 + 0.025 + 0.005);
    assert_near(speed_prompt_token(&in), 0);
}

/* 4 GB, half of it streamed: 0.4 s of memory, and 2 s of the disk. */
static void reading_and_computing_slow_each_other(void **state)
{
    struct plan_input in = weights_alone();
    struct plan_pass pass = { .keeps_rows = true, .streamed_share = 0.5 };
    struct plan_time t;

    (void)state;
    in.memory_bytes_s = 10e9;
    in.disk_bytes_s = 1e9;
    in.hot_bytes = in.prompt_bytes = 4000000000;
    in.weights[0] = (struct plan_weights){
        .type = "Q4_0", .token_bytes = { 4e9 }, .token_flops = 4e9, .chunk_flops_s = 100e9
    };
    assert_near(speed_token(&in, &pass, 1, &t), 2);
    in.costs.contention = 0.25;
    assert_near(speed_token(&in, &pass, 1, &t), 2 + 0.25 * 0.4);
    /* 64 tokens take 2.56 s, of which 0.4 s are for reading the weights once. */
    assert_near(speed_chunk(&in, &pass, 0, 64, false, &t), 2.56 + 0.25 * 0.4);
    /* Nothing is read from disk. */
    pass.streamed_share = 0;
    assert_near(speed_token(&in, &pass, 1, &t), 0.4);
}

/* 4 GB in 1000 blocks: 2 s of the disk, 1 s of products, 0.1 s of latencies, 0.04 s to wake two
 * threads for each block. */
static void few_slots_keep_disk_and_processors_waiting(void **state)
{
    struct plan_input in = weights_alone();
    struct plan_pass pass = { .keeps_rows = true, .streamed_share = 1 };
    struct plan_time t;

    (void)state;
    for (uint32_t n = 2; n <= STREAM_SLOTS_MAX; n++)
        assert_int_equal(SPEED_FLYING(n), shape_flying(n));
    in.memory_bytes_s = 10e9;
    in.disk_bytes_s = 2e9;
    in.lookup_s = 0.0001;
    in.costs.wake_s = 0.00002;
    in.hot_bytes = in.prompt_bytes = 4000000000;
    in.weights[0] = (struct plan_weights){
        .type = "Q4_0", .token_bytes = { 4e9 }, .token_flops = 4e9, .column_bytes_s = 4e9
    };
    in.steps[PLAN_PROMPT] = (struct plan_steps){ .n_block = 1000 };
    assert_near(speed_token(&in, &pass, 1, &t), 2);
    pass.n_slot = 12;
    assert_near(speed_token(&in, &pass, 1, &t), 2);
    in.weights[0].column_bytes_s = 2e9; /* as long as the disk */
    pass.n_slot = 2;
    assert_near(speed_token(&in, &pass, 1, &t), (2 + 0.1 + 0.04 + 2) / 1.9);
    assert_near(t.part.disk, 4.14 / 1.9 - 2);
    in.costs.wake_s = 0;
    in.lookup_s = 0.003;
    in.weights[0].column_bytes_s = 10e9;
    pass.n_slot = 3; /* two reads in flight */
    assert_near(speed_token(&in, &pass, 1, &t), (2 + 3) / 2.0);
    pass.streamed_share = 0;
    assert_near(speed_token(&in, &pass, 1, &t), 0.4);
}

/* A token of 1 s has 0.6 s of stalls and 0.2 s of products of 4 GB, which may have come from the
 * processor's cache.  Once they are pinned, they come from memory, so the rate of memory is a bound
 * for what is promised.  A rate from a bad moment must not silence all advice: with it, half of
 * the gain is promised still. */
static void a_promise_counts_memory_but_no_bad_moment(void **state)
{
    const struct plan_time now = { .wall_s = 1,
                                   .weight_bytes = 4e9,
                                   .part = { .disk = 0.6, .memory = 0.1, .arithmetic = 0.1 } };
    struct plan_input in = weights_alone();

    (void)state;
    in.memory_bytes_s = 40e9; /* fast enough */
    assert_near(advice_least(&in, &now), 0.4);
    in.memory_bytes_s = 10e9;
    assert_near(advice_least(&in, &now), 0.4 + (0.4 - 0.2));
    in.memory_bytes_s = 1e9; /* wrong */
    assert_near(advice_least(&in, &now), 0.4 + 0.3);
    in.memory_bytes_s = 0; /* unknown */
    assert_near(advice_least(&in, &now), 0.4);
}

/* A disk in memory was read at 9 GB/s by all processors together, which took 0.24 s of processor
 * time for a GB.  A token that reads a GB is slowed by 0.11 s, not by 0.24. */
static void reads_take_no_longer_than_the_disk(void **state)
{
    struct plan_input in = weights_alone();
    struct plan_pass pass = { .keeps_rows = true, .streamed_share = 1 };
    struct plan_time t;

    (void)state;
    in.disk_bytes_s = 9e9;
    in.hot_bytes = in.prompt_bytes = 1000000000;
    in.costs.read_cpu_s = 2.4e-10;
    (void)speed_token(&in, &pass, 1, &t);
    assert_near(t.reading_s, 1 / 9.0);
    in.costs.read_cpu_s = 2e-11;
    (void)speed_token(&in, &pass, 1, &t);
    assert_near(t.reading_s, 0.02);
}

/* 4 GB of BF16 of which packing saves a quarter.  A quarter is streamed, as in the file: 1 GB at
 * 10 GB/s, and 64 columns at 100 Gflop/s.  The rest is 2.25 GB at 9 GB/s and 75 Gflop/s. */
static void packed_weights_have_rates_of_their_own(void **state)
{
    struct plan_input in = weights_alone();
    struct plan_pass pass = { .keeps_rows = true, .streamed_share = 0.25 };
    struct plan_time t;

    (void)state;
    in.memory_bytes_s = 10e9;
    in.weights[0] = (struct plan_weights){ .type = "BF16",
                                           .token_bytes = { 4e9 },
                                           .token_flops = 4e9,
                                           .column_bytes_s = 10e9,
                                           .chunk_flops_s = 100e9,
                                           .saved_share = 0.25,
                                           .laid_type = MW_RATE_PACKED,
                                           .laid_column_bytes_s = 9e9,
                                           .laid_chunk_flops_s = 75e9 };
    (void)speed_token(&in, &pass, 1, &t);
    assert_near(t.products_s, 0.1 + 0.25);
    (void)speed_chunk(&in, &pass, 0, 64, false, &t);
    assert_near(t.products_s, 64 * (0.01 + 0.04));
    /* Rates that were not measured: as fast as plain ones. */
    in.weights[0].laid_column_bytes_s = in.weights[0].laid_chunk_flops_s = 0;
    (void)speed_token(&in, &pass, 1, &t);
    assert_near(t.products_s, 0.1 + 0.225);
    (void)speed_chunk(&in, &pass, 0, 64, false, &t);
    assert_near(t.products_s, 64 * 0.04);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lookups_and_experts_take_time),
        cmocka_unit_test(pinned_blocks_of_a_product_are_one_round),
        cmocka_unit_test(the_larger_term_binds),
        cmocka_unit_test(a_prompt_grows_with_its_columns),
        cmocka_unit_test(a_chunk_reads_each_expert_once),
        cmocka_unit_test(popular_experts_are_in_memory),
        cmocka_unit_test(a_rate_above_that_of_memory_is_a_mistake),
        cmocka_unit_test(each_weight_type_has_its_rate),
        cmocka_unit_test(packed_weights_have_rates_of_their_own),
        cmocka_unit_test(reading_and_computing_slow_each_other),
        cmocka_unit_test(reads_take_no_longer_than_the_disk),
        cmocka_unit_test(a_promise_counts_memory_but_no_bad_moment),
        cmocka_unit_test(few_slots_keep_disk_and_processors_waiting),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
