/* How plain mode shows a conversation: the functions of front.h. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/app/plain_internal.h"
#include "ui/talk/context_full.h"
#include "ui/words/receipt.h"

/* ---- printing ---- */

/* Without UTF-8, each character that is not ASCII is printed as '?'. */
static void put(struct plain *p, const char *text, size_t n)
{
    if (n == 0)
        return;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];

        if (p->is_utf8 || c < 0x80)
            putchar(c);
        else if (c >= 0xc0)
            putchar('?');
    }
    p->at_line_start = text[n - 1] == '\n';
}

void plain_put_line(struct plain *p, const char *text)
{
    if (p->has_prompt || !p->at_line_start)
        putchar('\n');
    p->has_prompt = false;
    put(p, text, strlen(text));
    putchar('\n');
    p->at_line_start = true;
}

void plain_put_prompt(struct plain *p, const char *text)
{
    if (!p->is_tty || p->has_prompt)
        return;
    if (!p->at_line_start)
        putchar('\n');
    fputs(text, stdout);
    fflush(stdout);
    p->has_prompt = true;
    p->at_line_start = true;
}

static void sink(void *ctx, const char *text, size_t n, size_t src, size_t src_n,
                 enum clean_kind kind)
{
    (void)src;
    (void)src_n;
    (void)kind;
    put(ctx, text, n);
}

/* ---- the functions of the front ---- */

static void on_say(void *ctx, enum talk_say kind, const char *text, uint32_t id)
{
    char line[4200];

    (void)id;
    snprintf(line, sizeof line, "%s%s", kind == SAY_ERROR ? "error: " : "* ", text);
    plain_put_line(ctx, line);
}

static void put_sheet_line(void *ctx, const char *line)
{
    plain_put_line(ctx, line);
}

void plain_say_dropped(struct plain *p, const struct sheet *s)
{
    if (s != NULL && sheet_drop(s)[0] != '\0')
        talk_notice(p->talk, "%s", sheet_drop(s));
}

static void on_sheet(void *ctx, struct sheet *s)
{
    struct plain *p = ctx;

    plain_say_dropped(p, p->sheet);
    sheet_free(p->sheet);
    p->sheet = NULL;
    sheet_print(s, put_sheet_line, p);
    if (sheet_can_enter(s))
        p->sheet = s;
    else
        sheet_free(s);
}

static void on_user(void *ctx, const char *text, size_t n, const struct attached *a,
                    uint32_t id)
{
    struct plain *p = ctx;
    char line[200];

    (void)a;
    (void)id;
    if (p->tour != NULL) { /* nobody typed it */
        snprintf(line, sizeof line, "> %.*s", (int)n, text);
        plain_put_line(p, line);
    }
    p->quarter = 0;
    p->said_thinking = false;
    p->has_prompt = false;
    free(p->draft);
    p->draft = NULL;
}

static void on_begin(void *ctx, bool resume)
{
    struct plain *p = ctx;

    (void)resume;
    if (!p->at_line_start)
        putchar('\n');
    p->at_line_start = true;
    p->n_shown = 0;
    clean_start(&p->clean, CLEAN_TEXT);
}

/* A line that was printed cannot be changed: the same text is not printed again. */
static void on_take_back(void *ctx, const char *text, size_t n, bool is_thinking)
{
    struct plain *p = ctx;

    if (is_thinking || n > sizeof p->shown)
        return;
    memcpy(p->shown, text, n);
    p->n_shown = n;
}

/* Skip text that was printed before. */
static void skip_shown(struct plain *p, const char **text, size_t *n)
{
    size_t same = 0;

    while (same < *n && same < p->n_shown && (*text)[same] == p->shown[same])
        same++;
    *text += same;
    *n -= same;
    p->n_shown -= same;
    memmove(p->shown, p->shown + same, p->n_shown);
    if (*n > 0)
        p->n_shown = 0;
}

static void on_piece(void *ctx, const char *text, size_t n, bool is_thinking)
{
    struct plain *p = ctx;

    if (is_thinking) {
        if (!p->said_thinking)
            plain_put_line(p, "(thinking)");
        p->said_thinking = true;
        return;
    }
    skip_shown(p, &text, &n);
    clean_feed(&p->clean, text, n, sink, p);
    fflush(stdout);
}

/* A line that was printed cannot be changed. */
static void on_thought(void *ctx)
{
    struct plain *p = ctx;

    clean_end(&p->clean, sink, p);
    clean_start(&p->clean, CLEAN_TEXT);
    plain_put_line(p, "(the text until here was thinking)");
    p->said_thinking = true;
    p->n_shown = 0;
}

