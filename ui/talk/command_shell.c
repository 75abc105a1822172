/* !COMMAND and /shell: the output of a command goes with the next message. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/numbers.h"
#include "engine/base/utf8.h"
#include "ui/talk/command_list.h"
#include "ui/talk/talk_internal.h"
#include "ui/words/clean.h"

#define SHOWN_LINES 24 /* of the output; all of it is attached */
#define SHOWN_BYTES 3000

void run_shell(struct talk *t, const char *args)
{
    struct err e = ERR_INIT;

    if (!t->front.is_person)
        talk_error(t, "commands are run only for a person at a terminal");
    else if (args[0] == '\0')
        talk_error(t, "!COMMAND runs a command, and its output goes with the next message");
    else if (shell_runs(&t->shell))
        talk_error(t, "\"%s\" still runs; Ctrl-C stops it", t->shell.command);
    else if (shell_start(&t->shell, args, talk_text_room(t), &e) != 0)
        talk_report(t, &e);
    t->front.changed(t->front.ctx);
}

const char *talk_shell(const struct talk *t)
{
    return shell_runs(&t->shell) ? t->shell.command : NULL;
}

int talk_shell_fd(const struct talk *t)
{
    return shell_runs(&t->shell) ? t->shell.fd : -1;
}

void talk_shell_stop(struct talk *t)
{
    shell_stop(&t->shell);
}

/* "exit status 2", "stopped", ...; "" for a command that succeeded. */
static void end_text(const struct shell *s, int status, char *buf, size_t n)
{
    buf[0] = '\0';
    if (s->is_late)
        snprintf(buf, n, "stopped after %d s", SHELL_SECONDS);
    else if (s->is_stopped)
        snprintf(buf, n, "stopped");
    else if (status > 128)
        snprintf(buf, n, "ended by signal %d", status - 128);
    else if (status != 0)
        snprintf(buf, n, "exit status %d", status);
}

/* Show the command and the first lines of its output. */
static void show(struct talk *t, const char *command, const char *text, size_t n)
{
    char shown[SHOWN_BYTES + 400];
    size_t used = (size_t)snprintf(shown, sizeof shown, "$ %s\n", command), end = 0;
    unsigned lines = 0, more = 0;

    while (end < n && lines < SHOWN_LINES) {
        size_t line = strcspn(text + end, "\n");

        if (end + line > SHOWN_BYTES)
            break;
        end += line + (text[end + line] == '\n');
        lines++;
    }
    if (lines == 0) /* one long line */
        end = utf8_start(text, 0, n < SHOWN_BYTES ? n : SHOWN_BYTES);
    for (size_t i = end; i < n; i++)
        more += text[i] == '\n' || i + 1 == n;
    used += (size_t)snprintf(shown + used, sizeof shown - used, "%.*s", (int)end, text);
    while (used > 0 && shown[used - 1] == '\n')
        shown[--used] = '\0';
    if (more > 0)
        snprintf(shown + used, sizeof shown - used, "\n(%u more line%s)", more,
                 more == 1 ? "" : "s");
    t->front.say(t->front.ctx, SAY_NOTICE, shown, STORE_NO_ITEM);
}

/* Attach the output.  Its name is the command. */
static void attach(struct talk *t, const char *command, const char *end, char *text, size_t n,
                   bool is_cut)
{
    char name[160], size[16], count[24], tokens[48] = "";
    struct mw_cost cost;

    snprintf(name, sizeof name, "$ %.100s%s%s%s", command, end[0] != '\0' ? " (" : "", end,
             end[0] != '\0' ? ")" : "");
    if (!talk_attach(t, name, text, n)) {
        talk_error(t, "no more than %d files go with a message", OUTBOX_MAX_FILES);
        return;
    }
    if (talk_file_tokens(t) > 0)
        snprintf(tokens, sizeof tokens, ", about %s token%s",
                 numbers_count(count, sizeof count, talk_file_tokens(t)),
                 talk_file_tokens(t) == 1 ? "" : "s");
    units_size(size, sizeof size, n);
    talk_notice(t, "%s%s%s%s of output%s go with the next message; /file - removes them", end,
                end[0] != '\0' ? "; " : "", is_cut ? "only the first " : "", size, tokens);
    if (messages_cost(t, "", true, &cost) && cost.n_token > cost.n_ctx_left)
        talk_error(t, "that does not fit: the context has %s left",
                   numbers_count(count, sizeof count, cost.n_ctx_left));
}

void talk_shell_pump(struct talk *t)
{
    struct shell *s = &t->shell;
    char command[sizeof s->command], end[40];
    bool is_cut;
    size_t n, room;
    char *text;
    int status;

    if (!shell_runs(s) || !shell_read(s))
        return;
    memcpy(command, s->command, sizeof command);
    is_cut = s->n_left > 0;
    text = shell_take(s, &n, &status);
    end_text(s, status, end, sizeof end);
    room = talk_text_room(t);
    if (text != NULL && n > room) {
        n = utf8_start(text, 0, room);
        text[n] = '\0';
        is_cut = true;
    }
    if (text == NULL) {
        talk_error(t, "not enough memory for the output of \"%s\"", command);
    } else if (n == 0) {
        talk_notice(t, "$ %s: no output%s%s", command, end[0] != '\0' ? ", " : "", end);
        free(text);
    } else {
        show(t, command, text, n);
        attach(t, command, end, text, n, is_cut);
    }
    t->front.changed(t->front.ctx);
}
