/*
 * key.h - one unit of terminal input: a key, a report of the mouse, a paste.
 */
#ifndef MEMWALL_UI_TERM_KEY_H
#define MEMWALL_UI_TERM_KEY_H

#include <stddef.h>
#include <stdint.h>

enum key_kind {
    KEYS_CHAR,         /* ch: a character, or a control byte; mods may hold KEYS_ALT */
    KEYS_NAMED,        /* name */
    KEYS_MOUSE,        /* mouse */
    KEYS_PASTE,        /* bytes, n: as received, except that line ends are newlines */
    KEYS_PASTE_LONG,   /* a paste that was dropped; n: bytes */
    KEYS_PASTE_BROKEN, /* a paste that Ctrl-C aborted; n: bytes */
    KEYS_FOCUS_IN,
    KEYS_FOCUS_OUT,
    KEYS_REPLY,   /* the terminal's reply to a query */
    KEYS_UNKNOWN, /* an unknown sequence, or broken UTF-8 */
};

enum key_name {
    KEYS_ESC,
    KEYS_UP,
    KEYS_DOWN,
    KEYS_RIGHT,
    KEYS_LEFT,
    KEYS_HOME,
    KEYS_END,
    KEYS_PAGE_UP,
    KEYS_PAGE_DOWN,
    KEYS_INSERT,
    KEYS_DELETE,
    KEYS_SHIFT_TAB,
    KEYS_NEWLINE, /* Shift-Enter, where the terminal reports it */
    KEYS_F1,
    KEYS_F2,
    KEYS_F3,
    KEYS_F4,
    KEYS_F5,
    KEYS_F6,
    KEYS_F7,
    KEYS_F8,
    KEYS_F9,
    KEYS_F10,
    KEYS_F11,
    KEYS_F12,
};

enum key_mods { KEYS_SHIFT = 1, KEYS_ALT = 2, KEYS_CTRL = 4 };

enum mouse_what { MOUSE_PRESS, MOUSE_RELEASE, MOUSE_DRAG, MOUSE_WHEEL_UP, MOUSE_WHEEL_DOWN };

struct key {
    enum key_kind kind;
    enum key_name name;
    unsigned mods;
    uint32_t ch;
    struct {
        enum mouse_what what;
        int button; /* 0 left, 1 middle, 2 right, 3 a release of any (old reports) */
        int y, x;   /* from 0 */
    } mouse;
    /* A key as xterm sends it, the text of a paste, or another unit as received; valid until
     * the next call, as is raw. */
    const unsigned char *bytes;
    size_t n;
    const unsigned char *raw; /* the unit as received; NULL for a paste */
    size_t n_raw;
};

#endif
