#include "config.h"

#include "ui/term/term.h"

#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <curses.h>
#include <termios.h>

#include "engine/base/clock.h"
#include "ui/term/background.h"
#include "ui/term/capability.h"
#include "ui/term/catch.h"
#include "ui/term/direct.h"
#include "ui/term/fatal.h"
#include "ui/term/ink.h"
#include "ui/term/modes.h"
#include "ui/term/window.h"

#define ORIGIN_OFF  "\033[?6l" /* rows are counted from the top of the screen */
#define MODES_ON    "\033[?2004h\033[?1004h"
#define MODES_OFF   "\033[?1004l\033[?2004l"
#define MOUSE_ON    "\033[?1002h\033[?1006h"
#define MOUSE_OFF   "\033[?1006l\033[?1002l"
#define WHEEL_QUIET "\033[?1007l" /* wheel events must not become arrow keys */
#define WHEEL_AGAIN "\033[?1007h"
#define FRAME_BEGIN "\033[?2026h"
#define FRAME_END   "\033[?2026l"

struct term {
    int fd, signal_fd;
    FILE *in, *out;
    struct termios modes; /* before term_new */
    sigset_t mask;        /* before term_new */
    size_t typed_ahead;
    int kept[2]; /* copies of descriptors 1 and 2; -1: not redirected */
    char log_path[400];
    SCREEN *screen;
    bool is_up;        /* the alternate screen is shown */
    char title[160];   /* of the window; "": the one before */
    bool pushed_title; /* and the one before is on the terminal's stack */
    bool is_cut;       /* the terminal is larger than CANVAS_MAX_CELLS */
    bool is_ascii, wants_mouse, syncs;
    enum ui_color_wish color;
    const char *config_dir;
    struct theme theme;
    enum background background;
    struct ink *ink;
    struct canvas_target *target;
    struct catch catch;
    struct term_counts counts;
};

/* ---- locale ---- */

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

/* Set only LC_CTYPE: LC_ALL could change the decimal point in files.  readline reads the
 * environment and sets LC_CTYPE again, so the environment must agree. */
static bool choose_locale(const struct ui_options *ui, const char *name)
{
    setlocale(LC_CTYPE, "");
    if (strcasecmp(nl_langinfo(CODESET), "UTF-8") == 0)
        return true;
    return (ui->utf8 || surely_utf8(name)) && setlocale(LC_CTYPE, "C.UTF-8") != NULL &&
           setenv("LC_ALL", "C.UTF-8", 1) == 0;
}

/* ---- opening ---- */

static int block_signals(struct term *t, struct err *e)
{
    static const int wanted[] = {
        SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT
    };
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        sigaddset(&set, wanted[i]);
    t->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (t->signal_fd < 0)
        return err_sys(e, "cannot make a descriptor for signals");
    pthread_sigmask(SIG_BLOCK, &set, &t->mask);
    signal(SIGPIPE, SIG_IGN);
    return 0;
}

static int find_theme(struct term *t, const char *name, struct err *e)
{
    struct theme theme;

    if (theme_find(&theme, name, t->config_dir, t->background == BACKGROUND_LIGHT, e) != 0)
        return -1;
    t->theme = theme;
    return 0;
}

int term_new(struct term **out, const struct term_options *o, struct err *e)
{
    const char *name = getenv("TERM");
    struct term *t;
    int in, copy;

    *out = NULL;
    if (name == NULL || *name == '\0' || strcmp(name, "dumb") == 0)
        return err_set(e, ERR_UNSUPPORTED, "TERM is \"%s\", which cannot be drawn on",
                       name == NULL ? "" : name);
    t = calloc(1, sizeof *t);
    if (t == NULL)
        return err_memory(e, "the terminal");
    t->config_dir = o->config_dir;
    t->fd = t->signal_fd = t->kept[0] = t->kept[1] = t->catch.file = -1;
    t->is_ascii = !choose_locale(o->ui, name) || o->ui->ascii;
    t->wants_mouse = !o->ui->no_mouse;
    t->syncs = o->ui->sync_frames;
    t->color = o->ui->color;
    t->background = background_of_colorfgbg(getenv("COLORFGBG"));
    if (o->log_path != NULL)
        snprintf(t->log_path, sizeof t->log_path, "%s", o->log_path);
    if (find_theme(t, o->ui->theme == NULL ? THEME_AUTO : o->ui->theme, e) != 0)
        goto fail;
    t->fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (t->fd < 0 || tcgetattr(t->fd, &t->modes) != 0) {
        err_sys(e, "cannot open the terminal");
        goto fail;
    }
    in = fcntl(t->fd, F_DUPFD_CLOEXEC, 3);
    copy = fcntl(t->fd, F_DUPFD_CLOEXEC, 3);
    t->in = in < 0 ? NULL : fdopen(in, "r");
    t->out = copy < 0 ? NULL : fdopen(copy, "w");
    if (t->in == NULL || t->out == NULL) {
        err_sys(e, "cannot open the terminal twice");
        goto fail;
    }
    if (block_signals(t, e) != 0)
        goto fail;
    *out = t;
    return 0;

fail:
    term_free(t);
    return -1;
}

