/* The predicted cost of a prompt: chunks, streamed bytes, and the longer of disk and
 * arithmetic. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/session/prompt_cost.h"

/* 9 GB of weights, 3 GB for a prompt, a third of them in memory, 2 GB/s. */
static const struct cost_basis basis = {
    .chunk = 512,
    .prompt_bytes = 3000000000,
    .hot_bytes = 9000000000,
    .pinned_bytes = 3000000000,
    .disk_bytes_s = 2e9,
};

static void a_short_message_costs_one_pass(void **state)
{
    struct mw_cost c = { .n_token = 12 };

    (void)state;
    cost_estimate(&basis, &c);
    assert_int_equal(c.bytes, 6000000000);
    assert_int_equal((int)(c.seconds * 10), 30);
    assert_true(c.is_at_least); /* the speed of arithmetic is unknown */
}

static void chunks_but_the_last_read_the_prompts_part(void **state)
{
    struct mw_cost c = { .n_token = 1400 };

    (void)state;
    cost_estimate(&basis, &c);
    assert_int_equal(c.bytes / 1000000, 2 * 2000 + 6000);
    assert_int_equal((int)(c.seconds * 10), 50);
}

static void arithmetic_counts_if_it_takes_longer(void **state)
{
    struct cost_basis slow = basis;
    struct mw_cost c = { .n_token = 1000, .n_again = 1000 };

    (void)state;
    slow.compute_s = 0.05;
    cost_estimate(&slow, &c);
    assert_int_equal((int)c.seconds, 100);
    assert_false(c.is_at_least);
}

static void nothing_known_gives_no_time(void **state)
{
    struct cost_basis none = { .chunk = 512, .prompt_bytes = 1, .hot_bytes = 1 };
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
        cmocka_unit_test(arithmetic_counts_if_it_takes_longer),
        cmocka_unit_test(nothing_known_gives_no_time),
    };

    return cmocka_run_group_tests_name("cost", tests, NULL, NULL);
}
