/* How the conversation is shown on the screen. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/app/app.h"
#include "ui/dash/state.h"
#include "ui/store/store.h"
#include "ui/talk/context_full.h"
#include "ui/text/copy.h"
#include "ui/words/clean.h"

#define ECHO_MARGIN 4    /* columns of a row of the chat that a notice leaves free */
#define SHOWN_ITEMS 4096 /* of a saved chat; older ones are only in the file */

/* Name the command before its reply, in the same row if both fit.  Replies that name it
 * themselves need nothing.  buf is for the joined text, which is returned. */
static const char *add_echo(struct app *a, const char *text, char *buf, size_t n)
{
    size_t word = strcspn(a->echo, " ");
    char name[64];

    snprintf(name, sizeof name, "%.*s", (int)word, a->echo);
    if (strstr(text, name) != NULL)
        return text;
    snprintf(buf, n, "%s %s %s", a->echo, term_is_ascii(a->term) ? "-" : "\u00b7", text);
    if (strchr(text, '\n') == NULL &&
        cluster_width(buf, strlen(buf)) + ECHO_MARGIN <= a->layout.chat.width)
        return buf;
    transcript_add(a->transcript, TRANSCRIPT_NOTICE, a->echo, strlen(a->echo),
                   TRANSCRIPT_NO_ID);
    a->n_mistake++;
    return text;
}

/* The error of a mistyped command goes when the next line has been entered: ten of them would
 * fill the screen. */
static void forget_mistake(struct app *a)
{
    if (a->n_mistake > 0)
        transcript_drop_last(a->transcript, a->n_mistake);
    a->n_mistake = 0;
}

static void on_say(void *ctx, enum talk_say kind, const char *text, uint32_t id)
{
    struct app *a = ctx;
    bool is_reply = a->echo[0] != '\0' && id == TRANSCRIPT_NO_ID;
    char both[4400];

    if (is_reply)
        forget_mistake(a);
    a->n_mistake = 0;
    if (is_reply) {
        text = add_echo(a, text, both, sizeof both);
        transcript_end(a->transcript); /* who asks reads the reply */
    }
    a->echo[0] = '\0';
    transcript_add(a->transcript, kind == SAY_ERROR ? TRANSCRIPT_ERROR : TRANSCRIPT_NOTICE,
                   text, strlen(text), id);
    a->n_mistake = is_reply && kind == SAY_ERROR ? a->n_mistake + 1 : 0;
    app_dirty(a, DIRT_CHAT);
}

static void on_sheet(void *ctx, struct sheet *s)
{
    app_open_sheet(ctx, s);
}

static void on_user(void *ctx, const char *text, size_t n, const struct attached *files,
                    uint32_t id)
{
    struct app *a = ctx;
    size_t n_file = files->bytes;

    forget_mistake(a);
    if (a->dash != NULL)
        dash_set_cap(a->dash, talk_answer_limit(a->talk)); /* a summary has another one */
    if (id != TRANSCRIPT_NO_ID && transcript_messages(a->transcript) >= 2 * SHOWN_ITEMS) {
        app_show_saved(a); /* with this message */
        return;
    }
    if (transcript_add(a->transcript, TRANSCRIPT_USER, text + n_file, n - n_file, id) &&
        n_file > 0)
        transcript_attach(a->transcript, files->label, text, n_file);
    transcript_end(a->transcript);
    app_dirty(a, DIRT_CHAT);
}

static void on_begin(void *ctx, bool resume)
{
    struct app *a = ctx;

    a->echo[0] = '\0'; /* the command is over */
    transcript_set_status(a->transcript, NULL, -1);
    transcript_begin(a->transcript, resume);
    app_dirty(a, DIRT_CHAT);
}

static void on_take_back(void *ctx, const char *text, size_t n, bool is_thinking)
{
    struct app *a = ctx;

    (void)text;
    transcript_take_back(a->transcript, n, is_thinking);
}

