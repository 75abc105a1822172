#include "config.h"

#include "engine/telemetry/telemetry.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/clock.h"

static const char *const state_names[] = { "idle", "loading", "prefill", "decode", "error" };
static const char *const row_names[MW_PLAN_ROWS] = {
    "program",    "tokenizer",    "activations", "logits",  "ring",   "rows",    "kv_global",
    "kv_sliding", "kv_recurrent", "kv_index",    "drafter", "experts", "pinned", "reserve",
};
static const char *const row_labels[MW_PLAN_ROWS] = {
    "program",    "tokenizer",      "activations", "token scores", "read buffers",
    "table rows", "full KV",        "sliding KV",  "recurrent KV", "index keys",
    "drafts",     "experts",        "pinned weights", "kernel",
};
static const char *const signal_names[MW_SIGNALS] = { "",         "available", "group",
                                                       "pressure", "swap",      "free" };
static const char *const kind_names[] = { "sliding",       "global",    "shared sliding",
                                          "shared global", "recurrent", "indexed", "feed-forward",
                                          "head" };
static const char *const binds_names[] = { "none", "disk", "memory", "compute",
                                           "kv",   "swap", "others" };
static const char *const binds_labels[] = { "nothing binds yet",   "disk-bound",
                                            "RAM-bandwidth-bound", "compute-bound",
                                            "context-bound",       "swapping",
                                            "others-bound" };
static const char *const binds_words[] = { "-",       "disk",     "RAM-bandwidth", "compute",
                                           "context", "swapping", "others" };

const char *mw_state_name(enum mw_state s)
{
    return state_names[s];
}

bool mw_run_is_mapped(const struct mw_run *run)
{
    return strncmp(run->io, "mmap", 4) == 0;
}

const char *mw_plan_row_name(enum mw_plan_row r)
{
    return row_names[r];
}

const char *mw_plan_row_label(enum mw_plan_row r)
{
    return row_labels[r];
}

const char *mw_signal_name(enum mw_signal s)
{
    return s < MW_SIGNALS ? signal_names[s] : "";
}

const char *mw_layer_kind_name(enum mw_layer_kind k)
{
    return kind_names[k];
}

const char *mw_binds_name(enum mw_binds b)
{
    return binds_names[b];
}

const char *mw_binds_label(enum mw_binds b)
{
    return binds_labels[b];
}

const char *mw_binds_word(enum mw_binds b)
{
    return binds_words[b];
}

void telemetry_begin(struct telemetry *t)
{
    counter_add(&t->seq, 1);
    atomic_thread_fence(memory_order_release);
}

void telemetry_end(struct telemetry *t)
{
    atomic_thread_fence(memory_order_release);
    counter_add(&t->seq, 1);
}

void telemetry_answer(struct telemetry *t, uint64_t n_prompt)
{
    counter *draft = (counter *)&t->draft;

    telemetry_begin(t);
    counter_set(&t->n_prompt, n_prompt);
    counter_set(&t->n_prompt_done, 0);
    counter_set(&t->n_reused, 0);
    counter_set(&t->n_decoded, 0);
    counter_set(&t->prefill_ns, 0);
    counter_set(&t->decode_ns, 0);
    counter_set(&t->t_start_ns, clock_ns());
    counter_set(&t->t_first_ns, 0);
    counter_set(&t->t_last_ns, 0);
    for (size_t i = 0; i < sizeof t->draft / sizeof *draft; i++)
        counter_set(&draft[i], 0);
    telemetry_end(t);
}

void telemetry_drafted(struct telemetry *t, uint32_t n, bool by_head, uint64_t ns)
{
    assert(n <= MW_DRAFT_MOST);
    telemetry_begin(t);
    counter_add(&t->draft.passes, 1);
    counter_add(&t->draft.drafted, n);
    counter_add(&t->draft.by_head, by_head ? n : 0);
    counter_add(&t->draft.passes_over[n], 1);
    counter_add(&t->draft.pass_ns[n], ns);
    telemetry_end(t);
}

