#include "config.h"

#include "ui/words/receipt.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/numbers.h"
#include "ui/words/budget.h"
#include "ui/words/disks.h"

#define NS 1e9

/* A text in a buffer of fixed size, cut if it does not fit. */
struct text {
    char *buf;
    size_t n, used;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *t, const char *fmt, ...)
{
    va_list ap;
    int n;

    if (t->used >= t->n)
        return;
    va_start(ap, fmt);
    n = vsnprintf(t->buf + t->used, t->n - t->used, fmt, ap);
    va_end(ap);
    if (n > 0)
        t->used += (size_t)n;
}

static struct text begin(char *buf, size_t n)
{
    if (n > 0)
        buf[0] = '\0';
    return (struct text){ buf, n, 0 };
}

/* Add the separator before every part except the first. */
static void part(struct text *t, bool ascii)
{
    if (t->used > 0)
        add(t, "%s", ascii ? " - " : " \xc2\xb7 ");
}

/* "3.5", "41" */
static void add_rate(struct text *t, double per_s)
{
    add(t, "%.*f tok/s", per_s < 0.0995 ? 3 : per_s < 9.95 ? 1 : 0, per_s);
}

static double rate(uint64_t n, uint64_t ns)
{
    return ns == 0 ? 0 : (double)n / ((double)ns / NS);
}

double receipt_decode_tps(const struct mw_receipt *r)
{
    if (r->n_decoded < 2 || r->is_in_pieces ||
        (r->is_remote && r->decode_ns < RECEIPT_REMOTE_NS))
        return 0;
    return rate(r->n_decoded - 1, r->decode_ns);
}

/* Where the reader can change options: on the command line, or in the chat. */
struct words {
    const char *predict, *ctx, *no_think;
};
static const struct words in_run = { "-n", "--ctx", "--no-think" };
static const struct words in_chat = { "/predict", "/ctx", "/think off" };

/* "the limit of 20 tokens (-n) was reached" */
static void add_end(struct text *t, const struct mw_receipt *r, const struct words *w)
{
    switch (r->done) {
    case MW_DONE_STOP: add(t, "the model ended it"); break;
    case MW_DONE_LENGTH:
        add(t, "the limit of %u token%s (%s) was reached", r->n_decoded,
            r->n_decoded == 1 ? "" : "s", w->predict);
        break;
    case MW_DONE_CANCELLED: add(t, "it was stopped"); break;
    case MW_DONE_CONTEXT: add(t, "the context was full"); break;
    case MW_DONE_ERROR: add(t, "an error ended it"); break;
    }
}

/* Advise what helps an answer whose thinking took all tokens. */
static void add_advice(struct text *t, const struct mw_receipt *r, const struct words *w)
{
    if (r->done == MW_DONE_CANCELLED || r->done == MW_DONE_ERROR)
        return;
    if (r->done == MW_DONE_STOP && r->can_think_less)
        add(t, "; %s answers without thinking", w->no_think);
    if (r->done != MW_DONE_STOP)
        add(t, "; use a larger %s%s%s", r->done == MW_DONE_LENGTH ? w->predict : w->ctx,
            r->can_think_less ? ", or " : "", r->can_think_less ? w->no_think : "");
    if (r->has_no_switch)
        add(t, "; the chat template has no switch for thinking");
}

char *receipt_empty(char *buf, size_t n, const struct mw_receipt *r, bool is_chat)
{
    const struct words *w = is_chat ? &in_chat : &in_run;
    bool goes_on = r->done == MW_DONE_LENGTH || r->done == MW_DONE_CANCELLED;
    struct text t = begin(buf, n);

    if (r->empty == MW_NOT_EMPTY)
        return buf;
    add(&t, "the answer has no text%s: ", is_chat && goes_on ? " yet" : "");
    if (r->empty == MW_EMPTY_STOP_TEXT) {
        add(&t, "a stop text (--stop) came first");
        return buf;
    }
    add_end(&t, r, w);
    switch (r->empty) {
    case MW_NOT_EMPTY:
    case MW_EMPTY_STOP_TEXT: break;
    case MW_EMPTY_NOTHING:
        add(&t, "%s", r->done == MW_DONE_STOP ? " at once" : " before its first token");
        break;
    case MW_EMPTY_HIDDEN: add(&t, ", and its tokens have no text"); break;
    case MW_EMPTY_BLANK: add(&t, ", and its text is blank"); break;
    case MW_EMPTY_THINKING:
        add(&t, " while the model was thinking");
        add_advice(&t, r, w);
        break;
    case MW_EMPTY_THOUGHT:
        add(&t, " after the thinking");
        add_advice(&t, r, w);
        break;
    }
    return buf;
}

