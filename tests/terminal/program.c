#include "config.h"

#include "tests/terminal/program.h"

#include <sys/stat.h>

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/talker.h"
#include "tests/lib/tree.h"

#define MAX_ARGS 32
#define N_LINE   400

struct program run;
static char shared[64];
static const char fake[] = ""; /* in place of a model: run fake_memwall */

/* ---- the model ---- */

static const char head[] =
    "# A tour\n\n"
    "Some **bold** and *slanted* words, `code`, and a [link](https://example.org/).\n\n"
    "\xe4\xbd\xa0\xe5\xa5\xbd\xef\xbc\x8c\xe4\xb8\x96\xe7\x95\x8c\xe3\x80\x82 " /* CJK */
    "Faces \xf0\x9f\x98\x80 \xf0\x9f\x8e\x89 and a mark: e\xcc\x81.\n\n"
    "- first item\n- second item\n\n"
    "> quoted words\n\n"
    "| name | value |\n|------|------:|\n| alpha | 11 |\n| beta | 22 |\n\n"
    "```c\nint main(void)\n{\n    return 0;\n}\n```\n\n";

const char *program_text(void)
{
    static char text[64 * N_LINE + sizeof head];
    size_t n = sizeof head - 1;

    if (text[0] != '\0')
        return text;
    memcpy(text, head, n);
    for (int i = 1; i <= N_LINE; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "Line %d: here%d there%d \xe7\xac\xac%d\xe8\xa1\x8c\n%s", i, i, i,
                              i, i % 10 == 0 ? "\n" : "");
    return text;
}

const char *program_model(void)
{
    static char path[96];

    snprintf(path, sizeof path, "%s/talker.gguf", shared);
    return path;
}

const char *program_slow_model(void)
{
    static char path[96];
    struct talker t = { program_text(), true, 24, 1024, NULL };

    if (path[0] != '\0')
        return path;
    snprintf(path, sizeof path, "%s/slow.gguf", shared);
    return talker_write(path, &t) == 0 ? path : NULL;
}

/* Begin with the limits of this machine that scripts have measured, if any: MeasuredHome in
 * tests/lib/program.py. */
static void take_limits(void)
{
    const char *build = getenv("MW_BUILDDIR");
    char path[4096], text[1 << 14];
    FILE *f, *to;
    size_t n;

    snprintf(path, sizeof path, "%s/tests/lib/measured-limits", build == NULL ? "." : build);
    f = fopen(path, "r");
    if (f == NULL)
        return;
    snprintf(path, sizeof path, "%s/memwall", shared);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/memwall/limits", shared);
    to = fopen(path, "w");
    while (to != NULL && (n = fread(text, 1, sizeof text, f)) > 0)
        fwrite(text, 1, n, to);
    if (to != NULL)
        fclose(to);
    fclose(f);
}

int program_group_setup(void **state)
{
    struct talker t = { program_text(), true, 6, 128, NULL };

    (void)state;
    snprintf(shared, sizeof shared, "/tmp/memwall-shared-XXXXXX");
    if (mkdtemp(shared) == NULL)
        return -1;
    take_limits();
    return talker_write(program_model(), &t);
}

int program_group_teardown(void **state)
{
    (void)state;
    tree_remove(shared);
    return 0;
}

/* ---- a run ---- */

void program_again(struct program *p, const struct program_start *o)
{
    const char *build = getenv("MW_BUILDDIR"), *argv[MAX_ARGS], *env[24];
    char program[4096], home[96], cache[96];
    struct pty_start start = { o->rows, o->cols, o->term, env, argv };
    bool is_fake = o->model == fake;
    size_t n = 0;

    pty_free(p->s);
    snprintf(program, sizeof program, "%s/%s", build == NULL ? "." : build,
             is_fake ? "tests/terminal/fake_memwall" : "memwall");
    snprintf(home, sizeof home, "HOME=%s", p->home);
    snprintf(cache, sizeof cache, "XDG_CACHE_HOME=%s", shared);
    if (o->script != NULL) {
        argv[n++] = "/bin/sh";
        argv[n++] = "-mc";
        argv[n++] = o->script;
        argv[n++] = "sh";
    }
    argv[n++] = program;
    argv[n++] = is_fake ? "--home" : "chat";
    if (is_fake) {
        argv[n++] = p->home;
    } else {
        argv[n++] = "--kv-space"; /* figures stay as they are while nobody does anything */
        argv[n++] = "none";
        argv[n++] = "--model";
        argv[n++] = o->model == NULL ? program_model() : o->model;
        argv[n++] = "--threads"; /* more threads would wait for each other on a busy machine */
        argv[n++] = "1";
    }
    argv[n++] = "--sync-frames";
    for (const char *const *a = o->args; a != NULL && *a != NULL && n < MAX_ARGS - 1; a++)
        argv[n++] = *a;
    argv[n] = NULL;
    n = 0;
    env[n++] = home;
    env[n++] = cache;
    env[n++] = "XDG_CONFIG_HOME";
    env[n++] = "XDG_STATE_HOME";
    env[n++] = "XDG_DATA_HOME";
    for (const char *const *v = o->env; v != NULL && *v != NULL && n < 20; v++)
        env[n++] = *v;
    env[n] = NULL;
    p->s = pty_new(&start);
    assert_non_null(p->s);
}