/* Read a size from the environment, for serial lines that report none; 0 if unset. */
static int from_environment(const char *name)
{
    const char *text = getenv(name);
    long n = text != NULL ? strtol(text, NULL, 10) : 0;

    return n > 0 && n <= 1000 ? (int)n : 0;
}

/* Get the size of the terminal, reduced to CANVAS_MAX_CELLS. */
static void measure(struct term *t, int *rows, int *cols)
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

    setenv(name, value, 1);
    return before;
}

static void put_back(const char *name, char *before)
{
    if (before != NULL)
        setenv(name, before, 1);
    else
        unsetenv(name);
    free(before);
}

/* ncurses allocates for the whole terminal at once; only these variables limit it. */
static SCREEN *new_cut_screen(struct term *t, const char *name)
{
    static const char *const names[] = { "LINES", "COLUMNS" };
    char *before[2], number[16];
    SCREEN *s;
    int size[2];

    measure(t, &size[0], &size[1]);
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

/* Over ssh from a newer terminal the terminfo entry may be missing: use a similar one. */
static SCREEN *new_screen(struct term *t)
{
    static const char *const cousins[] = { "alacritty", "contour", "foot",  "ghostty", "kitty",
                                           "rio",       "wezterm", "xterm", NULL };
    const char *name = getenv("TERM");
    SCREEN *s = new_named_screen(t, name);

    if (s == NULL && starts_with_any(name, cousins))
        s = new_named_screen(t, "xterm-256color");
    return s;
}

static enum ui_colors choose_colors(const struct term *t)
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

/* Redirect the output of libraries to the log while the screen is up. */
static void point_output_at_log(struct term *t)
{
    const char *path = t->log_path[0] != '\0' ? t->log_path : "/dev/null";
    int log =
        open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);

    if (log < 0)
        log = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (log < 0)
        return;
    for (int i = 0; i < 2; i++) {
        t->kept[i] = fcntl(i + 1, F_DUPFD_CLOEXEC, 3);
        if (t->kept[i] >= 0)
            dup2(log, i + 1);
    }
    close(log);
}

static void point_output_back(struct term *t)
{
    fflush(stdout);
    for (int i = 0; i < 2; i++) {
        if (t->kept[i] < 0)
            continue;
        dup2(t->kept[i], i + 1);
        close(t->kept[i]);
        t->kept[i] = -1;
    }
}

/* Prepare the bytes that leave the alternate screen after a crash. */
static void arm(struct term *t)
{
    static const char *const names[] = { "sgr0", "rmkx", "rmcup", "cnorm" };
    char line[480], bytes[400];
    size_t n = (size_t)snprintf(
        bytes, sizeof bytes, "%s%s%s", FRAME_END MOUSE_OFF MODES_OFF WHEEL_AGAIN,
        t->pushed_title ? WINDOW_POP : "", modes_pop_keys(getenv("TERM")));

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        n = capability_add(bytes, n, sizeof bytes, names[i]);
    snprintf(line, sizeof line, "\r\nmemwall %s crashed; the chat is saved%s%s", mw_version(),
             t->log_path[0] != '\0' ? ", what was printed is in " : "", t->log_path);
    fatal_arm(t->fd, &t->modes, bytes, n, line);
}

void term_send(struct term *t, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t done = write(t->fd, bytes, n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return;
        t->counts.bytes += (uint64_t)done;
        bytes += done;
        n -= (size_t)done;
    }
}

static void send_text(struct term *t, const char *s)
{
    term_send(t, s, strlen(s));
}

static void send_frame(void *ctx, const char *bytes, size_t n)
{
    term_send(ctx, bytes, n);
}

/* Enter the alternate screen, which ncurses does before it draws.  The modes of the keyboard
 * belong to this screen. */
static void show_screen(struct term *t)
{
    catch_begin(&t->catch);
    erase();
    wnoutrefresh(stdscr);
    doupdate();
    catch_end(&t->catch, send_frame, t);
}

/* ---- the title of the window ---- */

static void show_title(struct term *t)
{
    char bytes[200];

    if (t->title[0] == '\0' || !window_is_known(getenv("TERM")))
        return;
    if (!t->pushed_title)
        send_text(t, WINDOW_PUSH);
    t->pushed_title = true;
    send_text(t, window_title(bytes, sizeof bytes, t->title, t->is_ascii));
}

