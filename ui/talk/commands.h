/*
 * commands.h - lines that begin with a slash.
 *
 * Each command is a row with its name, arguments, one line of help, how the argument is
 * completed, and its function.  Settings with a command (ui/options) add rows of their own.
 * The help page, completion and the manual's list are made from the rows.  The beginning of a
 * name is enough if no other name begins with it.  Names of other programs are a column, so that
 * "/exit" and "/num_ctx" do what people expect.
 */
#ifndef MEMWALL_UI_TALK_COMMANDS_H
#define MEMWALL_UI_TALK_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/talk/talk.h"

enum command_argument {
    ARG_NONE,
    ARG_TEXT,
    ARG_PATH,
    ARG_MODEL,
    ARG_OUTPUT, /* a path to write to; "/name! PATH" replaces an existing file */
    ARG_WORDS,  /* one of the row's words */
    ARG_VALUE,  /* of a setting */
    ARG_CHAT,
    ARG_COMMAND,
    ARG_SETTING,
};

/* Groups of the help. */
enum command_subject {
    SUBJECT_CHAT,
    SUBJECT_SPEED,
    SUBJECT_SAMPLING,
    SUBJECT_FILES,
    SUBJECT_SCREEN,
    N_SUBJECT,
};
const char *command_subject_title(enum command_subject subject);

struct slash_command {
    const char *name; /* without the slash */
    const char *args; /* "" or "[N]" */
    const char *help;
    enum command_argument argument;
    const char *words; /* separated by blanks */
    union {
        void (*run)(struct talk *t, const char *args);
        void (*write)(struct talk *t, const char *args, bool replaces); /* ARG_OUTPUT */
        enum option_id setting;                                         /* ARG_VALUE */
    };
    enum command_subject subject;
    const char *also; /* other names, which people know from other programs; or NULL */
    const char *asks; /* other words of questions about it; or NULL */
    bool in_order;    /* it is about the conversation as it is after the answers before it */
};

/* All commands, sorted by name; a NULL name ends. */
const struct slash_command *command_list(void);

/* The chat begins: if nobody has chosen one of several models of a server, show them. */
void command_begin(struct talk *t);

/* Run a line that was entered: a command, or a message.  A second slash in front sends a line
 * that begins with a slash as a message. */
void command_enter(struct talk *t, const char *line);

/* Is line a command that, typed ahead, waits for the answers to the messages before it? */
bool command_is_in_order(const char *line);

/* People who come from a shell type "exit" to leave: is the line such a word? */
bool command_means_to_leave(const char *line);

/* The row whose name, or one of whose other names, is word[0 .. n); or NULL. */
const struct slash_command *command_find(const char *word, size_t n);

/* The same, or the only row whose name begins with word[0 .. n). */
const struct slash_command *command_match(const char *word, size_t n);

/* Completion, as edit.h calls it; ctx is a struct talk. */
typedef void command_add_fn(void *list, const char *line);
size_t command_complete(void *ctx, const char *line, size_t n, command_add_fn *add, void *list,
                        bool *space);

#endif
