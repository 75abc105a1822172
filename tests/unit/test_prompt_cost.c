/* The predicted cost of a prompt: its bytes, and the time of the plan at the pace of the last
 * one. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/session/prompt_cost.h"

/* 9 GB of weights, 3 GB for a prompt, a third of them in memory, 2 GB/s. */
static struct cost_basis made(void)
{
    return (struct cost_basis){ .in = { .prompt_bytes = 3000000000,
                                        .hot_bytes = 9000000000,
                                        .n_thread = 2,
                                        .disk_bytes_s = 2e9 },
                                .pass = { .streamed_share = 2.0 / 3, .chunk = 512 } };
}

/* With arithmetic: 20 ms of it for each token of a chunk of 64, which reads 3 GB of weights. */
static struct cost_basis computed(void)
{
    struct cost_basis b = made();

    b.in.memory_bytes_s = 30e9;
    b.in.n_weights = 1;
    b.in.weights[0] = (struct plan_weights){ .type = "Q4_0",
                                             .token_bytes = { 3e9, 6e9 },
                                             .token_flops = 1e10,
                                             .column_bytes_s = 30e9,
                                             .chunk_flops_s = 5e11 };
    return b;
}

static void a_short_message_costs_one_pass(void **state)
{
    struct cost_basis b = made();
    struct mw_cost c = { .n_token = 12 };

    (void)state;
    cost_estimate(&b, &c);
    assert_int_equal(c.bytes / 1000, 6000000);
    assert_int_equal((int)(c.seconds * 10 + 0.5), 30);
    assert_true(c.is_at_least); /* the speed of arithmetic is unknown */
}

static void chunks_but_the_last_read_the_prompts_part(void **state)
{
    struct cost_basis b = made();
    struct mw_cost c = { .n_token = 1400 };

    (void)state;
    cost_estimate(&b, &c);
    assert_int_equal(c.bytes / 1000000, 2 * 2000 + 6000);
    assert_int_equal((int)(c.seconds * 10 + 0.5), 50);
}

/* The first of two chunks reads pages 2 and 3, the second one 2 to 5. */
static void each_chunk_reads_the_pages_before_it(void **state)
{
    struct cost_basis b = made();
    struct mw_cost in_memory = { .n_token = 1024 }, c = in_memory;

    (void)state;
    b.n_before = 1024;
    cost_estimate(&b, &in_memory);
    b.in.kv_page_tokens = 256;
    b.in.n_kv_class = 1;
    b.in.kv_class[0] = (struct plan_kv_class){ .n_reader = 1, .read_bytes = { 1000000, 0 } };
    b.pass.has_kv_disk = true;
    b.pass.kv_keep[0] = 512;
    cost_estimate(&b, &c);
    assert_int_equal(c.bytes - in_memory.bytes, 6000000);
}

/* Computing takes longer than reading 2 GB (1 s): the sum is that of the plan. */
static void the_time_is_that_of_the_plan(void **state)
{
    struct cost_basis b = computed();
    struct mw_cost c = { .n_token = 1000, .n_again = 1000 };

    (void)state;
    b.n_before = 100;
    cost_estimate(&b, &c);
    assert_true(c.seconds > 39 && c.seconds < 41);
    assert_true(c.seconds - speed_prompt(&b.in, &b.pass, 100, 2000) < 1e-9);
    assert_false(c.is_at_least);
}

/* Now 40 ms were measured for a token, twice as long as expected.  Reading is not slower. */
static void a_measured_pace_scales_the_arithmetic(void **state)
{
    struct cost_basis b = computed();
    struct mw_cost c = { .n_token = 512 }, slow = { .n_token = 512 };

    (void)state;
    cost_estimate(&b, &c);
    b.pace_s = 2 * speed_prompt_token(&b.in);
    cost_estimate(&b, &slow);
    assert_true(slow.seconds > 1.6 * c.seconds && slow.seconds < 2 * c.seconds);
    assert_true(slow.bytes == c.bytes);
}

static void nothing_known_gives_no_time(void **state)
{
    struct cost_basis none = { .in = { .prompt_bytes = 1, .hot_bytes = 1 },
                               .pass = { .chunk = 512 } };
    struct mw_cost c = { .n_token = 1000 };

    (void)state;
    cost_estimate(&none, &c);
    assert_true(c.seconds <= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_message_costs_one_pass),
        cmocka_unit_test(chunks_but_the_last_read_the_prompts_part),
        cmocka_unit_test(each_chunk_reads_the_pages_before_it),
        cmocka_unit_test(the_time_is_that_of_the_plan),
        cmocka_unit_test(a_measured_pace_scales_the_arithmetic),
        cmocka_unit_test(nothing_known_gives_no_time),
    };

    return cmocka_run_group_tests_name("cost", tests, NULL, NULL);
}
