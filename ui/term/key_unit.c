#include "config.h"

#include "ui/term/key_unit.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <utf8proc.h>

#include "engine/base/utf8.h"

#define ESC        0x1b
#define MAX_PARAM  6
#define MAX_PART   8
#define MAX_NUMBER 0x7fffff

/* Modifiers beside those of enum key_mods.  The terminal's number is their sum plus 1. */
enum {
    MOD_SUPER = 8, /* in kitty's protocol; Meta in xterm's sequences */
    MOD_HYPER = 16,
    MOD_META = 32,
    MOD_CAPS = 64,
    MOD_ALL = 0xff,
};

/* A control sequence in parts.  Missing numbers are 0. */
struct sequence {
    unsigned char prefix; /* '<', '=', '>', '?', or 0 */
    unsigned char middle; /* the last byte between the numbers and final, or 0 */
    unsigned char final;
    int n; /* numbers */
    int number[MAX_PARAM][MAX_PART];
};

/* ---- the length of a unit ---- */

static bool is_introducer(unsigned char c)
{
    return c == '[' || c == 'O' || c == ']' || c == 'P' || c == '^' || c == '_';
}

/* Returns the bytes that introduce a sequence (ESC and a character, the control character of
 * the same meaning, or this one in UTF-8), and which in *kind; else 0. */
static size_t introducer(const unsigned char *p, size_t n, unsigned char *kind)
{
    if (n >= 2 && p[0] == ESC) {
        *kind = p[1];
        return is_introducer(p[1]) ? 2 : 0;
    }
    if (n >= 2 && p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0) {
        *kind = p[1] - 0x40;
        return is_introducer(*kind) ? 2 : 0;
    }
    *kind = p[0] - 0x40;
    return p[0] >= 0x80 && p[0] < 0xa0 && is_introducer(*kind) ? 1 : 0;
}

/* A broken character is a separate unit; the next byte may begin a key. */
static size_t char_bytes(const unsigned char *p, size_t n)
{
    uint32_t cp;
    size_t bytes = utf8_decode((const char *)p, n, &cp);

    return cp == UTF8_SHORT ? 0 : bytes;
}

/* Three values follow ESC [ M: bytes, or characters where the terminal sends UTF-8. */
static size_t old_mouse_bytes(const unsigned char *p, size_t n, size_t at)
{
    for (int i = 0; i < 3; i++) {
        if (at >= n)
            return 0;
        if (p[at] < 0x20 && p[at] != 0)
            return at;
        if (p[at] < 0xc2 || p[at] > 0xdf)
            at++;
        else if (at + 1 == n)
            return 0;
        else
            at += utf8_is_inside((char)p[at + 1]) ? 2 : 1;
    }
    return at;
}

static size_t csi_bytes(const unsigned char *p, size_t n, size_t head)
{
    for (size_t i = head; i < n && i < KEY_UNIT_MAX; i++) {
        if (p[i] == '$' && i > head && p[i - 1] >= '0' && p[i - 1] <= '9' &&
            memchr(p + head, ';', i - head) == NULL && p[head] <= '9')
            return i + 1; /* rxvt ends keys with Shift this way */
        if (p[i] >= 0x20 && p[i] < 0x40)
            continue;
        if (p[i] < 0x20 || p[i] > 0x7e)
            return i; /* cut off by a byte that begins another unit */
        if (i == head && p[i] == 'M')
            return old_mouse_bytes(p, n, head + 1);
        if (i == head && p[i] == '[')
            return i + 1 < n ? i + 2 : 0;
        return i + 1;
    }
    return n >= KEY_UNIT_MAX ? KEY_UNIT_MAX : 0;
}

/* ESC O, numbers, and a letter */
static size_t ss3_bytes(const unsigned char *p, size_t n, size_t head)
{
    for (size_t i = head; i < n && i < KEY_UNIT_MAX; i++)
        if ((p[i] < '0' || p[i] > '9') && p[i] != ';')
            return p[i] < 0x20 || p[i] > 0x7e ? i : i + 1;
    return n >= KEY_UNIT_MAX ? KEY_UNIT_MAX : 0;
}

