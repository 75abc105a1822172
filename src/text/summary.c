/* See summary.h. */
#include "config.h"

#include "src/text/summary.h"

#include <inttypes.h>
#include <string.h>

#include "engine/base/numbers.h"
#include "ui/words/budget.h"
#include "ui/words/disks.h"
#include "ui/words/receipt.h"

const char *summary_done_name(enum mw_done done)
{
    switch (done) {
    case MW_DONE_STOP: return "stop";
    case MW_DONE_LENGTH: return "length";
    case MW_DONE_CANCELLED: return "cancelled";
    case MW_DONE_CONTEXT: return "context";
    case MW_DONE_ERROR: return "error";
    }
    return "";
}

/* Why an answer has no text; NULL if it has one. */
static const char *empty_name(enum mw_empty empty)
{
    switch (empty) {
    case MW_NOT_EMPTY: return NULL;
    case MW_EMPTY_NOTHING: return "nothing";
    case MW_EMPTY_HIDDEN: return "hidden";
    case MW_EMPTY_BLANK: return "blank";
    case MW_EMPTY_THINKING: return "thinking";
    case MW_EMPTY_THOUGHT: return "thought";
    case MW_EMPTY_STOP_TEXT: return "stop_text";
    }
    return NULL;
}

static double rate(uint64_t n, uint64_t ns)
{
    return ns > 0 ? (double)n * 1e9 / (double)ns : 0;
}

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static double share(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

/* Returns the peak charge from the receipt or the sample; 0: unknown. */
static uint64_t peak(const struct mw_receipt *r, const struct mw_sample *s)
{
    if (r->peak_charged > 0)
        return r->peak_charged;
    if (s->os.t_ns != 0 && s->os.charged_peak.why_not == NULL)
        return s->os.charged_peak.value;
    return 0;
}

/* Write "drafts   96 of 130 accepted (82, 71, 60 % by place); 1.84 tokens a pass", and what they
 * cost. */
static void print_drafts(FILE *to, const struct mw_receipt *r)
{
    const struct mw_drafts *d = &r->drafts;
    struct mw_draft_rates rates;

    mw_draft_rates(d, r->decode_ns, &rates);
    fprintf(to, "drafts   %" PRIu64 " of %" PRIu64 " accepted; %.2f tokens a pass\n", d->accepted,
            d->drafted, rates.tokens_per_pass);
    fputs("         accepted by place:", to);
    for (uint32_t i = 0; i < rates.depth; i++)
        fprintf(to, "%s %.0f", i > 0 ? "," : "", 100 * rates.accepted_at[i]);
    fputs(" %\n         ", to);
    if (rates.usual_cost > 0)
        fprintf(to, "a pass over %" PRIu32 " draft%s took %.2f times one over none; ", rates.usual,
                rates.usual == 1 ? "" : "s", rates.usual_cost);
    fprintf(to, "the drafter took %.1f %% of the answer's time\n", 100 * rates.drafter_share);
}

static const char *read_from(const struct mw_run *run)
{
    if (mw_run_is_mapped(run))
        return "from disk by the kernel's count of this process";
    return strncmp(run->io, "buffered", 8) == 0 ? "through the page cache" : "from disk";
}

void summary_print(FILE *to, const struct mw_receipt *r, const struct mw_sample *s)
{
    char a[16], b[16], tps[24], last[128], next[128], disks[DISKS_TEXT];

    fprintf(to, "prompt   %" PRIu32 " token%s in %.1f s (%s tok/s)", r->n_prompt,
            r->n_prompt == 1 ? "" : "s", seconds(r->prefill_ns),
            numbers_measured(tps, sizeof tps, rate(r->n_prompt, r->prefill_ns)));
    if (r->n_reused > 0)
        fprintf(to, ", %" PRIu32 " reused", r->n_reused);
    fprintf(to, "\nanswer   %" PRIu32 " token%s in %.1f s (%s tok/s), the first after %.1f s\n",
            r->n_decoded, r->n_decoded == 1 ? "" : "s", seconds(r->decode_ns),
            numbers_measured(tps, sizeof tps, receipt_decode_tps(r)), seconds(r->first_ns));
    if (r->drafts.drafted > 0)
        print_drafts(to, r);
    fprintf(to, "read     %s %s; stalls ", units_size(a, sizeof a, r->bytes_read),
            read_from(&s->run));
    if (r->is_mapped)
        fputs("are not known\n", to);
    else
        fprintf(to, "took %.0f %% of the answer's time\n",
                100 * share(r->stall_ns, r->decode_ns));
    if (r->expert_hits + r->expert_misses > 0 && r->n_decoded > 1)
        fprintf(to, "experts  %.0f %% of those chosen were in memory; %s read per token\n",
                100 * share(r->expert_hits, r->expert_hits + r->expert_misses),
                units_size(a, sizeof a, r->expert_bytes / (r->n_decoded - 1)));
    fprintf(to, "io       %s (%s)\n", s->run.io, s->run.io_reason);
    if (disks_text(s, disks, sizeof disks)[0] != '\0')
        fprintf(to, "disks    %s\n", disks);
    fprintf(to, "products %s\n", s->run.products);
    if (peak(r, s) > 0)
        fprintf(to, "memory   %s at its peak, budget %s\n", units_size(a, sizeof a, peak(r, s)),
                units_size(b, sizeof b, s->run.budget_bytes));
    else if (s->os.t_ns != 0 && s->os.rss_peak.why_not == NULL)
        fprintf(to, "memory   %s resident at its peak%s, budget %s\n",
                units_size(a, sizeof a, s->os.rss_peak.value),
                r->is_mapped ? " with mapped pages" : "",
                units_size(b, sizeof b, s->run.budget_bytes));
    if (budget_given(s) > 0)
        fprintf(to, "auto     %s; %s\n", budget_last(last, sizeof last, s),
                budget_next(next, sizeof next, s));
}

void summary_server(FILE *to, const struct mw_receipt *r)
{
    char tps[24];

    fprintf(to, "first      after %.2f s, with the network and the server's queue\n",
            seconds(r->first_ns));
    fprintf(to, "total      %" PRIu32 " %s%s in %.1f s", r->n_decoded,
            r->is_in_pieces ? "piece" : "token", r->n_decoded == 1 ? "" : "s",
            seconds(r->first_ns + r->decode_ns));
    if (receipt_decode_tps(r) > 0)
        fprintf(to, " (%s tok/s after the first)",
                numbers_measured(tps, sizeof tps, receipt_decode_tps(r)));
    fputc('\n', to);
}

/* Write the members that are known of an answer of a server. */
static void server_json(struct json *j, const struct mw_receipt *r, const struct mw_sample *s)
{
    json_string(j, "model", s->run.model);
    if (r->is_in_pieces) {
        json_u64(j, "n_piece", r->n_decoded);
    } else {
        json_u64(j, "n_prompt", r->n_prompt);
        json_u64(j, "n_reused", r->n_reused);
        json_u64(j, "n_decoded", r->n_decoded);
    }
    json_u64(j, "first_ns", r->first_ns);
    json_u64(j, "decode_ns", r->decode_ns);
}

static void known(struct json *j, const char *key, double value)
{
    if (value < 0)
        json_null(j, key);
    else
        json_double(j, key, value, 6);
}

static void drafts_json(struct json *j, const struct mw_receipt *r)
{
    const struct mw_drafts *d = &r->drafts;
    struct mw_draft_rates rates;

    mw_draft_rates(d, r->decode_ns, &rates);
    json_u64(j, "n_pass", d->passes);
    json_u64(j, "n_drafted", d->drafted);
    json_u64(j, "n_accepted", d->accepted);
    if (d->drafted == 0)
        return;
    known(j, "tokens_per_pass", rates.tokens_per_pass);
    json_array(j, "accepted_at");
    for (uint32_t i = 0; i < rates.depth; i++)
        known(j, NULL, rates.accepted_at[i]);
    json_end(j);
    json_array(j, "pass_cost");
    for (uint32_t i = 0; i <= rates.depth; i++)
        known(j, NULL, rates.cost[i]);
    json_end(j);
    known(j, "drafter_share", rates.drafter_share);
}

void summary_json(struct json *j, const struct mw_receipt *r, const struct mw_sample *s)
{
    char reason[200];

    json_string(j, "done", summary_done_name(r->done));
    if (r->empty != MW_NOT_EMPTY) {
        json_string(j, "empty", empty_name(r->empty));
        json_string(j, "reason", receipt_empty(reason, sizeof reason, r, false));
    }
    if (r->is_remote) {
        server_json(j, r, s);
        return;
    }
    json_u64(j, "n_prompt", r->n_prompt);
    json_u64(j, "n_reused", r->n_reused);
    json_u64(j, "n_decoded", r->n_decoded);
    drafts_json(j, r);
    json_u64(j, "first_ns", r->first_ns);
    json_u64(j, "prefill_ns", r->prefill_ns);
    json_u64(j, "decode_ns", r->decode_ns);
    json_u64(j, "bytes_read", r->bytes_read);
    if (r->is_mapped)
        json_null(j, "stall_ns");
    else
        json_u64(j, "stall_ns", r->stall_ns);
    json_u64(j, "expert_hits", r->expert_hits);
    json_u64(j, "expert_misses", r->expert_misses);
    json_u64(j, "expert_bytes", r->expert_bytes);
    json_u64(j, "budget_bytes", s->run.budget_bytes);
    json_u64(j, "given_bytes", budget_given(s));
    if (peak(r, s) > 0)
        json_u64(j, "peak_charged", peak(r, s));
    else
        json_null(j, "peak_charged");
    json_double(j, "predicted_decode_tps", s->run.predicted_decode, 6);
    json_double(j, "predicted_prefill_tps", s->run.predicted_prefill, 6);
    json_string(j, "binds", mw_binds_name(s->run.predicted_binds));
    json_string(j, "io", s->run.io);
    json_string(j, "io_reason", s->run.io_reason);
    json_string(j, "products", s->run.products);
}
