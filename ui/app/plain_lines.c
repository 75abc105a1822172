/* The lines that a person or a program types in plain mode. */
#include "config.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "ui/app/plain_internal.h"
#include "ui/talk/commands.h"
#include "ui/term/keys.h"

#define LEAVE_NS ((uint64_t)2000 * 1000 * 1000)

/* An empty line sends the message that was taken back.  Returns whether there is one. */
static bool send_draft(struct plain *p)
{
    char *draft = p->draft;

    if (draft == NULL || !p->is_tty)
        return false;
    p->draft = NULL;
    talk_send(p->talk, draft);
    free(draft);
    return true;
}

/* Take the answer to a sheet: a number, yes or no.  Any other line is a message or a command.
 */
static void answer_sheet(struct plain *p, const char *line)
{
    struct sheet *s = p->sheet;
    uint64_t n;

    p->sheet = NULL;
    if (sheet_has_choice(s) && units_parse_whole(line, false, 1, INT32_MAX, &n))
        sheet_enter_row(s, (long)n - 1);
    else if (!sheet_has_choice(s) &&
             (strcasecmp(line, "y") == 0 || strcasecmp(line, "yes") == 0))
        sheet_enter(s);
    else if (line[0] == '\0' || strcasecmp(line, "n") == 0 || strcasecmp(line, "no") == 0) {
        plain_put_line(p, "* nothing was changed");
    } else {
        plain_say_dropped(p, s);
        command_enter(p->talk, line);
    }
    sheet_free(s);
}

const char *plain_prompt(const struct plain *p)
{
    if (p->sheet == NULL)
        return "> ";
    return sheet_has_choice(p->sheet) ? "number, or n for none: " : "apply? y or n: ";
}

void plain_interrupt(struct plain *p)
{
    uint64_t now = clock_ns();

    if (talk_shell(p->talk) != NULL) {
        talk_shell_stop(p->talk);
    } else if (talk_is_answering(p->talk) && talk_state(p->talk) != TALK_STOPPING) {
        if (p->tour != NULL)
            tour_end(p->tour);
        talk_stop(p->talk);
        p->leave_ns = 0;
    } else if (now < p->leave_ns) {
        p->is_leaving = saving_may_leave(talk_saving(p->talk));
    } else {
        p->leave_ns = now + LEAVE_NS;
        plain_put_line(p, "* Ctrl-C again or Ctrl-D quits");
    }
}

/* Keep the part of a typed unit that is text.  Bytes that are not UTF-8 may be the text of a
 * terminal with another character set. */
static size_t keep_text(char *to, const struct key *key)
{
    bool is_shown = (key->ch >= 0x20 && key->ch != 0x7f) || key->ch == '\t' || key->ch == '\n';
    bool is_text = key->kind == KEYS_PASTE ||
                   (key->kind == KEYS_CHAR && key->mods == 0 && is_shown) ||
                   (key->kind == KEYS_UNKNOWN && key->raw[0] >= 0xa0);

    if (is_text)
        memcpy(to, key->bytes, key->n);
    return is_text ? key->n : 0;
}

/* The terminal edits the line, and leaves the sequences of other keys in it: drop them.  In the
 * mode of an earlier program, Ctrl-C may be one of them.  Returns whether it was typed. */
static bool drop_sequences(char *line)
{
    struct keys *keys = keys_new();
    size_t n = strlen(line), from = 0, to = 0;
    bool interrupts = false;
    struct key key;

    if (keys == NULL)
        return false;
    while (from < n) {
        size_t room = keys_room(keys), piece = n - from < room ? n - from : room;

        keys_feed(keys, (const unsigned char *)line + from, piece, 0);
        from += piece;
        while (keys_next(keys, from < n ? 0 : KEYS_PASTE_NS, &key)) {
            interrupts |= key.kind == KEYS_CHAR && key.ch == 'C' - 64;
            to += keep_text(line + to, &key);
        }
    }
    line[to] = '\0';
    keys_free(keys);
    return interrupts;
}

/* As on the screen, "exit" stays until an empty line sends it.  Programs mean what they send.
 */
static bool asks_to_leave(struct plain *p, const char *line)
{
    char text[100];

    if (!p->is_tty || !command_means_to_leave(line))
        return false;
    free(p->draft);
    p->draft = strdup(line);
    snprintf(text, sizeof text, "* /quit or Ctrl-D leaves; Enter sends \"%s\" to the model",
             line);
    plain_put_line(p, text);
    return true;
}

static void take_line(struct plain *p, char *line)
{
    size_t n = strlen(line);

    if (n > 0 && line[n - 1] == '\r')
        line[n - 1] = '\0';
    p->has_prompt = false;
    if (p->is_tty && drop_sequences(line)) {
        plain_interrupt(p);
        return;
    }
    p->leave_ns = 0;
    if (p->tour != NULL && line[0] == '\0') {
        tour_next(p->tour);
        return;
    }
    if (p->tour != NULL)
        tour_end(p->tour);
    if (p->sheet != NULL)
        answer_sheet(p, line);
    else if (asks_to_leave(p, line))
        return;
    else if (line[0] != '\0' || !send_draft(p))
        command_enter(p->talk, line);
}

/* Returns the bytes up to the newline that ends the first message: none that follows a
 * backslash, unless it is the last byte of all.  -1: it is not complete. */
static ptrdiff_t first_end(const struct plain *p)
{
    for (size_t i = 0; i < p->n_typed; i++)
        if (p->typed[i] == '\n' &&
            (i == 0 || p->typed[i - 1] != '\\' || (p->at_end && i + 1 == p->n_typed)))
            return (ptrdiff_t)i;
    return -1;
}

/* Remove the backslashes before newlines, and before the end. */
static void join_lines(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; from++)
        if (*from != '\\' || (from[1] != '\n' && from[1] != '\0'))
            *to++ = *from;
    *to = '\0';
}

/* A command about the conversation, typed ahead, comes after the answers that it follows. */
static bool must_wait(struct plain *p, const char *line)
{
    if (!p->is_tty || plain_is_idle(p) || !command_is_in_order(line))
        return false;
    if (!p->said_waiting)
        plain_put_line(p, "* the command waits for what was entered before it; Ctrl-C stops both");
    p->said_waiting = true;
    return true;
}

bool plain_take_typed(struct plain *p)
{
    ptrdiff_t end = first_end(p);
    size_t n = (size_t)end;
    char *line;

    if (end < 0)
        return false;
    line = strndup(p->typed, n);
    if (line != NULL && must_wait(p, line)) {
        free(line);
        return false;
    }
    p->said_waiting = false;
    memmove(p->typed, p->typed + n + 1, p->n_typed - n - 1);
    p->n_typed -= n + 1;
    if (line != NULL) {
        join_lines(line);
        take_line(p, line);
    }
    free(line);
    return true;
}

void plain_read_lines(struct plain *p)
{
    ssize_t n;

    if (p->room - p->n_typed < 4096) {
        char *more = realloc(p->typed, p->room + 65536);

        if (more == NULL) {
            p->is_leaving = true;
            return;
        }
        p->typed = more;
        p->room += 65536;
    }
    n = read(STDIN_FILENO, p->typed + p->n_typed, 4095);
    if (n < 0 && errno == EINTR)
        return;
    if (n > 0) {
        p->n_typed += (size_t)n;
        return;
    }
    p->at_end = true;
    if (p->n_typed > 0 && p->typed[p->n_typed - 1] != '\n')
        p->typed[p->n_typed++] = '\n';
}
