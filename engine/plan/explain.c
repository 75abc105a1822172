/* See explain.h. */
#include "config.h"

#include "engine/plan/explain.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/plan/plan.h"
#include "engine/plan/speed.h"

/* The longest has the products of all types of weights in two forms, and factors. */
#define FORMULA (PLAN_WEIGHTS * 2 * 160 + 80)

/* A formula that grows term by term. */
struct formula {
    char text[FORMULA];
};

__attribute__((format(printf, 2, 3))) static void add(struct formula *f, const char *format,
                                                      ...)
{
    size_t used = strlen(f->text);
    va_list args;

    va_start(args, format);
    vsnprintf(f->text + used, sizeof f->text - used, format, args);
    va_end(args);
}

/* Add " + " before every term but the first. */
static void plus(struct formula *f)
{
    if (f->text[0] != '\0')
        add(f, " + ");
}

/* Put the complete formula in brackets. */
static void bracket(struct formula *f)
{
    struct formula inner = *f;

    snprintf(f->text, sizeof f->text, "(%.*s)", FORMULA - 3, inner.text);
}

static void line_bytes(FILE *to, const char *name, const struct formula *f, uint64_t value)
{
    fprintf(to, "  %-14s = %s = %" PRIu64 " bytes\n", name, f->text, value);
}

static void line(FILE *to, const char *name, const struct formula *f, double value,
                 const char *unit)
{
    fprintf(to, "  %-14s = %s = %.7g %s\n", name, f->text[0] != '\0' ? f->text : "0", value,
            unit);
}

/* --- memory --- */

static void explain_kv(FILE *to, const struct plan_basis *b)
{
    for (int sliding = 0; sliding < 2; sliding++) {
        struct formula f = { "" };
        uint64_t bytes = sliding ? b->in.kv_sliding_token_bytes : b->in.kv_global_token_bytes;

        for (uint32_t i = 0; i < b->n_kv; i++) {
            const struct plan_kv_group *g = &b->kv[i];

            if (g->is_sliding != (sliding != 0))
                continue;
            plus(&f);
            add(&f, "%u * %u * (%" PRIu64 " + %" PRIu64 ")", g->n_layer, g->n_head,
                g->key_bytes, g->value_bytes);
        }
        if (f.text[0] != '\0')
            line_bytes(to, sliding ? "a token, near" : "a token, far", &f, bytes);
    }
}

/* Pages that stay, those that a pass writes, and slots for those that come back. */
static void explain_pages(const struct plan_basis *b, struct formula *f)
{
    const struct plan_input *in = &b->in;
    const struct plan *p = &b->plan;

    uint64_t slots = in->kv_slot_bytes * p->n_kv_slot;

    add(f, "%" PRIu64 " * %u + %" PRIu64, in->kv_slot_bytes, p->n_kv_slot,
        whole_huge_pages(slots) - slots);
    for (uint32_t i = 0; i < in->n_kv_class; i++)
        if (p->kv_keep[i] == UINT32_MAX)
            add(f, " + %" PRIu64 " * ceil(%u / %u) * %u", in->kv_class[i].token_bytes, p->n_ctx,
                in->kv_page_tokens, in->kv_page_tokens);
        else
            add(f, " + %" PRIu64 " * (%u + %u)", in->kv_class[i].token_bytes, p->kv_keep[i],
                p->kv_tail);
}

/* The head has the rest of the item. */
static void explain_drafter(const struct plan_basis *b, struct formula *f)
{
    const struct plan_input *in = &b->in;
    const struct plan *p = &b->plan;
    bool drafts = p->n_draft > 0;
    uint64_t fixed = drafts ? in->drafter_bytes : 0;
    uint32_t n_ctx = drafts ? p->n_ctx : 0, n_pass = drafts ? p->n_draft + 1 : 0;
    uint64_t head = p->row[MW_ROW_DRAFTER] - fixed - in->drafter_token_bytes * n_ctx -
                    in->replay_col_bytes * n_pass - p->low_bytes;

    add(f, "%" PRIu64 " + %" PRIu64 " * %u + %" PRIu64 " * %u + %" PRIu64 " + %" PRIu64, fixed,
        in->drafter_token_bytes, n_ctx, in->replay_col_bytes, n_pass, p->low_bytes, head);
}

