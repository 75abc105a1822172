#include "config.h"

#include "ui/options/proposal.h"

#include <ctype.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "engine/base/numbers.h"

#define LINE_BYTES 400

__attribute__((format(printf, 4, 5))) static void add(const struct proposal_out *to,
                                                      enum proposal_how how, enum ui_role role,
                                                      const char *fmt, ...)
{
    char text[LINE_BYTES];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    to->add(to->ctx, how, role, text);
}

/* ---- rows: now and then ---- */

char *proposal_difference(char *buf, size_t n, uint64_t now, uint64_t then)
{
    char size[16];

    if (now == then) {
        buf[0] = '\0';
        return buf;
    }
    snprintf(buf, n, "%c%s", then > now ? '+' : '-',
             units_size(size, sizeof size, then > now ? then - now : now - then));
    return buf;
}

static bool reads_the_same(uint64_t now, uint64_t then)
{
    char a[16], b[16];

    return strcmp(units_size(a, sizeof a, now), units_size(b, sizeof b, then)) == 0;
}

static void size_row(const struct proposal_out *to, const char *name, uint64_t now, uint64_t then)
{
    bool is_same = reads_the_same(now, then);
    char a[16], b[16], d[24];

    add(to, PROPOSAL_LINE, is_same ? ROLE_DIM : ROLE_TEXT, "%-14s %10s %10s", name,
        units_size(a, sizeof a, now), units_size(b, sizeof b, then));
    if (!is_same)
        add(to, PROPOSAL_MORE, ROLE_ACCENT, "  %s", proposal_difference(d, sizeof d, now, then));
}

static void count_row(const struct proposal_out *to, const char *name, uint32_t now,
                      uint32_t then)
{
    char a[24], b[24];

    add(to, PROPOSAL_LINE, now == then ? ROLE_DIM : ROLE_TEXT, "%-14s %10s %10s", name,
        numbers_count(a, sizeof a, now), numbers_count(b, sizeof b, then));
}

static void word_row(const struct proposal_out *to, const char *name, const char *now,
                     const char *then)
{
    if (strcmp(now, then) != 0)
        add(to, PROPOSAL_LINE, ROLE_TEXT, "%-14s %10s %10s", name, now, then);
}

static char *rate_text(char *buf, size_t n, double tps, bool is_measured, bool is_doubtful)
{
    if (!(tps > 0))
        snprintf(buf, n, "-");
    else if (is_measured)
        numbers_measured(buf, n, tps);
    else
        numbers_predicted(buf, n, tps, is_doubtful);
    return buf;
}

/* now may be measured; predictions may be in doubt. */
static void speed_row(const struct proposal_out *to, const char *name, double now, double then,
                      bool is_measured, bool is_doubtful)
{
    char a[24], b[24], change[16];

    if (!(now > 0) && !(then > 0))
        return;
    add(to, PROPOSAL_LINE, ROLE_TEXT, "%-14s %10s %10s", name,
        rate_text(a, sizeof a, now, is_measured, is_doubtful),
        rate_text(b, sizeof b, then, false, is_doubtful));
    if (now > 0 && then > 0 && (then / now > 1.01 || then / now < 0.99))
        add(to, PROPOSAL_MORE, then > now ? ROLE_GOOD : ROLE_WARN, "  %s, %s",
            units_change(change, sizeof change, then / now), then > now ? "faster" : "slower");
}

/* Both rates are those at this place of the conversation. */
static void answer_rows(const struct proposal_facts *f, const struct proposal_out *to)
{
    const struct mw_diagnosis *now = &f->answers_now, *then = &f->answers_then;

    speed_row(to, "tokens/s", now->tps, then->tps, now->is_measured, then->is_doubtful);
    speed_row(to, "  when full", now->full_tps, then->full_tps, false, then->is_doubtful);
}

/* The share of right drafts that each column assumes. */
static void add_assumed(double now, double then, const struct proposal_out *to)
{
    char a[8], b[8];

    if (!(now > 0) && !(then > 0))
        return;
    snprintf(a, sizeof a, "%.0f %%", 100 * now);
    snprintf(b, sizeof b, "%.0f %%", 100 * then);
    if (strcmp(a, b) == 0)
        add(to, PROPOSAL_PARAGRAPH, ROLE_DIM, "Assumed: %s of the drafts are right.", a);
    else if (now > 0 && then > 0)
        add(to, PROPOSAL_PARAGRAPH, ROLE_DIM,
            "Assumed: %s of the drafts are right for \"now\", and %s for \"then\".", a, b);
    else
        add(to, PROPOSAL_PARAGRAPH, ROLE_DIM, "Assumed for \"%s\": %s of the drafts are right.",
            now > 0 ? "now" : "then", now > 0 ? a : b);
}

