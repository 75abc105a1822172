/* The theme of the terminal, and the question for its background, which "auto" needs. */
#include "config.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <curses.h>

#include "engine/base/clock.h"
#include "ui/term/term_internal.h"

int term_find_theme(struct term *t, const char *name, struct err *e)
{
    struct theme theme;

    if (theme_find(&theme, name, t->config_dir, t->background == BACKGROUND_LIGHT, e) != 0)
        return -1;
    t->theme = theme;
    return 0;
}

void term_use_theme(struct term *t)
{
    static const struct ui_style plain;
    struct canvas_ink ink;
    cchar_t blank;

    ink_set_theme(t->ink, &t->theme);
    ink = ink_of(t->ink, plain);
    if (setcchar(&blank, L" ", 0, (short)ink.pair, NULL) == OK)
        wbkgrndset(stdscr, &blank);
    erase();
}

int term_set_theme(struct term *t, const char *name, struct err *e)
{
    if (term_find_theme(t, name, e) != 0)
        return -1;
    term_use_theme(t);
    return 0;
}

const char *term_theme(const struct term *t)
{
    return t->theme.name;
}

/* Read what there is.  Returns its bytes, with Enter as raw mode gives it. */
static size_t read_waiting(struct term *t, unsigned char *bytes, size_t room, uint64_t wait_ns)
{
    struct pollfd fd = { t->fd, POLLIN, 0 };
    struct timespec wait = { 0, (long)wait_ns };
    ssize_t n;

    if (ppoll(&fd, 1, &wait, NULL) <= 0)
        return 0;
    n = read(t->fd, bytes, room);
    for (ssize_t i = 0; i < n && t->typed_ahead > 0; i++, t->typed_ahead--)
        if (bytes[i] == '\n')
            bytes[i] = '\r';
    return n > 0 ? (size_t)n : 0;
}

/* Feed a unit that another decoder has read. */
static void feed_again(struct keys *keys, const struct key *key, uint64_t now)
{
    static const unsigned char begin[] = "\033[200~", end[] = "\033[201~";

    if (key->kind != KEYS_PASTE) {
        keys_feed(keys, key->raw, key->n_raw, now);
        return;
    }
    keys_feed(keys, begin, sizeof begin - 1, now);
    keys_feed(keys, key->bytes, key->n, now);
    keys_feed(keys, end, sizeof end - 1, now);
}

/* Take the units that arrived.  Those that answer no question are typed, so keys gets them.
 * Returns whether the last answer was among them. */
static bool take_replies(struct term *t, struct keys *arrived, uint64_t now, struct keys *keys)
{
    bool is_last = false;
    struct key key;

    while (keys_next(arrived, now, &key)) {
        enum background found = background_of_reply(&key);

        if (found != BACKGROUND_UNKNOWN)
            t->background = found;
        else if (background_is_last_reply(&key))
            is_last = true;
        else
            feed_again(keys, &key, now);
    }
    return is_last;
}

void term_ask_background(struct term *t, struct keys *keys)
{
    uint64_t now = clock_ns(), end = now + BACKGROUND_WAIT_NS;
    struct keys *arrived = keys_new();
    unsigned char bytes[512];
    size_t room = keys_room(keys);

    if (arrived == NULL)
        return;
    term_send_text(t, BACKGROUND_ASK);
    for (bool is_last = false; !is_last && now < end && room > sizeof bytes;) {
        size_t n = read_waiting(t, bytes, sizeof bytes, end - now);

        now = clock_ns();
        room -= n;
        keys_feed(arrived, bytes, n, now);
        is_last = take_replies(t, arrived, now, keys);
    }
    /* Give up on incomplete units: half an answer, or half a key. */
    take_replies(t, arrived, now + 2 * KEYS_PASTE_NS, keys);
    keys_free(arrived);
}

bool term_take_reply(struct term *t, const struct key *key)
{
    enum background found = background_of_reply(key);
    struct err ignored = ERR_INIT; /* the theme stays as it is */

    if (found == BACKGROUND_UNKNOWN || found == t->background)
        return false;
    t->background = found;
    return strcmp(t->theme.name, THEME_AUTO) == 0 &&
           term_set_theme(t, THEME_AUTO, &ignored) == 0;
}
