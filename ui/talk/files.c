/* Files for the next message: /file, and @FILE in a message. */
#include "config.h"

#include "ui/talk/files.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/encoding.h"
#include "engine/base/numbers.h"
#include "engine/base/utf8.h"
#include "ui/talk/command_list.h"
#include "ui/talk/too_long.h"
#include "ui/words/clean.h"
#include "ui/words/path.h"

/* "about 38,000 tokens", from the beginning of a text file that is too large to be read; "":
 * not known. */
static char *tokens_text(struct talk *t, FILE *f, uint64_t size, char *buf, size_t n)
{
    enum { PART = 16 << 10 };
    char count[24], *part = malloc(PART + 1);
    uint32_t n_token = 0;
    size_t len = part == NULL ? 0 : fread(part, 1, PART, f);

    buf[0] = '\0';
    if (len > 0 && talk_count(t, part, len, &n_token))
        snprintf(buf, n, ", about %s tokens",
                 numbers_count(count, sizeof count, size / 1000 * n_token / len * 1000));
    free(part);
    return buf;
}

/* Read a file to its end, but at most room + 1 bytes; NULL with *e.  Files of /proc have no
 * size. */
static char *read_whole(FILE *f, const char *path, size_t size, size_t room, size_t *n,
                        struct err *e)
{
    size_t most = size > 0 ? size : room + 1;
    char *text = malloc(most + 1), *less;

    if (text == NULL) {
        err_memory(e, "\"%s\"", path);
        return NULL;
    }
    *n = fread(text, 1, most, f);
    if (ferror(f)) {
        err_sys(e, "could not read \"%s\"", path);
        free(text);
        return NULL;
    }
    less = realloc(text, *n + 1);
    return less != NULL ? less : text;
}

/* "the context of 4,096 tokens"; a server may not report it. */
static char *context_text(const struct talk *t, char *buf, size_t n)
{
    uint32_t n_ctx = talk_plan(t)->n_ctx;
    char count[24];

    if (n_ctx > 0)
        snprintf(buf, n, "the context of %s tokens", numbers_count(count, sizeof count, n_ctx));
    else
        snprintf(buf, n, "into a message");
    return buf;
}

/* Read all of a text file that fits the context; NULL with *e. */
static char *read_text(struct talk *t, const char *path, size_t *n, struct err *e)
{
    size_t room = talk_text_room(t);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* never waits: FIFOs */
    FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
    char *text = NULL, size[16], tokens[48], context[48];
    struct stat st;
    int mark;

    if (f == NULL || fstat(fileno(f), &st) != 0) {
        err_sys(e, "cannot open \"%s\"", path);
    } else if (!S_ISREG(st.st_mode)) {
        err_set(e, ERR_ARGUMENT, "\"%s\" is not a file", path);
    } else if ((uint64_t)st.st_size > room) {
        units_size(size, sizeof size, (uint64_t)st.st_size);
        err_set(e, ERR_CONTEXT, "\"%.200s\" has %s%s; it does not fit %s", path, size,
                tokens_text(t, f, (uint64_t)st.st_size, tokens, sizeof tokens),
                context_text(t, context, sizeof context));
    } else if ((text = read_whole(f, path, (size_t)st.st_size, room, n, e)) == NULL) {
        ; /* *e says why */
    } else if (*n > room) {
        free(text);
        text = NULL;
        err_set(e, ERR_CONTEXT, "\"%.200s\" does not fit %s", path,
                context_text(t, context, sizeof context));
    } else {
        mark = encoding_mark(text, *n, e);
        *n -= mark > 0 ? (size_t)mark : 0;
        memmove(text, text + (mark > 0 ? mark : 0), *n);
        text[*n] = '\0';
        if (mark < 0)
            err_at(e, path, ERR_NO_OFFSET, NULL);
        else if (memchr(text, '\0', *n) != NULL)
            mark = err_set(e, ERR_FORMAT, "\"%s\" is not text", path);
        if (mark < 0) {
            free(text);
            text = NULL;
        }
    }
    if (f != NULL)
        fclose(f);
    return text;
}

