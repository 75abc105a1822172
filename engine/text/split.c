/*
 * Notes on the patterns: they avoid \s, which with UCP also matches U+180E, unlike in the
 * reference's engine.  Possessive quantifiers do not change any match.  They avoid
 * backtracking over runs of millions of equal characters.
 */
#include "config.h"

#include "engine/text/split.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STEP 6  /* of a pattern */
#define MAX_ALL  12 /* of patterns that are joined */

/* W: white space inside a class.  B: the same without \r and \n. */
#define REST                                                                                   \
    " \\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define W       "\\t-\\r" REST
#define B       "\\t\\x0b\\x0c" REST
#define C       "(?i:'(?:[sdmt]|ll|ve|re))"
#define NEWLINE "(?:[" B "]*+[\\r\\n]++)++" /* same as \s*[\r\n]+ */
#define T       NEWLINE "|[" W "]+(?![^" W "])|[" W "]+"
#define U       "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define L       "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define ONE     "[^\\r\\n\\p{L}\\p{N}]"
#define BREAK   "(?:\\r?\\n)"
#define LINE    "(?:[^\\r\\n]|\\r(?!\\n))" /* a character that begins no BREAK */

/* Kimi cuts Chinese from all other letters. */
#define NOT_HAN "(?!\\p{sc:Han})"
#define UPPER   "(?:" NOT_HAN U ")"
#define LOWER   "(?:" NOT_HAN L ")"

/* Letters with case that existed when DeepSeek's first tokenizer was made: its pattern lists
 * them, without those of Georgian, Glagolitic and mathematics. */
#define CASED                                                                                  \
    "(?:(?![\\x{560}-\\x{588}\\x{10c7}-\\x{10ff}\\x{1c80}-\\x{1c88}\\x{2d00}-\\x{2d2d}"        \
    "\\x{a790}-\\x{a7fa}\\x{ab30}-\\x{ab68}\\x{10570}-\\x{105bc}\\x{16e40}-\\x{16e7f}"         \
    "\\x{1d400}-\\x{1d7cb}\\x{1df00}-\\x{1df1e}])[\\p{Lu}\\p{Ll}\\p{Lt}])"
#define PUNCTUATION                                                                            \
    "[!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}\\x{2018}-\\x{201f}\\x{3000}-\\x{3002}]"

#define GPT2_WORDS "'(?:[sdmt]|ll|ve|re)| ?\\p{L}++| ?\\p{N}++| ?[^" W "\\p{L}\\p{N}]++"
#define GPT2_OPEN  GPT2_WORDS "|[" W "]+(?![^" W "])"
#define GPT2       GPT2_OPEN "|[" W "]+"

struct pattern {
    const char *name;
    enum words words;
    const char *step[MAX_STEP];
};

static const struct pattern patterns[] = {
    { "llama3",
      WORDS_CUT,
      { C "|" ONE "?+\\p{L}++|\\p{N}{1,3}+| ?[^" W "\\p{L}\\p{N}]++[\\r\\n]*+|" T } },
    { "qwen2", WORDS_CUT, { C "|" ONE "?+\\p{L}++|\\p{N}| ?[^" W "\\p{L}\\p{N}]++[\\r\\n]*+|" T } },
    { "qwen35",
      WORDS_CUT,
      { C "|" ONE "?+[\\p{L}\\p{M}]++|\\p{N}| ?[^" W "\\p{L}\\p{M}\\p{N}]++[\\r\\n]*+|" T } },
    { "digits", WORDS_KEPT, { "\\p{N}" } },
    { "numbers", WORDS_KEPT, { "\\p{N}++" } },
    { "whole", WORDS_KEPT, { NULL } }, /* a text is one piece */
    { "gpt2", WORDS_CUT, { GPT2 } },
    { "smollm", WORDS_CUT, { "\\p{N}", GPT2 } },
    { "tekken",
      WORDS_CUT,
      { ONE "?" U "*" L "+|" ONE "?" U "+" L "*|\\p{N}| ?[^" W
            "\\p{L}\\p{N}]++[\\r\\n/]*+|" T } },
    { "gpt-4o",
      WORDS_CUT,
      { ONE "?" U "*" L "+" C "?|" ONE "?" U "+" L "*" C "?|\\p{N}{1,3}| ?[^" W
            "\\p{L}\\p{N}]++[\\r\\n/]*+|" T } },
    { "deepseek-v3",
      WORDS_CUT,
      { "\\p{N}{1,3}", "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+",
        "[!-/:-@\\[-`{-~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
        "?[\\p{P}\\p{S}]+[\\r\\n]*|" T } },
    { "deepseek-llm",
      WORDS_CUT,
      { "[\\r\\n]", "[" W "]?" CASED "++", "[" W "]?" PUNCTUATION "++", "[" W "]+$",
        "[\\x{800}-\\x{9fa5}\\x{ac00}-\\x{d7ff}]+", "\\p{N}" } },
    { "kimi-k2",
      WORDS_CUT,
      { "\\p{sc:Han}++|" ONE "?" UPPER "*" LOWER "+" C "?|" ONE "?" UPPER "+" LOWER "*" C
        "?|\\p{N}{1,3}+| ?[^" W "\\p{L}\\p{N}]++[\\r\\n]*+|" T } },
    { "exaone-moe",
      WORDS_JOINED,
      { C "|" ONE "?+\\p{L}\\p{M}*+(?: ?\\p{L}\\p{M}*+)*+|\\p{N}| ?[^" W
        "\\p{L}\\p{N}]++[\\r\\n/]?|" T } },
    /* A line and the breaks before it are one piece. */
    { "lines", WORDS_KEPT, { BREAK "++" LINE "*+|" LINE "++" } },
    { "seed-coder", WORDS_CUT, { C "|" ONE "?+\\p{L}++|\\p{N}| ?[^" W "\\p{L}\\p{N}]++|" T } },
    { "default", WORDS_CUT, { "[\\p{P}$+<=>^~|]+", GPT2_OPEN, "\\p{N}+", "[0-9][0-9][0-9]" } },
};

