/*
 * telemetry.h - the counters.
 *
 * The code that does the work writes the counters, and any thread can read them without a
 * lock.  Each field has one writer, which stores with relaxed atomics, so a 64-bit field is
 * never torn.  Figures that belong together (those of one finished token) are published under
 * a sequence counter that is odd while they are written and even when they are complete.  A
 * writer never waits, formats or allocates.
 *
 * Times are nanoseconds of clock_ns(), sizes are bytes.  Counters only grow; states and fields
 * called gauges do not.  Readers work with a plain copy, `struct mw_sample` (sample.h): the
 * dashboard, the recorder and the replayer never see the counters themselves.
 */
#ifndef MEMWALL_ENGINE_TELEMETRY_TELEMETRY_H
#define MEMWALL_ENGINE_TELEMETRY_TELEMETRY_H

#include <stdatomic.h>
#include <stdint.h>

#include "engine/telemetry/sample.h"

typedef _Atomic uint64_t counter;

static inline void counter_add(counter *c, uint64_t n)
{
    /* With one writer a plain load and store are enough. */
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
    counter bytes, pinned_bytes; /* of the weights used by a pass; the pinned part */
    counter read_ns;    /* reader: submission to completion of the blocks of the last pass */
    counter read_bytes; /* reader: bytes read, all passes */
    counter stall_ns;   /* engine: stalls in the last pass */
    counter compute_ns; /* engine: computing in the last pass */
    counter kv_bytes;   /* engine: of keys and values now */
    counter passes;     /* engine: number of passes */
};

/* The figures of one finished pass, which are read together. */
struct telemetry_pass {
    counter wall_ns, stall_ns, compute_ns, attention_ns, head_ns, sample_ns, lookup_ns;
    counter wait_ns;    /* for a processor */
    counter bytes_pass; /* streamed in the pass */
    counter n_col;      /* tokens evaluated in the pass */
    counter expert_hits, expert_misses, expert_bytes;
    counter kv_bytes; /* part of bytes_pass: keys and values */
};

struct telemetry_trace {
    _Atomic uint16_t n, id[MW_TRACE];
};

/* The fields of struct mw_token. */
struct telemetry_token {
    counter field[sizeof(struct mw_token) / sizeof(uint64_t)];
};

/* The fields of struct mw_drafts. */
struct telemetry_drafts {
    counter passes, drafted, accepted, by_head, draft_ns;
    counter accepted_at[MW_DRAFT_MOST];
    counter passes_over[MW_DRAFT_MOST + 1], pass_ns[MW_DRAFT_MOST + 1];
};

struct telemetry {
    /* engine thread */
    counter state;       /* enum mw_state */
    counter layer_gauge; /* layer being computed; n_layer for the head */
    counter n_prompt, n_prompt_done, n_decoded, t_start_ns, t_first_ns, t_last_ns;
    counter n_reused; /* tokens of the prompt that were held before it */
    counter prefill_ns, decode_ns; /* of the current answer */
    struct telemetry_drafts draft; /* of the current answer */
    counter kv_tokens, kv_global_used, kv_sliding_used, kv_reserved;
    counter kv_disk_used, kv_written; /* bytes of keys and values on the disk; ever written there */
    counter used[MW_PLAN_ROWS]; /* bytes really used of each plan item */
    counter head_bytes_read, head_reads; /* by the stream of a draft head */
    counter lent_experts; /* KV space that experts borrow; pinned blocks borrow the rest */
    counter expert_hits, expert_misses; /* experts that a layer requested, since the start */
    counter expert_slots, expert_held;  /* experts that fit in memory, and those there now */
    counter expert_all, n_expert, heat_bins;
    _Atomic uint8_t heat[MW_HEAT];
    /* A budget that follows the free memory: the one that the person's choice gave, the plan item
     * that gives back next, and how long that took the last time. */
    counter budget_chosen, budget_next, budget_delay_ns;
    struct mw_expert_trace trace_now; /* of the pass that runs; read by no other thread */