/* Returns the bytes up to the end of a text that BEL or ESC \ ends; 0: the end is missing.
 * Other control characters cut it off: they begin another unit. */
static size_t string_end(const unsigned char *p, size_t n, size_t at)
{
    for (size_t i = at; i < n; i++) {
        if (p[i] == '\a' || (p[i] == 0x9c && i > at && (p[i - 1] < 0x80 || p[i - 1] == 0xc2)))
            return i + 1;
        if (p[i] == ESC && i + 1 == n)
            return 0;
        if (p[i] == ESC)
            return p[i + 1] == '\\' ? i + 2 : i;
        if (p[i] < 0x20)
            return i;
    }
    return 0;
}

static size_t sequence_bytes(const unsigned char *p, size_t n, size_t head, unsigned char kind)
{
    size_t bytes;

    if (kind == '[')
        return csi_bytes(p, n, head);
    if (kind == 'O')
        return ss3_bytes(p, n, head);
    bytes = string_end(p, n < KEY_UNIT_MAX ? n : KEY_UNIT_MAX, head);
    return bytes == 0 && n >= KEY_UNIT_MAX ? KEY_UNIT_MAX : bytes;
}

/* After Esc, a sequence of a key is this key with Alt.  Any other one is a separate unit. */
static size_t alt_sequence_bytes(const unsigned char *p, size_t n)
{
    unsigned char kind, plain[KEY_PLAIN_MAX];
    size_t head = introducer(p + 1, n - 1, &kind), bytes;
    struct key key;

    if (n == 2)
        return 0;
    if (head == 0 || (kind != '[' && kind != 'O'))
        return 1;
    bytes = sequence_bytes(p + 1, n - 1, head, kind);
    if (bytes == 0)
        return 0;
    key_unit_read(&key, p + 1, bytes, plain);
    return key.kind == KEYS_NAMED ? 1 + bytes : 1;
}

size_t key_unit_bytes(const unsigned char *p, size_t n)
{
    unsigned char kind;
    size_t head = introducer(p, n, &kind), rest;

    if (head > 0)
        return sequence_bytes(p, n, head, kind);
    if (p[0] != ESC)
        return char_bytes(p, n);
    if (n == 1)
        return 0;
    if (p[1] == ESC)
        return alt_sequence_bytes(p, n);
    rest = char_bytes(p + 1, n - 1);
    return rest == 0 ? 0 : rest + 1;
}

bool key_unit_is_short(const unsigned char *p, size_t n)
{
    unsigned char kind;

    return n == 0 || (p[0] == ESC && (n <= 2 || (introducer(p, n, &kind) == 0 && p[1] != ESC)));
}

size_t key_unit_rest(const unsigned char *first, const unsigned char *p, size_t n,
                     bool *is_over)
{
    unsigned char kind;
    size_t bytes = 0;

    (void)introducer(first, 2, &kind);
    if (kind != '[' && kind != 'O') {
        bytes = string_end(p, n, 0);
        *is_over = bytes > 0;
        return bytes > 0 ? bytes : n > 0 && p[n - 1] == ESC ? n - 1 : n;
    }
    while (bytes < n && p[bytes] >= 0x20 && p[bytes] < 0x40)
        bytes++;
    *is_over = bytes < n;
    return bytes < n && p[bytes] >= 0x40 && p[bytes] <= 0x7e ? bytes + 1 : bytes;
}

/* ---- keys ---- */

struct named_key {
    int code;
    enum key_name name;
};

