/* The table of command.h. */
#include "config.h"

#include <string.h>

#include "src/command.h"

const struct command *const command_table[N_COMMAND] = {
#define X(NAME, name) &cmd_##name,
    COMMANDS(X)
#undef X
};

const struct command *command_named(const char *name)
{
    for (size_t i = 0; i < N_COMMAND; i++)
        if (strcmp(command_table[i]->name, name) == 0)
            return command_table[i];
    return NULL;
}

const struct command *command_next_shown(size_t *i)
{
    while (*i < N_COMMAND && command_table[*i]->is_hidden)
        ++*i;
    return *i < N_COMMAND ? command_table[(*i)++] : NULL;
}

const struct ui_subcommand *command_texts(void)
{
    static struct ui_subcommand all[N_COMMAND + 1];
    const struct command *c;

    for (size_t i = 0, n = 0; (c = command_next_shown(&i)) != NULL;)
        all[n++] = (struct ui_subcommand){ c->name, c->args, c->help, c->about, c->asks };
    return all;
}
