/*
 * The plan counts the stack of each thread that computes.  Kernels and attention, which keep the
 * most on it, run on a stack whose touched pages are counted.
 */
#include "config.h"

#include <sys/mman.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/units.h"
#include "engine/compute/ways.h"
#include "engine/model/forward_internal.h"
#include "engine/plan/plan.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/kernel_data.h"

#define STACK        (8 * MIB)
#define KERNEL_STACK (16 * KIB) /* of each thread, on x86-64 and AArch64 */

struct call {
    void (*fn)(const struct kernels *set);
    const struct kernels *set;
};

static void *run_call(void *arg)
{
    const struct call *c = arg;

    c->fn(c->set);
    return NULL;
}

/* Returns the bytes of a thread's stack that are touched while it runs c. */
static size_t stack_use(struct call *c)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), n_page = STACK / page;
    unsigned char *touched = calloc(n_page, 1);
    pthread_attr_t attr;
    pthread_t thread;
    size_t n = 0;
    void *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(stack != MAP_FAILED);
    (void)madvise(stack, STACK, MADV_NOHUGEPAGE);
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstack(&attr, stack, STACK), 0);
    assert_int_equal(pthread_create(&thread, &attr, run_call, c), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(mincore(stack, STACK, touched), 0);
    for (size_t i = 0; i < n_page; i++)
        n += touched[i] & 1;
    pthread_attr_destroy(&attr);
    munmap(stack, STACK);
    free(touched);
    return n * page;
}

static void check_all_sets(void (*fn)(const struct kernels *set))
{
    const size_t planned = plan_reserve_bytes(0, 2) - plan_reserve_bytes(0, 1) - KERNEL_STACK;

    if (getenv("MW_SANITIZED") != NULL) /* a sanitizer enlarges frames */
        skip();
    for (const char *const *name = kernels_names(); *name != NULL; name++) {
        struct call c = { fn, kernels_by_name(*name) };
        size_t used = stack_use(&c);

        if (used > planned)
            fail_msg("%s uses %zu bytes of stack, planned are %zu", *name, used, planned);
    }
}

/* Choose the ways with the most columns. */
static void choose_most_columns(void)
{
    for (int i = WAY_FEW_COLS; i < WAY_CHOICES; i++) {
        const enum way_choice c = (enum way_choice)i;
        size_t most = 0;
        int best = 0;

        for (int way = 0; way < ways_count(c); way++) {
            ways_choose(c, way);
            if (ways_cols(c) > most) {
                most = ways_cols(c);
                best = way;
            }
        }
        ways_choose(c, best);
    }
}

/* More rows and columns than a tile and a panel have, and more values than a span. */
static void multiply(const struct kernels *set)
{
    enum { N_ROW = 64, N_K = 768, N_COL = 258 };
    void *w = calloc(N_ROW, N_K * sizeof(float)), *x = calloc(N_COL, act_bytes(ACT_F32, N_K));
    float *y = calloc(N_COL, N_ROW * sizeof *y);

    for (int t = 0; computed_types[t] != TYPE_COUNT; t++)
        for (int exact = 0; exact < 2; exact++) {
            const enum act_form form = act_form_of(computed_types[t], exact);

            set->mul(&(struct matmul){ .type = computed_types[t],
                                       .form = form,
                                       .n_row = N_ROW,
                                       .n_k = N_K,
                                       .n_col = N_COL,
                                       .w = w,
                                       .x = x,
                                       .x_stride = act_bytes(form, N_K),
                                       .y = y,
                                       .ldy = N_ROW });
        }
    free(w);
    free(x);
    free(y);
}

/* As many queries as an item holds, of wide heads. */
static void attend(const struct kernels *set)
{
    enum { N_POS = 64, N_HEAD = 2, DIM = 256, N_TYPE = KV_TYPE_COUNT };
    struct model_desc desc = { .attn_scale = 1 };
    struct layer_desc layer = {
        .n_head = N_HEAD, .n_head_kv = 1, .head_dim_k = DIM, .head_dim_v = DIM
    };
    const struct kv_spec spec = { .n_head_kv = 1, .head_dim_k = DIM, .head_dim_v = DIM };
    struct forward f = { .p = { .desc = &desc, .kernels = set }, .n_col = N_POS };
    float row[DIM] = { 0 };
    uint32_t pos[N_POS];
    struct err e = ERR_INIT;

    no_error(pool_new(&f.p.pool, 1, &e), &e);
    f.pos = pos;
    f.attend_state = calloc((size_t)2 * N_POS * N_HEAD, sizeof(float));
    f.gate = calloc(1, sizeof *f.gate);
    f.q = calloc((size_t)N_POS * N_HEAD * DIM, sizeof *f.q);
    f.att = calloc((size_t)N_POS * N_HEAD * DIM, sizeof *f.att);
    for (int t = 0; t < N_TYPE; t++) {
        no_error(kv_new(&f.p.kv, &spec, 1, t, t, N_POS, N_POS, 0, &e), &e);
        kv_begin(f.p.kv, N_POS);
        for (uint32_t p = 0; p < N_POS; p++) {
            kv_write(f.p.kv, set, 0, p, row, row);
            pos[p] = p;
        }
        kv_commit(f.p.kv, N_POS);
        no_error(forward_attend(&f, &layer, &e), &e);
        kv_free(f.p.kv);
    }
    free(f.attend_state);
    free(f.gate);
    free(f.q);
    free(f.att);
    pool_free(f.p.pool);
}

static void a_thread_multiplies_on_the_stack_that_is_planned(void **state)
{
    (void)state;
    choose_most_columns();
    check_all_sets(multiply);
}

static void a_thread_attends_on_the_stack_that_is_planned(void **state)
{
    (void)state;
    check_all_sets(attend);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_multiplies_on_the_stack_that_is_planned),
        cmocka_unit_test(a_thread_attends_on_the_stack_that_is_planned),
    };

    return cmocka_run_group_tests_name("stacks", tests, NULL, NULL);
}
