/* See plan_print.h. */
#include "config.h"

#include "src/plan/plan_print.h"

#include <ctype.h>
#include <stdio.h>

#include "engine/base/json_write.h"
#include "engine/base/numbers.h"
#include "src/machine/limit_words.h"
#include "src/machine/limits_print.h"
#include "src/plan/plan_table.h"
#include "ui/words/receipt.h"

static const char *const row_texts[MW_PLAN_ROWS] = {
    [MW_ROW_PROGRAM] = "code, libraries and their buffers, screen",
    [MW_ROW_TOKENIZER] = "vocabulary and merges",
    [MW_ROW_ACTIVATIONS] = "intermediate values of the tokens in a pass",
    [MW_ROW_LOGITS] = "one score per token of the vocabulary",
    [MW_ROW_RING] = "buffers for reads in flight",
    [MW_ROW_ROWS] = "rows of lookup tables",
    [MW_ROW_KV_GLOBAL] = "keys and values, full attention",
    [MW_ROW_KV_SLIDING] = "keys and values, sliding window",
    [MW_ROW_KV_RECURRENT] = "state of layers without keys and values",
    [MW_ROW_KV_INDEX] = "keys that choose the positions to read",
    [MW_ROW_DRAFTER] = "what guesses the next tokens",
    [MW_ROW_EXPERTS] = "cache of expert weights",
    [MW_ROW_PINNED] = "weights kept in memory",
    [MW_ROW_RESERVE] = "page tables, other kernel memory",
};

const char *plan_row_text(enum mw_plan_row row)
{
    return row_texts[row];
}

void plan_print_model(FILE *to, const struct mw_model_info *info)
{
    char files[16], hot[16];

    fprintf(to, "%s %s, %u layers, %s in files; a token uses %s\n",
            info->name[0] != '\0' ? info->name : info->arch, info->type, info->n_layer,
            units_size(files, sizeof files, info->file_bytes),
            units_size(hot, sizeof hot, info->hot_bytes));
}

void plan_print_rows(FILE *to, const struct plan *p)
{
    char size[16];

    for (int i = 0; i < MW_PLAN_ROWS; i++) {
        if (p->row[i] == 0)
            continue;
        fprintf(to, "  %-14s %9s  %s\n", mw_plan_row_label((enum mw_plan_row)i),
                units_size(size, sizeof size, p->row[i]), row_texts[i]);
    }
    fprintf(to, "  %-14s %9s  ", "total", units_size(size, sizeof size, p->sum_bytes));
    fprintf(to, "of a budget of %s\n", units_size(size, sizeof size, p->budget_bytes));
}

static const char *rotated_text(enum mw_kv t)
{
    return mw_kv_is_rotated(t) ? " (rotated)" : "";
}

static void print_sentence(FILE *to, const char *text)
{
    if (text[0] != '\0')
        fprintf(to, "%c%s.\n", toupper((unsigned char)text[0]), text + 1);
}

/* The drafts that the predictions assume, or why there are none. */
static void print_drafts(FILE *to, const struct mw_model *m, const struct plan *p,
                         const struct mw_options *o)
{
    char rate[24], size[16], text[MW_NO_DRAFTER_TEXT];

    if (p->assumed > 0) {
        fprintf(to, "Each pass verifies %u draft%s.", p->draft_depth,
                p->draft_depth == 1 ? "" : "s");
        if (p->low_bytes > 0)
            fprintf(to, " The model drafts with copies in %s.", p->low.name);
        if (p->undrafted_tps > p->pass_tps)
            fprintf(to, " Without drafts, their %s would pin weights: %s tok/s.",
                    units_size(size, sizeof size, p->row[MW_ROW_DRAFTER]),
                    numbers_predicted(rate, sizeof rate, p->undrafted_tps, p->is_doubtful));
        fputc('\n', to);
    } else if (p->n_draft > 0 && p->drafted_tps > 0) {
        fprintf(to, "A pass verifies up to %u drafts, but if %.0f %% of them were right, answers "
                    "would not be faster.\n",
                p->n_draft, 100 * p->acceptance);
    } else if (p->n_draft > 0) {
        fprintf(to,
                "A pass verifies up to %u drafts; this prediction assumes that none is right.\n",
                p->n_draft);
    }
    print_sentence(to, mw_plan_no_drafter(m, o, p, text, sizeof text));
}

/* "~0.34 tok/s if 70 % of the drafts are right, ~0.13 if none is" */
static void print_answers(FILE *to, const struct plan *p)
{
    char rate[24], none[24];

    fprintf(to, "Answers %s tok/s",
            numbers_predicted(rate, sizeof rate, p->decode_tps, p->is_doubtful));
    if (p->assumed > 0)
        fprintf(to, " if %.0f %% of the drafts are right, %s if none is", 100 * p->assumed,
                numbers_predicted(none, sizeof none, p->pass_tps, p->is_doubtful));
    fprintf(to, "; limited by %s.", limit_words(p->binds));
}

