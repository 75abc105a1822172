/*
 * The models that were opened before: a file with lines "SECONDS PATH", the newest first.
 * Paths are absolute; one with a newline is not written.
 */
#include "config.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/folder.h"
#include "engine/base/new_file.h"
#include "engine/base/small_file.h"
#include "engine/hub/cache_layout.h"
#include "engine/hub/find.h"

#define MAX_LINES  40
#define LINE_BYTES ((size_t)PATH_MAX + 32)

struct line {
    int64_t used_s;
    char path[PATH_MAX];
};

/* Returns the text of the list, for free(); NULL if there is none. */
static char *read_list(const char *path)
{
    struct err ignored = ERR_INIT;

    return small_file_read(path, MAX_LINES * LINE_BYTES, NULL, &ignored);
}

/* Read the next line of the form, and move *at after it.  Returns false at the end. */
static bool read_line(char **at, struct line *out)
{
    for (char *text; (text = strsep(at, "\n")) != NULL;) {
        char *path;
        long long s = strtoll(text, &path, 10);

        /* After the last newline there is a line that was cut. */
        if (*at == NULL || s <= 0 || path[0] != ' ' || path[1] != '/' ||
            strlen(path + 1) >= sizeof out->path)
            continue;
        out->used_s = s;
        snprintf(out->path, sizeof out->path, "%s", path + 1);
        return true;
    }
    return false;
}

/* Set the time in every entry that has these files; in Ollama's store several do. */
static bool mark(struct mw_models *m, const struct find_id *id, int64_t used_s)
{
    bool found = false;

    for (size_t i = 0; i < m->n; i++) {
        struct find_entry *entry = &m->entries[i];

        if (entry->id.ino != id->ino || entry->id.dev != id->dev)
            continue;
        found = true;
        if (entry->found.used_s < used_s)
            entry->found.used_s = used_s;
    }
    return found;
}

static int add_line(struct mw_models *m, const struct line *line, struct err *e)
{
    struct find_new new = { .store = MW_STORE_RECENT, .path = line->path };
    const char *base = strrchr(line->path, '/') + 1;
    char name[CACHE_MAX_NAME + FIND_LABEL], label[FIND_LABEL] = "";
    size_t n;

    if (!find_identify_any(line->path, &new.id) || mark(m, &new.id, line->used_s) ||
        !cache_is_name(base))
        return 0;
    n = find_stem(base, label);
    snprintf(name, sizeof name, "%.*s%s%s", (int)n, base, label[0] != '\0' ? ":" : "", label);
    new.name = name;
    new.label = label;
    new.parts = find_parts(line->path);
    if (find_add(m, &new, e) != 0)
        return -1;
    mark(m, &new.id, line->used_s);
    return 0;
}

int find_recent(struct mw_models *m, const char *list, struct err *e)
{
    char *text = read_list(list), *at = text;
    struct line *line = malloc(sizeof *line);
    int rc = line != NULL ? 0 : err_memory(e, "the list of models");

    for (int i = 0; rc == 0 && i < MAX_LINES && read_line(&at, line); i++)
        rc = add_line(m, line, e);
    free(text);
    free(line);
    return rc;
}

/* Write the new line, and the old ones of other models. */
static void write_list(struct new_file *to, char *old, const char *path, struct line *line)
{
    fprintf(to->f, "%" PRId64 " %s\n", (int64_t)time(NULL), path);
    for (int i = 1; i < MAX_LINES && read_line(&old, line);)
        if (strcmp(line->path, path) != 0) {
            fprintf(to->f, "%" PRId64 " %s\n", line->used_s, line->path);
            i++;
        }
}

void mw_models_used(const char *recent, const char *model_path)
{
    struct err ignored = ERR_INIT;
    char *path = realpath(model_path, NULL);
    struct line *line = malloc(sizeof *line);
    struct new_file to;
    char *old;

    if (path != NULL && line != NULL && strchr(path, '\n') == NULL) {
        (void)folder_make_parent(recent);
        old = read_list(recent);
        if (new_file_begin(&to, recent, true, &ignored) == 0) {
            write_list(&to, old, path, line);
            (void)new_file_end(&to, &ignored);
        }
        free(old);
    }
    free(line);
    free(path);
}
