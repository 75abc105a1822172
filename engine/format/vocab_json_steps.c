/*
 * normalizer, pre_tokenizer and post_processor of a tokenizer.json: lists of steps, each an
 * object with a type.  Steps that memwall does not support are refused by name.
 *
 * Programs that save a tokenizer again write other steps than its maker did, and some change
 * it.  The order of the steps decides the ids, so it is kept here, or refused.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "engine/format/vocab_json.h"

#define BLOCK "\xe2\x96\x81"

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static int unknown(const struct steps *s, const char *what, struct err *e)
{
    return err_set(e, ERR_UNSUPPORTED, "%s \"%.40s\" is not supported" VOCAB_ADVICE, what,
                   s->type);
}

/* The step is known, but not at this place. */
static int misplaced(const struct steps *s, const char *after, struct err *e)
{
    return err_set(e, ERR_UNSUPPORTED,
                   "the pre-tokenizer \"%.40s\" after %s is not supported" VOCAB_ADVICE,
                   s->type, after);
}

static void clear_step(struct steps *s)
{
    s->type[0] = s->scheme[0] = s->behavior[0] = s->text[0] = s->content[0] = '\0';
    s->is_regex = s->in_pattern = s->has_split = s->invert = s->individual = false;
    s->no_regex = s->adds_prefix = s->no_prefix = s->no_split = false;
}

static int end_normalizer(struct steps *s, struct err *e)
{
    if (is(s->type, "Sequence"))
        return 0;
    if (is(s->type, "NFC")) {
        s->info->nfc = true;
        return 0;
    }
    /* A space that is prepended first is replaced, too. */
    if (is(s->type, "Prepend") && !s->has_prepend &&
        (is(s->content, BLOCK) || (is(s->content, " ") && !s->has_blocks))) {
        s->has_prepend = s->info->add_space_prefix = true;
        s->info->prefix_scheme = PREFIX_ALWAYS;
        return 0;
    }
    if (is(s->type, "Replace") && is(s->text, " ") && is(s->content, BLOCK)) {
        s->has_blocks = true;
        return 0;
    }
    return unknown(s, "the normalizer", e);
}

static int add_regex(struct steps *s, const char *regex, struct err *e)
{
    if (s->n_regex == STEPS_MAX_REGEX)
        return err_set(e, ERR_UNSUPPORTED, "more than %d pre-tokenizer patterns",
                       STEPS_MAX_REGEX);
    snprintf(s->regex[s->n_regex++], STEPS_TEXT, "%s", regex);
    return 0;
}

static int end_metaspace(struct steps *s, struct err *e)
{
    struct vocab_info *info = s->info;
    bool adds_prefix = !s->no_prefix && !is(s->scheme, "never");

    if (s->content[0] != '\0' && !is(s->content, BLOCK))
        return unknown(s, "the pre-tokenizer", e);
    if (s->has_metaspace || s->has_byte_level || (s->has_blocks && s->n_regex > 0))
        return misplaced(s, "another step", e);
    s->has_metaspace = true;
    info->split_at_space = !s->no_split;
    if (s->has_prepend) /* so every text has a prefix */
        return 0;
    info->prefix_unless_space = true;
    info->add_space_prefix = adds_prefix;
    info->prefix_scheme = is(s->scheme, "first") ? PREFIX_FIRST : PREFIX_ALWAYS;
    return 0;
}

static int end_split(struct steps *s, struct err *e)
{
    bool is_right =
        is(s->text, VOCAB_REGEX_LINES)
            ? is(s->behavior, "MergedWithNext") && !s->invert
            : is(s->behavior, "Isolated") || (is(s->behavior, "Removed") && s->invert);

    if (is(s->text, " ") && !s->is_regex) {
        s->splits_spaces = s->splits_spaces || !s->has_metaspace;
        return 0;
    }
    if (!s->is_regex || !is_right)
        return unknown(s, "the pre-tokenizer", e);
    if (s->has_metaspace || s->has_byte_level)
        return misplaced(s, s->has_metaspace ? "Metaspace" : "ByteLevel", e);
    return add_regex(s, s->text, e);
}

static int end_byte_level(struct steps *s, struct err *e)
{
    struct vocab_info *info = s->info;

    if (s->has_byte_level || s->has_metaspace || s->has_blocks)
        return misplaced(s, "another step", e);
    s->has_byte_level = true;
    if (s->adds_prefix && s->n_regex > 0) /* before every piece */
        return misplaced(s, "a pattern, with a space before each piece,", e);
    if (s->adds_prefix) {
        info->add_space_prefix = info->prefix_unless_space = true;
        info->prefix_scheme = PREFIX_ALWAYS;
    }
    return s->no_regex ? 0 : add_regex(s, VOCAB_REGEX_GPT2, e);
}

static int end_pre_tokenizer(struct steps *s, struct err *e)
{
    if (is(s->type, "Sequence"))
        return 0;
    if (is(s->type, "Metaspace"))
        return end_metaspace(s, e);
    if (is(s->type, "Split"))
        return end_split(s, e);
    if (is(s->type, "Digits")) {
        if (s->has_metaspace || s->has_byte_level)
            return misplaced(s, s->has_metaspace ? "Metaspace" : "ByteLevel", e);
        return add_regex(s, s->individual ? VOCAB_REGEX_DIGITS : VOCAB_REGEX_NUMBERS, e);
    }
    if (is(s->type, "ByteLevel"))
        return end_byte_level(s, e);
    return unknown(s, "the pre-tokenizer", e);
}