static void on_piece(void *ctx, const char *text, size_t n, bool is_thinking)
{
    struct app *a = ctx;

    transcript_append(a->transcript, text, n, is_thinking);
    app_dirty(a, DIRT_CHAT);
}

static void on_thought(void *ctx)
{
    struct app *a = ctx;

    transcript_thought(a->transcript);
    app_dirty(a, DIRT_CHAT);
}

static void on_done(void *ctx, const struct mw_receipt *r, bool had_text, uint32_t id)
{
    struct app *a = ctx;

    transcript_set_status(a->transcript, NULL, -1);
    if (r != NULL) /* nobody waits for an answer from the help */
        app_announce(a, r);
    if (had_text)
        transcript_done(a->transcript, r);
    if (had_text && id != TRANSCRIPT_NO_ID)
        transcript_saved(a->transcript, id);
    app_dirty(a, DIRT_CHAT);
}

static void on_context_full(void *ctx)
{
    struct app *a = ctx;

    context_full_say(a->talk);
    /* Nobody asked for this sheet, so it does not come between the keys of a line. */
    if (a->mode == MODE_LINE && edit_is_empty() && !edit_is_searching())
        context_full_offer(a->talk);
}

static void on_rewound(void *ctx, size_t n)
{
    struct app *a = ctx;

    if (a->n_older > 0 && n <= a->n_older)
        app_show_saved(a); /* the messages before are not in the transcript */
    else
        transcript_rewind(a->transcript, n);
    app_dirty(a, DIRT_CHAT);
}

static void on_dropped(void *ctx, size_t n)
{
    struct app *a = ctx;

    transcript_set_unseen(a->transcript, n);
    app_dirty(a, DIRT_CHAT);
}

static enum transcript_kind kind_of(const struct store_item *item)
{
    switch (item->kind) {
    case STORE_SYSTEM: return item->text_bytes > 0 ? TRANSCRIPT_SYSTEM : TRANSCRIPT_NOTICE;
    case STORE_USER: return TRANSCRIPT_USER;
    case STORE_ANSWER: return TRANSCRIPT_ANSWER;
    case STORE_NOTICE: break;
    }
    return TRANSCRIPT_NOTICE;
}

/* Say where the messages are that the transcript does not show. */
static void show_older(struct app *a)
{
    const char *path = saving_path(talk_saving(a->talk));
    char text[4300], line[4300];

    snprintf(text, sizeof text, "%zu older messages are %s%s; /export FILE writes all of them",
             a->n_older, path[0] != '\0' ? "in " : "not shown", path);
    clean_line(line, sizeof line, text, strlen(text));
    transcript_add(a->transcript, TRANSCRIPT_NOTICE, line, strlen(line), TRANSCRIPT_NO_ID);
}

void app_show_saved(struct app *a)
{
    struct store *store = talk_saving(a->talk)->store;
    uint32_t count = store == NULL ? 0 : store_count(store), n_message = 0;
    uint32_t from = count > SHOWN_ITEMS ? count - SHOWN_ITEMS : 0;

    for (uint32_t i = from; i < count; i++) {
        enum store_kind kind = store_item(store, i)->kind;

        n_message += kind == STORE_USER || kind == STORE_ANSWER;
    }
    a->n_older = store == NULL ? 0 : store_messages(store) - n_message;
    transcript_clear(a->transcript);
    transcript_set_older(a->transcript, a->n_older);
    if (from > 0)
        show_older(a);
    for (uint32_t i = from; i < count; i++) {
        const struct store_item *item = store_item(store, i);

        transcript_add_saved(a->transcript, kind_of(item), i,
                             item->has_receipt ? &item->receipt : NULL);
    }
    transcript_set_unseen(a->transcript, talk_ledger(a->talk)->n_dropped);
    transcript_end(a->transcript);
    app_dirty(a, DIRT_ALL | DIRT_LARGE);
}

static void on_restored(void *ctx)
{
    app_show_saved(ctx);
}

/* Shown of one message; the rest of its text is in the file. */
#define SHOWN_BYTES ((size_t)1 << 20)

