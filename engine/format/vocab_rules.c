#include "config.h"

#include "engine/format/vocab_rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool is(const char *text, size_t len, const char *want)
{
    return strlen(want) == len && memcmp(text, want, len) == 0;
}

static bool begins(const char *text, size_t len, const char *with)
{
    return len >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

static bool ends(const char *text, size_t len, const char *with)
{
    size_t n = strlen(with);

    return len >= n && memcmp(text + len - n, with, n) == 0;
}

/* Control tokens of every converter, regardless of tokenizer.json. */
static bool looks_like_control(uint32_t id, const char *text, size_t len)
{
    static const char *const names[] = {
        "<mask>", "<pad>", "<2mass>", "[@BOS@]", "<eos>", "<end_of_turn>", "<EOT>", "[EOS]",
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (is(text, len, names[i]))
            return true;
    /* Gemma 3's </s> (212) is an HTML tag, Phi-3's (2) ends the text. */
    if (id == 2 && is(text, len, "</s>"))
        return true;
    if (len < 4)
        return false;
    if (begins(text, len, "<|") && ends(text, len, ">"))
        return true;
    if (begins(text, len, "<\xef\xbd\x9c") && ends(text, len, "\xef\xbd\x9c>"))
        return true;
    return begins(text, len, "<") &&
           (ends(text, len, "|>") || (begins(text, len, "<unused") && ends(text, len, ">")));
}

int vocab_byte(const char *text, size_t len)
{
    int value = 0;

    if (len != 6 || !begins(text, len, "<0x") || text[5] != '>')
        return -1;
    for (int i = 3; i < 5; i++) {
        char c = text[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                           : -1;

        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

enum token_kind vocab_kind(enum vocab_model model, uint32_t id, const char *text, size_t len,
                           enum token_kind stated)
{
    if (stated == TOKEN_USER && looks_like_control(id, text, len))
        return TOKEN_CONTROL;
    if (model == VOCAB_BPE_BYTES)
        return stated == TOKEN_BYTE ? TOKEN_NORMAL : stated;
    /* One converter marks byte tokens as normal, others mark the character of a byte as one. */
    if (stated == TOKEN_NORMAL || stated == TOKEN_BYTE)
        stated = vocab_byte(text, len) >= 0 ? TOKEN_BYTE : TOKEN_NORMAL;
    /* Gemma 4's instruction models mark it as normal. */
    if (stated == TOKEN_NORMAL && id == 1 && is(text, len, "<eos>"))
        return TOKEN_CONTROL;
    return stated;
}

/* Whether text is one character, by its first byte. */
static bool is_one_char(const char *text, size_t len)
{
    unsigned char c = (unsigned char)(len > 0 ? text[0] : 0);

    return len == (c < 0x80 ? 1u : c < 0xe0 ? 2u : c < 0xf0 ? 3u : 4u);
}

int vocab_count(struct vocab_info *info, uint32_t id, const char *text, size_t len,
                enum token_kind kind, struct err *e)
{
    if (len > VOCAB_MAX_TEXT)
        return err_set(e, ERR_UNSUPPORTED, "token %u has %zu bytes; the limit is %zu", id, len,
                       VOCAB_MAX_TEXT);
    info->text_bytes += len;
    if (info->text_bytes > VOCAB_MAX_TEXT_BYTES)
        return err_set(e, ERR_UNSUPPORTED, "the texts of all tokens have more than %zu bytes",
                       VOCAB_MAX_TEXT_BYTES);
    info->n_char += is_one_char(text, len) ? 1 : 0;
    info->has_joined |= kind == TOKEN_NORMAL && len > 0 && !is_one_char(text, len);
    info->n_added +=
        kind == TOKEN_CONTROL || kind == TOKEN_USER || kind == TOKEN_UNKNOWN ? 1 : 0;
    return 0;
}

int vocab_check_merges(const struct vocab_info *info, struct err *e)
{
    if (info->model == VOCAB_SCORES || info->n_merge > 0 || !info->has_joined)
        return 0;
    return err_set(e, ERR_FORMAT,
                   "there are no merges, so words would be cut into characters; convert the model "
                   "again with a newer converter, or fetch another file of it");
}

void vocab_note(struct vocab_info *info, const char *fmt, ...)
{
    size_t used = strlen(info->notice);
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(info->notice + used + (used > 0), sizeof info->notice - used - (used > 0), fmt,
                  ap);
    va_end(ap);
    /* A sentence that does not fit is left out. */
    if (n < 0 || (size_t)n + used + (used > 0) >= sizeof info->notice)
        info->notice[used] = '\0';
    else if (used > 0)
        info->notice[used] = ' ';
}
