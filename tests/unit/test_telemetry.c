/* The block of counters: values that are read together belong together, and no token is
 * lost. */
#include "config.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/telemetry/fields.h"
#include "engine/telemetry/rates.h"
#include "engine/telemetry/telemetry.h"

static int make_block(void **state)
{
    *state = calloc(1, sizeof(struct telemetry));
    return *state == NULL ? -1 : 0;
}

static int drop_block(void **state)
{
    free(*state);
    return 0;
}

/* A pass whose figures all follow from one number. */
static void finish_token(struct telemetry *t, uint64_t x)
{
    telemetry_begin(t);
    counter_set(&t->pass.wall_ns, 10 * x);
    counter_set(&t->pass.stall_ns, 7 * x);
    counter_set(&t->pass.compute_ns, 3 * x);
    counter_set(&t->pass.bytes_pass, 100 * x);
    telemetry_end(t);
    telemetry_token(t, x);
}

static void a_token_is_kept_with_the_pass_that_made_it(void **state)
{
    struct telemetry *t = *state;
    struct mw_sample *s = calloc(1, sizeof *s);

    telemetry_answer(t, 12);
    counter_set(&t->kv_tokens, 13);
    finish_token(t, 5);
    telemetry_sample(t, s);
    assert_int_equal(s->n_prompt, 12);
    assert_int_equal(s->n_decoded, 1);
    assert_int_equal(s->n_token, 1);
    assert_int_equal(s->recent[0].n, 1);
    assert_int_equal(s->recent[0].wall_ns, 50);
    assert_int_equal(s->recent[0].bytes_pass, 500);
    assert_int_equal(s->recent[0].sample_ns, 5);
    assert_int_equal(s->recent[0].kv_tokens, 13);
    assert_true(s->recent[0].t_ns == s->t_last_ns && s->t_first_ns == s->t_last_ns);
    assert_true(s->t_start_ns != 0 && s->t_start_ns <= s->t_first_ns);

    telemetry_answer(t, 3);
    telemetry_sample(t, s);
    assert_int_equal(s->n_decoded, 0);
    assert_int_equal(s->t_first_ns, 0);
    assert_int_equal(s->n_token, 1);
    free(s);
}

static void a_new_plan_forgets_the_rates_of_the_old_one(void **state)
{
    struct telemetry *t = *state;
    struct mw_sample *s = calloc(1, sizeof *s);
    struct mw_rates r;

    telemetry_answer(t, 1);
    for (uint64_t i = 1; i < 9; i++)
        finish_token(t, i);
    telemetry_sample(t, s);
    mw_rates(s, &r);
    assert_true(r.decode_last > 0 && r.stall_share > 0);
    telemetry_new_plan(t);
    telemetry_sample(t, s);
    mw_rates(s, &r);
    assert_true(r.decode_last < 0 && r.stall_share < 0);
    finish_token(t, 1);
    finish_token(t, 1);
    telemetry_sample(t, s);
    mw_rates(s, &r);
    assert_true(r.decode_last > 0 && r.stall_share > 0);
    free(s);
}

static void a_sample_knows_the_last_tokens_in_order(void **state)
{
    struct telemetry *t = *state;
    struct mw_sample *s = calloc(1, sizeof *s);

    telemetry_answer(t, 1);
    for (uint64_t i = 0; i < 3 * MW_RECENT + 7; i++)
        finish_token(t, i);
    telemetry_sample(t, s);
    assert_int_equal(s->n_token, 3 * MW_RECENT + 7);
    for (uint64_t i = s->n_token - MW_RECENT; i < s->n_token; i++) {
        assert_int_equal(s->recent[i % MW_RECENT].n, i + 1);
        assert_int_equal(s->recent[i % MW_RECENT].wall_ns, 10 * i);
    }
    free(s);
}

enum { N_TOKEN = 200000 };

/* Fails unless the number at p is set. */
static void assert_set(const void *p, size_t bytes, const struct field *f)
{
    uint64_t n = 0;

    memcpy(&n, p, bytes);
    if (n == 0)
        fail_msg("\"%s\" of \"%s\" does not get from the counters into the sample", f->key,
                 f->group);
}

/* All counters are set to one value, so a field that nobody copies is 0. */
static void every_counter_gets_into_a_sample(void **state)
{
    struct telemetry *t = *state;
    struct mw_sample *s = calloc(1, sizeof *s);
    struct mw_run run;

    memset((void *)t, 2, sizeof *t);
    counter_set(&t->budget_signal, MW_SIGNAL_PRESSURE);
    counter_set(&t->budget_next, MW_ROW_EXPERTS);
    memset(&run, 2, sizeof run);
    run.n_layer = 1;
    telemetry_set_run(t, &run, NULL);
    telemetry_token(t, 2);
    telemetry_sample(t, s);
    for (size_t i = 0; i < n_sample_fields; i++) {
        const struct field *f = &sample_fields[i];

        /* watch.h fills these two groups. */
        if (strcmp(f->group, "os") != 0 && strcmp(f->group, "verdict") != 0)
            assert_set((const char *)s + f->offset, sizeof(uint32_t), f);
    }
    for (size_t i = 0; i < n_token_fields; i++)
        assert_set((const char *)&s->recent[(s->n_token - 1) % MW_RECENT] +
                       token_fields[i].offset,
                   sizeof(uint64_t), &token_fields[i]);
    for (size_t i = 0; i < n_layer_fields; i++)
        assert_set((const char *)&s->layer[0] + layer_fields[i].offset, 1, &layer_fields[i]);
    free(s);
}

static void *decode(void *block)
{
    telemetry_answer(block, 1);
    for (uint64_t i = 1; i <= N_TOKEN; i++)
        finish_token(block, i);
    return NULL;
}

/* The reader copies while the writer writes.  Each copy must be of one pass. */
static void a_reader_never_sees_half_a_token(void **state)
{
    struct telemetry *t = *state;
    struct mw_sample *s = calloc(1, sizeof *s);
    pthread_t writer;
    uint64_t n_wrong = 0;

    assert_int_equal(pthread_create(&writer, NULL, decode, t), 0);
    do {
        telemetry_sample(t, s);
        n_wrong += s->pass.stall_ns * 10 != s->pass.wall_ns * 7;
        for (uint64_t i = s->n_token > MW_RECENT ? s->n_token - MW_RECENT : 0; i < s->n_token;
             i++) {
            const struct mw_token *k = &s->recent[i % MW_RECENT];

            n_wrong += k->n != i + 1 || k->wall_ns != 10 * k->n || k->bytes_pass != 100 * k->n;
        }
    } while (s->n_token < N_TOKEN);
    pthread_join(writer, NULL);
    assert_int_equal(n_wrong, 0);
    free(s);
}

int main(void)
{
#define with_a_block(test) cmocka_unit_test_setup_teardown(test, make_block, drop_block)
    const struct CMUnitTest tests[] = {
        with_a_block(a_token_is_kept_with_the_pass_that_made_it),
        with_a_block(a_new_plan_forgets_the_rates_of_the_old_one),
        with_a_block(a_sample_knows_the_last_tokens_in_order),
        with_a_block(every_counter_gets_into_a_sample),
        with_a_block(a_reader_never_sees_half_a_token),
    };

    return cmocka_run_group_tests_name("telemetry", tests, NULL, NULL);
}
