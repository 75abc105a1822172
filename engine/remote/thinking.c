/* See thinking.h. */
#include "config.h"

#include "engine/remote/thinking.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *open, *close;
} pairs[] = {
    { "<think>", "</think>" },
    { "[THINK]", "[/THINK]" },
    { "<thinking>", "</thinking>" },
    { "<thought>", "</thought>" },
    { "<reasoning>", "</reasoning>" },
    { "<seed:think>", "</seed:think>" },
};

#define N_PAIR (sizeof pairs / sizeof pairs[0])

/* White space before an opening mark that is waited for. */
#define BLANKS_MOST 8

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Text that goes out in one run. */
struct run {
    char *text;
    size_t n;
    bool is_thinking;
};

static int say(struct thinking *t, struct run *run, struct err *e)
{
    size_t n = run->n;

    run->n = 0;
    return n > 0 ? t->calls->text(t->ctx, run->text, n, run->is_thinking, e) : 0;
}

/* Move n held bytes to the run. */
static void let_go(struct thinking *t, struct run *run, size_t n)
{
    memcpy(run->text + run->n, t->held, n);
    run->n += n;
    if (n > 0)
        t->is_line_start = t->held[n - 1] == '\n';
    t->n_held -= n;
    memmove(t->held, t->held + n, t->n_held);
}

enum fit { FITS_NOT, FITS_IN_PART, FITS };

static enum fit fit(const char *text, size_t n, const char *mark)
{
    size_t len = strlen(mark);

    if (memcmp(text, mark, n < len ? n : len) != 0)
        return FITS_NOT;
    return n < len ? FITS_IN_PART : FITS;
}

/* Compare the held bytes from this index with all opening or closing marks.  FITS sets *pair. */
static enum fit fit_any(const struct thinking *t, size_t from, bool opens, size_t *pair)
{
    enum fit best = FITS_NOT;

    for (size_t i = 0; i < N_PAIR; i++) {
        enum fit f = fit(t->held + from, t->n_held - from,
                         opens ? pairs[i].open : pairs[i].close);

        if (f == FITS)
            *pair = i;
        best = f > best ? f : best;
    }
    return best;
}

static void look_for_opening(struct thinking *t)
{
    size_t from = 0;

    while (from < t->n_held && is_blank(t->held[from]))
        from++;
    if (from == t->n_held) {
        if (from > BLANKS_MOST)
            t->state = THINKING_TEXT;
        return;
    }
    switch (fit_any(t, from, true, &t->pair)) {
    case FITS:
        t->n_held = 0;
        t->state = THINKING_INSIDE;
        break;
    case FITS_NOT: t->state = THINKING_TEXT; break;
    case FITS_IN_PART: break;
    }
}

static int look_for_closing(struct thinking *t, struct run *run, struct err *e)
{
    while (t->n_held > 0) {
        switch (fit(t->held, t->n_held, pairs[t->pair].close)) {
        case FITS_NOT: let_go(t, run, 1); continue;
        case FITS_IN_PART: return 0;
        case FITS:
            t->n_held = 0;
            t->state = THINKING_BLANKS;
            return say(t, run, e);
        }
    }
    return 0;
}

/* A closing mark that is a line of its own, after which the last byte was held. */
static int look_for_line(struct thinking *t, struct run *run, struct err *e)
{
    while (t->n_held > 0) {
        enum fit f = t->is_line_start ? fit_any(t, 0, false, &t->pair) : FITS_NOT;
        size_t len = f == FITS ? strlen(pairs[t->pair].close) : 0;

        if (f == FITS_IN_PART || (f == FITS && t->n_held == len))
            return 0;
        if (f == FITS && (t->held[len] == '\n' || t->held[len] == '\r')) {
            t->n_held = 0;
            t->state = THINKING_BLANKS;
            return say(t, run, e) != 0 ? -1 : t->calls->thought(t->ctx, e);
        }
        let_go(t, run, 1);
    }
    return 0;
}

/* One more byte is held. */
static int look(struct thinking *t, struct run *run, struct err *e)
{
    if (t->state == THINKING_BEGIN)
        look_for_opening(t);
    if (t->state == THINKING_INSIDE) {
        run->is_thinking = true;
        return look_for_closing(t, run, e);
    }
    run->is_thinking = false;
    if (t->state == THINKING_TEXT)
        return look_for_line(t, run, e);
    if (t->state == THINKING_BLANKS) {
        if (is_blank(t->held[0])) {
            t->n_held = 0;
            return 0;
        }
        t->state = THINKING_OVER;
    }
    if (t->state == THINKING_OVER)
        let_go(t, run, t->n_held);
    return 0;
}

void thinking_begin(struct thinking *t, const struct thinking_calls *calls, void *ctx,
                    bool is_over)
{
    *t = (struct thinking){ .calls = calls,
                            .ctx = ctx,
                            .state = is_over ? THINKING_OVER : THINKING_BEGIN,
                            .is_line_start = true };
}

int thinking_push(struct thinking *t, const char *text, size_t len, struct err *e)
{
    struct run run = { malloc(t->n_held + len + 1), 0, false };
    int rc = run.text == NULL ? err_memory(e, "a piece of the answer") : 0;

    for (size_t i = 0; rc == 0 && i < len; i++) {
        t->held[t->n_held++] = text[i];
        rc = look(t, &run, e);
    }
    if (rc == 0)
        rc = say(t, &run, e);
    free(run.text);
    return rc;
}

int thinking_close(struct thinking *t, const char *mark, size_t len, struct err *e)
{
    bool is_thinking = t->state == THINKING_INSIDE;
    size_t n = t->n_held;

    if (t->state == THINKING_OVER || t->state == THINKING_BLANKS)
        return thinking_push(t, mark, len, e);
    t->n_held = 0;
    t->state = THINKING_BLANKS;
    if (n > 0 && t->calls->text(t->ctx, t->held, n, is_thinking, e) != 0)
        return -1;
    return is_thinking ? 0 : t->calls->thought(t->ctx, e);
}

int thinking_end(struct thinking *t, struct err *e)
{
    bool is_thinking = t->state == THINKING_INSIDE, is_mark;
    size_t n = t->n_held;

    /* The text may end with the line. */
    is_mark = t->state == THINKING_TEXT && t->is_line_start &&
              fit_any(t, 0, false, &t->pair) == FITS;
    t->state = THINKING_OVER;
    t->n_held = 0;
    if (is_mark)
        return t->calls->thought(t->ctx, e);
    return n > 0 ? t->calls->text(t->ctx, t->held, n, is_thinking, e) : 0;
}