void plan_print(FILE *to, const struct mw_model *m, const struct plan *p,
                const struct mw_options *o, const struct plan_print_more *more)
{
    char a[16], b[16], c[16], rate[24], experts[128], advice[MW_DIAGNOSIS_TEXT];
    struct mw_model_info info;
    struct mw_head_info head;

    mw_model_info(m, &info);
    plan_print_model(to, &info);
    if (more->what_if != NULL)
        what_if_print(to, more->what_if);
    fprintf(to, "context %s tokens, prompts in chunks of %u tokens\n",
            numbers_count(a, sizeof a, p->n_ctx), p->chunk);
    fprintf(to, "keys %s%s, values %s%s\n", mw_kv_name(o->kv_k), rotated_text(o->kv_k),
            mw_kv_name(o->kv_v), rotated_text(o->kv_v));
    fprintf(to, "io %s (%s)\n", more->io->name, more->io->reason);
    fprintf(to, "products by %s\n", more->products);
    limits_print(to, 7, m);
    fputc('\n', to);
    plan_print_rows(to, p);
    units_size(c, sizeof c, info.hot_bytes);
    if (o->io == MW_IO_MMAP)
        fprintf(to, "\nMore memory than this will be used: %s.\n", mw_mmap_notice());
    if (p->streamed_bytes == 0)
        fprintf(to, "\nTokens read nothing from disk%s: all %s of weights are pinned.\n",
                p->keeps_rows ? "" : " but their rows of the lookup tables", c);
    else
        fprintf(to, "\nEach %s reads %s from disk; %s of %s are pinned.\n",
                p->assumed > 0 ? "pass" : "token",
                units_size(a, sizeof a, p->streamed_bytes),
                p->streamed_share == 0 && p->pinned_bytes > 0 /* with their rounding */
                    ? "all"
                    : units_size(b, sizeof b, p->pinned_bytes),
                c);
    if (p->has_kv_disk)
        fprintf(to, "%s.\n", receipt_kv_disk(advice, sizeof advice, p));
    if (p->saved_bytes > 0)
        fprintf(to, "Packing BF16 weights saves ~%s of memory, by a sample of the file.\n",
                units_size(a, sizeof a, p->saved_bytes));
    if (p->has_head && mw_model_head(m, &head))
        fprintf(to, "Tokens are drafted by the head in %s%s; a draft uses %s, %s of them pinned.\n",
                head.is_in_model ? "the model's file" : "",
                head.is_in_model ? "" : head.file, units_size(a, sizeof a, head.hot_bytes),
                p->n_head_slot > 0 ? units_size(b, sizeof b, p->head_pinned_bytes) : "all");
    if (p->n_expert_all > 0)
        fprintf(to, "%s.\n", receipt_experts(experts, sizeof experts, p));
    if (p->decode_tps > 0) {
        print_answers(to, p);
        if (p->prefill_tps > 0)
            fprintf(to, "  Prompts %s tok/s.",
                    numbers_predicted(rate, sizeof rate, p->prefill_tps, p->is_doubtful));
        fputc('\n', to);
        print_drafts(to, m, p, o);
        if (mw_diagnosis_advice(more->diagnosis, "--", advice, sizeof advice)[0] != '\0')
            fprintf(to, "To make them faster: %s.\n", advice);
        else
            print_sentence(to, mw_diagnosis_why_not(more->diagnosis, advice, sizeof advice));
    }
}

void plan_print_kv_json(struct json *j, const struct mw_model *m, const struct mw_options *o)
{
    uint64_t global, sliding;

    mw_kv_token_bytes(m, o, &global, &sliding);
    json_object(j, "kv_token_bytes");
    json_u64(j, "global", global);
    json_u64(j, "sliding", sliding);
    json_end(j);
}

void plan_print_rows_json(struct json *j, const struct plan *p)
{
    json_object(j, "rows");
    for (int i = 0; i < MW_PLAN_ROWS; i++)
        json_u64(j, mw_plan_row_name((enum mw_plan_row)i), p->row[i]);
    json_end(j);
    json_u64(j, "sum_bytes", p->sum_bytes);
}

/* A run of a usual length: its peak, and the speed of its last token. */
static void put_outlook(struct json *j, struct mw_model *m, const struct mw_options *o)
{
    struct err ignored = ERR_INIT;
    struct plan_outlook outlook;

    if (mw_plan_outlook(m, o, &PLAN_USUAL_RUN, &outlook, &ignored) != 0)
        return;
    json_object(j, "outlook");
    json_u64(j, "tokens", outlook.n_token);
    json_u64(j, "peak_bytes", outlook.peak_bytes);
    json_u64(j, "pinned_bytes", outlook.pinned_bytes);
    json_u64(j, "streamed_bytes", outlook.streamed_bytes);
    json_double(j, "decode_tps", outlook.tps, 6);
    json_object(j, "rows");
    for (int i = 0; i < MW_PLAN_ROWS; i++)
        json_u64(j, mw_plan_row_name((enum mw_plan_row)i), outlook.row[i]);
    json_end(j);
    json_end(j);
}

