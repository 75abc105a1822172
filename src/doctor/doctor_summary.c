/* See doctor_summary.h. */
#include "config.h"

#include "src/doctor/doctor_summary.h"

#include <ctype.h>
#include <stdio.h>

#include "engine/base/numbers.h"
#include "src/machine/limit_words.h"
#include "ui/words/receipt.h"

/* The limit that most of the models have. */
static enum mw_binds most_common(const uint32_t n[MW_BINDS_COUNT])
{
    enum mw_binds best = MW_BINDS_NONE;

    for (int b = MW_BINDS_NONE + 1; b < MW_BINDS_COUNT; b++)
        if (n[b] > n[best] || (best == MW_BINDS_NONE && n[b] > 0))
            best = (enum mw_binds)b;
    return best;
}

/* "22.7 GB/s, so 1 GB of weights takes 44 ms of a token" */
static void put_rate(char *buf, size_t n, double bytes_s)
{
    char rate[24];

    snprintf(buf, n, "%s, so each GB of weights that a token uses takes %.3g ms",
             units_rate(rate, sizeof rate, bytes_s), 1e12 / bytes_s);
}

void summary_walls(const struct advice_facts *a, const struct doctor_walls_count *n,
                   advice_fn *fn, void *ctx)
{
    double memory = advice_memory_rate(a), disk = advice_disk_rate(a);
    enum mw_binds fits = most_common(n->fits), streams = most_common(n->streams);
    char text[ADVICE_TEXT], size[16], rate[120];

    snprintf(text, sizeof text,
             "Of %u known models and weight types, %u fit in %s of memory, %u are larger and "
             "stream from disk, %u are too large.",
             n->n, n->n_fits, units_size(size, sizeof size, n->budget_bytes), n->n_streams,
             n->n_too_large);
    fn(ctx, "models", text);
    if (fits != MW_BINDS_NONE && memory > 0) {
        put_rate(rate, sizeof rate, memory);
        snprintf(text, sizeof text,
                 "Models that fit: answers are limited by %s (%u of %u). Memory is read at %s.",
                 limit_words(fits), n->fits[fits], n->n_fits, rate);
        fn(ctx, "fits", text);
    }
    if (streams != MW_BINDS_NONE && disk > 0) {
        put_rate(rate, sizeof rate, disk);
        snprintf(text, sizeof text,
                 "Models that stream: answers are limited by %s (%u of %u). This disk is read "
                 "at %s.",
                 limit_words(streams), n->streams[streams], n->n_streams, rate);
        fn(ctx, "streams", text);
    }
}

static void say_no_drafter(const char *text, advice_fn *fn, void *ctx)
{
    char line[ADVICE_TEXT];

    if (text[0] == '\0')
        return;
    snprintf(line, sizeof line, "%c%.300s.", toupper((unsigned char)text[0]), text + 1);
    fn(ctx, "drafts", line);
}

void summary_model(const char *name, const struct mw_limits *l, const struct plan *p,
                   const char *no_drafter, advice_fn *fn, void *ctx)
{
    char text[ADVICE_TEXT], a[24], b[48], rate[48] = "", experts[128], drafted[80] = "";

    if (p->streamed_bytes > 0)
        snprintf(text, sizeof text,
                 "%.120s streams with a budget of %s: each %s reads %s from disk.", name,
                 units_size(a, sizeof a, p->budget_bytes), p->assumed > 0 ? "pass" : "token",
                 units_size(b, sizeof b, p->streamed_bytes));
    else
        snprintf(text, sizeof text,
                 "%.120s fits a budget of %s: all weights stay in memory, and answers read "
                 "none from disk.",
                 name, units_size(a, sizeof a, p->budget_bytes));
    fn(ctx, p->streamed_bytes > 0 ? "streams" : "fits", text);
    if (p->n_expert_all > 0 && !p->hits_measured) {
        snprintf(text, sizeof text, "Experts: %s.", receipt_experts(experts, sizeof experts, p));
        fn(ctx, "experts", text);
    }
    say_no_drafter(no_drafter, fn, ctx);
    if (!(p->decode_tps > 0))
        return;
    if (p->binds == MW_BINDS_DISK)
        snprintf(rate, sizeof rate, ", which is read at %s",
                 units_rate(a, sizeof a, l->disk_bytes_s));
    else if (p->binds == MW_BINDS_MEMORY || p->binds == MW_BINDS_KV)
        snprintf(rate, sizeof rate, ", which is read at %s",
                 units_rate(a, sizeof a, l->memory_bytes_s));
    if (p->assumed > 0)
        snprintf(drafted, sizeof drafted, " if %.0f %% of the drafts are right, %s if none is",
                 100 * p->assumed,
                 numbers_predicted(a, sizeof a, p->pass_tps, p->is_doubtful));
    snprintf(text, sizeof text, "Answers: %s tokens per second%s, limited by %s%s.",
             numbers_predicted(b, sizeof b, p->decode_tps, p->is_doubtful), drafted,
             limit_words(p->binds), rate);
    fn(ctx, "binds", text);
}
