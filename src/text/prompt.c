/* See prompt.h. */
#include "config.h"

#include "src/text/prompt.h"

#include <sys/ioctl.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/encoding.h"
#include "engine/base/lookalike.h"
#include "engine/base/utf8.h"
#include "src/command.h"
#include "ui/words/clean.h"

#define PIECE_BYTES 65536
#define HINT_MS     1500

/* Standard input or a file, as it is read. */
struct input {
    int fd;
    const char *name;   /* of a file, for messages */
    const char *advice; /* of the line about waiting */
    bool is_told;       /* that line was printed */
    bool has_begun, at_end;
};

/* Wait until it can be read.  If that takes long, say so once: the program seems to hang. */
static void await(struct input *in)
{
    struct pollfd ready = { in->fd, POLLIN, 0 };
    char name[200];

    if (in->is_told || poll(&ready, 1, HINT_MS) != 0)
        return;
    in->is_told = true;
    clean_line(name, sizeof name, in->name, strlen(in->name));
    fprintf(stderr, "memwall: waiting for the end of %s%s%s\n", name,
            isatty(in->fd) == 1 ? "; Ctrl-D ends it" : "", in->advice);
    /* A FIFO that no program writes to yet would seem to be at its end. */
    while (poll(&ready, 1, -1) < 0 && errno == EINTR)
        ;
}

/* Read a piece; the first one is long enough to recognise the mark of its encoding.  Returns
 * its bytes, or -1 with errno.  A terminal reports its end only once. */
static ssize_t read_piece(struct input *in, char *buf)
{
    size_t n = 0;

    while (!in->at_end && (n == 0 || (!in->has_begun && n < ENCODING_MARK_BYTES))) {
        ssize_t got;

        await(in);
        got = read(in->fd, buf + n, PIECE_BYTES - n);
        if (got < 0 && errno != EINTR)
            return -1;
        in->at_end = got == 0;
        n += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)n;
}

/* Devices without an end would be read forever. */
static int check_end(int fd, const char *name, struct err *e)
{
    struct stat st, null;

    if (fstat(fd, &st) != 0 || !S_ISCHR(st.st_mode) || isatty(fd) == 1 ||
        (stat("/dev/null", &null) == 0 && st.st_rdev == null.st_rdev))
        return 0;
    err_set(e, ERR_IO, "is a device without an end; give a file");
    return err_at(e, name, ERR_NO_OFFSET, NULL);
}

/* advice: of the line about waiting. */
static int stream_fd(int fd, const char *name, const char *advice, prompt_piece *fn, void *ctx,
                     struct err *e)
{
    struct input in = { .fd = fd, .name = name, .advice = advice };
    char *buf;
    int rc = 0;

    if (check_end(fd, name, e) != 0)
        return -1;
    buf = malloc(PIECE_BYTES);
    if (buf == NULL)
        return err_memory(e, "the text");
    while (rc == 0 && !in.at_end) {
        ssize_t got = read_piece(&in, buf);
        int mark = 0;

        if (got < 0)
            rc = err_sys(e, "could not read");
        else if (!in.has_begun)
            rc = mark = encoding_mark(buf, (size_t)got, e);
        in.has_begun = true;
        if (rc < 0)
            err_at(e, name, ERR_NO_OFFSET, NULL);
        else
            rc = got > mark ? fn(ctx, buf + mark, (size_t)(got - mark), e) : 0;
    }
    free(buf);
    return rc;
}

int prompt_stream(const char *path, prompt_piece *fn, void *ctx, struct err *e)
{
    int rc, fd;

    if (strcmp(path, "-") == 0)
        return stream_fd(STDIN_FILENO, "standard input", "", fn, ctx, e);
    /* O_NONBLOCK: await() waits for the other end of a FIFO. */
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fcntl(fd, F_SETFL, 0) != 0) {
        err_sys(e, "cannot open \"%.150s\"", path);
        return lookalike_explain(e, path);
    }
    rc = stream_fd(fd, path, "", fn, ctx, e);
    close(fd);
    return rc;
}

uint64_t prompt_file_bytes(const char *path)
{
    struct stat st;
    int rc = strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, &st) : stat(path, &st);

    return rc == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

/* A text that is read completely. */
struct whole {
    char *text;
    size_t n, room, max;
    bool is_too_long;
};

static int keep(void *ctx, const char *text, size_t len, struct err *e)
{
    struct whole *w = ctx;

    if (len > w->max - w->n) {
        w->is_too_long = true;
        return err_set(e, ERR_ARGUMENT, "is longer than %zu bytes", w->max);
    }
    if (len >= w->room - w->n) {
        size_t room = (w->n + len) * 2 + 1;
        char *larger;

        if (room > w->max + 1)
            room = w->max + 1;
        larger = realloc(w->text, room);
        if (larger == NULL)
            return err_memory(e, "the text");
        w->text = larger;
        w->room = room;
    }
    memcpy(w->text + w->n, text, len);
    w->n += len;
    w->text[w->n] = '\0';
    return 0;
}

static int read_whole(const char *path, struct whole *w, struct err *e)
{
    int rc = keep(w, "", 0, e);

    if (rc == 0)
        rc = prompt_stream(path, keep, w, e);
    if (rc != 0) {
        free(w->text);
        w->text = NULL;
    }
    return rc;
}

int prompt_read_file(const char *path, size_t max_bytes, char **out, size_t *len, struct err *e)
{
    struct whole w = { .max = max_bytes };

    *out = NULL;
    *len = 0;
    if (read_whole(path, &w, e) != 0) {
        if (w.is_too_long)
            err_at(e, strcmp(path, "-") == 0 ? "standard input" : path, ERR_NO_OFFSET, NULL);
        return -1;
    }
    *out = w.text;
    *len = w.n;
    return 0;
}

