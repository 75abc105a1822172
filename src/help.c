/* --help and --version, from the tables of commands and options. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "src/command.h"

#define COMMAND_AT 12 /* column of the text behind a command */
#define OPTION_AT  26 /* the same behind an option */
#define HELP_WIDTH 80 /* no line is longer */

/* Words of text from column left on, broken before HELP_WIDTH; the cursor is at column at. */
static void print_wrapped(const char *text, int left, int at)
{
    if (at + 2 > left) {
        putchar('\n');
        at = 0;
    }
    printf("%*s", left - at, "");
    at = left;
    while (*text != '\0') {
        int n = (int)strcspn(text, " ");

        if (at > left && at + 1 + n > HELP_WIDTH) {
            printf("\n%*s", left, "");
            at = left;
        } else if (at > left) {
            putchar(' ');
            at++;
        }
        printf("%.*s", n, text);
        at += n;
        text += n + (text[n] == ' ');
    }
    putchar('\n');
}

static void print_option(const struct option *row)
{
    char left[64];
    int n;

    if (row->letter != 0)
        n = snprintf(left, sizeof left, "  -%c, --%s", row->letter, row->name);
    else
        n = snprintf(left, sizeof left, "      --%s", row->name);
    if (row->arg != NULL)
        n += snprintf(left + n, sizeof left - (size_t)n, " %s", row->arg);
    fputs(left, stdout);
    print_wrapped(row->help, OPTION_AT, n);
}

/* text, each line of it with two columns before it. */
static void print_indented(const char *text)
{
    while (*text != '\0') {
        int n = (int)strcspn(text, "\n");

        printf("  %.*s\n", n, text);
        text += n + (text[n] == '\n');
    }
}

static void print_exit_codes(void)
{
    puts("\nExit status: 0 done, 1 failed, 2 wrong usage, 3 does not fit the memory\n"
         "budget, 130 stopped with Ctrl-C.");
}

void help_command(const struct command *c)
{
    printf("memwall %s - %s\n\nUsage: memwall %s ", c->name, c->help, c->name);
    if (c->needs_model)
        fputs(c->takes_arg ? "-m MODEL " : "[-m] MODEL ", stdout);
    printf("[options]%s%s\n", c->args[0] != '\0' ? " " : "", c->args);
    if (c->about[0] != '\0')
        printf("\n%s\n", c->about);
    for (int g = 0; g < N_GROUP; g++) {
        bool any = false;

        for (int i = 0; i < N_OPTION; i++) {
            const struct option *row = &options_table[i];

            if ((int)row->group != g || (row->commands & c->bit) == 0 || row->is_hidden)
                continue;
            if (!any)
                printf("\n%s:\n", option_group_title((enum option_group)g));
            any = true;
            print_option(row);
        }
    }
    puts("\nExamples:");
    print_indented(c->examples);
    print_exit_codes();
}

void help_program(void)
{
    puts("memwall - talk to a language model larger than memory\n\n"
         "Usage: memwall -m MODEL [options]           chat in the terminal\n"
         "       memwall COMMAND [options]\n\n"
         "Commands:");
    for (size_t i = 0; i < n_command; i++) {
        if (command_table[i].is_hidden)
            continue;
        print_wrapped(command_table[i].help, COMMAND_AT, printf("  %s", command_table[i].name));
    }
    puts("\nExamples:\n"
         "  memwall plan model.gguf --memory 1G      what would fit, before it is loaded\n"
         "  memwall -m model.gguf --memory 1G        chat with all of it under 1 GiB\n"
         "  memwall run -m model.gguf \"Why is the sky blue?\"");
    puts("\n\"memwall COMMAND --help\" lists the options of a command.  Without a command\n"
         "they are those of chat.  Manual: memwall(1).");
    print_exit_codes();
}

void help_version(void)
{
    printf("memwall %s\nfeatures ", mw_version());
    for (int i = 0; mw_feature(i) != NULL; i++)
        printf("%s %s", i > 0 ? "," : "", mw_feature(i));
    /* The first one is what --isa chooses when nothing else is said. */
    fputs("\nkernels  ", stdout);
    for (int i = 0; mw_isa(i) != NULL; i++)
        printf("%s %s", i > 0 ? "," : "", mw_isa(i));
    putchar('\n');
}
