#include "config.h"

#include "tests/terminal/fake_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/tree.h"

#define MAX_ARGS 24

static void start(struct fake_run *f, int rows, int cols, const char *term,
                  const char *const *args)
{
    const char *build = getenv("MW_BUILDDIR"), *argv[MAX_ARGS + 4];
    char program[4096], home[96];
    const char *env[] = { home, NULL };
    struct pty_start o = { rows, cols, term, env, argv };
    int n = 0;

    snprintf(program, sizeof program, "%s/tests/terminal/fake_memwall",
             build == NULL ? "." : build);
    snprintf(home, sizeof home, "HOME=%s", f->home);
    argv[n++] = program;
    argv[n++] = "--home";
    argv[n++] = f->home;
    argv[n++] = "--sync-frames";
    for (; args != NULL && *args != NULL && n < MAX_ARGS; args++)
        argv[n++] = *args;
    argv[n] = NULL;
    f->s = pty_new(&o);
}

void fake_begin(struct fake_run *f, int rows, int cols, const char *term,
                const char *const *args)
{
    snprintf(f->home, sizeof f->home, "/tmp/memwall-test-XXXXXX");
    if (mkdtemp(f->home) == NULL)
        f->home[0] = '\0';
    start(f, rows, cols, term, args);
}

void fake_again(struct fake_run *f, int rows, int cols, const char *const *args)
{
    pty_free(f->s);
    start(f, rows, cols, NULL, args);
}

void fake_end(struct fake_run *f)
{
    pty_free(f->s);
    f->s = NULL;
    if (f->home[0] != '\0')
        tree_remove(f->home);
}

void fake_line(struct fake_run *f, const char *line)
{
    pty_send(f->s, line);
    pty_send(f->s, "\r");
}