static void list_files(struct talk *t)
{
    const struct outbox *b = talk_outbox(t);

    if (b->n_file == 0)
        talk_notice(t, "no file is attached; /file PATH attaches one");
    for (size_t i = 0; i < b->n_file; i++)
        talk_notice(t, "with the next message: %s (%zu bytes)", b->file[i].name, b->file[i].n);
}

/* Attach a text file under a name.  Returns false, and says why, if that is not possible. */
static bool attach(struct talk *t, const char *path, const char *name)
{
    struct err e = ERR_INIT;
    char tokens[24];
    size_t n = 0, valid;
    char *text = read_text(t, path, &n, &e);

    if (text == NULL) {
        talk_report(t, &e);
        return false;
    }
    valid = utf8_valid_bytes(text, n);
    if (!talk_attach(t, name, text, n)) {
        talk_error(t, "no more than %d files go with a message", OUTBOX_MAX_FILES);
        return false;
    }
    if (valid < n)
        talk_notice(t,
                    "%s is not UTF-8 at byte %zu, so the model may misread it; convert it, for "
                    "example with iconv -f latin1 -t utf-8",
                    name, valid);
    if (talk_file_tokens(t) > 0)
        talk_notice(t, "%s goes with the next message, about %s token%s; /file - removes it",
                    name, numbers_count(tokens, sizeof tokens, talk_file_tokens(t)),
                    talk_file_tokens(t) == 1 ? "" : "s");
    else
        talk_notice(t, "%s goes with the next message; /file - removes it", name);
    return true;
}

void run_file(struct talk *t, const char *args)
{
    struct mw_cost cost;
    char path[4096];

    if (args[0] == '\0' || strcmp(args, "-") == 0) {
        const struct outbox *b = talk_outbox(t);

        for (size_t i = 0; args[0] == '-' && i < b->n_file; i++)
            talk_notice(t, "%s is removed", b->file[i].name);
        if (args[0] == '-')
            talk_keep_files(t, 0);
        list_files(t);
        return;
    }
    path_typed(path, sizeof path, args, true);
    if (attach(t, path, strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path) &&
        too_long_is(t, "", true, &cost))
        too_long_offer(t, NULL, &cost);
}

/* ---- @FILE ---- */

/* Does a word begin after this byte? */
static bool is_before_word(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '(' || c == '[';
}

/* Find the next "@NAME" or "@\"NAME\"" of text from byte `at` on; *path and *n: NAME.  As in a
 * shell, "\ " in NAME is a blank.  Returns the byte after it, or 0 if there is none. */
static size_t next_at(const char *text, size_t at, const char **path, size_t *n)
{
    for (; text[at] != '\0'; at++) {
        bool is_quoted = text[at] == '@' && text[at + 1] == '"';

        if (text[at] != '@' || (at > 0 && !is_before_word(text[at - 1])))
            continue;
        *path = text + at + 1 + is_quoted;
        *n = strcspn(*path, is_quoted ? "\"\n" : " \t\n");
        while (!is_quoted && *n > 0 && (*path)[*n - 1] == '\\' && (*path)[*n] == ' ')
            *n += 1 + strcspn(*path + *n + 1, " \t\n");
        return (size_t)(*path - text) + *n;
    }
    return 0;
}

size_t files_typed(const char *line, size_t n, bool *is_quoted)
{
    const char *path = NULL;
    size_t at = 0, len, found = 0;

    while ((at = next_at(line, at, &path, &len)) > 0)
        if (at == n)
            found = (size_t)(path - line);
    *is_quoted = found > 0 && line[found - 1] == '"';
    return found;
}

#define AFTER_A_NAME ".,;:!?)]'\"" /* punctuation of the sentence around it */

/* Copy name[0 .. n) to buf without the marks before its blanks; n is less than the size of buf.
 * Returns whether it had such marks. */
static bool copy_name(char *buf, const char *name, size_t n)
{
    bool is_marked = false;
    size_t used = 0;

    for (size_t i = 0; i < n; i++)
        if (name[-1] != '"' && name[i] == '\\' && i + 1 < n && name[i + 1] == ' ')
            is_marked = true;
        else
            buf[used++] = name[i];
    buf[used] = '\0';
    return is_marked;
}