static const struct named_key tilde_keys[] = {
    { 1, KEYS_HOME },    { 2, KEYS_INSERT },    { 3, KEYS_DELETE }, { 4, KEYS_END },
    { 5, KEYS_PAGE_UP }, { 6, KEYS_PAGE_DOWN }, { 7, KEYS_HOME },   { 8, KEYS_END },
    { 11, KEYS_F1 },     { 12, KEYS_F2 },       { 13, KEYS_F3 },    { 14, KEYS_F4 },
    { 15, KEYS_F5 },     { 17, KEYS_F6 },       { 18, KEYS_F7 },    { 19, KEYS_F8 },
    { 20, KEYS_F9 },     { 21, KEYS_F10 },      { 23, KEYS_F11 },   { 24, KEYS_F12 },
    { 0, KEYS_ESC },
};

static const struct named_key letter_keys[] = {
    { 'A', KEYS_UP },   { 'B', KEYS_DOWN }, { 'C', KEYS_RIGHT },     { 'D', KEYS_LEFT },
    { 'H', KEYS_HOME }, { 'F', KEYS_END },  { 'Z', KEYS_SHIFT_TAB }, { 'P', KEYS_F1 },
    { 'Q', KEYS_F2 },   { 'R', KEYS_F3 },   { 'S', KEYS_F4 },        { 0, KEYS_ESC },
};

/* Keys that kitty's protocol numbers in the private area of Unicode. */
static const struct named_key kitty_keys[] = {
    { 57417, KEYS_LEFT },   { 57418, KEYS_RIGHT },   { 57419, KEYS_UP },
    { 57420, KEYS_DOWN },   { 57421, KEYS_PAGE_UP }, { 57422, KEYS_PAGE_DOWN },
    { 57423, KEYS_HOME },   { 57424, KEYS_END },     { 57425, KEYS_INSERT },
    { 57426, KEYS_DELETE }, { 0, KEYS_ESC },
};

static const struct named_key windows_keys[] = {
    { 27, KEYS_ESC },  { 33, KEYS_PAGE_UP }, { 34, KEYS_PAGE_DOWN }, { 35, KEYS_END },
    { 36, KEYS_HOME }, { 37, KEYS_LEFT },    { 38, KEYS_UP },        { 39, KEYS_RIGHT },
    { 40, KEYS_DOWN }, { 45, KEYS_INSERT },  { 46, KEYS_DELETE },    { 112, KEYS_F1 },
    { 113, KEYS_F2 },  { 114, KEYS_F3 },     { 115, KEYS_F4 },       { 116, KEYS_F5 },
    { 117, KEYS_F6 },  { 118, KEYS_F7 },     { 119, KEYS_F8 },       { 120, KEYS_F9 },
    { 121, KEYS_F10 }, { 122, KEYS_F11 },    { 123, KEYS_F12 },      { 0, KEYS_ESC },
};

/* Each name as xterm sends it: the bytes of the key without modifiers. */
static const char *const plain_keys[] = {
    [KEYS_ESC] = "\033",       [KEYS_UP] = "\033[A",       [KEYS_DOWN] = "\033[B",
    [KEYS_RIGHT] = "\033[C",   [KEYS_LEFT] = "\033[D",     [KEYS_HOME] = "\033[H",
    [KEYS_END] = "\033[F",     [KEYS_PAGE_UP] = "\033[5~", [KEYS_PAGE_DOWN] = "\033[6~",
    [KEYS_INSERT] = "\033[2~", [KEYS_DELETE] = "\033[3~",  [KEYS_SHIFT_TAB] = "\033[Z",
    [KEYS_NEWLINE] = "\n",     [KEYS_F1] = "\033OP",       [KEYS_F2] = "\033OQ",
    [KEYS_F3] = "\033OR",      [KEYS_F4] = "\033OS",       [KEYS_F5] = "\033[15~",
    [KEYS_F6] = "\033[17~",    [KEYS_F7] = "\033[18~",     [KEYS_F8] = "\033[19~",
    [KEYS_F9] = "\033[20~",    [KEYS_F10] = "\033[21~",    [KEYS_F11] = "\033[23~",
    [KEYS_F12] = "\033[24~",
};

