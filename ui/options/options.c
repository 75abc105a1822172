/* The rows of options: see options.h. */
#include "config.h"

#include "ui/options/options.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/lookalike.h"
#include "engine/base/near.h"
#include "ui/options/options_internal.h"

void options_default(struct options *o)
{
    *o = (struct options){ .speed = 1, .n_prompt = 512, .n_gen = 64, .n_repeat = 3 };
    mw_options_default(&o->chat.engine);
    o->chat.engine.draft = MW_DRAFT_AUTO;
    o->chat.engine.caller_bytes = UI_MEMORY_BYTES; /* commands without a screen take it away, */
    o->chat.engine.saves_kv = true;                /* and this */
}

bool options_given(const struct options *o, enum option_id id)
{
    return o->given[id];
}

void options_list_words(const char *words, char *buf, size_t n)
{
    size_t at = 0;

    for (; *words != '\0' && at + 3 < n; words++) {
        if (*words == ' ')
            buf[at++] = ',';
        buf[at++] = *words;
    }
    buf[at] = '\0';
}

const char *option_form(const struct option *row)
{
    if (row->arg != NULL)
        return row->arg;
    return row->kind == KIND_SWITCH ? "on|off|default" : "on|off";
}

const char *options_format_names(void)
{
    static char names[400];
    size_t n;

    if (names[0] != '\0')
        return names;
    n = (size_t)snprintf(names, sizeof names, "none");
    for (int i = 0; mw_chat_format(i) != NULL && n < sizeof names; i++)
        n += (size_t)snprintf(names + n, sizeof names - n, " %s", mw_chat_format(i));
    return names;
}

const char *option_values(const struct option *row)
{
    if (row->kind == KIND_FORMAT)
        return options_format_names();
    return row->words != NULL ? row->words : row->tips;
}

/* Is name one of those in [names, end), separated by ", "? */
static bool names_have(const char *names, const char *end, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = names; at < end;) {
        size_t n = strcspn(at, ",:");

        if (n == len && strncmp(at, name, n) == 0)
            return true;
        at += n + 2;
    }
    return false;
}

char *option_default(const struct option *row, const char *command, char *buf, size_t n)
{
    const char *text = row->otherwise != NULL ? row->otherwise : "";
    int len = (int)strlen(text);

    if (command != NULL && strchr(text, ';') != NULL) {
        const char *names = strchr(text, ';') + 2, *value = strchr(names, ':');

        len = (int)strcspn(text, ";");
        if (value != NULL && names_have(names, value, command)) {
            text = value + 2;
            len = (int)strlen(text);
        }
    }
    snprintf(buf, n, "%.*s", len, text);
    return buf;
}

char *option_help(const struct option *row, const char *command, char *buf, size_t n)
{
    char words[120] = "", otherwise[60];

    if (row->words != NULL) {
        snprintf(words, sizeof words, ": ");
        options_list_words(row->words, words + 2, sizeof words - 2);
        if (row->kind == KIND_DRAFT)
            snprintf(words + strlen(words), sizeof words - strlen(words), ", FILE");
    }
    option_default(row, command, otherwise, sizeof otherwise);
    snprintf(buf, n, "%s%s%s%s%s", row->help, words, otherwise[0] != '\0' ? " (default: " : "",
             otherwise, otherwise[0] != '\0' ? ")" : "");
    return buf;
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

int options_find_setting(const char *name, size_t len)
{
    for (int i = 0; i < N_OPTION; i++) {
        const struct option *row = &options_table[i];

        if (row->reach != REACH_LINE && strlen(row->name) == len &&
            memcmp(row->name, name, len) == 0)
            return i;
    }
    return -1;
}

int options_refuse_setting(const char *name, struct err *e)
{
    struct near near = { .word = name + strspn(name, "-") };
    char note[60];

    near.len = strlen(near.word);
    for (int i = 0; i < N_OPTION; i++)
        if (options_table[i].reach != REACH_LINE && !options_table[i].is_hidden)
            near_try(&near, options_table[i].name);
    lookalike_note(name, note, sizeof note);
    if (near.name == NULL)
        return err_set(e, ERR_ARGUMENT, "\"%.40s\" is not a setting%s", name, note);
    return err_set(e, ERR_ARGUMENT, "\"%.40s\" is not a setting%s; did you mean \"%s\"?", name,
                   note, near.name);
}

void options_overlay(const struct options *o, struct mw_sampling *to)
{
    const size_t begin = offsetof(struct options, chat.sampling);

    for (int i = 0; i < N_OPTION; i++) {
        size_t at = options_table[i].at;

        if (o->given[i] && at >= begin && at < begin + sizeof *to)
            memcpy((char *)to + (at - begin), (const char *)o + at,
                   options_table[i].kind == KIND_SEED ? sizeof(struct mw_seed)
                                                      : sizeof(uint32_t));
    }
}