enum named { NAMED_FILE, NAMED_OTHER, NAMED_NOTHING };

/* Copy name[0 .. n) to buf[4096] if something has that name; or without punctuation at its end.
 * NAMED_OTHER: a folder, a device, a pipe. */
static enum named what_is(const char *name, size_t n, char *buf)
{
    char path[4096];
    struct stat st;

    for (; n > 0 && n < sizeof path; n--) {
        copy_name(buf, name, n);
        path_expand(path, sizeof path, buf);
        if (stat(path, &st) == 0)
            return S_ISREG(st.st_mode) ? NAMED_FILE : NAMED_OTHER;
        if (strchr(AFTER_A_NAME, name[n - 1]) == NULL)
            break;
    }
    return NAMED_NOTHING;
}

/* Was name[0 .. n), which nothing has, meant as a file?  A path or an ending is, the name of a
 * person and a line of code are not. */
static bool is_like_a_file(const char *name, size_t n, char *buf)
{
    static const char of_names[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                   "_+-./~";
    const char *dot;
    bool is_marked;

    while (n > 0 && strchr(AFTER_A_NAME, name[n - 1]) != NULL)
        n--;
    if (n == 0 || n >= 4096)
        return false;
    is_marked = copy_name(buf, name, n);
    if (name[-1] == '"' || is_marked)
        return true;
    if (strspn(buf, of_names) != n)
        return false;
    dot = strrchr(buf, '.');
    return strncmp(buf, "/", 1) == 0 || strncmp(buf, "~/", 2) == 0 || strncmp(buf, "./", 2) == 0 ||
           strncmp(buf, "../", 3) == 0 ||
           (dot != NULL && dot > buf && strlen(dot) > 1 && strlen(dot) <= 5);
}

/* Say which names stay text; the first of them, so that code with many is one line. */
static void say_what_stays(struct talk *t, const char *first, enum named what, size_t n_more)
{
    char clean[200], more[64] = "";

    clean_line(clean, sizeof clean, first, strlen(first));
    if (n_more > 0)
        snprintf(more, sizeof more, "; %zu more name%s", n_more,
                 n_more == 1 ? " stays text, too" : "s stay text, too");
    talk_notice(t, "@%s stays text: %s%s", clean,
                what == NAMED_OTHER ? "it is not a file" : "there is no such file", more);
}

/* A message that came back has its files. */
static bool is_attached(const struct talk *t, const char *name)
{
    const struct outbox *b = talk_outbox(t);

    for (size_t i = 0; i < b->n_file; i++)
        if (b->file[i].is_returned ? strstr(b->file[i].name, name) != NULL
                                   : strcmp(b->file[i].name, name) == 0)
            return true;
    return false;
}

bool files_attach_named(struct talk *t, const char *text)
{
    const char *name;
    char path[4096], clean[sizeof talk_outbox(t)->file[0].name], whole[4096];
    char text_stays[4096] = "";
    size_t at = 0, n, n_text = 0, n_before = talk_outbox(t)->n_file;
    enum named what, first = NAMED_NOTHING;

    while ((at = next_at(text, at, &name, &n)) > 0) {
        what = what_is(name, n, path);
        if (what == NAMED_OTHER || (what == NAMED_NOTHING && is_like_a_file(name, n, path))) {
            if (n_text++ == 0) {
                first = what;
                memcpy(text_stays, path, strlen(path) + 1);
            }
            continue;
        }
        if (what == NAMED_NOTHING)
            continue;
        clean_line(clean, sizeof clean, path, strlen(path));
        path_expand(whole, sizeof whole, path);
        if (!is_attached(t, clean) && !attach(t, whole, clean)) {
            talk_keep_files(t, n_before);
            talk_notice(t, "the message is not sent, and no file that it names is attached; "
                           "without the \"@\" a name is text");
            return false;
        }
    }
    if (n_text > 0)
        say_what_stays(t, text_stays, first, n_text - 1);
    return true;
}