static void say_left(const struct app *a, struct store_text *text)
{
    char line[4300];
    int n =
        snprintf(line, sizeof line, "\n\n(%llu more bytes of this message are in %.4000s)\n",
                 (unsigned long long)text->n_left, saving_path(talk_saving(a->talk)));
    char *more = realloc(text->text, text->len + (size_t)n + 1);

    if (more == NULL)
        return;
    memcpy(more + text->len, line, (size_t)n + 1);
    text->text = more;
    text->len += (size_t)n;
}

/* A system message without text removed the one before. */
static void say_removed(struct store_text *text)
{
    char *more = strdup(STORE_NO_SYSTEM);

    if (more == NULL)
        return;
    free(text->text);
    text->text = more;
    text->len = strlen(more);
}

/* Move the files at the start of a message to the part that is folded. */
static void unfold(const struct attached *a, struct transcript_text *out)
{
    char *files = malloc((size_t)a->bytes + 1);

    if (files == NULL)
        return;
    memcpy(files, out->text, a->bytes);
    files[a->bytes] = '\0';
    clean_line(out->label, sizeof out->label, a->label, strlen(a->label));
    free(out->thinking);
    out->thinking = files;
    out->thinking_len = a->bytes;
    out->len -= a->bytes;
    memmove(out->text, out->text + a->bytes, out->len + 1);
}

bool app_load(void *ctx, uint32_t id, struct transcript_text *out)
{
    struct app *a = ctx;
    struct store *store = talk_saving(a->talk)->store;
    struct err ignored = ERR_INIT;
    struct store_text text;

    if (store == NULL || store_text_start(store, id, SHOWN_BYTES, &text, &ignored) != 0)
        return false;
    if (text.n_left > 0)
        say_left(a, &text);
    if (text.len == 0 && store_item(store, id)->kind == STORE_SYSTEM)
        say_removed(&text);
    *out = (struct transcript_text){ .text = text.text,
                                     .thinking = text.thinking,
                                     .len = text.len,
                                     .thinking_len = text.thinking_len };
    if (text.attached.bytes > 0)
        unfold(&text.attached, out);
    return true;
}

static void on_changed(void *ctx)
{
    struct app *a = ctx;

    if (!talk_is_answering(a->talk) && a->dash != NULL) {
        a->sample_ns = 0; /* show the result at once */
        dash_set_cap(a->dash, talk_answer_limit(a->talk));
    }
    app_dirty(a, DIRT_STATUS | DIRT_INPUT | DIRT_CHAT);
}

static void on_draft(void *ctx, const char *text)
{
    struct app *a = ctx;

    if (edit_is_empty()) {
        edit_set(text);
    } else {
        size_t n = strlen(text), old = strlen(edit_text());
        char *both = malloc(n + old + 2);

        if (both != NULL) {
            memcpy(both, text, n);
            both[n] = '\n';
            memcpy(both + n + 1, edit_text(), old + 1);
            edit_set(both);
            free(both);
        }
    }
    app_price(a);
}

static void on_quit(void *ctx)
{
    struct app *a = ctx;

    a->is_leaving = true;
}

/* The text comes from the saved copy, or from the transcript if there is none. */
static char *on_text_of(void *ctx, size_t n)
{
    struct app *a = ctx;
    char *text = talk_saved_text(a->talk, n);
    size_t len;

    while (text == NULL && transcript_turn(a->transcript, -1))
        if (transcript_turn_keep(a->transcript) == (long)n)
            text = transcript_turn_text(a->transcript, &len);
    transcript_turn_end(a->transcript);
    return text;
}

/* ---- actions that only a screen can do ---- */

static int set_theme(struct app *a, const char *name, struct err *e)
{
    if (term_set_theme(a->term, name, e) != 0)
        return -1;
    app_dirty(a, DIRT_ALL | DIRT_LARGE);
    return 0;
}

