#include "config.h"

#include "tests/lib/made_sample.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/telemetry/verdict.h"

enum { N_LAYER = 35, N_PROMPT = 2048 };

#define MS    ((uint64_t)1000000)
#define START ((uint64_t)100 * 1000 * MS)

static void fill_run(struct mw_sample *s)
{
    struct mw_run *r = &s->run;

    snprintf(r->model, sizeof r->model, "gemma-4-E2B-it");
    snprintf(r->type, sizeof r->type, "BF16");
    snprintf(r->arch, sizeof r->arch, "gemma4");
    snprintf(r->io, sizeof r->io, "direct/io_uring");
    snprintf(r->io_reason, sizeof r->io_reason, "direct 9650 MB/s, buffered 9210 MB/s");
    snprintf(r->kv_k, sizeof r->kv_k, "f16");
    snprintf(r->kv_v, sizeof r->kv_v, "f16");
    snprintf(r->isa, sizeof r->isa, "avx2");
    snprintf(r->products, sizeof r->products, "the avx2 kernels");
    r->n_layer = N_LAYER;
    r->ctx = 8192;
    r->budget_bytes = 2 * GIB;
    r->threads = 4;
    r->hot_bytes = 4581 * MIB;
    r->file_bytes = 8870 * MIB;
    r->predicted_decode = 3.3;
    r->predicted_prefill = 260;
    r->predicted_read = 2803 * MIB;
    r->predicted_binds = MW_BINDS_DISK;
}

static void fill_memory(struct mw_sample *s)
{
    static const uint32_t plan_mib[MW_PLAN_ROWS] = { 48, 62, 40, 3, 32, 2,    48,
                                                     11, 0,  0,  0, 0,  1778, 24 };

    for (int i = 0; i < MW_PLAN_ROWS; i++) {
        s->mem.plan[i] = plan_mib[i] * MIB;
        s->mem.used[i] = plan_mib[i] * MIB;
    }
    s->mem.used[MW_ROW_PROGRAM] = 44 * MIB;
    s->mem.used[MW_ROW_RESERVE] = 19 * MIB;
    s->mem.lent_bytes = 30 * MIB;
    s->mem.ahead_bytes = s->mem.ahead_done_bytes = 20 * MIB;
}

static void fill_kv(struct mw_sample *s, uint64_t tokens)
{
    s->kv.tokens = s->kv.context = tokens;
    s->kv.capacity = 8192;
    s->kv.global_bytes = (tokens + 255) / 256 * 256 * 6 * KIB;
    s->kv.sliding_bytes = tokens < 639 ? tokens * 18 * KIB : 11 * MIB;
    s->kv.bytes_used = s->kv.global_bytes + s->kv.sliding_bytes;
    s->kv.bytes_reserved = 59 * MIB;
    s->mem.used[MW_ROW_KV_GLOBAL] = s->kv.global_bytes;
    s->mem.used[MW_ROW_KV_SLIDING] = s->kv.sliding_bytes;
}

static void fill_layers(struct mw_sample *s, uint64_t n_pass)
{
    s->n_layer = N_LAYER;
    for (uint32_t i = 0; i <= N_LAYER; i++) {
        struct mw_sample_layer *l = &s->layer[i];
        bool is_global = i % 5 == 4;

        l->kind = (uint8_t)(i == N_LAYER ? MW_LAYER_HEAD
                            : i < 15     ? (is_global ? MW_LAYER_GLOBAL : MW_LAYER_SLIDING)
                            : is_global  ? MW_LAYER_SHARED_GLOBAL
                                         : MW_LAYER_SHARED_SLIDING);
        l->bytes = (i == N_LAYER ? 768 : i < 15 ? 85 : 127) * MIB;
        l->pinned_bytes = l->bytes * 39 / 100;
        l->read_bytes = (l->bytes - l->pinned_bytes) * n_pass;
        l->kv_bytes =
            i < 15 ? (is_global ? s->kv.global_bytes / 3 : s->kv.sliding_bytes / 12) : 0;
        l->passes = n_pass;
        if (n_pass > 0) {
            l->read_ns = (l->bytes - l->pinned_bytes) * 12 / 10 + (i * 7 % 5) * MS;
            l->stall_ns = i == N_LAYER ? 41 * MS : (4 + i * 7 % 5) * MS;
            l->compute_ns = i == N_LAYER ? 11 * MS : (1 + i % 3) * MS;
        }
    }
}

static void fill_threads(struct mw_os *os, bool is_busy)
{
    static const struct mw_thread threads[] = {
        { "memwall", 0.01 }, { "watch", 0 },     { "engine", 0.29 }, { "worker", 0.25 },
        { "worker", 0.24 },  { "worker", 0.23 }, { "reader", 0.12 },
    };

    os->n_thread = sizeof threads / sizeof threads[0];
    for (uint32_t i = 0; i < os->n_thread; i++) {
        os->thread[i] = threads[i];
        if (!is_busy)
            os->thread[i].busy = 0;
    }
}

