#include "config.h"

#include "ui/term/keys.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"

#define BUFFER_BYTES 8192
#define CSI_MAX      64   /* bytes of a control sequence */
#define STRING_MAX   4096 /* bytes of a reply (OSC, DCS, APC, PM) */

static const char paste_end[] = "\033[201~";
#define PASTE_END_BYTES (sizeof paste_end - 1)

#define CTRL_C   3
#define TYPED_NS ((uint64_t)50 * 1000 * 1000)

struct keys {
    unsigned char buf[BUFFER_BYTES];
    size_t from, to;  /* buf[from .. to) is unread */
    uint64_t last_ns; /* when the last byte came */
    bool mouse;
    unsigned char unit[STRING_MAX + 8]; /* the unit returned last */

    bool pasting;
    bool is_broken; /* Ctrl-C aborted the paste */
    bool was_open;  /* the last paste timed out before its end */
    unsigned char *paste;
    size_t paste_bytes, paste_room;
    size_t dropped; /* bytes of a paste that is too long; else 0 */
};

struct keys *keys_new(void)
{
    return calloc(1, sizeof(struct keys));
}

void keys_free(struct keys *k)
{
    if (k == NULL)
        return;
    free(k->paste);
    free(k);
}

size_t keys_room(const struct keys *k)
{
    return sizeof k->buf - (k->to - k->from);
}

void keys_set_mouse(struct keys *k, bool on)
{
    k->mouse = on;
}

/* A typed control character arrives alone; one inside a paste arrives with others. */
static bool is_typed_interrupt(const struct keys *k, const unsigned char *bytes, size_t n,
                               uint64_t now_ns)
{
    return n == 1 && bytes[0] == CTRL_C && now_ns - k->last_ns >= TYPED_NS;
}

void keys_feed(struct keys *k, const unsigned char *bytes, size_t n, uint64_t now_ns)
{
    assert(n <= keys_room(k));
    if (n > 0 && k->was_open) {
        /* Only a paste brings several characters at once: it had paused and continues. */
        k->pasting = n > 4 && bytes[0] != '\033' && k->from == k->to;
        k->was_open = false;
    }
    if (k->pasting && is_typed_interrupt(k, bytes, n, now_ns)) {
        k->is_broken = true;
        return;
    }
    if (k->from > 0) {
        memmove(k->buf, k->buf + k->from, k->to - k->from);
        k->to -= k->from;
        k->from = 0;
    }
    memcpy(k->buf + k->to, bytes, n);
    k->to += n;
    k->last_ns = now_ns;
}

uint64_t keys_wait(const struct keys *k, uint64_t now_ns)
{
    uint64_t limit = k->pasting ? KEYS_PASTE_NS : KEYS_ESC_NS, past = now_ns - k->last_ns;

    if (k->is_broken)
        return 0;
    if (k->from == k->to && !k->pasting)
        return UINT64_MAX;
    return past >= limit ? 0 : limit - past;
}

/* ---- length of the unit at the start of p[0 .. n); 0: incomplete ---- */

/* A broken character is a separate unit; the next byte may begin a key. */
static size_t char_bytes(const unsigned char *p, size_t n)
{
    uint32_t cp;
    size_t bytes = utf8_decode((const char *)p, n, &cp);

    return cp == UTF8_SHORT ? 0 : bytes;
}

static size_t csi_bytes(const unsigned char *p, size_t n, bool mouse)
{
    for (size_t i = 2; i < n && i < CSI_MAX; i++) {
        if (p[i] >= 0x20 && p[i] < 0x40)
            continue;
        if (p[i] < 0x20 || p[i] > 0x7e)
            return i; /* cut off by a byte that begins another unit */
        if (i == 2 && p[i] == 'M' && mouse)
            return n >= 6 ? 6 : 0;
        return i + 1;
    }
    return n >= CSI_MAX ? CSI_MAX : 0;
}

/* ESC ] text, ended by BEL or ESC \ */
static size_t string_bytes(const unsigned char *p, size_t n)
{
    for (size_t i = 2; i < n && i < STRING_MAX; i++) {
        if (p[i] == '\a')
            return i + 1;
        if (p[i] == '\033' && i + 1 < n)
            return p[i + 1] == '\\' ? i + 2 : i;
    }
    return n >= STRING_MAX ? STRING_MAX : 0;
}

static size_t unit_bytes(const unsigned char *p, size_t n, bool mouse)
{
    size_t rest;

    if (p[0] != '\033')
        return char_bytes(p, n);
    if (n == 1)
        return 0;
    switch (p[1]) {
    case '[': return csi_bytes(p, n, mouse);
    case 'O': return n >= 3 ? 3 : 0;
    case ']':
    case 'P':
    case '_':
    case '^': return string_bytes(p, n);
    case '\033': return 1;
    }
    rest = char_bytes(p + 1, n - 1);
    return rest == 0 ? 0 : rest + 1;
}

/* ---- meaning of a unit ---- */

static void named(struct key *out, enum key_name name)
{
    out->kind = KEYS_NAMED;
    out->name = name;
}

