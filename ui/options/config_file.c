#include "config.h"

#include "ui/options/config_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/folder.h"
#include "engine/base/lookalike.h"
#include "engine/base/new_file.h"
#include "engine/base/small_file.h"
#include "engine/base/utf8.h"

#define CONFIG_MAX_BYTES ((size_t)1 << 20)

/* ---- the file as text ---- */

/* Read the file with a NUL after it; a missing one is empty.  The caller frees *text. */
static int read_file(const char *path, char **text, size_t *len, struct err *e)
{
    *text = small_file_read(path, CONFIG_MAX_BYTES, len, e);
    if (*text == NULL && (e->sys == ENOENT || e->sys == ENOTDIR)) {
        *e = (struct err)ERR_INIT;
        *text = calloc(1, 1);
        return *text != NULL ? 0 : err_memory(e, "the configuration");
    }
    return *text != NULL ? 0 : -1;
}

/* ---- reading ---- */

/* Remove the white space around a text, in place. */
static char *trim(char *s)
{
    const char *begin = s;
    size_t n = utf8_trim(&begin, strlen(s));

    memmove(s, begin, n);
    s[n] = '\0';
    return s;
}

/* Remove the quotes around a value in place and decode \", \\ and \n. */
static int unquote(char **value, struct err *e)
{
    char *from = *value, *to = *value;

    if (*from != '"')
        return 0;
    for (from++; *from != '"'; from++) {
        if (*from == '\0')
            return err_set(e, ERR_ARGUMENT, "the closing quote is missing");
        if (*from == '\\' && from[1] != '\0') {
            from++;
            *to++ = *from == 'n' ? '\n' : *from;
        } else {
            *to++ = *from;
        }
    }
    if (*trim(from + 1) != '\0')
        return err_set(e, ERR_ARGUMENT, "unexpected text after the closing quote");
    *to = '\0';
    return 0;
}

/* Set a key if the subcommand takes it; otherwise only check its value. */
static int set_key(struct options *o, unsigned command, const char *key, const char *value,
                   size_t n, struct err *e)
{
    struct options aside;
    int id = options_find_setting(key, strlen(key));

    if (id < 0)
        return options_refuse_setting(key, e);
    if ((options_table[id].commands & command) == 0) {
        options_default(&aside);
        o = &aside;
    }
    if (options_set(o, (enum option_id)id, value, e) != 0)
        return err_at(e, NULL, ERR_NO_OFFSET, key);
    o->line[id] = (uint32_t)n;
    return 0;
}

static int take_line(struct options *o, unsigned command, char *line, size_t len, size_t n,
                     struct err *e)
{
    char *key, *value, note[60];

    if (memchr(line, '\0', len) != NULL)
        return err_set(e, ERR_ARGUMENT, "NUL bytes are not allowed");
    key = trim(line);
    if (*key == '\0' || *key == '#')
        return 0;
    value = strchr(key, '=');
    if (value == NULL)
        return err_set(e, ERR_ARGUMENT, "\"%.40s\" is not of the form key = value%s", key,
                       lookalike_note(key, note, sizeof note));
    *value++ = '\0';
    value = trim(value);
    if (unquote(&value, e) != 0)
        return -1;
    (void)lookalike_plain(key, strlen(key));
    return set_key(o, command, trim(key), value, n, e);
}

/* Add file and line to *e.  Returns -1, or 0 if the line is skipped. */
static int wrong_line(const char *path, size_t line, struct config_skipped *skipped,
                      struct err *e)
{
    bool is_value = e->field[0] != '\0';
    char text[sizeof skipped->text], place[32];
    size_t used;

    err_text(e, text, sizeof text);
    snprintf(place, sizeof place, "line %zu", line);
    *e = (struct err)ERR_INIT;
    err_set(e, ERR_ARGUMENT, "%s", text);
    err_at(e, path, ERR_NO_OFFSET, place);
    if (skipped == NULL)
        return -1;
    err_text(e, text, sizeof text);
    used = strlen(skipped->text);
    snprintf(skipped->text + used, sizeof skipped->text - used, "%s; %s\n", text,
             is_value ? "the default is used" : "the line is ignored");
    *e = (struct err)ERR_INIT;
    return 0;
}

int config_file_read(struct options *o, unsigned command, const char *path, char **text,
                     struct config_skipped *skipped, struct err *e)
{
    size_t len, n = 1;
    char *line;

    if (read_file(path, text, &len, e) != 0)
        return -1;
    line = *text;
    for (char *p = *text; p <= *text + len; p++) {
        if (*p != '\n' && p < *text + len)
            continue;
        *p = '\0';
        if (take_line(o, command, line, (size_t)(p - line), n, e) != 0 &&
            wrong_line(path, n, skipped, e) != 0)
            return -1;
        line = p + 1;
        n++;
    }
    return 0;
}

int config_file_check(struct options *o, const char *path, const struct setting_folders *in,
                      struct config_skipped *skipped, struct err *e)
{
    static const enum option_id names[] = { OPT_THEME, OPT_MODEL };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        enum option_id id = names[i];
        void *to = (char *)o + options_table[id].at;
        const char **value = to;

        if (o->line[id] == 0 || o->on_line[id] || setting_check(id, *value, in, e) == 0)
            continue;
        /* The mistake may be in the file of a theme, which then is named, too. */
        if (e->file[0] == '\0')
            err_at(e, NULL, ERR_NO_OFFSET, options_table[id].name);
        if (wrong_line(path, o->line[id], skipped, e) != 0)
            return -1;
        *value = NULL;
        o->given[id] = false;
    }
    return 0;
}

/* ---- writing ---- */

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

int config_file_write(const char *path, enum option_id id, const char *value, struct err *e)
{
    const char *key = options_table[id].name;
    struct options aside;
    struct new_file file;
    char *old;
    size_t n;

    options_default(&aside);
    if (options_set(&aside, id, value, e) != 0)
        return err_at(e, NULL, ERR_NO_OFFSET, key);
    if (read_file(path, &old, &n, e) != 0)
        return -1;
    if (memchr(old, '\0', n) != NULL) {
        free(old);
        return err_set(e, ERR_FORMAT, "\"%s\" holds a NUL byte; it is left as it is", path);
    }
    folder_make_parent(path);
    if (new_file_begin(&file, path, true, e) != 0) {
        free(old);
        return -1;
    }
    put_all(file.f, old, key, value);
    free(old);
    return new_file_end(&file, e);
}
