#include "config.h"

#include "ui/options/kept.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/folder.h"
#include "engine/base/new_file.h"
#include "engine/base/small_file.h"

#define LINE_BYTES ((size_t)PATH_MAX + KEPT_BYTES + 2)

static const struct {
    enum option_id id;
    const char *word; /* for a person */
} kept[] = {
    { OPT_MEMORY, "budget" },   { OPT_CTX, "context" }, { OPT_KV, "keys and values" },
    { OPT_THREADS, "threads" }, { OPT_IO, "io" },
};
#define N_KEPT (sizeof kept / sizeof kept[0])

enum option_id kept_of(enum option_id id)
{
    if (id == OPT_KV_K || id == OPT_KV_V)
        return OPT_KV;
    for (size_t i = 0; i < N_KEPT; i++)
        if (kept[i].id == id)
            return id;
    return N_OPTION;
}

/* Whether one of the options that id stands for is in the set. */
static bool has(const bool set[N_OPTION], enum option_id id)
{
    return set[id] || (id == OPT_KV && (set[OPT_KV_K] || set[OPT_KV_V]));
}

/* Join the values with their names, or with words for a person. */
static char *print(const struct options *o, const bool use[N_OPTION], bool is_said, char *buf,
                   size_t n)
{
    size_t used = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < N_KEPT; i++) {
        enum option_id id = kept[i].id;
        char value[40];

        if (!has(use, id))
            continue;
        if (is_said)
            options_say(o, id, value, sizeof value);
        else
            options_print(o, id, value, sizeof value);
        if (value[0] == '\0')
            continue;
        used += (size_t)snprintf(buf + used, n - used, "%s%s %s", used > 0 ? ", " : "",
                                 is_said ? kept[i].word : options_table[id].name, value);
        if (used >= n) {
            buf[0] = '\0';
            break;
        }
    }
    return buf;
}

char *kept_print(const struct options *o, const bool use[N_OPTION], char buf[KEPT_BYTES])
{
    return print(o, use, false, buf, KEPT_BYTES);
}

char *kept_say(const struct options *o, const bool use[N_OPTION], char *buf, size_t n)
{
    return print(o, use, true, buf, n);
}

/* Set the option of "NAME VALUE". */
static bool apply_one(struct options *o, const char *item, const bool fixed[N_OPTION],
                      bool taken[N_OPTION])
{
    size_t n = strcspn(item, " ");
    struct err ignored = ERR_INIT;

    for (size_t i = 0; item[n] == ' ' && i < N_KEPT; i++) {
        enum option_id id = kept[i].id;
        const char *name = options_table[id].name;

        if (strlen(name) != n || strncmp(item, name, n) != 0 || has(fixed, id))
            continue;
        if (id == OPT_KV) /* it stands for both */
            o->given[OPT_KV_K] = o->given[OPT_KV_V] = false;
        if (options_set(o, id, item + n + 1, &ignored) != 0)
            return false;
        taken[id] = true;
        return true;
    }
    return false;
}

bool kept_apply(struct options *o, const char *text, const bool fixed[N_OPTION],
                bool taken[N_OPTION])
{
    char copy[KEPT_BYTES], *at = copy;
    bool any = false;

    memset(taken, 0, N_OPTION * sizeof *taken);
    if ((size_t)snprintf(copy, sizeof copy, "%s", text) >= sizeof copy)
        return false;
    for (char *item; (item = strsep(&at, ",")) != NULL;)
        any |= apply_one(o, item + strspn(item, " "), fixed, taken);
    return any;
}

/* ---- the file of models ---- */

/* Take the next line "TEXT\tNAME" at *at, and cut it in two.  Returns false at the end. */
static bool next_line(char **at, char **text, char **name)
{
    for (char *line; (line = strsep(at, "\n")) != NULL;) {
        char *tab = strchr(line, '\t');

        /* After the last newline there is a line that was cut. */
        if (*at == NULL || tab == NULL || tab - line >= KEPT_BYTES || tab == line ||
            tab[1] == '\0')
            continue;
        *tab = '\0';
        *text = line;
        *name = tab + 1;
        return true;
    }
    return false;
}

static char *read_file(const char *file)
{
    struct err ignored = ERR_INIT;

    return small_file_read_own(file, KEPT_MODELS * LINE_BYTES, NULL, &ignored);
}

/* The names that a line of the model may have; NULL: none. */
struct names {
    const char *name;
    char *path; /* to be freed */
};

static struct names names_of(const struct kept_model *m)
{
    return (struct names){ m->name != NULL && m->name[0] != '/' ? m->name : NULL,
                           realpath(m->path, NULL) };
}

static bool is_same(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

char *kept_read(const char *file, const struct kept_model *m, char buf[KEPT_BYTES])
{
    char *all = read_file(file), *at = all, *text, *name;
    struct names own = names_of(m);
    bool has_name = false;

    buf[0] = '\0';
    while (!has_name && next_line(&at, &text, &name)) {
        has_name = is_same(name, own.name);
        if (has_name || (buf[0] == '\0' && is_same(name, own.path)))
            snprintf(buf, KEPT_BYTES, "%s", text);
    }
    free(own.path);
    free(all);
    return buf;
}

/* Write the new line and the old ones.  The line with the path, which other names may share, goes
 * only if the model has no name, or is forgotten. */
static void put_lines(FILE *f, char *old, const struct names *own, const char *new)
{
    const char *path = own->name == NULL || new[0] == '\0' ? own->path : NULL;
    char *text, *name;
    int n = 0;

    if (new[0] != '\0') {
        fprintf(f, "%s\t%s\n", new, own->name != NULL ? own->name : own->path);
        n++;
    }
    while (n < KEPT_MODELS && next_line(&old, &text, &name))
        if (!is_same(name, own->name) && !is_same(name, path)) {
            fprintf(f, "%s\t%s\n", text, name);
            n++;
        }
}

int kept_write(const char *file, const struct kept_model *m, const char *text, struct err *e)
{
    struct names own = names_of(m);
    const char *name = own.name != NULL ? own.name : own.path;
    char *old, now[KEPT_BYTES];
    struct new_file to;
    int rc = 0;

    if (name == NULL || strpbrk(name, "\n\t") != NULL ||
        strcmp(kept_read(file, m, now), text) == 0) {
        free(own.path); /* such a name has no line, or the line is there */
        return 0;
    }
    folder_make_parent(file);
    old = read_file(file);
    rc = new_file_begin(&to, file, true, e);
    if (rc == 0) {
        put_lines(to.f, old, &own, text);
        rc = new_file_end(&to, e);
    }
    free(old);
    free(own.path);
    return rc;
}

int kept_change(const char *file, const struct kept_model *m, const struct options *o,
                const bool use[N_OPTION], struct err *e)
{
    const bool none[N_OPTION] = { false };
    bool old[N_OPTION], new[N_OPTION], both[N_OPTION];
    char text[KEPT_BYTES];
    struct options all = *o;

    kept_apply(&all, kept_read(file, m, text), none, old);
    kept_apply(&all, kept_print(o, use, text), none, new);
    for (int id = 0; id < N_OPTION; id++)
        both[id] = old[id] || new[id];
    return kept_write(file, m, kept_print(&all, both, text), e);
}