static void read_char(struct key *out, const unsigned char *p, size_t n)
{
    uint32_t c;

    utf8_decode((const char *)p, n, &c);
    out->kind = c >= UTF8_SHORT ? KEYS_UNKNOWN : KEYS_CHAR;
    out->ch = c;
}

static void read_mouse(struct key *out, int b, int x, int y, bool released)
{
    out->kind = KEYS_MOUSE;
    out->mouse.y = y > 0 ? y - 1 : 0;
    out->mouse.x = x > 0 ? x - 1 : 0;
    out->mouse.button = b & 3;
    out->mods = (b & 4 ? KEYS_SHIFT : 0u) | (b & 8 ? KEYS_ALT : 0u) | (b & 16 ? KEYS_CTRL : 0u);
    if (b & 64) {
        out->mouse.what = b & 1 ? MOUSE_WHEEL_DOWN : MOUSE_WHEEL_UP;
        if (b & 2) /* horizontal */
            out->kind = KEYS_UNKNOWN;
        return;
    }
    out->mouse.what = released ? MOUSE_RELEASE : b & 32 ? MOUSE_DRAG : MOUSE_PRESS;
}

/* Read the numbers between CSI and its final byte; missing ones are 0. */
static int read_numbers(const unsigned char *p, size_t n, int *out, int max)
{
    int count = 0, value = 0;

    for (size_t i = 0; i <= n && count < max; i++) {
        if (i < n && p[i] >= '0' && p[i] <= '9') {
            value = value < 100000 ? value * 10 + (p[i] - '0') : value;
            continue;
        }
        if (i < n && p[i] != ';' && p[i] != ':')
            continue;
        out[count++] = value;
        value = 0;
    }
    return count;
}

static bool key_of_tilde(struct key *out, int number)
{
    static const struct {
        int number;
        enum key_name name;
    } keys[] = {
        { 1, KEYS_HOME },    { 2, KEYS_INSERT },    { 3, KEYS_DELETE }, { 4, KEYS_END },
        { 5, KEYS_PAGE_UP }, { 6, KEYS_PAGE_DOWN }, { 7, KEYS_HOME },   { 8, KEYS_END },
        { 11, KEYS_F1 },     { 12, KEYS_F2 },       { 13, KEYS_F3 },    { 14, KEYS_F4 },
        { 15, KEYS_F5 },     { 17, KEYS_F6 },       { 18, KEYS_F7 },    { 19, KEYS_F8 },
        { 20, KEYS_F9 },     { 21, KEYS_F10 },      { 23, KEYS_F11 },   { 24, KEYS_F12 },
    };

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (keys[i].number == number) {
            named(out, keys[i].name);
            return true;
        }
    return false;
}

static bool key_of_letter(struct key *out, unsigned char final)
{
    static const struct {
        char letter;
        enum key_name name;
    } keys[] = {
        { 'A', KEYS_UP },   { 'B', KEYS_DOWN }, { 'C', KEYS_RIGHT },     { 'D', KEYS_LEFT },
        { 'H', KEYS_HOME }, { 'F', KEYS_END },  { 'Z', KEYS_SHIFT_TAB }, { 'P', KEYS_F1 },
        { 'Q', KEYS_F2 },   { 'R', KEYS_F3 },   { 'S', KEYS_F4 },
    };

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (keys[i].letter == (char) final) {
            named(out, keys[i].name);
            return true;
        }
    return false;
}

/* Convert the modifier parameter of a sequence; 1 means none. */
static unsigned mods_of(int number)
{
    return number > 1 ? (unsigned)(number - 1) & (KEYS_SHIFT | KEYS_ALT | KEYS_CTRL) : 0;
}

static void read_csi(struct key *out, const unsigned char *p, size_t n)
{
    unsigned char final = p[n - 1];
    int v[4] = { 0 };
    int count = read_numbers(p + 2, n - 3, v, 4);

    if (n >= 6 && p[2] == '<' && (final == 'M' || final == 'm')) {
        if (read_numbers(p + 3, n - 4, v, 3) == 3)
            read_mouse(out, v[0], v[1], v[2], final == 'm');
        return;
    }
    if (n == 6 && final != '~' && p[2] == 'M') {
        read_mouse(out, p[3] - 32, p[4] - 32, p[5] - 32, (p[3] & 3) == 3);
        return;
    }
    if (n == 3 && (final == 'I' || final == 'O')) {
        out->kind = final == 'I' ? KEYS_FOCUS_IN : KEYS_FOCUS_OUT;
        return;
    }
    if (p[2] == '?' || (final == 'R' && count >= 2 && v[0] > 1) || final == 'c' ||
        final == 'n') {
        out->kind = KEYS_REPLY;
        return;
    }
    if ((final == 'u' && v[0] == 13 && v[1] == 2) ||
        (final == '~' && v[0] == 27 && v[1] == 2 && v[2] == 13)) {
        named(out, KEYS_NEWLINE);
        return;
    }
    out->mods = count >= 2 ? mods_of(v[1]) : 0;
    if (final == '~' ? !key_of_tilde(out, v[0]) : !key_of_letter(out, final))
        out->kind = KEYS_UNKNOWN;
}

