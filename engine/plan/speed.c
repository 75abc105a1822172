/* See speed.h. */
#include "config.h"

#include "engine/plan/speed.h"

#include <math.h>

/* Tokens of one pass through one part of the layers. */
struct tokens {
    uint32_t n, n_before;
};

/* Types with few weights count as fast as the main one. */
static const struct plan_weights *rates_of(const struct plan_input *in, uint32_t i)
{
    return in->weights[i].type[0] != '\0' ? &in->weights[i] : &in->weights[0];
}

static double positive(double x)
{
    return x > 0 ? x : 0;
}

static double threads_of(const struct plan_input *in)
{
    return in->n_thread > 0 ? in->n_thread : 1;
}

double speed_use(const struct plan_input *in, int i)
{
    double even = 1.0 / MW_USE_PARTS;
    double share = in->expert_use.observed_s > 0 ? in->expert_use.share[i] : even;

    return fmin(in->n_expert_used * share / even / in->n_expert_layer, 1);
}

/* Experts of the i-th part that n tokens use, as a multiple of those that one token uses of a
 * layer. */
static double part_share(const struct plan_input *in, int i, double n)
{
    double part = (double)in->n_expert_layer / MW_USE_PARTS;

    return part * (1 - pow(1 - speed_use(in, i), n)) / in->n_expert_used;
}

static bool has_experts(const struct plan_input *in)
{
    return in->n_expert_layer > 0 && in->n_expert_used > 0;
}

double speed_expert_share(const struct plan_input *in, uint32_t n)
{
    double sum = 0;

    if (!has_experts(in))
        return 1;
    for (int i = 0; i < MW_USE_PARTS; i++)
        sum += part_share(in, i, n);
    return sum;
}

double speed_missed_experts(const struct plan_input *in, const struct plan_pass *pass,
                            uint32_t n_before, uint32_t n)
{
    double held = (1 - pass->missed_share) * MW_USE_PARTS, sum = 0;

    if (!has_experts(in))
        return pass->missed_share;
    for (int i = 0; i < MW_USE_PARTS; i++) {
        double in_memory = fmin(fmax(held - i, 0), 1); /* share of this part */

        sum += (1 - in_memory) * part_share(in, i, n);
        if (pass->starts_cold)
            sum += in_memory *
                   (part_share(in, i, (double)n_before + n) - part_share(in, i, n_before));
    }
    return sum;
}

double speed_column_rate(const struct plan_input *in, double rate)
{
    double most = SPEED_FASTEST * in->memory_bytes_s;

    if (!(rate > 0))
        return in->memory_bytes_s;
    return most > 0 && rate > most ? most : rate;
}

/* From this share of memory's rate on, memory may be the limit of a column. */
#define NEAR_MEMORY 0.8

/* Threads that run at the same time. */
static double at_once(const struct plan_input *in, int n_thread)
{
    return in->n_core > 0 && n_thread > in->n_core ? in->n_core : n_thread;
}

/* Operations of a column for each byte of its weights. */
static double flops_of_byte(const struct plan_weights *w)
{
    double bytes = w->token_bytes[PLAN_PROMPT] + w->expert_bytes[PLAN_PROMPT];

    return bytes > 0 ? (w->token_flops + w->expert_flops) / bytes : 0;
}

/* Scale the rates of one form of a type to `ratio` times as many threads. */
static void scale_rates(double ratio, double memory, double flops, double *column_bytes_s,
                        double *chunk_flops_s)
{
    double column = *column_bytes_s, own = 1; /* share of the threads in a column's time */

    if (column >= NEAR_MEMORY * memory && *chunk_flops_s > 0)
        own = sqrt(fmin(flops * column / *chunk_flops_s, 1));
    if (ratio < 1)
        *column_bytes_s *= own > 0 ? fmin(ratio / own, 1) : 1;
    else
        *column_bytes_s = fmin(ratio * column, fmax(column, memory));
    *chunk_flops_s *= ratio;
}

void speed_scale_threads(struct plan_input *in, int measured)
{
    double ratio, idle;

    if (measured <= 0 || in->n_thread <= 0 || measured == in->n_thread)
        return;
    ratio = at_once(in, in->n_thread) / at_once(in, measured);
    for (struct plan_weights *w = in->weights; w < in->weights + in->n_weights; w++) {
        double flops = flops_of_byte(w);

        scale_rates(ratio, in->memory_bytes_s, flops, &w->column_bytes_s, &w->chunk_flops_s);
        scale_rates(ratio, in->memory_bytes_s, flops, &w->laid_column_bytes_s,
                    &w->laid_chunk_flops_s);
    }
    /* These are divided by all threads. */
    idle = in->n_thread / at_once(in, in->n_thread) / (measured / at_once(in, measured));
    in->costs.load_s *= idle;
    in->costs.mac_s *= idle;
}

