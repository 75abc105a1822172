/* See progress.h. */
#include "config.h"

#include "src/base/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/numbers.h"

#define LINE_MAX_COLUMNS 77 /* a line that wraps cannot be redrawn */
#define ECHO_COLUMNS     2  /* "^C", which the terminal prints after the text */

void progress_open(struct progress *p, bool quiet)
{
    *p = (struct progress){ .is_on = !quiet && isatty(STDERR_FILENO) };
    p->from_ns = clock_ns();
}

bool progress_is_due(const struct progress *p)
{
    return p->is_on &&
           (!p->is_drawn || clock_ns() - p->drawn_ns >= PROGRESS_EVERY_MS * 1000000ull);
}

void progress_text(struct progress *p, const char *text)
{
    int width;

    if (!p->is_on)
        return;
    width = fprintf(stderr, "\r%.*s", LINE_MAX_COLUMNS, text) - 1;
    if (width < p->width)
        fprintf(stderr, "%*s", p->width - width, "");
    fflush(stderr);
    p->width = width;
    p->is_drawn = true;
    p->drawn_ns = clock_ns();
}

void progress_restart(struct progress *p, uint64_t n)
{
    p->from_ns = clock_ns();
    p->n_from = n;
}

/* "0:07", "1:38", "2:05:11". */
static void time_text(char *buf, size_t n, double seconds)
{
    uint64_t s = seconds < 1e6 ? (uint64_t)(seconds + 0.5) : 999999;

    if (s >= 3600)
        snprintf(buf, n, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64, s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(buf, n, "%" PRIu64 ":%02" PRIu64, s / 60, s % 60);
}

void progress_count(struct progress *p, const char *what, const char *unit, uint64_t n,
                    uint64_t total)
{
    double seconds = (double)(clock_ns() - p->from_ns) / 1e9;
    char text[128], left[24], per_s[24];
    const char *about = p->is_about ? "~" : "";
    double rate;

    if (!p->is_on)
        return;
    total = total > 0 && total < n ? n : total;
    if (total == 0) {
        snprintf(text, sizeof text, "%s %" PRIu64 " %s", what, n, unit);
        progress_text(p, text);
        return;
    }
    if (n <= p->n_from || seconds <= 0) {
        snprintf(text, sizeof text, "%s   0 %% of %s%" PRIu64 " %s", what, about, total, unit);
        progress_text(p, text);
        return;
    }
    rate = (double)(n - p->n_from) / seconds;
    time_text(left, sizeof left, (double)(total - n) / rate);
    snprintf(text, sizeof text, "%s %3.0f %% of %s%" PRIu64 " %s, %s %s/s, about %s left", what,
             100.0 * (double)n / (double)total, about, total, unit,
             numbers_measured(per_s, sizeof per_s, rate),
             strcmp(unit, "tokens") == 0 ? "tok" : unit, left);
    progress_text(p, text);
}

void progress_bytes(struct progress *p, const char *what, uint64_t n, uint64_t total)
{
    double seconds = (double)(clock_ns() - p->from_ns) / 1e9;
    char text[128], left[24], size[16], per_s[16];
    double rate;

    units_size(size, sizeof size, total);
    if (n <= p->n_from || seconds <= 0) {
        snprintf(text, sizeof text, "%s %3.0f %% of %s", what,
                 total > 0 ? 100.0 * (double)n / (double)total : 0, size);
        progress_text(p, text);
        return;
    }
    rate = (double)(n - p->n_from) / seconds;
    time_text(left, sizeof left, (double)(total - n) / rate);
    snprintf(text, sizeof text, "%s %3.0f %% of %s, %s/s, about %s left", what,
             100.0 * (double)n / (double)total, size,
             units_size(per_s, sizeof per_s, (uint64_t)rate), left);
    progress_text(p, text);
}

void progress_sample(struct progress *p, const struct mw_sample *s, bool is_thinking)
{
    char text[160], memory[64] = "", binds[40] = "", rate[32] = "", a[16], b[16];
    char per_s[24];
    struct mw_diagnosis d;

    if (!p->is_on)
        return;
    if (s->decode_ns > 0 && s->n_decoded > 1)
        snprintf(rate, sizeof rate, ", %s tok/s",
                 numbers_measured(per_s, sizeof per_s,
                                  (double)(s->n_decoded - 1) * 1e9 / (double)s->decode_ns));
    if (s->os.t_ns != 0 && s->os.charged.why_not == NULL)
        snprintf(memory, sizeof memory, ", %s of %s",
                 units_size(a, sizeof a, s->os.charged.value),
                 units_size(b, sizeof b, s->run.budget_bytes));
    else if (s->os.t_ns != 0 && s->os.rss.why_not == NULL)
        snprintf(memory, sizeof memory, ", %s of %s", units_size(a, sizeof a, s->os.rss.value),
                 units_size(b, sizeof b, s->run.budget_bytes));
    mw_diagnosis_of_sample(s, &d);
    if (d.is_measured && mw_diagnosis_needs_nothing(&d))
        snprintf(binds, sizeof binds, ", %s", mw_diagnosis_label(&d));
    else if (d.is_measured)
        snprintf(binds, sizeof binds, ", %s (%.0f %%)", mw_diagnosis_label(&d), 100 * d.share);
    snprintf(text, sizeof text, "%s%" PRIu64 " token%s%s%s%s", is_thinking ? "thinking, " : "",
             s->n_decoded, s->n_decoded == 1 ? "" : "s", rate, memory, binds);
    progress_text(p, text);
}

void progress_clear(struct progress *p)
{
    if (!p->is_drawn)
        return;
    fprintf(stderr, "\r%*s\r", p->width + ECHO_COLUMNS, "");
    fflush(stderr);
    p->is_drawn = false;
    p->width = 0;
}
