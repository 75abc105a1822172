/*
 * keys.h - bytes of a terminal to keys, mouse reports, pastes.
 *
 * Bytes go in as they are read, in any pieces; whole units come out.  What is unknown
 * comes out too, as one unit, so that nothing of an escape sequence is ever typed into
 * the line by accident.  An ESC with nothing behind it is held for KEYS_ESC_NS; the same
 * time limit releases any unit that stays incomplete.
 *
 * A paste is everything between ESC[200~ and ESC[201~, however many reads it takes; one
 * that is longer than KEYS_MAX_PASTE is dropped whole and says so.  A paste whose end does
 * not come is over after KEYS_PASTE_NS without a byte; Ctrl-C breaks it off at once.
 *
 * The decoder knows nothing of curses and reads no clock: time is an argument.
 */
#ifndef MEMWALL_UI_TERM_KEYS_H
#define MEMWALL_UI_TERM_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEYS_ESC_NS    ((uint64_t)40 * 1000 * 1000)
#define KEYS_PASTE_NS  ((uint64_t)1000 * 1000 * 1000)
#define KEYS_MAX_PASTE ((size_t)4 << 20)

enum key_kind {
    KEYS_CHAR,         /* ch: a character, or a control byte; mods may hold KEYS_ALT */
    KEYS_NAMED,        /* name */
    KEYS_MOUSE,        /* mouse */
    KEYS_PASTE,        /* bytes, n: as it came, but line ends are newlines */
    KEYS_PASTE_LONG,   /* one that was dropped; n: bytes */
    KEYS_PASTE_BROKEN, /* one that Ctrl-C broke off; n: bytes */
    KEYS_FOCUS_IN,
    KEYS_FOCUS_OUT,
    KEYS_REPLY,   /* of the terminal to a question */
    KEYS_UNKNOWN, /* a sequence without a meaning here, or broken UTF-8 */
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
    KEYS_NEWLINE, /* Shift-Enter where the terminal tells it */
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
        int button; /* 0 left, 1 middle, 2 right */
        int y, x;   /* from 0 */
    } mouse;
    /* The unit as it came, or the text of a paste; until the next call for these keys. */
    const unsigned char *bytes;
    size_t n;
};

struct keys;

struct keys *keys_new(void); /* NULL: no memory */
void keys_free(struct keys *k);

/* How many bytes keys_feed takes now; never 0 after keys_next has returned false. */
size_t keys_room(const struct keys *k);
void keys_feed(struct keys *k, const unsigned char *bytes, size_t n, uint64_t now_ns);
/* The next unit, if there is a whole one (or the time of an incomplete one is over). */
bool keys_next(struct keys *k, uint64_t now_ns, struct key *out);
/* Nanoseconds until keys_next may have something without more bytes; UINT64_MAX: never. */
uint64_t keys_wait(const struct keys *k, uint64_t now_ns);
/* In old mouse reports (ESC [ M) three bytes follow; only while the mouse is on. */
void keys_set_mouse(struct keys *k, bool on);

#endif
