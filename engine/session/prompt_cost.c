#include "config.h"

#include "engine/session/prompt_cost.h"

/* The last prompt showed how fast this conversation is computed: all parts of the arithmetic
 * take as much longer as it did. */
static void follow_pace(struct plan_input *in, double pace_s)
{
    double expected_s = speed_prompt_token(in), ratio;

    if (!(pace_s > 0) || !(expected_s > 0))
        return;
    ratio = pace_s / expected_s;
    for (uint32_t i = 0; i < in->n_weights; i++) {
        struct plan_weights *w = &in->weights[i];

        w->column_bytes_s = speed_column_rate(in, w->column_bytes_s) / ratio;
        w->chunk_flops_s /= ratio;
        w->laid_column_bytes_s /= ratio;
        w->laid_chunk_flops_s /= ratio;
    }
    in->costs.round_s *= ratio;
    in->costs.wake_s *= ratio;
    in->costs.value_s *= ratio;
    in->costs.curve_s *= ratio;
    in->costs.load_s *= ratio;
    in->costs.mac_s *= ratio;
}

void cost_estimate(const struct cost_basis *b, struct mw_cost *out)
{
    uint32_t n = out->n_token + out->n_again, chunk = b->pass.chunk;
    uint32_t n_pass = chunk > 0 ? (n + chunk - 1) / chunk : 0;
    struct plan_input in = b->in;

    out->bytes = 0;
    if (n_pass > 0)
        out->bytes =
            (uint64_t)(b->pass.streamed_share *
                           ((n_pass - 1) * (double)in.prompt_bytes + (double)in.hot_bytes) +
                       speed_prompt_pages(&in, &b->pass, b->n_before, n));
    follow_pace(&in, b->pace_s);
    out->seconds = n_pass > 0 ? speed_prompt(&in, &b->pass, b->n_before, n) : 0;
    out->is_at_least = !(out->seconds > 0);
    if (out->is_at_least && in.disk_bytes_s > 0)
        out->seconds = (double)out->bytes / in.disk_bytes_s;
}
