/* See summary.h. */
#include "config.h"

#include "src/summary.h"

#include <inttypes.h>

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

/* What the kernel charged at the most: by the receipt, else by the sample; 0: unknown. */
static uint64_t peak(const struct mw_receipt *r, const struct mw_sample *s)
{
    if (r->peak_charged > 0)
        return r->peak_charged;
    if (s->os.t_ns != 0 && s->os.charged_peak.why_not == NULL)
        return s->os.charged_peak.value;
    return 0;
}

void summary_print(FILE *to, const struct mw_receipt *r, const struct mw_sample *s)
{
    char a[16], b[16];

    fprintf(to, "prompt   %" PRIu32 " tokens in %.1f s (%.3g tok/s)", r->n_prompt,
            seconds(r->prefill_ns), rate(r->n_prompt, r->prefill_ns));
    if (r->n_reused > 0)
        fprintf(to, ", %" PRIu32 " were still held", r->n_reused);
    fprintf(to,
            "\nanswer   %" PRIu32 " tokens in %.1f s (%.3g tok/s), the first after %.1f s\n",
            r->n_decoded, seconds(r->decode_ns), rate(r->n_decoded, r->decode_ns),
            seconds(r->first_ns));
    fprintf(to, "read     %s from disk, %.0f %% of the answer's time waited for it\n",
            units_size(a, sizeof a, r->bytes_read), 100 * share(r->stall_ns, r->decode_ns));
    if (peak(r, s) > 0)
        fprintf(to, "memory   %s at its peak, budget %s\n", units_size(a, sizeof a, peak(r, s)),
                units_size(b, sizeof b, s->run.budget_bytes));
    else if (s->os.t_ns != 0 && s->os.rss_peak.why_not == NULL)
        fprintf(to, "memory   %s resident at its peak, budget %s\n",
                units_size(a, sizeof a, s->os.rss_peak.value),
                units_size(b, sizeof b, s->run.budget_bytes));
}

void summary_json(FILE *to, const struct mw_receipt *r, const struct mw_sample *s)
{
    fprintf(to,
            "\"done\":\"%s\",\"n_prompt\":%" PRIu32 ",\"n_reused\":%" PRIu32
            ",\"n_decoded\":%" PRIu32 ",\"first_ns\":%" PRIu64 ",\"prefill_ns\":%" PRIu64
            ",\"decode_ns\":%" PRIu64 ",\"bytes_read\":%" PRIu64 ",\"stall_ns\":%" PRIu64
            ",\"budget_bytes\":%" PRIu64,
            summary_done_name(r->done), r->n_prompt, r->n_reused, r->n_decoded, r->first_ns,
            r->prefill_ns, r->decode_ns, r->bytes_read, r->stall_ns, s->run.budget_bytes);
    if (peak(r, s) > 0)
        fprintf(to, ",\"peak_charged\":%" PRIu64, peak(r, s));
    else
        fputs(",\"peak_charged\":null", to);
}
