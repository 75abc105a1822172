/* See sim_machine.h. */
#include "config.h"

#include "tests/lib/sim_machine.h"

#include <math.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/stream/shape.h"

static double share(struct chance *c)
{
    return chance_below(c, 1u << 20) / (double)(1u << 20);
}

double sim_between(struct chance *c, double low, double high)
{
    return low * pow(high / low, share(c));
}

void sim_draw(struct chance *c, struct sim_model *model, struct sim_machine *machine)
{
    double bytes = sim_between(c, 0.3e9, 12e9);

    *model = (struct sim_model){ .n_layer = 8 + chance_below(c, 40),
                                 .n_window = chance_below(c, 2) ? 512 : 0 };
    model->n_block = model->n_layer * (4 + chance_below(c, 8));
    model->block_bytes = bytes / model->n_block;
    *machine = (struct sim_machine){
        .disk_bytes_s = sim_between(c, 0.2e9, 6e9),
        .column_bytes_s = sim_between(c, 3e9, 40e9),
        .round_s = sim_between(c, 2e-6, 30e-6),
        .latency_s = sim_between(c, 20e-6, 200e-6),
        .wake_s = sim_between(c, 10e-6, 60e-6),
        .attend_q8 = 0.5 + 0.6 * share(c),
        .disk_slowed = 0.15 * share(c),
        .cpu_slowed = 0.25 * share(c),
        .lost = chance_below(c, 3) == 0 ? 0.5 * share(c) : 0,
        .noise = 0.10 * share(c),
        .between_s = sim_between(c, 100e-6, 1e-3),
    };
    /* At 4096 positions, attention takes from 1 % to 100 % of the time of the products. */
    machine->attend_s = bytes / machine->column_bytes_s * sim_between(c, 0.01, 1) / 4096;
}

#define SIM_SLOTS 64 /* the most of a ring */

/* Two things that go on at the same time: reading a block, and computing one. */
struct flow {
    const struct sim_machine *machine;
    double disk_left, cpu_left; /* bytes and seconds without hindrance; 0: idle */
    double lost_s;
};

/* Go on until one of them is over, or for `most` seconds.  Returns the seconds. */
static double flow_on(struct flow *f, double most)
{
    const struct sim_machine *m = f->machine;
    bool both = f->disk_left > 0 && f->cpu_left > 0;
    double disk = m->disk_bytes_s / (both ? 1 + m->disk_slowed : 1);
    double cpu = (1 - m->lost) / (both ? 1 + m->cpu_slowed : 1), s = most;

    if (f->disk_left > 0)
        s = fmin(s, f->disk_left / disk);
    if (f->cpu_left > 0)
        s = fmin(s, f->cpu_left / cpu);
    if (f->cpu_left > 0)
        f->lost_s += s * m->lost;
    f->disk_left = f->disk_left > s * disk * (1 + 1e-12) ? f->disk_left - s * disk : 0;
    f->cpu_left = f->cpu_left > s * cpu * (1 + 1e-12) ? f->cpu_left - s * cpu : 0;
    return s;
}

/* The reader and the ring.  Blocks are counted over all tokens.  Reads in flight wait for their
 * latency at the same time, and are then transferred one after the other. */
struct ring {
    struct flow flow;
    const struct sim_model *model;
    const struct sim_run *run;
    struct chance *c;
    uint64_t n_begun, n_read, n_used; /* streamed blocks: begun, read, and given back */
    double latency_left[SIM_SLOTS];   /* of block i at i % SIM_SLOTS */
    bool slept;                       /* the reader found no free slot */
    double bytes;
};

static double noisy(struct ring *r, double x)
{
    return x * (1 + r->flow.machine->noise * (2 * share(r->c) - 1));
}

/* The bytes of a pass are streamed in complete blocks, which are a little smaller or larger. */
static uint32_t n_streamed(const struct ring *r)
{
    double n = r->run->streamed_share * r->model->n_block;

    return n > 0 ? (uint32_t)fmax(round(n), 1) : 0;
}

static double streamed_bytes(const struct ring *r)
{
    return r->model->block_bytes * r->run->streamed_share * r->model->n_block / n_streamed(r);
}