static void read_unit(struct key *out, const unsigned char *p, size_t n, bool in_time)
{
    out->kind = KEYS_UNKNOWN;
    out->bytes = p;
    out->n = n;
    if (p[0] != '\033') {
        read_char(out, p, n);
        return;
    }
    if (n == 1) {
        named(out, KEYS_ESC);
        return;
    }
    switch (p[1]) {
    case '[':
        if (n >= 3 && in_time)
            read_csi(out, p, n);
        return;
    case 'O':
        if (n == 3)
            (void)key_of_letter(out, p[2]);
        return;
    case ']':
    case 'P':
    case '_':
    case '^': out->kind = n > 2 ? KEYS_REPLY : KEYS_UNKNOWN; return;
    }
    read_char(out, p + 1, n - 1);
    out->mods = KEYS_ALT;
}

/* ---- pastes ---- */

/* Make room for n more bytes.  Returns false if the paste is too long. */
static bool paste_reserve(struct keys *k, size_t n)
{
    size_t want = k->paste_bytes + n;
    unsigned char *bigger;

    if (want > KEYS_MAX_PASTE)
        return false;
    if (want <= k->paste_room)
        return true;
    bigger = realloc(k->paste, want * 2 + 1);
    if (bigger == NULL)
        return false;
    k->paste = bigger;
    k->paste_room = want * 2;
    return true;
}

static void paste_add(struct keys *k, const unsigned char *p, size_t n)
{
    if (n == 0)
        return;
    if (k->dropped > 0) {
        k->dropped += n;
    } else if (paste_reserve(k, n)) {
        memcpy(k->paste + k->paste_bytes, p, n);
        k->paste_bytes += n;
    } else {
        k->dropped = k->paste_bytes + n;
    }
}

/* Move bytes to the paste.  Returns true when its end was found. */
static bool paste_take(struct keys *k)
{
    const unsigned char *p = k->buf + k->from;
    size_t n = k->to - k->from;
    const unsigned char *end = n == 0 ? NULL : memmem(p, n, paste_end, PASTE_END_BYTES);
    size_t keep = 0;

    if (end != NULL) {
        paste_add(k, p, (size_t)(end - p));
        k->from += (size_t)(end - p) + PASTE_END_BYTES;
        k->pasting = false;
        return true;
    }
    /* The last bytes may be the start of the end marker. */
    for (size_t i = n < PASTE_END_BYTES ? n : PASTE_END_BYTES - 1; i > 0 && keep == 0; i--)
        if (memcmp(p + n - i, paste_end, i) == 0)
            keep = i;
    paste_add(k, p, n - keep);
    k->from += n - keep;
    return false;
}

/* Finish a paste that timed out.  An Esc at its end was typed. */
static void paste_give_up(struct keys *k)
{
    size_t n = k->to - k->from;

    if (n > 1 || (n == 1 && k->buf[k->from] != '\033'))
        paste_add(k, k->buf + k->from, n);
    k->from = k->to = 0;
    k->pasting = false;
    k->was_open = true;
}

/* Terminals send line ends in a paste as Enter: "\r", some as "\r\n". */
static size_t unify_line_ends(unsigned char *text, size_t n)
{
    size_t to = 0;

    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\r' && i + 1 < n && text[i + 1] == '\n')
            continue;
        text[to++] = text[i] == '\r' ? '\n' : text[i];
    }
    return to;
}

static void paste_out(struct keys *k, struct key *out)
{
    if (k->is_broken) {
        out->kind = KEYS_PASTE_BROKEN;
        out->n = k->dropped > 0 ? k->dropped : k->paste_bytes;
    } else if (k->dropped > 0) {
        out->kind = KEYS_PASTE_LONG;
        out->n = k->dropped;
    } else {
        out->kind = KEYS_PASTE;
        out->bytes = k->paste;
        out->n = unify_line_ends(k->paste, k->paste_bytes);
    }
    k->is_broken = false;
    k->dropped = 0;
    k->paste_bytes = 0;
}

bool keys_next(struct keys *k, uint64_t now_ns, struct key *out)
{
    static const char paste_begin[] = "\033[200~";

    for (;;) {
        const unsigned char *p = k->buf + k->from;
        size_t n = k->to - k->from, unit;
        bool in_time = true;

        *out = (struct key){ 0 };
        if (k->pasting) {
            if (!paste_take(k)) {
                if (keys_wait(k, now_ns) > 0)
                    return false;
                paste_give_up(k);
            }
            paste_out(k, out);
            return true;
        }
        if (n == 0)
            return false;
        unit = unit_bytes(p, n, k->mouse);
        if (unit == 0 && keys_wait(k, now_ns) > 0)
            return false;
        if (unit == 0) {
            unit = n;
            in_time = n == 1;
        }
        k->from += unit;
        if (unit == sizeof paste_begin - 1 && memcmp(p, paste_begin, unit) == 0) {
            k->pasting = true;
            continue;
        }
        if (unit > sizeof k->unit)
            unit = sizeof k->unit;
        memcpy(k->unit, p, unit);
        read_unit(out, k->unit, unit, in_time);
        return true;
    }
}