void telemetry_drafting(struct telemetry *t, uint64_t ns)
{
    telemetry_begin(t);
    counter_add(&t->draft.draft_ns, ns);
    telemetry_end(t);
}

void telemetry_accepted(struct telemetry *t, uint32_t place)
{
    counter *figure = (counter *)&t->pass;

    telemetry_begin(t);
    for (size_t i = 0; i < sizeof t->pass / sizeof *figure; i++)
        counter_set(&figure[i], 0);
    counter_add(&t->draft.accepted, 1);
    counter_add(&t->draft.accepted_at[place], 1);
    telemetry_end(t);
}

void telemetry_new_plan(struct telemetry *t)
{
    telemetry_begin(t);
    counter_set(&t->n_token_before, counter_get(&t->n_token));
    counter_set(&t->pass.wall_ns, 0);
    counter_set(&t->pass.stall_ns, 0);
    counter_set(&t->pass.compute_ns, 0);
    counter_set(&t->pass.attention_ns, 0);
    counter_set(&t->pass.wait_ns, 0);
    counter_set(&t->pass.bytes_pass, 0);
    counter_set(&t->pass.kv_bytes, 0);
    telemetry_end(t);
}

void telemetry_trace_begin(struct telemetry *t, uint32_t n_token)
{
    t->trace_now.n = n_token == 1 ? 0 : MW_TRACE;
}

