#include "config.h"

#include "tests/lib/setting_values.h"

#include <stdio.h>
#include <string.h>

#define MAX_VALUES 8

/* Word i of a list separated by blanks. */
static const char *word(const char *words, size_t i)
{
    static char text[40];

    while (i > 0 && *words != '\0') {
        words += strcspn(words, " ");
        words += *words == ' ';
        i--;
    }
    snprintf(text, sizeof text, "%.*s", (int)strcspn(words, " "), words);
    return text[0] != '\0' ? text : NULL;
}

static size_t n_words(const char *words)
{
    size_t n = 0;

    while (word(words, n) != NULL)
        n++;
    return n;
}

/* The bounds of a number, or numbers outside them. */
static const char *number(const struct option *row, bool is_valid, size_t i)
{
    static const char *const bad[] = { "", "many", "0x1", "1,5", "nan", "-1", " 1" };
    static char text[40];
    size_t n_bad = sizeof bad / sizeof bad[0];

    if (!is_valid && i < n_bad)
        return bad[i];
    if (!is_valid) {
        snprintf(text, sizeof text, "%.17g", i == n_bad ? row->max * 2 + 1 : row->min - 1);
        return i < n_bad + 2 ? text : NULL;
    }
    snprintf(text, sizeof text, "%.10g", i == 0 ? row->min : row->max);
    if (i == 2)
        return row->kind == KIND_COUNT ? "3k" : row->kind == KIND_NUMBER ? "0.1234567" : NULL;
    return i < 2 ? text : NULL;
}

const char *setting_value(const struct option *row, bool is_valid, size_t i)
{
    static const char *const values[][2][MAX_VALUES] = {
        [KIND_FLAG] = { { "", "perhaps", "default" }, { "on", "off" } },
        [KIND_FIXED] = { { "", "perhaps" }, { "on" } },
        [KIND_SWITCH] = { { "", "perhaps" }, { "on", "off", "default" } },
        [KIND_TEXT] = { { NULL }, { "a \"text\" with \\ and #", "" } },
        [KIND_TEXTS] = { { "" }, { "two\nlines" } },
        [KIND_OPTIONAL] = { { NULL }, { "a \"text\"\nof two lines", "none" } },
        [KIND_FORMAT] = { { "", "nope", "gemma" }, { "gemma3", "raw", "none" } },
        [KIND_FILE] = { { "" }, { "/a folder/file.x", "name" } },
        [KIND_SIZE] = { { "", "lots", "0", "3X", "-1G", "101%", "nan" },
                        { "512M", "1536K", "1G", "1000000001", "auto" } },
        [KIND_SPACE] = { { "", "lots", "0", "3X", "-1G", "50%", "1000" },
                         { "512M", "1536K", "4G", "none", "auto" } },
        [KIND_RATE] = { { "", "fast", "0", "-1M", "20M/h" }, { "20M", "1G", "999", "none" } },
        [KIND_KV] = { { "", "q8", "f16 q8", "f16 f16 f16", "F16" }, { "q8_0", "f16 q4_0" } },
        [KIND_ISA] = { { "", "abacus" }, { "generic" } },
        [KIND_SEED] = { { "", "-1", "1.0", "18446744073709551616", "none" },
                        { "0", "7", "18446744073709551615", "random" } },
        [KIND_CHOICE] = { { "", "sideways" } },
        [KIND_KV_ONE] = { { "", "sideways", "f16 f16" } },
        [KIND_IO] = { { "", "sideways", "mmap:" } },
        [KIND_DRAFT] = { { "", "sideways" }, { "self:q3_k", "/a folder/small.gguf" } },
        [KIND_NUMBER] = { { NULL } },
    };

    if (row == &options_table[OPT_THEME])
        return is_valid && i == 0 ? "dark" : is_valid && i == 1 ? "auto" : NULL;
    switch (row->kind) {
    case KIND_U32:
    case KIND_COUNT:
    case KIND_NUMBER: return number(row, is_valid, i);
    case KIND_CHOICE:
    case KIND_DRAFT:
    case KIND_KV_ONE:
    case KIND_IO:
        if (is_valid && i < n_words(row->words))
            return word(row->words, i);
        if (is_valid)
            i -= n_words(row->words);
        break;
    default: break;
    }
    return i < MAX_VALUES ? values[row->kind][is_valid][i] : NULL;
}