/* A key replies with a hint in the rule; the reply of a command goes into the chat. */
static void reply(struct app *a)
{
    char text[sizeof a->hint];

    memcpy(text, a->hint, sizeof text);
    a->hint[0] = '\0';
    talk_notice(a->talk, "%s", text);
}

static void on_look(void *ctx, struct ui_options *out)
{
    const struct app *a = ctx;

    *out = a->ui;
    out->theme = term_theme(a->term);
    out->split_percent = a->permille / 10;
}

static int on_set_look(void *ctx, enum option_id what, const struct ui_options *look,
                       struct err *e)
{
    struct app *a = ctx;

    switch (what) {
    case OPT_THEME: return set_theme(a, look->theme, e);
    case OPT_VIEW: app_set_view(a, look->view); break;
    case OPT_NO_MOUSE:
        app_set_mouse(a, !look->no_mouse);
        reply(a);
        break;
    case OPT_REFRESH: a->ui.refresh_ms = look->refresh_ms; break;
    case OPT_BELL: a->ui.bell = look->bell; break;
    case OPT_NOTIFY: a->ui.notify = look->notify; break;
    case OPT_KEYS:
        a->ui.keys = look->keys;
        app_dirty(a, DIRT_INPUT);
        break;
    case OPT_TITLE:
        a->ui.title = look->title;
        a->title_ns = 0;
        app_title(a);
        break;
    case OPT_SPLIT:
        a->permille = look->split_percent * 10;
        app_set_view(a, a->ui.view);
        break;
    default: break;
    }
    return 0;
}

void app_copy(struct app *a, char *text, size_t n, const char *what)
{
    const char *name = getenv("TERM");
    struct err e = ERR_INIT;
    char path[4200];
    size_t len;
    char *bytes;

    if (text == NULL) {
        app_hint(a, "there is nothing to copy");
        return;
    }
    snprintf(path, sizeof path, "%s/copied.txt", talk_settings(a->talk)->paths.state_dir);
    switch (
        copy_choose(n, getenv("TMUX") != NULL, name != NULL && strcmp(name, "linux") == 0)) {
    case COPY_OSC52:
        bytes = copy_osc52(text, n, &len);
        if (bytes != NULL)
            term_send(a->term, bytes, len);
        free(bytes);
        /* Not every terminal accepts it, and none reports whether it does. */
        if (copy_file(path, text, n, &e) == 0)
            app_hint(a, "%s: sent to the terminal, and in %s", what, path);
        else
            app_hint(a, "%s: sent to the terminal", what);
        break;
    case COPY_TMUX:
        if (copy_tmux(text, n, &e) == 0)
            app_hint(a, "%s: copied to tmux", what);
        else
            app_hint(a, "%s", e.what);
        break;
    case COPY_FILE:
        if (copy_file(path, text, n, &e) == 0)
            app_hint(a, "%s: in %s", what, path);
        else
            app_hint(a, "%s", e.what);
        break;
    }
    free(text);
}

void app_copy_part(struct app *a, bool code)
{
    char which[64] = "the answer";
    size_t n = 0;
    char *text = code ? transcript_copy_code(a->transcript, &n, which, sizeof which)
                      : transcript_copy_answer(a->transcript, &n);

    if (text == NULL && code)
        app_hint(a, "there is no code block to copy");
    else
        app_copy(a, text, n, which);
}

static int on_act(void *ctx, enum talk_action action, const char *arg, struct err *e)
{
    struct app *a = ctx;

    switch (action) {
    case ACTION_COPY:
        app_copy_part(a, strcmp(arg, "code") == 0);
        reply(a);
        return 0;
    case ACTION_PICK_TURN: app_pick_turn(a); return 0;
    case ACTION_PICK_MODEL: return app_pick_model(a, e);
    case ACTION_FIND: app_find(a, arg); return 0;
    }
    return 0;
}

struct talk_front app_front(struct app *a)
{
    return (struct talk_front){
        .ctx = a,
        .is_person = true,
        .has_screen = true,
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
}