/* How the time of a token divides, and the advice. */
static void diagnosis_json(struct json *j, const struct mw_diagnosis *d)
{
    json_object(j, "shares");
    json_double(j, "disk", d->part.disk, 4);
    json_double(j, "memory", d->part.memory, 4);
    json_double(j, "arithmetic", d->part.arithmetic, 4);
    json_double(j, "attention", d->part.attention, 4);
    json_double(j, "others", d->part.others, 4);
    json_double(j, "fixed", d->part.fixed, 4);
    json_end(j);
    json_object(j, "advice");
    json_string(j, "key", d->advice);
    json_u64(j, "budget_bytes", d->budget_bytes);
    json_double(j, "decode_tps", d->to_tps, 6);
    if (d->acceptance > 0)
        json_double(j, "acceptance", d->acceptance, 4);
    json_end(j);
}

void plan_print_json(FILE *to, struct mw_model *m, const struct plan *p,
                     const struct mw_options *o, const struct plan_print_more *more)
{
    struct mw_model_info model, *info = &model;
    char text[MW_NO_DRAFTER_TEXT];
    struct mw_head_info head;
    struct mw_limits limits;
    struct json j;

    mw_model_info(m, info);
    mw_model_limits(m, &limits);

    json_start_stream(&j, to);
    json_object(&j, NULL);
    json_string(&j, "model", info->name);
    json_string(&j, "arch", info->arch);
    json_string(&j, "type", info->type);
    json_string(&j, "io", more->io->name);
    json_string(&j, "io_reason", more->io->reason);
    json_string(&j, "products", more->products);
    limits_json(&j, &limits);
    if (more->what_if != NULL)
        what_if_json(&j, more->what_if);
    json_bool(&j, "has_file", mw_model_has_file(m));
    json_u64(&j, "n_layer", info->n_layer);
    json_u64(&j, "n_param", info->n_param);
    json_u64(&j, "file_bytes", info->file_bytes);
    json_u64(&j, "hot_bytes", info->hot_bytes);
    json_bool(&j, "fits", more->fits);
    json_u64(&j, "budget_bytes", p->budget_bytes);
    json_u64(&j, "ctx", p->n_ctx);
    plan_print_kv_json(&j, m, o);
    json_u64(&j, "chunk", p->chunk);
    json_u64(&j, "n_draft", p->n_draft);
    if (p->has_head && mw_model_head(m, &head))
        json_string(&j, "draft_head", head.file);
    json_u64(&j, "n_slot", p->n_slot);
    plan_print_rows_json(&j, p);
    json_u64(&j, "chat_bytes", o->caller_bytes + mw_kv_file_bytes(m, o));
    json_u64(&j, "pinned_bytes", p->pinned_bytes);
    json_u64(&j, "saved_bytes", p->saved_bytes);
    json_u64(&j, "streamed_bytes", p->streamed_bytes);
    json_u64(&j, "kv_disk_bytes", p->kv_disk_bytes);
    json_u64(&j, "kv_read_bytes", p->kv_read_bytes);
    json_u64(&j, "n_expert", p->n_expert);
    json_u64(&j, "n_expert_all", p->n_expert_all);
    json_double(&j, "expert_hits", p->expert_hits, 6);
    json_bool(&j, "expert_hits_measured", p->hits_measured);
    put_outlook(&j, m, o);
    json_double(&j, "decode_tps", p->decode_tps, 6);
    json_double(&j, "prefill_tps", p->prefill_tps, 6);
    json_double(&j, "pass_tps", p->pass_tps, 6);
    if (mw_plan_no_drafter(m, o, p, text, sizeof text)[0] != '\0')
        json_string(&j, "no_drafter", text);
    if (p->drafted_tps > 0) {
        json_double(&j, "drafted_tps", p->drafted_tps, 6);
        json_double(&j, "draft_acceptance", p->acceptance, 6);
        json_u64(&j, "draft_depth", p->draft_depth);
        if (p->low_bytes > 0)
            json_string(&j, "draft_copies", p->low.name);
    }
    json_bool(&j, "doubtful", p->is_doubtful);
    json_string(&j, "binds", mw_binds_name(p->binds));
    diagnosis_json(&j, more->diagnosis);
    json_bool(&j, "covers_weights", o->io != MW_IO_MMAP);
    json_u64(&j, "smallest_budget_bytes", more->smallest_budget);
    json_u64(&j, "largest_ctx", more->largest_ctx);
    plan_table_json(&j, m, o);
    json_end(&j);
    json_line(&j);
}
