/*
 * telemetry.h - the block of counters.
 *
 * Written where the work is done, read by anyone without a lock.  Each field has one
 * writer, who stores with relaxed atomics; a 64-bit field is never torn.  What must be
 * read together (the figures of one finished token) is published under a sequence
 * counter: odd while it is written, even when done.  A writer never waits, formats or
 * allocates.
 *
 * Times are CLOCK_MONOTONIC nanoseconds, sizes are bytes; counters only grow, gauges
 * say so or are states.  `struct mw_sample` (sample.h) is the plain copy that readers
 * work with: dashboard, recorder and replayer never see the block itself.
 */
#ifndef MEMWALL_ENGINE_TELEMETRY_TELEMETRY_H
#define MEMWALL_ENGINE_TELEMETRY_TELEMETRY_H

#include <stdatomic.h>
#include <stdint.h>

#include "engine/telemetry/sample.h"

typedef _Atomic uint64_t counter;

static inline void counter_add(counter *c, uint64_t n)
{
    /* One writer: a plain load and store is enough, no locked instruction. */
    atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static inline void counter_set(counter *c, uint64_t n)
{
    atomic_store_explicit(c, n, memory_order_relaxed);
}

static inline uint64_t counter_get(const counter *c)
{
    return atomic_load_explicit(c, memory_order_relaxed);
}

/* One layer, or the output head (index n_layer). */
struct telemetry_layer {
    counter kind;                /* enum mw_layer_kind */
    counter bytes, pinned_bytes; /* of weights a pass uses; of those, kept in memory */
    counter read_ns;    /* reader: submission to completion of the last pass's blocks */
    counter read_bytes; /* reader: bytes read, all passes */
    counter stall_ns;   /* engine: waited for a block, last pass */
    counter compute_ns; /* engine: last pass */
    counter kv_bytes;   /* engine: held now */
    counter passes;     /* engine: how often it ran */
};

/* The figures of one finished pass, read together. */
struct telemetry_pass {
    counter wall_ns, stall_ns, compute_ns, attention_ns, head_ns, sample_ns, lookup_ns;
    counter bytes_pass; /* streamed during it */
    counter n_col;      /* tokens it evaluated */
};

/* The same for a finished token, and which one it was: fields of struct mw_token. */
struct telemetry_token {
    counter field[sizeof(struct mw_token) / sizeof(uint64_t)];
};

struct telemetry {
    /* engine thread */
    counter state;       /* enum mw_state */
    counter layer_gauge; /* layer being computed; n_layer: the head */
    counter n_prompt, n_prompt_done, n_decoded, t_start_ns, t_first_ns, t_last_ns;
    counter prefill_ns, decode_ns; /* of the current answer */
    counter kv_tokens, kv_global_used, kv_sliding_used, kv_reserved;
    counter used[MW_PLAN_ROWS]; /* what each row of the plan really holds */
    counter lent_bytes;

    /* reader thread */
    counter bytes_read, reads, read_ns, lookup_bytes, retries, depth_gauge;
    counter pinned_held; /* blocks that are kept; comes on top of used[MW_ROW_PINNED] */

    counter seq; /* guards pass */
    struct telemetry_pass pass;

    counter n_token; /* finished since the start; the slot of the next is being written */
    struct telemetry_token recent[MW_RECENT + 1];

    struct telemetry_layer layer[MW_MAX_LAYER + 1];

    /* engine thread, when a plan takes effect */
    counter plan[MW_PLAN_ROWS];
    counter kv_capacity;
    counter disk_limit, memory_limit; /* bytes a second, measured; 0: not */
    counter run_seq;                  /* guards run */
    _Atomic unsigned char run[sizeof(struct mw_run)];
};

/* Publish what does not change between two plans. */
void telemetry_set_run(struct telemetry *t, const struct mw_run *run);

/* Begin and end writing what is read together. */
void telemetry_begin(struct telemetry *t);
void telemetry_end(struct telemetry *t);

/* Engine thread: a new answer begins, whose prompt has n_prompt tokens to evaluate. */
void telemetry_answer(struct telemetry *t, uint64_t n_prompt);

/*
 * Engine thread: a token was sampled, which took sample_ns.  Counts it and keeps it with
 * the figures of the pass that made it, so that a reader who looks only now and then
 * (recorder, dashboard) still gets every token.
 */
void telemetry_token(struct telemetry *t, uint64_t sample_ns);

/* A consistent copy of everything but os and verdict, which their own parts fill.
 * Never blocks the writers. */
void telemetry_sample(const struct telemetry *t, struct mw_sample *out);

#endif