static void named(struct key *out, enum key_name name, unsigned mods)
{
    out->kind = KEYS_NAMED;
    out->name = name;
    out->mods = mods & (KEYS_SHIFT | KEYS_ALT | KEYS_CTRL);
    if (name == KEYS_SHIFT_TAB)
        out->mods &= ~(unsigned)KEYS_SHIFT;
}

static bool find_named(struct key *out, const struct named_key *keys, int code, unsigned mods)
{
    for (; keys->code != 0; keys++)
        if (keys->code == code) {
            named(out, keys->name, mods);
            return true;
        }
    return false;
}

/* Returns the character that a terminal without modes sends for Ctrl with a key: a control
 * character for letters and a few other keys, otherwise the character of the key itself.
 * 0xffff: it sends none. */
static uint32_t control_of(uint32_t c)
{
    static const char digits[] = "2345678", controls[] = "\0\033\034\035\036\037\177";
    const char *digit = c < 0x80 && c != 0 ? strchr(digits, (int)c) : NULL;

    if (digit != NULL)
        return (unsigned char)controls[digit - digits];
    if ((c >= '@' && c <= '_') || (c >= 'a' && c <= '~'))
        return c & 0x1f;
    switch (c) {
    case ' ': return 0;
    case '/': return 0x1f;
    case '?': return 0x7f;
    case 0x7f: return '\b';
    }
    return c < 0x80 ? c : 0xffff;
}

/* A key that is a character: mods are those held. */
static void typed(struct key *out, uint32_t c, unsigned mods)
{
    bool is_upper = ((mods & KEYS_SHIFT) != 0) != ((mods & MOD_CAPS) != 0);

    if ((mods & (MOD_SUPER | MOD_HYPER)) != 0 || c == 0 || c > 0x10ffff ||
        (c >= 0x80 && c < 0xa0) || (c >= 0xd800 && c < 0xf900))
        return;
    if ((mods & MOD_META) != 0)
        mods |= KEYS_ALT;
    if (c == ESC) {
        named(out, KEYS_ESC, 0);
        return;
    }
    if ((mods & KEYS_SHIFT) != 0 && (c == '\r' || c == '\t')) {
        named(out, c == '\r' ? KEYS_NEWLINE : KEYS_SHIFT_TAB, 0);
        return;
    }
    if ((mods & KEYS_CTRL) != 0)
        c = control_of(c);
    else if (is_upper)
        c = (uint32_t)utf8proc_toupper((utf8proc_int32_t)c);
    if (c == 0xffff)
        return;
    if (c == ESC) {
        named(out, KEYS_ESC, 0);
        return;
    }
    out->kind = KEYS_CHAR;
    out->ch = c;
    out->mods = mods & KEYS_ALT;
}

/* Write the bytes that xterm sends for this key in its ordinary mode. */
static void write_plain(struct key *out, unsigned char *plain)
{
    char *to = (char *)plain;
    const char *name;
    size_t n;

    if (out->kind == KEYS_CHAR) {
        n = (out->mods & KEYS_ALT) != 0 ? 1 : 0;
        *to = ESC;
        n += utf8_encode(out->ch, to + n);
    } else {
        name = plain_keys[out->name];
        n = strlen(name);
        if (out->mods == 0 || n < 3)
            n = (size_t)snprintf(to, KEY_PLAIN_MAX, "%s%s", out->mods & KEYS_ALT ? "\033" : "",
                                 name);
        else if (name[n - 1] == '~')
            n = (size_t)snprintf(to, KEY_PLAIN_MAX, "%.*s;%u~", (int)n - 1, name,
                                 out->mods + 1);
        else
            n = (size_t)snprintf(to, KEY_PLAIN_MAX, "\033[1;%u%c", out->mods + 1, name[n - 1]);
    }
    out->bytes = plain;
    out->n = n;
}

/* ---- control sequences ---- */

