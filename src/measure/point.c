/* See point.h. */
#include "config.h"

#include "src/measure/point.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/statistics.h"

#define POINTS_MAX 10000
/* Shares of the processors' time that disturb a run. */
#define MUCH_STOLEN 0.02
#define MUCH_OTHERS 0.25

const struct dimension_row dimension_table[N_DIMENSION] = {
    [DIM_MEMORY] = { OPT_BENCH_MEMORY, "memory_bytes", "budget", false, true, true },
    [DIM_CTX] = { OPT_BENCH_CTX, "ctx", "ctx", false, true, false },
    [DIM_KV] = { OPT_BENCH_KV, "kv", "kv", true, false, false },
    [DIM_IO] = { OPT_BENCH_IO, "io", "io", true, false, false },
    [DIM_THREADS] = { OPT_BENCH_THREADS, "threads", "threads", false, true, false },
    [DIM_CHUNK] = { OPT_BENCH_CHUNK, "chunk", "chunk", false, true, false },
    [DIM_PROMPT] = { OPT_N_PROMPT, "n_prompt", "p", false, false, false },
    [DIM_GEN] = { OPT_N_GEN, "n_gen", "n", false, false, false },
    [DIM_DEPTH] = { OPT_DEPTH, "depth", "d", false, false, false },
    [DIM_BLOCK] = { OPT_BENCH_BLOCK, "block_bytes", "block", false, true, true },
    [DIM_ISA] = { OPT_BENCH_ISA, "isa", "isa", true, false, false },
};

const char *point_status_name(enum point_status s)
{
    static const char *const names[] = { "pending", "ok", "refused", "failed" };

    return names[s];
}

static void take_setting(struct setting *s, const struct dimension_row *row,
                         const struct options *o)
{
    const void *from = (const char *)o + options_table[row->option].at;

    *s = (struct setting){ 0 };
    if (row->is_text)
        options_print(o, row->option, s->text, sizeof s->text);
    else
        s->number = options_table[row->option].item == KIND_SIZE ? *(const uint64_t *)from
                                                                 : *(const uint32_t *)from;
}

static void make_point(struct point *p, const struct options *o, size_t index)
{
    struct options one = *o;

    for (int d = N_DIMENSION - 1; d >= 0; d--) {
        enum option_id id = dimension_table[d].option;
        size_t n = options_items(o, id);

        options_set_item(&one, id, index % n);
        index /= n;
    }
    for (int d = 0; d < N_DIMENSION; d++)
        take_setting(&p->setting[d], &dimension_table[d], &one);
    metrics_clear(&p->predicted);
}

int point_reserve(struct point *p, uint32_t n, struct err *e)
{
    struct run *run = realloc(p->run, n * sizeof *run);

    if (run == NULL)
        return err_memory(e, "%u measurements", n);
    p->run = run;
    p->n_repeat = n;
    return 0;
}

static bool has_tokens(const struct point *p)
{
    return p->setting[DIM_PROMPT].number > 0 || p->setting[DIM_GEN].number > 0 ||
           p->setting[DIM_DEPTH].number > 0;
}

int points_make(struct point **out, size_t *n, const struct options *o, struct err *e)
{
    struct point *all;
    size_t count = 1;
    int r;

    *out = NULL;
    *n = 0;
    for (int d = 0; d < N_DIMENSION; d++) {
        count *= options_items(o, dimension_table[d].option);
        if (count > POINTS_MAX)
            return err_set(e, ERR_ARGUMENT, "the lists make more than %d points", POINTS_MAX);
    }
    all = calloc(count, sizeof *all);
    if (all == NULL)
        return err_memory(e, "%zu points", count);
    for (size_t i = 0; i < count; i++) {
        make_point(&all[i], o, i);
        r = has_tokens(&all[i]) ? point_reserve(&all[i], o->n_repeat, e)
                                : err_set(e, ERR_ARGUMENT,
                                          "there is nothing to measure with -p 0 and -n 0: neither "
                                          "prompt nor answer has a token");
        if (r != 0) {
            points_free(all, count);
            return -1;
        }
    }
    *out = all;
    *n = count;
    return 0;
}

