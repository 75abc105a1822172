/*
 * measure.h - measure this machine: the limits from which speed is predicted, and the facts that
 * `memwall doctor` reports.
 *
 * limits/limits.h has the limits and the rule by which they change, machine/fact.h the facts.
 */
#ifndef MEMWALL_ENGINE_API_MEASURE_H
#define MEMWALL_ENGINE_API_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/api/options.h"
#include "engine/limits/limits.h"
#include "engine/machine/fact.h"

/* The limits in words at Unix time now_s: "disk 2 GB/s, memory 21 GB/s, measured 3 h ago", and
 * whether they are doubtful.  "not measured" without them. */
#define MW_LIMITS_TEXT 256
void mw_limits_text(const struct mw_limits *l, int64_t now_s, char *buf, size_t n);
/* "just now", "5 min ago", "3 h ago", "2 days ago".  Returns buf. */
char *mw_age_text(char *buf, size_t n, int64_t seconds);
/* Whether any of them was measured in a bad moment, or in a buffer that a cache holds.  No advice
 * comes from such limits. */
bool mw_limits_doubtful(const struct mw_limits *l);

/* Returns the mean size of the reads with which these options stream weights.  The disk is
 * measured with reads of this size.  0: unknown. */
size_t mw_read_bytes(struct mw_model *m, const struct mw_options *o);

/* Measure for about `seconds`, and up to two thirds longer if the result is doubtful, in
 * buffers of at most half of the options' budget, which are freed again.  For a model without a
 * file, the disk is left out.  Rates of weight types are not measured. */
int mw_limits_measure(struct mw_model *m, const struct mw_options *o, double seconds,
                      struct mw_limits *out, struct err *e);
/* Measure how fast o->mirror delivers weights.  0: all of it is in the page cache. */
int mw_mirror_measure(struct mw_model *m, const struct mw_options *o, double seconds,
                      double *bytes_s, struct err *e);
/* Returns a sentence for the user about o->mirror, or "". */
const char *mw_mirror_notice(struct mw_model *m, const struct mw_options *o);
/* Keep pinned weights of a type as in the file from the next plan on, or not: limits_forms() says
 * what is faster.  For models without sessions. */
void mw_model_keep_rows(struct mw_model *m, const char *type, bool keeps);
/* List the weight types in out->rate that the options use enough of, without rates. */
void mw_rates_list(const struct mw_model *m, const struct mw_options *o, struct mw_limits *out);
/* Measure the listed types whose measured_s is 0, with the threads and kernels of the options,
 * for two tenths of a second each, and before them the ways of products, if they were not.  With
 * a budget below 16 MiB they stay unmeasured. */
int mw_rates_measure(const struct mw_options *o, struct mw_limits *l, struct err *e);

/*
 * Compare the ways of products, half a second on a machine that is not busy.  `chosen` is
 * in use; `better` is one that is clearly faster now, or `chosen`.  n is 0 if the kernels do not
 * know the choice.  mw_rates_measure() chooses once a day by the rule in model/way_rates.h, and
 * mw_ways_choose() lets this process use what was chosen.
 */
#define MW_WAYS_MAX 7
struct mw_way {
    char text[64];  /* "into the second-level cache, 1536 bytes ahead" */
    double bytes_s; /* of weights; 0: not measured */
};
struct mw_choice {
    const char *key;   /* "prefetch_file_5_bits" */
    const char *label; /* "prefetch, up to 5 bits, in the file" */
    const char *type;  /* "Q4_0": weights, and columns but one, that are measured */
    uint32_t n, chosen, better;
    struct mw_way way[MW_WAYS_MAX];
};
int mw_ways_compare(const struct mw_options *o, struct mw_choice out[MW_WAY_CHOICES],
                    struct err *e);
void mw_ways_choose(const struct mw_ways *w);
/*
 * Compare numbers of threads, a third of a second on a machine that is not busy.  With a budget
 * below 16 MiB nothing is measured.  mw_threads_choose() lets this process use the best number by
 * default, unless they are doubtful; no result depends on it.  mw_threads_text() says which, and
 * why: "one per core: measured times, one fewer 1.93, one per core 1".  Returns buf.
 */
int mw_threads_measure(const struct mw_options *o, struct mw_threads *out, struct err *e);
void mw_threads_choose(const struct mw_threads *t);
char *mw_threads_text(const struct mw_threads *t, char *buf, size_t n);
/* Measure disk and memory alone, for models that will be in a folder: write 128 MiB to a file
 * without a name, and read it. */
int mw_limits_measure_disk(const char *folder, const struct mw_options *o, double seconds,
                           struct mw_limits *out, struct err *e);

/* ---- doctor ---- */

/* The receiver of facts while a machine is examined (machine/fact.h). */
struct mw_doctor {
    mw_fact_fn *fact;
    void (*step)(void *ctx, const char *doing); /* the measurement that begins now; or NULL */
    void *ctx;
    const _Atomic bool *cancelled; /* ends with ERR_CANCELLED; may be NULL */
};

/* Examine memory, a disk, and the processors, for a few seconds each.  -1 with *e: it could not
 * be completed, after some facts. */
int mw_doctor_memory(const struct mw_doctor *d, struct err *e);
/* Read the largest file of m, or with m NULL a temporary file of 128 MiB in folder. */
int mw_doctor_disk(const struct mw_doctor *d, const struct mw_model *m, const char *folder,
                   struct err *e);
int mw_doctor_arithmetic(const struct mw_doctor *d, struct err *e);

#endif
