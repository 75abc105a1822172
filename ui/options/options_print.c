/* From the values of options to texts. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/numbers.h"
#include "ui/options/options.h"

/* Print with as few digits as give the same float, 100 and not 1e+02. */
static void print_number(char *buf, size_t n, float x)
{
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(buf, n, "%.*g", digits, (double)x);
        if (strtof(buf, NULL) == x && strstr(buf, "e+") == NULL)
            return;
    }
}

/* Print "2G", with suffixes that are powers of base. */
static void print_units(char *buf, size_t n, uint64_t value, uint64_t base, const char *none)
{
    static const char suffixes[] = " KMGT";
    int i = 0;

    if (value == 0) {
        snprintf(buf, n, "%s", none);
        return;
    }
    for (; suffixes[i + 1] != '\0' && value % base == 0; i++)
        value /= base;
    snprintf(buf, n, "%llu%.*s", (unsigned long long)value, i > 0, &suffixes[i]);
}

static void print_word(char *buf, size_t n, const char *words, int index)
{
    for (; index > 0; index--)
        words += strcspn(words, " ") + 1;
    snprintf(buf, n, "%.*s", (int)strcspn(words, " "), words);
}

static void print_draft(char *buf, size_t n, const struct option *row, const struct mw_options *o)
{
    if (o->draft == MW_DRAFT_FILE)
        snprintf(buf, n, "%s", o->draft_file);
    else if (o->draft == MW_DRAFT_SELF && o->draft_copies != MW_COPIES_AUTO)
        snprintf(buf, n, "self:%s", mw_copies_name(o->draft_copies));
    else
        print_word(buf, n, row->words, (int)o->draft);
}

static void print_io(char *buf, size_t n, const struct mw_options *o)
{
    snprintf(buf, n, "%s%s", mw_io_name(o->io),
             o->io == MW_IO_MMAP && o->mmap_drop ? ":drop" : "");
}

static void print_kv(char *buf, size_t n, const struct mw_options *o)
{
    if (o->kv_k == o->kv_v)
        snprintf(buf, n, "%s", mw_kv_name(o->kv_k));
    else
        snprintf(buf, n, "%s %s", mw_kv_name(o->kv_k), mw_kv_name(o->kv_v));
}

static void print_text(char *buf, size_t n, const struct option *row, const char *text)
{
    bool has_none = row->kind == KIND_OPTIONAL || row->kind == KIND_FORMAT;

    snprintf(buf, n, "%s", text != NULL ? text : has_none ? "none" : "");
}

static void print_seed(char *buf, size_t n, const struct mw_seed *seed)
{
    if (seed->is_set)
        snprintf(buf, n, "%llu", (unsigned long long)seed->value);
    else
        snprintf(buf, n, "random");
}

bool options_is_none(const struct option *row, const char *value)
{
    static const char *const none[] = { "", "0", "off", "none" };

    if (row->kind == KIND_SEED)
        return strcmp(value, "random") == 0;
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        if (strcmp(value, none[i]) == 0)
            return true;
    return false;
}

char *options_print(const struct options *o, enum option_id id, char *buf, size_t n)
{
    static const char *const switches[] = {
        [MW_THINK_DEFAULT] = "default", [MW_THINK_ON] = "on", [MW_THINK_OFF] = "off"
    };
    const struct option *row = &options_table[id];
    const void *from = (const char *)o + row->at;

    buf[0] = '\0';
    switch (row->kind == KIND_LIST ? row->item : row->kind) {
    case KIND_FLAG: snprintf(buf, n, "%s", *(const bool *)from ? "on" : "off"); break;
    case KIND_FIXED:
        snprintf(buf, n, "%s", *(const int *)from == (int)row->min ? "on" : "off");
        break;
    case KIND_SWITCH: snprintf(buf, n, "%s", switches[*(const int *)from]); break;
    case KIND_TEXT:
    case KIND_OPTIONAL:
    case KIND_TEXTS:
    case KIND_FILE:
    case KIND_FORMAT:
    case KIND_ISA: print_text(buf, n, row, *(const char *const *)from); break;
    case KIND_SIZE: print_units(buf, n, *(const uint64_t *)from, 1024, "auto"); break;
    case KIND_SPACE:
        if (*(const uint64_t *)from == OPTIONS_NO_SPACE)
            snprintf(buf, n, "none");
        else
            print_units(buf, n, *(const uint64_t *)from, 1024, "auto");
        break;
    case KIND_RATE: print_units(buf, n, *(const uint64_t *)from, 1000, "none"); break;
    case KIND_CHOICE: print_word(buf, n, row->words, *(const int *)from); break;
    case KIND_KV: print_kv(buf, n, &o->chat.engine); break;
    case KIND_KV_ONE: snprintf(buf, n, "%s", mw_kv_name(*(const enum mw_kv *)from)); break;
    case KIND_IO: print_io(buf, n, &o->chat.engine); break;
    case KIND_DRAFT: print_draft(buf, n, row, &o->chat.engine); break;
    case KIND_U32:
    case KIND_COUNT:
        if (id == OPT_TOP_K && *(const int *)from < 0)
            break; /* the server's own */
        if (*(const uint32_t *)from > 0 || !(row->min > 0)) /* else the default */
            snprintf(buf, n, "%u", *(const uint32_t *)from);
        break;
    case KIND_SEED: print_seed(buf, n, from); break;
    case KIND_NUMBER:
        if (*(const float *)from >= 0) /* else the server's own */
            print_number(buf, n, *(const float *)from);
        break;
    case KIND_LIST: break; /* there are no lists of lists */
    }
    return buf;
}

char *options_say(const struct options *o, enum option_id id, char *buf, size_t n)
{
    const struct option *row = &options_table[id];
    const void *from = (const char *)o + row->at;

    if (row->kind == KIND_SIZE && *(const uint64_t *)from > 0)
        return units_size(buf, n, *(const uint64_t *)from);
    if (row->kind == KIND_COUNT && *(const uint32_t *)from > 0)
        return numbers_count(buf, n, *(const uint32_t *)from);
    if (row->kind == KIND_SPACE && *(const uint64_t *)from > 0 &&
        *(const uint64_t *)from < OPTIONS_NO_SPACE)
        return units_size(buf, n, *(const uint64_t *)from);
    if (row->kind == KIND_RATE && *(const uint64_t *)from > 0)
        return units_rate(buf, n, (double)*(const uint64_t *)from);
    return options_print(o, id, buf, n);
}

char *options_say_value(const struct options *o, enum option_id id, const char *command, char *buf,
                        size_t n)
{
    char *why;

    if (options_say(o, id, buf, n)[0] == '\0') {
        option_default(&options_table[id], command, buf, n);
        why = strstr(buf, ": ");
        if (why != NULL)
            *why = '\0';
    }
    return buf;
}

char *option_sentence(const struct option *row, const char *value, char *buf, size_t n)
{
    const char *says = row->says, *mark;

    if (row->says_none != NULL && options_is_none(row, value))
        says = row->says_none;
    mark = says == NULL ? NULL : strchr(says, '%');
    if (says == NULL)
        snprintf(buf, n, "%s is %s", row->name, value[0] != '\0' ? value : "not set");
    else if (mark == NULL)
        snprintf(buf, n, "%s", says);
    else if (strcmp(value, "1") == 0 && strcmp(mark, "% tokens") == 0)
        snprintf(buf, n, "%.*s1 token", (int)(mark - says), says);
    else
        snprintf(buf, n, "%.*s%s%s", (int)(mark - says), says, value, mark + 1);
    return buf;
}
