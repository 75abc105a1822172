/* The words of sides.h. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/numbers.h"
#include "src/measure/sides.h"
#include "ui/words/clean.h"

#define ABOUT 1.1 /* times as fast that make no difference */

/* ---- figures ---- */

static double seconds(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (double)(to_ns - from_ns) / 1e9 : 0;
}

struct side_rate side_rate(const struct side *s)
{
    double decode = s->state == SIDE_DONE ? point_median(s->point, METRIC_DECODE) : NAN;

    if (decode > 0)
        return (struct side_rate){ decode, false };
    if (s->n_token > 0 && s->token_ns > s->decode_ns)
        return (struct side_rate){ s->n_token / seconds(s->decode_ns, s->token_ns), false };
    /* It was ended before its first token. */
    if (s->state == SIDE_FAILED && s->decode_ns > 0 && s->end_ns > s->decode_ns)
        return (struct side_rate){ 1 / seconds(s->decode_ns, s->end_ns), true };
    return (struct side_rate){ 0, false };
}

double sides_times(const struct sides *s, bool *is_more)
{
    struct side_rate ours = side_rate(&s->side[0]), theirs = side_rate(&s->side[1]);

    *is_more = theirs.is_below;
    return ours.tps > 0 && theirs.tps > 0 && !ours.is_below ? ours.tps / theirs.tps : 0;
}

/* ---- sentences ---- */

static void title_text(const struct sides *s, char *buf, size_t n)
{
    const struct results *r = s->results;
    const char *raw = r->model.name[0] != '\0' ? r->model.name : r->model.arch;
    char name[100], files[16], budget[16];

    clean_line(name, sizeof name, raw, strlen(raw));
    snprintf(buf, n, "%s %s, %s, twice in %s", name, r->model.type,
             units_size(files, sizeof files, r->model.file_bytes),
             units_size(budget, sizeof budget, s->side[0].point->budget_bytes));
}

static void failed_text(const struct side *s, char *buf, size_t n)
{
    char time[24];

    if (s->is_late)
        snprintf(buf, n, "%u of %u tokens when the time limit ended it, after %s", s->n_token,
                 s->n_total, numbers_time(time, sizeof time, seconds(s->start_ns, s->end_ns)));
    else
        snprintf(buf, n, "%.90s", s->point->error);
}

static void work_text(const struct side *s, char *buf, size_t n)
{
    char time[24];

    buf[0] = '\0';
    switch (s->state) {
    case SIDE_WAITS: snprintf(buf, n, "waits until memwall is done"); break;
    case SIDE_LEFT_OUT: snprintf(buf, n, "not measured: it needs a control group"); break;
    case SIDE_LOADS: snprintf(buf, n, "reads what fits, and evaluates a token"); break;
    case SIDE_DECODES:
        snprintf(buf, n, "%u of %u tokens, %s", s->n_token, s->n_total,
                 numbers_time(time, sizeof time, seconds(s->decode_ns, clock_ns())));
        break;
    case SIDE_DONE:
        snprintf(buf, n, "%u token%s in %s", s->n_token, s->n_token == 1 ? "" : "s",
                 numbers_time(time, sizeof time,
                              s->n_token / point_median(s->point, METRIC_DECODE)));
        break;
    case SIDE_FAILED: failed_text(s, buf, n); break;
    }
}

static void memory_text(const struct side *s, char *buf, size_t n)
{
    const struct mw_cage_use *use = &s->now.use;
    char a[16], b[16];

    buf[0] = '\0';
    if (s->start_ns > 0 && use->charged.why_not == NULL)
        snprintf(buf, n, "%s of %s charged", units_size(a, sizeof a, use->charged.value),
                 units_size(b, sizeof b, s->point->budget_bytes));
}

static void cache_text(const struct side *s, char *buf, size_t n)
{
    const struct mw_cage_use *use = &s->now.use;
    char a[16], b[16];

    buf[0] = '\0';
    if (s->start_ns == 0 || use->cached.why_not != NULL)
        return;
    snprintf(buf, n, "page cache %s", units_size(a, sizeof a, use->cached.value));
    if (use->reread.why_not == NULL && use->reread.value > 0)
        snprintf(buf + strlen(buf), n - strlen(buf), ", %s read again",
                 units_size(b, sizeof b, use->reread.value));
}

static void read_text(const struct side *s, char *buf, size_t n)
{
    double token = s->state == SIDE_DONE ? point_median(s->point, METRIC_READ) : NAN;
    char all[24], one[24];

    buf[0] = '\0';
    if (s->start_ns == 0 || s->now.read_bytes.why_not != NULL)
        return;
    snprintf(buf, n, "disk %s", units_size(all, sizeof all, s->now.read_bytes.value));
    if (token >= 0)
        snprintf(buf + strlen(buf), n - strlen(buf), ", %s a token",
                 units_size(one, sizeof one, (uint64_t)token));
}

