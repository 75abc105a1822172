/*
 * command.h - the subcommands, as rows of a table.
 *
 * To add one: a bit in enum command_bit (options.h), a file cmd_NAME.c with its function,
 * a row in commands.c, man/memwall-NAME.1, `make update-tables`.
 */
#ifndef MEMWALL_SRC_COMMAND_H
#define MEMWALL_SRC_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "src/options.h"

/* How the program ends. */
enum exit_code {
    EXIT_OK = 0,
    EXIT_FAILED = 1,   /* a file, the system or the model did not do what was needed */
    EXIT_USAGE = 2,    /* the command line is wrong */
    EXIT_NO_FIT = 3,   /* does not fit the memory budget */
    EXIT_STOPPED = 130 /* stopped by Ctrl-C */
};

struct command {
    const char *name;
    const char *args;     /* of the usage line, behind the options; "" for none */
    const char *help;     /* one line */
    const char *about;    /* a paragraph of --help, lines broken by hand */
    const char *examples; /* command lines, one a line */
    unsigned bit;         /* enum command_bit */
    bool is_hidden;
    bool needs_model; /* -m or the first positional */
    bool takes_arg;   /* a positional of its own, so that the model needs its -m */
    int (*run)(const struct options *o); /* returns enum exit_code */
};
extern const struct command command_table[];
extern const size_t n_command;

/* By name, hidden ones too; NULL: there is none. */
const struct command *command_named(const char *name);

/* `--help` of the program and of a subcommand, on standard output. */
void help_program(void);
void help_command(const struct command *c);
/* Name, version, build features, kernels on this CPU. */
void help_version(void);

/* "memwall: " and the error on standard error; the exit code that belongs to it. */
int report_error(const struct err *e);
/* The same for a mistake in the command line, with where help is found. */
int report_usage(const struct command *c, const struct err *e);
/* "memwall: " and a text that is no error, on standard error, cleaned. */
void report_notice(const char *text, size_t n);
/* Write out what standard output holds; false: it cannot be written, report_end() says
 * why. */
bool report_flush(void);
/* Flush standard output: code, or EXIT_FAILED with a message if writing failed. */
int report_end(int code);

int cmd_run(const struct options *o);
int cmd_plan(const struct options *o);
int cmd_eval(const struct options *o);
int cmd_inspect(const struct options *o);
int cmd_chat(const struct options *o);
int cmd_replay(const struct options *o);
int cmd_tokenize(const struct options *o);
int cmd_completions(const struct options *o);

#endif
