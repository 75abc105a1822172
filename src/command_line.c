/* See command_line.h. */
#include "config.h"

#include "src/command_line.h"

#include <stdio.h>
#include <string.h>

#include "src/command.h"

/* Count the changes of one letter that lead from a to b, up to 9. */
static int distance(const char *a, size_t n, const char *b)
{
    int row[48];
    size_t m = strlen(b);

    if (m + 1 > sizeof row / sizeof row[0] || n > 40)
        return 9;
    for (size_t j = 0; j <= m; j++)
        row[j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        int diagonal = row[0];

        row[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            int best = diagonal + (a[i - 1] != b[j - 1]);

            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[m] < 9 ? row[m] : 9;
}

static int unknown(const struct command *c, const char *name, size_t len, struct err *e)
{
    const struct option *near = NULL;
    int least = 3; /* allow two typing errors */

    for (int i = 0; i < N_OPTION; i++) {
        const struct option *row = &options_table[i];
        int d;

        if ((row->commands & c->bit) == 0 || row->is_hidden)
            continue;
        d = distance(name, len, row->name);
        if (d < least && d < (int)len) {
            least = d;
            near = row;
        }
    }
    if (near != NULL)
        return err_set(e, ERR_ARGUMENT, "unknown option \"--%.*s\"; did you mean \"--%s\"?",
                       (int)(len < 60 ? len : 60), name, near->name);
    return err_set(e, ERR_ARGUMENT, "unknown option \"--%.*s\"", (int)(len < 60 ? len : 60),
                   name);
}

/* Take a value, which replaces that of the configuration file. */
static int take_value(struct options *o, int id, const char *value, struct err *e)
{
    char name[40];

    if (!o->on_line[id])
        options_clear(o, (enum option_id)id);
    o->on_line[id] = true;
    if (options_set(o, (enum option_id)id, value, e) == 0)
        return 0;
    snprintf(name, sizeof name, "--%s", options_table[id].name);
    return err_at(e, NULL, ERR_NO_OFFSET, name);
}

static int take_long(struct options *o, const struct command *c, int argc, char **argv, int *i,
                     struct err *e)
{
    const char *name = argv[*i] + 2;
    size_t len = strcspn(name, "=");
    const char *value = name[len] == '=' ? name + len + 1 : NULL;
    int id = options_find(name, len, c->bit);

    if (id < 0)
        return unknown(c, name, len, e);
    if (options_table[id].arg == NULL) {
        if (value != NULL)
            return err_set(e, ERR_ARGUMENT, "--%s takes no value", options_table[id].name);
        return take_value(o, id, "on", e);
    }
    if (value == NULL && *i + 1 < argc)
        value = argv[++*i];
    if (value == NULL)
        return err_set(e, ERR_ARGUMENT, "--%s needs a value: %s", options_table[id].name,
                       options_table[id].arg);
    return take_value(o, id, value, e);
}

static int find_letter(char letter, unsigned bits)
{
    for (int i = 0; i < N_OPTION; i++)
        if ((options_table[i].commands & bits) != 0 && options_table[i].letter == letter)
            return i;
    return -1;
}

/* Take -q, -qn 5 or -n5: letters without a value can be combined. */
static int take_short(struct options *o, const struct command *c, int argc, char **argv, int *i,
                      struct err *e)
{
    for (const char *p = argv[*i] + 1; *p != '\0'; p++) {
        int id = find_letter(*p, c->bit);
        const char *value;

        if (id < 0)
            return err_set(e, ERR_ARGUMENT, "unknown option \"-%c\"", *p);
        if (options_table[id].arg == NULL) {
            if (take_value(o, id, "on", e) != 0)
                return -1;
            continue;
        }
        value = p[1] != '\0' ? p + 1 : *i + 1 < argc ? argv[++*i] : NULL;
        if (value == NULL)
            return err_set(e, ERR_ARGUMENT, "-%c needs a value: %s", *p, options_table[id].arg);
        return take_value(o, id, value, e);
    }
    return 0;
}

static int take_positional(struct options *o, const struct command *c, const char *text,
                           struct err *e)
{
    if (c->takes_arg && o->arg == NULL) {
        o->arg = text;
        return 0;
    }
    if (!c->takes_arg && c->needs_model && !o->on_line[OPT_MODEL])
        return take_value(o, OPT_MODEL, text, e);
    return err_set(e, ERR_ARGUMENT, "unexpected argument \"%.60s\"", text);
}

int command_line_parse(struct options *o, const struct command *c, int argc, char **argv,
                       struct err *e)
{
    bool only_positionals = false;

    for (int i = 0; i < argc; i++) {
        const char *a = argv[i];
        int r;

        if (only_positionals || a[0] != '-' || a[1] == '\0')
            r = take_positional(o, c, a, e);
        else if (strcmp(a, "--") == 0) {
            only_positionals = true;
            r = 0;
        } else if (a[1] == '-')
            r = take_long(o, c, argc, argv, &i, e);
        else
            r = take_short(o, c, argc, argv, &i, e);
        if (r != 0)
            return -1;
        if (o->help || o->version)
            return 0;
    }
    return 0;
}

int command_line_check(const struct options *o, const struct command *c, struct err *e)
{
    if (c->needs_model && !c->has_guide && o->model == NULL)
        return err_set(e, ERR_ARGUMENT,
                       "no model given. Use -m FILE, or run \"memwall list\" to see the models "
                       "on this machine");
    return 0;
}