void telemetry_trace(struct telemetry *t, const uint32_t *experts, uint32_t n)
{
    struct mw_expert_trace *to = &t->trace_now;

    if (n + 1 >= MW_TRACE - (uint32_t)to->n) {
        to->n = MW_TRACE; /* a part is of no use */
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        to->id[to->n++] = (uint16_t)experts[i];
    to->id[to->n++] = MW_TRACE_LAYER;
}

static void keep_trace(struct telemetry_trace *to, const struct mw_expert_trace *from)
{
    uint16_t n = from->n < MW_TRACE ? from->n : 0;

    for (uint16_t i = 0; i < n; i++)
        atomic_store_explicit(&to->id[i], from->id[i], memory_order_relaxed);
    atomic_store_explicit(&to->n, n, memory_order_relaxed);
}

/* Store a token in the slot that is not valid for readers, then make it valid. */
static void keep_token(struct telemetry *t, const struct mw_token *token)
{
    enum { N = sizeof *token / sizeof(uint64_t) };
    uint64_t n = counter_get(&t->n_token), field[N];
    struct telemetry_token *to = &t->recent[n % (MW_RECENT + 1)];

    memcpy(field, token, sizeof field);
    /* A reader that sees a byte of this token also sees the count of the one before. */
    atomic_thread_fence(memory_order_release);
    for (size_t i = 0; i < N; i++)
        counter_set(&to->field[i], field[i]);
    keep_trace(&t->trace[n % (MW_RECENT + 1)], &t->trace_now);
    atomic_store_explicit(&t->n_token, n + 1, memory_order_release);
}

void telemetry_token(struct telemetry *t, uint64_t sample_ns)
{
    uint64_t now = clock_ns();
    struct mw_token token = {
        .t_ns = now,
        .n = counter_get(&t->n_decoded) + 1,
        .wall_ns = counter_get(&t->pass.wall_ns),
        .stall_ns = counter_get(&t->pass.stall_ns),
        .compute_ns = counter_get(&t->pass.compute_ns),
        .attention_ns = counter_get(&t->pass.attention_ns),
        .head_ns = counter_get(&t->pass.head_ns),
        .sample_ns = sample_ns,
        .lookup_ns = counter_get(&t->pass.lookup_ns),
        .bytes_pass = counter_get(&t->pass.bytes_pass),
        .n_col = counter_get(&t->pass.n_col),
        .kv_tokens = counter_get(&t->kv_tokens),
        .expert_hits = counter_get(&t->pass.expert_hits),
        .expert_misses = counter_get(&t->pass.expert_misses),
        .expert_bytes = counter_get(&t->pass.expert_bytes),
        .wait_ns = counter_get(&t->pass.wait_ns),
    };

    telemetry_begin(t);
    counter_set(&t->pass.sample_ns, sample_ns);
    counter_set(&t->n_decoded, token.n);
    if (counter_get(&t->t_first_ns) == 0)
        counter_set(&t->t_first_ns, now);
    counter_set(&t->decode_ns, now - counter_get(&t->t_first_ns));
    counter_set(&t->t_last_ns, now);
    telemetry_end(t);
    keep_token(t, &token);
}

static void copy_trace(const struct telemetry_trace *from, struct mw_expert_trace *to)
{
    to->n = atomic_load_explicit(&from->n, memory_order_relaxed);
    for (uint16_t i = 0; i < to->n && i < MW_TRACE; i++)
        to->id[i] = atomic_load_explicit(&from->id[i], memory_order_relaxed);
}

/*
 * Copy the last tokens.  The ring has one more slot than a sample, which belongs to the
 * writer.  If the writer continued during the copy, it may have overwritten the oldest tokens,
 * so the copy is repeated.
 */
static void sample_tokens(const struct telemetry *t, struct mw_sample *out)
{
    enum { N = sizeof(struct mw_token) / sizeof(uint64_t) };
    uint64_t n, after;

    do {
        n = atomic_load_explicit(&t->n_token, memory_order_acquire);
        for (uint64_t i = n > MW_RECENT ? n - MW_RECENT : 0; i < n; i++) {
            const struct telemetry_token *from = &t->recent[i % (MW_RECENT + 1)];
            uint64_t field[N];

            for (size_t k = 0; k < N; k++)
                field[k] = counter_get(&from->field[k]);
            memcpy(&out->recent[i % MW_RECENT], field, sizeof field);
            copy_trace(&t->trace[i % (MW_RECENT + 1)], &out->trace[i % MW_RECENT]);
        }
        atomic_thread_fence(memory_order_acquire);
        after = counter_get(&t->n_token);
    } while (after != n);
    out->n_token = n;
}

void telemetry_drafts(const struct telemetry *t, struct mw_drafts *out)
{
    const counter *from = (const counter *)&t->draft;
    uint64_t *to = (uint64_t *)out;

    static_assert(sizeof *out / sizeof *to == sizeof t->draft / sizeof *from, "the same figures");
    for (size_t i = 0; i < sizeof *out / sizeof *to; i++)
        to[i] = counter_get(&from[i]);
}

/* Copy figures that belong together, and repeat it until no writer interfered. */
static void sample_pass(const struct telemetry *t, struct mw_sample *out)
{
    uint64_t before, after;

    do {
        before = atomic_load_explicit(&t->seq, memory_order_acquire);
        out->pass.wall_ns = counter_get(&t->pass.wall_ns);
        out->pass.stall_ns = counter_get(&t->pass.stall_ns);
        out->pass.compute_ns = counter_get(&t->pass.compute_ns);
        out->pass.attention_ns = counter_get(&t->pass.attention_ns);
        out->pass.head_ns = counter_get(&t->pass.head_ns);
        out->pass.sample_ns = counter_get(&t->pass.sample_ns);
        out->pass.lookup_ns = counter_get(&t->pass.lookup_ns);
        out->pass.bytes_pass = counter_get(&t->pass.bytes_pass);
        out->pass.n_col = counter_get(&t->pass.n_col);
        out->pass.expert_hits = counter_get(&t->pass.expert_hits);
        out->pass.expert_misses = counter_get(&t->pass.expert_misses);
        out->pass.expert_bytes = counter_get(&t->pass.expert_bytes);
        out->pass.wait_ns = counter_get(&t->pass.wait_ns);
        out->pass.kv_bytes = counter_get(&t->pass.kv_bytes);
        out->n_token_before = counter_get(&t->n_token_before);
        out->n_prompt = counter_get(&t->n_prompt);
        out->n_decoded = counter_get(&t->n_decoded);
        out->t_start_ns = counter_get(&t->t_start_ns);
        out->t_first_ns = counter_get(&t->t_first_ns);
        out->t_last_ns = counter_get(&t->t_last_ns);
        out->decode_ns = counter_get(&t->decode_ns);
        telemetry_drafts(t, &out->draft);
        atomic_thread_fence(memory_order_acquire);
        after = counter_get(&t->seq);
    } while (before != after || (before & 1) != 0);
}

static void sample_layers(const struct telemetry *t, struct mw_sample *out)
{
    for (uint32_t i = 0; i <= out->n_layer; i++) {
        const struct telemetry_layer *from = &t->layer[i];
        struct mw_sample_layer *to = &out->layer[i];

        to->kind = (uint8_t)counter_get(&from->kind);
        to->bytes = counter_get(&from->bytes);
        to->pinned_bytes = counter_get(&from->pinned_bytes);
        to->read_bytes = counter_get(&from->read_bytes);
        to->kv_bytes = counter_get(&from->kv_bytes);
        to->passes = counter_get(&from->passes);
        to->read_ns = counter_get(&from->read_ns);
        to->stall_ns = counter_get(&from->stall_ns);
        to->compute_ns = counter_get(&from->compute_ns);
    }
}

static void sample_experts(const struct telemetry *t, struct mw_sample *out)
{
    out->experts.n_expert = counter_get(&t->n_expert);
    out->experts.all = counter_get(&t->expert_all);
    out->experts.slots = counter_get(&t->expert_slots);
    out->experts.held = counter_get(&t->expert_held);
    out->experts.hits = counter_get(&t->expert_hits);
    out->experts.misses = counter_get(&t->expert_misses);
    out->experts.bytes_read = counter_get(&t->expert_bytes);
    out->experts.bins = counter_get(&t->heat_bins);
    for (uint32_t i = 0; out->experts.bins > 0 && i < MW_HEAT; i++)
        out->experts.heat[i] = atomic_load_explicit(&t->heat[i], memory_order_relaxed);
}

static void sample_budget(const struct telemetry *t, struct mw_sample *out)
{
    uint64_t signal = counter_get(&t->budget_signal), next = counter_get(&t->budget_next);

    out->budget.most = counter_get(&t->budget_most);
    if (out->budget.most == 0)
        return;
    out->budget.chosen = counter_get(&t->budget_chosen);
    out->budget.least = counter_get(&t->budget_least);
    out->budget.reserve = counter_get(&t->budget_reserve);
    out->budget.spare = counter_get(&t->budget_spare);
    out->budget.step = counter_get(&t->budget_step);
    out->budget.changed_ns = counter_get(&t->budget_changed_ns);
    out->budget.delay_ns = counter_get(&t->budget_delay_ns);
    if (signal < MW_SIGNALS)
        snprintf(out->budget.signal, sizeof out->budget.signal, "%s",
                 mw_signal_name((enum mw_signal)signal));
    if (next < MW_PLAN_ROWS)
        snprintf(out->budget.next, sizeof out->budget.next, "%s",
                 mw_plan_row_name((enum mw_plan_row)next));
}

void telemetry_run(const struct telemetry *t, struct mw_run *out)
{
    unsigned char *to = (unsigned char *)out;
    uint64_t before, after;

    do {
        before = atomic_load_explicit(&t->run_seq, memory_order_acquire);
        for (size_t i = 0; i < sizeof *out; i++)
            to[i] = atomic_load_explicit(&t->run[i], memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        after = counter_get(&t->run_seq);
    } while (before != after || (before & 1) != 0);
}

/* Copy a plan, and the memory that was taken under it: weights are read while a plan takes the
 * place of another, and their bytes are compared with its items. */
static void sample_plan(const struct telemetry *t, struct mw_sample *out)
{
    uint64_t before;

    do {
        before = atomic_load_explicit(&t->run_seq, memory_order_acquire);
        telemetry_run(t, &out->run);
        for (int i = 0; i < MW_PLAN_ROWS; i++) {
            out->mem.plan[i] = counter_get(&t->plan[i]);
            out->mem.used[i] = counter_get(&t->used[i]);
        }
        out->mem.used[MW_ROW_PINNED] += counter_get(&t->pinned_held);
        out->mem.lent_bytes = counter_get(&t->lent_experts);
        atomic_thread_fence(memory_order_acquire);
    } while (before != counter_get(&t->run_seq));
    /* Blocks are pinned between the publications of the session, so compare them here. */
    if (out->mem.used[MW_ROW_PINNED] > out->mem.plan[MW_ROW_PINNED])
        out->mem.lent_bytes += out->mem.used[MW_ROW_PINNED] - out->mem.plan[MW_ROW_PINNED];
}

void telemetry_sample(const struct telemetry *t, struct mw_sample *out)
{
    memset(out, 0, sizeof *out);
    out->t_ns = clock_ns();
    sample_plan(t, out);
    out->state = (enum mw_state)counter_get(&t->state);
    out->layer_now = (uint32_t)counter_get(&t->layer_gauge);
    out->n_prompt_done = counter_get(&t->n_prompt_done);
    out->prefill_ns = counter_get(&t->prefill_ns);
    sample_pass(t, out);
    sample_tokens(t, out);
    out->io.bytes_read = counter_get(&t->bytes_read) + counter_get(&t->head_bytes_read);
    out->io.reads = counter_get(&t->reads) + counter_get(&t->head_reads);
    out->io.read_ns = counter_get(&t->read_ns);
    out->io.lookup_bytes = counter_get(&t->lookup_bytes);
    out->io.retries = counter_get(&t->retries);
    out->io.depth_gauge = counter_get(&t->depth_gauge);
    out->io.mirror = counter_get(&t->mirror);
    for (int i = 0; i < MW_DISKS; i++) {
        out->io.disk_bytes[i] = counter_get(&t->disk_bytes[i]);
        out->io.disk_ns[i] = counter_get(&t->disk_ns[i]);
    }
    out->mem.saved_bytes = counter_get(&t->saved_bytes);
    out->mem.ahead_done_bytes = counter_get(&t->ahead_done_bytes);
    out->mem.ahead_bytes = counter_get(&t->ahead_bytes);
    sample_budget(t, out);
    out->kv.tokens = out->kv.context = counter_get(&t->kv_tokens);
    out->kv.capacity = counter_get(&t->kv_capacity);
    out->kv.global_bytes = counter_get(&t->kv_global_used);
    out->kv.sliding_bytes = counter_get(&t->kv_sliding_used);
    out->kv.bytes_used = out->kv.global_bytes + out->kv.sliding_bytes;
    out->kv.bytes_reserved = counter_get(&t->kv_reserved);
    out->kv.disk_bytes = counter_get(&t->kv_disk_used);
    out->kv.disk_plan = counter_get(&t->kv_disk_plan);
    out->kv.disk_written = counter_get(&t->kv_written);
    out->kv.disk_read = counter_get(&t->kv_read_bytes);
    out->disk_limit = counter_get(&t->disk_limit);
    out->memory_limit = counter_get(&t->memory_limit);
    out->n_layer = out->run.n_layer <= MW_MAX_LAYER ? out->run.n_layer : 0;
    sample_layers(t, out);
    sample_experts(t, out);
}

void telemetry_set_run(struct telemetry *t, const struct mw_run *run,
                       const uint64_t row[MW_PLAN_ROWS])
{
    const unsigned char *from = (const unsigned char *)run;

    counter_add(&t->run_seq, 1);
    atomic_thread_fence(memory_order_release);
    for (size_t i = 0; i < sizeof *run; i++)
        atomic_store_explicit(&t->run[i], from[i], memory_order_relaxed);
    for (int i = 0; row != NULL && i < MW_PLAN_ROWS; i++)
        counter_set(&t->plan[i], row[i]);
    atomic_thread_fence(memory_order_release);
    counter_add(&t->run_seq, 1);
}