int speed_products(const struct plan_input *in, uint32_t i, double streamed_share,
                   bool of_experts, double bytes, struct speed_product out[2])
{
    const struct plan_weights *w = &in->weights[i], *rates = rates_of(in, i);
    double speedup = w->speedup > 0 ? w->speedup : 1;
    double laid = w->laid_type[0] != '\0' && !of_experts ? 1 - streamed_share : 0;
    struct speed_product all = { bytes, of_experts ? w->expert_flops : w->token_flops,
                                 speed_column_rate(in, rates->column_bytes_s),
                                 rates->chunk_flops_s * speedup };
    int n = 0;

    if (laid < 1) {
        out[n] = all;
        out[n].bytes *= 1 - laid;
        out[n++].flops *= 1 - laid;
    }
    if (laid > 0) {
        out[n] = all;
        out[n].bytes *= laid * (1 - w->saved_share);
        out[n].flops *= laid;
        if (w->laid_column_bytes_s > 0)
            out[n].column_bytes_s = speed_column_rate(in, w->laid_column_bytes_s);
        if (w->laid_chunk_flops_s > 0)
            out[n].chunk_flops_s = w->laid_chunk_flops_s * speedup;
        /* The noise of two probes must not make pinned weights slower than the measured token,
         * which read them. */
        if (in->factors.is_set)
            out[n].column_bytes_s =
                fmax(out[n].column_bytes_s, all.column_bytes_s * (1 - w->saved_share));
        n++;
    }
    return n;
}

/* Seconds for one column, or -1. */
static double column_s(const struct speed_product *p)
{
    return p->bytes <= 0 ? 0 : p->column_bytes_s > 0 ? p->bytes / p->column_bytes_s : -1;
}

/* Seconds for each further column of the part PLAN_PROMPT, or -1: the slope between one and
 * SPEED_COLUMNS columns. */
static double further_s(const struct speed_product *p)
{
    if (p->flops <= 0)
        return 0;
    if (!(p->chunk_flops_s > 0))
        return -1;
    return positive(SPEED_COLUMNS * p->flops / p->chunk_flops_s - column_s(p)) /
           (SPEED_COLUMNS - 1);
}

/* The share of a product that is streamed.  If some weights are pinned in another form, form 0
 * is the weights that are streamed. */
static double streamed_part(int n_form, int form, const struct plan_pass *pass)
{
    return n_form == 1 ? pass->streamed_share : form == 0 ? 1 : 0;
}

/* Products of n columns with the weights of a part: all but experts, or experts.  Each of
 * `share` sets of weights is loaded once, in a time that is added to t->memory_s. */
static double products_s(const struct plan_input *in, const struct plan_pass *pass,
                         enum plan_part part, bool of_experts, uint32_t n, double share,
                         struct plan_time *t)
{
    double s = 0;

    for (uint32_t i = 0; i < in->n_weights; i++) {
        const struct plan_weights *w = &in->weights[i];
        double bytes = of_experts ? w->expert_bytes[part] : w->token_bytes[part];
        struct speed_product form[2];
        int n_form = speed_products(in, i, pass->streamed_share, of_experts, bytes, form);

        for (int k = 0; k < n_form; k++) {
            double one_s = column_s(&form[k]), more_s = n > 1 ? further_s(&form[k]) : 0;

            if (one_s < 0 || more_s < 0)
                return -1;
            s += share * one_s + positive(n - share) * more_s;
            if (!of_experts)
                t->held_s += streamed_part(n_form, k, pass) * (one_s + positive(n - 1.0) * more_s);
            t->memory_s += share * one_s;
            t->weight_bytes += share * form[k].bytes;
        }
    }
    return s;
}

double speed_mean_seen(uint32_t n_before, uint32_t n, uint32_t most)
{
    double first = n_before + 1.0, last = (double)n_before + n, n_less;

    if (most == 0 || last <= most)
        return (first + last) / 2;
    if (first >= most)
        return most;
    n_less = most - first; /* tokens that see first, first + 1, ... most - 1 positions */
    return (n_less * (first + most - 1) / 2 + (n - n_less) * most) / n;
}

