/*
 * fake_run.h - run fake_memwall on a pseudo-terminal, in a home folder of its own.
 */
#ifndef MEMWALL_TESTS_FAKE_RUN_H
#define MEMWALL_TESTS_FAKE_RUN_H

#include "tests/lib/pty_screen.h"

struct fake_run {
    struct pty_screen *s;
    char home[64];
};

/* Start it and wait until it is ready.  args are further arguments, then NULL; args may be
 * NULL. */
void fake_begin(struct fake_run *f, int rows, int cols, const char *term,
                const char *const *args);
/* Start it again in the same home, after it has ended. */
void fake_again(struct fake_run *f, int rows, int cols, const char *const *args);
/* Kill it if it still runs, and remove the home. */
void fake_end(struct fake_run *f);

/* Type a line and Enter. */
void fake_line(struct fake_run *f, const char *line);

#define sees(f, text)  assert_true(pty_sees((f)->s, text))
#define loses(f, text) assert_true(pty_loses((f)->s, text))

#endif