static void restore_title(struct term *t)
{
    if (t->pushed_title)
        send_text(t, WINDOW_POP);
    t->pushed_title = false;
}

void term_set_title(struct term *t, const char *text)
{
    bool was_pushed = t->pushed_title;

    if (strncmp(t->title, text, sizeof t->title - 1) == 0)
        return;
    snprintf(t->title, sizeof t->title, "%s", text);
    if (t->title[0] == '\0')
        restore_title(t);
    else if (t->is_up)
        show_title(t);
    if (t->pushed_title != was_pushed)
        arm(t);
}

/* After SIGSTOP, which a program cannot catch, the mode of the keyboard is still pushed. */
static void modes_on(struct term *t)
{
    if (t->is_up)
        send_text(t, modes_pop_keys(getenv("TERM")));
    send_text(t, modes_push_keys(getenv("TERM")));
    send_text(t, ORIGIN_OFF MODES_ON WHEEL_QUIET);
    if (t->wants_mouse)
        send_text(t, MOUSE_ON);
    t->is_up = true;
    show_title(t);
}

static void modes_off(struct term *t)
{
    catch_settle(&t->catch, send_frame, t);
    if (t->is_up) {
        restore_title(t);
        send_text(t, FRAME_END MOUSE_OFF MODES_OFF WHEEL_AGAIN);
        send_text(t, modes_pop_keys(getenv("TERM")));
    }
    t->is_up = false;
}

/* ---- the background ---- */

static void use_theme(struct term *t)
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

static void ask_background(struct term *t, struct keys *keys)
{
    uint64_t now = clock_ns(), end = now + BACKGROUND_WAIT_NS;
    struct keys *arrived = keys_new();
    unsigned char bytes[512];
    size_t room = keys_room(keys);

    if (arrived == NULL)
        return;
    send_text(t, BACKGROUND_ASK);
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

/* Read the size again and redraw everything. */
static void resized(struct term *t)
{
    int rows, cols;

    measure(t, &rows, &cols);
    resizeterm(rows, cols);
    /* Redraw even if the size is unchanged: the terminal may have resized twice. */
    clearok(curscr, TRUE);
    erase();
}

int term_start(struct term *t, struct keys *keys, struct err *e)
{
    static const int defaults[] = { SIGINT, SIGTERM, SIGTSTP, SIGWINCH };
    enum ui_colors colors;
    int waiting = 0;

    t->ink = malloc(sizeof *t->ink);
    if (t->ink == NULL)
        return err_memory(e, "colours");
    t->screen = new_screen(t);
    if (t->screen == NULL)
        return err_set(e, ERR_UNSUPPORTED, "terminfo has no entry for the terminal \"%.60s\"",
                       getenv("TERM"));
    /* ncurses installs handlers; we read signals from the descriptor instead. */
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++)
        signal(defaults[i], SIG_DFL);
    if (ioctl(t->fd, FIONREAD, &waiting) == 0 && waiting > 0)
        t->typed_ahead = (size_t)waiting;
    raw();
    noecho();
    nonl();
    typeahead(-1);
    send_text(t, modes_known(getenv("TERM")));
    colors = choose_colors(t); /* sets COLORS and COLOR_PAIRS */
    ink_init(t->ink, colors, COLORS, COLOR_PAIRS);
    if (colors != UI_COLOR_NONE && background_can_ask(getenv("TERM"), getenv("TMUX") != NULL))
        ask_background(t, keys);
    if (strcmp(t->theme.name, THEME_AUTO) == 0 && find_theme(t, THEME_AUTO, e) != 0)
        return -1;
    use_theme(t);
    catch_open(&t->catch, fileno(t->out), t->fd, colors >= UI_COLOR_256);
    t->target = canvas_on_window(stdscr, t->is_ascii, ink_of, t->ink, e);
    if (t->target == NULL)
        return -1;
    arm(t);
    point_output_at_log(t);
    show_screen(t);
    modes_on(t);
    resized(t);
    return 0;
}

void term_free(struct term *t)
{
    if (t == NULL)
        return;
    if (t->screen != NULL) {
        modes_off(t);
        endwin();
        fatal_disarm();
        point_output_back(t);
        delscreen(t->screen);
    }
    if (t->fd >= 0) {
        tcsetattr(t->fd, TCSADRAIN, &t->modes);
        close(t->fd);
    }
    if (t->in != NULL)
        fclose(t->in);
    if (t->out != NULL)
        fclose(t->out);
    catch_close(&t->catch);
    if (t->signal_fd >= 0) {
        close(t->signal_fd);
        pthread_sigmask(SIG_SETMASK, &t->mask, NULL);
    }
    canvas_target_free(t->target);
    free(t->ink);
    free(t);
}

/* ---- queries ---- */

FILE *term_in(struct term *t)
{
    return t->in;
}

