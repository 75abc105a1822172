/* A diagnosis in words and in samples. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/numbers.h"
#include "engine/base/units.h"
#include "engine/memwall.h"
#include "engine/plan/advice.h"

/* From this rate on, the bound of an answer is a matter of chance, and nobody waits. */
#define FAST_TPS 100

bool mw_diagnosis_needs_nothing(const struct mw_diagnosis *d)
{
    return d->tps >= FAST_TPS && d->binds != MW_BINDS_SWAP && d->binds != MW_BINDS_NONE;
}

const char *mw_diagnosis_label(const struct mw_diagnosis *d)
{
    return mw_diagnosis_needs_nothing(d) ? "fast" : mw_binds_label(d->binds);
}

const char *mw_diagnosis_word(const struct mw_diagnosis *d)
{
    return mw_diagnosis_needs_nothing(d) ? "fast" : mw_binds_word(d->binds);
}

#define LEAST_PART 0.005 /* less reads as 0 % */

/* The words that follow the share of a bound. */
static const char *const shares[MW_BINDS_COUNT] = {
    [MW_BINDS_NONE] = "",
    [MW_BINDS_DISK] = "waits",
    [MW_BINDS_MEMORY] = "goes to moving weights from memory",
    [MW_BINDS_COMPUTE] = "is arithmetic",
    [MW_BINDS_KV] = "goes to keys and values",
    [MW_BINDS_SWAP] = "waits for memory",
    [MW_BINDS_OTHERS] = "waits for a processor that others use",
};

/* Advice in words, for advice that is not a command. */
static const struct {
    const char *key, *text;
} advices[] = {
    { "more_budget", "more budget would help" },
    { "self_drafts", "drafts of the model itself would help" },
    { "smaller_type", "a smaller weight type would help" },
    { "smaller_kv", "a smaller type for keys and values would help" },
    { "shorter_context", "a shorter conversation would help" },
    { "less_budget", "a smaller budget would stop it" },
    { "rows_only", "for rows of tables alone, all weights are in memory" },
    { "other_programs", "stop other programs" },
    { "direct_io", "reading without the page cache would help" },
};

char *mw_diagnosis_command(const struct mw_diagnosis *d, char *buf, size_t n)
{
    char size[24];

    buf[0] = '\0';
    if (d->budget_bytes > 0)
        snprintf(buf, n, "memory %s", units_option(size, sizeof size, d->budget_bytes));
    else if (strcmp(d->advice, "smaller_kv") == 0)
        snprintf(buf, n, "kv %s", mw_kv_name(MW_KV_Q8_0));
    else if (strcmp(d->advice, "self_drafts") == 0)
        snprintf(buf, n, "draft self");
    else if (strcmp(d->advice, "direct_io") == 0)
        snprintf(buf, n, "io %s", mw_io_name(MW_IO_DIRECT));
    return buf;
}

char *mw_diagnosis_advice(const struct mw_diagnosis *d, const char *before, char *buf, size_t n)
{
    char command[32], rate[16];

    buf[0] = '\0';
    if (mw_diagnosis_command(d, command, sizeof command)[0] != '\0') {
        bool is_limited = d->held_back[0] != '\0' && strcmp(d->advice, "more_budget") == 0;

        snprintf(buf, n, "%s%s%s%s%s%s%s%s", before, command, d->to_tps > 0 ? " for ~" : "",
                 d->to_tps > 0 ? numbers_rough(rate, sizeof rate, d->to_tps) : "",
                 d->to_tps > 0 ? " tok/s" : "", is_limited ? ", all that " : "",
                 is_limited ? d->held_back : "", is_limited ? " allows" : "");
        if (d->acceptance > 0)
            snprintf(buf + strlen(buf), n - strlen(buf), ", if %.0f %% of the drafts are right",
                     100 * d->acceptance);
        return buf;
    }
    for (size_t i = 0; i < sizeof advices / sizeof advices[0]; i++)
        if (strcmp(d->advice, advices[i].key) == 0)
            snprintf(buf, n, "%s", advices[i].text);
    return buf;
}

char *mw_diagnosis_why_not(const struct mw_diagnosis *d, char *buf, size_t n)
{
    if (d->is_fast)
        snprintf(buf, n, "fast enough to read: nothing to change");
    else if (!(d->tps > 0))
        snprintf(buf, n, "nothing was measured yet");
    else if (d->is_doubtful && d->is_measured)
        snprintf(buf, n, "a few more tokens will show what helps");
    else if (d->is_doubtful)
        snprintf(buf, n, "this machine was measured in a bad moment; the first answer will show "
                         "its speed");
    else if (d->held_back[0] != '\0')
        snprintf(buf, n, "no larger budget is possible: %s", d->held_back);
    else
        snprintf(buf, n, "no other setting would be 10 %% faster");
    return buf;
}

