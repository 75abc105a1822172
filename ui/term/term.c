#include "config.h"

#include "ui/term/term.h"

#include <sys/ioctl.h>
#include <sys/signalfd.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <curses.h>

#include "engine/base/clock.h"
#include "ui/term/capability.h"
#include "ui/term/fatal.h"
#include "ui/term/modes.h"
#include "ui/term/term_internal.h"
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

/* Nothing reads the terminal until the screen is there, and on a new machine that takes seconds.
 * Keys are for the line then, so they are not shown before.  In the background, changing the
 * terminal would stop the program. */
static void hide_keys(struct term *t)
{
    struct termios quiet = t->modes;

    if (tcgetpgrp(t->fd) != getpgrp())
        return;
    fatal_arm(t->fd, &t->modes, "", 0, "");
    quiet.c_lflag &= ~(tcflag_t)(ECHO | ECHONL);
    (void)tcsetattr(t->fd, TCSANOW, &quiet);
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
    t->is_ascii = !term_choose_locale(o->ui, name) || o->ui->ascii;
    t->wants_mouse = !o->ui->no_mouse;
    t->syncs = o->ui->sync_frames;
    t->color = o->ui->color;
    t->background = background_of_colorfgbg(getenv("COLORFGBG"));
    if (o->log_path != NULL)
        snprintf(t->log_path, sizeof t->log_path, "%s", o->log_path);
    if (term_find_theme(t, o->ui->theme == NULL ? THEME_AUTO : o->ui->theme, e) != 0)
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
    hide_keys(t);
    *out = t;
    return 0;

fail:
    term_free(t);
    return -1;
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

void term_send_text(struct term *t, const char *s)
{
    term_send(t, s, strlen(s));
}

static void send_frame(void *ctx, const char *bytes, size_t n)
{
    term_send(ctx, bytes, n);
}

void term_show_screen(struct term *t)
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
        term_send_text(t, WINDOW_PUSH);
    t->pushed_title = true;
    term_send_text(t, window_title(bytes, sizeof bytes, t->title, t->is_ascii));
}

static void restore_title(struct term *t)
{
    if (t->pushed_title)
        term_send_text(t, WINDOW_POP);
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

void term_modes_on(struct term *t)
{
    if (t->is_up)
        term_send_text(t, modes_pop_keys(getenv("TERM")));
    term_send_text(t, modes_push_keys(getenv("TERM")));
    term_send_text(t, ORIGIN_OFF MODES_ON WHEEL_QUIET);
    if (t->wants_mouse)
        term_send_text(t, MOUSE_ON);
    t->is_up = true;
    show_title(t);
}

void term_modes_off(struct term *t)
{
    catch_settle(&t->catch, send_frame, t);
    if (t->is_up) {
        restore_title(t);
        term_send_text(t, FRAME_END MOUSE_OFF MODES_OFF WHEEL_AGAIN);
        term_send_text(t, modes_pop_keys(getenv("TERM")));
    }
    t->is_up = false;
}

void term_resized(struct term *t)
{
    int rows, cols;

    term_measure(t, &rows, &cols);
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
    t->screen = term_new_screen(t);
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
    term_send_text(t, modes_known(getenv("TERM")));
    colors = term_choose_colors(t); /* sets COLORS and COLOR_PAIRS */
    ink_init(t->ink, colors, COLORS, COLOR_PAIRS);
    if (colors != UI_COLOR_NONE && background_can_ask(getenv("TERM"), getenv("TMUX") != NULL))
        term_ask_background(t, keys);
    if (strcmp(t->theme.name, THEME_AUTO) == 0 && term_find_theme(t, THEME_AUTO, e) != 0)
        return -1;
    term_use_theme(t);
    catch_open(&t->catch, fileno(t->out), t->fd, colors >= UI_COLOR_256);
    t->target = canvas_on_window(stdscr, t->is_ascii, ink_of, t->ink, e);
    if (t->target == NULL)
        return -1;
    arm(t);
    point_output_at_log(t);
    term_show_screen(t);
    term_modes_on(t);
    term_resized(t);
    return 0;
}

/* A terminal without a second screen keeps the picture, and the next text begins on its last row,
 * which has the status bar. */
void term_end_screen(struct term *t)
{
    char bytes[40] = "\r";

    endwin();
    if (capability_add(bytes, 1, sizeof bytes, "rmcup") == 1)
        term_send(t, bytes, capability_add(bytes, 1, sizeof bytes, "el"));
}

void term_drop_typed(struct term *t)
{
    (void)tcflush(t->fd, TCIFLUSH);
}

void term_free(struct term *t)
{
    if (t == NULL)
        return;
    if (t->screen != NULL) {
        term_modes_off(t);
        term_end_screen(t);
        point_output_back(t);
        delscreen(t->screen);
    }
    if (t->fd >= 0) {
        tcsetattr(t->fd, TCSADRAIN, &t->modes);
        fatal_disarm();
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
        term_send_text(t, FRAME_BEGIN);
    catch_begin(&t->catch);
    curs_set(y >= 0);
    if (y >= 0)
        move(y, x);
    wnoutrefresh(stdscr);
    doupdate();
    catch_end(&t->catch, send_frame, t);
    if (is_large || t->syncs)
        term_send_text(t, FRAME_END);
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

bool term_read(struct term *t, struct keys *k)
{
    unsigned char bytes[1024];
    size_t room = keys_room(k);
    ssize_t n = read(term_fd(t), bytes, room < sizeof bytes ? room : sizeof bytes);

    if (n > 0)
        keys_feed(k, bytes, (size_t)n, clock_ns());
    return n > 0 || (n < 0 && errno == EINTR);
}

void term_set_mouse(struct term *t, bool on)
{
    t->wants_mouse = on;
    term_send_text(t, on ? MOUSE_ON : MOUSE_OFF);
}
