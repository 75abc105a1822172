/* The chat as wrapped text: follows, scrolls. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/canvas.h"
#include "ui/chat/transcript.h"

struct item {
    enum transcript_kind kind;
    char *text;
    size_t n;
};

struct transcript {
    struct item item[4096];
    size_t n;
    int height, width, above; /* rows scrolled up from the end */
    char status[256];
    bool dirty;
};

struct transcript *transcript_new(const struct transcript_options *o)
{
    (void)o;
    return calloc(1, sizeof(struct transcript));
}

void transcript_clear(struct transcript *t)
{
    while (t->n > 0)
        free(t->item[--t->n].text);
}

void transcript_free(struct transcript *t)
{
    if (t != NULL)
        transcript_clear(t);
    free(t);
}

static bool extend(struct item *i, const char *text, size_t n)
{
    char *more = realloc(i->text, i->n + n + 1);

    if (more == NULL)
        return false;
    memcpy(more + i->n, text, n);
    i->text = more;
    i->n += n;
    more[i->n] = '\0';
    return true;
}

bool transcript_add(struct transcript *t, enum transcript_kind kind, const char *text, size_t n,
                    uint32_t id)
{
    (void)id;
    if (t->n == sizeof t->item / sizeof t->item[0])
        return false;
    t->item[t->n] = (struct item){ .kind = kind };
    return extend(&t->item[t->n++], text, n);
}

bool transcript_begin(struct transcript *t, bool resume)
{
    return resume || transcript_add(t, TRANSCRIPT_ANSWER, "", 0, 0);
}

bool transcript_append(struct transcript *t, const char *text, size_t n, bool is_thinking)
{
    (void)is_thinking;
    return t->n > 0 && extend(&t->item[t->n - 1], text, n);
}

void transcript_done(struct transcript *t, const struct mw_receipt *r)
{
    char text[160];

    snprintf(text, sizeof text, "%u tokens, %.1f s, %.2f GB read", r->n_decoded,
             (double)(r->prefill_ns + r->decode_ns) / 1e9, (double)r->bytes_read / 1e9);
    transcript_add(t, TRANSCRIPT_NOTICE, text, strlen(text), 0);
}

void transcript_set_status(struct transcript *t, const char *line, double share)
{
    (void)share;
    snprintf(t->status, sizeof t->status, "%s", line == NULL ? "" : line);
}

void transcript_size(struct transcript *t, int height, int width)
{
    t->height = height;
    t->width = width;
}

/* Rows of all; drawn from row `from` on where c is given. */
static int walk(struct transcript *t, const struct canvas *c, int from)
{
    static const enum ui_role roles[] = { ROLE_NOTICE, ROLE_USER, ROLE_MODEL, ROLE_NOTICE,
                                          ROLE_BAD };
    int row = 0;

    for (size_t i = 0; i < t->n; i++) {
        const char *at = t->item[i].text, *end = at + t->item[i].n;

        do {
            size_t line = strcspn(at, "\n"), fit = cluster_fit(at, line, t->width);

            if (c != NULL)
                canvas_put(c, row - from, 0, c->width, style_of(roles[t->item[i].kind]), at,
                           fit);
            row++;
            at += fit > 0 || line == 0 ? fit + (fit == line && at[fit] == '\n') : line + 1;
        } while (at < end);
    }
    if (t->status[0] != '\0') {
        if (c != NULL)
            canvas_text(c, row - from, 0, style_of(ROLE_DIM), t->status);
        row++;
    }
    return row;
}

void transcript_draw(struct transcript *t, const struct canvas *c)
{
    int rows = t->width < 1 ? 0 : walk(t, NULL, 0), from = rows - t->height - t->above;

    canvas_clear(c, style_of(ROLE_TEXT));
    if (t->width > 0)
        walk(t, c, from > 0 ? from : 0);
}

void transcript_scroll(struct transcript *t, int rows)
{
    int most = t->width < 1 ? 0 : walk(t, NULL, 0) - t->height;

    t->above -= rows;
    if (t->above > most)
        t->above = most;
    if (t->above < 0)
        t->above = 0;
}

void transcript_page(struct transcript *t, int pages)
{
    transcript_scroll(t, pages * (t->height - 1));
}

void transcript_home(struct transcript *t)
{
    transcript_scroll(t, -1000000);
}

void transcript_end(struct transcript *t)
{
    t->above = 0;
}

bool transcript_follows(const struct transcript *t)
{
    return t->above == 0;
}

bool transcript_more_below(struct transcript *t)
{
    return t->above > 0;
}

void transcript_saved(struct transcript *t, uint32_t id)
{
    (void)t;
    (void)id;
}

void transcript_rewind(struct transcript *t, size_t n)
{
    (void)n;
    transcript_clear(t);
}

#define FLAG(set, get)                                                                         \
    void set(struct transcript *t, bool on)                                                    \
    {                                                                                          \
        (void)t;                                                                               \
        (void)on;                                                                              \
    }                                                                                          \
    bool get(const struct transcript *t)                                                       \
    {                                                                                          \
        (void)t;                                                                               \
        return false;                                                                          \
    }
FLAG(transcript_set_raw, transcript_is_raw)
FLAG(transcript_set_thinking, transcript_shows_thinking)
FLAG(transcript_set_receipts, transcript_shows_receipts)

bool transcript_search(struct transcript *t, const char *text)
{
    (void)t;
    (void)text;
    return false;
}

bool transcript_search_next(struct transcript *t, int direction)
{
    (void)t;
    (void)direction;
    return false;
}

bool transcript_is_searching(const struct transcript *t)
{
    (void)t;
    return false;
}

bool transcript_has_selection(struct transcript *t)
{
    (void)t;
    return false;
}

void transcript_unselect(struct transcript *t)
{
    (void)t;
}
