/* See token.h. */
#include "config.h"

#include "ui/dash/token.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "ui/dash/figure.h"

#define TOTAL_WIDE 9    /* " ~490 ms " */
#define LEAST      0.01 /* smaller parts have no name */
#define LONG_S     10.0 /* from here on, times are in seconds */
#define ONE_LINE   84   /* columns of all names and times */

/* Stalls come first, then work, then the rest.  Neighbours have different colours in all
 * themes. */
static const struct part {
    size_t at; /* in struct mw_shares */
    char letter;
    const char *name;
    enum ui_role role;
} parts[] = {
    { offsetof(struct mw_shares, disk), 'd', "disk wait", ROLE_FILL_WORK },
    { offsetof(struct mw_shares, memory), 'm', "memory", ROLE_FILL_LENT },
    { offsetof(struct mw_shares, arithmetic), 'a', "arithmetic", ROLE_GOOD },
    { offsetof(struct mw_shares, attention), 'k', "context", ROLE_FILL_KV },
    { offsetof(struct mw_shares, others), 'o', "others", ROLE_FILL_OTHER },
    { offsetof(struct mw_shares, fixed), 'f', "fixed", ROLE_FILL_PROGRAM },
};
#define N_PART (sizeof parts / sizeof parts[0])

static double amount(const struct dash *d, const struct part *p)
{
    double n;

    memcpy(&n, (const char *)&d->now.verdict.part + p->at, sizeof n);
    return n > 0 ? n : 0;
}

static double sum_of(const struct dash *d)
{
    double sum = 0;

    for (size_t i = 0; i < N_PART; i++)
        sum += amount(d, &parts[i]);
    return sum;
}

/* Returns a share of the time of a token, 0 to 1. */
static double share_of(const struct dash *d, const struct part *p)
{
    return amount(d, p) / sum_of(d);
}

/* A prompt has parts, too, but they are not those of a token. */
static bool is_predicted(const struct dash *d)
{
    return d->now.verdict.binds == MW_BINDS_NONE;
}

static double seconds(const struct dash *d)
{
    if (!is_predicted(d))
        return d->rates.token_s;
    return d->now.run.predicted_decode > 0 ? 1 / d->now.run.predicted_decode : 0;
}

bool token_is_known(const struct dash *d)
{
    return seconds(d) > 0 && sum_of(d) > 0;
}

/* Draw a time in 5 columns; predictions have two digits. */
static void draw_time(const struct dash *d, const struct canvas *c, int y, int x, double s,
                      const char *mark)
{
    double value = seconds(d) < LONG_S ? s * 1e3 : s;
    char text[FIGURE_MAX];

    if (is_predicted(d))
        value = units_two_digits(value);
    snprintf(text, sizeof text, "%s%.*f", mark, value < 9.95 ? 1 : 0, value);
    canvas_printf(c, y, x, style_of(ROLE_TEXT), "%5s", text);
}

void token_bar(const struct dash *d, const struct canvas *c, int y)
{
    double token_s = seconds(d), at = 0;
    int width = c->width - TOTAL_WIDE, x = 0;
    bool ascii = canvas_is_ascii(c);

    if (!token_is_known(d) || width < (int)N_PART)
        return;
    draw_time(d, c, y, 0, token_s, is_predicted(d) ? "~" : "");
    canvas_text(c, y, 6, style_of(ROLE_DIM), token_s < LONG_S ? "ms" : "s");
    for (size_t i = 0; i < N_PART; i++) {
        int end;

        at += share_of(d, &parts[i]);
        /* The sum of all so far is rounded, so that roundings do not add up. */
        end = (int)lround(fmin(at * width, width));
        if (end <= x)
            continue;
        canvas_repeat(c, y, TOTAL_WIDE + x, end - x, style_of(parts[i].role),
                      ascii ? L'#' : L'\u2588');
        if (share_of(d, &parts[i]) >= LEAST)
            canvas_cell(c, y, TOTAL_WIDE + x,
                        (struct ui_style){ .role = (uint8_t)parts[i].role, .attr = UI_REVERSE },
                        (wchar_t)parts[i].letter);
        x = end;
    }
}

int token_key_lines(int width)
{
    return width >= ONE_LINE ? 1 : 2;
}

/* Letter, blanks and time. */
static int key_width(const struct part *p)
{
    return (int)strlen(p->name) + 7;
}

/* Lay out the parts that are in a mask.  Returns the lines; c may be NULL. */
static int lay_key(const struct dash *d, const struct canvas *c, int y, int width, unsigned mask)
{
    int x = 0, lines = 1;

    for (size_t i = 0; i < N_PART; i++) {
        const struct part *p = &parts[i];

        if ((mask & 1u << i) == 0)
            continue;
        if (x > 0 && x + key_width(p) > width)
            x = 0, lines++;
        if (c != NULL) {
            canvas_cell(c, y + lines - 1, x,
                        (struct ui_style){ .role = (uint8_t)p->role, .attr = UI_REVERSE },
                        (wchar_t)p->letter);
            canvas_text(c, y + lines - 1, x + 2, style_of(ROLE_DIM), p->name);
            draw_time(d, c, y + lines - 1, x + key_width(p) - 5, share_of(d, p) * seconds(d),
                      "");
        }
        x += key_width(p) + 2;
    }
    return lines;
}

void token_key(const struct dash *d, const struct canvas *c, int y, int n)
{
    unsigned mask = 0;

    if (!token_is_known(d))
        return;
    for (size_t i = 0; i < N_PART; i++)
        mask |= share_of(d, &parts[i]) >= LEAST ? 1u << i : 0;
    while (mask != 0 && lay_key(d, NULL, y, c->width, mask) > n) {
        size_t least = N_PART;

        for (size_t i = 0; i < N_PART; i++)
            if ((mask & 1u << i) != 0 &&
                (least == N_PART || share_of(d, &parts[i]) < share_of(d, &parts[least])))
                least = i;
        mask &= ~(1u << least);
    }
    lay_key(d, c, y, c->width, mask);
}
