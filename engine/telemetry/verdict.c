#include "config.h"

#include "engine/telemetry/verdict.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/telemetry/rates.h"

/* A smaller share of stalls is noise from handing blocks over.  With perfect overlap a larger
 * one means that reading takes longer than computing. */
#define STALL_BINDS 0.10
/* Less swap than this is normal: Linux swaps out memory that is never touched. */
#define SWAP_BINDS (8 * MIB)
#define PSI_BINDS  500 /* hundredths of a percent */
#define MMAP_PSI   2000
/* Daemons, and the own threads that do not compute, take less than this share. */
#define OTHERS_BIND 0.15
/* Above this share of the measured memory bandwidth, more cores would not help. */
#define BANDWIDTH_BINDS 0.7
/* Below this fraction of the hot bytes, all reads are lookups. */
#define ROWS_ONLY 0.02
/* Advice for a larger budget leaves this to the rest of the machine.  A few MiB are advised
 * only if they are all that is missing. */
#define KEEP_FREE (512 * MIB)
#define SMALLEST  (64 * MIB)

static void advise(struct mw_sample *s, const char *key, double from, double to, double amount)
{
    snprintf(s->verdict.advice, sizeof s->verdict.advice, "%s", key);
    s->verdict.advice_from = from;
    s->verdict.advice_to = to;
    s->verdict.advice_amount = amount;
}

static bool is_mmap(const struct mw_sample *s)
{
    return strncmp(s->run.io, "mmap", 4) == 0;
}

static bool over(struct mw_os_value v, uint64_t bound)
{
    return v.why_not == NULL && v.value >= bound;
}

/* Returns the memory still available on the machine and in the group, or an assumed GiB. */
static double room(const struct mw_sample *s)
{
    double bytes = s->os.available.why_not == NULL && s->os.t_ns != 0
                       ? (double)s->os.available.value
                       : (double)GIB;

    return bytes > KEEP_FREE ? bytes - KEEP_FREE : 0;
}

/* Returns the time of a token that reads at a rate while it computes for compute_s. */
static double token_s(double read, double rate, double compute_s)
{
    double read_s = read > 0 && rate > 0 ? read / rate : 0;

    return read_s > compute_s ? read_s : compute_s;
}

static bool reads_rows_only(const struct mw_sample *s, const struct mw_rates *r)
{
    return r->read_per_token > 0 && r->read_per_token < ROWS_ONLY * (double)s->run.hot_bytes;
}

/* A larger budget pins weights that are now streamed.  It helps until computing takes as long
 * as reading, and it is limited by the free memory. */
static void advise_disk(struct mw_sample *s, const struct mw_rates *r)
{
    double from = 1 / r->wall_s;
    double compute_s = r->wall_s * (1 - r->stall_share);
    double rate = r->read_bytes_s, useful, amount;

    if (r->read_per_token <= 0 || rate <= 0)
        return;
    if (reads_rows_only(s, r)) {
        advise(s, "rows_only", from, 0, 0);
        return;
    }
    useful = r->read_per_token - rate * compute_s;
    amount = useful < room(s) ? useful : room(s);
    if (amount >= (double)SMALLEST || (amount > 0 && amount >= useful)) {
        double t = token_s(r->read_per_token - amount, rate, compute_s);

        advise(s, "more_budget", from, 1 / t, amount);
        return;
    }
    /* A type of half the size halves all hot bytes; the same bytes stay pinned. */
    amount = (double)s->run.hot_bytes / 2;
    if (amount > 0)
        advise(s, "smaller_type", from,
               1 / token_s(r->read_per_token - amount, rate, compute_s), amount);
}

/* Lookups do not overlap with computing, so for them the larger share of the time binds. */
static double least_stall(const struct mw_sample *s, const struct mw_rates *r)
{
    double compute_share = 1 - r->stall_share - r->attention_share;

    if (!reads_rows_only(s, r))
        return STALL_BINDS;
    return compute_share > r->attention_share ? compute_share : r->attention_share;
}