void program_begin(struct program *p, const struct program_start *o)
{
    p->s = NULL;
    snprintf(p->home, sizeof p->home, "/tmp/memwall-test-XXXXXX");
    assert_non_null(mkdtemp(p->home));
    program_again(p, o);
}

void program_begin_talk(struct program *p, const char *const *args)
{
    program_begin(p, &(struct program_start){ .rows = 40, .cols = 120, .args = args });
    sees(p, "Talker (");
}

void fake_again(struct program *p, int rows, int cols, const char *const *args)
{
    program_again(p, &(struct program_start){ rows, cols, .model = fake, .args = args });
}

void fake_begin(struct program *p, int rows, int cols, const char *term,
                const char *const *args)
{
    program_begin(p, &(struct program_start){ rows, cols, term, .model = fake, .args = args });
}

void program_end(struct program *p)
{
    pty_free(p->s);
    p->s = NULL;
    if (p->home[0] != '\0')
        tree_remove(p->home);
    p->home[0] = '\0';
}

int end_run(void **state)
{
    (void)state;
    program_end(&run);
    return 0;
}

void program_line(struct program *p, const char *line)
{
    pty_send(p->s, line);
    pty_send(p->s, "\r");
}

void program_ask(struct program *p, const char *line, const char *text)
{
    assert_null(strstr(line, text)); /* the echo of the line would do */
    program_line(p, line);
    sees(p, text);
}

void program_say(struct program *p, const char *text)
{
    pty_send(p->s, text);
    assert_true(pty_sees_at(p->s, -2, text));
    pty_send(p->s, "\r");
    assert_true(pty_loses_at(p->s, -2, text));
    program_sync(p); /* the status bar has noticed the answer */
    assert_true(pty_sees_at(p->s, -1, "ready"));
}

void program_quit(struct program *p)
{
    int status;

    program_line(p, "/quit");
    status = pty_end(p->s);
    if (status != 0)
        pty_print(p->s);
    assert_int_equal(status, 0);
    assert_false(pty_is_alternate(p->s));
    assert_true(pty_is_cooked(p->s));
}

void program_sync(struct program *p)
{
    pty_send(p->s, "~");
    sees(p, "> ~");
    pty_send(p->s, "\x7f");
    loses(p, "> ~");
}

static void print_difference(const char *before, const char *after)
{
    while (before != NULL && after != NULL && *before != '\0' && *after != '\0') {
        size_t n = strcspn(before, "\n"), m = strcspn(after, "\n");

        if (n != m || memcmp(before, after, n) != 0)
            fprintf(stderr, "is:  |%.*s\nnew: |%.*s\n", (int)n, before, (int)m, after);
        before += n + (before[n] == '\n');
        after += m + (after[m] == '\n');
    }
}

bool program_is_drawn_right(struct program *p)
{
    char *before, *after;
    bool same;

    program_sync(p);
    before = pty_cells(p->s);
    pty_send(p->s, "\014");
    program_sync(p);
    after = pty_cells(p->s);
    same = before != NULL && after != NULL && strcmp(before, after) == 0;
    if (!same)
        print_difference(before, after);
    free(before);
    free(after);
    return same;
}

/* ---- files ---- */

const char *program_path(const struct program *p, const char *name)
{
    static char path[4][512];
    static unsigned turn;
    char *at = path[turn++ % 4];

    snprintf(at, sizeof path[0], "%s/%s", p->home, name);
    return at;
}

void program_write(const struct program *p, const char *name, const char *text)
{
    FILE *f = fopen(program_path(p, name), "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

char *program_file(const struct program *p, const char *name)
{
    FILE *f = fopen(program_path(p, name), "rb");
    char *text = NULL;
    size_t room = 0;

    if (f == NULL)
        return NULL;
    if (getdelim(&text, &room, '\0', f) < 0 && text != NULL)
        text[0] = '\0';
    fclose(f);
    return text;
}

const char *program_chat(const struct program *p)
{
    static const char folder[] = ".local/share/memwall/chats";
    static char path[400];
    char newest[300] = "";
    DIR *dir = opendir(program_path(p, folder));
    struct dirent *entry;

    /* Chats are named by their time. */
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, newest) > 0)
            snprintf(newest, sizeof newest, "%s", entry->d_name);
    if (dir != NULL)
        closedir(dir);
    snprintf(path, sizeof path, "%s/%s", folder, newest);
    return newest[0] == '\0' ? NULL : path;
}
