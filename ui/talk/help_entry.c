#include "config.h"

#include "ui/talk/help_entry.h"

#include <stdlib.h>

#include "ui/dash/explain.h"
#include "ui/talk/commands.h"
#include "ui/talk/help.h"
#include "ui/ui.h"

static void add(struct help_list *l, const struct help_entry *entry)
{
    l->entry[l->n++] = *entry;
}

static void add_commands(struct help_list *l)
{
    for (const struct slash_command *c = command_list(); c->name != NULL; c++) {
        const struct option *o = c->argument == ARG_VALUE ? &options_table[c->setting] : NULL;

        add(l, &(struct help_entry){ .kind = HELP_SLASH,
                                     .name = c->name,
                                     .args = c->args,
                                     .text = c->help,
                                     .also = c->also,
                                     .more = o == NULL ? NULL : o->more,
                                     .asks = c->asks,
                                     .option = o });
    }
}

/* The options without a command.  bench and sweep take lists of values of some of them, which
 * have rows of their own. */
static void add_options(struct help_list *l)
{
    for (int i = 0; i < N_OPTION; i++) {
        const struct option *o = &options_table[i];

        if (o->slash == NULL && !o->is_hidden && o->kind != KIND_LIST)
            add(l, &(struct help_entry){ .kind = HELP_OPTION,
                                         .name = o->name,
                                         .text = o->help,
                                         .more = o->more,
                                         .asks = o->asks,
                                         .option = o });
    }
}

static void add_keys(struct help_list *l)
{
    for (const struct help_key *k = help_keys(); k->keys != NULL; k++)
        add(l, &(struct help_entry){ .kind = HELP_KEY, .name = k->keys, .text = k->what });
}

static void add_notes(struct help_list *l)
{
    for (const struct dash_note *n = dash_notes(); n->panel != NULL; n++)
        add(l, &(struct help_entry){ .kind = HELP_NOTE,
                                     .name = n->figure,
                                     .text = n->meaning,
                                     .asks = n->asks,
                                     .panel = n->panel });
}

static void add_subcommands(struct help_list *l, const struct ui_subcommand *subcommands)
{
    for (const struct ui_subcommand *c = subcommands; c != NULL && c->name != NULL; c++)
        add(l, &(struct help_entry){ .kind = HELP_SUBCOMMAND,
                                     .name = c->name,
                                     .args = c->args,
                                     .text = c->help,
                                     .more = c->about,
                                     .asks = c->asks });
}

static size_t count(const struct ui_subcommand *subcommands)
{
    size_t n = N_OPTION;

    for (const struct slash_command *c = command_list(); c->name != NULL; c++)
        n++;
    for (const struct help_key *k = help_keys(); k->keys != NULL; k++)
        n++;
    for (const struct dash_note *note = dash_notes(); note->panel != NULL; note++)
        n++;
    for (const struct ui_subcommand *c = subcommands; c != NULL && c->name != NULL; c++)
        n++;
    return n;
}

bool help_list_make(struct help_list *out, const struct ui_subcommand *subcommands)
{
    *out = (struct help_list){ .entry = calloc(count(subcommands), sizeof *out->entry) };
    if (out->entry == NULL)
        return false;
    add_commands(out);
    add_keys(out);
    add_notes(out);
    add_options(out);
    add_subcommands(out, subcommands);
    return true;
}

void help_list_free(struct help_list *l)
{
    free(l->entry);
    *l = (struct help_list){ 0 };
}