static void explain_item(const struct plan_basis *b, enum mw_plan_row row, struct formula *f)
{
    const struct plan_input *in = &b->in;
    const struct plan *p = &b->plan;
    uint32_t page = in->kv_page_tokens > 0 ? in->kv_page_tokens : 1;
    uint64_t rows = p->sum_bytes - p->row[MW_ROW_RESERVE];

    switch (row) {
    case MW_ROW_PROGRAM:
        add(f, "%" PRIu64 " + %" PRIu64 " + %" PRIu64 " * %u", in->program_bytes,
            in->blas_bytes, in->text_token_bytes, p->n_ctx);
        break;
    case MW_ROW_ACTIVATIONS:
        add(f, "%" PRIu64 " + %" PRIu64 " * %u", in->act_fixed_bytes, in->act_col_bytes,
            p->chunk);
        break;
    case MW_ROW_RING:
        add(f, "%" PRIu64 " + %" PRIu64 " * %u + %" PRIu64, in->ring_fixed_bytes,
            in->slot_bytes, p->n_slot,
            whole_huge_pages(in->slot_bytes * p->n_slot) - in->slot_bytes * p->n_slot);
        break;
    case MW_ROW_ROWS:
        add(f, "%" PRIu64 " + %" PRIu64 " * %u + %" PRIu64, in->rows_fixed_bytes,
            in->rows_col_bytes, p->chunk, p->keeps_rows ? in->tables_bytes : 0);
        break;
    case MW_ROW_KV_GLOBAL:
        if (p->has_kv_disk)
            explain_pages(b, f);
        else
            add(f, "%" PRIu64 " * ceil(%u / %u) * %u", in->kv_global_token_bytes, p->n_ctx, page,
                page);
        break;
    case MW_ROW_KV_SLIDING:
        add(f, "%" PRIu64 " * %u + %" PRIu64 " * %u", in->kv_sliding_token_bytes,
            plan_sliding_slots(in->n_swa, p->chunk, p->n_ctx), plan_copy_bytes(in),
            plan_copy_row(in) == row ? p->n_copy : 0);
        break;
    case MW_ROW_KV_RECURRENT:
        add(f, "%" PRIu64 " + %" PRIu64 " * %u", in->recurrent_bytes, plan_copy_bytes(in),
            plan_copy_row(in) == row ? p->n_copy : 0);
        break;
    case MW_ROW_KV_INDEX:
        add(f, "%" PRIu64 " * ceil(%u / %u)", in->kv_index_page_bytes, p->n_ctx, page);
        break;
    case MW_ROW_DRAFTER: explain_drafter(b, f); break;
    case MW_ROW_EXPERTS:
        add(f, "%" PRIu64 " + %" PRIu64 " * %u", in->expert_fixed_bytes, in->expert_slot_bytes,
            p->n_expert);
        break;
    case MW_ROW_PINNED:
        add(f, "%" PRIu64 " + %" PRIu64, in->resident_bytes, p->pinned_bytes);
        break;
    case MW_ROW_RESERVE:
        add(f, "%" PRIu64 " + ceil(%" PRIu64 " / 512)", plan_reserve_bytes(0, in->n_thread),
            rows);
        break;
    default: add(f, "%" PRIu64, p->row[row]); break;
    }
}

static const char *const item_notes[MW_PLAN_ROWS] = {
    [MW_ROW_PROGRAM] = "program and libraries + OpenBLAS + texts and ids * context",
    [MW_ROW_TOKENIZER] = "from the counts of tokens and merges",
    [MW_ROW_ACTIVATIONS] = "fixed + a token * chunk",
    [MW_ROW_LOGITS] = "scores of the vocabulary, for drafts too, and the sampler's tables",
    [MW_ROW_RING] = "tables of the stream + slot * slots + the rest of a huge page",
    [MW_ROW_ROWS] = "fixed + rows of a token * chunk + tables that stay",
    [MW_ROW_KV_GLOBAL] = "a token, far * pages * tokens of a page",
    [MW_ROW_KV_SLIDING] = "a token, near * slots of the window and a chunk + copy * copies",
    [MW_ROW_KV_RECURRENT] = "state of the recurrent layers + copy * copies",
    [MW_ROW_KV_INDEX] = "keys of a page of positions * pages",
    [MW_ROW_DRAFTER] = ("fixed + a token * context + "
                        "inputs of recurrent layers * tokens of a pass + copies + head"),
    [MW_ROW_EXPERTS] = "fixed + expert * cached experts",
    [MW_ROW_PINNED] = "norms and other small weights + blocks",
    [MW_ROW_RESERVE] = "fixed and stacks + page tables: 8 bytes for 4096",
};

static const char *why_pinned(const struct plan_basis *b)
{
    const struct plan *p = &b->plan;

    if (!b->in.streams)
        return "Nothing is pinned: weights are mapped, and the kernel decides what stays.";
    if (p->n_slot > 0 && p->streamed_share == 0)
        return "All blocks are pinned, because they fit the budget.";
    if (p->n_slot == 0)
        return "All blocks are pinned, because they fit the budget.  There are no read buffers.";
    if (p->pinned_bytes == 0)
        return "No block is pinned: the read buffers, the chunk or the copies of turns are below "
               "their targets, and come first.";
    return "The rest of the budget is pinned: every pinned block saves reading it for each "
           "token.  Blocks are chosen evenly over the pass.";
}

