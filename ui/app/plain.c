#include "config.h"

#include "ui/app/plain.h"

#include <sys/signalfd.h>

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "ui/app/tour.h"
#include "ui/talk/commands.h"
#include "ui/talk/context_full.h"
#include "ui/talk/talk.h"
#include "ui/term/keys.h"
#include "ui/text/sheet.h"
#include "ui/words/clean.h"
#include "ui/words/receipt.h"

#define LEAVE_NS ((uint64_t)2000 * 1000 * 1000)

struct plain {
    struct talk *talk;
    struct tour *tour; /* NULL: none, or it is over */
    int signal_fd;
    bool is_tty, is_utf8;
    bool at_end; /* of standard input */
    bool is_leaving, has_prompt, at_line_start;
    int status;
    uint64_t leave_ns;
    struct sheet *sheet; /* waits for an answer */
    char *draft;         /* a message that was taken back; NULL: none */
    char *typed;         /* bytes of standard input without the end of their message */
    size_t n_typed, room;
    struct clean clean;
    unsigned quarter; /* of the prompt that was reported last */
    bool said_thinking;
    char shown[512]; /* printed before, and the answer goes on with it or without it */
    size_t n_shown;
};

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

static void put_line(struct plain *p, const char *text)
{
    if (p->has_prompt || !p->at_line_start)
        putchar('\n');
    p->has_prompt = false;
    put(p, text, strlen(text));
    putchar('\n');
    p->at_line_start = true;
}

static void put_prompt(struct plain *p, const char *text)
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

/* ---- how the conversation is shown ---- */

static void on_say(void *ctx, enum talk_say kind, const char *text, uint32_t id)
{
    char line[4200];

    (void)id;
    snprintf(line, sizeof line, "%s%s", kind == SAY_ERROR ? "error: " : "* ", text);
    put_line(ctx, line);
}

static void put_sheet_line(void *ctx, const char *line)
{
    put_line(ctx, line);
}

/* Another line or sheet came instead of an answer. */
static void say_dropped(struct plain *p, const struct sheet *s)
{
    if (s != NULL && sheet_drop(s)[0] != '\0')
        talk_notice(p->talk, "%s", sheet_drop(s));
}

static void on_sheet(void *ctx, struct sheet *s)
{
    struct plain *p = ctx;

    say_dropped(p, p->sheet);
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
        put_line(p, line);
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
            put_line(p, "(thinking)");
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
    put_line(p, "(the text until here was thinking)");
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
        put_line(p, line);
        if ((r->done == MW_DONE_CANCELLED || r->done == MW_DONE_LENGTH) &&
            !talk_is_compacting(p->talk))
            put_line(p, "* " TALK_CONTINUE_HINT);
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
    put_line(p, line);
}

static void on_restored(void *ctx)
{
    struct plain *p = ctx;
    char line[80];

    snprintf(line, sizeof line, "* the conversation has %zu messages", talk_ledger(p->talk)->n);
    put_line(p, line);
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
    put_line(p, line);
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
    put_line(p, line);
    if (p->is_tty)
        put_line(p, "* Enter sends it again; another message replaces it");
}