/* Predictions begin with "~".  A panel of 104 columns has one line for all of it. */
static void predicted_text(const struct mw_diagnosis *d, char *buf, size_t n)
{
    char rate[16], size[24];
    size_t len;

    if (!(d->tps > 0))
        return;
    numbers_rough(rate, sizeof rate, d->tps);
    if (d->assumed > 0)
        snprintf(buf, n, "~%s: ~%s tok/s if %.0f %% of the drafts are right; ",
                 mw_diagnosis_label(d), rate, 100 * d->assumed);
    else
        snprintf(buf, n, "~%s: the plan predicts ~%s tok/s; ", mw_diagnosis_label(d), rate);
    len = strlen(buf); /* snprintf returns more if it cut the text */
    if (d->binds == MW_BINDS_OTHERS)
        snprintf(buf + len, n - len, "other programs use the processors");
    else if (d->read_bytes > 0 && d->assumed > 0)
        snprintf(buf + len, n - len, "a pass reads ~%s%s",
                 units_size(size, sizeof size, d->read_bytes),
                 d->reads_kv ? ", with keys and values" : " of weights");
    else if (d->read_bytes > 0)
        snprintf(buf + len, n - len, "each token will read ~%s of weights%s",
                 units_size(size, sizeof size, d->read_bytes),
                 d->reads_kv ? ", keys and values" : "");
    else
        snprintf(buf + len, n - len, "all weights fit the budget");
}

/* A bound by arithmetic counts the reads from memory that it overlaps: it says so, as the bar of
 * a token shows both. */
static const char *share_text(const struct mw_diagnosis *d)
{
    if (d->binds == MW_BINDS_COMPUTE && d->part.memory >= LEAST_PART)
        return "is memory and arithmetic";
    return shares[d->binds];
}

char *mw_diagnosis_text(const struct mw_diagnosis *d, const char *before, char *buf, size_t n)
{
    char advice[200];

    buf[0] = '\0';
    if (d->binds == MW_BINDS_NONE)
        return buf;
    if (!d->is_measured) {
        predicted_text(d, buf, n);
        return buf;
    }
    if (mw_diagnosis_needs_nothing(d)) {
        snprintf(buf, n, "fast: more than %d tokens a second; nothing to change", FAST_TPS);
        return buf;
    }
    if (mw_diagnosis_advice(d, before, advice, sizeof advice)[0] == '\0' &&
        (d->is_fast || d->held_back[0] != '\0'))
        mw_diagnosis_why_not(d, advice, sizeof advice);
    snprintf(buf, n, "%s: %.0f %% of %s %s%s%s", mw_binds_label(d->binds), 100 * d->share,
             d->binds == MW_BINDS_SWAP ? "the time"
             : d->is_prompt            ? "the prompt's time"
                                       : "each token",
             share_text(d), advice[0] != '\0' ? "; " : "", advice);
    return buf;
}

/* ---- samples ---- */

void mw_diagnosis_to_sample(const struct mw_diagnosis *d, struct mw_sample *s)
{
    double budget = (double)s->run.budget_bytes;

    snprintf(s->verdict.advice, sizeof s->verdict.advice, "%s", d->advice);
    snprintf(s->verdict.held_back, sizeof s->verdict.held_back, "%s", d->held_back);
    s->verdict.advice_from = d->to_tps > 0 ? d->tps : 0;
    s->verdict.advice_to = d->to_tps;
    s->verdict.full_tps = d->full_tps;
    s->verdict.advice_amount =
        d->budget_bytes > 0 ? fabs((double)d->budget_bytes - budget) : d->acceptance;
    if (d->is_measured)
        return;
    s->verdict.part = d->part;
    s->run.predicted_decode = d->tps;
    s->run.predicted_assumed = d->assumed;
    s->run.predicted_binds = d->binds;
    s->run.predicted_read = d->read_bytes;
}

void mw_diagnosis_of_sample(const struct mw_sample *s, struct mw_diagnosis *d)
{
    struct mw_rates rates;

    *d = (struct mw_diagnosis){ .is_measured = s->verdict.binds != MW_BINDS_NONE };
    mw_rates(s, &rates);
    if (d->is_measured) {
        d->tps = rates.token_s > 0 ? 1 / rates.token_s : 0;
        d->binds = s->verdict.binds;
        d->share = s->verdict.share;
        d->part = s->verdict.part;
    } else {
        d->tps = s->run.predicted_decode;
        d->assumed = s->run.predicted_assumed;
        d->binds = s->run.predicted_binds;
        d->read_bytes = s->run.predicted_read;
        d->reads_kv = s->kv.disk_plan > 0;
    }
    d->is_prompt = s->state == MW_PREFILL;
    d->is_fast = d->tps >= ADVICE_READING_TPS;
    snprintf(d->advice, sizeof d->advice, "%s", s->verdict.advice);
    snprintf(d->held_back, sizeof d->held_back, "%s", s->verdict.held_back);
    d->to_tps = s->verdict.advice_to;
    d->full_tps = s->verdict.full_tps;
    if (strcmp(d->advice, "more_budget") == 0)
        d->budget_bytes = s->run.budget_bytes + numbers_whole(s->verdict.advice_amount);
    else if (strcmp(d->advice, "less_budget") == 0 &&
             (double)s->run.budget_bytes > s->verdict.advice_amount)
        d->budget_bytes = s->run.budget_bytes - numbers_whole(s->verdict.advice_amount);
    else if (strcmp(d->advice, "self_drafts") == 0)
        d->acceptance = s->verdict.advice_amount;
}
