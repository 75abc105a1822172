#include "config.h"

#include "engine/format/vocab_rules.h"

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
    /* One converter marks byte tokens as normal. */
    if ((stated == TOKEN_NORMAL || stated == TOKEN_BYTE) && vocab_byte(text, len) >= 0)
        return TOKEN_BYTE;
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
    info->n_added +=
        kind == TOKEN_CONTROL || kind == TOKEN_USER || kind == TOKEN_UNKNOWN ? 1 : 0;
    return 0;
}

struct pre_name {
    const char *gguf;
    const char *pattern;
    bool ignore_merges;
};

/* Names as in llama-vocab.cpp; the patterns are from the models' tokenizer.json. */
static const struct pre_name pre_names[] = {
    { "llama-bpe", "llama3", true },
    { "llama3", "llama3", true },
    { "llama-v3", "llama3", true },
    { "falcon3", "llama3", true },
    { "falcon-h1", "llama3", true },
    { "pixtral", "llama3", true },
    { "lfm2", "llama3", true },
    { "midm-2.0", "llama3", true },
    { "dbrx", "llama3", false }, /* Phi-4 */
    { "smaug-bpe", "llama3", false },
    { "chatglm-bpe", "llama3", false },
    { "glm4", "llama3", false },
    { "qwen2", "qwen2", false },
    { "deepseek-r1-qwen", "qwen2", false },
    { "megrez", "qwen2", false },
    { "stablelm2", "qwen2", false },
    { "hunyuan", "qwen2", false },
    { "grok-2", "qwen2", false },
    { "solar-open", "qwen2", false },
    { "qwen35", "qwen35", false },
    { "gpt-2", "gpt2", false },
    { "phi-2", "gpt2", false },
    { "mpt", "gpt2", false },
    { "olmo", "gpt2", false },
    { "jais", "gpt2", false },
    { "exaone4", "gpt2", false },
    { "gigachat", "gpt2", false },
    { "mellum", "gpt2", false },
    { "modern-bert", "gpt2", false },
    { "trillion", "gpt2", false },
    { "granite-docling", "gpt2", false },
    { "smollm", "smollm", false },
    { "starcoder", "smollm", false },
    { "refact", "smollm", false },
    { "command-r", "smollm", false },
    { "codeshell", "smollm", false },
    { "exaone", "smollm", false },
    { "minerva-7b", "smollm", false },
    { "mellum2", "smollm", false },
    { "tekken", "tekken", true },
    { "gpt-4o", "gpt-4o", false },
    { "llama4", "gpt-4o", false },
    { "kanana2", "gpt-4o", false },
    { "minimax-m2", "gpt-4o", false },
    { "deepseek-v3", "deepseek-v3", false },
    { "hunyuan-dense", "deepseek-v3", false },
    { "joyai-llm", "deepseek-v3", false },
    { "default", "default", false },
};

int vocab_pre_gguf(struct vocab_info *info, const char *pre, struct err *e)
{
    for (size_t i = 0; i < sizeof pre_names / sizeof pre_names[0]; i++)
        if (strcmp(pre, pre_names[i].gguf) == 0) {
            snprintf(info->pre, sizeof info->pre, "%s", pre_names[i].pattern);
            info->ignore_merges = pre_names[i].ignore_merges;
            return 0;
        }
    err_set(e, ERR_UNSUPPORTED, "the pre-tokenizer \"%.60s\" is not supported", pre);
    return err_at(e, NULL, ERR_NO_OFFSET, "tokenizer.ggml.pre");
}

#define TAIL  "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define SHORT "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define START "[^\\r\\n\\p{L}\\p{N}]?"

struct pre_regex {
    const char *pattern;
    const char *regex[3];
};

static const struct pre_regex pre_regexes[] = {
    { "llama3",
      { SHORT "|" START "\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" TAIL } },
    { "qwen2", { SHORT "|" START "\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" TAIL } },
    { "qwen35",
      { SHORT "|" START "[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" TAIL } },
    { "gpt2", { VOCAB_REGEX_GPT2 } },
    { "smollm", { VOCAB_REGEX_DIGITS, VOCAB_REGEX_GPT2 } },
    { "tekken",
      { START UPPER "*" LOWER "+|" START UPPER "+" LOWER
                    "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" TAIL } },
    { "gpt-4o",
      { START UPPER "*" LOWER "+" SHORT "?|" START UPPER "+" LOWER "*" SHORT
                    "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" TAIL } },
    { "deepseek-v3",
      { "\\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
        "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"
        "[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|"
        "\\s*[\r\n]+|\\s+(?!\\S)|\\s+" } },
};

int vocab_pre_regex(struct vocab_info *info, const char *const *regex, size_t n, struct err *e)
{
    for (size_t i = 0; i < sizeof pre_regexes / sizeof pre_regexes[0]; i++) {
        const struct pre_regex *row = &pre_regexes[i];
        size_t same = 0;

        while (same < n && same < 3 && row->regex[same] != NULL &&
               strcmp(row->regex[same], regex[same]) == 0)
            same++;
        if (n > 0 && same == n && (same == 3 || row->regex[same] == NULL)) {
            snprintf(info->pre, sizeof info->pre, "%s", row->pattern);
            return 0;
        }
    }
    return err_set(e, ERR_UNSUPPORTED,
                   "the pre-tokenizer with the pattern \"%.80s\" is not supported",
                   n > 0 ? regex[n - 1] : "");
}
