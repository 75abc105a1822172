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
    { "bailingmoe", "qwen2", false },
    { "bailingmoe2", "qwen2", false },
    { "llada-moe", "qwen2", false },
    { "laguna", "lines+qwen2", false },
    { "seed-coder", "seed-coder", false },
    { "qwen35", "qwen35", false },
    { "gpt-2", "gpt2", false },
    { "phi-2", "gpt2", false },
    { "mpt", "gpt2", false },
    { "olmo", "gpt2", false },
    { "jais", "gpt2", false },
    { "exaone4", "gpt2", false },
    { "exaone-moe", "exaone-moe", false }, /* EXAONE 4.5 */
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
    { "kimi-k2", "kimi-k2", false },
    { "deepseek-llm", "deepseek-llm", false },
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
    { "arcee", NULL, "llama-bpe" },
    { "bailingmoe2", NULL, "bailingmoe2" },
    { "bailingmoe3", NULL, "bailingmoe2" },
    { "cohere2", NULL, "command-r" },
    { "deepseek2", "[gMASK]", "glm4" },
    { "deepseek2", "<|im_middle|>", "kimi-k2" },
    { "deepseek2", "<\uff5cUser\uff5c>", "deepseek-v3" },
    { "deepseek2", NULL, "deepseek-llm" },
    { "deepseek4", NULL, "deepseek-v3" },
    { "exaone4", NULL, "exaone4" },
    { "falcon-h1", NULL, "falcon-h1" },
    { "glm4moe", NULL, "glm4" },
    { "glm5-next", NULL, "glm4" },
    { "gpt-oss", NULL, "gpt-4o" },
    { "granite", NULL, "refact" },
    { "granitehybrid", NULL, "dbrx" },
    { "granitemoe", NULL, "refact" },
    { "hunyuan-dense", NULL, "hunyuan-dense" },
    { "hunyuan-moe", NULL, "hunyuan" },
    { "kimi-linear", NULL, "kimi-k2" },
    { "laguna", NULL, "laguna" },
    { "lfm2", NULL, "lfm2" },
    { "lfm2moe", NULL, "lfm2" },
    { "llama", "<|start_header_id|>", "llama-bpe" },
    { "llama", "[INST]", "tekken" },
    { "llama", "<gh_stars>", "smollm" }, /* SmolLM 1 and 2, Granite Code */
    { "llama", ">>TITLE<<", "falcon3" },
    { "mellum", NULL, "mellum2" },
    { "minimax-m2", NULL, "minimax-m2" },
    { "mistral3", NULL, "tekken" },
    { "muse-glimmer", NULL, "llama4" },
    { "nemotron_h", NULL, "pixtral" },
    { "nemotron_h_moe", NULL, "pixtral" },
    { "olmo2", NULL, "dbrx" },
    { "olmoe", NULL, "olmo" },
    { "phi3", NULL, "dbrx" },
    { "qwen2", NULL, "qwen2" },
    { "qwen2moe", NULL, "qwen2" },
    { "qwen3", NULL, "qwen2" },
    { "qwen35", NULL, "qwen35" },
    { "qwen35moe", NULL, "qwen35" },
    { "qwen4exp", NULL, "qwen35" },
    { "qwen3moe", NULL, "qwen2" },
    { "qwen3next", NULL, "qwen2" },
    { "seed_oss", NULL, "seed-coder" },
    { "smollm3", NULL, "llama-bpe" },
};

_Static_assert(sizeof family_rules / sizeof family_rules[0] <= 8 * sizeof(uint64_t),
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
            s->marks |= (uint64_t)1 << i;
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

/* The letters that DeepSeek's first tokenizer lists; engine/text/split.c has them in short. */
#define CASED                                                                                  \
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293" \
    "\u0295-\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c" \
    "\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5" \
    "\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77" \
    "\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59" \
    "\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc" \
    "\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107" \
    "\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139" \
    "\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee" \
    "\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e" \
    "\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f" \
    "\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2" \
    "\U000118a0-\U000118df\U0001e900-\U0001e943"

#define MAX_STEP 6 /* of a row */

struct pre_regex {
    const char *pattern;
    const char *regex[MAX_STEP];
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
    { "deepseek-llm",
      { "[\r\n]", "\\s?[" CASED "]+",
        "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+", "\\s+$",
        "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", VOCAB_REGEX_DIGITS } },
    { "exaone-moe",
      { SHORT "|" START "(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}|"
              " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+" } },
    { "lines", { VOCAB_REGEX_LINES } },
    { "qwen2", /* Ling: the same pieces */
      { "'(?i:[sdmt]|ll|ve|re)|" START "+\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|"
        "\\s*[\\r\\n]|\\s+(?!\\S)|\\s+" } },
    { "seed-coder",
      { SHORT "|[^\r\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\r\n]+|"
        "\\s*[\r\n]+|\\s+(?!\\S)|\\s+" } },
};

/* Returns the number of steps of a row that regex[0 .. n) begins with; 0: not all of them. */
static size_t matches(const struct pre_regex *row, const char *const *regex, size_t n)
{
    size_t same = 0;

    while (same < MAX_STEP && row->regex[same] != NULL) {
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