static void read_numbers(const unsigned char *p, size_t n, struct sequence *s)
{
    int part = 0;

    s->n = n > 0 ? 1 : 0;
    for (size_t i = 0; i < n; i++) {
        int *value = s->n <= MAX_PARAM && part < MAX_PART ? &s->number[s->n - 1][part] : NULL;

        if (p[i] == ';') {
            s->n++;
            part = 0;
        } else if (p[i] == ':') {
            part++;
        } else if (value != NULL && p[i] <= '9' && *value < MAX_NUMBER / 10) {
            *value = *value * 10 + (p[i] - '0');
        }
    }
}

/* Returns false if the sequence was cut off before its final byte. */
static bool read_sequence(const unsigned char *p, size_t n, struct sequence *s)
{
    size_t numbers;

    *s = (struct sequence){ 0 };
    if (n == 0)
        return false;
    s->final = p[--n];
    if (s->final < 0x40 && s->final != '$' && s->final != ' ')
        return false;
    if (n > 0 && p[0] >= '<' && p[0] <= '?') {
        s->prefix = *p++;
        n--;
    }
    for (numbers = 0; numbers < n && p[numbers] >= '0' && p[numbers] <= ';';)
        numbers++;
    if (numbers < n)
        s->middle = p[n - 1];
    read_numbers(p, numbers, s);
    return true;
}

/* Convert the modifiers of a sequence; 0 and 1 mean none. */
static unsigned mods_of(int number)
{
    return number > 1 ? (unsigned)(number - 1) & MOD_ALL : 0;
}

static void read_mouse(struct key *out, int b, int x, int y, bool released)
{
    enum mouse_what wheel = b & 1 ? MOUSE_WHEEL_DOWN : MOUSE_WHEEL_UP;
    int button = b & 3;

    /* 66 and 67 are the horizontal wheel, 128 and above the side buttons.  Motion without a
     * button has button 3. */
    if (b < 0 || b >= 128 || ((b & 64) != 0 && (released || (b & 2) != 0)) ||
        ((b & 64) == 0 && button == 3 && (b & 32) != 0))
        return;
    out->kind = KEYS_MOUSE;
    out->mouse.y = y > 0 ? y - 1 : 0;
    out->mouse.x = x > 0 ? x - 1 : 0;
    out->mouse.button = button;
    out->mods = (b & 4 ? KEYS_SHIFT : 0u) | (b & 8 ? KEYS_ALT : 0u) | (b & 16 ? KEYS_CTRL : 0u);
    out->mouse.what = (b & 64) != 0 ? wheel
                      : released    ? MOUSE_RELEASE
                      : b & 32      ? MOUSE_DRAG
                                    : MOUSE_PRESS;
}

/* The values after ESC [ M */
static void read_old_mouse(struct key *out, const unsigned char *p, size_t n)
{
    int value[3];
    size_t at = 0;

    for (int i = 0; i < 3; i++) {
        bool is_pair;

        if (at >= n)
            return;
        is_pair =
            p[at] >= 0xc2 && p[at] <= 0xdf && at + 1 < n && utf8_is_inside((char)p[at + 1]);
        value[i] = (is_pair ? (p[at] & 0x1f) << 6 | (p[at + 1] & 0x3f) : p[at]) - 32;
        at += is_pair ? 2 : 1;
    }
    read_mouse(out, value[0], value[1], value[2], (value[0] & 0x63) == 3);
}

/* kitty:  code : shifted : base ; modifiers : event ; text u */
static void read_kitty(struct key *out, const struct sequence *s)
{
    unsigned mods = mods_of(s->number[1][0]);
    int c = s->number[0][0], shifted = s->number[0][1], base = s->number[0][2];

    if (c >= 57399 && c <= 57416) { /* the keypad */
        typed(out, (unsigned char)"0123456789./*-+\r=,"[c - 57399], mods);
        return;
    }
    if (find_named(out, kitty_keys, c, mods))
        return;
    if (s->n >= 3 && s->number[2][0] != 0 && (mods & (KEYS_CTRL | KEYS_ALT)) == 0)
        typed(out, (uint32_t)s->number[2][0], mods & (MOD_SUPER | MOD_HYPER));
    else if ((mods & KEYS_CTRL) != 0 && c >= 0x80 && base != 0)
        typed(out, (uint32_t)base, mods);
    else if ((mods & KEYS_SHIFT) != 0 && shifted != 0)
        typed(out, (uint32_t)shifted, mods & ~((unsigned)KEYS_SHIFT | MOD_CAPS));
    else
        typed(out, (uint32_t)c, mods);
}

