/* The work of a pass besides products, against values that were counted by hand. */
#include "config.h"

#include <sys/wait.h>

#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/model/steps.h"

#define N_LAYER 2

/* Two layers, of which a prompt needs the first, and keys and values of the second.  All sizes
 * are multiples of n. */
struct made {
    struct tensor_info tensor;
    struct model_desc *d;
};

static void set_mat(struct made *m, struct mat *mat, uint64_t n_row, uint64_t n_k)
{
    mat->tensor = &m->tensor;
    mat->n_row = (uint32_t)n_row;
    mat->n_k = (uint32_t)n_k;
}

static void make(struct made *m, enum tensor_type type, uint32_t n)
{
    m->tensor = (struct tensor_info){ .type = type };
    m->d = calloc(1, sizeof *m->d + N_LAYER * sizeof m->d->layers[0]);
    assert_non_null(m->d);
    m->d->n_layer = N_LAYER;
    m->d->n_embd = 8 * n;
    m->d->n_vocab = 10;
    m->d->last_kv_layer = N_LAYER - 1;
    set_mat(m, &m->d->head, 10, 8 * n);
    for (int l = 0; l < N_LAYER; l++) {
        struct layer_desc *layer = &m->d->layers[l];

        layer->owns_kv = layer->attends = true;
        layer->n_head = 4;
        layer->n_head_kv = 2;
        layer->head_dim_k = layer->head_dim_v = 4 * n;
        layer->n_ff = 16 * n;
        set_mat(m, &layer->k, 8 * n, 8 * n);
        set_mat(m, &layer->v, 8 * n, 8 * n);
        set_mat(m, &layer->q, 16 * n, 8 * n);
        set_mat(m, &layer->o, 8 * n, 16 * n);
        set_mat(m, &layer->gate, 16 * n, 8 * n);
        set_mat(m, &layer->up, 16 * n, 8 * n);
        set_mat(m, &layer->down, 8 * n, 16 * n);
    }
}

static void assert_same(double got, double want)
{
    if (fabs(got - want) > 1e-6)
        fail_msg("%g instead of %g", got, want);
}

/*
 * Values of a layer: the norm (8), rope of keys (8), storing keys and values (16); rope of
 * queries (16) and the output of attention (16); a norm and two sums (24).  Besides: the
 * embedding (16), and the last norm with three walks over the logits (38).  Weights: 896 values
 * in the prompt's part and 720 in the rest, so they have 56 and 45 of 101 blocks.
 */
static void steps_of_a_dense_model(void **state)
{
    struct plan_steps s[PLAN_PARTS];
    struct made m;

    (void)state;
    make(&m, TYPE_F32, 1);
    steps_count(m.d, false, 2, 101, s);
    assert_same(s[PLAN_PROMPT].n_value, 16 + 88 + 32);
    assert_same(s[PLAN_REST].n_value, 56 + 38);
    assert_same(s[PLAN_PROMPT].n_curve, 16);
    assert_same(s[PLAN_REST].n_curve, 16);
    assert_same(s[PLAN_PROMPT].n_round, 1);
    assert_same(s[PLAN_REST].n_round, 1);
    assert_same(s[PLAN_PROMPT].n_block, 56);
    assert_same(s[PLAN_REST].n_block, 45);
    /* Keys, values and queries; the output; gate and up; down.  Keys and values. */
    assert_same(s[PLAN_PROMPT].n_product, 4 + 1);
    /* Queries; the output; gate and up; down.  The head. */
    assert_same(s[PLAN_REST].n_product, 4 + 1);
    /* Two queries share the loading of 8 values of a position, and there are 4 queries. */
    assert_same(s[PLAN_PROMPT].far_load, 16);
    assert_same(s[PLAN_PROMPT].far_mac, 32);
    assert_same(s[PLAN_PROMPT].near_load + s[PLAN_PROMPT].near_mac, 0);

    steps_count(m.d, false, 4, 101, s); /* each thread has one query */
    assert_same(s[PLAN_PROMPT].far_load, 32);
    assert_same(s[PLAN_PROMPT].far_mac, 32);
    free(m.d);
}

