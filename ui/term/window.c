#include "config.h"

#include "ui/term/window.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"

static bool starts_with_any(const char *s, const char *const *names)
{
    for (; *names != NULL; names++)
        if (strncmp(s, *names, strlen(*names)) == 0)
            return true;
    return false;
}

bool window_is_known(const char *term)
{
    static const char *const names[] = { "alacritty", "contour", "Eterm", "foot",    "ghostty",
                                         "gnome",     "iterm",   "kitty", "konsole", "mintty",
                                         "mlterm",    "putty",   "rio",   "rxvt",    "screen",
                                         "st-",       "tmux",    "vte",   "wezterm", "xterm",
                                         NULL };

    return term != NULL && starts_with_any(term, names);
}

/* Copy text to at[n] without control characters, and with '?' for what ASCII does not have. */
static void plain(char *at, size_t n, const char *text, bool ascii)
{
    size_t left = strlen(text), used = 0;

    while (left > 0) {
        uint32_t cp;
        size_t len = utf8_decode(text, left, &cp);
        bool is_control = cp < 0x20 || (cp >= 0x7f && cp < 0xa0);

        if (ascii && cp >= 0x80 && !is_control && used + 1 < n) {
            at[used++] = '?';
        } else if (!is_control && used + len < n) {
            memcpy(at + used, text, len);
            used += len;
        }
        text += len;
        left -= len;
    }
    at[used] = '\0';
}

char *window_title(char *buf, size_t n, const char *text, bool ascii)
{
    char clean[160];

    plain(clean, sizeof clean, text, ascii);
    snprintf(buf, n, "\033]2;%s\a", clean);
    return buf;
}

static bool has(const char *name)
{
    return getenv(name) != NULL;
}

enum ui_notify window_way(enum ui_notify wish)
{
    static const char *const with_777[] = { "foot", "rxvt-unicode", "contour", NULL };
    static const char *const programs_777[] = { "WezTerm", "ghostty", "WarpTerminal", NULL };
    const char *term = getenv("TERM"), *program = getenv("TERM_PROGRAM");

    if (!window_is_known(term))
        return UI_NOTIFY_OFF;
    if (wish != UI_NOTIFY_AUTO)
        return wish;
    if (has("KITTY_WINDOW_ID") || strstr(term, "kitty") != NULL)
        return UI_NOTIFY_OSC99;
    if (starts_with_any(term, with_777) || has("VTE_VERSION") ||
        (program != NULL && starts_with_any(program, programs_777)))
        return UI_NOTIFY_OSC777;
    return UI_NOTIFY_OSC9;
}

/* Wrap a sequence: tmux gives it to the terminal outside, if its user allows that, and drops it
 * otherwise. */
static char *wrap_for_tmux(char *buf, size_t n, const char *sequence)
{
    size_t used = (size_t)snprintf(buf, n, "\033Ptmux;");

    for (; *sequence != '\0' && used + 5 < n; sequence++) {
        if (*sequence == '\033')
            buf[used++] = '\033';
        buf[used++] = *sequence;
    }
    snprintf(buf + used, n - used, "\033\\");
    return buf;
}

char *window_message(char *buf, size_t n, enum ui_notify way, const char *title,
                     const char *text, bool ascii)
{
    char name[60], clean[160], sequence[320];

    buf[0] = '\0';
    plain(name, sizeof name, title, ascii);
    plain(clean, sizeof clean, text, ascii);
    for (char *at = name; *at != '\0'; at++)
        if (*at == ';') /* it ends a title */
            *at = ',';
    switch (way) {
    case UI_NOTIFY_AUTO:
    case UI_NOTIFY_OFF: return buf;
    case UI_NOTIFY_OSC9:
        snprintf(sequence, sizeof sequence, "\033]9;%s: %s\a", name, clean);
        break;
    case UI_NOTIFY_OSC777:
        snprintf(sequence, sizeof sequence, "\033]777;notify;%s;%s\a", name, clean);
        break;
    case UI_NOTIFY_OSC99:
        snprintf(sequence, sizeof sequence,
                 "\033]99;i=memwall:d=0;%s\033\\\033]99;i=memwall:p=body;%s\033\\", name,
                 clean);
        break;
    }
    if (has("TMUX"))
        return wrap_for_tmux(buf, n, sequence);
    snprintf(buf, n, "%s", sequence);
    return buf;
}
