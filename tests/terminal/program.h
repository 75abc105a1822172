/*
 * program.h - run ./memwall or fake_memwall on a pseudo-terminal, in a home folder of its own.
 *
 * By default ./memwall talks to a model of talker.h, whose answer is program_text(), byte for
 * byte.  The runs of one test program share the folder with this model and the measured limits
 * of the machine.  fake_memwall talks to an engine of tests/lib/fake_engine.h, and needs none.
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
    const char *model;       /* NULL: the talker; otherwise a path */
    const char *const *args; /* further arguments, then NULL; may be NULL */
    const char *const *env;  /* as in pty_new; may be NULL */
    const char *script;      /* NULL, or a script for a shell with job control that runs "$@" */
};

/* Set-up and tear-down of a group: the shared folder. */
int program_group_setup(void **state);
int program_group_teardown(void **state);

/* Start in an empty home. */
void program_begin(struct program *p, const struct program_start *o);
/* Start the talker on 40 x 120 cells in an empty home, and wait until it can be talked to. */
void program_begin_talk(struct program *p, const char *const *args);
/* Start in the same home, after it has ended or was killed. */
void program_again(struct program *p, const struct program_start *o);
/* The same with fake_memwall. */
void fake_begin(struct program *p, int rows, int cols, const char *term,
                const char *const *args);
void fake_again(struct program *p, int rows, int cols, const char *const *args);
/* Kill it if it still runs, and remove the home. */
void program_end(struct program *p);

/* The run of tests that have one at a time, and its tear-down. */
extern struct program run;
int end_run(void **state);

/* Type a line and Enter. */
void program_line(struct program *p, const char *line);
/* The same, and wait until the screen shows text. */
void program_ask(struct program *p, const char *line, const char *text);
/* Send a message and wait for the end of its answer.  The screen must be wide enough for
 * "ready" in the status bar (100 columns). */
void program_say(struct program *p, const char *text);
/* Leave with /quit.  The exit status must be 0, and the terminal as it was before. */
void program_quit(struct program *p);
/* Wait until the screen shows every key that was sent so far.  The line must be empty. */
void program_sync(struct program *p);
/* Returns whether drawing everything again changes nothing on the screen. */
bool program_is_drawn_right(struct program *p);

/* The answer of the talker: a heading, lists, a table, code, Chinese, emoji, then "Line 1: ..."
 * to "Line 400: ...", and then the same again. */
const char *program_text(void);
/* The path of the talker's model, and of a model that makes about a hundred tokens a second. */
const char *program_model(void);
const char *program_slow_model(void);
/* The path of a file in the run's home; valid for four calls. */
const char *program_path(const struct program *p, const char *name);
void program_write(const struct program *p, const char *name, const char *text);
/* Returns the contents of a file in the home, which the caller frees; NULL: there is no such
 * file. */
char *program_file(const struct program *p, const char *name);
/* Returns the path of the newest saved chat, relative to the home; NULL: there is none. */
const char *program_chat(const struct program *p);

#define sees(p, text)  assert_true(pty_sees((p)->s, text))
#define loses(p, text) assert_true(pty_loses((p)->s, text))

#endif
