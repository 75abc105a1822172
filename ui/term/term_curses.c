/* The screen of ncurses: its locale, size, entry of terminfo and colours. */
#include "config.h"

#include <sys/ioctl.h>

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <curses.h>
#include <termios.h>

#include "ui/term/capability.h"
#include "ui/term/direct.h"
#include "ui/term/environment.h"
#include "ui/term/term_internal.h"

static bool starts_with_any(const char *s, const char *const *names)
{
    for (; *names != NULL; names++)
        if (strncmp(s, *names, strlen(*names)) == 0)
            return true;
    return false;
}

/* Does this terminal certainly use UTF-8, even if the locale is missing? */
static bool surely_utf8(const char *name)
{
    static const char *const names[] = { "alacritty", "contour",     "foot",          "ghostty",
                                         "konsole",   "rio",         "tmux",          "vte",
                                         "wezterm",   "xterm-kitty", "xterm-ghostty", NULL };
    static const char *const signs[] = { "VTE_VERSION",     "KONSOLE_VERSION", "WT_SESSION",
                                         "KITTY_WINDOW_ID", "COLORTERM",       NULL };

    if (starts_with_any(name, names))
        return true;
    for (size_t i = 0; signs[i] != NULL; i++)
        if (getenv(signs[i]) != NULL)
            return true;
    return false;
}

bool term_choose_locale(const struct ui_options *ui, const char *name)
{
    bool shows = ui->utf8 || surely_utf8(name);

    setlocale(LC_CTYPE, "");
    if (strcasecmp(nl_langinfo(CODESET), "UTF-8") == 0)
        return true;
    /* Also for other terminals: in their locale, readline takes the bytes of characters for Meta
     * keys. */
    return setlocale(LC_CTYPE, "C.UTF-8") != NULL && environment_set("LC_ALL", "C.UTF-8") && shows;
}

/* Read a size from the environment, for serial lines that report none; 0 if unset. */
static int from_environment(const char *name)
{
    const char *text = getenv(name);
    long n = text != NULL ? strtol(text, NULL, 10) : 0;

    return n > 0 && n <= 1000 ? (int)n : 0;
}

void term_measure(struct term *t, int *rows, int *cols)
{
    struct winsize size = { 0 };
    int height, width;

    (void)ioctl(t->fd, TIOCGWINSZ, &size);
    height = size.ws_row > 0 ? size.ws_row : from_environment("LINES");
    width = size.ws_col > 0 ? size.ws_col : from_environment("COLUMNS");
    *rows = height = height > 0 ? height : 24;
    *cols = width = width > 0 ? width : 80;
    canvas_fit(rows, cols);
    t->is_cut = *rows < height || *cols < width;
}

/* Set a variable.  Returns its value before, for put_back. */
static char *set_variable(const char *name, const char *value)
{
    const char *text = getenv(name);
    char *before = text != NULL ? strdup(text) : NULL;

    (void)environment_set(name, value);
    return before;
}

static void put_back(const char *name, char *before)
{
    (void)environment_set(name, before);
    free(before);
}

/* ncurses allocates for the whole terminal at once; only these variables limit it. */
static SCREEN *new_cut_screen(struct term *t, const char *name)
{
    static const char *const names[] = { "LINES", "COLUMNS" };
    char *before[2], number[16];
    SCREEN *s;
    int size[2];

    term_measure(t, &size[0], &size[1]);
    for (int i = 0; i < 2; i++) {
        snprintf(number, sizeof number, "%d", size[i]);
        before[i] = set_variable(names[i], number);
    }
    s = newterm(name, t->out, t->in);
    for (int i = 0; i < 2; i++)
        put_back(names[i], before[i]);
    return s;
}

static bool wants_colour(const struct term *t)
{
    const char *no_color = getenv("NO_COLOR");

    return t->color != UI_COLOR_NEVER &&
           (t->color != UI_COLOR_AUTO || no_color == NULL || *no_color == '\0');
}

/* A screen with true colour, where the terminal promises it; else with the colours of its
 * entry.  NULL: there is no entry with this name. */
static SCREEN *new_named_screen(struct term *t, const char *name)
{
    bool is_direct = wants_colour(t) && direct_is_promised(getenv("TERM"));
    char *entry = is_direct ? direct_entry(name) : NULL, *before;
    SCREEN *s = NULL;

    if (entry != NULL) {
        before = set_variable("TERMINFO", entry);
        s = new_cut_screen(t, name);
        put_back("TERMINFO", before);
    }
    free(entry);
    return s != NULL ? s : new_cut_screen(t, name);
}

SCREEN *term_new_screen(struct term *t)
{
    static const char *const cousins[] = { "alacritty", "contour", "foot",  "ghostty", "kitty",
                                           "rio",       "wezterm", "xterm", NULL };
    const char *name = getenv("TERM");
    SCREEN *s = new_named_screen(t, name);

    if (s == NULL && starts_with_any(name, cousins))
        s = new_named_screen(t, "xterm-256color");
    return s;
}

enum ui_colors term_choose_colors(const struct term *t)
{
    if (!wants_colour(t)) /* start_color would set white on black */
        return UI_COLOR_NONE;
    if (!has_colors() || start_color() != OK)
        return UI_COLOR_NONE;
    use_default_colors();
    if (capability_is_rgb())
        return UI_COLOR_RGB;
    return COLORS >= 256 ? UI_COLOR_256 : UI_COLOR_16;
}