double speed_rounds(const struct plan_steps *s, double streamed_share)
{
    double streamed = streamed_share * s->n_block;

    return s->n_round + streamed + fmin(s->n_block - streamed, streamed + s->n_product);
}

static void add_attention(const struct plan_input *in, enum plan_part part,
                          const struct tokens *tokens, struct plan_time *t)
{
    const struct plan_steps *s = &in->steps[part];
    double far = speed_mean_seen(tokens->n_before, tokens->n, 0);
    double near = speed_mean_seen(tokens->n_before, tokens->n, in->n_near);
    double load = far * s->far_load + near * s->near_load;
    double mac = far * s->far_mac + near * s->near_mac;

    t->kv_bytes += far * in->kv_far_bytes[part] + near * in->kv_near_bytes[part];
    if (part == PLAN_PROMPT) /* read, and written again */
        t->kv_bytes += (double)in->recurrent_bytes;
    t->attend_cpu_s +=
        tokens->n * (load * in->costs.load_s + mac * in->costs.mac_s) / threads_of(in);
}

/* Bytes of keys and values from the disk: complete pages before the tokens. */
static double paged_bytes(const struct plan_input *in, const struct plan_pass *pass,
                          enum plan_part part, uint32_t n_before)
{
    uint32_t page = in->kv_page_tokens > 0 ? in->kv_page_tokens : 1;
    double sum = 0;

    for (uint32_t i = 0; pass->has_kv_disk && i < in->n_kv_class; i++)
        if (n_before / page > pass->kv_keep[i] / page)
            sum += (double)in->kv_class[i].read_bytes[part] *
                   (n_before / page - pass->kv_keep[i] / page);
    return sum;
}

/* Add the bytes of a part that are read from disk. */
static void add_bytes(const struct plan_input *in, const struct plan_pass *pass,
                      enum plan_part part, const struct tokens *tokens, struct plan_time *t)
{
    double blocks = part == PLAN_PROMPT ? (double)in->prompt_bytes
                                        : (double)(in->hot_bytes - in->prompt_bytes);
    double expert_bytes = 0, all_experts = 0;

    for (uint32_t i = 0; i < in->n_weights; i++) {
        expert_bytes += in->weights[i].expert_bytes[part];
        all_experts += in->weights[i].expert_bytes[0] + in->weights[i].expert_bytes[1];
    }
    if (all_experts > 0)
        t->missed_bytes += speed_missed_experts(in, pass, tokens->n_before, tokens->n) *
                           (double)in->experts_token_bytes * expert_bytes / all_experts;
    t->streamed_bytes += pass->streamed_share * blocks;
    t->paged_bytes += paged_bytes(in, pass, part, tokens->n_before);
    t->n_streamed += pass->streamed_share * in->steps[part].n_block;
}

/* Add the terms of a part.  Returns false if a limit was not measured; the bytes are right. */
static bool add_part(const struct plan_input *in, const struct plan_pass *pass,
                     enum plan_part part, const struct tokens *tokens, struct plan_time *t)
{
    const struct plan_steps *s = &in->steps[part];
    double share = speed_expert_share(in, tokens->n);
    double dense_s = products_s(in, pass, part, false, tokens->n, 1, t);
    double experts_s = products_s(in, pass, part, true, tokens->n, share, t);
    double split = tokens->n > 1 ? threads_of(in) : 1;

    add_bytes(in, pass, part, tokens, t);
    if (dense_s < 0 || experts_s < 0 || !(in->memory_bytes_s > 0))
        return false;
    t->products_s += dense_s;
    t->experts_s += experts_s;
    t->small_s += (double)in->resident_bytes / PLAN_PARTS / in->memory_bytes_s;
    t->rounds_s += speed_rounds(s, pass->streamed_share) * in->costs.round_s;
    t->steps_s +=
        tokens->n * (s->n_value * in->costs.value_s + s->n_curve * in->costs.curve_s) / split;
    add_attention(in, part, tokens, t);
    return true;
}

/* Divide the time as that of measured tokens is divided. */
static void divide(const struct plan_input *in, double whole, struct plan_time *t)
{
    double missed = t->missed_s - t->overlap_s;
    double stalls = fmax(fmax(t->disk_s, t->ring_s) - t->processors_s, 0) + missed;
    double slowed = in->costs.contention * fmin(t->disk_s, t->memory_s);
    double computing = t->processors_s - missed - t->lookups_s;
    double attention = t->attention_s / (1 + t->others);
    double weights = computing + slowed - attention - t->others_s;
    double memory = fmin(t->weight_bytes / in->memory_bytes_s, weights);

    t->part = (struct mw_shares){ .disk = whole * (stalls + t->lookups_s),
                                  .rows = whole * t->lookups_s,
                                  .memory = whole * memory,
                                  .arithmetic = whole * (weights - memory),
                                  .attention = whole * attention,
                                  .others = whole * t->others_s,
                                  .fixed = t->fixed_s };
    t->binds = mw_shares_bind(&t->part, NULL);
}