    /* thread of breathing.h; budget_most 0: the budget is fixed */
    counter budget_least, budget_most, budget_reserve, budget_spare;
    counter budget_signal; /* enum mw_signal, of the last change */
    counter budget_step, budget_changed_ns;

    /* reader thread */
    counter bytes_read, reads, read_ns, lookup_bytes, expert_bytes, retries, depth_gauge;
    counter kv_read_bytes; /* keys and values, back from the disk */
    counter ahead_bytes, ahead_done_bytes; /* also set while the reader holds */
    counter busy_ns;     /* at least half of the possible reads of blocks were in flight */
    /* With a copy on another disk: enum mw_mirror; bytes that the disk of the model and that of
     * the copy delivered, and the time in which each had reads. */
    counter mirror, disk_bytes[MW_DISKS], disk_ns[MW_DISKS];
    counter pinned_held; /* bytes of pinned blocks, not included in used[MW_ROW_PINNED] */
    counter saved_bytes; /* more, if these blocks were as in the file */

    counter seq; /* guards pass */
    struct telemetry_pass pass;

    counter n_token;        /* tokens finished since the start */
    counter n_token_before; /* those of earlier plans */
    struct telemetry_token recent[MW_RECENT + 1];
    struct telemetry_trace trace[MW_RECENT + 1];

    struct telemetry_layer layer[MW_MAX_LAYER + 1];

    /* engine thread, when a new plan is used */
    counter kv_capacity;
    counter kv_disk_plan; /* bytes of keys and values on the disk when the context is full */
    counter disk_limit, memory_limit; /* bytes per second; 0 if not measured */
    counter run_seq;                  /* guards plan and run */
    counter plan[MW_PLAN_ROWS];
    _Atomic unsigned char run[sizeof(struct mw_run)];
};

/* Publish the figures that change only with the plan.  A sample never has the budget of one plan
 * with the items of another; row is NULL if the items stay. */
void telemetry_set_run(struct telemetry *t, const struct mw_run *run,
                       const uint64_t row[MW_PLAN_ROWS]);
void telemetry_run(const struct telemetry *t, struct mw_run *out);

/* Engine thread: a new plan is used, so what was measured before no longer counts. */
void telemetry_new_plan(struct telemetry *t);

/* Begin and end writing figures that are read together. */
void telemetry_begin(struct telemetry *t);
void telemetry_end(struct telemetry *t);

/* Engine thread: begin an answer, for which n_prompt tokens will be evaluated. */
void telemetry_answer(struct telemetry *t, uint64_t n_prompt);

/*
 * Engine thread: count a token that was sampled in sample_ns.  It is stored with the figures of
 * its pass, so the recorder and the dashboard get every token although they take samples less
 * often.
 */
void telemetry_token(struct telemetry *t, uint64_t sample_ns);

/* Engine thread.  The first: a pass for the next token of an answer also verified n <=
 * MW_DRAFT_MOST drafts and took ns.  The second: its draft at this place was accepted, so the next
 * token needs no pass, and `pass` has no time.  The third: the drafter worked for ns. */
void telemetry_drafted(struct telemetry *t, uint32_t n, bool by_head, uint64_t ns);
void telemetry_accepted(struct telemetry *t, uint32_t place);
void telemetry_drafting(struct telemetry *t, uint64_t ns);

/* Engine thread: a pass of n_token tokens begins; a layer of it chose these experts for its
 * only token.  Passes of several tokens are not traced. */
void telemetry_trace_begin(struct telemetry *t, uint32_t n_token);
void telemetry_trace(struct telemetry *t, const uint32_t *experts, uint32_t n);

/* Engine thread: copy the figures of the answer's drafts. */
void telemetry_drafts(const struct telemetry *t, struct mw_drafts *out);

/* Copy all figures consistently, except os and verdict, which watch.h fills.  Never blocks a
 * writer. */
void telemetry_sample(const struct telemetry *t, struct mw_sample *out);

#endif
