#include "config.h"

#include "ui/talk/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/folder.h"
#include "engine/base/new_file.h"
#include "ui/term/path.h"

#define CONFIG_MAX_BYTES ((long)1 << 20)

/* Returns the contents, "" if there is no file, to be freed; NULL with *e on failure. */
static char *read_old(const char *path, struct err *e)
{
    int fd = path_open_file(path, e);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    char *text = NULL;
    size_t n;

    if (fd < 0 && e->sys != ENOENT)
        return NULL;
    if (fd >= 0 && f == NULL) {
        close(fd);
        err_memory(e, "reading \"%.150s\"", path);
        return NULL;
    }
    *e = (struct err)ERR_INIT;
    text = malloc((size_t)CONFIG_MAX_BYTES + 1);
    n = f == NULL || text == NULL ? 0 : fread(text, 1, (size_t)CONFIG_MAX_BYTES, f);
    if (f != NULL)
        fclose(f);
    if (text == NULL || n == (size_t)CONFIG_MAX_BYTES) {
        err_set(e, ERR_FORMAT, "\"%s\" is too large for a configuration", path);
        free(text);
        return NULL;
    }
    if (memchr(text, '\0', n) != NULL) {
        err_set(e, ERR_FORMAT, "\"%s\" holds a NUL byte; it is left as it is", path);
        free(text);
        return NULL;
    }
    text[n] = '\0';
    return text;
}

/* Returns whether this line sets key. */
static bool sets(const char *line, const char *key)
{
    size_t n = strlen(key);

    line += strspn(line, " \t");
    if (strncmp(line, key, n) != 0)
        return false;
    line += n;
    return line[strspn(line, " \t")] == '=';
}

/* Write a setting.  The value is quoted if blanks, quotes or a comment would be lost. */
static void put_value(FILE *f, const char *key, const char *value)
{
    bool plain = value[0] != '\0';

    for (const char *c = value; *c != '\0'; c++)
        plain = plain && (isalnum((unsigned char)*c) || strchr("._-+:/%~", *c) != NULL);
    fprintf(f, "%s = ", key);
    if (plain) {
        fprintf(f, "%s\n", value);
        return;
    }
    fputc('"', f);
    for (const char *c = value; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            fputc('\\', f);
        if (*c == '\n')
            fputs("\\n", f);
        else
            fputc(*c, f);
    }
    fputs("\"\n", f);
}

static void put_all(FILE *f, const char *old, const char *key, const char *value)
{
    bool is_set = false;

    while (*old != '\0') {
        size_t n = strcspn(old, "\n");

        if (!sets(old, key)) {
            fprintf(f, "%.*s\n", (int)n, old);
        } else if (!is_set) {
            put_value(f, key, value);
            is_set = true;
        }
        old += n + (old[n] == '\n');
    }
    if (!is_set)
        put_value(f, key, value);
}

int config_write(const char *path, const char *key, const char *value, struct err *e)
{
    char *old = read_old(path, e);
    struct new_file file;

    if (old == NULL)
        return -1;
    folder_make_parent(path);
    if (new_file_begin(&file, path, true, e) != 0) {
        free(old);
        return -1;
    }
    put_all(file.f, old, key, value);
    free(old);
    return new_file_end(&file, e);
}
