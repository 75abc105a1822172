#include "config.h"

#include "ui/term/keys.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "ui/term/key_unit.h"

#define BUFFER_BYTES 8192 /* more than KEY_UNIT_MAX */

static const char paste_end[] = "\033[201~";
#define PASTE_END_BYTES (sizeof paste_end - 1)

#define CTRL_C   3
#define TYPED_NS ((uint64_t)50 * 1000 * 1000)

struct keys {
    unsigned char buf[BUFFER_BYTES];
    size_t from, to;  /* buf[from .. to) is unread */
    uint64_t last_ns; /* when the last byte came */
    bool no_mouse;
    unsigned char unit[KEY_UNIT_MAX];   /* the unit returned last, as received */
    unsigned char plain[KEY_PLAIN_MAX]; /* and as key_unit_read writes it */
    bool is_skipping;                   /* the rest of a unit that was too long */

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
    k->no_mouse = !on;
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
    if (k->is_skipping && now_ns - k->last_ns >= KEYS_LATE_NS)
        k->is_skipping = false;
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

/* Returns how long the end of what has begun may take after its last byte. */
static uint64_t time_limit(const struct keys *k)
{
    if (k->pasting)
        return KEYS_PASTE_NS;
    return key_unit_is_short(k->buf + k->from, k->to - k->from) ? KEYS_ESC_NS : KEYS_LATE_NS;
}

uint64_t keys_wait(const struct keys *k, uint64_t now_ns)
{
    uint64_t limit, past = now_ns - k->last_ns;

    if (k->is_broken)
        return 0;
    if (k->from == k->to && !k->pasting)
        return UINT64_MAX;
    limit = time_limit(k);
    return past >= limit ? 0 : limit - past;
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

/* Drop the rest of a unit that was too long.  Returns false if its end has not arrived. */
static bool skip(struct keys *k, uint64_t now_ns)
{
    bool is_over;

    k->from += key_unit_rest(k->unit, k->buf + k->from, k->to - k->from, &is_over);
    if (!is_over && keys_wait(k, now_ns) > 0)
        return false;
    k->is_skipping = false;
    return true;
}

/* Returns the length of the next unit.  Input that stopped inside a unit ends it, but two Esc
 * are two keys.  0: more bytes may follow. */
static size_t next_bytes(const struct keys *k, uint64_t now_ns)
{
    const unsigned char *p = k->buf + k->from;
    size_t n = k->to - k->from, bytes = key_unit_bytes(p, n);

    if (bytes > 0 || keys_wait(k, now_ns) > 0)
        return bytes;
    return n == 2 && p[0] == '\033' && p[1] == '\033' ? 1 : n;
}

bool keys_next(struct keys *k, uint64_t now_ns, struct key *out)
{
    for (;;) {
        size_t bytes;

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
        if (k->is_skipping && !skip(k, now_ns))
            return false;
        if (k->from == k->to)
            return false;
        bytes = next_bytes(k, now_ns);
        if (bytes == 0)
            return false;
        memcpy(k->unit, k->buf + k->from, bytes);
        k->from += bytes;
        k->is_skipping = bytes == KEY_UNIT_MAX;
        key_unit_read(out, k->unit, bytes, k->plain);
        if (out->kind == KEYS_PASTE) {
            k->pasting = true;
            continue;
        }
        if (out->kind == KEYS_MOUSE && k->no_mouse)
            out->kind = KEYS_UNKNOWN;
        return true;
    }
}
