/*
 * program.h - ./memwall on a pseudo-terminal, in a home folder of its own.
 *
 * Without another model it talks to one of talker.h: its answer is program_text(), to the
 * byte.  The folder that holds this model and the machine's measured limits is shared by
 * the runs of one test program.
 */
#ifndef MEMWALL_TESTS_PROGRAM_H
#define MEMWALL_TESTS_PROGRAM_H

#include "tests/lib/pty_screen.h"

struct program {
    struct pty_screen *s;
    char home[64];
};

struct program_start {
    int rows, cols;
    const char *term;        /* NULL: xterm-256color */
    const char *model;       /* NULL: the talker; else a path */
    const char *const *args; /* further ones, ended by NULL; may be NULL */
    const char *const *env;  /* as for pty_new; may be NULL */
    const char *script;      /* NULL, or of a shell with job control, whose "$@" it is */
};

/* A group's set-up and tear-down: the shared folder. */
int program_group_setup(void **state);
int program_group_teardown(void **state);

/* In an empty home. */
void program_begin(struct program *p, const struct program_start *o);
/* In the same home, after it has ended or been killed. */
void program_again(struct program *p, const struct program_start *o);
/* Kill it if need be, remove the home. */
void program_end(struct program *p);

/* Type line and Enter. */
void program_line(struct program *p, const char *line);
/* The same, until the screen shows text. */
void program_ask(struct program *p, const char *line, const char *text);
/* Send a message and wait for the end of its answer.  The screen is wide enough for the
 * status bar to say "ready" (100 columns). */
void program_say(struct program *p, const char *text);
/* /quit; the exit status must be 0 and the terminal as it was. */
void program_quit(struct program *p);
/* Every key that was sent so far is on the screen.  The line must be empty. */
void program_sync(struct program *p);
/* Is what the terminal shows what it would show if all were drawn again? */
bool program_is_drawn_right(struct program *p);

/* The answer of the talker: a heading, lists, a table, code, Chinese, emoji, then
 * "Line 1: ..." to "Line 400: ...", and from the start again. */
const char *program_text(void);
/* The path of the talker's model, and of one that is slower: a hundred tokens a second or so.
 */
const char *program_model(void);
const char *program_slow_model(void);
/* The path of a file in the run's home; for four calls. */
const char *program_path(const struct program *p, const char *name);
/* Contents of a file in the home, for free(); NULL: not there. */
char *program_file(const struct program *p, const char *name);
/* The path of the newest saved chat, below the home; NULL: there is none. */
const char *program_chat(const struct program *p);

#define sees(p, text)  assert_true(pty_sees((p)->s, text))
#define loses(p, text) assert_true(pty_loses((p)->s, text))

#endif
