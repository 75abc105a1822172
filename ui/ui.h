/*
 * ui.h - the terminal program: a chat with the dashboard beside it.
 *
 * The interface for src/.  Everything runs on the calling thread, which alone uses the
 * terminal.  The caller must not have started other threads.
 */
#ifndef MEMWALL_UI_UI_H
#define MEMWALL_UI_UI_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/memwall.h"
#include "ui/options/appearance.h"

/* Paths of files and folders; each must be given, none needs to exist. */
struct ui_paths {
    const char *config_file; /* …/memwall/config */
    const char *config_dir;
    const char *state_dir; /* history, log */
    const char *data_dir;  /* chats */
};

struct options;
struct engine_calls;

/* The models on this machine. */
struct ui_models {
    const struct mw_places *places;
    struct mw_describe_options describe;
};

/* A subcommand as its --help shows it, for questions about it; without a name: the last one. */
struct ui_subcommand {
    const char *name, *args, *help, *about;
    const char *asks; /* other words that people use for it, or NULL */
};

struct ui_chat_options {
    const struct options *options; /* options.h; the budget is one that the machine can give */
    struct ui_paths paths;
    const struct engine_calls *engine; /* to open models with: ui/engine/local.h, remote.h */
    const struct mw_server *server;    /* that has the models; NULL: this process */
    /* NULL, or gives the model the limits of this machine, for predictions.  May be called on
     * another thread. */
    void (*limits)(struct mw_model *m, const char *path, const struct mw_options *o);
    struct ui_models models; /* for /model */
    const char *first;       /* NULL, or a message that is sent at once */
    const char *kept_file;   /* NULL, or where the settings of models are kept (kept.h) */
    const char *notice;      /* NULL, "", or something to show when the chat begins */
    const struct ui_subcommand *subcommands; /* NULL: none are known */
    bool tour;               /* begin with the tour of memwall demo (tour.h) */
};

/*
 * Chat until the person leaves.  Returns 0, or 128 + n if signal n ended it, or -1 with *e if
 * it could not begin (model, budget, terminal); then nothing was drawn.
 */
int ui_chat(const struct ui_chat_options *o, struct err *e);

/* Returns whether the screen can be used: /dev/tty exists, TERM is not dumb, and standard
 * output is a terminal. */
bool ui_can_draw(void);

/*
 * Let Ctrl-C and Ctrl-Z of the terminal on standard output or standard error send signals, also
 * if an earlier program left its keyboard in another mode.  Does nothing in the background.
 */
void ui_control_keys(void);

struct ui_pick_options {
    struct ui_options ui;
    struct ui_paths paths;
    struct ui_models models;
    struct options *options; /* for the plans; gets the settings that are chosen in the list */
    const char *kept_file;   /* as for struct ui_chat_options */
};

#define UI_PICK_NONE 1 /* nothing was chosen */

/* Let the user choose one of the models.  Returns 0 with a text for mw_models_resolve() in
 * path[0 .. n), UI_PICK_NONE, 128 + k if signal k ended it, or -1 with *e. */
int ui_pick(const struct ui_pick_options *o, char *path, size_t n, struct err *e);

struct ui_replay_options {
    struct ui_options ui;
    struct ui_paths paths;
    const char *path; /* the recording */
    double speed;     /* 1: as it was; 0: 1 */
};

/* Play a recording in the dashboard.  As ui_chat. */
int ui_replay(const struct ui_replay_options *o, struct err *e);

/* ---- two measurements side by side (memwall demo -m MODEL) ---- */

#define UI_SIDES      2
#define UI_SIDE_LINES 4
#define UI_SIDES_END  200

struct ui_side {
    const char *title;
    char rate[16]; /* the large figure: digits, '.', '-' and '~' */
    char unit[64]; /* below it */
    double own, cached; /* shares of the limit, 0 to 1: own memory, page cache; below 0: unknown */
    char line[UI_SIDE_LINES][96];
};

struct ui_sides {
    char title[200];
    struct ui_side side[UI_SIDES];
    char end[UI_SIDES_END]; /* the result; "" while it works */
};

struct ui_sides_screen;

/* Take the terminal.  Returns -1 with *e if it cannot; then nothing was drawn. */
int ui_sides_open(struct ui_sides_screen **out, const struct ui_options *o,
                  const struct ui_paths *paths, struct err *e);
void ui_sides_close(struct ui_sides_screen *s); /* s may be NULL */

/* The descriptors after which ui_sides_draw() is due. */
void ui_sides_watch(const struct ui_sides_screen *s, int fd[2]);
/* Take keys and signals, and draw.  Returns false if the person leaves. */
bool ui_sides_draw(struct ui_sides_screen *s, const struct ui_sides *all);
/* Show the result until the person leaves. */
void ui_sides_wait(struct ui_sides_screen *s, const struct ui_sides *all);
/* 0, or 128 + n if signal n ended it. */
int ui_sides_status(const struct ui_sides_screen *s);

/* ---- a server (memwall serve) ---- */

#define UI_SERVING_LINES 32
#define UI_SERVING_TEXT  240

/* Rows below the dashboard; they are cut to the width. */
struct ui_serving {
    char title[UI_SERVING_TEXT]; /* the model, the address, the queue */
    char now[UI_SERVING_TEXT];   /* the request that is being answered */
    char line[UI_SERVING_LINES][UI_SERVING_TEXT]; /* [n_line] requests before it, newest last */
    size_t n_line;
};

struct ui_serving_screen;

/* Take the terminal.  Returns -1 with *e if it cannot; then nothing was drawn. */
int ui_serving_open(struct ui_serving_screen **out, const struct ui_options *o,
                    const struct ui_paths *paths, struct err *e);
void ui_serving_close(struct ui_serving_screen *s); /* s may be NULL */

/* The descriptors after which ui_serving_draw() is due. */
void ui_serving_watch(const struct ui_serving_screen *s, int fd[2]);
/* Take keys and signals, and draw.  sample NULL: the figures are those of before.  Returns false if
 * the person leaves. */
bool ui_serving_draw(struct ui_serving_screen *s, const struct ui_serving *x,
                     const struct mw_sample *sample);
/* 0, or 128 + n if signal n ended it. */
int ui_serving_status(const struct ui_serving_screen *s);

#endif
