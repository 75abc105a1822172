#include "config.h"

#include "tests/lib/pty_screen.h"

#include <sys/ioctl.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <utmp.h>

#include <termios.h>
#include <vterm.h>

#ifndef WAIT_MS
#define WAIT_MS 60000 /* maximum time of every wait; sanitizers on a busy machine are slow */
#endif

struct pty_screen {
    int master;
    pid_t pid;
    bool has_ended;
    int status;
    VTerm *vt;
    VTermScreen *screen;
    bool is_alternate;
    int rows, cols;
    const char *background;
    char *raw; /* all bytes that were read */
    size_t n_raw, room;
    size_t n_shown;       /* how many of them the screen has got */
    bool is_gone;         /* the other end is closed */
    bool is_in_frame;     /* inside a bracketed frame, which is shown only in part */
    struct termios modes; /* terminal modes before the program started */
    char row[4096];
};

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- bytes in and out ---- */

static bool keep_raw(struct pty_screen *s, const char *bytes, size_t n)
{
    if (s->n_raw + n > s->room) {
        size_t room = (s->n_raw + n) * 2;
        char *more = realloc(s->raw, room);

        if (more == NULL)
            return false;
        s->raw = more;
        s->room = room;
    }
    memcpy(s->raw + s->n_raw, bytes, n);
    s->n_raw += n;
    return true;
}

/* Keep output of the program without showing it yet. */
static bool read_more(struct pty_screen *s, int timeout_ms)
{
    struct pollfd fd = { s->master, POLLIN, 0 };
    char bytes[16384];
    ssize_t n;

    if (poll(&fd, 1, timeout_ms) <= 0) /* also after a hang-up */
        return false;
    n = read(s->master, bytes, sizeof bytes);
    s->is_gone = n <= 0;
    return n > 0 && keep_raw(s, bytes, (size_t)n);
}

static void write_all(struct pty_screen *s, const char *bytes, size_t n)
{
    while (n > 0) {
        struct pollfd fd = { s->master, POLLOUT, 0 };
        ssize_t done;

        if (poll(&fd, 1, 10) <= 0) { /* full: the program waits for us to read */
            read_more(s, 0);
            continue;
        }
        done = write(s->master, bytes, n < 1024 ? n : 1024);
        if (done < 0 && errno != EINTR && errno != EAGAIN)
            return;
        if (done > 0) {
            bytes += done;
            n -= (size_t)done;
        }
    }
}

/* The terminal's own answers. libvterm calls this inside vterm_input_write, where we cannot
 * read.  Answers that the program does not read are lost. */
static void answer(const char *bytes, size_t n, void *ctx)
{
    struct pty_screen *s = ctx;
    struct pollfd fd = { s->master, POLLOUT, 0 };

    if (poll(&fd, 1, 0) > 0 && write(s->master, bytes, n) < 0)
        return;
}

/* Show the next frame, or all output if it ends no frame. */
static size_t next_part(struct pty_screen *s)
{
    static const char end[] = "\033[?2026l";
    size_t len = sizeof end - 1;
    size_t from = s->n_shown >= len ? s->n_shown - len + 1
                                    : 0; /* the mark may be split between two reads */
    const char *at = memmem(s->raw + from, s->n_raw - from, end, len);

    return at == NULL ? s->n_raw - s->n_shown : (size_t)(at - s->raw) + len - s->n_shown;
}

/* Returns n without a character at the end that is not complete: libvterm 0.1.4 does not join
 * the halves of one. */
static size_t without_half(const char *bytes, size_t n)
{
    size_t tail = 0, length;
    unsigned char first;

    while (tail < n && tail < 3 && ((unsigned char)bytes[n - 1 - tail] & 0xc0) == 0x80)
        tail++;
    if (tail == n)
        return n;
    first = (unsigned char)bytes[n - 1 - tail];
    length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
    return tail + 1 < length ? n - 1 - tail : n;
}

/* Find the last mark in the newest n bytes and the few bytes before them. */
static void look_for_frame(struct pty_screen *s, size_t n)
{
    static const char mark[] = "\033[?2026";
    size_t len = sizeof mark; /* including the letter */

    for (size_t at = s->n_shown; at >= len && at + n >= s->n_shown; at--)
        if (memcmp(s->raw + at - len, mark, len - 1) == 0) {
            s->is_in_frame = s->raw[at - 1] == 'h';
            return;
        }
}

