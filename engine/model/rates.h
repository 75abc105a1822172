/*
 * rates.h - how fast this machine multiplies weights, by weight type.
 *
 * Kernels of block types do not reach the bandwidth of memory: two threads that read memory at
 * 41 GB/s multiplied one column with Q4_0 at 22 GB/s.  So each type that a model has enough of
 * is measured with the threads and kernels of the run, in two ways:
 *
 *   column    one column, as a decoded token, with weights that no cache holds
 *   chunk     RATES_COLUMNS columns, as a prompt
 *
 * The forms of pinned weights have rates of their own.  The column of packed BF16 counts packed
 * bytes, and its chunk is slower, because weights are widened first.  Interleaved types are faster.
 *
 * All models are measured with the same shape, so a rate holds for every model with that type.
 */
#ifndef MEMWALL_ENGINE_MODEL_RATES_H
#define MEMWALL_ENGINE_MODEL_RATES_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/compute/kernels.h"
#include "engine/machine/probe.h"
#include "engine/model/desc.h"

/* Columns of a pass that verifies drafts. */
#define RATES_FEW 4
/* Columns of a chunk.  More hardly change the rate (PLAN_CHUNK_EVEN). */
#define RATES_COLUMNS 64
/* Types with a smaller share of the weights that a token uses are not measured. */
#define RATES_LEAST_SHARE 0.03

/* The part of a model that has one weight type, and the rates of the type. */
struct type_rate {
    enum tensor_type type;
    enum weight_form form;  /* of the weights that are multiplied */
    double token_bytes[2];  /* that a token multiplies with, without experts: in the layers
                               of every token, and in the rest that only tokens with logits
                               run through */
    double expert_bytes[2]; /* of the experts that it uses */
    double token_flops;     /* operations in the layers of every token, two per multiply-add */
    double expert_flops;
    struct probe_rate column; /* bytes per second */
    struct probe_rate few;    /* the same of RATES_FEW columns */
    struct probe_rate chunk;  /* operations per second, in bytes_s */
};

/* List at most `most` weight types of the model, those with the most bytes first.  *others gets
 * the sums of the remaining ones.  Returns the number of types listed. */
uint32_t rates_list(const struct model_desc *d, struct type_rate *rates, uint32_t most,
                    struct type_rate *others);

struct rates_options {
    const struct kernels *kernels;
    bool exact;
    int n_thread;
    double seconds;        /* of each of the rates of a type */
    double more_seconds;   /* at most this much longer if a rate is doubtful */
    double round_s;        /* to hand a product to the threads, which is not part of a rate */
    uint64_t buffer_bytes; /* the maximum for buffers, which are freed again */
};

/* The least buffer_bytes of rates_measure(). */
#define RATES_LEAST_BUFFER ((uint64_t)8 << 20)

/* Measure the n types of the list.  Returns 0, or -1 with *e. */
int rates_measure(const struct rates_options *o, struct type_rate *rates, uint32_t n,
                  struct err *e);

#endif
