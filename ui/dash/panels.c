#include "config.h"

#include "ui/dash/panels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIN_PERCENT 5
#define MAX_PERCENT 90

#define PANEL_NAME(name) #name,

static const char *const names[] = { DASH_WIDGETS(PANEL_NAME) };

_Static_assert(sizeof names / sizeof names[0] == PANELS, "one panel for each widget");

void panels_reset(struct panels *p)
{
    for (int i = 0; i < PANELS; i++)
        p->row[i] = (struct panel){ .widget = i };
    p->chosen = -1;
}

const char *panels_name(int widget)
{
    return names[widget];
}

/* At least one panel that is for every model has to stay. */
static bool is_sure(const struct panel *one)
{
    return !one->is_hidden && one->widget < PANELS_SURE && one->widget != PANEL_WALL;
}

/* ---- as text ---- */

static bool parse_word(struct panel *out, const char *word, size_t n)
{
    bool is_hidden = n > 0 && word[0] == '-';
    size_t length = strcspn(word, ": ");
    char *end = NULL;

    word += is_hidden;
    length -= is_hidden;
    *out = (struct panel){ .widget = -1, .is_hidden = is_hidden };
    for (int i = 0; i < PANELS; i++)
        if (strlen(names[i]) == length && memcmp(names[i], word, length) == 0)
            out->widget = i;
    if (word[length] != ':')
        return out->widget >= 0;
    out->percent = (int)strtol(word + length + 1, &end, 10);
    return out->widget >= 0 && (*end == ' ' || *end == '\0') && out->percent >= MIN_PERCENT &&
           out->percent <= MAX_PERCENT;
}

bool panels_parse(struct panels *p, const char *text)
{
    struct panels new = { .n_used = p->n_used, .has_wall = p->has_wall, .chosen = p->chosen };
    bool is_named[PANELS] = { false }, is_visible = false;
    int n = 0;

    for (text += strspn(text, " "); *text != '\0'; text += strspn(text, " ")) {
        size_t length = strcspn(text, " ");
        struct panel one;

        if (n == PANELS || !parse_word(&one, text, length) || is_named[one.widget])
            return false;
        is_named[one.widget] = true;
        is_visible |= is_sure(&one);
        new.row[n++] = one;
        text += length;
    }
    for (int i = 0; i < PANELS; i++)
        if (!is_named[i]) {
            new.row[n] = (struct panel){ .widget = i };
            is_visible |= is_sure(&new.row[n++]);
        }
    if (is_visible)
        *p = new;
    return is_visible;
}

char *panels_text(const struct panels *p, char *buf)
{
    int used = 0;

    buf[0] = '\0';
    for (int i = 0; i < PANELS; i++) {
        const struct panel *one = &p->row[i];

        used += snprintf(buf + used, PANELS_TEXT - (size_t)used, "%s%s%s", i > 0 ? " " : "",
                         one->is_hidden ? "-" : "", names[one->widget]);
        if (one->percent > 0)
            used += snprintf(buf + used, PANELS_TEXT - (size_t)used, ":%d", one->percent);
    }
    return buf;
}

/* ---- changes ---- */

int panels_fit(int percent)
{
    return percent < MIN_PERCENT ? MIN_PERCENT : percent > MAX_PERCENT ? MAX_PERCENT : percent;
}

static int row_of(const struct panels *p, int widget)
{
    int i = 0;

    while (i < PANELS - 1 && p->row[i].widget != widget)
        i++;
    return i;
}

struct panel *panels_find(struct panels *p, int widget)
{
    return &p->row[row_of(p, widget)];
}

bool panels_shows(const struct panels *p, int i)
{
    const struct panel *one = &p->row[i];

    return !one->is_hidden && one->widget < p->n_used &&
           (one->widget != PANEL_WALL || p->has_wall);
}

/* Returns the row of the next visible panel from row i on, around the ends. */
static int next_visible(const struct panels *p, int i, int direction)
{
    for (int k = 0; k < PANELS; k++) {
        i = (i + direction + PANELS) % PANELS;
        if (panels_shows(p, i))
            break;
    }
    return i;
}

void panels_choose(struct panels *p, int direction)
{
    int from = p->chosen >= 0 ? row_of(p, p->chosen) : direction > 0 ? -1 : 0;

    p->chosen = p->row[next_visible(p, from, direction)].widget;
}

bool panels_toggle(struct panels *p, int widget)
{
    struct panel *one = panels_find(p, widget);
    int n_sure = 0;

    for (int i = 0; i < PANELS; i++)
        n_sure += is_sure(&p->row[i]);
    if (is_sure(one) && n_sure == 1)
        return false;
    one->is_hidden = !one->is_hidden;
    if (one->is_hidden && p->chosen == widget)
        panels_choose(p, 1);
    return true;
}

void panels_put(struct panels *p, int widget, int at)
{
    int from = row_of(p, widget), to = row_of(p, at);
    struct panel moved = p->row[from];

    for (; from < to; from++)
        p->row[from] = p->row[from + 1];
    for (; from > to; from--)
        p->row[from] = p->row[from - 1];
    p->row[to] = moved;
}

void panels_move(struct panels *p, int direction)
{
    int from = p->chosen >= 0 ? row_of(p, p->chosen) : 0;
    int to = next_visible(p, from, direction);

    if (p->chosen >= 0 && (to - from) * direction > 0) /* not around the ends */
        panels_put(p, p->chosen, p->row[to].widget);
}
