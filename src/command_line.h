/*
 * command_line.h - read the arguments of a subcommand into struct options.
 */
#ifndef MEMWALL_SRC_COMMAND_LINE_H
#define MEMWALL_SRC_COMMAND_LINE_H

#include "ui/options/options.h"

struct command;

/*
 * Parse the arguments of a subcommand: --name VALUE, --name=VALUE, -n VALUE, -nVALUE and
 * -qn VALUE; "--" ends the options.  Returns -1 with *e, a message for the user.
 */
int command_line_parse(struct options *o, const struct command *c, int argc, char **argv,
                       struct err *e);

/* Check that everything the subcommand requires was given, by file or command line. */
/* Word processors make one dash of two hyphens, and web pages add characters that cannot be seen.
 * Refuse a text that would be an option of the command without them.  A prompt may begin with a
 * dash. */
int command_line_check_dash(const struct command *c, const char *text, struct err *e);

int command_line_check(const struct options *o, const struct command *c, struct err *e);

#endif
