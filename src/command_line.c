/* See command_line.h. */
#include "config.h"

#include "src/command_line.h"

#include <sys/stat.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "engine/base/lookalike.h"
#include "engine/base/near.h"
#include "engine/base/utf8.h"
#include "engine/base/visible.h"
#include "src/command.h"

/* Other programs have one command for an answer and for a conversation. */
static bool means_conversation(const char *name, size_t len)
{
    return (len == 1 && name[0] == 'i') ||
           (len == 11 && strncmp(name, "interactive", len) == 0);
}

static int unknown(const struct command *c, const char *dashes, const char *name, size_t len,
                   struct err *e)
{
    static const char *const commands[] = {
#define X(NAME, name) #name,
        COMMANDS(X)
#undef X
    };
    struct near near = { .word = name, .len = len };
    const char *before = "--";
    char note[60];

    if (c->bit == CMD_RUN && means_conversation(name, len))
        return err_set(e, ERR_ARGUMENT,
                       "unknown option \"%s%.*s\"; \"memwall chat\" holds a conversation",
                       dashes, (int)len, name);
    for (int i = 0; i < N_OPTION; i++)
        if ((options_table[i].commands & c->bit) != 0 && !options_table[i].is_hidden)
            near_try(&near, options_table[i].name);
    for (size_t i = 0; near.name == NULL && i < N_COMMAND; i++) {
        near_try(&near, commands[i]);
        before = "memwall ";
    }
    len = len < 60 ? len : 60;
    lookalike_note(name, note, sizeof note);
    if (near.name == NULL)
        return err_set(e, ERR_ARGUMENT, "unknown option \"%s%.*s\"%s", dashes, (int)len, name,
                       note);
    return err_set(e, ERR_ARGUMENT, "unknown option \"%s%.*s\"%s; did you mean \"%s%s\"?",
                   dashes, (int)len, name, note, before, near.name);
}