static void fill_os(struct mw_sample *s)
{
    struct mw_os *os = &s->os;
    uint64_t used = 3 * MIB; /* memory that the plan does not list */

    for (int i = 0; i < MW_PLAN_ROWS; i++)
        used += s->mem.used[i];
    os->t_ns = s->t_ns;
    os->charged.value = used;
    os->charged_peak.value = used + 6 * MIB;
    os->charged_kernel.value = 14 * MIB;
    os->limit.why_not = "no limit is set";
    os->rss.value = used - 4 * MIB;
    os->rss_anon.value = used - 15 * MIB;
    os->rss_file.value = 11 * MIB;
    os->rss_peak.value = used + 2 * MIB;
    os->own.value = used - 1 * MIB;
    os->system_total.value = 8 * GIB;
    os->system_cached.value = 3200 * MIB;
    os->available.value = 4100 * MIB;
    os->majflt.value = 12;
    os->psi_io_some10.value = 6210;
    fill_threads(os, s->state != MW_IDLE);
}

static void begin(struct mw_sample *s, enum mw_state state, uint64_t t_ns)
{
    memset(s, 0, sizeof *s);
    s->t_ns = t_ns;
    s->state = state;
    s->disk_limit = 9200 * MIB;
    s->memory_limit = (uint64_t)21 * GIB;
    fill_run(s);
    fill_memory(s);
}

static void finish(struct mw_sample *s, uint64_t kv_tokens, uint64_t n_pass)
{
    fill_kv(s, kv_tokens);
    fill_layers(s, n_pass);
    s->io.bytes_read = n_pass * 2803 * MIB;
    s->io.reads = n_pass * 731;
    s->io.read_ns = n_pass * 2600 * MS;
    s->io.lookup_bytes = kv_tokens * 20 * KIB;
    s->io.depth_gauge = n_pass > 0 ? 8 : 0;
    fill_os(s);
    verdict_fill(s);
    if (s->verdict.binds != MW_BINDS_DISK || s->state == MW_PREFILL)
        return;
    snprintf(s->verdict.advice, sizeof s->verdict.advice, "more_budget");
    s->verdict.advice_from = 3.1;
    s->verdict.advice_to = 14.9;
    s->verdict.full_tps = 2.81;
    s->verdict.advice_amount = 2176.0 * (double)MIB; /* 4224 MiB together */
}

void made_idle(struct mw_sample *s)
{
    begin(s, MW_IDLE, START);
    finish(s, 0, 0);
}

void made_prefill(struct mw_sample *s, uint64_t n_done)
{
    begin(s, MW_PREFILL, START + n_done * 4 * MS);
    s->layer_now = (uint32_t)(n_done / 64 % 15);
    s->n_prompt = N_PROMPT;
    s->n_prompt_done = n_done;
    s->t_start_ns = START;
    s->prefill_ns = n_done * 4 * MS;
    s->pass.wall_ns = 1024 * MS;
    s->pass.stall_ns = 160 * MS;
    s->pass.compute_ns = 864 * MS;
    s->pass.attention_ns = 90 * MS;
    s->pass.bytes_pass = 780 * MIB;
    s->pass.n_col = 256;
    finish(s, n_done, n_done / 256);
}

void made_decode(struct mw_sample *s, uint64_t n)
{
    uint64_t first = START + N_PROMPT * 4 * MS;

    begin(s, MW_DECODE, first + (n - 1) * 320 * MS + 40 * MS);
    s->layer_now = (uint32_t)(n * 5 % (N_LAYER + 1));
    s->n_prompt = s->n_prompt_done = N_PROMPT;
    s->n_decoded = n;
    s->t_start_ns = START;
    s->t_first_ns = first;
    s->t_last_ns = first + (n - 1) * 320 * MS;
    s->prefill_ns = N_PROMPT * 4 * MS;
    s->decode_ns = (n - 1) * 320 * MS;
    s->n_token = n;
    for (uint64_t i = n > MW_RECENT ? n - MW_RECENT : 0; i < n; i++)
        s->recent[i % MW_RECENT] = (struct mw_token){
            .t_ns = first + i * 320 * MS,
            .n = i + 1,
            .wall_ns = 318 * MS + i,
            .stall_ns = (247 + i * 3 % 7) * MS,
            .compute_ns = (71 - i * 3 % 7) * MS,
            .attention_ns = 9 * MS,
            .head_ns = 11 * MS,
            .sample_ns = 2 * MS,
            .lookup_ns = 1 * MS,
            .bytes_pass = 2803 * MIB,
            .n_col = 1,
            .kv_tokens = N_PROMPT + i,
        };
    s->pass.wall_ns = s->recent[(n - 1) % MW_RECENT].wall_ns;
    s->pass.stall_ns = s->recent[(n - 1) % MW_RECENT].stall_ns;
    s->pass.compute_ns = s->recent[(n - 1) % MW_RECENT].compute_ns;
    s->pass.attention_ns = 9 * MS;
    s->pass.head_ns = 11 * MS;
    s->pass.sample_ns = 2 * MS;
    s->pass.lookup_ns = 1 * MS;
    s->pass.bytes_pass = 2803 * MIB;
    s->pass.n_col = 1;
    finish(s, N_PROMPT + n - 1, n + 8);
}