static void advise_kv(struct mw_sample *s, const struct mw_rates *r)
{
    double attention_s = r->wall_s * r->attention_share;

    if (s->run.kv_k[0] == 'f') /* q8_0 has 34 bytes per 32 values; f16 has 64 and f32 128 */
        advise(s, "smaller_kv", 1 / r->wall_s,
               1 / (r->wall_s - attention_s * (s->run.kv_k[1] == '3' ? 0.73 : 0.47)), 0);
    else
        advise(s, "shorter_context", 1 / r->wall_s, 0, 0);
}

/* Returns the share of the time in which a thread that computes had no processor. */
static double without_cpu(const struct mw_sample *s, const struct mw_rates *r)
{
    double share = r->wait_share;

    if (s->os.t_ns != 0 && s->os.cpu_stolen.why_not == NULL)
        share += (double)s->os.cpu_stolen.value / 1e4;
    return share < 1 ? share : 1;
}

/* Decide whether memory bandwidth or arithmetic limits computing. */
static void bind_compute(struct mw_sample *s, const struct mw_rates *r)
{
    double weights_s = r->wall_s * (1 - r->stall_share - r->attention_share);
    double used = weights_s > 0 ? (double)s->run.hot_bytes / weights_s : 0;

    s->verdict.share = 1 - r->stall_share - r->attention_share;
    if (s->memory_limit == 0 || used < BANDWIDTH_BINDS * (double)s->memory_limit) {
        s->verdict.binds = MW_BINDS_COMPUTE;
        return;
    }
    s->verdict.binds = MW_BINDS_MEMORY;
    advise(s, "smaller_type", 1 / r->wall_s, 1 / token_s(0, 0, r->wall_s - weights_s / 2),
           (double)s->run.hot_bytes / 2);
}

void verdict_fill(struct mw_sample *s)
{
    struct mw_rates r;
    double compute_share, lost;

    memset(&s->verdict, 0, sizeof s->verdict);
    s->verdict.binds = MW_BINDS_NONE;
    mw_rates(s, &r);
    if (over(s->os.swap_own, SWAP_BINDS) && over(s->os.psi_memory_some10, PSI_BINDS)) {
        s->verdict.binds = MW_BINDS_SWAP;
        s->verdict.share = (double)s->os.psi_memory_some10.value / 1e4;
        advise(s, "less_budget", 0, 0, (double)s->os.swap_own.value);
        return;
    }
    if (r.stall_share < 0)
        return; /* no pass has finished yet */
    if (is_mmap(s) && over(s->os.psi_io_some10, MMAP_PSI)) {
        /* Page faults stall within the arithmetic, where only Linux can measure them. */
        s->verdict.binds = MW_BINDS_DISK;
        s->verdict.share = (double)s->os.psi_io_some10.value / 1e4;
        advise(s, "direct_io", 0, 0, 0);
        return;
    }
    compute_share = 1 - r.stall_share - r.attention_share;
    lost = without_cpu(s, &r);
    if (lost >= OTHERS_BIND && lost > r.stall_share) {
        s->verdict.binds = MW_BINDS_OTHERS;
        s->verdict.share = lost;
        advise(s, "other_programs", 0, 0, 0);
    } else if (r.stall_share >= least_stall(s, &r)) {
        s->verdict.binds = MW_BINDS_DISK;
        s->verdict.share = r.stall_share;
        if (r.wall_s > 0)
            advise_disk(s, &r);
    } else if (r.attention_share > compute_share) {
        s->verdict.binds = MW_BINDS_KV;
        s->verdict.share = r.attention_share;
        if (r.wall_s > 0)
            advise_kv(s, &r);
    } else if (r.wall_s > 0) {
        bind_compute(s, &r);
    } else {
        s->verdict.binds = MW_BINDS_COMPUTE;
        s->verdict.share = compute_share;
    }
}
