/* What the conversation wants shown, on the screen. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "ui/app.h"

static void on_say(void *ctx, enum talk_say kind, const char *text)
{
    struct app *a = ctx;

    transcript_add(a->transcript, kind == SAY_ERROR ? TRANSCRIPT_ERROR : TRANSCRIPT_NOTICE,
                   text, strlen(text), TRANSCRIPT_NO_ID);
    app_dirty(a, DIRT_CHAT);
}

static void on_sheet(void *ctx, struct sheet *s)
{
    struct app *a = ctx;

    sheet_free(a->sheet);
    a->sheet = s;
    a->in_dash = false;
    app_dirty(a, DIRT_ALL | DIRT_LARGE);
}

static void on_user(void *ctx, const char *text, size_t n, uint32_t id)
{
    struct app *a = ctx;

    transcript_add(a->transcript, TRANSCRIPT_USER, text, n, id);
    transcript_end(a->transcript);
    app_dirty(a, DIRT_CHAT);
}

static void on_begin(void *ctx, bool resume)
{
    struct app *a = ctx;

    transcript_set_status(a->transcript, NULL, -1);
    transcript_begin(a->transcript, resume);
    app_dirty(a, DIRT_CHAT);
}

static void on_piece(void *ctx, const char *text, size_t n, bool is_thinking)
{
    struct app *a = ctx;

    transcript_append(a->transcript, text, n, is_thinking);
    app_dirty(a, DIRT_CHAT);
}

static void on_done(void *ctx, const struct mw_receipt *r, bool had_text, uint32_t id)
{
    struct app *a = ctx;

    transcript_set_status(a->transcript, NULL, -1);
    if (had_text)
        transcript_done(a->transcript, r);
    if (had_text && id != TRANSCRIPT_NO_ID)
        transcript_saved(a->transcript, id);
    app_dirty(a, DIRT_CHAT);
}

static void on_rewound(void *ctx, size_t n)
{
    struct app *a = ctx;

    transcript_rewind(a->transcript, n);
    app_dirty(a, DIRT_CHAT);
}

static void on_restored(void *ctx)
{
    struct app *a = ctx;

    transcript_clear(a->transcript);
    app_dirty(a, DIRT_ALL);
}

static void on_changed(void *ctx)
{
    app_dirty(ctx, DIRT_STATUS | DIRT_INPUT);
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
    app_dirty(a, DIRT_INPUT);
}

static void on_quit(void *ctx)
{
    struct app *a = ctx;

    a->is_leaving = true;
}

static int on_act(void *ctx, enum talk_act act, const char *arg, struct err *e)
{
    (void)ctx;
    (void)act;
    (void)arg;
    return err_set(e, ERR_UNSUPPORTED, "not here");
}

void app_front(struct app *a)
{
    a->talk.front = (struct talk_front){
        .ctx = a,
        .say = on_say,
        .sheet = on_sheet,
        .user = on_user,
        .begin = on_begin,
        .piece = on_piece,
        .done = on_done,
        .rewound = on_rewound,
        .restored = on_restored,
        .changed = on_changed,
        .draft = on_draft,
        .act = on_act,
        .quit = on_quit,
    };
}
