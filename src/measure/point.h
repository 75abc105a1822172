/*
 * point.h - the settings of one measured point, the grid of all of them, and their results.
 *
 * A point has one value for each dimension.  The lists of the command line span a grid of
 * points; results that are read from a file have the same settings, so points can be compared.
 */
#ifndef MEMWALL_SRC_MEASURE_POINT_H
#define MEMWALL_SRC_MEASURE_POINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/measure/metrics.h"
#include "ui/options/options.h"

#define RUNS_MAX         100 /* of a point; the most that --repetitions takes */
#define DISTURBANCE_TEXT 160

enum dimension {
    DIM_MEMORY,
    DIM_CTX,
    DIM_KV,
    DIM_IO,
    DIM_THREADS,
    DIM_CHUNK,
    DIM_PROMPT,
    DIM_GEN,
    DIM_DEPTH,
    DIM_BLOCK,
    DIM_ISA,
    N_DIMENSION,
};

struct dimension_row {
    enum option_id option;
    const char *name;    /* in JSON and CSV */
    const char *heading; /* of a column */
    bool is_text;        /* else a number */
    bool has_default;    /* 0 means that the program chooses; null in JSON */
    bool is_size;        /* bytes, shown in KiB, MiB or GiB */
};
extern const struct dimension_row dimension_table[N_DIMENSION];

struct setting {
    uint64_t number;
    char text[24]; /* of dimensions that are texts: "q8_0", "mmap:drop" */
};

/* One measurement of a point. */
struct run {
    struct metrics figures;
    /* Share of accepted drafts at each of n_place places of a pass, and the time of a pass over i
     * drafts as a multiple of one over none; NAN: there was none. */
    double accepted_at[MW_DRAFT_MOST], pass_costs[MW_DRAFT_MOST + 1];
    uint32_t n_place;
    char why[N_METRIC][80]; /* reasons for figures that are not known, or "" */
    bool is_charge;         /* the peak is that of a control group, not of the process alone */
};

/* Budgets from low to high in equal steps, rounded up to MiB or, if they are nearer to each other,
 * to less; at most n.  Returns how many differ. */
size_t budgets_between(uint64_t low, uint64_t high, size_t n, uint64_t *out);

enum point_status { POINT_PENDING, POINT_OK, POINT_REFUSED, POINT_FAILED };
const char *point_status_name(enum point_status s); /* "pending" */

struct point {
    struct setting setting[N_DIMENSION];
    bool is_caged; /* in a control group with the budget as its limit */

    enum point_status status;
    char error[600];
    /* From the plan; 0: not planned yet. */
    uint64_t budget_bytes, pinned_bytes, smallest_bytes, all_pinned_bytes, files_bytes;
    uint32_t n_ctx, chunk;
    char binds[16];
    double disk_bytes_s, memory_bytes_s; /* the limits that it used; 0: unknown */
    struct metrics predicted;
    /* From the measurement. */
    char io[24]; /* "direct/io_uring" */
    uint32_t n_thread;
    struct run *run; /* [n_run], of room for n_repeat */
    uint32_t n_run, n_repeat;
};

/* Make the grid of the lists in o: the last dimension changes fastest.  The caller frees it
 * with points_free().  Returns -1 with *e. */
int points_make(struct point **out, size_t *n, const struct options *o, struct err *e);
void points_free(struct point *all, size_t n);

/* Make room for n runs.  Returns -1 with *e. */
int point_reserve(struct point *p, uint32_t n, struct err *e);

/* Have two points the same settings? */
bool point_is_same(const struct point *a, const struct point *b);

/* Write a setting in the form that its option takes; "" for a default. */
char *setting_print(const struct point *p, enum dimension d, char *buf, size_t n);
/* The same for people: "2 GiB". */
char *setting_text(const struct point *p, enum dimension d, char *buf, size_t n);

/* Median and spread of a figure over the runs; NAN: no run has it.  The spread is half the
 * distance between the largest and the smallest value. */
double point_median(const struct point *p, enum metric_id id);
double point_spread(const struct point *p, enum metric_id id);
/*
 * Say what slowed down the runs of p from outside: "the host took 12 % of the processors' time,
 * other programs used 40 %"; "" if nothing did.  The worst run counts.
 */
char *point_disturbance(const struct point *p, char *buf, size_t n);
/* Copy the known values of a figure to out[n_run].  Returns their number. */
size_t point_values(const struct point *p, enum metric_id id, double *out);

#endif