static bool take_part(struct pty_screen *s, int timeout_ms)
{
    size_t n;

    if (s->n_shown == s->n_raw && !read_more(s, timeout_ms))
        return false;
    n = next_part(s);
    while (without_half(s->raw + s->n_shown, n) == 0 && read_more(s, timeout_ms))
        n = next_part(s);
    if (without_half(s->raw + s->n_shown, n) > 0)
        n = without_half(s->raw + s->n_shown, n);
    if (s->background != NULL && memmem(s->raw + s->n_shown, n, "\033]11;?", 6) != NULL) {
        char text[80];

        answer(text, (size_t)snprintf(text, sizeof text, "\033]11;%s\033\\", s->background), s);
    }
    vterm_input_write(s->vt, s->raw + s->n_shown, n);
    vterm_screen_flush_damage(s->screen);
    s->n_shown += n;
    look_for_frame(s, n);
    return true;
}

bool pty_take(struct pty_screen *s, int timeout_ms)
{
    bool any = take_part(s, timeout_ms);

    while (s->is_in_frame && take_part(s, timeout_ms))
        any = true;
    return any;
}

/* An ESC at the end is the key.  A busy program could read it together with the next key, as
 * Alt and that key.  The report of focus after it prevents that: two ESC in a row are never
 * Alt. */
void pty_send_n(struct pty_screen *s, const char *bytes, size_t n)
{
    static const char focus[] = "\033[I";

    while (pty_take(s, 0))
        ;
    write_all(s, bytes, n);
    if (n > 0 && bytes[n - 1] == '\033')
        write_all(s, focus, sizeof focus - 1);
}

void pty_send(struct pty_screen *s, const char *bytes)
{
    pty_send_n(s, bytes, strlen(bytes));
}

/* ---- a program ---- */

static int on_prop(VTermProp prop, VTermValue *value, void *ctx)
{
    struct pty_screen *s = ctx;

    if (prop == VTERM_PROP_ALTSCREEN)
        s->is_alternate = value->boolean != 0;
    return 1;
}

static VTermScreenCallbacks callbacks = { .settermprop = on_prop };

static void set_env(const char *const *env)
{
    for (; env != NULL && *env != NULL; env++) {
        char *copy = strdup(*env), *equals = copy == NULL ? NULL : strchr(copy, '=');

        if (equals != NULL) {
            *equals = '\0';
            setenv(copy, equals + 1, 1);
        } else if (copy != NULL) {
            unsetenv(copy);
        }
        free(copy);
    }
}

struct pty_screen *pty_new(const struct pty_start *o)
{
    static const char *const gone[] = { "LINES",      "COLUMNS",  "NO_COLOR", "COLORTERM",
                                        "TMUX",       "STY",      "VISUAL",   "EDITOR",
                                        "ACCESSIBLE", "COLORFGBG" };
    struct pty_screen *s = calloc(1, sizeof *s);
    struct winsize size = { (unsigned short)o->rows, (unsigned short)o->cols, 0, 0 };
    int slave;

    if (s == NULL)
        return NULL;
    s->rows = o->rows;
    s->cols = o->cols;
    s->vt = vterm_new(o->rows, o->cols);
    vterm_set_utf8(s->vt, 1);
    vterm_output_set_callback(s->vt, answer, s);
    s->screen = vterm_obtain_screen(s->vt);
    vterm_screen_set_callbacks(s->screen, &callbacks, s);
    vterm_screen_enable_altscreen(s->screen, 1);
    vterm_screen_reset(s->screen, 1);
    if (openpty(&s->master, &slave, NULL, NULL, &size) != 0) {
        s->master = -1;
        pty_free(s);
        return NULL;
    }
    tcgetattr(slave, &s->modes); /* before the program can change them */
    s->pid = fork();
    if (s->pid == 0) {
        char *const *argv = (char *const *)(uintptr_t)o->argv;

        close(s->master);
        if (login_tty(slave) != 0)
            _exit(127);
        for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++)
            unsetenv(gone[i]);
        setenv("TERM", o->term == NULL ? "xterm-256color" : o->term, 1);
        setenv("LC_ALL", "C.UTF-8", 1);
        setenv("INPUTRC", "/dev/null", 1);
        set_env(o->env);
        execv(argv[0], argv);
        _exit(127);
    }
    close(slave);
    if (s->pid < 0) {
        pty_free(s);
        return NULL;
    }
    return s;
}