double receipt_stall_share(const struct mw_receipt *r)
{
    double share = r->decode_ns == 0 ? 0 : (double)r->stall_ns / (double)r->decode_ns;

    return share > 1 ? 1 : share;
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* Returns the name of the things that n_decoded counts. */
static const char *unit(const struct mw_receipt *r)
{
    return r->is_in_pieces ? "piece" : "token";
}

char *receipt_line(char *buf, size_t n, const struct mw_receipt *r, bool ascii)
{
    static const char *const ended[] = {
        [MW_DONE_STOP] = "",
        [MW_DONE_LENGTH] = "", /* after the number of tokens */
        [MW_DONE_CANCELLED] = "stopped",
        [MW_DONE_CONTEXT] = "the context is full",
        [MW_DONE_ERROR] = "ended by an error",
    };
    struct text t = begin(buf, n);
    char word[32];

    add(&t, "%s %s%s%s%s", numbers_count(word, sizeof word, r->n_decoded),
        r->is_continuation ? "more " : "", unit(r), plural(r->n_decoded),
        r->done == MW_DONE_LENGTH ? ", token limit" : "");
    if (r->decode_ns > 0) {
        part(&t, ascii);
        add(&t, "%s", numbers_time(word, sizeof word, (double)r->decode_ns / NS));
    }
    if (receipt_decode_tps(r) > 0) {
        part(&t, ascii);
        add_rate(&t, receipt_decode_tps(r));
    }
    if (r->is_remote) {
        part(&t, ascii);
        add(&t, "first after %s", numbers_time(word, sizeof word, (double)r->first_ns / NS));
    } else {
        part(&t, ascii);
        add(&t, "%s read%s", units_size(word, sizeof word, r->bytes_read),
            r->is_mapped ? " by the kernel" : "");
    }
    if (r->decode_ns > 0 && !r->is_remote) {
        part(&t, ascii);
        if (r->is_mapped)
            add(&t, "- disk wait");
        else
            add(&t, "%.0f %% disk wait", receipt_stall_share(r) * 100);
    }
    if (r->expert_hits + r->expert_misses > 0) {
        part(&t, ascii);
        add(&t, "%.0f %% expert hits",
            100 * (double)r->expert_hits / (double)(r->expert_hits + r->expert_misses));
    }
    if (r->peak_charged > 0) {
        part(&t, ascii);
        add(&t, "peak %s", units_size(word, sizeof word, r->peak_charged));
    } else if (r->peak_resident > 0) {
        part(&t, ascii);
        add(&t, "peak %s resident%s", units_size(word, sizeof word, r->peak_resident),
            r->is_mapped ? " with mapped pages" : "");
    }
    if ((size_t)r->done < sizeof ended / sizeof ended[0] && ended[r->done][0] != '\0') {
        part(&t, ascii);
        add(&t, "%s", ended[r->done]);
    }
    return buf;
}

uint64_t receipt_peak(const struct mw_receipt *r)
{
    return r->peak_charged > 0 ? r->peak_charged : r->peak_resident;
}

char *receipt_kv_disk(char *buf, size_t n, const struct plan *p)
{
    char tokens[24], disk[16], read[16], rate[16];
    struct text t = begin(buf, n);

    add(&t, "%s tokens: %s of keys and values on the disk, %s more to read for each token",
        numbers_count(tokens, sizeof tokens, p->n_ctx),
        units_size(disk, sizeof disk, p->kv_disk_bytes),
        units_size(read, sizeof read, p->kv_read_bytes));
    if (p->decode_tps > 0)
        add(&t, ", ~%s tok/s", numbers_rough(rate, sizeof rate, p->decode_tps));
    return buf;
}

char *receipt_experts(char *buf, size_t n, const struct plan *p)
{
    struct text t = begin(buf, n);
    char held[32], all[32];

    add(&t, "%s of %s experts in memory, %.0f %% of the chosen ones (%s)",
        numbers_count(held, sizeof held, p->n_expert),
        numbers_count(all, sizeof all, p->n_expert_all), 100 * p->expert_hits,
        p->hits_measured ? "as observed" : "assumed: all are chosen equally often");
    return buf;
}

char *receipt_short(char *buf, size_t n, const struct mw_receipt *r)
{
    struct text t = begin(buf, n);

    if (receipt_decode_tps(r) > 0) {
        add_rate(&t, receipt_decode_tps(r));
        if (!r->is_remote && !r->is_mapped)
            add(&t, ", %.0f %% disk", receipt_stall_share(r) * 100);
    } else {
        add(&t, "%u %s%s", r->n_decoded, unit(r), plural(r->n_decoded));
    }
    if (r->done == MW_DONE_CANCELLED)
        add(&t, ", stopped");
    else if (r->done != MW_DONE_STOP)
        add(&t, ", cut");
    return buf;
}

/* ---- /why ---- */

/* An answer that ended before its first token.  A prompt that is sent again begins where it was
 * stopped. */
static void why_prompt(struct text *t, const struct mw_receipt *r)
{
    char done[32], all[32], time[32], rate[32];
    double seconds = (double)r->prefill_ns / NS;

    add(t, "The answer ended while its prompt was read: %s of %s token%s",
        numbers_count(done, sizeof done, r->n_prompt_done),
        numbers_count(all, sizeof all, r->n_prompt), plural(r->n_prompt));
    if (seconds > 0)
        add(t, " in %s", numbers_time(time, sizeof time, seconds));
    if (seconds > 0 && r->n_prompt_done > 0)
        add(t, ", %s tok/s", numbers_measured(rate, sizeof rate, r->n_prompt_done / seconds));
    add(t, ". No token of an answer came, so nothing says what limits its speed.");
}

/* How many drafts were accepted, and what they cost. */
static void add_drafts(struct text *t, const struct mw_receipt *r)
{
    const struct mw_drafts *d = &r->drafts;
    struct mw_draft_rates rates;
    char word[32];

    mw_draft_rates(d, r->decode_ns, &rates);
    if (d->accepted > 0)
        add(t, " %s of its tokens were drafted, and needed no pass of their own: %.2f tokens a "
               "pass.",
            numbers_count(word, sizeof word, (uint32_t)d->accepted), rates.tokens_per_pass);
    add(t, " %.0f %% of the first drafts of a pass were accepted", 100 * rates.accepted_at[0]);
    if (rates.usual > 1)
        add(t, ", and %.0f %% of those at place %u", 100 * rates.accepted_at[rates.usual - 1],
            rates.usual);
    if (rates.usual_cost > 0)
        add(t, "; a pass over %u draft%s took %.2f times one over none", rates.usual,
            plural(rates.usual), rates.usual_cost);
    add(t, "; the drafter took %.1f %% of the time.", 100 * rates.drafter_share);
}

static void why_done(struct text *t, const struct mw_receipt *r, double promised_tps)
{
    double came = receipt_decode_tps(r);
    char word[32], second[32];

    add(t, "%s token%s came", numbers_count(word, sizeof word, r->n_decoded),
        plural(r->n_decoded));
    if (r->decode_ns > 0)
        add(t, " in %s", numbers_time(word, sizeof word, (double)r->decode_ns / NS));
    if (came > 0) {
        add(t, " (");
        add_rate(t, came);
        if (promised_tps > 0)
            add(t, "; %s were predicted, %s",
                numbers_predicted(word, sizeof word, promised_tps, false),
                units_change(second, sizeof second, came / promised_tps));
        add(t, ")");
    }
    if (r->n_prompt > 0)
        add(t, ", after %s for %s token%s of the prompt",
            numbers_time(word, sizeof word, (double)r->prefill_ns / NS),
            numbers_count(second, sizeof second, r->n_prompt), plural(r->n_prompt));
    if (r->n_reused > 0)
        add(t, "; %s more %s still in the KV cache",
            numbers_count(word, sizeof word, r->n_reused), r->n_reused == 1 ? "was" : "were");
    add(t, ".");
    if (r->drafts.drafted > 0)
        add_drafts(t, r);
}

/* The bound of the newest tokens, and the advice that the screen shows, too. */
static void why_slow(struct text *t, const struct mw_receipt *r, const struct mw_sample *s)
{
    char sentence[MW_DIAGNOSIS_TEXT], word[32], budget[32], kv[32];
    struct mw_diagnosis d;

    if (r->decode_ns == 0) {
        add(t, " A single token has no time between tokens, so there is nothing to explain.");
        return;
    }
    if (r->is_mapped)
        add(t, " How much of it was spent waiting for the disk is not known, because the kernel "
               "reads mapped weights");
    else if (r->bytes_read == 0)
        add(t, " Nothing had to be read while it answered");
    else
        add(t, " %.0f %% of that time was spent waiting for the disk",
            receipt_stall_share(r) * 100);
    if (s != NULL && s->pass.bytes_pass > 0)
        add(t,
            ": the last token read %s of weights%s%s%s that were not in memory, with a budget "
            "of %s",
            units_size(word, sizeof word, s->pass.bytes_pass - s->pass.kv_bytes),
            s->pass.kv_bytes > 0 ? " and " : "",
            s->pass.kv_bytes > 0 ? units_size(kv, sizeof kv, s->pass.kv_bytes) : "",
            s->pass.kv_bytes > 0 ? " of keys and values" : "",
            units_size(budget, sizeof budget, s->run.budget_bytes));
    else if (r->bytes_read > 0)
        add(t, "; %s were read in all", units_size(word, sizeof word, r->bytes_read));
    add(t, ".");
    if (s == NULL)
        return;
    mw_diagnosis_of_sample(s, &d);
    d.is_prompt = false;
    if (mw_diagnosis_text(&d, "/", sentence, sizeof sentence)[0] != '\0')
        add(t, " Now: %s.", sentence);
}

/* Only times and counts are known of a server. */
static void why_remote(struct text *t, const struct mw_receipt *r)
{
    char word[32], second[32];

    add(t, "%s %s%s came", numbers_count(word, sizeof word, r->n_decoded), unit(r),
        plural(r->n_decoded));
    if (r->decode_ns > 0)
        add(t, " in %s", numbers_time(word, sizeof word, (double)r->decode_ns / NS));
    if (receipt_decode_tps(r) > 0) {
        add(t, " (");
        add_rate(t, receipt_decode_tps(r));
        add(t, ")");
    }
    add(t, ", the first after %s", numbers_time(word, sizeof word, (double)r->first_ns / NS));
    if (r->n_prompt > 0)
        add(t, " for %s token%s of the prompt", numbers_count(word, sizeof word, r->n_prompt),
            plural(r->n_prompt));
    if (r->n_reused > 0)
        add(t, " and %s from the server's cache", numbers_count(second, sizeof second,
                                                                r->n_reused));
    add(t, ". Times were measured here, with the network and the server's queue in them; %s. A "
           "server does not report where its time goes.",
        r->is_in_pieces ? "the server counts no tokens" : "the server counts the tokens");
}

char *receipt_why(char *buf, size_t n, const struct mw_receipt *r, double promised_tps,
                  const struct mw_sample *s)
{
    struct text t = begin(buf, n);
    char budget[280], disks[DISKS_TEXT];

    if (r->is_remote) {
        why_remote(&t, r);
        return buf;
    }
    if (r->n_decoded == 0) {
        why_prompt(&t, r);
        return buf;
    }
    why_done(&t, r, promised_tps);
    why_slow(&t, r, s);
    if (s != NULL && disks_text(s, disks, sizeof disks)[0] != '\0')
        add(&t, " Of two disks: %s.", disks);
    if (s != NULL && budget_sentence(budget, sizeof budget, s)[0] != '\0')
        add(&t, " %s", budget);
    return buf;
}

/* ---- before and during ---- */

/* Say that a text does not fit.  Nothing is evaluated then, so no more is said of its cost. */
static void cost_does_not_fit(struct text *t, const struct mw_cost *c, bool is_short)
{
    char word[32];

    if (is_short)
        add(t, ", but %s fit", numbers_count(word, sizeof word, c->n_ctx_left));
    else if (c->n_ctx_left == 0)
        add(t, " %s not fit: the context is full", c->n_token == 1 ? "does" : "do");
    else
        add(t, " %s not fit: the context has %s left", c->n_token == 1 ? "does" : "do",
            numbers_count(word, sizeof word, c->n_ctx_left));
}

static char *write_cost(char *buf, size_t n, const struct mw_cost *c, bool is_short)
{
    struct text t = begin(buf, n);
    char word[32];

    add(&t, "about %s token%s", numbers_count(word, sizeof word, c->n_token),
        plural(c->n_token));
    if (c->n_token > c->n_ctx_left) {
        cost_does_not_fit(&t, c, is_short);
        return buf;
    }
    if (c->n_again > 0)
        add(&t, is_short ? " and %s again" : ", and %s of the conversation again",
            numbers_count(word, sizeof word, c->n_again));
    if (c->seconds > 0)
        add(&t, ": %s%s", c->is_at_least ? "at least " : "",
            numbers_time(word, sizeof word, c->seconds));
    if (c->bytes > 0)
        add(&t, "%s %s of reads", c->seconds > 0 ? "," : ":",
            units_size(word, sizeof word, c->bytes));
    return buf;
}

char *receipt_cost(char *buf, size_t n, const struct mw_cost *c, int columns)
{
    write_cost(buf, n, c, false);
    return (int)strlen(buf) <= columns ? buf : write_cost(buf, n, c, true);
}

char *receipt_prefill(char *buf, size_t n, uint64_t done, uint64_t total, uint64_t elapsed_ns,
                      bool ascii, double *share)
{
    struct text t = begin(buf, n);
    char word[32], second[32];
    double per_s = rate(done, elapsed_ns);

    if (done > total)
        done = total;
    *share = total == 0 ? 0 : (double)done / (double)total;
    add(&t, "prompt %.0f %%", floor(*share * 100));
    if (done > 0 && per_s > 0) {
        part(&t, ascii);
        add(&t, "%s left", numbers_time(word, sizeof word, (double)(total - done) / per_s));
    }
    part(&t, ascii);
    add(&t, "%s of %s token%s", numbers_count(word, sizeof word, done),
        numbers_count(second, sizeof second, total), plural(total));
    if (done > 0 && per_s > 0) {
        part(&t, ascii);
        add_rate(&t, per_s);
    }
    return buf;
}
