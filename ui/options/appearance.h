/*
 * appearance.h - how the screen looks and behaves, as the options set it.
 */
#ifndef MEMWALL_UI_OPTIONS_APPEARANCE_H
#define MEMWALL_UI_OPTIONS_APPEARANCE_H

#include <stdbool.h>
#include <stdint.h>

enum ui_graph { UI_GRAPH_AUTO, UI_GRAPH_BRAILLE, UI_GRAPH_BLOCK, UI_GRAPH_ASCII };
enum ui_color_wish { UI_COLOR_AUTO, UI_COLOR_ALWAYS, UI_COLOR_NEVER };
enum ui_bell { UI_BELL_UNFOCUSED, UI_BELL_ALWAYS, UI_BELL_OFF };
enum ui_switch { UI_ON, UI_OFF };
enum ui_notify {
    UI_NOTIFY_AUTO,
    UI_NOTIFY_OFF,
    UI_NOTIFY_OSC9,
    UI_NOTIFY_OSC777,
    UI_NOTIFY_OSC99,
};
enum ui_view { UI_VIEW_BOTH, UI_VIEW_CHAT, UI_VIEW_DASH };

/*
 * The memory that the chat needs beside the engine, for mw_options.caller_bytes: the largest
 * screen that is drawn, with a transcript, and the text of a chat that cannot be saved, in a
 * buffer that doubles.  The budget tests compare it with the measured charge.
 */
#define UI_SCREEN_BYTES ((uint64_t)21 << 19) /* 10.5 MiB */
#define UI_STORE_BYTES  ((uint64_t)2 << 20)
#define UI_MEMORY_BYTES (UI_SCREEN_BYTES + UI_STORE_BYTES)

/* Appearance and behaviour of the screen; all zero is a good default. */
struct ui_options {
    const char *theme; /* NULL: "auto"; a name or a path */
    enum ui_color_wish color;
    enum ui_graph graph;
    bool ascii; /* draw with ASCII only */
    bool utf8;  /* use UTF-8 in any locale */
    bool plain; /* line by line, for screen readers and serial lines */
    bool no_mouse;
    enum ui_view view;
    enum ui_bell bell;     /* when an answer ends */
    enum ui_switch title;  /* of the window */
    enum ui_switch keys;   /* those that have a meaning, above an empty line */
    enum ui_notify notify; /* the desktop, when an answer ends and the window has no focus */
    int split_percent;     /* the dashboard's share of the width; 0: 40 */
    int refresh_ms;        /* of the dashboard; 0: 250 */
    bool sync_frames;      /* bracket every frame (for tests): ESC[?2026h … l */
    bool count_bytes;      /* on leaving, print bytes written and the latency of keys */
};

#endif