void pty_set_background(struct pty_screen *s, const char *colour)
{
    s->background = colour;
}

void pty_free(struct pty_screen *s)
{
    if (s == NULL)
        return;
    if (s->pid > 0 && !s->has_ended) {
        kill(s->pid, SIGKILL);
        waitpid(s->pid, NULL, 0);
    }
    if (s->master > 0)
        close(s->master);
    vterm_free(s->vt);
    free(s->raw);
    free(s);
}

/* Terminals clip the cursor when their size changes. libvterm 0.1.4 does not, and scrolls rows
 * that no longer exist. */
static void forget_scroll_region(struct pty_screen *s)
{
    char bytes[64];
    VTermPos at;
    int n;

    vterm_state_get_cursorpos(vterm_obtain_state(s->vt), &at);
    n = snprintf(bytes, sizeof bytes, "\033[r\033[%d;%dH", at.row + 1, at.col + 1);
    vterm_input_write(s->vt, bytes, (size_t)n);
}

void pty_resize(struct pty_screen *s, int rows, int cols)
{
    struct winsize size = { (unsigned short)rows, (unsigned short)cols, 0, 0 };

    while (pty_take(s, 0))
        ;
    forget_scroll_region(s);
    s->rows = rows;
    s->cols = cols;
    vterm_set_size(s->vt, rows, cols);
    ioctl(s->master, TIOCSWINSZ, &size);
}

void pty_signal(struct pty_screen *s, int sig)
{
    kill(s->pid, sig);
}

void pty_signal_foreground(struct pty_screen *s, int sig)
{
    pid_t group = tcgetpgrp(s->master);

    if (group > 1)
        kill(-group, sig);
}

void pty_hang_up(struct pty_screen *s)
{
    close(s->master);
    s->master = -1;
}

/* ---- reading the screen ---- */

static size_t put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

const char *pty_row(struct pty_screen *s, int y)
{
    size_t n = 0, end = 0;

    for (int x = 0; x < s->cols && n + 32 < sizeof s->row; x++) {
        VTermScreenCell cell;

        vterm_screen_get_cell(s->screen, (VTermPos){ y, x }, &cell);
        if (cell.chars[0] == (uint32_t)-1)
            continue;             /* the right half of a wide character */
        if (cell.chars[0] == 0) { /* erased: the rest of the cell is not set */
            cell.chars[0] = ' ';
            cell.chars[1] = 0;
        }
        for (int i = 0; i < VTERM_MAX_CHARS_PER_CELL && cell.chars[i] != 0; i++)
            n += put_utf8(s->row + n, cell.chars[i]);
        if (cell.chars[0] != ' ')
            end = n;
    }
    s->row[end] = '\0';
    return s->row;
}

int pty_find(struct pty_screen *s, const char *text)
{
    for (int y = 0; y < s->rows; y++)
        if (strstr(pty_row(s, y), text) != NULL)
            return y;
    return -1;
}

bool pty_shows(struct pty_screen *s, const char *text)
{
    return pty_find(s, text) >= 0;
}

void pty_print(struct pty_screen *s)
{
    fprintf(stderr, "---- %dx%d\n", s->cols, s->rows);
    for (int y = 0; y < s->rows; y++)
        fprintf(stderr, "|%s\n", pty_row(s, y));
    fprintf(stderr, "----\n");
}

/* Wait until row y (-1: any row) shows text, or no longer shows it, as `wanted` says. */
static bool wait_for(struct pty_screen *s, int y, const char *text, bool wanted)
{
    uint64_t end = now_ms() + WAIT_MS;

    for (;;) {
        bool shown = y < 0 ? pty_shows(s, text) : strstr(pty_row(s, y), text) != NULL;

        if (shown == wanted && !s->is_in_frame)
            return true;
        if (!pty_take(s, 20) && (now_ms() >= end || s->is_gone)) {
            fprintf(stderr, "waited in vain for \"%s\" to be %s%s\n", text,
                    wanted ? "shown" : "gone", s->is_gone ? ", the program has ended" : "");
            pty_print(s);
            return false;
        }
    }
}

bool pty_sees(struct pty_screen *s, const char *text)
{
    return wait_for(s, -1, text, true);
}

bool pty_loses(struct pty_screen *s, const char *text)
{
    return wait_for(s, -1, text, false);
}

