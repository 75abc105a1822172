/*
 * memwall completions: print the tables of commands and options for the scripts in
 * share/completions, and the generated parts of the man pages.
 *
 * `make update-tables` writes the parts to man; a test fails if the pages there differ from this
 * output.
 */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/lookalike.h"
#include "src/base/paths.h"
#include "src/command.h"
#include "ui/look/theme.h"
#include "ui/store/store.h"
#include "ui/talk/commands.h"

static bool is_shown(const struct option *row, const struct command *c)
{
    return (row->commands & c->bit) != 0 && !row->is_hidden;
}

/* The help of a row with its default for c (NULL: for all commands), until the next call. */
static const char *help_of(const struct option *row, const struct command *c)
{
    static char text[200];

    return option_help(row, c != NULL ? c->name : NULL, text, sizeof text);
}

/* Returns the values that a shell offers for a row: words, or a colon and a kind of them. */
static const char *values_of(const struct option *row)
{
    if (row->arg == NULL)
        return "-";
    if (option_values(row) != NULL)
        return option_values(row);
    switch (row - options_table) {
    case OPT_MODEL: return ":models";
    case OPT_THEME: return ":themes";
    case OPT_OPEN: return ":chats";
    }
    return row->kind == KIND_FILE ? ":files" : ":none";
}

/* Returns the same for arguments: all are models, the first is one, an ending, any file. */
static const char *values_of_arguments(const struct command *c)
{
    if (c->model_first)
        return ":model";
    if (c->needs_model && !c->takes_arg)
        return ":models";
    return c->files != NULL ? c->files : ":files";
}

/* ---- man pages ---- */

/* Write dashes as minus signs, so that options can be copied.  Escape a dot or quote at the
 * start of a line, which would be a request. */
static void roff_text(const char *s)
{
    if (*s == '.' || *s == '\'')
        fputs("\\&", stdout);
    for (; *s != '\0'; s++) {
        if (*s == '-')
            fputs("\\-", stdout);
        else if (*s == '\\')
            fputs("\\e", stdout);
        else
            putchar(*s);
    }
}

static void print_man_options(const struct command *c)
{
    for (int g = 0; g < N_GROUP; g++) {
        bool any = false;

        for (int i = 0; i < N_OPTION; i++) {
            const struct option *row = &options_table[i];

            if ((int)row->group != g || !is_shown(row, c))
                continue;
            if (!any)
                printf(".SS %s\n", option_group_title((enum option_group)g));
            any = true;
            puts(".TP");
            fputs(row->arg != NULL ? ".BI \"" : ".B \"", stdout);
            if (row->letter != 0)
                printf("\\-%c, ", row->letter);
            fputs("\\-\\-", stdout);
            roff_text(row->name);
            if (row->arg != NULL)
                printf(" \" %s", row->arg);
            else
                putchar('"');
            putchar('\n');
            roff_text(help_of(row, c));
            putchar('\n');
        }
    }
}

static void print_man_examples(const struct command *c)
{
    const char *text = c->examples;

    puts(".EX");
    while (*text != '\0') {
        char line[128];
        int n = (int)strcspn(text, "\n");

        snprintf(line, sizeof line, "%.*s", n, text);
        roff_text(line);
        putchar('\n');
        text += n + (text[n] == '\n');
    }
    puts(".EE");
}

/* The list of memwall(1): each command, its help as a sentence, its page. */
static void print_man_commands(void)
{
    const struct command *c;

    for (size_t i = 0; (c = command_next_shown(&i)) != NULL;) {
        printf(".TP\n.B %s\n%c", c->name, toupper((unsigned char)c->help[0]));
        roff_text(c->help + 1);
        printf(".\nSee\n.BR memwall\\-%s (1).\n", c->name);
    }
}

/* "; also /exit, /bye" */
static void print_other_names(const char *also)
{
    const char *comma = "; also /";

    for (; also != NULL && *also != '\0'; also += strspn(also, " ")) {
        char name[40];

        snprintf(name, sizeof name, "%.*s", (int)strcspn(also, " "), also);
        fputs(comma, stdout);
        roff_text(name);
        comma = ", /";
        also += strlen(name);
    }
}

/* The list of memwall-chat(1): the commands of the chat. */
static void print_man_slash(void)
{
    for (const struct slash_command *c = command_list(); c->name != NULL; c++) {
        printf(".TP\n.%s \"/", c->args[0] != '\0' ? "BI" : "B");
        roff_text(c->name);
        putchar('"');
        if (c->args[0] != '\0')
            printf(" \" %s\"", c->args);
        putchar('\n');
        roff_text(c->help);
        print_other_names(c->also);
        putchar('\n');
    }
}