/* Meanwhile the threads fall asleep: the reader is woken, then the engine, then its workers. */
static double lookups_s(const struct plan_input *in, uint32_t n_token)
{
    double n = ceil((double)n_token * in->n_lookup / SPEED_LOOKUPS);

    return in->lookup_s > 0 && n > 0 ? n * in->lookup_s + 3 * in->costs.wake_s : 0;
}

struct speed_factors speed_factors_of(const struct plan_input *in, bool is_token)
{
    const struct plan_factors *f = &in->factors;
    struct speed_factors out = { .disk = 1, .processors = 1, .attention = 1, .lookups = 1,
                                 .whole = 1 };

    if (!f->is_set)
        return out;
    out.disk = f->disk;
    out.others = f->others;
    if (is_token)
        out = (struct speed_factors){ .disk = f->disk,
                                      .processors = f->processors,
                                      .attention = f->attention,
                                      .lookups = f->lookups,
                                      .whole = f->whole,
                                      .others = f->crowded,
                                      .fixed_s = f->fixed_s };
    return out;
}

/* Multiply the terms by the measured factors. */
static void correct(const struct speed_factors *f, struct plan_time *t)
{
    double own = f->processors, others = 1 + f->others;

    t->others = others - 1;
    t->others_s = t->others * (own * (t->products_s + t->small_s + t->rounds_s + t->steps_s +
                                      t->reading_s + t->experts_s) +
                               f->attention * t->attention_s);
    t->products_s *= own * others;
    t->small_s *= own * others;
    t->rounds_s *= own * others;
    t->steps_s *= own * others;
    t->reading_s *= own * others;
    t->experts_s *= own * others;
    t->attention_s *= f->attention * others;
    t->memory_s *= own;
    t->held_s *= own * others;
    t->lookups_s *= f->lookups;
    t->disk_s *= f->disk;
    t->missed_s *= f->disk;
    t->fixed_s = f->fixed_s;
}

double speed_read_cpu(const struct plan_input *in)
{
    return in->disk_bytes_s > 0 ? fmin(in->costs.read_cpu_s, 1 / in->disk_bytes_s) : 0;
}

/* The rounds of the slots.  Missed experts are read into other places. */
static double ring_s(const struct plan_input *in, const struct plan_pass *pass, double factor,
                     const struct plan_time *t)
{
    double read_s, wake_s;

    if (pass->n_slot == 0 || t->streamed_bytes < 1)
        return 0;
    read_s = factor * t->streamed_bytes / in->disk_bytes_s + t->n_streamed * in->lookup_s;
    wake_s = 2 * t->n_streamed * in->costs.wake_s;
    return fmax(read_s / SPEED_FLYING(pass->n_slot),
                (read_s + wake_s + t->held_s) / SPEED_SLOTS(pass->n_slot));
}

/* The time in which experts are read and computed at once. */
static void overlap(const struct plan_input *in, struct plan_time *t)
{
    double n = in->n_moe_layer, read;

    t->overlap_s = fmin(t->experts_s, t->missed_s);
    if (t->missed_bytes < 1 || in->n_moe_layer == 0 || in->experts_token_bytes == 0)
        return;
    read = t->missed_bytes / (double)in->experts_token_bytes * in->n_expert_used; /* of a layer */
    t->missing_layers = n * (1 - exp(-read));
    t->overlap_s = t->missing_layers * fmin(t->experts_s / n, t->missed_s / t->missing_layers);
}

