/*
 * app.h - the screen: one loop, the panes it draws, and the keys it takes.
 *
 *     app.c       opening, the loop, frames, signals, ui_chat
 *     app_front.c how the conversation is shown (struct talk_front)
 *     app_keys.c  keys
 *     app_find.c  searching the chat
 *     app_mouse.c the mouse
 *     app_draw.c  the panes
 *     app_models.c  the list of models
 *     app_window.c  the window around the screen: title, bell, messages of the desktop
 *     app_panels.c  the panels of the dashboard, as the user arranges them
 *     app_wall.c    the wall: its points are predicted between frames; its cursor
 */
#ifndef MEMWALL_UI_APP_APP_H
#define MEMWALL_UI_APP_APP_H

#include <stdbool.h>
#include <stdint.h>

#include "ui/app/latency.h"
#include "ui/app/layout.h"
#include "ui/app/tour.h"
#include "ui/pick/pick.h"
#include "ui/talk/talk.h"
#include "ui/term/edit.h"
#include "ui/term/history.h"
#include "ui/term/input.h"
#include "ui/term/keys.h"
#include "ui/term/term.h"
#include "ui/text/sheet.h"
#include "ui/text/transcript.h"

/* Parts of the screen to draw again. */
enum app_dirt {
    DIRT_CHAT = 1,
    DIRT_DASH = 2,
    DIRT_INPUT = 4,
    DIRT_STATUS = 8,
    DIRT_ALL = 15,
    DIRT_LARGE = 16, /* and many lines of them */
};

/*
 * Where keys go.
 *
 *     LINE ── Ctrl-F, /find ──────────> FIND  ── Enter, Esc, Ctrl-C ────> LINE
 *     LINE ── Tab on an empty line ───> DASH  ── Tab, Esc, other keys ──> LINE
 *     any ─── F9, /rewind ────────────> PICK  ── Enter, Esc, other keys > LINE
 *     any ─── a command opens one ────> SHEET ── Enter, Esc, q ─────────> LINE
 *     any ─── /model ─────────────────> MODELS ─ Enter, Esc, q ─────────> LINE
 *
 * Only app_enter changes the mode.
 */
enum app_mode {
    MODE_LINE,   /* the input line */
    MODE_DASH,   /* the dashboard: its layers and its panels */
    MODE_FIND,   /* the text to search for in the chat */
    MODE_PICK,   /* the choice of an earlier message */
    MODE_SHEET,  /* the sheet that covers the panes */
    MODE_MODELS, /* the list of models */
};

/* The object that the pressed mouse button drags; independent of the mode of the keys. */
enum app_drag { DRAG_NOTHING, DRAG_DIVIDER, DRAG_SELECTION, DRAG_PANEL, DRAG_EDGE };

/* Everything that the points of the wall depend on. */
struct app_wall_inputs {
    uint32_t engine; /* talk_engine() */
    struct mw_tried settings;
    uint64_t row[MW_PLAN_ROWS]; /* of the plan: other options, such as drafts, move memory */
    double token_s, anchor_s, disk, memory, n_seen, tried_tps;
    size_t n_tried;
    bool is_measured;
};

struct app {
    struct talk *talk;
    struct term *term;
    struct keys *keys;
    struct history *history;
    struct transcript *transcript;
    size_t n_older; /* messages before the first in the transcript */
    struct dash *dash;
    struct ui_options ui; /* but for theme, which the terminal has, and split, below */

    struct layout layout;
    int permille;  /* the dashboard's share; 0: the layout chooses */
    unsigned dirt; /* enum app_dirt */
    bool has_edit, has_focus;
    bool is_leaving;
    int status; /* that ui_chat returns */

    struct mw_sample sample;
    uint64_t sample_ns, frame_ns; /* when the last one was taken, drawn */

    enum app_mode mode;
    struct sheet *sheet; /* in MODE_SHEET, else NULL */
    struct {
        struct pick *pick; /* in MODE_MODELS, else NULL */
        int y, x;          /* of its corner on the screen */
    } models;
    char find[128];                    /* typed in MODE_FIND */
    struct transcript_matches matches; /* of the search; of is 0 if they were not counted */
    enum app_drag drag;
    int dragged; /* the panel of DRAG_PANEL, DRAG_EDGE */
    struct {
        int y, x, count;
        uint64_t at_ns;
    } click;

