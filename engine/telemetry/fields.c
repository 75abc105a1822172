#include "config.h"

#include "engine/telemetry/fields.h"

/* clang-format off */
#define OF(member)          offsetof(struct mw_sample, member)
#define TEXT(group, member) { #group, #member, OF(group.member), \
                              sizeof ((struct mw_sample *)0)->group.member, FIELD_TEXT, IN_START }
#define RUN(member, type)   { "run", #member, OF(run.member), 0, type, IN_START }
#define TOP(member, type)   { "", #member, OF(member), 0, type, IN_SECOND }
#define TOKEN(member)       { "token", #member, OF(member), 0, FIELD_U64, IN_SECOND }
#define DRAFT(member)       { "draft", #member, OF(draft.member), 0, FIELD_U64, IN_SECOND }
#define DRAFTS(member)      { "draft", #member, OF(draft.member), \
                              sizeof ((struct mw_sample *)0)->draft.member / sizeof(uint64_t), \
                              FIELD_LIST, IN_SECOND }
#define TIME(member)        { "time", #member, OF(pass.member), 0, FIELD_U64, IN_SECOND }
#define IO(member)          { "io", #member, OF(io.member), 0, FIELD_U64, IN_SECOND }
#define EXPERTS(member)     { "experts", #member, OF(experts.member), 0, FIELD_U64, IN_SECOND }
#define PLAN(row, name)     { "mem", "plan_" name, OF(mem.plan[row]), 0, FIELD_U64, IN_ALL }, \
                            { "mem", "used_" name, OF(mem.used[row]), 0, FIELD_U64, IN_SECOND }
#define MEM(member)         { "mem", #member, OF(mem.member), 0, FIELD_U64, IN_SECOND }
#define BUDGET(member)      { "budget", #member, OF(budget.member), 0, FIELD_U64, IN_SECOND }
#define BUDGET_TEXT(member) { "budget", #member, OF(budget.member), \
                              sizeof ((struct mw_sample *)0)->budget.member, FIELD_TEXT, IN_SECOND }
#define KV(member)          { "kv", #member, OF(kv.member), 0, FIELD_U64, IN_SECOND }
#define OS(member)          { "os", #member, OF(os.member), 0, FIELD_OS, IN_SECOND }
#define VERDICT(member)     { "verdict", #member, OF(verdict.member), 0, FIELD_DOUBLE, IN_SECOND }

