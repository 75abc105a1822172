/* /help: commands, settings and keys by subject, one command, the dashboard. */
#include "config.h"

#include "ui/talk/help.h"

#include <stdio.h>
#include <string.h>

#include "ui/dash/explain.h"
#include "ui/talk/command_list.h"
#include "ui/talk/commands.h"
#include "ui/text/sheet.h"

#define HINT "type: filter   Esc: close"

const struct help_key *help_keys(void)
{
    static const struct help_key rows[] = {
        { "Enter", "send; while an answer runs, the message is queued" },
        { "Alt-Enter, Ctrl-J, \\ Enter", "start a new line" },
        { "Esc, Ctrl-C", "stop the answer; the text so far stays" },
        { "Ctrl-C", "clear the line; twice on an empty line: quit" },
        { "Ctrl-D", "quit (on an empty line)" },
        { "Tab", "complete; on an empty line: switch to the dashboard and back" },
        { "Up, Down, Ctrl-R", "move in the history, search it" },
        { "Ctrl-A, Ctrl-E, Home, End", "move to the start or the end of the text line" },
        { "Ctrl-U, Ctrl-K", "delete to the start or the end; there: the line break" },
        { "Ctrl-X Ctrl-E", "edit the line in $EDITOR" },
        { "PgUp, PgDn, wheel", "scroll; Shift-Up and Shift-Down scroll one line" },
        { "Home, End", "on an empty line: go to the start, or to the end and follow" },
        { "Left, Right", "in an empty line: show another answer that /retry made" },
        { "Ctrl-F", "search the chat; n and N: older and newer match" },
        { "F1", "show this help; again: explain the dashboard" },
        { "F2, Ctrl-T", "switch between chat, both and dashboard" },
        { "F3", "show the text as received, without Markdown" },
        { "F4, F5", "fold thinking and files, fold receipts" },
        { "F6", "release or capture the mouse (Shift always selects)" },
        { "F7, F8", "copy the answer; copy a code block (again: the previous one)" },
        { "F9", "pick an earlier message to go back to" },
        { "F10", "run the command that the verdict advises" },
        { "Alt-, Alt-.", "move the divider (or drag it)" },
        { "Tab 1 to 7", "hide or show a panel of the dashboard; 0: all as at first" },
        { "Tab Left, Right", "choose a panel; K, J: move it; +, -: resize it" },
        { "Tab w", "move along the wall: Left, Right, Enter; c: the context" },
        { "Tab ?", "explain the dashboard" },
        { "Ctrl-L", "redraw the screen" },
        { "Ctrl-Z", "suspend" },
        { NULL, NULL },
    };

    return rows;
}

static void put_keys(struct sheet *s)
{
    sheet_line(s, ROLE_HEADING, "Keys");
    for (const struct help_key *k = help_keys(); k->keys != NULL; k++) {
        sheet_line(s, ROLE_ACCENT, "  %-27s", k->keys);
        sheet_more(s, ROLE_TEXT, " %s", k->what);
    }
}

/* "/exit, /bye" */
static char *other_names(const struct slash_command *c, char *buf, size_t n)
{
    size_t used = 0;

    buf[0] = '\0';
    for (const char *at = c->also == NULL ? "" : c->also; *at != '\0' && used < n;) {
        size_t len = strcspn(at, " ");

        used += (size_t)snprintf(buf + used, n - used, "%s/%.*s", used > 0 ? ", " : "",
                                 (int)len, at);
        at += len + strspn(at + len, " ");
    }
    return buf;
}

static void help_commands(struct sheet *s, enum command_subject subject)
{
    sheet_line(s, ROLE_HEADING, "%s", command_subject_title(subject));
    for (const struct slash_command *c = command_list(); c->name != NULL; c++)
        if (c->subject == subject) {
            int used = (int)(strlen(c->name) + strlen(c->args));
            char also[120];

            sheet_line(s, ROLE_ACCENT, "  /%s %s%*s", c->name, c->args,
                       used < 25 ? 25 - used : 0, "");
            other_names(c, also, sizeof also); /* on a line of their own if they are long */
            sheet_more(s, ROLE_TEXT, " %s%s", c->help, also[0] != '\0' ? ";" : "");
            if (also[0] != '\0')
                sheet_more(s, ROLE_DIM, " also %s", also);
        }
    if (subject == SUBJECT_CHAT) {
        sheet_line(s, ROLE_ACCENT, "  %-27s", "//TEXT");
        sheet_more(s, ROLE_TEXT, " send a message that begins with a slash");
    }
    if (subject == SUBJECT_FILES) {
        sheet_line(s, ROLE_ACCENT, "  %-27s", "@FILE in a message");
        sheet_more(s, ROLE_TEXT, " attach the file; @\"MY FILE\" has blanks");
        sheet_line(s, ROLE_ACCENT, "  %-27s", "!COMMAND");
        sheet_more(s, ROLE_TEXT, " run a command and attach its output");
    }
}

