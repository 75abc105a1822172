#include "config.h"

#include "engine/session/prompt_cost.h"

void cost_estimate(const struct cost_basis *b, struct mw_cost *out)
{
    uint64_t n = (uint64_t)out->n_token + out->n_again;
    uint64_t streamed = b->hot_bytes > b->pinned_bytes ? b->hot_bytes - b->pinned_bytes : 0;
    uint64_t n_pass = b->chunk > 0 ? (n + b->chunk - 1) / b->chunk : 0;
    double share = b->hot_bytes > 0 ? (double)streamed / (double)b->hot_bytes : 0;
    double disk_s, compute_s = b->compute_s * (double)n;

    out->bytes = 0;
    if (n_pass > 0)
        out->bytes =
            (uint64_t)((double)(n_pass - 1) * share * (double)b->prompt_bytes) + streamed;
    /* The disk is read during the arithmetic: the longer of the two counts. */
    disk_s = b->disk_bytes_s > 0 ? (double)out->bytes / b->disk_bytes_s : 0;
    out->seconds = disk_s > compute_s ? disk_s : compute_s;
    out->is_at_least = !(b->compute_s > 0);
}