/* Complete the sums of *t.  n_token rows are looked up in each table. */
static double finish(const struct plan_input *in, const struct plan_pass *pass,
                     uint32_t n_token, bool is_token, struct plan_time *t)
{
    double disk_bytes = t->streamed_bytes + t->missed_bytes + t->paged_bytes;
    struct speed_factors f = speed_factors_of(in, is_token);

    if (disk_bytes >= 1 && !(in->disk_bytes_s > 0))
        return 0;
    if (!pass->keeps_rows)
        t->lookups_s = lookups_s(in, n_token);
    if (disk_bytes >= 1)
        t->disk_s = disk_bytes / in->disk_bytes_s;
    if (t->missed_bytes >= 1)
        t->missed_s = t->missed_bytes / in->disk_bytes_s + in->n_moe_layer * in->lookup_s;
    t->attention_s = fmax(t->attend_cpu_s, t->kv_bytes / in->memory_bytes_s);
    t->reading_s = disk_bytes * speed_read_cpu(in);
    t->memory_s += t->small_s + t->kv_bytes / in->memory_bytes_s;
    if (in->factors.is_set)
        correct(&f, t);
    overlap(in, t);
    t->processors_s = t->products_s + t->small_s + t->rounds_s + t->steps_s + t->attention_s +
                      t->reading_s + t->lookups_s + t->experts_s + t->missed_s - t->overlap_s;
    t->ring_s = ring_s(in, pass, f.disk, t);
    t->wall_s = t->fixed_s + f.whole * (fmax(fmax(t->processors_s, t->disk_s), t->ring_s) +
                                        in->costs.contention * fmin(t->disk_s, t->memory_s));
    divide(in, f.whole, t);
    return t->wall_s;
}

struct plan_pass speed_pass(const struct plan_input *in, const struct plan *p)
{
    struct plan_pass pass = { .streamed_share = p->streamed_share,
                              .keeps_rows = p->keeps_rows,
                              .chunk = p->chunk,
                              .n_slot = p->n_slot,
                              .has_kv_disk = p->has_kv_disk };

    for (uint32_t i = 0; i < in->n_kv_class; i++)
        pass.kv_keep[i] = p->kv_keep[i];
    if (in->n_expert_all > 0)
        pass.missed_share = in->streams ? 1 - (double)p->n_expert / in->n_expert_all : 1;
    return pass;
}

double speed_token(const struct plan_input *in, const struct plan_pass *pass, uint32_t n_seen,
                   struct plan_time *t)
{
    struct tokens tokens = { 1, n_seen > 0 ? n_seen - 1 : 0 };
    bool is_measured;

    *t = (struct plan_time){ 0 };
    is_measured = add_part(in, pass, PLAN_PROMPT, &tokens, t);
    is_measured &= add_part(in, pass, PLAN_REST, &tokens, t);
    return is_measured ? finish(in, pass, 1, true, t) : 0;
}

double speed_chunk(const struct plan_input *in, const struct plan_pass *pass, uint32_t n_before,
                   uint32_t n, bool is_last, struct plan_time *t)
{
    struct tokens tokens = { n, n_before }, last = { 1, n_before + n - 1 };
    struct plan_time rest = { 0 };

    if (n == 1 && is_last)
        return speed_token(in, pass, n_before + 1, t);
    *t = (struct plan_time){ 0 };
    if (!add_part(in, pass, PLAN_PROMPT, &tokens, t) || !(finish(in, pass, n, false, t) > 0))
        return 0;
    if (!is_last)
        return t->wall_s;
    if (!add_part(in, pass, PLAN_REST, &last, &rest) || !(finish(in, pass, 0, false, &rest) > 0))
        return t->wall_s = 0;
    return t->wall_s += rest.wall_s;
}

/* Everything of a draft but its products: a small model takes most of its time for this. */
static double draft_steps_s(const struct plan_input *in)
{
    double s = 0;

    for (int i = 0; i < PLAN_PARTS; i++) {
        const struct plan_steps *steps = &in->draft_steps[i];

        s += speed_rounds(steps, 0) * in->costs.round_s + steps->n_value * in->costs.value_s +
             steps->n_curve * in->costs.curve_s;
    }
    return s;
}

struct speed_draft speed_draft_terms(const struct plan_input *in, const struct plan *p)
{
    struct speed_draft d = { .bytes = (double)in->drafter_hot_bytes,
                             .steps_s = draft_steps_s(in),
                             .lookups_s = p->keeps_rows ? 0 : lookups_s(in, 1) };

    if (in->n_low > 0) {
        d.bytes = (double)(p->pinned_bytes + p->low_bytes);
    } else if (p->has_head) {
        d.bytes = (double)in->head.hot_bytes;
        if (p->head_pinned_bytes < in->head.pinned_most)
            d.streamed_bytes =
                d.bytes * (1 - (double)p->head_pinned_bytes / (double)in->head.pinned_most);
    }
    return d;
}