size_t term_typed_ahead(const struct term *t)
{
    return t->typed_ahead;
}

int term_fd(const struct term *t)
{
    return t->fd;
}

int term_signal_fd(const struct term *t)
{
    return t->signal_fd;
}

int term_signal(struct term *t)
{
    struct signalfd_siginfo info;

    return read(t->signal_fd, &info, sizeof info) == (ssize_t)sizeof info ? (int)info.ssi_signo
                                                                          : 0;
}

bool term_is_ascii(const struct term *t)
{
    return t->is_ascii;
}

enum ui_graph term_graph(const struct term *t)
{
    const char *name = getenv("TERM");

    if (t->is_ascii)
        return UI_GRAPH_ASCII;
    return name != NULL && strncmp(name, "linux", 5) == 0 ? UI_GRAPH_BLOCK : UI_GRAPH_BRAILLE;
}

int term_set_theme(struct term *t, const char *name, struct err *e)
{
    if (find_theme(t, name, e) != 0)
        return -1;
    use_theme(t);
    return 0;
}

const char *term_theme(const struct term *t)
{
    return t->theme.name;
}

struct term_counts term_counts(const struct term *t)
{
    return t->counts;
}

/* ---- drawing ---- */

struct canvas term_canvas(struct term *t)
{
    return canvas_of(t->target);
}

void term_frame(struct term *t, int y, int x, bool is_large)
{
    if (is_large || t->syncs)
        send_text(t, FRAME_BEGIN);
    catch_begin(&t->catch);
    curs_set(y >= 0);
    if (y >= 0)
        move(y, x);
    wnoutrefresh(stdscr);
    doupdate();
    catch_end(&t->catch, send_frame, t);
    if (is_large || t->syncs)
        send_text(t, FRAME_END);
    t->counts.frames++;
}

bool term_is_cut(const struct term *t)
{
    return t->is_cut;
}

void term_redraw(struct term *t)
{
    (void)t;
    clearok(curscr, TRUE);
}

void term_redraw_rows(struct term *t, int y, int n)
{
    (void)t;
    if (n > 0)
        wredrawln(stdscr, y, n);
}

/* ---- suspend and resume ---- */

static void leave(struct term *t)
{
    modes_off(t);
    def_prog_mode();
    endwin();
    tcsetattr(t->fd, TCSADRAIN, &t->modes);
}

/* Set up the screen again, also after the process was stopped by SIGSTOP. */
static void retake(struct term *t)
{
    reset_prog_mode();
    clearok(curscr, TRUE);
    send_text(t, modes_known(getenv("TERM")));
    show_screen(t);
    modes_on(t);
    resized(t);
}

void term_stop(struct term *t)
{
    sigset_t stop;

    leave(t);
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    kill(0, SIGTSTP);
    pthread_sigmask(SIG_UNBLOCK, &stop, NULL); /* here the program stops */
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
    retake(t);
}

bool term_obey(struct term *t, int sig)
{
    switch (sig) {
    case SIGWINCH: resized(t); return true;
    case SIGTSTP: term_stop(t); return true;
    case SIGCONT: retake(t); return true;
    default: return false;
    }
}

bool term_read(struct term *t, struct keys *k)
{
    unsigned char bytes[1024];
    size_t room = keys_room(k);
    ssize_t n = read(term_fd(t), bytes, room < sizeof bytes ? room : sizeof bytes);

    if (n > 0)
        keys_feed(k, bytes, (size_t)n, clock_ns());
    return n > 0 || (n < 0 && errno == EINTR);
}

/* Our standard output and error are the log, so the child gets the terminal as descriptors
 * 0 to 2.  Its signal mask is empty. */
static int spawn(struct term *t, char *const argv[], pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, defaults;
    int rc;

    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    sigaddset(&defaults, SIGXFSZ);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attr);
    for (int i = 0; i < 3; i++)
        posix_spawn_file_actions_adddup2(&files, t->fd, i);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &defaults);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    rc = posix_spawnp(pid, argv[0], &files, &attr, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    return rc;
}

int term_run(struct term *t, char *const argv[], struct err *e)
{
    int rc, status = 0, sig;
    pid_t pid;

    leave(t);
    rc = spawn(t, argv, &pid);
    if (rc == 0)
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    retake(t);
    if (rc != 0) {
        errno = rc;
        return err_sys(e, "cannot start \"%s\"", argv[0]);
    }
    /* Ctrl-C was meant for the child; keep signals that end this program. */
    for (bool ends = false; !ends && (sig = term_signal(t)) != 0;)
        if (sig == SIGTERM || sig == SIGHUP) {
            ends = true;
            raise(sig);
        }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void term_set_mouse(struct term *t, bool on)
{
    t->wants_mouse = on;
    send_text(t, on ? MOUSE_ON : MOUSE_OFF);
}
