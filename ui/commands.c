#include "config.h"

#include "ui/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/sheet.h"

/* ---- help ---- */

static void help_keys(struct sheet *s)
{
    static const struct {
        const char *keys, *what;
    } rows[] = {
        { "Enter", "send; a message that is sent while an answer runs waits for its turn" },
        { "Alt-Enter, Ctrl-J, \\ Enter", "new line" },
        { "Esc, Ctrl-C", "stop the answer; what was said stays" },
        { "Ctrl-C", "empty the line; twice on an empty line: leave" },
        { "Ctrl-D", "leave (on an empty line)" },
        { "Tab", "complete; on an empty line: to the dashboard and back" },
        { "Up, Down, Ctrl-R", "history, search in it" },
        { "Ctrl-X Ctrl-E", "edit the line in $EDITOR" },
        { "PgUp, PgDn, wheel", "scroll; Shift-Up and Shift-Down by a line" },
        { "Home, End", "on an empty line: to the beginning, to the end and follow" },
        { "/ n N", "while scrolled up: search, older match, newer match" },
        { "F1", "this help" },
        { "F2, Ctrl-T", "chat, both, dashboard" },
        { "F3", "the text as it came, without Markdown" },
        { "F4, F5", "fold thinking, fold receipts" },
        { "F6", "let go of the mouse, take it again (Shift selects in any case)" },
        { "F7, F8", "copy the answer, copy the code block (again: the one before it)" },
        { "F9", "pick an earlier message to go back to" },
        { "Alt-, Alt-.", "move the divider (or drag it)" },
        { "Ctrl-L", "draw everything again" },
        { "Ctrl-Z", "suspend" },
    };

    sheet_line(s, ROLE_HEADING, "Keys");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sheet_line(s, ROLE_ACCENT, "  %-28s", rows[i].keys);
        sheet_more(s, ROLE_TEXT, " %s", rows[i].what);
    }
}

static void run_help(struct talk *t, const char *args)
{
    const struct slash_command *one = command_find(args, strlen(args));
    struct sheet *s;

    if (args[0] == '/')
        one = command_find(args + 1, strlen(args) - 1);
    if (one != NULL) {
        talk_notice(t, "/%s %s: %s", one->name, one->args, one->help);
        return;
    }
    if (args[0] != '\0') {
        talk_error(t, "there is no command \"%s\"", args);
        return;
    }
    s = sheet_new("Help", "PgDn: more, Esc: back");
    if (s == NULL)
        return;
    sheet_line(s, ROLE_HEADING, "Commands");
    for (size_t i = 0; slash_commands[i].name != NULL; i++) {
        sheet_line(
            s, ROLE_ACCENT, "  /%s %s%*s", slash_commands[i].name, slash_commands[i].args,
            (int)(27 - strlen(slash_commands[i].name) - strlen(slash_commands[i].args)), "");
        sheet_more(s, ROLE_TEXT, "%s", slash_commands[i].help);
    }
    sheet_line(s, ROLE_TEXT, "  a message that begins with a slash: //");
    sheet_line(s, ROLE_TEXT, "%s", "");
    help_keys(s);
    t->front.sheet(t->front.ctx, s);
}

static void run_quit(struct talk *t, const char *args)
{
    (void)args;
    t->front.quit(t->front.ctx);
}

void command_context_full(struct talk *t)
{
    talk_error(t,
               "the context of %u tokens is full: /ctx %u makes it longer, /kv q8_0 smaller, "
               "/undo takes the last exchange back",
               t->plan.n_ctx, t->plan.n_ctx * 2);
}

/* ---- the table ---- */

/* clang-format off */
const struct slash_command slash_commands[] = {
    { "help", "[COMMAND]", "commands and keys", ARG_TEXT, NULL, run_help },
    { "quit", "", "leave", ARG_NONE, NULL, run_quit },
    { NULL, NULL, NULL, ARG_NONE, NULL, NULL },
};
/* clang-format on */

const struct slash_command *command_find(const char *word, size_t n)
{
    for (size_t i = 0; slash_commands[i].name != NULL; i++)
        if (strlen(slash_commands[i].name) == n &&
            strncmp(slash_commands[i].name, word, n) == 0)
            return &slash_commands[i];
    return NULL;
}

void command_run(struct talk *t, const char *line)
{
    size_t n = strcspn(line + 1, " \t\n");
    const struct slash_command *row = command_find(line + 1, n);
    const char *args = line + 1 + n + strspn(line + 1 + n, " \t\n");
    char *trimmed;
    size_t len;

    if (row == NULL) {
        talk_error(t,
                   "there is no command \"%.*s\"; /help lists them, a second slash in front "
                   "sends the line as it is",
                   (int)(n < 40 ? n + 1 : 40), line);
        t->front.draft(t->front.ctx, line);
        return;
    }
    trimmed = strdup(args);
    if (trimmed == NULL)
        return;
    len = strlen(trimmed);
    while (len > 0 && strchr(" \t\n", trimmed[len - 1]) != NULL)
        trimmed[--len] = '\0';
    if (row->argument == ARG_NONE && len > 0)
        talk_error(t, "/%s takes no argument", row->name);
    else
        row->run(t, trimmed);
    free(trimmed);
}

size_t command_complete(void *ctx, const char *line, size_t n, command_add_fn *add, void *list,
                        bool *space)
{
    char text[64];

    (void)ctx;
    if (n == 0 || line[0] != '/')
        return 0;
    *space = true;
    for (size_t i = 0; slash_commands[i].name != NULL; i++)
        if (strncmp(slash_commands[i].name, line + 1, n - 1) == 0) {
            snprintf(text, sizeof text, "/%s", slash_commands[i].name);
            add(list, text);
        }
    return 0;
}