double speed_draft(const struct plan_input *in, const struct plan *p)
{
    struct speed_factors f = speed_factors_of(in, true);
    struct speed_draft d = speed_draft_terms(in, p);

    if (!(in->memory_bytes_s > 0) || (d.streamed_bytes > 0 && !(in->disk_bytes_s > 0)))
        return 0;
    return f.processors * (1 + f.others) * (d.bytes / in->memory_bytes_s + d.steps_s) +
           (d.streamed_bytes > 0 ? d.streamed_bytes / in->disk_bytes_s : 0) + d.lookups_s;
}

double speed_wide(const struct plan_input *in, const struct plan_pass *pass, uint32_t n_seen,
                  uint32_t n, struct speed_wide *terms)
{
    struct plan_input formula = *in;
    struct plan_time t;

    *terms = (struct speed_wide){ speed_token(in, pass, n_seen, &t), 1, 1 };
    if (n == 0)
        return terms->token_s;
    formula.factors = (struct plan_factors){ 0 };
    terms->one_s = speed_token(&formula, pass, n_seen, &t);
    terms->more_s =
        speed_chunk(&formula, pass, n_seen > n ? n_seen - n - 1 : 0, n + 1, true, &t);
    if (!(terms->one_s > 0) || !(terms->more_s > 0))
        return 0;
    return terms->token_s * fmax(terms->more_s / terms->one_s, 1);
}

/* The drafts of an answer. */
struct drafts {
    uint32_t most;
    double acceptance, draft_s;
};

static double drafted(const struct plan_input *in, const struct plan_pass *pass, uint32_t n_ctx,
                      uint32_t n_seen, const struct drafts *d, uint32_t *depth)
{
    double tokens = 1, next = 1, best = 0;
    struct speed_wide ignored;

    *depth = 0;
    for (uint32_t n = 0; n <= d->most && n < n_ctx; n++) {
        double pass_s = speed_wide(in, pass, n_seen, n, &ignored), tps;

        if (!(pass_s > 0))
            return 0;
        tps = tokens / (pass_s + n * d->draft_s);
        if (tps > best) {
            best = tps;
            *depth = n;
        }
        next *= d->acceptance;
        tokens += next;
    }
    return best;
}

double speed_drafted(const struct plan_input *in, const struct plan *p, uint32_t most,
                     double acceptance, uint32_t *depth)
{
    const struct drafts d = { most, acceptance, speed_draft(in, p) };
    struct plan_pass pass = speed_pass(in, p);

    return drafted(in, &pass, p->n_ctx, p->n_ctx, &d, depth);
}

double speed_answer(const struct plan_input *in, const struct plan *p,
                    const struct plan_pass *pass, uint32_t n_seen)
{
    bool is_cold = p->keeps_rows && !pass->keeps_rows; /* rows are there only later */
    const struct drafts d = { p->assumed > 0 ? p->n_draft : 0, p->assumed,
                              speed_draft(in, p) + (is_cold ? lookups_s(in, 1) : 0) };
    uint32_t ignored;

    return drafted(in, pass, p->n_ctx, n_seen > 0 ? n_seen : 1, &d, &ignored);
}

double speed_prompt(const struct plan_input *in, const struct plan_pass *pass,
                    uint32_t n_before, uint32_t n)
{
    uint32_t chunk = pass->chunk > 0 ? pass->chunk : 1;
    struct plan_time t;
    double s = 0;

    for (uint32_t done = 0; done < n;) {
        uint32_t now = n - done < chunk ? n - done : chunk;
        double chunk_s = speed_chunk(in, pass, n_before + done, now, done + now == n, &t);

        if (!(chunk_s > 0))
            return 0;
        s += chunk_s;
        done += now;
    }
    return s;
}

double speed_prompt_pages(const struct plan_input *in, const struct plan_pass *pass,
                          uint32_t n_before, uint32_t n)
{
    uint32_t chunk = pass->chunk > 0 ? pass->chunk : 1;
    double sum = n > 0 ? paged_bytes(in, pass, PLAN_REST, n_before + n - 1) : 0;

    for (uint32_t done = 0; done < n; done += chunk)
        sum += paged_bytes(in, pass, PLAN_PROMPT, n_before + done);
    return sum;
}

double speed_prompt_token(const struct plan_input *in)
{
    const struct plan_pass in_memory = { .keeps_rows = true, .chunk = SPEED_COLUMNS };
    struct plan_time t;

    return speed_chunk(in, &in_memory, 0, SPEED_COLUMNS, false, &t) / SPEED_COLUMNS;
}
