#include "config.h"

#include "ui/app/status.h"

#include <stdio.h>
#include <string.h>

#include "ui/text/receipt.h"

/* "12345", "121k"; k is 1024, as in --ctx. */
static char *short_count(char *buf, size_t n, uint64_t value)
{
    if (value < 100000)
        snprintf(buf, n, "%u", (unsigned)value);
    else
        snprintf(buf, n, "%uk", (unsigned)(value / 1024));
    return buf;
}

static uint64_t held(const struct mw_sample *s)
{
    uint64_t sum = 0;

    for (int i = 0; i < MW_PLAN_ROWS; i++)
        sum += s->mem.used[i];
    return sum;
}

/* Returns the rate of the newest tokens, as in the dashboard, or of the last answer; 0 if none
 * was made with this plan. */
static double tokens_per_s(const struct talk *t, const struct mw_sample *s)
{
    struct mw_rates rates;

    mw_rates(s, &rates);
    return rates.decode_last > 0 ? rates.decode_last : talk_measured(t);
}

static const char *state_word(const struct talk *t)
{
    static const char *const words[] = {
        [TALK_LOADING] = "loading",        [TALK_SWITCHING] = "loading",
        [TALK_FAILED] = "not loaded",      [TALK_READY] = "ready",
        [TALK_PREFILL] = "reading prompt", [TALK_ANSWERING] = "answering",
        [TALK_STOPPING] = "stopping",
    };

    return words[talk_state(t)];
}

static void speed_text(char *buf, size_t n, const struct talk *t, const struct mw_sample *s)
{
    double tps = tokens_per_s(t, s);
    char rate[24];

    if (tps > 0)
        snprintf(buf, n, "%s tok/s", receipt_rate(rate, sizeof rate, tps));
    else if (talk_plan(t)->decode_tps > 0)
        snprintf(buf, n, "~%s tok/s",
                 receipt_rate(rate, sizeof rate, talk_plan(t)->decode_tps));
    else
        snprintf(buf, n, "- tok/s");
}

static void binds_text(char *buf, size_t n, const struct talk *t, const struct mw_sample *s)
{
    if (s->verdict.binds != MW_BINDS_NONE)
        snprintf(buf, n, "%s-bound %.0f%%", mw_binds_name(s->verdict.binds),
                 s->verdict.share * 100);
    else if (talk_plan(t)->binds != MW_BINDS_NONE)
        snprintf(buf, n, "~%s-bound", mw_binds_name(talk_plan(t)->binds));
    else
        snprintf(buf, n, "nothing binds");
}

/* The limit of the disk after the text before it; "" without one. */
static void disk_text(char *buf, size_t n, const struct talk *t, int level)
{
    static const char *const before[] = { "  |  disk limited to ",
                                          "  disk<=", "  disk<=", " <=", " <=" };
    uint64_t limit = talk_options(t)->engine.disk_rate;
    char rate[24];

    buf[0] = '\0';
    if (limit > 0)
        snprintf(buf, n, "%s%s", before[level], units_rate(rate, sizeof rate, (double)limit));
}

#define LEVELS 5 /* wordings, the longest first */

static void status_text(char *buf, size_t n, const struct talk *t, const struct mw_sample *s,
                        int level)
{
    char used[16], left[16], all[16], have[16], budget[16], speed[32], binds[40], disk[48];
    uint64_t capacity = s->kv.capacity != 0 ? s->kv.capacity : talk_plan(t)->n_ctx;
    uint64_t tokens = talk_tokens(t);

    if (tokens > capacity) /* the next message drops turns */
        tokens = capacity;
    short_count(used, sizeof used, tokens);
    short_count(all, sizeof all, capacity);
    short_count(left, sizeof left, capacity > tokens ? capacity - tokens : 0);
    units_size(have, sizeof have, held(s));
    units_size(budget, sizeof budget, talk_plan(t)->budget_bytes);
    speed_text(speed, sizeof speed, t, s);
    binds_text(binds, sizeof binds, t, s);
    disk_text(disk, sizeof disk, t, level);
    switch (level) {
    case 0:
        snprintf(buf, n, "%-14s  context %s used, %s left of %s  |  %s of %s  |  %s  |  %s%s",
                 state_word(t), used, left, all, have, budget, speed, binds, disk);
        break;
    case 1:
        snprintf(buf, n, "%s  ctx %s, %s left  %s of %s  %s  %s%s", state_word(t), used, left,
                 have, budget, speed, binds, disk);
        break;
    case 2:
        snprintf(buf, n, "ctx %s, %s left  %s/%s  %s  %s%s", used, left, have, budget, speed,
                 binds, disk);
        break;
    case 3: snprintf(buf, n, "%s/%s %s %s %s%s", used, all, budget, speed, binds, disk); break;
    default: {
        double tps = tokens_per_s(t, s);

        snprintf(buf, n, "%s ctx %s left %.1f/%.1fG %.1ft/s %.4s%s", used, left,
                 (double)held(s) / (double)GIB,
                 (double)talk_plan(t)->budget_bytes / (double)GIB,
                 tps > 0 ? tps : talk_plan(t)->decode_tps, binds, disk);
        break;
    }
    }
}

void status_draw(const struct canvas *c, const struct talk *t, const struct mw_sample *s,
                 const char *mode)
{
    char text[256], pending[200];
    const char *right = talk_pending(t, pending, sizeof pending)[0] != '\0' ? pending : mode;
    int right_width = right[0] == '\0' ? 0 : cluster_width(right, strlen(right)) + 3;

    canvas_blank(c, 0, 0, c->width, style_of(ROLE_STATUS));
    for (int level = 0; level < LEVELS; level++) {
        status_text(text, sizeof text, t, s, level);
        if (cluster_width(text, strlen(text)) + 2 + right_width <= c->width)
            break;
    }
    if (right == pending && cluster_width(text, strlen(text)) + 2 + right_width > c->width) {
        canvas_put(c, 0, 0, c->width, style_of(ROLE_STATUS_STRONG), pending, strlen(pending));
        return;
    }
    canvas_put(c, 0, c->width > 44 ? 1 : 0, c->width, style_of(ROLE_STATUS), text,
               strlen(text));
    if (right_width > 0 && c->width > 60)
        canvas_right(c, 0, c->width - 1, style_of(ROLE_STATUS_STRONG), right);
}
