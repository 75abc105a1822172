/*
 * The pre-tokenizers of byte-level vocabularies: how text is cut into words before they merge.
 *
 * A GGUF file names its rule, a tokenizer.json has the patterns themselves.  A GGUF file that
 * names no rule, or one that is unknown here, is recognised by its tokens.  The last tokens of a
 * vocabulary come from its rarest merges, so a text with exactly this id occurs in one
 * vocabulary and in those made from it.  If they are unknown too, the rule of the family is
 * taken, with a notice.
 */
#include "config.h"

#include "engine/format/vocab_rules.h"

#include <stdio.h>
#include <string.h>

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

bool vocab_pre_name(struct vocab_info *info, const char *pre)
{
    for (size_t i = 0; i < sizeof pre_names / sizeof pre_names[0]; i++)
        if (strcmp(pre, pre_names[i].gguf) == 0) {
            snprintf(info->pre, sizeof info->pre, "%s", pre_names[i].pattern);
            info->ignore_merges = pre_names[i].ignore_merges;
            return true;
        }
    return false;
}

/* ---- files that do not name their rule ---- */

/* The last token that was not added by hand, in the order of ids: Llama 3 has the tokens of
 * cl100k, and then more. */
static const struct {
    uint32_t id;
    const char *text, *pre;
} known_tokens[] = {
    { 50255, "\xc4\xa0gazed", "gpt-2" },
    { 100255, "\xc4\xa0"
              "Conveyor",
      "dbrx" }, /* cl100k: Phi 4, OLMo 2 */
    { 127999, "\xc3\xa9\xc4\xb6\xc2\xa6", "llama-bpe" },
    { 127999, "\xc3\xa5\xc2\xb1\xc4\xad\xc3\xa6\xc2\xaa\xc4\xb2", "deepseek-v3" },
    { 131071,
      "\xc3\xa5\xc4\xb2\xc4\xb0\xc3\xa6\xc2\xb1\xc4\xab\xc3\xa4\xc2\xb9\xc2\xa6",
      "tekken" },
    { 151642, "\xc3\xa2\xc2\xbd\xc4\xb9", "qwen2" },
    { 199997, "\xc4\xa0"
              "cocos",
      "gpt-4o" }, /* o200k: gpt-oss, Phi 4 mini */
};

/* The rule that the published models of an architecture have.  mark is a control token that the
 * vocabulary must have, or NULL. */
static const struct {
    const char *arch, *mark, *pre;
} family_rules[] = {
    { "gpt-oss", NULL, "gpt-4o" },
    { "granite", NULL, "refact" },
    { "llama", "<|start_header_id|>", "llama-bpe" },
    { "llama", "[INST]", "tekken" },
    { "llama", "<gh_stars>", "smollm" }, /* SmolLM 1 and 2, Granite Code */
    { "llama", ">>TITLE<<", "falcon3" },
    { "mistral3", NULL, "tekken" },
    { "olmo2", NULL, "dbrx" },
    { "phi3", NULL, "dbrx" },
    { "qwen2", NULL, "qwen2" },
    { "qwen3", NULL, "qwen2" },
    { "qwen35", NULL, "qwen35" },
    { "qwen35moe", NULL, "qwen35" },
    { "qwen4exp", NULL, "qwen35" },
    { "qwen3moe", NULL, "qwen2" },
    { "qwen3next", NULL, "qwen2" },
    { "smollm3", NULL, "llama-bpe" },
};

_Static_assert(sizeof family_rules / sizeof family_rules[0] <= 8 * sizeof(uint32_t),
               "struct vocab_signs has a bit for each");

void vocab_signs_look(struct vocab_signs *s, uint32_t id, const char *text, size_t len,
                      enum token_kind kind)
{
    for (size_t i = 0; i < sizeof known_tokens / sizeof known_tokens[0]; i++)
        if (known_tokens[i].id == id && strlen(known_tokens[i].text) == len &&
            memcmp(known_tokens[i].text, text, len) == 0)
            s->pre = known_tokens[i].pre;
    if (kind != TOKEN_CONTROL)
        return;
    for (size_t i = 0; i < sizeof family_rules / sizeof family_rules[0]; i++)
        if (family_rules[i].mark != NULL && strlen(family_rules[i].mark) == len &&
            memcmp(family_rules[i].mark, text, len) == 0)
            s->marks |= (uint32_t)1 << i;
}

static const char *family_rule(const struct vocab_signs *s, const char *arch)
{
    for (size_t i = 0; i < sizeof family_rules / sizeof family_rules[0]; i++)
        if (strcmp(family_rules[i].arch, arch) == 0 &&
            (family_rules[i].mark == NULL || (s->marks >> i & 1) != 0))
            return family_rules[i].pre;
    return NULL;
}

void vocab_pre_guess(struct vocab_info *info, const struct vocab_signs *s, const char *arch,
                     const char *stated)
{
    const char *pre = s->pre != NULL ? s->pre : family_rule(s, arch);
    char rule[80];

    vocab_pre_name(info, pre != NULL ? pre : "default");
    if (s->pre != NULL)
        return;
    if (pre != NULL)
        snprintf(rule, sizeof rule, "as published %s models do (%s)", arch, pre);
    else
        snprintf(rule, sizeof rule, "by a general rule");
    if (stated == NULL)
        vocab_note(info,
                   "The file does not say how its tokenizer cuts text into words "
                   "(tokenizer.ggml.pre is missing).");
    else
        vocab_note(info,
                   "The file does not say in a known way how its tokenizer cuts text into words "
                   "(tokenizer.ggml.pre is \"%.40s\").",
                   stated);
    vocab_note(info,
               "Text is cut %s. If that is wrong, answers are worse; a file from a newer "
               "converter names the rule.",
               rule);
}

/* ---- the patterns of a tokenizer.json ---- */

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
    { "digits", { VOCAB_REGEX_DIGITS } },
    { "numbers", { VOCAB_REGEX_NUMBERS } },
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

/* Returns the number of steps of a row that regex[0 .. n) begins with; 0: not all of them. */
static size_t matches(const struct pre_regex *row, const char *const *regex, size_t n)
{
    size_t same = 0;

    while (same < 3 && row->regex[same] != NULL) {
        if (same == n || strcmp(row->regex[same], regex[same]) != 0)
            return 0;
        same++;
    }
    return same;
}

int vocab_pre_regex(struct vocab_info *info, const char *const *regex, size_t n, struct err *e)
{
    size_t used = 0;

    info->pre[0] = '\0';
    for (size_t at = 0; at < n;) {
        const struct pre_regex *best = NULL;
        size_t most = 0;

        for (size_t i = 0; i < sizeof pre_regexes / sizeof pre_regexes[0]; i++) {
            size_t same = matches(&pre_regexes[i], regex + at, n - at);

            if (same > most) {
                best = &pre_regexes[i];
                most = same;
            }
        }
        if (best != NULL)
            used += (size_t)snprintf(info->pre + used, sizeof info->pre - used, "%s%s",
                                     used > 0 ? "+" : "", best->pattern);
        if (best == NULL || used >= sizeof info->pre)
            return err_set(e, ERR_UNSUPPORTED,
                           "the pre-tokenizer with the pattern \"%.60s\" is not supported"
                           VOCAB_ADVICE,
                           regex[at]);
        at += most;
    }
    if (n == 0)
        snprintf(info->pre, sizeof info->pre, "whole");
    return 0;
}
