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

enum ui_graph { UI_GRAPH_AUTO, UI_GRAPH_BRAILLE, UI_GRAPH_BLOCK, UI_GRAPH_ASCII };
enum ui_color_wish { UI_COLOR_AUTO, UI_COLOR_ALWAYS, UI_COLOR_NEVER };
enum ui_view { UI_VIEW_BOTH, UI_VIEW_CHAT, UI_VIEW_DASH };

/* Appearance and behaviour of the screen; all zero is a good default. */
struct ui_options {
    const char *theme; /* NULL: "dark"; a name or a path */
    enum ui_color_wish color;
    enum ui_graph graph;
    bool ascii; /* draw with ASCII only */
    bool utf8;  /* use UTF-8 in any locale */
    bool plain; /* line by line, for screen readers and serial lines */
    bool no_mouse;
    enum ui_view view;
    int split_percent; /* the dashboard's share of the width; 0: 40 */
    int refresh_ms;    /* of the dashboard; 0: 250 */
    bool sync_frames;  /* bracket every frame (for tests): ESC[?2026h … l */
    bool count_bytes;  /* on leaving, print bytes written and the latency of keys */
};

/* Paths of files and folders; each must be given, none needs to exist. */
struct ui_paths {
    const char *config_file; /* …/memwall/config */
    const char *config_dir;
    const char *state_dir; /* history, log */
    const char *data_dir;  /* chats */
};

struct ui_chat_options {
    struct ui_options ui;
    struct ui_paths paths;
    const char *model_path;      /* as for mw_model_open */
    struct mw_chat_options chat; /* sampling comes from the model and overlay */
    /* NULL, or changes the model's recommendation to the person's choices. */
    void (*overlay)(void *ctx, struct mw_sampling *s);
    void *overlay_ctx;
    /* NULL, or gives the model the limits of this machine, for predictions.  May be called on
     * another thread. */
    void (*limits)(struct mw_model *m, const char *path, const struct mw_options *o);
    const char *open_chat; /* NULL: a new one; "": the last one; else a chat's name */
    const char *first;     /* NULL, or a message that is sent at once */
    const char *notice;    /* NULL, "", or something to show when the chat begins */
    bool force;            /* outputs named by options may replace files */
    const char *telemetry; /* NULL, or a file to record to */
    bool no_save;          /* do not keep the chat on disk */
    bool quiet;            /* no lines on the ordinary screen after leaving */
    /* NULL, or checks with the table of options that the configuration may set key to value;
     * for /set. */
    int (*check_setting)(const char *key, const char *value, struct err *e);
    /* Keys of the configuration for completion, with NULL at the end; may be NULL. */
    const char *const *setting_names;
};

/*
 * Chat until the person leaves.  Returns 0, or 128 + n if signal n ended it, or -1 with *e if
 * it could not begin (model, budget, terminal); then nothing was drawn.
 */
int ui_chat(const struct ui_chat_options *o, struct err *e);

/* Returns whether the screen can be used: /dev/tty exists, TERM is not dumb, and standard
 * output is a terminal. */
bool ui_can_draw(void);

struct ui_replay_options {
    struct ui_options ui;
    struct ui_paths paths;
    const char *path; /* the recording */
    double speed;     /* 1: as it was; 0: 1 */
};

/* Play a recording in the dashboard.  As ui_chat. */
int ui_replay(const struct ui_replay_options *o, struct err *e);

#endif