/* Windows Terminal:  key ; scan code ; character ; is pressed ; state ; repeats _ */
static void read_windows(struct key *out, const struct sequence *s)
{
    int state = s->number[4][0], c = s->number[2][0], key = s->number[0][0];
    unsigned mods = (state & 0x10 ? KEYS_SHIFT : 0u) | (state & 0x03 ? KEYS_ALT : 0u) |
                    (state & 0x0c ? KEYS_CTRL : 0u);

    if (s->number[3][0] == 0 || find_named(out, windows_keys, key, mods))
        return;
    if (key == 8)
        typed(out, 0x7f, mods);
    else if (key == '\r' || key == '\t')
        typed(out, (uint32_t)key, mods);
    else if (key == ' ' && (mods & KEYS_CTRL) != 0)
        typed(out, ' ', mods);
    else if (c >= 0x20 && (mods & KEYS_CTRL) != 0 && (mods & KEYS_ALT) != 0)
        typed(out, (uint32_t)c, 0); /* AltGr */
    else
        typed(out, (uint32_t)c, mods & KEYS_ALT);
}

/* A terminal answers questions, also those of an earlier program.  F3 is the only key with the
 * form of an answer: ESC [ 1 ; 2 R. */
static bool is_reply(const struct sequence *s)
{
    bool is_position = s->final == 'R' && s->n >= 2 &&
                       (s->number[0][0] > 1 || s->number[1][0] < 2 || s->number[1][0] > 16);

    if (s->prefix == '>')
        return s->final < 'A' || s->final > 'S';
    return s->prefix == '?' || s->prefix == '=' || is_position ||
           (s->middle != 0 && s->final == 'y') ||
           (s->middle == 0 && strchr("cntx", s->final) != NULL);
}

static void read_tilde(struct key *out, const struct sequence *s)
{
    unsigned mods = mods_of(s->number[1][0]);

    if (s->final == '^' || s->final == '@')
        mods |= KEYS_CTRL;
    if (s->final == '$' || s->final == '@')
        mods |= KEYS_SHIFT;
    if (s->final == '~' && s->number[0][0] == 27 && s->n == 3)
        typed(out, (uint32_t)s->number[2][0],
              (mods & MOD_SUPER) != 0 ? (mods & ~(unsigned)MOD_SUPER) | KEYS_ALT : mods);
    else if (s->final == '~' && s->number[0][0] == 200)
        out->kind = KEYS_PASTE; /* it begins here */
    else
        (void)find_named(out, tilde_keys, s->number[0][0], mods);
}

/* ESC [ A, ESC [ 1 ; 5 A, and the older ESC [ 5 A */
static void read_letter(struct key *out, const struct sequence *s)
{
    unsigned mods = mods_of(s->n == 1 ? s->number[0][0] : s->number[1][0]);

    if (s->final >= 'a' && s->final <= 'd') /* rxvt */
        (void)find_named(out, letter_keys, s->final - 0x20, mods | KEYS_SHIFT);
    else
        (void)find_named(out, letter_keys, s->final, mods);
}

