/* From texts to the values of options. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/lookalike.h"
#include "engine/base/near.h"
#include "engine/base/units.h"
#include "ui/options/options_internal.h"
#include "ui/words/path.h"

#define PLAIN_BYTES 256 /* of a value of words and numbers, with its NUL */

static int bad_value(const char *text, const char *expected, struct err *e)
{
    return err_set(e, ERR_ARGUMENT, "\"%.60s\" is not %s", text, expected);
}

/* Return the index of word in a list separated by blanks, or -1. */
static int word_index(const char *words, const char *word)
{
    size_t len = strlen(word);
    int i = 0;

    for (const char *p = words; *p != '\0'; i++) {
        size_t n = strcspn(p, " ");

        if (n == len && memcmp(p, word, n) == 0)
            return i;
        p += n + (p[n] == ' ');
    }
    return -1;
}

/* Report that text is none of the row's words.  also: what else it may be, or "". */
static int bad_word(const struct option *row, const char *also, const char *text, struct err *e)
{
    char words[120], expected[240], copy[120];
    struct near near = { .word = text, .len = strlen(text) };
    char *rest = copy;

    options_list_words(row->words, words, sizeof words);
    snprintf(copy, sizeof copy, "%s", row->words);
    for (const char *word; (word = strsep(&rest, " ")) != NULL;)
        near_try(&near, word);
    if (near.len == 0)
        near.name = NULL;
    snprintf(expected, sizeof expected, "one of %s%s%s%s%s", words, also,
             near.name != NULL ? "; did you mean \"" : "", near.name != NULL ? near.name : "",
             near.name != NULL ? "\"?" : "");
    return bad_value(text, expected, e);
}

static int set_bool(bool *to, const char *text, struct err *e)
{
    static const char *const words[][2] = {
        { "no", "yes" }, { "off", "on" }, { "false", "true" }, { "0", "1" }
    };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        for (int b = 0; b < 2; b++)
            if (strcmp(text, words[i][b]) == 0) {
                *to = b == 1;
                return 0;
            }
    return bad_value(text, "on or off", e);
}

static int set_switch(int *to, const char *text, struct err *e)
{
    bool on;

    if (strcmp(text, "default") == 0) {
        *to = MW_THINK_DEFAULT;
        return 0;
    }
    if (set_bool(&on, text, e) != 0)
        return bad_value(text, "on, off or default", e);
    *to = on ? MW_THINK_ON : MW_THINK_OFF;
    return 0;
}

/* Append a text to those of an option that can be given several times. */
static int add_text(const struct option *row, const char **texts, const char *text,
                    struct err *e)
{
    size_t len = strlen(text), n = 0;
    char expected[80];

    if (len < (size_t)row->min || len > (size_t)row->max) {
        snprintf(expected, sizeof expected, "a text of %.0f to %.0f bytes", row->min, row->max);
        return bad_value(text, expected, e);
    }
    while (texts[n] != NULL)
        n++;
    if (n == OPTIONS_TEXTS)
        return err_set(e, ERR_ARGUMENT, "can be given at most %d times", OPTIONS_TEXTS);
    texts[n] = text;
    return 0;
}

static int set_size(uint64_t *to, const char *text, struct err *e)
{
    struct mw_machine machine = { 0 };
    uint64_t bytes = 0;

    if (strcmp(text, "auto") != 0) {
        bool is_share = strchr(text, '%') != NULL;

        if (is_share)
            mw_machine_read(&machine);
        if (is_share && machine.memory_bytes == 0)
            return err_set(e, ERR_ARGUMENT,
                           "\"%.20s\" of an unknown size: neither /proc/meminfo nor sysinfo(2) "
                           "reports the memory of this machine. Give a budget in bytes, for "
                           "example 2G",
                           text);
        if (units_parse_size(text, machine.memory_bytes, &bytes, e) != 0)
            return bad_value(text, "a size (512M, 2G, 50% or auto)", e);
        if (bytes < MIB)
            return err_set(e, ERR_ARGUMENT,
                           "a budget of \"%.20s\" is smaller than 1 MiB; units are M and G "
                           "(512M, 2G)",
                           text);
    }
    *to = bytes;
    return 0;
}