    struct tour *tour;     /* NULL: none, or it is over */
    char hint[256];        /* shown in the rule until the next key */
    char echo[200];        /* the command whose first reply is still to come, or "" */
    unsigned n_mistake;    /* items at the end of the chat: the error of the last command */
    bool hint_covers_dash; /* in the last frame */
    bool has_asked_to_leave; /* the line is "exit", and Enter came once */
    enum talk_state title_state; /* that the title of the window shows, and since when */
    uint64_t title_ns;
    uint64_t leave_ns;     /* until then a second Ctrl-C on an empty line leaves */
    struct {
        uint64_t due_ns; /* when to estimate; 0: not */
        char text[160];  /* what sending the line would cost; "": not known */
    } cost;

    struct {
        struct app_wall *making; /* NULL: nothing has changed */
        struct app_wall_inputs inputs;
        uint64_t begun_ns;
        bool was_answering; /* then */
        uint64_t seen_ns;   /* time of the sample that was looked at last */
        uint32_t cost_of;   /* the newest complete wall is of this engine */
        uint64_t cost_ns;               /* and took this much processor time */
        uint64_t asks_at; /* the open sheet proposes this value of the wall; 0: it does not */
    } wall;

    size_t n_ahead;  /* bytes typed before the screen was there that are still to be read */
    uint64_t key_ns; /* when the oldest key that is not on the screen was read; 0: none */
    struct latency *latency; /* NULL unless it is measured */
};

/* app_front.c */
struct talk_front app_front(struct app *a);
void app_show_saved(struct app *a); /* show the chat that was opened */
bool app_load(void *ctx, uint32_t id, struct transcript_text *out);
/* Copy text to the clipboard and free it; NULL: there is none.  The hint calls it `what`. */
void app_copy(struct app *a, char *text, size_t n, const char *what);
void app_copy_part(struct app *a, bool code);

/* app_keys.c */
void app_key(struct app *a, const struct key *key);
void app_enter(struct app *a, enum app_mode mode);
void app_open_sheet(struct app *a, struct sheet *s); /* takes it over */
void app_command(struct app *a, const char *line);
void app_stop_or_leave(struct app *a); /* Ctrl-C */
void app_price(struct app *a); /* the line has changed: estimate its cost when the keys pause */
void app_set_view(struct app *a, enum ui_view view);
void app_set_mouse(struct app *a, bool on);
void app_pick_turn(struct app *a); /* F9 */

/* app_find.c */
/* Search for text in the chat; "": let it be typed. */
void app_find(struct app *a, const char *text);
bool app_find_key(struct app *a, const struct key *key); /* of MODE_FIND */
/* A key of the line that searches, and does not type; false: it types. */
bool app_searches(struct app *a, const struct key *key);

/* app_window.c */
void app_title(struct app *a); /* after a sample, and when the state changes */
/* An answer has ended. */
void app_announce(struct app *a, const struct mw_receipt *r);

/* app_mouse.c */
void app_mouse(struct app *a, const struct key *key);

/* app_models.c */
int app_pick_model(struct app *a, struct err *e);
void app_leave_models(struct app *a); /* free the list */
bool app_models_key(struct app *a, const struct key *key);
void app_models_work(struct app *a);

/* app_panels.c */
void app_load_panels(struct app *a);
void app_save_panels(struct app *a);
void app_choose_panel(struct app *a);                      /* for keys */
bool app_panels_key(struct app *a, const struct key *key); /* false: not one of its keys */
bool app_panels_press(struct app *a, int y, int x);        /* false: no title or edge */
void app_panels_drag(struct app *a, int y, int x);
void app_panels_release(struct app *a, int y, int x);
void app_panels_right(struct app *a, int y, int x); /* the right button */

/* app_wall.c */
void app_wall_work(struct app *a); /* some points */
void app_wall_stop(struct app *a); /* forget those that are not complete */
void app_wall_hint(struct app *a);
/* A sheet closed without a change: back to the cursor that opened it, if that was the wall's. */
void app_wall_return(struct app *a, uint64_t asked_at);
/* A click at y, x changed a panel: give the keys to the wall if it was there. */
void app_wall_clicked(struct app *a, int y, int x);
/* Whether no point would change: rates that differ by a few percent are the same. */
bool app_wall_is_same(const struct app_wall_inputs *a, const struct app_wall_inputs *b,
                      uint32_t n_ctx);
/* Copy a sample for predictions. */
void app_wall_sample(struct mw_sample *out, const struct mw_sample *s);
bool app_wall_key(struct app *a, const struct key *key); /* false: not one of its keys */

/* app_draw.c */
struct input_line app_typed(const struct app *a); /* the contents of the input line */
void app_layout(struct app *a);
void app_draw(struct app *a, int *cursor_y, int *cursor_x);

/* app.c */
void app_dirty(struct app *a, unsigned dirt);
void app_hint(struct app *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