#define PART(member) \
    { "verdict", "part_" #member, OF(verdict.part.member), 0, FIELD_DOUBLE, IN_SECOND }

const struct field sample_fields[] = {
    { "", "t_ns", OF(t_ns), 0, FIELD_U64, IN_ALL },
    TOP(state, FIELD_STATE),
    TOP(layer_now, FIELD_U32),

    TEXT(run, model),
    TEXT(run, type),
    TEXT(run, arch),
    RUN(n_layer, FIELD_U32),
    RUN(ctx, FIELD_U32),
    RUN(budget_bytes, FIELD_U64),
    TEXT(run, io),
    TEXT(run, io_reason),
    TEXT(run, kv_k),
    TEXT(run, kv_v),
    RUN(threads, FIELD_U32),
    RUN(cores, FIELD_U32),
    RUN(efficient_cores, FIELD_U32),
    RUN(low_power_cores, FIELD_U32),
    TEXT(run, isa),
    TEXT(run, products),
    RUN(hot_bytes, FIELD_U64),
    RUN(file_bytes, FIELD_U64),
    RUN(predicted_decode, FIELD_DOUBLE),
    RUN(predicted_prefill, FIELD_DOUBLE),
    RUN(predicted_assumed, FIELD_DOUBLE),
    RUN(predicted_read, FIELD_U64),
    RUN(predicted_binds, FIELD_BINDS),

    TOKEN(n_prompt),
    TOKEN(n_prompt_done),
    TOKEN(n_decoded),
    TOKEN(t_start_ns),
    TOKEN(t_first_ns),
    TOKEN(t_last_ns),
    TOKEN(prefill_ns),
    TOKEN(decode_ns),

    DRAFT(passes),
    DRAFT(drafted),
    DRAFT(accepted),
    DRAFT(by_head),
    DRAFT(draft_ns),
    DRAFTS(accepted_at),
    DRAFTS(passes_over),
    DRAFTS(pass_ns),

    TIME(wall_ns),
    TIME(stall_ns),
    TIME(compute_ns),
    TIME(attention_ns),
    TIME(head_ns),
    TIME(sample_ns),
    TIME(lookup_ns),
    TIME(bytes_pass),
    TIME(n_col),
    TIME(expert_hits),
    TIME(expert_misses),
    TIME(expert_bytes),
    TIME(wait_ns),
    TIME(kv_bytes),

    IO(bytes_read),
    IO(reads),
    IO(read_ns),
    IO(lookup_bytes),
    IO(retries),
    IO(depth_gauge),
    IO(mirror),
    { "io", "model_disk_bytes", OF(io.disk_bytes[0]), 0, FIELD_U64, IN_SECOND },
    { "io", "model_disk_ns", OF(io.disk_ns[0]), 0, FIELD_U64, IN_SECOND },
    { "io", "mirror_bytes", OF(io.disk_bytes[1]), 0, FIELD_U64, IN_SECOND },
    { "io", "mirror_ns", OF(io.disk_ns[1]), 0, FIELD_U64, IN_SECOND },

    EXPERTS(n_expert),
    EXPERTS(all),
    EXPERTS(slots),
    EXPERTS(held),
    EXPERTS(hits),
    EXPERTS(misses),
    EXPERTS(bytes_read),
    EXPERTS(bins),
    { "experts", "heat", OF(experts.heat), MW_HEAT, FIELD_HEX, IN_SECOND },

    { "limit", "disk", OF(disk_limit), 0, FIELD_U64, IN_ALL },
    { "limit", "memory", OF(memory_limit), 0, FIELD_U64, IN_ALL },

    PLAN(MW_ROW_PROGRAM, "program"),
    PLAN(MW_ROW_TOKENIZER, "tokenizer"),
    PLAN(MW_ROW_ACTIVATIONS, "activations"),
    PLAN(MW_ROW_LOGITS, "logits"),
    PLAN(MW_ROW_RING, "ring"),
    PLAN(MW_ROW_ROWS, "rows"),
    PLAN(MW_ROW_KV_GLOBAL, "kv_global"),
    PLAN(MW_ROW_KV_SLIDING, "kv_sliding"),
    PLAN(MW_ROW_KV_RECURRENT, "kv_recurrent"),
    PLAN(MW_ROW_KV_INDEX, "kv_index"),
    PLAN(MW_ROW_DRAFTER, "drafter"),
    PLAN(MW_ROW_EXPERTS, "experts"),
    PLAN(MW_ROW_PINNED, "pinned"),
    PLAN(MW_ROW_RESERVE, "reserve"),
    MEM(lent_bytes),
    MEM(saved_bytes),
    MEM(ahead_bytes),
    MEM(ahead_done_bytes),

    BUDGET(chosen),
    BUDGET(least),
    BUDGET(most),
    BUDGET(reserve),
    BUDGET(spare),
    BUDGET(step),
    BUDGET(changed_ns),
    BUDGET(delay_ns),
    BUDGET_TEXT(signal),
    BUDGET_TEXT(next),

    KV(context),
    KV(tokens),
    KV(capacity),
    KV(bytes_used),
    KV(bytes_reserved),
    KV(global_bytes),
    KV(sliding_bytes),
    KV(disk_bytes),
    KV(disk_plan),
    KV(disk_written),
    KV(disk_read),

    { "os", "t_ns", OF(os.t_ns), 0, FIELD_U64, IN_SECOND },
    OS(rss),
    OS(rss_anon),
    OS(rss_file),
    OS(rss_peak),
    OS(own),
    OS(charged),
    OS(charged_peak),
    OS(charged_kernel),
    OS(charged_file),
    OS(model_charged),
    OS(limit),
    OS(model_cached),
    OS(system_cached),
    OS(system_total),
    OS(available),
    OS(swap_used),
    OS(swap_own),
    OS(majflt),
    OS(refaults),
    OS(psi_memory_some10),
    OS(psi_io_some10),
    OS(cpu_stolen),

    { "verdict", "binds", OF(verdict.binds), 0, FIELD_BINDS, IN_SECOND },
    VERDICT(share),
    { "verdict", "advice", OF(verdict.advice), sizeof ((struct mw_sample *)0)->verdict.advice,
      FIELD_TEXT, IN_SECOND },
    VERDICT(advice_from),
    VERDICT(advice_to),
    VERDICT(advice_amount),
    VERDICT(full_tps),
    PART(disk),
    PART(rows),
    PART(memory),
    PART(arithmetic),
    PART(attention),
    PART(others),
    PART(fixed),
};
const size_t n_sample_fields = sizeof sample_fields / sizeof sample_fields[0];

#define OF_TOKEN(member) { "", #member, offsetof(struct mw_token, member), 0, FIELD_U64, 0 }

const struct field token_fields[] = {
    OF_TOKEN(t_ns),
    OF_TOKEN(n),
    OF_TOKEN(wall_ns),
    OF_TOKEN(stall_ns),
    OF_TOKEN(compute_ns),
    OF_TOKEN(attention_ns),
    OF_TOKEN(head_ns),
    OF_TOKEN(sample_ns),
    OF_TOKEN(lookup_ns),
    OF_TOKEN(bytes_pass),
    OF_TOKEN(n_col),
    OF_TOKEN(kv_tokens),
    OF_TOKEN(expert_hits),
    OF_TOKEN(expert_misses),
    OF_TOKEN(expert_bytes),
    OF_TOKEN(wait_ns),
};
const size_t n_token_fields = sizeof token_fields / sizeof token_fields[0];

#define OF_LAYER(member) \
    { "layer", #member, offsetof(struct mw_sample_layer, member), 0, FIELD_U64, 0 }

const struct field layer_fields[] = {
    { "layer", "kind", offsetof(struct mw_sample_layer, kind), 0, FIELD_KIND, 0 },
    OF_LAYER(bytes),
    OF_LAYER(pinned_bytes),
    OF_LAYER(read_bytes),
    OF_LAYER(kv_bytes),
    OF_LAYER(passes),
    OF_LAYER(read_ns),
    OF_LAYER(stall_ns),
    OF_LAYER(compute_ns),
};
const size_t n_layer_fields = sizeof layer_fields / sizeof layer_fields[0];

const struct field thread_fields[] = {
    { "thread", "name", offsetof(struct mw_thread, name), sizeof ((struct mw_thread *)0)->name,
      FIELD_TEXT, 0 },
    { "thread", "busy", offsetof(struct mw_thread, busy), 0, FIELD_DOUBLE, 0 },
};
const size_t n_thread_fields = sizeof thread_fields / sizeof thread_fields[0];

const char *const rate_names[] = {
    "decode_last",  "decode_mean", "prefill",         "first_s", "read_bytes_s",
    "stall_share",  "overlap",     "attention_share", "wall_s",  "read_per_token",
    "loading",      "expert_hits", "expert_bytes_per_token", "wait_share",
};
const size_t n_rate_names = sizeof rate_names / sizeof rate_names[0];
/* clang-format on */
