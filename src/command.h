/*
 * command.h - the subcommands.
 *
 * To add one: a file commands/NAME.c that defines struct command cmd_NAME, a line in COMMANDS of
 * ui/options/subcommands.h, a page man/memwall-NAME.1 (both files listed in commands/local.mk).
 * `make update-tables` then writes the completions, the options and examples of the new page,
 * and the list in memwall(1).
 */
#ifndef MEMWALL_SRC_COMMAND_H
#define MEMWALL_SRC_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/options/options.h"
#include "ui/ui.h"

enum exit_code {
    EXIT_OK = 0,
    EXIT_FAILED = 1,   /* a file, the system or the model failed */
    EXIT_USAGE = 2,    /* the command line is wrong */
    EXIT_NO_FIT = 3,   /* does not fit the memory budget */
    EXIT_STOPPED = 130 /* stopped by Ctrl-C */
};

struct command {
    const char *name;
    const char *args;     /* on the usage line, after the options; NULL: none */
    const char *help;     /* one line */
    const char *about;    /* a paragraph of --help, with its line breaks */
    const char *examples; /* command lines, each ended by a newline */
    const char *asks;     /* other words that people use for it, or NULL */
    unsigned bit;         /* enum command_bit */
    bool is_hidden;
    bool needs_model;  /* -m, or the first positional */
    bool resolves;     /* turns a name into a path itself: it can be a model without a file */
    bool has_guide;    /* without a model, the one that is installed answers */
    bool takes_arg;    /* has a positional of its own, so the model needs -m */
    bool model_first;  /* takes_arg, and its first positional can be a model, too */
    const char *files; /* the ending of the files that it takes: ".jsonl"; NULL: any */
    bool joins_args;   /* joins several positionals with blanks: they are a pasted command */
    bool reads_config; /* takes settings from memwall.conf(5) */
    int (*run)(const struct options *o); /* returns enum exit_code */
};
#define X(NAME, name) extern const struct command cmd_##name;
COMMANDS(X)
#undef X

extern const struct command *const command_table[N_COMMAND];

/* The texts of all that help shows, for questions about them. */
const struct ui_subcommand *command_texts(void);

/* Returns the subcommand of this name, also if it is hidden; NULL if there is none. */
const struct command *command_named(const char *name);

/* Walk the subcommands that help and completions show: start with *i = 0; NULL at the end. */
const struct command *command_next_shown(size_t *i);

/* `--help` of the program and of a subcommand, on standard output. */
void help_program(void);
void help_command(const struct command *c);
/* Print name, version, build features and the kernels that this CPU runs. */
void help_version(void);

/* Print "memwall: " and the error to standard error; return its exit code. */
int report_error(const struct err *e);
/* The same for a mistake in the command line; also names the help that lists the options. */
int report_usage(const struct command *c, const struct err *e);
/* Print "memwall: " and a notice to standard error, cleaned for the terminal. */
void report_notice(const char *text, size_t n);
/* Flush standard output.  False if it cannot be written; report_end() prints the reason. */
bool report_flush(void);
/* Flush standard output: code, or EXIT_FAILED with a message if writing failed. */
int report_end(int code);

#endif