static void explain_memory(FILE *to, const struct plan_basis *b)
{
    const struct plan_input *in = &b->in;
    const struct plan *p = &b->plan;
    uint64_t all = plan_pinned_most(in);
    struct formula sum = { "" }, share = { "" };

    fputs("\nKeys and values (layers * heads * (key + value bytes of a head)):\n", to);
    explain_kv(to, b);
    fputs("\nMemory:\n", to);
    for (int i = 0; i < MW_PLAN_ROWS; i++) {
        struct formula f = { "" };

        if (p->row[i] == 0)
            continue;
        explain_item(b, (enum mw_plan_row)i, &f);
        fprintf(to, "  %-14s : %s\n", mw_plan_row_label((enum mw_plan_row)i), item_notes[i]);
        line_bytes(to, mw_plan_row_label((enum mw_plan_row)i), &f, p->row[i]);
        plus(&sum);
        add(&sum, "%" PRIu64, p->row[i]);
    }
    line_bytes(to, "total", &sum, p->sum_bytes);
    fprintf(to, "  The budget is %" PRIu64 " bytes.\n\nWeights:\n  %s\n", p->budget_bytes,
            why_pinned(b));
    if (all > 0 && p->pinned_bytes < all) {
        add(&share, "1 - %" PRIu64 " / (%" PRIu64 " - %" PRIu64 " + %u * %u + %" PRIu64 ")",
            p->pinned_bytes, in->hot_bytes, in->saved_bytes, in->n_block, PLAN_BLOCK_ROUNDING,
            in->landing_bytes);
        fprintf(to, "  streamed share : 1 - pinned / (hot bytes - saved by packing + blocks * "
                    "rounding + landing)\n");
        line(to, "streamed share", &share, p->streamed_share, "");
    }
    if (in->saved_bytes > 0) {
        struct formula saved = { "" };

        add(&saved, "%" PRIu64 " * (1 - %.9g)", in->saved_bytes, p->streamed_share);
        fprintf(to, "  packing : what all BF16 weights save, by a sample of the file * pinned "
                    "share; they arrive in a landing\n");
        line(to, "packing", &saved, (double)in->saved_bytes * (1 - p->streamed_share), "");
    }
    if (p->n_expert_all > 0)
        fprintf(to, "  Experts: %u of %u are cached; %.7g of the used ones hit (%s).\n",
                p->n_expert, p->n_expert_all, p->expert_hits,
                p->hits_measured ? "by observed use" : "even use is assumed");
}

/* The experts of a chunk of n tokens, as a multiple of those of one token. */
static void explain_share(FILE *to, const struct plan_basis *b, uint32_t n, double share)
{
    const struct plan_input *in = &b->in;
    struct formula f = { "" };

    fprintf(to, "  %-14s : experts that the chunk uses, for each that a token uses\n",
            "expert share");
    if (!b->plan.hits_measured) {
        add(&f, "%u * (1 - (1 - %u / %u) ** %u) / %u", in->n_expert_layer, in->n_expert_used,
            in->n_expert_layer, n, in->n_expert_used);
    } else {
        fprintf(to,
                "  %-14s : experts * (parts - sum of (1 - use of a part) ** tokens) / parts "
                "/ used, in %.0f tokens\n",
                "", in->expert_use.n_token);
        add(&f, "%u * (%d", in->n_expert_layer, MW_USE_PARTS);
        for (int i = 0; i < MW_USE_PARTS; i++)
            add(&f, " - %.7g ** %u", 1 - speed_use(in, i), n);
        add(&f, ") / %d / %u", MW_USE_PARTS, in->n_expert_used);
    }
    line(to, "expert share", &f, share, "");
}

/* --- limits --- */

static void limit(FILE *to, const char *name, double value, const char *unit,
                  int64_t measured_s, bool is_doubtful, int64_t now_s)
{
    fprintf(to, "  %-18s : %.7g %s, ", name, value, unit);
    if (measured_s > 0)
        fprintf(to, "measured %" PRId64 " s ago%s\n", now_s - measured_s,
                is_doubtful ? "; doubtful: " MW_DOUBT : "");
    else
        fputs("assumed or not measured\n", to);
}

/* The rates of weight type i as the formulas have them, where they are not the measured ones. */
static void used_rates(FILE *to, const struct plan_basis *b, uint32_t i, bool is_laid)
{
    const struct plan_weights *w = &b->in.weights[i];
    const char *type = is_laid ? w->laid_type : w->type;
    double scaled = is_laid ? w->laid_column_bytes_s : w->column_bytes_s;
    const struct mw_rate *r = b->limits.rate, *end = r + b->limits.n_rate;
    char threads[60] = "", most[40] = "";
    struct speed_product form[2];

    while (r < end && strcmp(r->type, type) != 0)
        r++;
    if (r == end || type[0] == '\0')
        return;
    (void)speed_products(&b->in, i, is_laid ? 0 : 1, false, 1, form); /* all in this form */
    if (b->limits.n_thread > 0 && b->limits.n_thread != b->in.n_thread)
        snprintf(threads, sizeof threads, ", with %d threads in place of %d", b->in.n_thread,
                 b->limits.n_thread);
    if (!(scaled > 0))
        snprintf(most, sizeof most, ", as memory");
    else if (form[0].column_bytes_s < scaled)
        snprintf(most, sizeof most, ", at most %g times memory", SPEED_FASTEST);
    else if (form[0].column_bytes_s > scaled)
        snprintf(most, sizeof most, ", at least as fast as in the file");
    if (form[0].column_bytes_s < r->column_bytes_s || form[0].column_bytes_s > r->column_bytes_s)
        fprintf(to, "  %-11s in use : column %.10g bytes/s%s%s\n", type, form[0].column_bytes_s,
                threads, most);
    if (form[0].chunk_flops_s < r->chunk_flops_s || form[0].chunk_flops_s > r->chunk_flops_s)
        fprintf(to, "  %-11s in use : chunk %.10g operations/s%s%s\n", type,
                form[0].chunk_flops_s, threads,
                w->speedup > 1 || (w->speedup > 0 && w->speedup < 1) ? ", with OpenBLAS" : "");
}