static int too_long(size_t max_bytes, struct err *e)
{
    return err_set(e, ERR_CONTEXT,
                   "the prompt is longer than %zu bytes, the limit for this context; use a "
                   "larger --ctx",
                   max_bytes);
}

/* Is standard input that of the process that started this one?  Then it was passed on, as the
 * list of a loop in a shell is, and not made for this program.  A file at its start is: dash
 * opens the file of "memwall run < file" as its own standard input, for as long as that runs.
 */
static bool is_passed_on(void)
{
    struct stat ours, theirs;
    char path[40];

    snprintf(path, sizeof path, "/proc/%ld/fd/0", (long)getppid());
    return fstat(STDIN_FILENO, &ours) == 0 && stat(path, &theirs) == 0 &&
           ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino &&
           lseek(STDIN_FILENO, 0, SEEK_CUR) != 0;
}

static bool has_waiting(void)
{
    int n = 0;

    return ioctl(STDIN_FILENO, FIONREAD, &n) == 0 && n > 0;
}

bool prompt_has_left(const struct prompt_source *from)
{
    return from->is_left && has_waiting();
}

void prompt_report_left(struct prompt_source *from)
{
    if (from->said_left || from->quiet || !prompt_has_left(from))
        return;
    from->said_left = true;
    fputs("memwall: standard input was not read, since it belongs to the program that started "
          "memwall; to read it, add the argument \"-\"\n",
          stderr);
}

/* Should standard input be read for this prompt? */
static bool wants_stdin(struct prompt_source *from)
{
    if (from->stdin_use != PROMPT_STDIN_AUTO)
        return from->stdin_use == PROMPT_STDIN_READ;
    if (isatty(STDIN_FILENO) == 1)
        return false;
    if (from->arg == NULL || from->arg[0] == '\0' || !is_passed_on())
        return true;
    from->is_left = true;
    prompt_report_left(from);
    return false;
}

/* Start the prompt with the argument and an empty line.  Returns its bytes, or -1. */
static int begin(struct whole *w, const char *arg, size_t n_head, struct err *e)
{
    if (n_head > 0 && (keep(w, arg, n_head - 2, e) != 0 || keep(w, "\n\n", 2, e) != 0)) {
        free(w->text);
        w->text = NULL;
        return -1;
    }
    return 0;
}

/* Add standard input.  If it is closed, the prompt is the argument. */
static int add_stdin(struct whole *w, const struct prompt_source *from, size_t n_head,
                     struct err *e)
{
    const char *advice = from->stdin_use == PROMPT_STDIN_AUTO && n_head > 0
                             ? "; --no-stdin answers without it"
                             : "";
    size_t max = w->max;

    if (keep(w, "", 0, e) == 0 &&
        stream_fd(STDIN_FILENO, "standard input", advice, keep, w, e) == 0)
        return 0;
    free(w->text);
    w->text = NULL;
    if (w->is_too_long)
        return too_long(max, e);
    if (e->sys != EBADF || from->stdin_use == PROMPT_STDIN_READ)
        return -1;
    *e = (struct err)ERR_INIT;
    *w = (struct whole){ .max = max };
    return begin(w, from->arg, n_head, e);
}

/* Drop the last line end of text[from .. n): LF, or CR LF of Windows.  Returns the new n. */
static size_t drop_line_end(const char *text, size_t from, size_t n)
{
    if (n > from && text[n - 1] == '\n')
        n--;
    else
        return n;
    return n > from && text[n - 1] == '\r' ? n - 1 : n;
}

/* A shell that reads the lines of a file of Windows leaves their CR at the end of arguments. */
static size_t argument_bytes(const struct prompt_source *from)
{
    size_t n = from->arg != NULL ? strlen(from->arg) : 0;

    return n > 0 && !from->raw && from->arg[n - 1] == '\r' ? n - 1 : n;
}

/* The bytes go to the model as they are, which hardly ever knows other encodings. */
static void report_encoding(const struct prompt_source *from, const char *text, size_t n)
{
    size_t valid = utf8_valid_bytes(text, n);
    char notice[160];

    if (valid == n || from->quiet)
        return;
    snprintf(notice, sizeof notice,
             "the prompt is not UTF-8 at byte %zu, so the model may misread it; convert it, for "
             "example with iconv -f latin1 -t utf-8",
             valid);
    report_notice(notice, strlen(notice));
}

int prompt_make(struct prompt_source *from, size_t max_bytes, char **out, size_t *len,
                struct err *e)
{
    struct whole w = { .max = max_bytes };
    size_t n_arg, n_head;
    int mark = 0;

    *out = NULL;
    if (from->arg != NULL && (mark = encoding_mark(from->arg, strlen(from->arg), e)) < 0)
        return -1;
    if (mark > 0)
        from->arg += mark;
    n_arg = argument_bytes(from);
    n_head = n_arg > 0 ? n_arg + 2 : 0;
    if (n_head > max_bytes)
        return too_long(max_bytes, e);
    if (begin(&w, from->arg, n_head, e) != 0 ||
        (wants_stdin(from) && add_stdin(&w, from, n_head, e) != 0))
        return -1;
    if (!from->raw)
        w.n = drop_line_end(w.text, n_head, w.n);
    if (w.n == n_head) /* the input is empty: drop the separator */
        w.n = n_arg;
    if (w.n == 0) {
        free(w.text);
        return err_set(e, ERR_ARGUMENT,
                       "no prompt given: pass one as an argument or on standard input");
    }
    w.text[w.n] = '\0';
    report_encoding(from, w.text, w.n);
    *out = w.text;
    *len = w.n;
    return 0;
}