/* The commands that read a setting from the configuration. */
static void print_readers(const struct option *row)
{
    const struct command *c;
    const char *comma = "";

    for (size_t i = 0; (c = command_next_shown(&i)) != NULL;)
        if (c->reads_config && (row->commands & c->bit) != 0) {
            printf("%s%s", comma, c->name);
            comma = ", ";
        }
}

/* The list of memwall.conf(5): each setting, its range, who reads it. */
static void print_man_settings(void)
{
    for (int i = 0; i < N_OPTION; i++) {
        const struct option *row = &options_table[i];

        if (row->reach == REACH_LINE)
            continue;
        fputs(".TP\n.BI \"", stdout);
        roff_text(row->name);
        printf(" = \" %s\n", option_form(row));
        roff_text(help_of(row, NULL));
        if (row->max > 0 && row->max < INT32_MAX)
            printf("; from %g to %.10g", row->min, row->max);
        fputs("\n.br\nFor ", stdout);
        print_readers(row);
        if ((row->commands & CMD_CHAT) != 0)
            printf("; a chat applies it %s", option_reach_text(row->reach));
        puts(".");
    }
}

/* One option per line: command, option, letter, argument, group, help, values, with tabs between.
 * A line without an option is the command itself; its values are those of its arguments. */
static void print_list(void)
{
    const struct command *c;

    for (size_t i = 0; (c = command_next_shown(&i)) != NULL;) {
        printf("%s\t-\t-\t-\t-\t%s\t%s\n", c->name, c->help, values_of_arguments(c));
        for (int k = 0; k < N_OPTION; k++) {
            const struct option *row = &options_table[k];

            if (is_shown(row, c))
                printf("%s\t--%s\t%c\t%s\t%s\t%s\t%s\n", c->name, row->name,
                       row->letter != 0 ? row->letter : '-', row->arg != NULL ? row->arg : "-",
                       option_group_title(row->group), help_of(row, c), values_of(row));
        }
    }
}

/* ---- names, which the completions ask for ---- */

static void print_name(void *ctx, const char *name)
{
    (void)ctx;
    puts(name);
}

static void print_themes(void)
{
    struct err ignored = ERR_INIT; /* without folders there are only the built-in themes */
    struct paths paths;

    theme_names(paths_find(&paths, &ignored) == 0 ? paths.config_dir : NULL, print_name, NULL);
}

static void print_chats(void)
{
    struct err ignored = ERR_INIT; /* a folder that cannot be read has no chats */
    struct store_entry *list = NULL;
    struct paths paths;
    char dir[600];
    size_t n = 0;

    if (paths_find(&paths, &ignored) != 0)
        return;
    snprintf(dir, sizeof dir, "%s/chats", paths.data_dir);
    if (store_list(dir, &list, &n, &ignored) != 0)
        return;
    for (size_t i = 0; i < n; i++)
        if (!list[i].is_damaged)
            puts(list[i].name);
    free(list);
}

static int run_completions(const struct options *o)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } kinds[] = {
        { "list", print_list },
        { "commands", print_man_commands },
        { "slash", print_man_slash },
        { "settings", print_man_settings },
        { "themes", print_themes },
        { "chats", print_chats },
    };
    static const struct {
        const char *prefix;
        void (*print)(const struct command *c);
    } lists[] = {
        { "options-", print_man_options },
        { "examples-", print_man_examples },
    };
    const char *what = o->arg != NULL ? o->arg : "";
    struct err e = ERR_INIT;

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, what) != 0)
            continue;
        kinds[i].print();
        return EXIT_OK;
    }
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        size_t n = strlen(lists[i].prefix);
        const struct command *c =
            strncmp(what, lists[i].prefix, n) == 0 ? command_named(what + n) : NULL;

        if (c == NULL)
            continue;
        lists[i].print(c);
        return EXIT_OK;
    }
    err_set(&e, ERR_ARGUMENT, "unknown table \"%.40s\"; use list, themes or chats", what);
    (void)lookalike_explain(&e, what);
    return report_usage(&cmd_completions, &e);
}

const struct command cmd_completions = {
    .name = "completions",
    .args = "list|themes|chats",
    .help = "print the tables that shell completions read",
    .about = "Print what the completions of bash, zsh and fish offer: \"list\" all options, one\n"
             "per line, \"themes\" and \"chats\" names.  For the source tree: \"commands\",\n"
             "\"slash\", \"settings\", \"options-COMMAND\" and \"examples-COMMAND\" print the\n"
             "generated parts of the man pages.",
    .examples = "memwall completions list\n",
    .asks = "completion tab complete bash zsh fish shell",
    .bit = CMD_COMPLETIONS,
    .is_hidden = true,
    .takes_arg = true,
    .run = run_completions,
};
