/*
 * The models that were opened before: a file with lines "SECONDS PATH", the newest first.
 * Paths are absolute; one with a newline is not written.
 */
#include "config.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/folder.h"
#include "engine/base/new_file.h"
#include "engine/hub/cache_layout.h"
#include "engine/hub/find.h"

#define MAX_LINES 40

struct line {
    int64_t used_s;
    char path[PATH_MAX];
};

static FILE *open_list(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    FILE *f = NULL;

    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        f = fdopen(fd, "r");
    if (f == NULL && fd >= 0)
        close(fd);
    return f;
}

/* Read the next line of the form.  Returns false at the end of the file. */
static bool read_line(FILE *f, struct line *out)
{
    char text[PATH_MAX + 32];

    while (fgets(text, sizeof text, f) != NULL) {
        char *path;
        long long s = strtoll(text, &path, 10);
        size_t n = strcspn(text, "\n");

        if (s <= 0 || path[0] != ' ' || path[1] != '/' || text[n] != '\n')
            continue;
        text[n] = '\0';
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
    if (find_add(m, &new, e) != 0)
        return -1;
    mark(m, &new.id, line->used_s);
    return 0;
}

int find_recent(struct mw_models *m, const char *list, struct err *e)
{
    FILE *f = open_list(list);
    struct line *line = malloc(sizeof *line);
    int rc = line != NULL ? 0 : err_memory(e, "the list of models");

    for (int i = 0; rc == 0 && f != NULL && i < MAX_LINES && read_line(f, line); i++)
        rc = add_line(m, line, e);
    if (f != NULL)
        fclose(f);
    free(line);
    return rc;
}

/* Write the new line, and the old ones of other models. */
static void write_list(struct new_file *to, FILE *old, const char *path, struct line *line)
{
    fprintf(to->f, "%" PRId64 " %s\n", (int64_t)time(NULL), path);
    for (int i = 1; i < MAX_LINES && old != NULL && read_line(old, line);)
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
    FILE *old;

    if (path != NULL && line != NULL && strchr(path, '\n') == NULL) {
        (void)folder_make_parent(recent);
        old = open_list(recent);
        if (new_file_begin(&to, recent, true, &ignored) == 0) {
            write_list(&to, old, path, line);
            (void)new_file_end(&to, &ignored);
        }
        if (old != NULL)
            fclose(old);
    }
    free(line);
    free(path);
}