/* Is block i of a pass streamed?  Evenly spread. */
static bool is_streamed(const struct ring *r, uint32_t i)
{
    uint64_t n = n_streamed(r), all = r->model->n_block;

    return (i + 1) * n / all > i * n / all;
}

/* A ring holds a small part of what a token reads. */
static uint32_t n_slot(const struct ring *r)
{
    uint32_t n = n_streamed(r) / 8, most = r->run->n_slot;

    n = n < 2 ? 2 : n;
    return n < most ? n : most;
}

static bool may_begin(const struct ring *r)
{
    return n_streamed(r) > 0 && r->n_begun - r->n_used < n_slot(r) &&
           r->n_begun - r->n_read < shape_flying(n_slot(r));
}

/* The block that is transferred next, if its latency is over. */
static double *latency(struct ring *r, uint64_t block)
{
    return &r->latency_left[block % SIM_SLOTS];
}

static void begin_reads(struct ring *r)
{
    while (may_begin(r)) {
        *latency(r, r->n_begun++) =
            r->flow.machine->latency_s + (r->slept ? r->flow.machine->wake_s : 0);
        r->slept = false;
    }
    r->slept |= r->n_begun - r->n_used >= n_slot(r);
    if (r->n_begun > r->n_read && r->flow.disk_left == 0 && *latency(r, r->n_read) == 0)
        r->flow.disk_left = noisy(r, streamed_bytes(r));
}

static double step(struct ring *r, double most)
{
    bool transfers;
    double s = most;

    begin_reads(r);
    transfers = r->flow.disk_left > 0;
    for (uint64_t i = r->n_read; i < r->n_begun; i++)
        if (*latency(r, i) > 0)
            s = fmin(s, *latency(r, i));
    s = flow_on(&r->flow, s);
    for (uint64_t i = r->n_read; i < r->n_begun; i++)
        *latency(r, i) = *latency(r, i) > s * (1 + 1e-12) ? *latency(r, i) - s : 0;
    if (transfers && r->flow.disk_left == 0) {
        r->n_read++;
        r->bytes += streamed_bytes(r);
    }
    return s;
}

static double compute(struct ring *r, double cpu_s)
{
    double s = 0;

    r->flow.cpu_left = noisy(r, cpu_s);
    while (r->flow.cpu_left > 0)
        s += step(r, INFINITY);
    return s;
}

/* Let time pass in which nothing is computed. */
static double idle(struct ring *r, double idle_s)
{
    double s = 0;

    while (s < idle_s && (r->n_begun > r->n_read || may_begin(r)))
        s += step(r, idle_s - s);
    return idle_s;
}

static void token(struct ring *r, struct sim_means *out)
{
    const struct sim_model *model = r->model;
    const struct sim_machine *m = r->flow.machine;
    double attend = m->attend_s * (r->run->q8 ? m->attend_q8 : 1) / model->n_layer;
    double lost = r->flow.lost_s, bytes = r->bytes, start;
    uint32_t near = model->n_window > 0 && r->run->n_seen > model->n_window ? model->n_window
                                                                            : r->run->n_seen;

    *out = (struct sim_means){ .fixed_s = idle(r, m->between_s),
                               .lookup_s = m->latency_s + 3 * m->wake_s };
    idle(r, out->lookup_s);
    start = out->fixed_s + out->lookup_s;
    for (uint32_t i = 0; i < model->n_block; i++) {
        uint32_t layer = i * model->n_layer / model->n_block;
        bool is_last = (i + 1) * model->n_layer / model->n_block > layer;
        double s;

        if (is_streamed(r, i) && r->n_read == r->n_used) {
            for (s = 0; r->n_read == r->n_used;)
                s += step(r, INFINITY);
            s += idle(r, m->wake_s);
            out->stall_s += s;
            start += s;
        }
        start += compute(r, model->block_bytes / m->column_bytes_s + m->round_s);
        r->n_used += is_streamed(r, i);
        if (is_last) {
            s = compute(r, attend * (layer % 2 ? near : r->run->n_seen));
            out->attention_s += s;
            start += s;
        }
    }
    out->token_s = start;
    out->others_s = r->flow.lost_s - lost;
    out->disk_bytes = r->bytes - bytes;
}

