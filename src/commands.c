/* The rows of command.h, in the order in which --help lists them. */
#include "config.h"

#include <string.h>

#include "src/command.h"

/* clang-format off */
const struct command command_table[] = {
    { "completions", "bash|zsh|fish|man-COMMAND|list",
      "print what is generated from the table of options",
      "Print the shell completions, the list of a subcommand's options for its man page,\n"
      "or all options one a line.",
      CMD_COMPLETIONS, true, false, true, cmd_completions },
};
/* clang-format on */
const size_t n_command = sizeof command_table / sizeof command_table[0];

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < n_command; i++)
        if (strcmp(command_table[i].name, name) == 0)
            return &command_table[i];
    return NULL;
}
