/* --help and --version, from the tables of commands and options. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "src/command.h"

#define HELP_AT    26 /* column of the help text */
#define HELP_WIDTH 94 /* last column of it */

/* Words of text from column HELP_AT on, broken before HELP_WIDTH; the cursor is at column
 * at. */
static void print_wrapped(const char *text, int at)
{
    if (at + 2 > HELP_AT) {
        putchar('\n');
        at = 0;
    }
    printf("%*s", HELP_AT - at, "");
    at = HELP_AT;
    while (*text != '\0') {
        int n = (int)strcspn(text, " ");

        if (at > HELP_AT && at + 1 + n > HELP_WIDTH) {
            printf("\n%*s", HELP_AT, "");
            at = HELP_AT;
        } else if (at > HELP_AT) {
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
    print_wrapped(row->help, n);
}

static void print_exit_codes(void)
{
    puts("\nExit status: 0 done, 1 failed, 2 wrong usage, 3 does not fit the memory budget,\n"
         "130 stopped with Ctrl-C.");
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
        print_wrapped(command_table[i].help, printf("  %s", command_table[i].name));
    }
    puts("\n\"memwall COMMAND --help\" lists the options of a command.  Without a command the\n"
         "options are those of chat.");
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