static void explain_limits(FILE *to, const struct plan_basis *b, int64_t now_s)
{
    const struct plan_input *in = &b->in;
    const struct mw_limits *l = &b->limits;
    const struct mw_steps *s = &l->steps;

    fputs("\nLimits of this machine:\n", to);
    limit(to, "disk", in->disk_bytes_s, "bytes/s", l->measured_s, l->is_doubtful, now_s);
    if (l->mirror_bytes_s > 0)
        limit(to, "  of it, mirror", l->mirror_bytes_s, "bytes/s", l->measured_s, l->is_doubtful,
              now_s);
    limit(to, "memory", in->memory_bytes_s, "bytes/s", l->measured_s, l->is_doubtful, now_s);
    limit(to, "small read", in->lookup_s, "s", l->measured_s, l->is_doubtful, now_s);
    limit(to, "read, cpu", in->costs.read_cpu_s, "s/byte", l->measured_s, l->is_doubtful, now_s);
    limit(to, "contention", in->costs.contention, "", l->measured_s, l->is_doubtful, now_s);
    for (uint32_t i = 0; i < l->n_rate; i++) {
        const struct mw_rate *r = &l->rate[i];
        char name[40];

        snprintf(name, sizeof name, "%s column", r->type);
        limit(to, name, r->column_bytes_s, "bytes/s", r->measured_s, r->is_doubtful, now_s);
        snprintf(name, sizeof name, "%s chunk", r->type);
        limit(to, name, r->chunk_flops_s, "operations/s", r->measured_s, r->is_doubtful, now_s);
    }
    for (uint32_t i = 0; i < in->n_weights; i++) {
        used_rates(to, b, i, false);
        used_rates(to, b, i, true);
    }
    limit(to, "round", in->costs.round_s, "s", s->measured_s, s->is_doubtful, now_s);
    limit(to, "wake", in->costs.wake_s, "s", s->measured_s, s->is_doubtful, now_s);
    limit(to, "value", in->costs.value_s, "s", s->measured_s, s->is_doubtful, now_s);
    limit(to, "curve", in->costs.curve_s, "s", s->measured_s, s->is_doubtful, now_s);
    limit(to, "KV load", in->costs.load_s, "s", s->measured_s, s->is_doubtful, now_s);
    limit(to, "KV multiply", in->costs.mac_s, "s", s->measured_s, s->is_doubtful, now_s);
}

/* --- factors --- */

static void factor(FILE *to, const char *name, double value, const char *note)
{
    fprintf(to, "  %-18s : %.10g%s\n", name, value, note);
}

static void explain_factors(FILE *to, const struct plan_basis *b, int64_t now_s)
{
    const struct plan_factors *f = &b->in.factors;

    if (!f->is_set)
        return;
    fprintf(to, "\nFactors measured in answers of this model, %" PRId64 " s ago%s:\n",
            now_s - b->answered_s, f->is_doubtful ? " (doubtful: the tokens were few)" : "");
    fputs("  With a factor of 2, a term takes twice as long as the limits predict.\n", to);
    factor(to, "disk factor", f->disk, ", of reading blocks, experts, keys and values");
    factor(to, "processor factor", f->processors,
           ", of products, small weights, rounds, steps, reading and experts of a token");
    factor(to, "attention factor", f->attention, ", of a token");
    factor(to, "lookup factor", f->lookups, ", of a token");
    factor(to, "lost time, token", f->crowded,
           " s that other programs take from a token, for each second of computing");
    factor(to, "lost time, prompt", f->others, " s that they take from a prompt, in the same way");
    factor(to, "pass factor", f->whole,
           ", of a complete token, so that the formulas give the measured time");
    factor(to, "between tokens", f->fixed_s, " s for the sampler and the text");
}

/* --- time --- */

/* Some tokens that run together through one part of the layers, or through both. */
struct run {
    const struct plan_basis *b;
    bool in_part[PLAN_PARTS];
    uint32_t n, n_before;
    uint32_t n_row; /* tokens that are looked up */
    bool is_token;  /* of an answer, which has all factors */
    const struct plan_time *t;
};

/* The factor that a term is multiplied by. */
enum corrected { BY_PROCESSORS, BY_ATTENTION, BY_LOOKUPS, BY_DISK, BY_MEMORY };

/* Write the line of a term with its factors, after a line that names what is in it. */
static void term(FILE *to, const struct run *r, const char *name, const char *note,
                 enum corrected by, struct formula *f, double value)
{
    const struct speed_factors x = speed_factors_of(&r->b->in, r->is_token);
    const char *const names[] = { "processor factor", "attention factor", "lookup factor",
                                  "disk factor", "processor factor" };
    const double values[] = { x.processors, x.attention, x.lookups, x.disk, x.processors };
    bool is_set = r->b->in.factors.is_set && f->text[0] != '\0';
    bool has_own = is_set && (r->is_token || by == BY_DISK);
    bool has_lost = is_set && (by == BY_PROCESSORS || by == BY_ATTENTION);
    struct formula words = { "" };