struct split {
    pcre2_code *code[MAX_ALL];
    pcre2_match_context *match;
    int n_step;
    enum words words; /* of all patterns: the first of the enum counts */
};

static int compile(struct split *s, const char *regex, struct err *e)
{
    int code;
    size_t at;
    pcre2_code *re = pcre2_compile((PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED,
                                   PCRE2_UTF | PCRE2_UCP, &code, &at, NULL);

    if (re == NULL)
        return err_set(e, code == PCRE2_ERROR_HEAP_FAILED ? ERR_MEMORY : ERR_UNSUPPORTED,
                       "cannot compile the pre-tokenizer's pattern: PCRE2 error %d at %zu",
                       code, at);
    /* If the system forbids machine code, the interpreter finds the same matches. */
    pcre2_jit_compile(re, PCRE2_JIT_COMPLETE);
    s->code[s->n_step++] = re;
    return 0;
}

static int add_pattern(struct split *s, const char *name, size_t len, struct err *e)
{
    const struct pattern *p = NULL;

    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        if (strlen(patterns[i].name) == len && memcmp(patterns[i].name, name, len) == 0)
            p = &patterns[i];
    if (p == NULL)
        return err_set(e, ERR_UNSUPPORTED, "unknown pre-tokenizer \"%.*s\"", (int)len, name);
    s->words = p->words < s->words ? p->words : s->words;
    for (int i = 0; i < MAX_STEP && p->step[i] != NULL; i++) {
        if (s->n_step == MAX_ALL)
            return err_set(e, ERR_UNSUPPORTED, "the pre-tokenizer has too many patterns");
        if (compile(s, p->step[i], e) != 0)
            return -1;
    }
    return 0;
}

int split_new(struct split **out, const char *names, struct err *e)
{
    struct split *s;

    *out = NULL;
    s = calloc(1, sizeof *s);
    if (s == NULL || (s->match = pcre2_match_context_create(NULL)) == NULL) {
        split_free(s);
        return err_memory(e, "the pre-tokenizer");
    }
    s->words = WORDS_KEPT;
    /* The default limits would abort in runs of some millions of equal characters. */
    pcre2_set_match_limit(s->match, UINT32_MAX);
    pcre2_set_depth_limit(s->match, UINT32_MAX);
    for (;;) {
        size_t len = strcspn(names, "+");

        if (add_pattern(s, names, len, e) != 0) {
            split_free(s);
            return -1;
        }
        if (names[len] == '\0')
            break;
        names += len + 1;
    }
    *out = s;
    return 0;
}

enum words split_words(const struct split *s)
{
    return s->words;
}

void split_free(struct split *s)
{
    if (s == NULL)
        return;
    for (int i = 0; i < s->n_step; i++)
        pcre2_code_free(s->code[i]);
    pcre2_match_context_free(s->match);
    free(s);
}

/* One call of split_text. */
struct run {
    const struct split *s;
    pcre2_match_data *data;
    split_piece *piece;
    void *ctx;
};

static int split_step(struct run *r, int step, const char *text, size_t len, struct err *e)
{
    size_t done = 0;

    if (step == r->s->n_step)
        return r->piece(r->ctx, text, len, e);
    while (done < len) {
        int rc = pcre2_match(r->s->code[step], (PCRE2_SPTR)text, len, done, PCRE2_NO_UTF_CHECK,
                             r->data, r->s->match);
        const size_t *at = pcre2_get_ovector_pointer(r->data);
        size_t from, to;

        if (rc == PCRE2_ERROR_NOMATCH)
            break;
        if (rc < 0)
            return err_set(e, rc == PCRE2_ERROR_NOMEMORY ? ERR_MEMORY : ERR_UNSUPPORTED,
                           "the pre-tokenizer failed with PCRE2 error %d", rc);
        from = at[0];
        to = at[1];
        if (to <= done) /* an empty match, which no pattern has */
            break;
        if (from > done && split_step(r, step + 1, text + done, from - done, e) != 0)
            return -1;
        if (split_step(r, step + 1, text + from, to - from, e) != 0)
            return -1;
        done = to;
    }
    return done < len ? split_step(r, step + 1, text + done, len - done, e) : 0;
}

int split_text(const struct split *s, const char *text, size_t len, split_piece *piece,
               void *ctx, struct err *e)
{
    struct run r = { .s = s, .piece = piece, .ctx = ctx };
    int rc;

    r.data = pcre2_match_data_create(1, NULL);
    if (r.data == NULL)
        return err_memory(e, "the pre-tokenizer");
    rc = split_step(&r, 0, text, len, e);
    pcre2_match_data_free(r.data);
    return rc;
}