static void windows_and_norms_are_counted(void **state)
{
    struct plan_steps s[PLAN_PARTS];
    struct made m;

    (void)state;
    make(&m, TYPE_F32, 1);
    m.d->softcap_final = 30;
    m.d->layers[0].window = 512;
    m.d->layers[0].q_norm.tensor = m.d->layers[0].bias_k.tensor = &m.tensor;
    m.d->layers[1].is_ropeless = true;
    steps_count(m.d, false, 2, 101, s);
    assert_same(s[PLAN_PROMPT].near_load, 16);
    assert_same(s[PLAN_PROMPT].near_mac, 32);
    assert_same(s[PLAN_PROMPT].far_load, 0);
    assert_same(s[PLAN_REST].far_mac, 32);
    assert_same(s[PLAN_PROMPT].n_value, 16 + 88 + 16 + 8 + 32 - 8);
    assert_same(s[PLAN_REST].n_value, 56 + 38 - 16);
    assert_same(s[PLAN_REST].n_curve, 16 + 10);
    free(m.d);
}

/* Each matrix has its columns packed, except in exact arithmetic. */
static void packing_is_counted(void **state)
{
    struct plan_steps s[PLAN_PARTS], exact[PLAN_PARTS];
    struct made m;

    (void)state;
    make(&m, TYPE_Q8_0, 4);
    steps_count(m.d, false, 2, 101, s);
    steps_count(m.d, true, 2, 101, exact);
    assert_same(s[PLAN_PROMPT].n_value - exact[PLAN_PROMPT].n_value, 5 * 32 + 2 * 64 + 2 * 32);
    assert_same(s[PLAN_REST].n_value - exact[PLAN_REST].n_value, 3 * 32 + 2 * 64 + 32);
    free(m.d);
}

/*
 * Two of four experts: each gathers, scales and adds 8 values, and has three products.  The
 * router has a norm and scales (16), multiplies (32), and chooses two of four (8).
 */
static void experts_are_counted(void **state)
{
    struct plan_steps dense[PLAN_PARTS], s[PLAN_PARTS];
    struct experts_desc *x;
    struct made m;

    (void)state;
    make(&m, TYPE_F32, 1);
    steps_count(m.d, false, 2, 101, dense);
    x = &m.d->layers[0].experts;
    x->n_expert = 4;
    x->n_in = m.d->n_embd;
    x->n_used = 2;
    x->n_ff = 16;
    x->gate = x->up = x->down = &m.tensor;
    steps_count(m.d, false, 2, 101, s);
    assert_same(s[PLAN_PROMPT].n_value - dense[PLAN_PROMPT].n_value, 2 * 3 * 8 + 16 + 32 + 8);
    assert_same(s[PLAN_PROMPT].n_curve - dense[PLAN_PROMPT].n_curve, 32);
    assert_same(s[PLAN_PROMPT].n_round - dense[PLAN_PROMPT].n_round, 6);
    assert_same(s[PLAN_REST].n_value, dense[PLAN_REST].n_value);
    free(m.d);
}

#define HOGS 4

/* Both threads and other programs share one processor, so a worker that is woken waits for its
 * turn, which takes milliseconds.  That is not a cost of waking it. */
static void waking_takes_no_longer_on_a_busy_machine(void **state)
{
    const struct steps_options o = { kernels_best(), 2, 0.002 };
    pid_t hog[HOGS];
    struct mw_steps steps;
    struct err e = ERR_INIT;
    cpu_set_t all, one;
    int cpu = 0, rc;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    for (int i = 0; i < HOGS; i++) {
        hog[i] = fork();
        if (hog[i] == 0)
            for (;;)
                continue;
    }
    rc = steps_measure(&o, &steps, &e);
    for (int i = 0; i < HOGS; i++) {
        kill(hog[i], SIGKILL);
        waitpid(hog[i], NULL, 0);
    }
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_int_equal(rc, 0);
    assert_true(steps.wake_s > 0 && steps.wake_s < 1e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_of_a_dense_model),
        cmocka_unit_test(windows_and_norms_are_counted),
        cmocka_unit_test(packing_is_counted),
        cmocka_unit_test(experts_are_counted),
        cmocka_unit_test(waking_takes_no_longer_on_a_busy_machine),
    };

    return cmocka_run_group_tests_name("steps", tests, NULL, NULL);
}