static void read_csi(struct key *out, const unsigned char *p, size_t n)
{
    struct sequence s;

    if (n >= 1 && p[0] == 'M') {
        read_old_mouse(out, p + 1, n - 1);
        return;
    }
    if (n == 2 && p[0] == '[') { /* the Linux console: A to E are F1 to F5 */
        if (p[1] >= 'A' && p[1] <= 'E')
            named(out, KEYS_F1 + (p[1] - 'A'), 0);
        return;
    }
    if (!read_sequence(p, n, &s))
        return;
    if (s.final == 'M' || s.final == 'm') {
        if (s.n == 3 && s.prefix == '<')
            read_mouse(out, s.number[0][0], s.number[1][0], s.number[2][0], s.final == 'm');
        else if (s.n == 3 && s.prefix == 0 && s.final == 'M')
            read_mouse(out, s.number[0][0] - 32, s.number[1][0], s.number[2][0],
                       ((s.number[0][0] - 32) & 0x63) == 3);
    } else if (is_reply(&s)) {
        out->kind = KEYS_REPLY;
    } else if (n == 1 && (s.final == 'I' || s.final == 'O')) {
        out->kind = s.final == 'I' ? KEYS_FOCUS_IN : KEYS_FOCUS_OUT;
    } else if (s.middle != 0 || s.prefix == '<') {
        return;
    } else if (s.final == '_') {
        read_windows(out, &s);
    } else if (s.number[1][1] == 3) { /* a key was released */
        return;
    } else if (s.final == 'u') {
        read_kitty(out, &s);
    } else if (strchr("~^$@", s.final) != NULL) {
        read_tilde(out, &s);
    } else {
        read_letter(out, &s);
    }
}

/* Keys of the keypad in application mode, and of rxvt with Ctrl. */
static void read_ss3(struct key *out, const unsigned char *p, size_t n)
{
    static const char letters[] = " IMXjklmnopqrstuvwxy", keys[] = " \t\r=*+,-./0123456789";
    struct sequence s;
    const char *letter;
    unsigned mods;

    if (!read_sequence(p, n, &s))
        return;
    mods = mods_of(s.n == 1 ? s.number[0][0] : s.number[1][0]);
    letter = strchr(letters, s.final);
    if (letter != NULL)
        typed(out, (unsigned char)keys[letter - letters], mods);
    else if (s.final >= 'a' && s.final <= 'd')
        (void)find_named(out, letter_keys, s.final - 0x20, mods | KEYS_CTRL);
    else
        (void)find_named(out, letter_keys, s.final, mods);
}

/* ---- units ---- */

static void read_char(struct key *out, const unsigned char *p, size_t n, unsigned mods)
{
    uint32_t c;

    if (utf8_decode((const char *)p, n, &c) != n || c >= UTF8_SHORT || (c >= 0x80 && c < 0xa0))
        return;
    out->kind = KEYS_CHAR;
    out->ch = c;
    out->mods = mods;
}

static void read_unit(struct key *out, const unsigned char *p, size_t n)
{
    unsigned char kind;
    size_t head = introducer(p, n, &kind);

    if (n == 1 && p[0] == ESC)
        named(out, KEYS_ESC, 0);
    else if (head > 0 && head == n && p[0] == ESC) /* nothing followed: Alt with this key */
        read_char(out, p + 1, 1, KEYS_ALT);
    else if (head > 0 && kind == '[')
        read_csi(out, p + head, n - head);
    else if (head > 0 && kind == 'O')
        read_ss3(out, p + head, n - head);
    else if (head > 0)
        out->kind = KEYS_REPLY;
    else if (p[0] == ESC && p[1] == ESC) {
        read_unit(out, p + 1, n - 1);
        out->mods |= KEYS_ALT;
    } else if (p[0] == ESC)
        read_char(out, p + 1, n - 1, KEYS_ALT);
    else
        read_char(out, p, n, 0);
}

void key_unit_read(struct key *out, const unsigned char *p, size_t n, unsigned char *plain)
{
    *out = (struct key){ .kind = KEYS_UNKNOWN, .bytes = p, .n = n, .raw = p, .n_raw = n };
    read_unit(out, p, n);
    if (out->kind == KEYS_CHAR || out->kind == KEYS_NAMED)
        write_plain(out, plain);
}
