/*
 * keys.h - decodes terminal input into keys, mouse reports and pastes.
 *
 * Bytes are fed as they are read, in pieces of any size; keys_next returns whole units.  An
 * unknown escape sequence is also one unit, so that no part of it is typed into the line.  An
 * ESC without more bytes waits for KEYS_ESC_NS; the same time limit releases every unit that
 * stays incomplete.
 *
 * A paste is everything between ESC[200~ and ESC[201~, in any number of reads.  A paste
 * longer than KEYS_MAX_PASTE is dropped and reported.  A paste without its end is finished
 * after KEYS_PASTE_NS without a byte; Ctrl-C aborts it at once.
 *
 * The decoder does not depend on curses and reads no clock: time is an argument.
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
        int button; /* 0 left, 1 middle, 2 right */
        int y, x;   /* from 0 */
    } mouse;
    /* The unit as received, or the text of a paste; valid until the next call. */
    const unsigned char *bytes;
    size_t n;
};

struct keys;

struct keys *keys_new(void); /* NULL if out of memory */
void keys_free(struct keys *k);

/* Returns how many bytes keys_feed accepts; never 0 after keys_next returned false. */
size_t keys_room(const struct keys *k);
void keys_feed(struct keys *k, const unsigned char *bytes, size_t n, uint64_t now_ns);
/* Read the next unit.  Returns false if none is complete and no incomplete one timed out. */
bool keys_next(struct keys *k, uint64_t now_ns, struct key *out);
/* Returns the nanoseconds until a unit times out, or UINT64_MAX. */
uint64_t keys_wait(const struct keys *k, uint64_t now_ns);
/* While the mouse is on, old mouse reports (ESC [ M) are followed by three bytes. */
void keys_set_mouse(struct keys *k, bool on);

#endif
