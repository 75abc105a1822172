/* See advice.h. */
#include "config.h"

#include "engine/plan/advice.h"

#include <math.h>
#include <stdio.h>

#include "engine/base/units.h"
#include "engine/plan/outlook.h"

double advice_token(const struct plan_input *in, uint32_t n_seen, struct plan_outlook *out)
{
    const struct plan_run run = { n_seen, 0, 1 };
    struct err ignored = ERR_INIT;
    struct plan plan;

    *out = (struct plan_outlook){ 0 };
    if (plan_make(in, &plan, &ignored) != 0)
        return 0;
    plan_outlook(in, &plan, &run, out);
    return out->tps > 0 ? 1 / out->tps : 0;
}

double advice_least(const struct plan_input *in, const struct plan_time *now)
{
    double least = now->wall_s - now->part.disk;
    double products = now->part.memory + now->part.arithmetic;
    double from_memory = in->memory_bytes_s > 0 ? now->weight_bytes / in->memory_bytes_s : 0;

    return least + fmin(fmax(from_memory - products, 0), now->part.disk / 2);
}

static double token_with(const struct plan_input *in, uint32_t n_seen, uint64_t budget)
{
    struct plan_input then = *in;
    struct plan_outlook outlook;

    then.budget_bytes = budget;
    return advice_token(&then, n_seen, &outlook);
}

uint64_t advice_budget(const struct plan_input *in, uint32_t n_seen, uint64_t most)
{
    uint64_t nothing = plan_reads_nothing_budget(in), low = in->budget_bytes / MIB;
    uint64_t high = (nothing < most - MIB ? nothing + MIB - 1 : most) / MIB;
    struct plan_outlook now;
    double now_s = advice_token(in, n_seen, &now), best;

    if (most < MIB || high <= low || now.token.binds != MW_BINDS_DISK)
        return 0;
    best = token_with(in, n_seen, high * MIB);
    if (!(best > 0) || best >= now_s)
        return 0;
    while (low + 1 < high) {
        uint64_t middle = low + (high - low) / 2;
        double s = token_with(in, n_seen, middle * MIB);

        if (s > 0 && s * ADVICE_ENOUGH <= best)
            high = middle;
        else
            low = middle;
    }
    return high * MIB;
}

double advice_copies(const struct plan_input *in, double *acceptance)
{
    struct err ignored = ERR_INIT;
    struct plan plan;

    *acceptance = 0;
    if (plan_make(in, &plan, &ignored) != 0 || plan.low_bytes == 0 || plan.n_draft == 0 ||
        !(plan.undrafted_tps > 0))
        return 0;
    *acceptance = plan.acceptance;
    return plan.drafted_tps / plan.undrafted_tps;
}

uint64_t advice_round_up(uint64_t bytes)
{
    double gib = (double)bytes / (double)GIB, power = pow(10, floor(log10(gib))), step_gib;
    struct err ignored = ERR_INIT;
    uint64_t step = MIB;
    char text[40];

    while (step * 32 <= bytes)
        step *= 2;
    if (bytes < GIB)
        return align_up(bytes, step);
    step_gib = power * (gib < 2 * power ? 0.05 : gib < 5 * power ? 0.1 : 0.2);
    snprintf(text, sizeof text, "%.2fG", ceil(gib / step_gib - 1e-9) * step_gib);
    (void)units_parse_size(text, 0, &bytes, &ignored);
    return bytes;
}

uint64_t advice_within(uint64_t limit)
{
    struct err ignored = ERR_INIT;
    char text[16];

    (void)units_parse_size(units_size_down(text, sizeof text, limit), 0, &limit, &ignored);
    return limit;
}