    add(&words, "%s", note);
    if (has_own || has_lost) {
        bracket(&words);
        bracket(f);
    }
    if (has_own) {
        add(&words, " * %s", names[by]);
        add(f, " * %.10g", values[by]);
    }
    if (has_lost) {
        add(&words, " * (1 + lost time, %s)", r->is_token ? "token" : "prompt");
        add(f, " * (1 + %.10g)", x.others);
    }
    fprintf(to, "  %-14s : %s\n", name, words.text);
    line(to, name, f, value, "s");
}

static double sum_of(const struct run *r, const double x[PLAN_PARTS])
{
    return (r->in_part[0] ? x[0] : 0) + (r->in_part[1] ? x[1] : 0);
}

static double share_of(const struct run *r)
{
    return speed_expert_share(&r->b->in, r->n);
}

static void add_product(struct formula *f, const struct run *r, double share,
                        const struct speed_product *p)
{
    plus(f);
    if (share < 1 || share > 1)
        add(f, "%.10g * ", share);
    add(f, "%.10g / %.10g", p->bytes, p->column_bytes_s);
    if (r->n > 1 && (double)r->n > share)
        add(f, " + (%u - %.10g) * max(%d * %.10g / %.10g - %.10g / %.10g, 0) / %d", r->n, share,
            SPEED_COLUMNS, p->flops, p->chunk_flops_s, p->bytes, p->column_bytes_s,
            SPEED_COLUMNS - 1);
}

/* The products of all weight types: "bytes / rate", and the slope for further tokens. */
static struct formula products(const struct run *r, bool of_experts)
{
    const struct plan_input *in = &r->b->in;
    double share = of_experts ? share_of(r) : 1;
    struct formula f = { "" };

    for (uint32_t i = 0; i < in->n_weights; i++) {
        const struct plan_weights *w = &in->weights[i];
        double bytes = sum_of(r, of_experts ? w->expert_bytes : w->token_bytes);
        struct speed_product form[2];
        int n_form = speed_products(in, i, r->b->plan.streamed_share, of_experts, bytes, form);

        for (int k = 0; k < n_form && bytes > 0; k++)
            add_product(&f, r, share, &form[k]);
    }
    return f;
}

static const char *products_note(const struct run *r)
{
    return r->n > 1 ? "bytes / column + further tokens * slope to a chunk, of each type of weights"
                    : "bytes / column, of each type of weights";
}

static double steps_sum(const struct run *r, size_t offset)
{
    double x[PLAN_PARTS];

    for (int i = 0; i < PLAN_PARTS; i++)
        memcpy(&x[i], (const char *)&r->b->in.steps[i] + offset, sizeof x[i]);
    return sum_of(r, x);
}

#define STEPS(r, member) steps_sum(r, offsetof(struct plan_steps, member))

static void explain_rounds(FILE *to, const struct run *r)
{
    double share = r->b->plan.streamed_share;
    struct formula f = { "" };

    add(&f, "(");
    for (int i = 0; i < PLAN_PARTS; i++) {
        const struct plan_steps *s = &r->b->in.steps[i];
        double streamed = share * s->n_block;

        if (!r->in_part[i])
            continue;
        add(&f, "%s%.10g + %.10g + min(%.10g - %.10g, %.10g + %.10g)", i > 0 ? " + " : "",
            s->n_round, streamed, s->n_block, streamed, streamed, s->n_product);
    }
    add(&f, ") * %.10g", r->b->in.costs.round_s);
    term(to, r, "rounds",
         "(jobs + streamed blocks + min(pinned blocks, streamed blocks + products)) * round",
         BY_PROCESSORS, &f, r->t->rounds_s);
}

static void explain_attention(FILE *to, const struct run *r)
{
    const struct plan_input *in = &r->b->in;
    double far = speed_mean_seen(r->n_before, r->n, 0);
    double near = speed_mean_seen(r->n_before, r->n, in->n_near);
    struct formula bytes = { "" }, f = { "" };

    add(&bytes, "%.10g * %.10g + %.10g * %.10g", far, sum_of(r, in->kv_far_bytes), near,
        sum_of(r, in->kv_near_bytes));
    if (in->recurrent_bytes > 0)
        add(&bytes, " + %" PRIu64, in->recurrent_bytes); /* a pass reads its state, too */
    line(to, "KV bytes", &bytes, r->t->kv_bytes, "bytes");
    add(&f,
        "max(%u * ((%.10g * %.10g + %.10g * %.10g) * %.10g + (%.10g * %.10g + %.10g * %.10g) * "
        "%.10g) / %d, %.10g / %.10g)",
        r->n, far, STEPS(r, far_load), near, STEPS(r, near_load), in->costs.load_s, far,
        STEPS(r, far_mac), near, STEPS(r, near_mac), in->costs.mac_s,
        in->n_thread > 0 ? in->n_thread : 1, r->t->kv_bytes, in->memory_bytes_s);
    term(to, r, "attention", "max(loading and multiplying keys and values, KV bytes / memory)",
         BY_ATTENTION, &f, r->t->attention_s);
}