/* Remarks about the rows of speeds. */
static void speed_notes(const struct proposal_facts *f, const struct proposal_out *to)
{
    const struct mw_diagnosis *now = &f->answers_now, *then = &f->answers_then;

    if (f->now->budget_bytes != f->then->budget_bytes && f->now->streamed_bytes == 0 &&
        f->then->streamed_bytes == 0)
        add(to, PROPOSAL_PARAGRAPH, ROLE_DIM, "%s",
            f->a->memory_bytes != f->b->memory_bytes
                ? "No gain: no weights are read from the disk with either budget."
                : "No weights are read from the disk, before and after.");
    add_assumed(now->is_measured ? 0 : now->assumed, then->assumed, to);
    if (f->then->n_expert_all > 0 && !f->then->hits_measured)
        add(to, PROPOSAL_PARAGRAPH, ROLE_DIM, "%s",
            "Assumed: all experts are chosen equally often.");
}

void proposal_limits(const struct mw_limits *l, const struct plan_anchor *anchor,
                     uint64_t disk_rate, const struct proposal_out *to)
{
    char limits[MW_LIMITS_TEXT], rate[24];

    if (anchor->measured_s > 0) {
        add(to, PROPOSAL_PARAGRAPH, ROLE_DIM, "%s",
            "Predicted from what the last tokens measured.");
        return;
    }
    if (!(l->memory_bytes_s > 0))
        return;
    mw_limits_text(l, (int64_t)time(NULL), limits, sizeof limits);
    add(to, PROPOSAL_PARAGRAPH, mw_limits_doubtful(l) ? ROLE_WARN : ROLE_DIM,
        "Predicted from: %s%s%s.", limits, disk_rate > 0 ? "; the disk is limited to " : "",
        disk_rate > 0 ? units_rate(rate, sizeof rate, (double)disk_rate) : "");
}

_Static_assert(LINE_BYTES >= MW_LIMITS_TEXT + 80, "the limits fit a line");

static const char *kv_text(char *buf, size_t n, const struct mw_options *o)
{
    if (o->kv_k == o->kv_v)
        snprintf(buf, n, "%s", mw_kv_name(o->kv_k));
    else
        snprintf(buf, n, "%s/%s", mw_kv_name(o->kv_k), mw_kv_name(o->kv_v));
    return buf;
}

static const char *disk_text(char *buf, size_t n, uint64_t rate)
{
    if (rate > 0)
        units_rate(buf, n, (double)rate);
    else
        snprintf(buf, n, "any rate");
    return buf;
}

static const char *threads_text(char *buf, size_t n, const struct mw_options *o)
{
    if (o->n_thread > 0)
        snprintf(buf, n, "%d", o->n_thread);
    else
        snprintf(buf, n, "auto");
    return buf;
}

void proposal_settings(const struct proposal_facts *f, const struct proposal_out *to)
{
    const struct mw_options *a = f->a, *b = f->b;
    char x[24], y[24];

    add(to, PROPOSAL_LINE, ROLE_DIM, "%-14s %10s %10s", "", "now", "then");
    size_row(to, "budget", f->now->budget_bytes, f->then->budget_bytes);
    count_row(to, "context", f->now->n_ctx, f->then->n_ctx);
    word_row(to, "kv", kv_text(x, sizeof x, a), kv_text(y, sizeof y, b));
    word_row(to, "io", mw_io_name(a->io), mw_io_name(b->io));
    if (a->disk_rate != b->disk_rate)
        word_row(to, "disk", disk_text(x, sizeof x, a->disk_rate),
                 disk_text(y, sizeof y, b->disk_rate));
    if (a->n_thread != b->n_thread)
        word_row(to, "threads", threads_text(x, sizeof x, a), threads_text(y, sizeof y, b));
    answer_rows(f, to);
    snprintf(x, sizeof x, "  prompt (%d)", PLAN_PROMPT_TOKENS); /* shorter ones are slower */
    speed_row(to, x, f->now->prefill_tps, f->then->prefill_tps, false, f->then->is_doubtful);
    speed_notes(f, to);
    if (f->then->decode_tps > 0)
        proposal_limits(&f->limits, &f->anchor, b->disk_rate, to);
}

/* Only the rows whose printed sizes change, so that a sheet leaves the answer visible.  /plan
 * shows all rows. */