static int set_space(uint64_t *to, const char *text, struct err *e)
{
    uint64_t bytes = 0;

    if (strcmp(text, "none") == 0 || strcmp(text, "off") == 0)
        bytes = OPTIONS_NO_SPACE;
    else if (strcmp(text, "auto") != 0 &&
             (units_parse_size(text, 0, &bytes, e) != 0 || bytes < MIB))
        return bad_value(text, "a size of at least 1M (512M, 4G, auto or none)", e);
    *to = bytes;
    return 0;
}

static int set_rate(uint64_t *to, const char *text, struct err *e)
{
    uint64_t rate = 0;

    if (strcmp(text, "none") != 0 && strcmp(text, "off") != 0 &&
        (!units_parse_rate(text, &rate) || rate == 0))
        return bad_value(text, "a rate in bytes per second (20M, 1.5G or none)", e);
    *to = rate;
    return 0;
}

static int set_kv_one(const struct option *row, enum mw_kv *to, const char *text, struct err *e)
{
    int type = mw_kv_parse(text);

    if (type < 0)
        return bad_word(row, "", text, e);
    *to = (enum mw_kv)type;
    return 0;
}

/* One type, for what kv-k and kv-v have not chosen themselves, or one for each of both. */
static int set_kv(struct options *o, const struct option *row, const char *text, struct err *e)
{
    size_t n = strcspn(text, " ");
    char first[16];
    int k, v;

    snprintf(first, sizeof first, "%.*s", (int)n, text);
    k = mw_kv_parse(first);
    v = text[n] == ' ' ? mw_kv_parse(text + n + 1) : k;
    if (k < 0 || v < 0)
        return bad_word(row, "", text, e);
    if (!o->given[OPT_KV_K])
        o->chat.engine.kv_k = (enum mw_kv)k;
    if (!o->given[OPT_KV_V])
        o->chat.engine.kv_v = (enum mw_kv)v;
    return 0;
}

static int set_io(struct mw_options *o, const struct option *row, const char *text,
                  struct err *e)
{
    bool drops;
    int io = mw_io_parse(text, &drops);

    if (io < 0)
        return bad_word(row, "", text, e);
    o->io = (enum mw_io)io;
    o->mmap_drop = drops;
    return 0;
}

/* A word of the table is one, whatever files there are. */
static int set_draft(struct mw_options *o, const struct option *row, const char *text,
                     struct err *e)
{
    int word = word_index(row->words, text), copies = MW_COPIES_AUTO;

    if (strncmp(text, "self:", 5) == 0 && (copies = mw_copies_parse(text + 5)) >= 0)
        word = MW_DRAFT_SELF;
    if (word < 0 && strpbrk(text, "/.") == NULL)
        return bad_word(row, ", self:q4_0, self:q3_k, self:q2_k, or the path of a file", text, e);
    o->draft_copies = copies < 0 ? MW_COPIES_AUTO : (enum mw_copies)copies;
    o->draft = word < 0 ? MW_DRAFT_FILE : (enum mw_draft)word;
    o->draft_file = word < 0 ? path_kept(text) : NULL;
    return 0;
}

static int set_isa(const char **to, const char *text, struct err *e)
{
    char names[120] = "";

    for (int i = 0; mw_isa(i) != NULL; i++) {
        size_t used = strlen(names);

        if (strcmp(mw_isa(i), text) == 0) {
            *to = mw_isa(i);
            return 0;
        }
        snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "", mw_isa(i));
    }
    return err_set(e, ERR_ARGUMENT, "kernel set \"%.20s\" is not available; there are %s", text,
                   names);
}

static int set_format(const char **to, const char *text, struct err *e)
{
    char names[400];
    int i = 0;

    options_list_words(options_format_names(), names, sizeof names);
    while (mw_chat_format(i) != NULL && strcmp(mw_chat_format(i), text) != 0)
        i++;
    if (mw_chat_format(i) == NULL && strcmp(text, "none") != 0)
        return err_set(e, ERR_ARGUMENT, "\"%.20s\" is not a chat format; use %s", text, names);
    *to = mw_chat_format(i);
    return 0;
}