void sim_tokens(struct chance *c, const struct sim_model *model,
                const struct sim_machine *machine, const struct sim_run *run, int n_before,
                int n, struct sim_means *out)
{
    struct ring ring = { .flow = { .machine = machine }, .model = model, .run = run, .c = c };
    double *sum = (double *)out;

    memset(out, 0, sizeof *out);
    for (int i = 0; i < n_before + n; i++) {
        struct sim_means one;

        token(&ring, &one);
        for (size_t k = 0; i >= n_before && k < sizeof one / sizeof(double); k++)
            sum[k] += ((const double *)&one)[k] / n;
    }
}

/* ---- the plan of such a model ---- */

#define LOADS 256.0 /* values of keys and values of a position, for the costs of attention */

void sim_set_kv(struct plan_input *in, const struct sim_machine *machine, bool q8)
{
    double factor = q8 ? machine->attend_q8 : 1;
    bool was_q8 = in->kv_k != 1;
    double before = was_q8 ? machine->attend_q8 : 1;

    in->costs.load_s *= factor / before;
    in->kv_k = in->kv_v = q8 ? 2 : 1;
    in->kv_global_token_bytes = q8 ? 6528 : 12288;
    for (int part = 0; part < PLAN_PARTS; part++) {
        in->kv_far_bytes[part] *= (q8 ? 0.53 : 1) / (was_q8 ? 0.53 : 1);
        in->kv_near_bytes[part] *= (q8 ? 0.53 : 1) / (was_q8 ? 0.53 : 1);
    }
}

struct plan_input sim_input(struct chance *c, const struct sim_model *model,
                            const struct sim_machine *machine, uint32_t n_ctx, bool q8,
                            double error)
{
    double bytes = model->block_bytes * model->n_block, most = 1 + 2 * error;
    /* In a bad moment all work of the processors is slow, more or less. */
    double busy = sim_between(c, 1 / most, most), more = 1 + 0.15 * error;
    double near = model->n_window > 0 ? 0.5 : 0;
    struct plan_input in = {
        .budget_bytes = GIB,
        .n_ctx = n_ctx,
        .n_thread = 1,
        .program_bytes = 40 * MIB,
        .tokenizer_bytes = 30 * MIB,
        .logits_bytes = 2 * MIB,
        .act_fixed_bytes = MIB,
        .act_col_bytes = 100 * KIB,
        .resident_bytes = 0,
        .hot_bytes = (uint64_t)bytes,
        .prompt_bytes = (uint64_t)bytes,
        .slot_bytes = 4 * MIB,
        .n_slot = 8,
        .n_block = model->n_block,
        .streams = true,
        .kv_global_token_bytes = 12288,
        .kv_page_tokens = 256,
        .n_swa = model->n_window,
        .n_near = model->n_window,
        .n_lookup = 1,
        .disk_bytes_s = machine->disk_bytes_s * sim_between(c, 1 / most, most),
        .lookup_s = machine->latency_s * sim_between(c, 1 / most, most),
        .kv_far_bytes = { 12288 * (1 - near) },
        .kv_near_bytes = { 12288 * near },
        .weights = { { .type = "Q4_K", .token_bytes = { bytes }, .token_flops = bytes,
                       .chunk_flops_s = 60e9 } },
        .n_weights = 1,
        .kv_k = 1,
        .kv_v = 1,
    };

    in.weights[0].column_bytes_s = machine->column_bytes_s * busy;
    in.memory_bytes_s = in.weights[0].column_bytes_s * sim_between(c, 1, 2);
    in.costs.wake_s = machine->wake_s / busy;
    in.costs.round_s = machine->round_s / busy * sim_between(c, 1 / more, more);
    in.costs.load_s = machine->attend_s / LOADS / busy * sim_between(c, 1 / more, more);
    in.costs.contention = 0.3 * share(c);
    in.steps[PLAN_PROMPT] = (struct plan_steps){ .n_block = model->n_block,
                                                 .n_product = model->n_block,
                                                 .far_load = LOADS * (1 - near),
                                                 .near_load = LOADS * near };
    sim_set_kv(&in, machine, q8);
    return in;
}