/* The settings without a command. */
static void help_settings(struct sheet *s)
{
    sheet_line(s, ROLE_HEADING, "Other settings: /set NAME VALUE");
    for (int i = 0; i < N_OPTION; i++) {
        const struct option *row = &options_table[i];

        if (row->slash != NULL || row->reach == REACH_LINE || row->is_hidden)
            continue;
        sheet_line(s, ROLE_ACCENT, "  %-27s", row->name);
        sheet_more(s, ROLE_TEXT, " %s", row->help);
    }
}

/* The figures of the dashboard by panels. */
static void put_figures(struct sheet *s)
{
    const char *panel = "";

    for (const struct dash_note *n = dash_notes(); n->panel != NULL; n++) {
        if (strcmp(n->panel, panel) != 0)
            sheet_line(s, ROLE_HEADING, "%s", n->panel);
        panel = n->panel;
        sheet_line(s, ROLE_ACCENT, "  %-16s", n->figure);
        sheet_more(s, ROLE_TEXT, " %s", n->meaning);
    }
}

/* All commands, settings and keys, or the part that contains the words, here and in the help of
 * the dashboard. */
static void help_all(struct talk *t, const char *words)
{
    struct sheet *s = sheet_new("Help", HINT);

    if (s == NULL)
        return;
    sheet_on_help(s, "/help dashboard");
    for (int i = 0; i < N_SUBJECT; i++)
        help_commands(s, (enum command_subject)i);
    help_settings(s);
    if (talk_has_screen(t))
        put_keys(s);
    if (words[0] != '\0' && talk_has_screen(t))
        put_figures(s);
    if (sheet_filter(s, words)) {
        talk_show(t, s);
        return;
    }
    sheet_free(s);
    talk_error(t, "there is no command \"%s\", and no help contains it", words);
}

struct sheet *help_dashboard_sheet(void)
{
    struct sheet *s = sheet_new("The dashboard", HINT);

    if (s == NULL)
        return NULL;
    sheet_set_narrow(s);
    sheet_line(s, ROLE_DIM, "Figures are measured. ~ marks an estimate, - is not measured.");
    put_figures(s);
    sheet_filter(s, "");
    return s;
}

static void help_dashboard(struct talk *t)
{
    struct sheet *s = help_dashboard_sheet();

    if (s == NULL)
        return;
    sheet_on_help(s, "/help");
    talk_show(t, s);
}

/* ---- one command ---- */

static void row(struct sheet *s, const char *name, const char *value)
{
    if (value == NULL || value[0] == '\0')
        return;
    sheet_line(s, ROLE_DIM, "%-10s ", name);
    sheet_more(s, ROLE_TEXT, "%s", value);
}

/* Show the row of a setting. */
static void help_setting(struct sheet *s, const struct option *o)
{
    char text[200];

    sheet_gap(s);
    row(s, "values", o->words);
    row(s, "default", option_default(o, "chat", text, sizeof text));
    row(s, "applies", option_reach_text(o->reach));
    snprintf(text, sizeof text, "memwall --%s%s%s", o->name, o->arg == NULL ? "" : " ",
             o->arg == NULL ? "" : o->arg);
    row(s, "at start", text);
    snprintf(text, sizeof text, "/set %s %s", o->name, option_form(o));
    row(s, "to keep", text);
    if (o->more == NULL)
        return;
    sheet_gap(s);
    sheet_text(s, ROLE_TEXT, o->more);
}

static void help_one(struct talk *t, const struct slash_command *c)
{
    char title[90], also[120];
    struct sheet *s;

    snprintf(title, sizeof title, "/%s%s%s", c->name, c->args[0] != '\0' ? " " : "", c->args);
    s = sheet_new(title, NULL);
    if (s == NULL)
        return;
    sheet_on_help(s, "/help");
    sheet_text(s, ROLE_TEXT, c->help);
    row(s, "also", other_names(c, also, sizeof also));
    if (c->argument == ARG_VALUE)
        help_setting(s, &options_table[c->setting]);
    talk_show(t, s);
}

void run_help(struct talk *t, const char *args)
{
    const char *word = args + (args[0] == '/');
    const struct slash_command *one = command_find(word, strlen(word));

    if (strcmp(word, "dashboard") == 0)
        help_dashboard(t);
    else if (one != NULL)
        help_one(t, one);
    else
        help_all(t, word);
}