static int set_whole(const struct option *row, void *to, const char *text, struct err *e)
{
    const bool may_be_auto = row->tips != NULL && strcmp(row->tips, "auto") == 0;
    char expected[100];
    uint64_t n = 0; /* auto */

    if (!(may_be_auto && strcmp(text, "auto") == 0) &&
        !units_parse_whole(text, row->kind == KIND_COUNT, (uint64_t)row->min,
                           (uint64_t)row->max, &n)) {
        snprintf(expected, sizeof expected, "a whole number from %.0f to %.0f%s%s", row->min,
                 row->max, row->kind == KIND_COUNT ? " (8k is 8192)" : "",
                 may_be_auto ? ", or auto" : "");
        return bad_value(text, expected, e);
    }
    *(uint32_t *)to = (uint32_t)n;
    return 0;
}

static int set_seed(struct mw_seed *to, const char *text, struct err *e)
{
    struct mw_seed seed = { .is_set = strcmp(text, "random") != 0 };

    if (seed.is_set && !units_parse_whole(text, false, 0, UINT64_MAX, &seed.value))
        return bad_value(text,
                         text[0] != '\0' && text[strspn(text, "0123456789")] == '\0'
                             ? "a whole number from 0 to 18446744073709551615, or random"
                             : "a whole number or random",
                         e);
    *to = seed;
    return 0;
}

static int set_number(const struct option *row, float *to, const char *text, struct err *e)
{
    char expected[100];
    double x;

    if (!units_parse_number(text, row->min, row->max, &x)) {
        snprintf(expected, sizeof expected, "a number from %g to %g", row->min, row->max);
        return bad_value(text, expected, e);
    }
    *to = (float)x;
    return 0;
}

static int set_text(const struct option *row, const char **to, const char *text, struct err *e)
{
    if (row->kind == KIND_FILE && text[0] == '\0')
        return bad_value(text, "a file name", e);
    if (row->kind == KIND_FILE)
        text = path_expanded(text);
    *to = row->kind == KIND_OPTIONAL && strcmp(text, "none") == 0 ? NULL : text;
    return 0;
}

static int set_choice(const struct option *row, int *to, const char *text, struct err *e)
{
    int word = word_index(row->words, text);

    if (word < 0)
        return bad_word(row, "", text, e);
    *to = word;
    return 0;
}

/* "no" leaves the other option as it is. */
static int set_fixed(const struct option *row, int *to, const char *text, struct err *e)
{
    bool on;

    if (set_bool(&on, text, e) != 0)
        return -1;
    if (on)
        *to = (int)row->min;
    return 0;
}

static int set_list(struct options *o, const struct option *row, const char *text,
                    struct err *e);

static int set_value(struct options *o, const struct option *row, const char *text,
                     struct err *e)
{
    void *to = (char *)o + row->at;

    switch (row->kind) {
    case KIND_FLAG: return set_bool(to, text, e);
    case KIND_FIXED: return set_fixed(row, to, text, e);
    case KIND_SWITCH: return set_switch(to, text, e);
    case KIND_TEXT:
    case KIND_OPTIONAL:
    case KIND_FILE: return set_text(row, to, text, e);
    case KIND_TEXTS: return add_text(row, to, text, e);
    case KIND_SIZE: return set_size(to, text, e);
    case KIND_SPACE: return set_space(to, text, e);
    case KIND_RATE: return set_rate(to, text, e);
    case KIND_CHOICE: return set_choice(row, to, text, e);
    case KIND_KV: return set_kv(o, row, text, e);
    case KIND_KV_ONE: return set_kv_one(row, to, text, e);
    case KIND_IO: return set_io(&o->chat.engine, row, text, e);
    case KIND_DRAFT: return set_draft(&o->chat.engine, row, text, e);
    case KIND_ISA: return set_isa(to, text, e);
    case KIND_FORMAT: return set_format(to, text, e);
    case KIND_U32:
    case KIND_COUNT: return set_whole(row, to, text, e);
    case KIND_SEED: return set_seed(to, text, e);
    case KIND_NUMBER: return set_number(row, to, text, e);
    case KIND_LIST: return set_list(o, row, text, e);
    }
    return -1;
}

