/*
 * bench_throttled - products of one column while one of the threads is slow.
 *
 *     bench_throttled
 *
 * Two threads multiply a matrix of Q4_0, each on a processor of its own.  The second one is slowed
 * down: it computes each part two or four times, as an efficient core would take longer, or another
 * program computes on its processor all the time.
 *
 * The parts of a product are divided in advance, one for each thread, or taken, as the engine
 * does it (pool_rows()): a thread that is late finds less left.  Both take turns.  "of ideal" is
 * relative to threads that end together: the rate with both at full speed, times the share of the
 * speed that is left.  The other program takes half of a processor, in slices of milliseconds.
 */
#include "config.h"

#include <sys/wait.h>

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/units.h"
#include "engine/compute/kernels.h"
#include "engine/compute/pool.h"
#include "tests/bench/turns.h"
#include "tests/lib/kernel_data.h"

enum { TURNS = 15, N_K = 4096, N_ROW = 4096, N_MATRIX = 16 };
#define TURN_S 0.03

struct product {
    const struct kernels *kernels;
    struct pool *pool;
    uint8_t *w; /* [N_MATRIX][N_ROW] rows */
    uint8_t *x;
    float *y;
    int times; /* that the second thread computes a part */
    bool is_taken;
    size_t matrix;
};

static cpu_set_t allowed;
static _Thread_local bool is_placed;
static _Thread_local int place;
static int n_placed;

/* Bind this thread to a processor of its own: the first caller to the first one. */
static void bind_to(int k)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &allowed) && k-- == 0)
            CPU_SET(i, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

static void run_part(void *ctx, int part, int n_part)
{
    const struct product *p = ctx;
    const size_t row_bytes = (size_t)tensor_row_bytes(TYPE_Q4_0, N_K);
    size_t from = (size_t)N_ROW * (size_t)part / (size_t)n_part;
    size_t to = (size_t)N_ROW * (size_t)(part + 1) / (size_t)n_part;
    struct matmul m = { .type = TYPE_Q4_0, .form = ACT_Q8, .n_k = N_K, .n_col = 1, .x = p->x,
                        .x_stride = act_bytes(ACT_Q8, N_K), .ldy = N_ROW };

    if (!is_placed) {
        is_placed = true;
        place = __atomic_fetch_add(&n_placed, 1, __ATOMIC_RELAXED);
        bind_to(place);
    }
    if (p->is_taken)
        pool_rows(p->pool, N_ROW, part, n_part, &from, &to);
    m.n_row = to - from;
    m.w = p->w + (p->matrix * N_ROW + from) * row_bytes;
    m.y = p->y + from;
    for (int i = 0; i < (place == 1 ? p->times : 1) && m.n_row > 0; i++)
        p->kernels->mul(&m);
}

/* Seconds for a product. */
static double turn(struct product *p, bool is_taken)
{
    const size_t bytes = (size_t)tensor_row_bytes(TYPE_Q4_0, N_K) * N_ROW;
    const int n_part = is_taken ? pool_row_parts(p->pool, bytes) : pool_threads(p->pool);
    double start = clock_s(), took = 0;
    int n = 0;

    p->is_taken = is_taken;
    while (took < TURN_S) {
        p->matrix = (p->matrix + 1) % N_MATRIX;
        pool_run(p->pool, n_part, run_part, p);
        n++;
        took = clock_s() - start;
    }
    return took / n;
}

static void compare(struct product *p, const char *name, double left, double free_s)
{
    double t[2][TURNS];

    for (int i = 0; i < TURNS; i++)
        for (int taken = 0; taken < 2; taken++)
            t[taken][i] = turn(p, taken != 0);
    printf("| %s |", name);
    for (int taken = 0; taken < 2; taken++) {
        double s = median(t[taken], TURNS);

        printf(" %.3f | %.0f %% |", 1e3 * s, 100 * free_s / left / s);
    }
    printf("\n");
}

int main(void)
{
    const size_t row_bytes = (size_t)tensor_row_bytes(TYPE_Q4_0, N_K);
    struct product p = { .kernels = kernels_best(), .times = 1 };
    struct err e = ERR_INIT;
    double free_t[TURNS], free_s;
    uint64_t seed = 7;
    pid_t other;

    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) {
        fprintf(stderr, "bench_throttled: needs two processors\n");
        return 1;
    }
    p.w = malloc((size_t)N_MATRIX * N_ROW * row_bytes);
    p.x = calloc(1, act_bytes(ACT_Q8, N_K));
    p.y = malloc(N_ROW * sizeof *p.y);
    if (p.w == NULL || p.x == NULL || p.y == NULL || pool_new(&p.pool, 2, &e) != 0)
        return 1;
    random_blocks(TYPE_Q4_0, p.w, (size_t)N_ROW * N_K, &seed);
    for (size_t i = 1; i < N_MATRIX; i++)
        memcpy(p.w + i * N_ROW * row_bytes, p.w, N_ROW * row_bytes);
    for (int i = 0; i < TURNS; i++)
        free_t[i] = turn(&p, true);
    free_s = median(free_t, TURNS);
    printf("| second thread | divided, ms | of ideal | taken, ms | of ideal |\n");
    printf("|---|---|---|---|---|\n");
    compare(&p, "as fast", 1, free_s);
    p.times = 2;
    compare(&p, "computes twice", 0.75, free_s);
    p.times = 4;
    compare(&p, "computes four times", 0.625, free_s);
    p.times = 1;
    other = fork();
    if (other == 0) {
        bind_to(1);
        for (;;)
            ;
    }
    if (other > 0) {
        compare(&p, "another program on its processor", 0.75, free_s);
        (void)kill(other, SIGKILL);
        (void)waitpid(other, NULL, 0);
    }
    pool_free(p.pool);
    free(p.w);
    free(p.x);
    free(p.y);
    return 0;
}
