/*
 * sim_machine.h - a machine that runs tokens in simulated time, to compare predictions with.
 *
 * It knows nothing of the formula of plan/speed.h.  A reader fills a ring of slots, block after
 * block and over the end of a token, with several reads in flight, whose latencies overlap; a
 * consumer computes them in order, waits for those that
 * are not there, and computes attention after each layer.  While the disk delivers and the
 * threads compute, each slows the other down.  Other programs take a share of the processors.
 */
#ifndef MEMWALL_TESTS_LIB_SIM_MACHINE_H
#define MEMWALL_TESTS_LIB_SIM_MACHINE_H

#include "engine/plan/anchor.h"
#include "engine/plan/plan.h"
#include "tests/lib/chance.h"

/* The true rates, at this minute. */
struct sim_machine {
    double disk_bytes_s, column_bytes_s; /* column: of weights in memory, with all threads */
    double round_s;                      /* of a job */
    double latency_s;                    /* of a read, before its bytes come; rows have no more */
    double wake_s;                       /* of the reader, or of the consumer */
    double attend_s;                     /* of a position, with f16 */
    double attend_q8;                    /* the factor of q8_0 */
    double disk_slowed, cpu_slowed;      /* by each other, 0: not at all */
    double lost;                         /* share of the processors that others use, 0 to 1 */
    double noise;                        /* of each block, as a share */
    double between_s;                    /* the sampler */
};

struct sim_model {
    uint32_t n_layer, n_block; /* blocks in all layers together */
    double block_bytes;
    uint32_t n_window; /* positions that half of the layers see; 0: all see all */
};

/* How a token was run. */
struct sim_run {
    uint32_t n_slot;
    double streamed_share;
    uint32_t n_seen;
    bool q8; /* keys and values */
};

/* Means of n tokens after the first n_before. */
struct sim_means {
    double token_s, stall_s, lookup_s, attention_s, others_s, fixed_s, disk_bytes;
};

void sim_draw(struct chance *c, struct sim_model *model, struct sim_machine *machine);
void sim_tokens(struct chance *c, const struct sim_model *model,
                const struct sim_machine *machine, const struct sim_run *run, int n_before,
                int n, struct sim_means *out);

/* The input of the plan for this model, with limits as a probe in a moment like any other
 * measured them.  error: 1: each limit is wrong by a factor of up to 3. */
struct plan_input sim_input(struct chance *c, const struct sim_model *model,
                            const struct sim_machine *machine, uint32_t n_ctx, bool q8,
                            double error);
/* The same with the other type of keys and values. */
void sim_set_kv(struct plan_input *in, const struct sim_machine *machine, bool q8);

/* Between low and high, evenly in the logarithm. */
double sim_between(struct chance *c, double low, double high);

#endif