/* An empty line sends the message that was taken back.  Returns whether there is one. */
static bool send_draft(struct plain *p)
{
    char *draft = p->draft;

    if (draft == NULL || !p->is_tty)
        return false;
    p->draft = NULL;
    talk_send(p->talk, draft);
    free(draft);
    return true;
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

/* ---- lines ---- */

/* Take the answer to a sheet: a number, yes or no.  Any other line is a message or a command.
 */
static void answer_sheet(struct plain *p, const char *line)
{
    struct sheet *s = p->sheet;
    uint64_t n;

    p->sheet = NULL;
    if (sheet_has_choice(s) && units_parse_whole(line, false, 1, INT32_MAX, &n))
        sheet_enter_row(s, (long)n - 1);
    else if (!sheet_has_choice(s) &&
             (strcasecmp(line, "y") == 0 || strcasecmp(line, "yes") == 0))
        sheet_enter(s);
    else if (line[0] == '\0' || strcasecmp(line, "n") == 0 || strcasecmp(line, "no") == 0) {
        put_line(p, "* nothing was changed");
    } else {
        say_dropped(p, s);
        command_enter(p->talk, line);
    }
    sheet_free(s);
}

static const char *prompt_of(const struct plain *p)
{
    if (p->sheet == NULL)
        return "> ";
    return sheet_has_choice(p->sheet) ? "number, or n for none: " : "apply? y or n: ";
}

/* Ctrl-C */
static void interrupt(struct plain *p)
{
    uint64_t now = clock_ns();

    if (talk_shell(p->talk) != NULL) {
        talk_shell_stop(p->talk);
    } else if (talk_is_answering(p->talk) && talk_state(p->talk) != TALK_STOPPING) {
        if (p->tour != NULL)
            tour_end(p->tour);
        talk_stop(p->talk);
        p->leave_ns = 0;
    } else if (now < p->leave_ns) {
        p->is_leaving = saving_may_leave(talk_saving(p->talk));
    } else {
        p->leave_ns = now + LEAVE_NS;
        put_line(p, "* Ctrl-C again or Ctrl-D quits");
    }
}

/* Keep the part of a typed unit that is text.  Bytes that are not UTF-8 may be the text of a
 * terminal with another character set. */
static size_t keep_text(char *to, const struct key *key)
{
    bool is_shown = (key->ch >= 0x20 && key->ch != 0x7f) || key->ch == '\t' || key->ch == '\n';
    bool is_text = key->kind == KEYS_PASTE ||
                   (key->kind == KEYS_CHAR && key->mods == 0 && is_shown) ||
                   (key->kind == KEYS_UNKNOWN && key->raw[0] >= 0xa0);

    if (is_text)
        memcpy(to, key->bytes, key->n);
    return is_text ? key->n : 0;
}

/* The terminal edits the line, and leaves the sequences of other keys in it: drop them.  In the
 * mode of an earlier program, Ctrl-C may be one of them.  Returns whether it was typed. */
static bool drop_sequences(char *line)
{
    struct keys *keys = keys_new();
    size_t n = strlen(line), from = 0, to = 0;
    bool interrupts = false;
    struct key key;

    if (keys == NULL)
        return false;
    while (from < n) {
        size_t room = keys_room(keys), piece = n - from < room ? n - from : room;

        keys_feed(keys, (const unsigned char *)line + from, piece, 0);
        from += piece;
        while (keys_next(keys, from < n ? 0 : KEYS_PASTE_NS, &key)) {
            interrupts |= key.kind == KEYS_CHAR && key.ch == 'C' - 64;
            to += keep_text(line + to, &key);
        }
    }
    line[to] = '\0';
    keys_free(keys);
    return interrupts;
}

/* As on the screen, "exit" stays until an empty line sends it.  Programs mean what they send.
 */
static bool asks_to_leave(struct plain *p, const char *line)
{
    char text[100];

    if (!p->is_tty || !command_means_to_leave(line))
        return false;
    free(p->draft);
    p->draft = strdup(line);
    snprintf(text, sizeof text, "* /quit or Ctrl-D leaves; Enter sends \"%s\" to the model",
             line);
    put_line(p, text);
    return true;
}

static void take_line(struct plain *p, char *line)
{
    size_t n = strlen(line);

    if (n > 0 && line[n - 1] == '\r')
        line[n - 1] = '\0';
    p->has_prompt = false;
    if (p->is_tty && drop_sequences(line)) {
        interrupt(p);
        return;
    }
    p->leave_ns = 0;
    if (p->tour != NULL && line[0] == '\0') {
        tour_next(p->tour);
        return;
    }
    if (p->tour != NULL)
        tour_end(p->tour);
    if (p->sheet != NULL)
        answer_sheet(p, line);
    else if (asks_to_leave(p, line))
        return;
    else if (line[0] != '\0' || !send_draft(p))
        command_enter(p->talk, line);
}

/* Returns the bytes up to the newline that ends the first message: none that follows a
 * backslash, unless it is the last byte of all.  -1: it is not complete. */
static ptrdiff_t first_end(const struct plain *p)
{
    for (size_t i = 0; i < p->n_typed; i++)
        if (p->typed[i] == '\n' &&
            (i == 0 || p->typed[i - 1] != '\\' || (p->at_end && i + 1 == p->n_typed)))
            return (ptrdiff_t)i;
    return -1;
}

/* Remove the backslashes before newlines, and before the end. */
static void join_lines(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; from++)
        if (*from != '\\' || (from[1] != '\n' && from[1] != '\0'))
            *to++ = *from;
    *to = '\0';
}

