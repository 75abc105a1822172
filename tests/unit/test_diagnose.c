/* Predictions, bounds and proposals of a model whose tokens were measured. */
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
#include "engine/session/anchors.h"
#include "tests/lib/calls.h"
#include "tests/lib/fail_with.h"

#define MODEL   "gemma4-tiny.gguf"
#define N_TOKEN 24
#define TOKEN_S 0.004 /* of reading */

static struct mw_model *model;

/* Limits as of a busy moment: all is slower than it is, but for the disk. */
static struct mw_limits bad_limits(const struct mw_options *o)
{
    struct mw_limits l = { .disk_bytes_s = 20e9, .memory_bytes_s = 1e8, .measured_s = 1 };

    mw_rates_list(model, o, &l);
    for (uint32_t i = 0; i < l.n_rate; i++) {
        l.rate[i].column_bytes_s = 1e8;
        l.rate[i].chunk_flops_s = 1e8;
        l.rate[i].measured_s = 1;
    }
    return l;
}

static int open_all(void **state)
{
    const struct mw_options o = small_options(256);
    struct mw_limits l;

    (void)state;
    model = open_model(MODEL);
    l = bad_limits(&o);
    mw_model_set_limits(model, &l);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    mw_model_close(model);
    return 0;
}

/* A budget that pins little, and a disk that is the bound. */
static struct mw_options slow_disk(void)
{
    struct mw_options o = small_options(256);
    struct mw_model_info info;

    mw_model_info(model, &info);
    o.memory_bytes = smallest_budget(model, &o);
    o.disk_rate = (uint64_t)((double)info.hot_bytes / TOKEN_S);
    return o;
}

/* Decode tokens, one by one. */
static struct mw_session *decode(const struct mw_options *o)
{
    struct mw_session *s = open_session(model, o);
    const uint32_t prompt[] = { 2, 3, 4 };

    eval(s, prompt, 3);
    for (uint32_t i = 0; i < N_TOKEN; i++)
        eval(s, &(const uint32_t){ 5 + i }, 1);
    return s;
}

/* Predicted seconds of a token where the measured ones were. */
static double predicted(const struct mw_options *o)
{
    struct plan_anchor a;
    struct plan_outlook outlook;
    struct err e = ERR_INIT;

    mw_model_anchor(model, &a);
    if (mw_plan_outlook(model, o, &(struct plan_run){ (uint32_t)a.n_seen, 0, 1 }, &outlook,
                        &e) != 0)
        fail_with(&e);
    return outlook.token.wall_s;
}

static void tokens_are_the_prediction(void **state)
{
    struct mw_options o = slow_disk(), other;
    struct mw_limits l;
    struct plan_anchor a;

    (void)state;
    mw_model_anchor(model, &a);
    assert_true(a.measured_s == 0);
    mw_session_close(decode(&o));
    mw_model_anchor(model, &a);
    assert_true(a.measured_s > 0 && a.n_token >= ANCHOR_TOKENS);
    assert_true(a.stall_s > 0.1 * a.token_s);
    assert_true(fabs(predicted(&o) / a.token_s - 1) < 0.02);
    /* New limits change nothing about what was measured. */
    l = bad_limits(&o);
    l.disk_bytes_s = 1e9;
    l.memory_bytes_s *= 30;
    mw_model_set_limits(model, &l);
    assert_true(fabs(predicted(&o) / a.token_s - 1) < 0.02);
    /* More memory is not slower, though the limits say that computing takes seconds. */
    other = o;
    other.memory_bytes = 128 * MIB;
    assert_true(predicted(&other) < a.token_s);
    /* Other threads have not been measured. */
    other = o;
    other.n_thread = 1;
    assert_true(fabs(predicted(&other) / a.token_s - 1) > 0.02);
    /* A later run begins with it. */
    mw_model_close(model);
    open_all(state);
    mw_model_set_anchor(model, &a);
    assert_true(fabs(predicted(&o) / a.token_s - 1) < 0.02);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tokens_are_the_prediction, open_all, close_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