static void on_done(void *ctx, const struct mw_receipt *r, bool had_text, uint32_t id)
{
    struct plain *p = ctx;
    char line[300];

    (void)id;
    if (p->is_tty && talk_settings(p->talk)->options->ui.bell == UI_BELL_ALWAYS)
        putchar('\a');
    if (had_text)
        clean_end(&p->clean, sink, p);
    if (had_text && !talk_settings(p->talk)->options->quiet) {
        if (!p->at_line_start)
            putchar('\n');
        p->at_line_start = true;
        if (r == NULL)
            return;
        snprintf(line, sizeof line, "* ");
        receipt_line(line + 2, sizeof line - 2, r, !p->is_utf8);
        plain_put_line(p, line);
        if ((r->done == MW_DONE_CANCELLED || r->done == MW_DONE_LENGTH) &&
            !talk_is_compacting(p->talk) && talk_can_resume(p->talk))
            plain_put_line(p, "* " TALK_CONTINUE_HINT);
    }
}

static void on_context_full(void *ctx)
{
    struct plain *p = ctx;

    context_full_say(p->talk);
    context_full_offer(p->talk);
}

static void on_dropped(void *ctx, size_t n)
{
    (void)ctx;
    (void)n; /* a notice reports it */
}

static void on_rewound(void *ctx, size_t n)
{
    struct plain *p = ctx;
    char line[80];

    snprintf(line, sizeof line, "* %zu message%s left", n, n == 1 ? " is" : "s are");
    plain_put_line(p, line);
}

void plain_on_restored(void *ctx)
{
    struct plain *p = ctx;
    char line[80];

    snprintf(line, sizeof line, "* the conversation has %zu messages", talk_ledger(p->talk)->n);
    plain_put_line(p, line);
}

/* Report the progress of the prompt, a quarter at a time. */
static void on_changed(void *ctx)
{
    struct plain *p = ctx;
    struct talk_progress progress;
    unsigned quarter;
    char line[200];
    double share;

    if (!talk_progress(p->talk, &progress) || talk_settings(p->talk)->options->quiet ||
        progress.total < 256)
        return;
    quarter = (unsigned)(4 * progress.done / progress.total);
    if (quarter <= p->quarter)
        return;
    p->quarter = quarter;
    snprintf(line, sizeof line, "* ");
    receipt_prefill(line + 2, sizeof line - 2, progress.done, progress.total, progress.ns,
                    !p->is_utf8, &share);
    plain_put_line(p, line);
}

/* The line belongs to the terminal, so the text cannot be put into it.  An empty line sends it,
 * as Enter does on the screen. */
static void on_draft(void *ctx, const char *text)
{
    struct plain *p = ctx;
    char line[4300], clean[4200];
    bool is_short = strchr(text, '\n') == NULL;

    free(p->draft);
    p->draft = text[0] != '\0' ? strdup(text) : NULL;
    if (p->draft == NULL)
        return;
    clean_text(clean, sizeof clean, text, strlen(text));
    snprintf(line, sizeof line, "* taken back:%s%s", is_short ? " " : "\n", clean);
    plain_put_line(p, line);
    if (p->is_tty)
        plain_put_line(p, "* Enter sends it again; another message replaces it");
}

static char *on_text_of(void *ctx, size_t n)
{
    struct plain *p = ctx;

    return talk_saved_text(p->talk, n);
}

static int needs_screen(struct err *e)
{
    return err_set(e, ERR_UNSUPPORTED, "plain mode cannot do that; it needs the screen");
}

static int on_act(void *ctx, enum talk_action action, const char *arg, struct err *e)
{
    (void)ctx;
    (void)action;
    (void)arg;
    return needs_screen(e);
}

static void on_look(void *ctx, struct ui_options *out)
{
    const struct plain *p = ctx;

    *out = talk_settings(p->talk)->options->ui;
}

static int on_set_look(void *ctx, enum option_id what, const struct ui_options *look,
                       struct err *e)
{
    (void)ctx;
    (void)what;
    (void)look;
    return needs_screen(e);
}

static void on_quit(void *ctx)
{
    struct plain *p = ctx;

    p->is_leaving = true;
}

void plain_front(struct plain *p, struct talk_front *out)
{
    *out = (struct talk_front){
        .ctx = p,
        .is_person = p->is_tty,
        .say = on_say,
        .sheet = on_sheet,
        .user = on_user,
        .begin = on_begin,
        .take_back = on_take_back,
        .thought = on_thought,
        .piece = on_piece,
        .done = on_done,
        .context_full = on_context_full,
        .rewound = on_rewound,
        .dropped = on_dropped,
        .restored = plain_on_restored,
        .changed = on_changed,
        .draft = on_draft,
        .text_of = on_text_of,
        .act = on_act,
        .look = on_look,
        .set_look = on_set_look,
        .quit = on_quit,
    };
}