/* Add the first column of all products, whose weights come from memory. */
static void add_first_columns(struct formula *f, const struct run *r, bool of_experts)
{
    const struct plan_input *in = &r->b->in;
    double share = of_experts ? share_of(r) : 1;

    for (uint32_t i = 0; i < in->n_weights; i++) {
        const struct plan_weights *w = &in->weights[i];
        double bytes = sum_of(r, of_experts ? w->expert_bytes : w->token_bytes);
        struct speed_product form[2];
        int n_form = speed_products(in, i, r->b->plan.streamed_share, of_experts, bytes, form);

        for (int k = 0; k < n_form && bytes > 0; k++) {
            plus(f);
            if (share < 1 || share > 1)
                add(f, "%.10g * ", share);
            add(f, "%.10g / %.10g", form[k].bytes, form[k].column_bytes_s);
        }
    }
}

static void add_small(struct formula *f, const struct run *r)
{
    add(f, "%" PRIu64 " / %d * %d / %.10g", r->b->in.resident_bytes, PLAN_PARTS,
        r->in_part[0] + r->in_part[1], r->b->in.memory_bytes_s);
}

static void explain_memory_time(FILE *to, const struct run *r)
{
    struct formula f = { "" };

    if (!(r->t->disk_s > 0))
        return;
    add_first_columns(&f, r, false);
    add_first_columns(&f, r, true);
    plus(&f);
    add_small(&f, r);
    add(&f, " + %.10g / %.10g", r->t->kv_bytes, r->b->in.memory_bytes_s);
    term(to, r, "memory", "weights of the first column + small weights + keys and values",
         BY_MEMORY, &f, r->t->memory_s);
}

/* Add the time of a pass. */
static void add_wall(struct formula *f, const struct run *r)
{
    const struct speed_factors x = speed_factors_of(&r->b->in, r->is_token);
    const struct plan_time *t = r->t;
    bool is_scaled = r->is_token && r->b->in.factors.is_set;

    if (is_scaled)
        add(f, "%.10g + %.10g * (", x.fixed_s, x.whole);
    add(f, "max(%.10g, %.10g, %.10g)", t->processors_s, t->disk_s, t->ring_s);
    if (t->disk_s > 0)
        add(f, " + %.10g * min(%.10g, %.10g)", r->b->in.costs.contention, t->disk_s, t->memory_s);
    if (is_scaled)
        add(f, ")");
}

/* Write the same in words. */
static void note_wall(FILE *to, const struct run *r, const char *name, const char *before,
                      const char *after)
{
    bool is_scaled = r->is_token && r->b->in.factors.is_set;

    fprintf(to, "  %-14s : %s%smax(processors, disk, ring)%s%s%s\n", name, before,
            is_scaled ? "between tokens + pass factor * (" : "",
            r->t->disk_s > 0 ? " + contention * min(disk, memory)" : "", is_scaled ? ")" : "",
            after);
}

/* The products with streamed blocks.  If some weights are pinned in another form, form 0 is those
 * that are streamed. */
static void explain_held(FILE *to, const struct run *r)
{
    const struct plan_input *in = &r->b->in;
    double streamed = r->b->plan.streamed_share;
    struct formula f = { "" };

    for (uint32_t i = 0; i < in->n_weights; i++) {
        double bytes = sum_of(r, in->weights[i].token_bytes);
        struct formula one = { "" };
        struct speed_product form[2];

        if (!(bytes > 0))
            continue;
        if (speed_products(in, i, streamed, false, bytes, form) == 1) {
            add_product(&one, r, 1, &form[0]);
            plus(&f);
            add(&f, "%.10g * (%s)", streamed, one.text);
        } else {
            add_product(&f, r, 1, &form[0]);
        }
    }
    term(to, r, "held", "products with streamed blocks", BY_PROCESSORS, &f, r->t->held_s);
}

static void explain_ring(FILE *to, const struct run *r)
{
    const struct plan_input *in = &r->b->in;
    const struct plan_time *t = r->t;
    uint32_t n = r->b->plan.n_slot;
    bool has_factor = in->factors.is_set;
    struct formula f = { "" }, read = { "" };

    if (!(t->ring_s > 0))
        return;
    explain_held(to, r);
    if (has_factor)
        add(&read, "%.10g * ", speed_factors_of(in, r->is_token).disk);
    add(&read, "%.10g / %.10g + %.10g * %.10g", t->streamed_bytes, in->disk_bytes_s, t->n_streamed,
        in->lookup_s);
    fprintf(to, "  %-14s : reads / reads in flight, or (reads + blocks * 2 * wake + held) / slots; "
                "reads: %sbytes / disk + blocks * small read\n",
            "ring", has_factor ? "disk factor * " : "");
    add(&f, "max((%s) / %u, (%s + 2 * %.10g * %.10g + %.10g) / %.10g)", read.text, SPEED_FLYING(n),
        read.text, t->n_streamed, in->costs.wake_s, t->held_s, SPEED_SLOTS(n));
    line(to, "ring", &f, t->ring_s, "s");
}

