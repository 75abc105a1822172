/*
 * speed.h - how long a pass takes.  Arithmetic only; every predicted time comes from here.
 *
 * The time of a part of the layers (enum plan_part) with n tokens at once:
 *
 *   time       = max(disk, ring, processors) + K * min(disk, memory)
 *   disk       = (S + N + P) / D
 *   processors = products + small + rounds + steps + attention + reading + lookups
 *                + experts + missed - overlap
 *   missed     = N / D + one small read per layer with experts
 *   overlap    = M * min(experts / L, missed / M)
 *   M          = L * (1 - exp(-experts missed / L))      L: layers with experts
 *
 *   ring       = max(reads / in flight, (reads + blocks * 2 * wake + held) / (slots - 0.1))
 *   reads      = S / D + blocks * small read
 *
 *   S          streamed bytes: the part's blocks that are not pinned
 *   N          bytes of experts that are not in memory
 *   P          bytes of keys and values that come back from the disk, once for all tokens
 *   D          rate of the disk
 *   K          contention: what the disk delivers goes through memory, too, so both are slower
 *              while both work.  The host needs processors for a virtual disk.
 *   memory     the time in which weights, keys and values are read from memory
 *   products   T(1) + (n - 1) * (T(64) - T(1)) / 63.  T(1) is the time of one column and T(64)
 *              that of 64, from the two measured rates of each weight type.  In between, the
 *              time grows with the columns: weights are loaded once, and multiplied with each.
 *              Pinned weights in another form have two rates of their own; packed ones have
 *              fewer bytes.
 *   small      norms and other small weights at the rate of memory
 *   rounds     jobs that are handed to the threads.  Each streamed block is one job.  So is each
 *              run of pinned blocks of a product
 *   steps      norms, sums, packing; activation functions.  One thread takes one token
 *   attention  keys and values are loaded, and multiplied with each query.  At least the time to
 *              read them from memory once
 *   reading    the processors' time for the reads of S + N + P.  Nothing else went on when the disk
 *              was measured, so it is at most (S + N + P) / D, however many processors it took
 *   ring       the time in which the slots of the ring come round: in each, a block is read, the
 *              engine is woken, the block is computed, and the reader is woken.  With few slots,
 *              disk and processors wait for that in turn.  The latencies of reads in flight overlap
 *   held       the products with streamed blocks, which keep their slots
 *   lookups    rows of lookup tables, of which SPEED_LOOKUPS are read at once.  Then three
 *              threads have to wake up: the reader, the engine, its workers
 *   experts    as products, with the columns that choose each of them
 *   overlap    in the M layers that miss an expert, the others are computed while it is read.
 *              Nothing is read in the other layers
 *
 * The E experts of a layer are ranked by popularity and divided in parts.  A token that chooses
 * u experts chooses one of the i-th part with the probability p_i = u * share_i * parts / E
 * (struct mw_expert_use; u / E if the use is even), so n tokens use E / parts * (1 - (1 -
 * p_i)^n) of the part.  The cache holds the most popular experts, and the others are missed. If
 * a context starts cold, those that it holds are missed the first time a token chooses them.
 *
 * Blocks are read ahead over the end of a pass and over the layers, so disk and processors work
 * at the same time.  Experts are read when the router has chosen them, and meanwhile only other
 * experts of that layer are computed.  Nothing is computed while lookup rows are read.
 *
 * A decoded token runs through both parts as one.  A chunk of a prompt runs through the first;
 * only the last token of a prompt runs through the second, alone.
 */
#ifndef MEMWALL_ENGINE_PLAN_SPEED_H
#define MEMWALL_ENGINE_PLAN_SPEED_H

#include "engine/plan/plan.h"
#include "engine/plan/times.h"

/* Columns with which the rate of a chunk is measured (RATES_COLUMNS of model/rates.h). */
#define SPEED_COLUMNS 64
/* Lookup reads in flight (LOOKUP_CELLS of stream/lookup.h). */
#define SPEED_LOOKUPS 32
/* Reads in flight for a ring of n slots (shape_flying() of stream/shape.h). */
#define SPEED_FLYING(n) ((2 * (n) + 2) / 3)
/* Blocks differ and attention comes in between, so a ring of n slots is a little smaller: in
 * simulations two slots were 5 % slower than if all blocks took the same time. */
#define SPEED_SLOTS(n) ((n) - 0.1)

/* The pass of a plan, at the full context. */
struct plan_pass speed_pass(const struct plan_input *in, const struct plan *p);

/* Time of a decoded token that is the n_seen-th of the context.  Returns t->wall_s. */
double speed_token(const struct plan_input *in, const struct plan_pass *pass, uint32_t n_seen,
                   struct plan_time *t);

/* Time of one chunk of n tokens after n_before others; the last one of a prompt gives logits.
 * Returns t->wall_s. */
double speed_chunk(const struct plan_input *in, const struct plan_pass *pass, uint32_t n_before,
                   uint32_t n, bool is_last, struct plan_time *t);

/* The factors on the terms of a pass: in->factors, or those that change nothing.  Prompts have the
 * ones of the disk and of lost time only (anchor.h). */