bool pty_sees_at(struct pty_screen *s, int y, const char *text)
{
    return wait_for(s, y < 0 ? s->rows + y : y, text, true);
}

bool pty_loses_at(struct pty_screen *s, int y, const char *text)
{
    return wait_for(s, y < 0 ? s->rows + y : y, text, false);
}

int pty_end(struct pty_screen *s)
{
    uint64_t end = now_ms() + WAIT_MS;
    int status;

    while (!s->has_ended && now_ms() < end) {
        pty_take(s, 10);
        if (waitpid(s->pid, &status, WNOHANG) == s->pid) {
            s->has_ended = true;
            s->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
    }
    while (pty_take(s, 0))
        ;
    return s->has_ended ? s->status : -1;
}

bool pty_stops(struct pty_screen *s)
{
    uint64_t end = now_ms() + WAIT_MS;
    int status;

    while (now_ms() < end) {
        pty_take(s, 10);
        if (waitpid(s->pid, &status, WNOHANG | WUNTRACED) == s->pid)
            return WIFSTOPPED(status);
    }
    return false;
}

int pty_rows(const struct pty_screen *s)
{
    return s->rows;
}

int pty_cols(const struct pty_screen *s)
{
    return s->cols;
}

void pty_cursor(const struct pty_screen *s, int *y, int *x)
{
    VTermPos at;

    vterm_state_get_cursorpos(vterm_obtain_state(s->vt), &at);
    *y = at.row;
    *x = at.col;
}

bool pty_is_alternate(const struct pty_screen *s)
{
    return s->is_alternate;
}

/* Find the last of "set" and "reset" in the bytes written. */
static bool is_set(const struct pty_screen *s, const char *mode)
{
    char text[16];
    const char *on = NULL, *off = NULL;
    const char *end = s->raw + s->n_shown, *at;

    for (int is_on = 0; is_on < 2; is_on++) {
        size_t n = (size_t)snprintf(text, sizeof text, "\033[?%s%c", mode, is_on ? 'h' : 'l');
        const char **last = is_on ? &on : &off;

        for (at = s->raw; at != NULL; at = at == NULL ? NULL : at + n) {
            at = memmem(at, (size_t)(end - at), text, n);
            if (at == NULL)
                break;
            *last = at;
        }
    }
    return on != NULL && (off == NULL || off < on);
}

bool pty_has_modes(const struct pty_screen *s)
{
    static const char *const modes[] = { "2004", "1002", "1004", "1006", "2026" };

    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (is_set(s, modes[i]))
            return true;
    return false;
}

char *pty_text(struct pty_screen *s)
{
    char *out = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&out, &n);

    for (int y = 0; f != NULL && y < s->rows; y++)
        fprintf(f, "%s\n", pty_row(s, y));
    if (f != NULL)
        fclose(f);
    return out;
}

char *pty_cells(struct pty_screen *s)
{
    char *out = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&out, &n);

    for (int y = 0; f != NULL && y < s->rows; y++) {
        fprintf(f, "%s\n", pty_row(s, y));
        for (int x = 0; x < s->cols; x++) {
            VTermScreenCell c;

            vterm_screen_get_cell(s->screen, (VTermPos){ y, x }, &c);
            if (c.chars[0] == (uint32_t)-1) /* libvterm keeps old colours there */
                continue;
            if (c.chars[0] == 0 || c.chars[0] == ' ')
                fprintf(f, "%d.%d,", c.attrs.reverse, c.bg.indexed.idx);
            else
                fprintf(f, "%d%d%d.%d.%d,", c.attrs.bold, c.attrs.underline, c.attrs.reverse,
                        c.fg.indexed.idx, c.bg.indexed.idx);
        }
        fputc('\n', f);
    }
    if (f != NULL)
        fclose(f);
    return out;
}

uint64_t pty_bytes(const struct pty_screen *s)
{
    return s->n_shown;
}

const char *pty_raw(const struct pty_screen *s, size_t *n)
{
    *n = s->n_shown;
    return s->raw;
}

bool pty_is_cooked(const struct pty_screen *s)
{
    struct termios now;

    return tcgetattr(s->master, &now) == 0 && now.c_lflag == s->modes.c_lflag &&
           now.c_iflag == s->modes.c_iflag && now.c_oflag == s->modes.c_oflag;
}