static void rate_text(const struct side *s, char *buf, size_t n)
{
    struct side_rate rate = side_rate(s);

    snprintf(buf, n, "-");
    if (rate.tps > 0)
        numbers_measured(buf, n, rate.tps);
}

static void unit_text(const struct side *s, char *buf, size_t n)
{
    double predicted = s->point->predicted.value[METRIC_DECODE];
    char rate[24];

    snprintf(buf, n, "tok/s%s", side_rate(s).is_below ? " at most" : "");
    if (predicted > 0)
        snprintf(buf + strlen(buf), n - strlen(buf), ", %s predicted",
                 numbers_predicted(rate, sizeof rate, predicted, false));
}

static void times_text(double times, bool is_more, char *buf, size_t n)
{
    const char *more = is_more ? "more than " : "";

    if (times <= 0)
        buf[0] = '\0';
    else if (times < 1 / ABOUT)
        snprintf(buf, n, ": mapped pages are %.1f times as fast", 1 / times);
    else if (times < ABOUT)
        snprintf(buf, n, ": about equally fast");
    else
        snprintf(buf, n, ": %s%.*f times as fast", more, times < 10 ? 1 : 0, times);
}

char *sides_summary(const struct sides *s, char *buf, size_t n)
{
    struct side_rate rate[UI_SIDES];
    char text[UI_SIDES][24], suffix[60];
    bool is_more;
    double times = sides_times(s, &is_more);

    for (int i = 0; i < UI_SIDES; i++) {
        rate[i] = side_rate(&s->side[i]);
        numbers_measured(text[i], sizeof text[i], rate[i].tps);
    }
    times_text(times, is_more, suffix, sizeof suffix);
    if (rate[0].tps <= 0 || rate[0].is_below)
        snprintf(buf, n, "memwall has no answer to compare");
    else if (s->side[1].state == SIDE_LEFT_OUT)
        snprintf(buf, n, "memwall %s tok/s, mapped pages not measured", text[0]);
    else if (rate[1].tps <= 0)
        snprintf(buf, n, "memwall %s tok/s, mapped pages without an answer", text[0]);
    else
        snprintf(buf, n, "memwall %s tok/s, mapped pages %s%s%s", text[0],
                 rate[1].is_below ? "less than " : "", text[1], suffix);
    return buf;
}

/* ---- screen and text ---- */

static double share_of(const struct side *s, struct mw_os_value v)
{
    return s->start_ns > 0 && v.why_not == NULL && s->point->budget_bytes > 0
               ? (double)v.value / (double)s->point->budget_bytes
               : -1;
}

static void side_for_screen(const struct side *s, struct ui_side *out)
{
    out->title = s->name;
    rate_text(s, out->rate, sizeof out->rate);
    unit_text(s, out->unit, sizeof out->unit);
    out->cached = share_of(s, s->now.use.cached);
    out->own = share_of(s, s->now.use.charged);
    if (out->cached > 0)
        out->own = fmax(out->own - out->cached, 0);
    work_text(s, out->line[0], sizeof out->line[0]);
    memory_text(s, out->line[1], sizeof out->line[1]);
    cache_text(s, out->line[2], sizeof out->line[2]);
    read_text(s, out->line[3], sizeof out->line[3]);
}

void sides_for_screen(const struct sides *s, bool is_over, struct ui_sides *out)
{
    *out = (struct ui_sides){ .end = "" };
    title_text(s, out->title, sizeof out->title);
    for (int i = 0; i < UI_SIDES; i++)
        side_for_screen(&s->side[i], &out->side[i]);
    if (is_over)
        sides_summary(s, out->end, sizeof out->end);
}

void sides_print(const struct sides *s)
{
    struct ui_sides shown;
    char disturbed[DISTURBANCE_TEXT];

    sides_for_screen(s, true, &shown);
    printf("%s, one after the other\n", shown.title);
    for (int i = 0; i < UI_SIDES; i++) {
        const struct ui_side *side = &shown.side[i];

        printf("\n%s: %s %s\n", side->title, side->rate, side->unit);
        for (int k = 0; k < UI_SIDE_LINES; k++)
            if (side->line[k][0] != '\0')
                printf("  %s\n", side->line[k]);
        if (point_disturbance(s->side[i].point, disturbed, sizeof disturbed)[0] != '\0')
            printf("  disturbed: %s\n", disturbed);
    }
    printf("\n%s\n", shown.end);
}
