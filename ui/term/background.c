#include "config.h"

#include "ui/term/background.h"

#include <stdlib.h>
#include <string.h>

#include "engine/memwall.h"
#include "ui/term/window.h"

bool background_can_ask(const char *term, bool in_tmux)
{
    return window_is_known(term) && (in_tmux || strncmp(term, "screen", 6) != 0);
}

/* Read 1 to 4 hexadecimal digits as a share of their maximum, 0 to 255, or -1. */
static int read_part(const char **at)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    size_t n = strspn(*at, digits);
    char text[5] = "";
    long value;

    if (n < 1 || n > 4)
        return -1;
    memcpy(text, *at, n);
    *at += n;
    value = strtol(text, NULL, 16);
    return (int)(value * 255 / ((1L << 4 * n) - 1));
}

enum background background_of_reply(const struct key *key)
{
    static const char head[] = "\033]11;rgb";
    char text[48];
    const char *at;
    int part[3];

    if (key->kind != KEYS_REPLY || key->n <= sizeof head || key->n >= sizeof text ||
        memcmp(key->bytes, head, sizeof head - 1) != 0)
        return BACKGROUND_UNKNOWN;
    memcpy(text, key->bytes, key->n);
    text[key->n] = '\0';
    at = text + sizeof head - 1;
    at += *at == 'a'; /* rgba: has a fourth part */
    for (int i = 0; i < 3; i++) {
        if (*at++ != (i == 0 ? ':' : '/') || (part[i] = read_part(&at)) < 0)
            return BACKGROUND_UNKNOWN;
    }
    /* Above the middle, black text has more contrast than white. */
    return 2126 * part[0] + 7152 * part[1] + 722 * part[2] > 10000 * 127 ? BACKGROUND_LIGHT
                                                                         : BACKGROUND_DARK;
}

bool background_is_last_reply(const struct key *key)
{
    return key->kind == KEYS_REPLY && key->n > 2 && key->bytes[1] == '[' &&
           key->bytes[key->n - 1] == 'c';
}

enum background background_of_colorfgbg(const char *value)
{
    const char *last = value == NULL ? NULL : strrchr(value, ';');
    uint64_t n;

    if (last == NULL || !units_parse_whole(last + 1, false, 0, 15, &n))
        return BACKGROUND_UNKNOWN;
    return n == 7 || n > 8 ? BACKGROUND_LIGHT : BACKGROUND_DARK;
}
