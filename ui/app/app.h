/*
 * app.h - the screen: one loop, what it draws, what keys do.  Between the app_*.c files.
 *
 *     app.c       opening, the loop, frames, signals, ui_chat
 *     app_front.c what the conversation wants shown (struct talk_front)
 *     app_keys.c  keys
 *     app_mouse.c the mouse
 *     app_draw.c  the panes
 */
#ifndef MEMWALL_UI_APP_APP_H
#define MEMWALL_UI_APP_APP_H

#include <stdbool.h>
#include <stdint.h>

#include "ui/app/layout.h"
#include "ui/talk/talk.h"
#include "ui/term/edit.h"
#include "ui/term/history.h"
#include "ui/term/input.h"
#include "ui/term/keys.h"
#include "ui/term/term.h"
#include "ui/text/sheet.h"
#include "ui/text/transcript.h"

/* What must be drawn again. */
enum app_dirt {
    DIRT_CHAT = 1,
    DIRT_DASH = 2,
    DIRT_INPUT = 4,
    DIRT_STATUS = 8,
    DIRT_ALL = 15,
    DIRT_LARGE = 16, /* and many lines of it */
};

struct app {
    struct talk *talk;
    struct term *term;
    struct keys *keys;
    struct history *history;
    struct transcript *transcript;
    size_t n_older; /* messages before the first that the transcript has */
    struct dash *dash;
    struct sheet *sheet; /* NULL: none is open */
    struct theme theme;

    struct layout layout;
    enum ui_view view;
    int permille;  /* the dashboard's share; 0: the layout chooses */
    unsigned dirt; /* enum app_dirt */
    bool is_leaving, has_edit, needs_plain;
    int status; /* of ui_chat */
    bool has_focus, mouse;

    struct mw_sample sample;
    uint64_t sample_ns, frame_ns; /* when the last was taken, shown */

    /* ---- modes of the keys ---- */
    bool in_dash;    /* Tab: keys go to the dashboard */
    bool is_finding; /* "/": the search is being typed */
    char find[128];
    bool is_picking; /* F9: a turn is being picked */
    bool is_dragging_divider, is_selecting;
    uint64_t leave_ns; /* Ctrl-C on an empty line: until then a second one leaves */
    char hint[256];    /* said in the rule until the next key */
    uint64_t cost_ns;  /* when what is typed is to be priced; 0: not */
    char cost[160];    /* what sending it would cost; "": not known */
    struct {
        int y, x, count;
        uint64_t at_ns;
    } click;

    /* ---- measured ---- */
    uint64_t key_ns; /* when the key came that is not on the screen yet; 0: none */
    uint32_t n_key;
    size_t n_ahead;         /* bytes that were typed before the screen was there */
    uint32_t late_us[4096]; /* the last ones: from key to screen */
};

/* app_front.c */
struct talk_front app_front(struct app *a);
void app_show_saved(struct app *a); /* the chat that was opened */
bool app_load(void *ctx, uint32_t id, struct transcript_text *out);
/* Give text (which is freed; NULL: none) to the clipboard; what names it. */
void app_copy(struct app *a, char *text, size_t n, const char *what);
void app_copy_part(struct app *a, bool code);

/* app_keys.c */
void app_key(struct app *a, const struct key *key);
void app_stop_or_leave(struct app *a); /* what Ctrl-C does */
void app_set_view(struct app *a, enum ui_view view);
void app_set_mouse(struct app *a, bool on);
void app_pick_turn(struct app *a); /* begin to pick an earlier message */
/* app_mouse.c */
void app_mouse(struct app *a, const struct key *key);

/* app_draw.c */
struct input_line app_typed(const struct app *a); /* what the input line shows */
void app_layout(struct app *a);
void app_draw(struct app *a, int *cursor_y, int *cursor_x);

/* app.c */
void app_dirty(struct app *a, unsigned dirt);
void app_hint(struct app *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void app_run_editor(struct app *a);

#endif
