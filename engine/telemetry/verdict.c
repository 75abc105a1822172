#include "config.h"

#include "engine/telemetry/verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/telemetry/rates.h"
#include "engine/telemetry/shares.h"

/* Less swap than this is normal: Linux swaps out memory that is never touched. */
#define SWAP_BINDS (8 * MIB)
#define PSI_BINDS  500 /* hundredths of a percent */
#define MMAP_PSI   2000
/* Below this fraction of the hot bytes, all reads are lookups. */
#define ROWS_ONLY 0.02

static void advise(struct mw_sample *s, const char *key, double amount)
{
    snprintf(s->verdict.advice, sizeof s->verdict.advice, "%s", key);
    s->verdict.advice_amount = amount;
}

static bool over(struct mw_os_value v, uint64_t bound)
{
    return v.why_not == NULL && v.value >= bound;
}

static bool reads_rows_only(const struct mw_sample *s, const struct mw_rates *r)
{
    return r->read_per_token > 0 && r->read_per_token < ROWS_ONLY * (double)s->run.hot_bytes;
}

/* A thread without a processor may have had nothing to compute, so the time that others took is
 * at most the time of computing.  All parts are relative to the time of the passes, and the
 * time between two of them is added. */
static struct mw_shares divide(const struct mw_sample *s, const struct mw_rates *r)
{
    double stall = fmax(r->stall_share, 0); /* unknown of mapped weights */
    double computing = 1 - stall, others = fmin(r->wait_share, computing);
    double own = computing > 0 ? 1 - others / computing : 0, weights;
    struct mw_shares part = { .disk = stall,
                              .rows = reads_rows_only(s, r) ? stall : 0,
                              .attention = own * r->attention_share,
                              .others = others };

    weights = fmax(computing - others - part.attention, 0);
    if (s->memory_limit > 0 && r->wall_s > 0)
        part.memory = fmin((double)s->run.hot_bytes * r->passes_per_token /
                                (double)s->memory_limit / r->wall_s,
                           weights);
    part.arithmetic = weights - part.memory;
    part.fixed = r->token_s > r->wall_s && r->wall_s > 0 ? r->token_s / r->wall_s - 1 : 0;
    mw_shares_scale(&part);
    return part;
}

void verdict_fill(struct mw_sample *s)
{
    struct mw_rates r;

    memset(&s->verdict, 0, sizeof s->verdict);
    s->verdict.binds = MW_BINDS_NONE;
    mw_rates(s, &r);
    if (over(s->os.swap_own, SWAP_BINDS) && over(s->os.psi_memory_some10, PSI_BINDS)) {
        s->verdict.binds = MW_BINDS_SWAP;
        s->verdict.share = (double)s->os.psi_memory_some10.value / 1e4;
        advise(s, "less_budget", (double)s->os.swap_own.value);
        return;
    }
    if (r.attention_share < 0)
        return; /* no pass has finished yet */
    if (mw_run_is_mapped(&s->run) && over(s->os.psi_io_some10, MMAP_PSI)) {
        /* Page faults stall within the arithmetic, where only Linux can measure them. */
        s->verdict.binds = MW_BINDS_DISK;
        s->verdict.share = (double)s->os.psi_io_some10.value / 1e4;
        advise(s, "direct_io", 0);
        return;
    }
    s->verdict.part = divide(s, &r);
    s->verdict.binds = mw_shares_bind(&s->verdict.part, &s->verdict.share);
    if (s->verdict.binds == MW_BINDS_OTHERS)
        advise(s, "other_programs", 0);
    else if (s->verdict.binds == MW_BINDS_DISK && s->verdict.part.rows > 0)
        advise(s, "rows_only", 0);
}