void proposal_memory(const struct proposal_facts *f, const struct proposal_out *to)
{
    const struct plan *now = f->now, *then = f->then;

    for (int i = 0; i < MW_PLAN_ROWS; i++)
        if (!reads_the_same(now->row[i], then->row[i]))
            size_row(to, mw_plan_row_label((enum mw_plan_row)i), now->row[i], then->row[i]);
    size_row(to, "total", now->sum_bytes, then->sum_bytes);
    if (now->has_kv_disk || then->has_kv_disk)
        size_row(to, "KV on disk", now->kv_disk_bytes, then->kv_disk_bytes);
    size_row(to, now->assumed > 0 || then->assumed > 0 ? "read per pass" : "read per token",
             now->streamed_bytes, then->streamed_bytes);
}

/* Why the proposed options draft nothing, unless that is so already. */
static void say_no_drafter(const struct proposal_facts *f, const struct proposal_out *to)
{
    char now[MW_NO_DRAFTER_TEXT], then[MW_NO_DRAFTER_TEXT];

    mw_plan_no_drafter(f->m, f->a, f->now, now, sizeof now);
    mw_plan_no_drafter(f->m, f->b, f->then, then, sizeof then);
    if (then[0] != '\0' && strcmp(now, then) != 0)
        add(to, PROPOSAL_PARAGRAPH, ROLE_WARN, "%c%s.", toupper((unsigned char)then[0]), then + 1);
}

void proposal_warnings(const struct proposal_facts *f, uint32_t n_ctx_train,
                       const struct proposal_out *to)
{
    char trained[24];

    if (n_ctx_train > 0 && f->then->n_ctx > n_ctx_train)
        add(to, PROPOSAL_PARAGRAPH, ROLE_WARN,
            "The model was trained for %s tokens, fewer than this context.",
            numbers_count(trained, sizeof trained, n_ctx_train));
    if (f->b->io == MW_IO_MMAP)
        add(to, PROPOSAL_PARAGRAPH, ROLE_WARN, "With io mmap %s.", mw_mmap_notice());
    say_no_drafter(f, to);
}

/* ---- what would fit ---- */

/* ", /kv q8_0": the first smaller type of keys and values that makes room for the rest, or "". */
static const char *fitting_kv(const struct mw_options *wanted, const struct proposal_fit *ask,
                              char *buf, size_t n)
{
    static const enum mw_kv smaller[] = { MW_KV_Q8_0, MW_KV_Q4_0 };
    struct mw_options o = *wanted;

    buf[0] = '\0';
    for (size_t i = 0; i < sizeof smaller / sizeof *smaller && buf[0] == '\0'; i++) {
        o.kv_k = o.kv_v = smaller[i];
        if (ask->fits(ask->ctx, &o))
            snprintf(buf, n, ", /kv %s", mw_kv_name(smaller[i]));
    }
    return buf;
}

bool proposal_why_not(const struct mw_options *wanted, uint64_t budget,
                      const struct proposal_fit *ask, char *buf, size_t n)
{
    uint64_t smallest = 0;
    uint32_t largest = 0;
    char has[16], fits[24], kv[24];

    if (!ask->fit(ask->ctx, wanted, &smallest, &largest) || largest == 0 || smallest == 0)
        return false;
    snprintf(buf, n, "this needs more than the budget of %s: /memory %s%s or /ctx %u would fit",
             units_size(has, sizeof has, budget), units_option(fits, sizeof fits, smallest),
             fitting_kv(wanted, ask, kv, sizeof kv), largest);
    return true;
}

/* ---- afterwards ---- */

/* Whether an option is of the engine, and not budget or context.  A kv option of keys or values
 * is part of OPT_KV. */
static bool is_named(enum option_id id)
{
    const struct option *row = &options_table[id];

    return row->reach != REACH_LINE && row->kind != KIND_KV_ONE && id != OPT_MEMORY &&
           id != OPT_CTX && option_is_of_engine(id);
}

void proposal_changed(char *buf, size_t n, const struct mw_options *was,
                      const struct mw_options *is)
{
    const struct options before = { .chat.engine = *was }, now = { .chat.engine = *is };
    char old[64], value[64];

    buf[0] = '\0';
    for (int id = 0; id < N_OPTION; id++) {
        const struct option *row = &options_table[id];
        size_t len = strlen(buf);

        if (!is_named((enum option_id)id))
            continue;
        options_say(&before, (enum option_id)id, old, sizeof old);
        options_say(&now, (enum option_id)id, value, sizeof value);
        if (strcmp(old, value) == 0)
            continue;
        options_say_value(&now, (enum option_id)id, "chat", value, sizeof value);
        snprintf(buf + len, n - len, ", %s %s", row->name, value);
    }
}
