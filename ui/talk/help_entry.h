/*
 * help_entry.h - all help texts as one list, to look up a word in them.
 *
 * The texts stay where the screen has them: an entry points to a row of the options, of the
 * commands of the chat, of the keys, of the notes about the dashboard, or of the subcommands.
 */
#ifndef MEMWALL_UI_TALK_HELP_ENTRY_H
#define MEMWALL_UI_TALK_HELP_ENTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/options/options.h"

struct ui_subcommand;

enum help_kind { HELP_SLASH, HELP_OPTION, HELP_KEY, HELP_NOTE, HELP_SUBCOMMAND };

struct help_entry {
    enum help_kind kind;
    const char *name;            /* without slash or dashes: "ctx", "F7, F8", "pinned" */
    const char *args;            /* of a command; NULL: none */
    const char *text;            /* one line */
    const char *more;            /* more text, or NULL */
    const char *also;            /* other names of a command, or NULL */
    const char *asks;            /* other words that people use for it, or NULL */
    const char *panel;           /* of a note: where it is on the screen */
    const struct option *option; /* the setting of a command, or the option; NULL: none */
};

struct help_list {
    struct help_entry *entry; /* [n] */
    size_t n;
};

/* Gather all entries.  Of entries with equal names, that of the chat comes first.  Returns
 * false if there is not enough memory. */
bool help_list_make(struct help_list *out, const struct ui_subcommand *subcommands);
void help_list_free(struct help_list *l);

#endif