/* Find an option by its name, or by a beginning that only its name has. */
static int find_long(const char *name, size_t len, unsigned bits)
{
    int id = options_find(name, len, bits), found = -1;

    if (id >= 0 || len == 0)
        return id;
    for (int i = 0; i < N_OPTION; i++) {
        const struct option *row = &options_table[i];

        if ((row->commands & bits) == 0 || row->is_hidden || strncmp(row->name, name, len) != 0)
            continue;
        if (found >= 0)
            return -1;
        found = i;
    }
    return found;
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
    int id = find_long(name, len, c->bit);

    if (id < 0)
        return unknown(c, "--", name, len, e);
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

/* "-ngl 99" and "-temp 1" are options of other programs, not -n and -t with a value. */
static bool takes_count(int id)
{
    const struct option *row = &options_table[id];
    enum option_kind kind = row->kind == KIND_LIST ? row->item : row->kind;

    return kind == KIND_U32 || kind == KIND_COUNT;
}

/* Take -q, -qn 5 or -n5: letters without a value can be combined. */
static int take_short(struct options *o, const struct command *c, int argc, char **argv, int *i,
                      struct err *e)
{
    for (const char *p = argv[*i] + 1; *p != '\0'; p++) {
        int id = find_letter(*p, c->bit);
        const char *value;

        if (id < 0 && p > argv[*i] + 1)
            return err_set(e, ERR_ARGUMENT, "unknown option \"-%c\" in \"%.40s\"", *p,
                           argv[*i]);
        if (id < 0 || (takes_count(id) && isalpha((unsigned char)p[1])))
            return unknown(c, "-", p, strlen(p), e);
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

/* Append a word to the argument.  Returns false if it becomes too long. */
static bool join_arg(struct options *o, const char *text)
{
    static char joined[4096];
    size_t used = strlen(o->arg);

    if (used + 1 + strlen(text) >= sizeof joined)
        return false;
    if (o->arg != joined)
        memcpy(joined, o->arg, used);
    snprintf(joined + used, sizeof joined - used, " %s", text);
    o->arg = joined;
    return true;
}

static int take_positional(struct options *o, const struct command *c, const char *text,
                           struct err *e)
{
    if (c->bit == CMD_RUN && strcmp(text, "-") == 0) {
        o->stdin_too = true;
        return 0;
    }
    if (c->takes_arg && o->arg == NULL) {
        o->arg = text;
        return 0;
    }
    if (c->joins_args && join_arg(o, text))
        return 0;
    if (c->needs_model && !o->on_line[OPT_MODEL]) {
        const char *model = c->takes_arg ? o->arg : text;

        if (c->takes_arg)
            o->arg = text;
        o->model_is_first = c->bit == CMD_RUN;
        return take_value(o, OPT_MODEL, model, e);
    }
    err_set(e, ERR_ARGUMENT, "unexpected argument \"%.60s\"", text);
    return lookalike_explain(e, text);
}

/* Is it the path of a model: a file of that kind, or the folder of a snapshot? */
static bool is_model_path(const char *path)
{
    size_t n = strlen(path);
    char config[4096];
    struct stat st;

    if (stat(path, &st) != 0)
        return false;
    if (!S_ISDIR(st.st_mode))
        return n > 5 && strcasecmp(path + n - 5, ".gguf") == 0;
    return snprintf(config, sizeof config, "%s/config.json", path) < (int)sizeof config &&
           access(config, F_OK) == 0;
}

/* A single positional is the prompt.  With -p TEXT, or if it is the path of a model beside "-",
 * it is the model. */
static int take_prompt(struct options *o, const struct command *c, struct err *e)
{
    bool is_stdin = o->prompt != NULL && strcmp(o->prompt, "-") == 0;

    if (o->prompt != NULL && o->arg != NULL && o->on_line[OPT_MODEL])
        return err_set(e, ERR_ARGUMENT, "unexpected argument \"%.60s\"", o->arg);
    if (o->arg != NULL && !o->on_line[OPT_MODEL] &&
        (o->prompt != NULL ||
         (o->stdin_too && o->server == NULL && is_model_path(o->arg)))) {
        if (take_value(o, OPT_MODEL, o->arg, e) != 0)
            return -1;
        o->arg = NULL;
    }
    if (c->bit == CMD_RUN && o->prompt == NULL && o->arg != NULL && !o->on_line[OPT_MODEL] &&
        o->server == NULL && is_model_path(o->arg))
        return err_set(e, ERR_ARGUMENT,
                       "\"%.60s\" is a model; for a chat: memwall -m %.60s; for an answer: "
                       "memwall run -m %.60s PROMPT",
                       o->arg, o->arg, o->arg);
    if (o->prompt != NULL)
        o->arg = is_stdin ? NULL : o->prompt;
    o->stdin_too |= is_stdin;
    if (o->stdin_too && o->no_stdin)
        return err_set(e, ERR_ARGUMENT, "\"-\" and --no-stdin cannot be combined");
    return 0;
}

/* A single positional without -m is the model, and standard input is read. */
static int take_lone_model(struct options *o, struct err *e)
{
    const char *text = o->arg;

    if (text == NULL || strcmp(text, "-") == 0 || o->on_line[OPT_MODEL] || o->model != NULL)
        return 0;
    o->arg = NULL;
    return take_value(o, OPT_MODEL, text, e);
}

/* Read the name of an option from a text that may have other dashes, or blanks and characters
 * that cannot be seen around it.  Returns the length of the name, or 0 if the text is not
 * written as an option or has no such character. */
static size_t read_odd_name(const char *text, char *name, size_t size)
{
    size_t len = strlen(text), n = 0;
    bool is_odd = false, has_dash = false;

    for (size_t at = 0, used; at < len; at += used) {
        uint32_t cp;

        used = utf8_decode(text + at, len - at, &cp);
        if (visible_hides(cp) || (n == 0 && !has_dash && used > 1 && lookalike_of(cp) == ' ')) {
            is_odd = true;
        } else if (n == 0 && (cp == '-' || lookalike_of(cp) == '-')) {
            has_dash = true;
            is_odd |= used > 1;
        } else if (used > 1 || cp == '=' || cp == ' ') {
            is_odd |= lookalike_of(cp) == ' ' && used > 1;
            break;
        } else if (!has_dash || n + 1 == size) {
            return 0;
        } else {
            name[n++] = text[at];
        }
    }
    name[n] = '\0';
    return is_odd ? n : 0;
}

int command_line_check_dash(const struct command *c, const char *text, struct err *e)
{
    char name[40], note[60];
    size_t len = read_odd_name(text, name, sizeof name);

    if (len == 0 || (len == 1 ? find_letter(*name, c->bit) : find_long(name, len, c->bit)) < 0)
        return 0;
    return err_set(e, ERR_ARGUMENT, "\"%.60s\" is not an option%s; type %s%s", text,
                   lookalike_note(text, note, sizeof note), len == 1 ? "-" : "--", name);
}

int command_line_parse(struct options *o, const struct command *c, int argc, char **argv,
                       struct err *e)
{
    bool only_positionals = false;

    for (int i = 0; i < argc; i++) {
        const char *a = argv[i];
        int r;

        if (!only_positionals && command_line_check_dash(c, a, e) != 0)
            return -1;
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
    if (c->needs_model && c->model_first && take_lone_model(o, e) != 0)
        return -1;
    return take_prompt(o, c, e);
}

/* The options about a server need one. */
static int check_server(const struct options *o, const struct command *c, struct err *e)
{
    const char *without = o->on_line[OPT_CA_FILE]        ? "--ca-file"
                          : o->on_line[OPT_API_KEY_FILE] ? "--api-key-file"
                                                         : NULL;

    if (without == NULL || o->server != NULL || (c->bit & CMD_TALK) == 0)
        return 0;
    return err_set(e, ERR_ARGUMENT, "%s is of a server; give its address with --server URL",
                   without);
}

int command_line_check(const struct options *o, const struct command *c, struct err *e)
{
    if (check_server(o, c, e) != 0)
        return -1;
    if (c->needs_model && !c->has_guide && o->model == NULL)
        return err_set(e, ERR_ARGUMENT,
                       "no model given. Use -m FILE, or run \"memwall list\" to see the models "
                       "on this machine");
    return 0;
}