static void explain_disk(FILE *to, const struct run *r, struct formula *processors)
{
    const struct plan_input *in = &r->b->in;
    const struct plan_time *t = r->t;
    struct formula disk = { "" }, missed = { "" };

    if (t->missed_bytes >= 1) {
        add(&missed, "%.10g / %.10g + %u * %.10g", t->missed_bytes, in->disk_bytes_s,
            in->n_moe_layer, in->lookup_s);
        term(to, r, "missed experts", "bytes of experts to read / disk + layers * small read",
             BY_DISK, &missed, t->missed_s);
    }
    if (t->missing_layers > 0) {
        struct formula layers = { "" }, overlap = { "" };

        add(&layers, "%u * (1 - exp(-%u * %.10g / %" PRIu64 "))", in->n_moe_layer,
            in->n_expert_used, t->missed_bytes, in->experts_token_bytes);
        fprintf(to, "  %-14s : layers in which an expert is read while others are computed\n",
                "missing layers");
        line(to, "missing layers", &layers, t->missing_layers, "");
        add(&overlap, "%.10g * min(%.10g / %u, %.10g / %.10g)", t->missing_layers, t->experts_s,
            in->n_moe_layer, t->missed_s, t->missing_layers);
        line(to, "overlap", &overlap, t->overlap_s, "s");
    }
    if (t->experts_s > 0)
        add(processors, " + %.10g + %.10g - %.10g", t->experts_s, t->missed_s, t->overlap_s);
    line(to, "processors", processors, t->processors_s, "s");
    if (t->disk_s > 0)
        add(&disk, "(%.10g + %.10g + %.10g) / %.10g", t->streamed_bytes, t->missed_bytes,
            t->paged_bytes, in->disk_bytes_s);
    term(to, r, "disk", "(blocks + missed experts + keys and values) / rate", BY_DISK, &disk,
         t->disk_s);
    explain_ring(to, r);
    explain_memory_time(to, r);
}

/* All terms of speed.h. */
static void explain_terms(FILE *to, const struct run *r)
{
    const struct plan_input *in = &r->b->in;
    const struct plan_time *t = r->t;
    struct formula f, sum = { "" };

    f = products(r, false);
    term(to, r, "products", products_note(r), BY_PROCESSORS, &f, t->products_s);
    f = (struct formula){ "" };
    add_small(&f, r);
    term(to, r, "small weights", "bytes of the layers / memory", BY_PROCESSORS, &f, t->small_s);
    explain_rounds(to, r);
    f = (struct formula){ "" };
    add(&f, "%u * (%.10g * %.10g + %.10g * %.10g) / %d", r->n, STEPS(r, n_value),
        in->costs.value_s, STEPS(r, n_curve), in->costs.curve_s,
        r->n > 1 && in->n_thread > 0 ? in->n_thread : 1);
    term(to, r, "steps", "tokens * (values * value + curves * curve) / threads", BY_PROCESSORS, &f,
         t->steps_s);
    explain_attention(to, r);
    f = (struct formula){ "" };
    add(&f, "(%.10g + %.10g + %.10g) * ", t->streamed_bytes, t->missed_bytes, t->paged_bytes);
    if (speed_read_cpu(in) < in->costs.read_cpu_s && in->disk_bytes_s > 0)
        add(&f, "min(%.10g, 1 / %.10g)", in->costs.read_cpu_s, in->disk_bytes_s);
    else
        add(&f, "%.10g", speed_read_cpu(in));
    term(to, r, "reading", "(blocks + missed experts + keys and values) * read, cpu", BY_PROCESSORS,
         &f, t->reading_s);
    f = (struct formula){ "" };
    if (t->lookups_s > 0)
        add(&f, "ceil(%u * %u / %d) * %.10g + 3 * %.10g", r->n_row, in->n_lookup, SPEED_LOOKUPS,
            in->lookup_s, in->costs.wake_s);
    term(to, r, "lookups", "rows that are read at once * small read + 3 * wake", BY_LOOKUPS, &f,
         t->lookups_s);
    if (t->experts_s > 0) {
        f = products(r, true);
        term(to, r, "experts", products_note(r), BY_PROCESSORS, &f, t->experts_s);
    }
    add(&sum, "%.10g + %.10g + %.10g + %.10g + %.10g + %.10g + %.10g", t->products_s,
        t->small_s, t->rounds_s, t->steps_s, t->attention_s, t->reading_s, t->lookups_s);
    explain_disk(to, r, &sum);
}

/* The type of copies that the plan chose, and the share of drafts that it assumes for each. */
static void explain_copies(FILE *to, const struct plan_basis *b)
{
    fprintf(to, "  copies are %s; assumed to be accepted of the drafts of", b->plan.low.name);
    for (uint32_t i = 0; i < b->in.n_low; i++)
        fprintf(to, "%s %s: %.10g", i > 0 ? "," : "", b->in.low[i].name, b->in.low[i].acceptance);
    fputc('\n', to);
}

/* A pass over a token and n drafts. */
static double explain_wide(FILE *to, const struct plan_basis *b, uint32_t n)
{
    struct plan_pass pass = speed_pass(&b->in, &b->plan);
    struct formula f = { "" };
    struct speed_wide w;
    double wide_s = speed_wide(&b->in, &pass, b->plan.n_ctx, n, &w);

    fprintf(to, "  %-14s : a pass * how many times as long it takes with %u draft%s, by the "
                "formulas without factors\n",
            "pass of drafts", n, n == 1 ? "" : "s");
    add(&f, "%.10g * max(%.10g / %.10g, 1)", w.token_s, w.more_s, w.one_s);
    line(to, "pass of drafts", &f, wide_s, "s");
    return wide_s;
}

