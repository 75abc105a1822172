/* --help and --version, from the tables of commands and options. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "src/command.h"

#define COMMAND_AT 12 /* column of the text after a command */
#define OPTION_AT  26 /* column of the text after an option */
#define HELP_WIDTH 80

/* Print text from column left on, with lines broken at HELP_WIDTH.  The cursor is at column
 * at; if that is too close to left, the text starts on a new line. */
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

static void print_option(const struct option *row, const struct command *c)
{
    char left[64], text[200];
    int n;

    if (row->letter != 0)
        n = snprintf(left, sizeof left, "  -%c, --%s", row->letter, row->name);
    else
        n = snprintf(left, sizeof left, "      --%s", row->name);
    if (row->arg != NULL)
        n += snprintf(left + n, sizeof left - (size_t)n, " %s", row->arg);
    fputs(left, stdout);
    print_wrapped(option_help(row, c->name, text, sizeof text), OPTION_AT, n);
}

/* Print the lines of text, each indented by two columns. */
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
        fputs(!c->takes_arg  ? "[-m] MODEL "
              : c->has_guide ? "[-m MODEL] "
                             : "-m MODEL ",
              stdout);
    printf("[options]%s%s\n\n%s\n", c->args != NULL ? " " : "", c->args != NULL ? c->args : "",
           c->about);
    for (int g = 0; g < N_GROUP; g++) {
        bool any = false;

        for (int i = 0; i < N_OPTION; i++) {
            const struct option *row = &options_table[i];

            if ((int)row->group != g || (row->commands & c->bit) == 0 || row->is_hidden)
                continue;
            if (!any)
                printf("\n%s:\n", option_group_title((enum option_group)g));
            any = true;
            print_option(row, c);
        }
    }
    puts("\nExamples:");
    print_indented(c->examples);
    print_exit_codes();
}

void help_program(void)
{
    const struct command *c;

    puts("memwall - talk to a language model larger than memory\n\n"
         "Usage: memwall                      choose a model of this machine, and chat\n"
         "       memwall -m MODEL [options]   chat with this model in the terminal\n"
         "       memwall COMMAND [options]\n\n"
         "Commands:");
    for (size_t i = 0; (c = command_next_shown(&i)) != NULL;)
        print_wrapped(c->help, COMMAND_AT, printf("  %s", c->name));
    puts("\nExamples:\n"
         "  memwall demo                             the memory wall, shown in a minute\n"
         "  memwall demo -m model.gguf               the same memory with mapped pages\n"
         "  memwall plan model.gguf --memory 1G      show what would fit; load nothing\n"
         "  memwall -m model.gguf --memory 1G        chat; keep everything under 1 GiB\n"
         "  memwall run -m model.gguf \"Why is the sky blue?\"");
    puts("\n\"memwall help COMMAND\" lists the options of a command.  Without a command,\n"
         "the options are those of chat.  Manual: memwall(1).");
    print_exit_codes();
}

void help_version(void)
{
    printf("memwall %s\nfeatures ", mw_version());
    for (int i = 0; mw_feature(i) != NULL; i++)
        printf("%s %s", i > 0 ? "," : "", mw_feature(i));
    /* The first one is the default of --isa. */
    fputs("\nkernels  ", stdout);
    for (int i = 0; mw_isa(i) != NULL; i++)
        printf("%s %s", i > 0 ? "," : "", mw_isa(i));
    putchar('\n');
}
