/* Read the command line: see options.h. */
#include "config.h"

#include "src/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/command.h"

void options_default(struct options *o)
{
    *o = (struct options){ .speed = 1, .split = 0, .refresh = 0 };
}

bool options_given(const struct options *o, enum option_id id)
{
    return o->given[id];
}

int options_find(const char *name, size_t len, unsigned bits)
{
    for (int i = 0; i < N_OPTION; i++) {
        const struct option *row = &options_table[i];

        if ((row->commands & bits) != 0 && strlen(row->name) == len &&
            memcmp(row->name, name, len) == 0)
            return i;
    }
    return -1;
}

/* ---- values ---- */

static int bad_value(const struct option *row, const char *text, const char *expected,
                     struct err *e)
{
    err_set(e, ERR_ARGUMENT, "\"%.60s\" is not %s", text, expected);
    char name[40];

    snprintf(name, sizeof name, "--%s", row->name);
    return err_at(e, NULL, ERR_NO_OFFSET, name);
}

/* Return the index of word in a list separated by blanks, or -1. */
static int word_index(const char *choices, const char *word)
{
    size_t len = strlen(word);
    int i = 0;

    for (const char *p = choices; *p != '\0'; i++) {
        size_t n = strcspn(p, " ");

        if (n == len && memcmp(p, word, n) == 0)
            return i;
        p += n + (p[n] == ' ');
    }
    return -1;
}

/* Turn "auto always never" into "auto, always, never". */
static void list_words(const char *choices, char *buf, size_t n)
{
    size_t at = 0;

    for (; *choices != '\0' && at + 3 < n; choices++) {
        if (*choices == ' ')
            buf[at++] = ',';
        buf[at++] = *choices;
    }
    buf[at] = '\0';
}

/* Append a text to those of an option that can be given several times. */
static int add_text(const struct option *row, const char **texts, const char *text,
                    struct err *e)
{
    size_t len = strlen(text), n = 0;
    char expected[80];

    if (len < (size_t)row->min || len > (size_t)row->max) {
        snprintf(expected, sizeof expected, "a text of %.0f to %.0f bytes", row->min, row->max);
        return bad_value(row, text, expected, e);
    }
    while (texts[n] != NULL)
        n++;
    if (n == OPTIONS_TEXTS)
        return err_set(e, ERR_ARGUMENT, "--%s can be given at most %d times", row->name,
                       OPTIONS_TEXTS);
    texts[n] = text;
    return 0;
}

int options_set(struct options *o, enum option_id id, const char *text, struct err *e)
{
    const struct option *row = &options_table[id];
    void *to = (char *)o + row->at;
    char expected[160];
    uint64_t n;
    double x;
    int word;

    switch (row->kind) {
    case KIND_FLAG: *(bool *)to = true; break;
    case KIND_SET: *(int *)to = (int)row->min; break;
    case KIND_TEXT: *(const char **)to = text; break;
    case KIND_TEXTS:
        if (add_text(row, to, text, e) != 0)
            return -1;
        break;
    case KIND_FILE:
        if (text[0] == '\0')
            return bad_value(row, text, "a file name", e);
        *(const char **)to = text;
        break;
    case KIND_SIZE:
        /* The total does not matter here; only the syntax is checked. */
        if (strcmp(text, "auto") != 0 && units_parse_size(text, GIB, &n, e) != 0)
            return bad_value(row, text, "a size (512M, 2G, 50% or auto)", e);
        *(const char **)to = text;
        break;
    case KIND_WORD:
    case KIND_CHOICE:
        word = word_index(row->choices, text);
        if (word < 0) {
            char words[120];

            list_words(row->choices, words, sizeof words);
            snprintf(expected, sizeof expected, "one of %s", words);
            return bad_value(row, text, expected, e);
        }
        if (row->kind == KIND_WORD)
            *(const char **)to = text;
        else
            *(int *)to = word;
        break;
    case KIND_U32:
    case KIND_COUNT:
        if (!units_parse_whole(text, row->kind == KIND_COUNT, (uint64_t)row->min,
                               (uint64_t)row->max, &n)) {
            snprintf(expected, sizeof expected, "a whole number from %.0f to %.0f", row->min,
                     row->max);
            return bad_value(row, text, expected, e);
        }
        *(uint32_t *)to = (uint32_t)n;
        break;
    case KIND_U64:
        if (!units_parse_whole(text, false, 0, UINT64_MAX, &n))
            return bad_value(row, text, "a whole number", e);
        *(uint64_t *)to = n;
        break;
    case KIND_NUMBER:
        if (!units_parse_number(text, row->min, row->max, &x)) {
            snprintf(expected, sizeof expected, "a number from %g to %g", row->min, row->max);
            return bad_value(row, text, expected, e);
        }
        *(double *)to = x;
        break;
    }
    o->given[id] = true;
    return 0;
}

/* ---- the command line ---- */

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

/* Take a value from the command line, which overrides the configuration file. */
static int take_value(struct options *o, int id, const char *value, struct err *e)
{
    const struct option *row = &options_table[id];

    if (row->kind == KIND_TEXTS && !o->on_line[id]) /* remove those of the file */
        memset((char *)o + row->at, 0, sizeof(const char * [OPTIONS_TEXTS + 1]));
    o->on_line[id] = true;
    return options_set(o, (enum option_id)id, value, e);
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
        return take_value(o, id, NULL, e);
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
            if (take_value(o, id, NULL, e) != 0)
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

int options_parse(struct options *o, const struct command *c, int argc, char **argv,
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

int options_check(const struct options *o, const struct command *c, struct err *e)
{
    if (c->needs_model && o->model == NULL)
        return err_set(e, ERR_ARGUMENT, "no model given; use --model FILE");
    return 0;
}