struct speed_factors {
    double disk, processors, attention, lookups, whole;
    double others;  /* time lost to other programs, for each second of the processors */
    double fixed_s; /* is added */
};
struct speed_factors speed_factors_of(const struct plan_input *in, bool is_token);

/* Time of a pass over a token and n drafts, as a multiple of one over none: no measurement says how
 * much longer it takes.  0: a limit was not measured.  *terms gets what it was computed from:
 * token_s * max(more_s / one_s, 1). */
struct speed_wide {
    double token_s;       /* a pass over the token */
    double one_s, more_s; /* passes over none and n drafts, without the factors */
};
double speed_wide(const struct plan_input *in, const struct plan_pass *pass, uint32_t n_seen,
                  uint32_t n, struct speed_wide *terms);

/* Time to draft a token: its weights are read from memory, and those of a draft head that are not
 * pinned from disk, as its rows of tables are; and the jobs of its layers.  0: a limit was not
 * measured. */
double speed_draft(const struct plan_input *in, const struct plan *p);

/* The parts of the time to draft a token. */
struct speed_draft {
    double bytes;          /* of weights from memory */
    double steps_s;        /* the jobs of the layers */
    double streamed_bytes; /* of weights from disk */
    double lookups_s;      /* rows of tables */
};
struct speed_draft speed_draft_terms(const struct plan_input *in, const struct plan *p);

/*
 * Tokens per second at the full context if a model drafts up to `most` tokens for a pass, and
 * each is accepted with this probability.  *depth is the number of drafts with which it is
 * largest.  0: a limit was not measured.
 */
double speed_drafted(const struct plan_input *in, const struct plan *p, uint32_t most,
                     double acceptance, uint32_t *depth);

/* The same for the drafts that the plan assumes, after n_seen tokens, with the weights of `pass` in
 * memory.  If it assumes none, these are passes for one token. */
double speed_answer(const struct plan_input *in, const struct plan *p,
                    const struct plan_pass *pass, uint32_t n_seen);

/* Time of a prompt of n tokens after n_before others; 0: a limit was not measured. */
double speed_prompt(const struct plan_input *in, const struct plan_pass *pass,
                    uint32_t n_before, uint32_t n);

/* Bytes of keys and values that it reads from the disk. */
double speed_prompt_pages(const struct plan_input *in, const struct plan_pass *pass,
                          uint32_t n_before, uint32_t n);

/* Time for each token of a chunk of SPEED_COLUMNS tokens at the beginning of the context, with
 * all weights in memory; 0: not measured. */
double speed_prompt_token(const struct plan_input *in);

/* The rate of one column that was measured as `rate`: that of memory if it was not measured.  A
 * kernel that reads from memory is at most SPEED_FASTEST times as fast as memory was measured to
 * be; more is a mistake of one of the two measurements. */
#define SPEED_FASTEST 1.25
double speed_column_rate(const struct plan_input *in, double rate);

/*
 * Scale the rates of products, which `measured` threads reached, to in->n_thread; 0: they are
 * those of in->n_thread.  The disk stays as it is.
 *
 * Threads share the work evenly, and those above the number of cores add nothing.  One column
 * is limited by the threads or by memory: it scales with the threads, but not above the rate of
 * memory.  If it reached that, fewer threads may still reach it.  The part of its time that
 * depends on the threads is then unknown: at least the arithmetic, at the rate of a chunk, and
 * at most all of it.  The geometric mean of the two is assumed.  Other costs are those of a
 * thread already.
 */
void speed_scale_threads(struct plan_input *in, int measured);

/* Time for which the read of a byte keeps the threads from computing. */
double speed_read_cpu(const struct plan_input *in);

/* Products with the weights of one type that have one form. */
struct speed_product {
    double bytes;          /* of the weights */
    double flops;          /* of a column in the part PLAN_PROMPT */
    double column_bytes_s; /* one column; 0: unknown */
    double chunk_flops_s;  /* SPEED_COLUMNS columns; 0: unknown */
};

/* Divide the weights of type i, which take `bytes` in the file, into those that stay as in the
 * file and those that are pinned in another form.  Returns their number, 1 or 2. */
int speed_products(const struct plan_input *in, uint32_t i, double streamed_share,
                   bool of_experts, double bytes, struct speed_product out[2]);

/* Returns the mean number of positions that n tokens attend to after n_before earlier tokens.
 * Each sees at most `most` positions (0: all). */
double speed_mean_seen(uint32_t n_before, uint32_t n, uint32_t most);

/* The jobs of a part of which streamed_share of the blocks are streamed. */
double speed_rounds(const struct plan_steps *s, double streamed_share);

/* The probability that a token chooses an expert of the i-th part of a layer. */
double speed_use(const struct plan_input *in, int i);

/* Experts that n tokens use together, as a multiple of those that one uses; 1: dense. */
double speed_expert_share(const struct plan_input *in, uint32_t n);

/* Experts that n tokens after n_before others miss, in the same unit. */
double speed_missed_experts(const struct plan_input *in, const struct plan_pass *pass,
                            uint32_t n_before, uint32_t n);

#endif