void points_free(struct point *all, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(all[i].run);
    free(all);
}

bool point_is_same(const struct point *a, const struct point *b)
{
    for (int d = 0; d < N_DIMENSION; d++)
        if (a->setting[d].number != b->setting[d].number ||
            strcmp(a->setting[d].text, b->setting[d].text) != 0)
            return false;
    return a->is_caged == b->is_caged;
}

char *setting_print(const struct point *p, enum dimension d, char *buf, size_t n)
{
    const struct setting *s = &p->setting[d];

    if (dimension_table[d].is_text)
        snprintf(buf, n, "%s", s->text);
    else if (dimension_table[d].has_default && s->number == 0)
        buf[0] = '\0';
    else
        snprintf(buf, n, "%" PRIu64, s->number);
    return buf;
}

char *setting_text(const struct point *p, enum dimension d, char *buf, size_t n)
{
    uint64_t number = p->setting[d].number;

    /* Show the choice of the plan, which says more than "default". */
    if (d == DIM_MEMORY && number == 0)
        number = p->budget_bytes;
    else if (d == DIM_CTX && number == 0)
        number = p->n_ctx;
    else if (d == DIM_CHUNK && number == 0)
        number = p->chunk;
    else if (d == DIM_THREADS && number == 0)
        number = p->n_thread;
    if (dimension_table[d].is_text ? p->setting[d].text[0] == '\0'
                                   : dimension_table[d].has_default && number == 0)
        snprintf(buf, n, "auto");
    else if (dimension_table[d].is_text)
        setting_print(p, d, buf, n);
    else if (dimension_table[d].is_size)
        units_size(buf, n, number);
    else
        snprintf(buf, n, "%" PRIu64, number);
    return buf;
}

size_t point_values(const struct point *p, enum metric_id id, double *out)
{
    size_t n = 0;

    for (uint32_t i = 0; i < p->n_run; i++)
        if (!isnan(p->run[i].figures.value[id]))
            out[n++] = p->run[i].figures.value[id];
    return n;
}

double point_median(const struct point *p, enum metric_id id)
{
    double values[RUNS_MAX];
    size_t n = point_values(p, id, values);

    return median(values, n);
}

double point_spread(const struct point *p, enum metric_id id)
{
    double values[RUNS_MAX];
    size_t n = point_values(p, id, values);

    return half_range(values, n);
}

static double point_worst(const struct point *p, enum metric_id id)
{
    double values[RUNS_MAX], worst = 0;
    size_t n = point_values(p, id, values);

    for (size_t i = 0; i < n; i++)
        worst = fmax(worst, values[i]);
    return worst;
}

char *point_disturbance(const struct point *p, char *buf, size_t n)
{
    double stolen = point_worst(p, METRIC_STOLEN), others = point_worst(p, METRIC_OTHERS);
    double throttled = point_worst(p, METRIC_THROTTLED);
    size_t used = 0;

    buf[0] = '\0';
    if (stolen > MUCH_STOLEN)
        used += (size_t)snprintf(buf, n, "the host took %.0f %% of the processors' time",
                                 100 * stolen);
    if (others > MUCH_OTHERS && used < n)
        used += (size_t)snprintf(buf + used, n - used,
                                 "%sother programs used %.0f %% of the processors' time",
                                 used > 0 ? ", " : "", 100 * others);
    if (throttled > 0 && used < n)
        snprintf(buf + used, n - used, "%sthe processors were throttled %.0f times",
                 used > 0 ? ", " : "", throttled);
    return buf;
}

#define SMALLEST_STEP (64 * KIB)

size_t budgets_between(uint64_t low, uint64_t high, size_t n, uint64_t *out)
{
    uint64_t step = MIB;
    size_t found = 0;

    while (step > SMALLEST_STEP && high < low + n * step)
        step /= 2;
    for (size_t i = 0; i < n; i++) {
        double share = n > 1 ? (double)i / (double)(n - 1) : 0;
        uint64_t bytes = low + (high > low ? (uint64_t)(share * (double)(high - low)) : 0);

        bytes = align_up(bytes, step);
        if (found == 0 || bytes != out[found - 1])
            out[found++] = bytes;
    }
    return found;
}