/* Take the first complete message: a line, and the lines after a backslash at its end. */
static bool take_typed(struct plain *p)
{
    ptrdiff_t end = first_end(p);
    size_t n = (size_t)end;
    char *line;

    if (end < 0)
        return false;
    line = strndup(p->typed, n);
    memmove(p->typed, p->typed + n + 1, p->n_typed - n - 1);
    p->n_typed -= n + 1;
    if (line != NULL) {
        join_lines(line);
        take_line(p, line);
    }
    free(line);
    return true;
}

static void read_lines(struct plain *p)
{
    ssize_t n;

    if (p->room - p->n_typed < 4096) {
        char *more = realloc(p->typed, p->room + 65536);

        if (more == NULL) {
            p->is_leaving = true;
            return;
        }
        p->typed = more;
        p->room += 65536;
    }
    n = read(STDIN_FILENO, p->typed + p->n_typed, 4095);
    if (n < 0 && errno == EINTR)
        return;
    if (n > 0) {
        p->n_typed += (size_t)n;
        return;
    }
    p->at_end = true;
    if (p->n_typed > 0)
        p->typed[p->n_typed++] = '\n';
}

/* ---- the loop ---- */

static void on_signal(struct plain *p)
{
    struct signalfd_siginfo info;

    if (read(p->signal_fd, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    if (info.ssi_signo != SIGINT) {
        p->status = 128 + (int)info.ssi_signo;
        p->is_leaving = true;
    } else {
        interrupt(p);
    }
}

static bool is_idle(const struct plain *p)
{
    return talk_state(p->talk) == TALK_READY || talk_state(p->talk) == TALK_FAILED;
}

/* In a pipe the tour is all there is. */
static void begin_tour(struct plain *p)
{
    bool is_seen = isatty(STDOUT_FILENO) == 1;

    p->tour = tour_new(p->talk, is_seen);
    p->at_end = !is_seen;
    if (p->is_tty && is_seen)
        put_line(p, "* Enter goes on to the next step of the tour; a message ends it");
}

static void take_tour(struct plain *p)
{
    if (p->tour == NULL)
        return;
    tour_tick(p->tour);
    if (!tour_is_over(p->tour))
        return;
    tour_free(p->tour);
    p->tour = NULL;
}

/* Piped messages get their answers first, if there is a model.  A person does not wait for an
 * answer that ends. */
static bool is_over(const struct plain *p)
{
    enum talk_state state = talk_state(p->talk);
    char changes[200];

    if (!p->at_end || p->n_typed > 0 || p->tour != NULL ||
        talk_pending(p->talk, changes, sizeof changes)[0] != '\0')
        return false;
    return state == TALK_FAILED ||
           (talk_outbox(p->talk)->n_queue == 0 &&
            (state == TALK_READY || (p->is_tty && state == TALK_STOPPING)));
}

/* Without a model, messages in a pipe have no answers. */
static void report_failed(struct plain *p)
{
    size_t n = talk_outbox(p->talk)->n_queue;
    char line[120];

    if (talk_state(p->talk) != TALK_FAILED)
        return;
    p->status = 1;
    snprintf(line, sizeof line, "error: the model is not loaded, so %zu message%s not answered",
             n, n == 1 ? " is" : "s are");
    if (n > 0)
        put_line(p, line);
}

/* Returns the milliseconds until something is due, -1 for never. */
static int wait_ms(const struct plain *p)
{
    uint64_t wait = talk_wait(p->talk);

    if (p->tour != NULL && tour_wait(p->tour) < wait)
        wait = tour_wait(p->tour);
    return wait == UINT64_MAX ? -1 : (int)(wait / 1000000 + 1);
}

static int loop(struct plain *p, struct err *e)
{
    while (!p->is_leaving) {
        /* Piped lines are read when the engine is free; a person may type ahead. */
        bool reads = !p->at_end && (p->is_tty || is_idle(p));
        struct pollfd fds[] = { { p->signal_fd, POLLIN, 0 },
                                { talk_fd(p->talk), POLLIN, 0 },
                                { reads ? STDIN_FILENO : -1, POLLIN, 0 },
                                { talk_shell_fd(p->talk), POLLIN, 0 } };

        while (!p->is_leaving && (p->is_tty || is_idle(p)) && take_typed(p))
            ;
        if (p->is_leaving)
            break;
        if (is_over(p)) {
            report_failed(p);
            break;
        }
        if (is_idle(p) && p->tour == NULL)
            put_prompt(p, prompt_of(p));
        fflush(stdout);
        fds[1].fd = talk_fd(p->talk);
        fds[3].fd = talk_shell_fd(p->talk);
        if (poll(fds, 4, wait_ms(p)) < 0 && errno != EINTR)
            return err_sys(e, "cannot wait for lines");
        if (fds[0].revents != 0)
            on_signal(p);
        if (fds[1].revents != 0)
            talk_pump(p->talk);
        if (fds[2].revents != 0)
            read_lines(p);
        if (fds[3].revents != 0)
            talk_shell_pump(p->talk);
        talk_tick(p->talk);
        take_tour(p);
    }
    return p->status;
}

static int open_all(struct plain *p, const struct ui_chat_options *o, sigset_t *before,
                    struct err *e)
{
    struct talk_front front;
    sigset_t set;

    setlocale(LC_CTYPE, "");
    p->is_utf8 = strcasecmp(nl_langinfo(CODESET), "UTF-8") == 0 || o->options->ui.utf8;
    p->is_utf8 = p->is_utf8 && !o->options->ui.ascii;
    p->is_tty = isatty(STDIN_FILENO) == 1;
    p->at_line_start = true;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, before);
    signal(SIGPIPE, SIG_IGN);
    p->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (p->signal_fd < 0)
        return err_sys(e, "cannot make a descriptor for signals");
    front = (struct talk_front){
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
        .restored = on_restored,
        .changed = on_changed,
        .draft = on_draft,
        .text_of = on_text_of,
        .act = on_act,
        .look = on_look,
        .set_look = on_set_look,
        .quit = on_quit,
    };
    return talk_open(&p->talk, o, &front, e);
}

int plain_chat(const struct ui_chat_options *o, struct err *e)
{
    struct plain p = { .signal_fd = -1 };
    char path[4096] = "", resume[4900];
    struct err unsaved = ERR_INIT;
    sigset_t before;
    int rc;

    sigemptyset(&before);
    rc = open_all(&p, o, &before, e);
    if (rc == 0) {
        if (o->options->open_chat != NULL)
            on_restored(&p);
        if (p.is_tty && !o->options->quiet)
            put_line(&p, "* memwall in plain mode; /help lists the commands");
        talk_greet(p.talk);
        if (o->first != NULL)
            talk_send(p.talk, o->first);
        if (o->tour)
            begin_tour(&p);
        rc = loop(&p, e);
        if (p.has_prompt)
            putchar('\n');
        if (saving_finish(talk_saving(p.talk), path, sizeof path, &unsaved) != 0) {
            path[0] = '\0';
            if (rc >= 0) {
                *e = unsaved;
                rc = -1;
            }
        }
        if (path[0] != '\0')
            saving_resume(talk_saving(p.talk), path, &talk_options(p.talk)->engine, resume,
                          sizeof resume);
        sheet_free(p.sheet); /* it may return a message to the line */
        p.sheet = NULL;
        talk_close(p.talk);
        if (path[0] != '\0' && !o->options->quiet)
            printf("* the chat is saved in %s; %s resumes it\n", path, resume);
        fflush(stdout);
    }
    sheet_free(p.sheet);
    tour_free(p.tour);
    free(p.draft);
    free(p.typed);
    if (p.signal_fd >= 0)
        close(p.signal_fd);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}
