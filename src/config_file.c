/* See config_file.h. */
#include "config.h"

#include "src/config_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/command.h"
#include "src/prompt.h"

#define CONFIG_MAX_BYTES ((size_t)1 << 20)

/* The subcommands that take settings from the file. */
static unsigned config_commands(void)
{
    unsigned bits = 0;

    for (size_t i = 0; i < N_COMMAND; i++)
        if (command_table[i]->reads_config)
            bits |= command_table[i]->bit;
    return bits;
}

/* False for options that make sense once only, or that would keep memwall from starting. */
static bool is_for_files(const struct option *row)
{
    static const enum option_id not_these[] = { OPT_HELP, OPT_VERSION, OPT_CONTINUE,
                                                OPT_OPEN, OPT_ONCE,    OPT_JSON };

    for (size_t i = 0; i < sizeof not_these / sizeof not_these[0]; i++)
        if (row == &options_table[not_these[i]])
            return false;
    return (row->commands & config_commands()) != 0 && !row->is_hidden;
}

const char *const *config_file_keys(void)
{
    static const char *keys[N_OPTION + 1];
    size_t n = 0;

    for (int i = 0; i < N_OPTION; i++)
        if (is_for_files(&options_table[i]))
            keys[n++] = options_table[i].name;
    keys[n] = NULL;
    return keys;
}

/* Returns 1 for yes, 0 for no, -1 for any other word. */
static int read_bool(const char *text)
{
    static const char *const words[][2] = {
        { "no", "yes" }, { "off", "on" }, { "false", "true" }, { "0", "1" }
    };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        for (int b = 0; b < 2; b++)
            if (strcmp(text, words[i][b]) == 0)
                return b;
    return -1;
}

/* Set a key if a subcommand in bits takes it; otherwise only check it. */
static int set_key(struct options *o, unsigned bits, const char *key, const char *value,
                   struct err *e)
{
    struct options aside;
    int id = options_find(key, strlen(key), config_commands());
    const struct option *row = id >= 0 ? &options_table[id] : NULL;

    if (row == NULL || !is_for_files(row))
        return err_set(e, ERR_ARGUMENT, "\"%.40s\" is not a setting", key);
    options_default(&aside);
    if ((row->commands & bits) == 0)
        o = &aside;
    if (row->arg != NULL)
        return options_set(o, (enum option_id)id, value, e);
    switch (read_bool(value)) {
    case 1: return options_set(o, (enum option_id)id, NULL, e);
    case 0: return 0;
    default:
        err_set(e, ERR_ARGUMENT, "\"%.40s\" is not a boolean (yes or no)", value);
        return err_at(e, NULL, ERR_NO_OFFSET, row->name);
    }
}

int config_file_check(const char *key, const char *value, struct err *e)
{
    struct options o;

    options_default(&o);
    return set_key(&o, config_commands(), key, value, e);
}

static char *trim(char *s)
{
    size_t n;

    while (isspace((unsigned char)*s))
        s++;
    n = strlen(s);
    while (n > 0 && isspace((unsigned char)s[n - 1]))
        s[--n] = '\0';
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

static int take_line(struct options *o, unsigned bits, char *line, size_t len, struct err *e)
{
    char *key, *value;

    if (memchr(line, '\0', len) != NULL)
        return err_set(e, ERR_ARGUMENT, "NUL bytes are not allowed");
    key = trim(line);
    if (*key == '\0' || *key == '#')
        return 0;
    value = strchr(key, '=');
    if (value == NULL)
        return err_set(e, ERR_ARGUMENT, "\"%.40s\" is not of the form key = value", key);
    *value++ = '\0';
    value = trim(value);
    if (unquote(&value, e) != 0)
        return -1;
    return set_key(o, bits, trim(key), value, e);
}

int config_file_read(struct options *o, const struct command *c, const char *path, char **text,
                     struct err *e)
{
    size_t len, n = 1;
    char *line;

    *text = NULL;
    if (!c->reads_config)
        return 0;
    if (prompt_read_settings(path, CONFIG_MAX_BYTES, text, &len, e) != 0) {
        bool absent = e->sys == ENOENT || e->sys == ENOTDIR;

        if (absent)
            *e = (struct err)ERR_INIT;
        return absent ? 0 : -1;
    }
    line = *text;
    for (char *p = *text; p <= *text + len; p++) {
        char place[32];

        if (*p != '\n' && p < *text + len)
            continue;
        *p = '\0';
        if (take_line(o, c->bit, line, (size_t)(p - line), e) != 0) {
            struct err inner = *e;

            snprintf(place, sizeof place, "line %zu", n);
            err_set(e, ERR_ARGUMENT, "%s%s%s", inner.field, inner.field[0] != '\0' ? ": " : "",
                    inner.what);
            return err_at(e, path, ERR_NO_OFFSET, place);
        }
        line = p + 1;
        n++;
    }
    return 0;
}