static double explain_draft(FILE *to, const struct plan_basis *b)
{
    const struct plan_input *in = &b->in;
    struct speed_factors x = speed_factors_of(in, true);
    struct speed_draft d = speed_draft_terms(in, &b->plan);
    double draft_s = speed_draft(in, &b->plan);
    struct formula f = { "" };

    add(&f, "%.10g / %.10g + %.10g", d.bytes, in->memory_bytes_s, d.steps_s);
    if (in->factors.is_set) {
        bracket(&f);
        add(&f, " * %.10g * (1 + %.10g)", x.processors, x.others);
    }
    if (d.streamed_bytes > 0)
        add(&f, " + %.10g / %.10g", d.streamed_bytes, in->disk_bytes_s);
    add(&f, " + %.10g", d.lookups_s);
    fprintf(to, "  %-14s : %s%s + lookups\n", "draft",
            in->factors.is_set ? "(weights / memory + jobs of the layers) * processor factor * "
                                 "(1 + lost time, token)"
                               : "weights / memory + jobs of the layers",
            d.streamed_bytes > 0 ? " + weights / disk" : "");
    line(to, "draft", &f, draft_s, "s");
    return draft_s;
}

/* Answers with drafts: a pass over a token and n drafts, and what follows from it. */
static void explain_drafts(FILE *to, const struct plan_basis *b)
{
    uint32_t n = b->plan.draft_depth;
    struct formula f = { "" };
    double wide_s, draft_s;

    if (!(b->plan.assumed > 0))
        return;
    wide_s = explain_wide(to, b, n);
    draft_s = explain_draft(to, b);
    fprintf(to, "  %-14s : tokens that a pass gives / (pass of drafts + drafts * draft)\n",
            "answers");
    add(&f, "(1 - %.10g ** %u) / (1 - %.10g) / (%.10g + %u * %.10g)", b->plan.assumed, n + 1,
        b->plan.assumed, wide_s, n, draft_s);
    line(to, "answers", &f, b->plan.decode_tps, "tok/s");
    if (b->plan.low_bytes > 0)
        explain_copies(to, b);
}

static void explain_decode(FILE *to, const struct plan_basis *b)
{
    struct plan_pass pass = speed_pass(&b->in, &b->plan);
    uint32_t n = b->plan.n_ctx;
    struct plan_time t;
    struct run r = { b, { true, true }, 1, n > 0 ? n - 1 : 0, 1, true, &t };
    struct formula f = { "" };
    const char *name;

    fprintf(to, "\nA token of an answer, at the end of %u tokens:\n", n);
    if (!(speed_token(&b->in, &pass, n, &t) > 0)) {
        fputs("  A limit was not measured.\n", to);
        return;
    }
    explain_terms(to, &r);
    name = b->plan.assumed > 0 ? "passes" : "answers";
    note_wall(to, &r, name, "1 / (", ")");
    add(&f, "1 / (");
    add_wall(&f, &r);
    add(&f, ")");
    line(to, name, &f, b->plan.pass_tps, "tok/s");
    explain_drafts(to, b);
}

/* The first chunk of a prompt in full, and the times of all. */
static void explain_prompt(FILE *to, const struct plan_basis *b)
{
    struct plan_pass pass = speed_pass(&b->in, &b->plan);
    uint32_t n = PLAN_PROMPT_TOKENS < b->plan.n_ctx ? PLAN_PROMPT_TOKENS : b->plan.n_ctx;
    uint32_t chunk = pass.chunk < n ? pass.chunk : n;
    struct plan_time t;
    struct run r = { b, { true, false }, chunk, 0, chunk, false, &t };
    struct formula f = { "" };
    double sum_s = 0;

    if (!(b->plan.prefill_tps > 0) || chunk < 2 ||
        !(speed_chunk(&b->in, &pass, 0, chunk, false, &t) > 0))
        return;
    fprintf(to, "\nThe first chunk of a prompt, %u tokens:\n", chunk);
    if (b->in.n_expert_layer > 0)
        explain_share(to, b, chunk, share_of(&r));
    explain_terms(to, &r);
    note_wall(to, &r, "chunk", "", "");
    add_wall(&f, &r);
    line(to, "chunk", &f, t.wall_s, "s");
    f = (struct formula){ "" };
    fprintf(to,
            "\nA prompt of %u tokens; the last chunk has a token that runs on to the logits:\n",
            n);
    for (uint32_t done = 0; done < n; done += chunk) {
        uint32_t now = n - done < chunk ? n - done : chunk;
        double s = speed_chunk(&b->in, &pass, done, now, done + now == n, &t);

        fprintf(to, "  chunk at %-5u : %.10g s\n", done, s);
        sum_s += s;
    }
    add(&f, "%u / %.10g", n, sum_s);
    line(to, "prompts", &f, b->plan.prefill_tps, "tok/s");
}

void plan_explain(FILE *to, const struct plan_basis *b, int64_t now_s)
{
    explain_memory(to, b);
    explain_limits(to, b, now_s);
    explain_factors(to, b, now_s);
    explain_decode(to, b);
    explain_prompt(to, b);
}