static int take_text(struct steps *s, char *out, size_t n, const char *text, size_t len,
                     struct err *e)
{
    if (len >= n || memchr(text, '\0', len) != NULL)
        return err_set(e, ERR_UNSUPPORTED, "\"%s\" has %zu bytes or contains a NUL", s->key,
                       len);
    memcpy(out, text, len);
    out[len] = '\0';
    return 0;
}

static int on_string(struct steps *s, const char *text, size_t len, struct err *e)
{
    if (s->in_pattern) {
        s->is_regex = is(s->key, "Regex");
        return take_text(s, s->text, sizeof s->text, text, len, e);
    }
    if (is(s->key, "type"))
        return take_text(s, s->type, sizeof s->type, text, len, e);
    if (is(s->key, "prepend_scheme"))
        return take_text(s, s->scheme, sizeof s->scheme, text, len, e);
    if (is(s->key, "behavior"))
        return take_text(s, s->behavior, sizeof s->behavior, text, len, e);
    if (is(s->key, "content") || is(s->key, "prepend") || is(s->key, "replacement"))
        return take_text(s, s->content, sizeof s->content, text, len, e);
    return 0;
}

static void on_truth(struct steps *s, bool yes)
{
    if (is(s->key, "invert"))
        s->invert = yes;
    else if (is(s->key, "individual_digits"))
        s->individual = yes;
    else if (is(s->key, "use_regex"))
        s->no_regex = !yes;
    else if (is(s->key, "add_prefix_space")) {
        s->adds_prefix = yes;
        s->no_prefix = !yes;
    } else if (is(s->key, "split"))
        s->no_split = !yes;
}

/* TemplateProcessing: "single": [{"SpecialToken": {"id": "<s>"}}, ...] */
static int on_post(struct steps *s, enum json_event event, const char *text, size_t len,
                   struct err *e)
{
    if (event == JSON_KEY && s->single == SINGLE_FIRST)
        s->single = is(s->key, "SpecialToken") ? SINGLE_TOKEN : SINGLE_DONE;
    else if (event == JSON_KEY && s->single == SINGLE_NO && is(s->key, "single"))
        s->single = SINGLE_FIRST;
    else if (event == JSON_STRING && s->single == SINGLE_TOKEN && is(s->key, "id")) {
        if (len > VOCAB_MAX_TEXT)
            return err_set(e, ERR_UNSUPPORTED, "a token of %zu bytes", len);
        memcpy(s->bos, text, len);
        s->bos_len = len;
        s->puts_bos = true;
        s->single = SINGLE_DONE;
    }
    return 0;
}

int steps_event(struct steps *s, enum steps_section section, enum json_event event,
                const char *text, size_t len, struct err *e)
{
    if (event == JSON_KEY) {
        size_t n = len < sizeof s->key - 1 ? len : sizeof s->key - 1;

        memcpy(s->key, text, n);
        s->key[n] = '\0';
    }
    if (section == STEPS_POST_PROCESSOR)
        return on_post(s, event, text, len, e);
    switch (event) {
    case JSON_OBJECT:
        if (is(s->key, "pattern"))
            s->in_pattern = true;
        else
            clear_step(s);
        s->key[0] = '\0';
        return 0;
    case JSON_OBJECT_END: {
        int rc = 0;

        if (s->in_pattern) {
            s->in_pattern = false;
            return 0;
        }
        if (s->type[0] != '\0')
            rc = section == STEPS_NORMALIZER ? end_normalizer(s, e) : end_pre_tokenizer(s, e);
        clear_step(s);
        return rc;
    }
    case JSON_STRING: return on_string(s, text, len, e);
    case JSON_TRUE:
    case JSON_FALSE: on_truth(s, event == JSON_TRUE); return 0;
    case JSON_NULL:
    case JSON_NUMBER:
    case JSON_KEY:
    case JSON_ARRAY:
    case JSON_ARRAY_END: break;
    }
    return 0;
}

int steps_finish(struct steps *s, struct err *e)
{
    bool has_blocks = s->has_blocks || s->has_metaspace;
    const char *regex[STEPS_MAX_REGEX];
    struct vocab_info *info = s->info;

    if (!s->has_byte_level && !has_blocks)
        return err_set(e, ERR_UNSUPPORTED,
                       "a tokenizer that %s" VOCAB_ADVICE,
                       info->byte_fallback ? "keeps spaces"
                                           : "has neither a byte level nor U+2581 for spaces");
    if (s->splits_spaces && !s->has_blocks)
        return err_set(e, ERR_UNSUPPORTED, "a tokenizer that cuts at spaces" VOCAB_ADVICE);
    if (s->n_regex == 0 && !s->has_byte_level)
        return 0;
    for (size_t i = 0; i < s->n_regex; i++)
        regex[i] = s->regex[i];
    info->pieces = s->has_blocks ? PIECES_OF_BLOCKS : PIECES_OF_TEXT;
    return vocab_pre_regex(info, regex, s->n_regex, e);
}