/* ---- lists ---- */

#define ITEM_BYTES 64 /* of the text of an item, with its NUL */

/* Copy item i to item[ITEM_BYTES]; false: there are fewer, or it is too long. */
static bool copy_item(const char *list, size_t i, char *item)
{
    size_t n;

    for (; i > 0; i--) {
        list += strcspn(list, ",");
        if (*list++ == '\0')
            return false;
    }
    n = strcspn(list, ",");
    if (n >= ITEM_BYTES)
        return false;
    memcpy(item, list, n);
    (void)lookalike_plain(item, n);
    return true;
}

static size_t count_items(const char *list)
{
    size_t n = 1;

    for (; *list != '\0'; list++)
        n += *list == ',';
    return n;
}

/* Store one item; o->list is left as it is. */
static int set_item(struct options *o, const struct option *row, const char *list, size_t i,
                    struct err *e)
{
    struct option one = *row;
    char item[ITEM_BYTES];

    one.kind = row->item;
    if (!copy_item(list, i, item))
        return bad_value(list, "a list of values separated by commas", e);
    return set_value(o, &one, item, e);
}

/* "amx,avx512vnni,avx2": the sets of kernels of this machine */
static const char *all_isa(void)
{
    static char all[160];
    size_t used = 0;

    for (int i = 0; mw_isa(i) != NULL && used < sizeof all; i++)
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i > 0 ? "," : "",
                                 mw_isa(i));
    return all;
}

/* Check every item, so that a wrong one is reported before anything is measured. */
static int set_list(struct options *o, const struct option *row, const char *text,
                    struct err *e)
{
    struct options unused = *o;

    if (row->item == KIND_ISA && strcmp(text, "all") == 0)
        text = all_isa();
    for (size_t i = 0; i < count_items(text); i++)
        if (set_item(&unused, row, text, i, e) != 0)
            return -1;
    o->list[row - options_table] = text;
    return 0;
}

size_t options_items(const struct options *o, enum option_id id)
{
    return o->list[id] != NULL ? count_items(o->list[id]) : 1;
}

void options_set_item(struct options *o, enum option_id id, size_t i)
{
    struct err ignored = ERR_INIT; /* set_list() checked it */

    if (o->list[id] != NULL)
        set_item(o, &options_table[id], o->list[id], i, &ignored);
}

/* ---- any option ---- */

bool option_is_of_engine(enum option_id id)
{
    const size_t from = offsetof(struct options, chat.engine), at = options_table[id].at;

    return at >= from && at < from + sizeof(struct mw_options);
}

bool option_is_served(enum option_id id)
{
    const struct option *row = &options_table[id];

    return option_is_of_engine(id) && (row->commands & CMD_SERVE) != 0 && row->reach > REACH_FILE;
}

bool option_is_text(const struct option *row)
{
    return row->kind == KIND_TEXT || row->kind == KIND_TEXTS || row->kind == KIND_OPTIONAL ||
           row->kind == KIND_FILE || row->kind == KIND_DRAFT;
}

/* Set a value of words and numbers.  Characters without a width do not count.  A message about
 * the value names characters that look like others. */
static int set_plain(struct options *o, const struct option *row, const char *text,
                     struct err *e)
{
    char plain[PLAIN_BYTES];
    const char *value = text;
    size_t n = strlen(text);

    if (n < sizeof plain && row->kind != KIND_LIST) {
        memcpy(plain, text, n + 1);
        (void)lookalike_plain(plain, n);
        value = plain;
    }
    return set_value(o, row, value, e) == 0 ? 0 : lookalike_explain(e, text);
}

int options_set(struct options *o, enum option_id id, const char *text, struct err *e)
{
    const struct option *row = &options_table[id];
    int rc = option_is_text(row) ? set_value(o, row, text, e) : set_plain(o, row, text, e);

    if (rc != 0)
        return -1;
    o->given[id] = true;
    return 0;
}

void options_clear(struct options *o, enum option_id id)
{
    const struct option *row = &options_table[id];

    if (row->kind == KIND_TEXTS)
        memset((char *)o + row->at, 0, sizeof(const char * [OPTIONS_TEXTS + 1]));
}
