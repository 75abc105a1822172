/* vocab_json.h - shared by the files that read tokenizer.json. */
#ifndef MEMWALL_ENGINE_FORMAT_VOCAB_JSON_H
#define MEMWALL_ENGINE_FORMAT_VOCAB_JSON_H

#include "engine/base/arena.h"
#include "engine/format/json.h"
#include "engine/format/names.h"
#include "engine/format/vocab_added.h"
#include "engine/format/vocab_rules.h"

/* ---- the steps before and after the model: normalizer, pre_tokenizer, post_processor ---- */

#define STEPS_MAX_REGEX 8
#define STEPS_TEXT      1024

struct steps {
    struct vocab_info *info;
    bool has_blocks;    /* the normalizer replaces spaces by U+2581 */
    bool has_metaspace; /* a pre-tokenizer does */
    bool has_prepend, has_byte_level;
    bool splits_spaces; /* a pre-tokenizer cuts at spaces, if there are any */
    size_t n_regex;
    char regex[STEPS_MAX_REGEX][STEPS_TEXT];
    bool puts_bos; /* the post-processor adds this control token at the start */
    char bos[VOCAB_MAX_TEXT + 1];
    size_t bos_len;
    /* The step being read. */
    char key[32];
    char type[32], scheme[16], behavior[32];
    char text[STEPS_TEXT], content[STEPS_TEXT]; /* of the pattern; of "content" or "prepend" */
    bool is_regex, in_pattern, has_split, invert, individual, no_regex, adds_prefix;
    bool no_prefix, no_split;
    enum { SINGLE_NO, SINGLE_FIRST, SINGLE_TOKEN, SINGLE_DONE } single;
};

enum steps_section { STEPS_NORMALIZER, STEPS_PRE_TOKENIZER, STEPS_POST_PROCESSOR };

/* Handle an event of one of these sections. */
int steps_event(struct steps *s, enum steps_section section, enum json_event event,
                const char *text, size_t len, struct err *e);

/* After the sections: choose the pattern.  s->info has the model. */
int steps_finish(struct steps *s, struct err *e);

/* ---- collected tokens, by id ---- */

struct json_token {
    const char *text; /* NULL: no token has this id */
    uint16_t len;
    uint8_t kind; /* enum token_kind */
    bool lstrip, rstrip;
};

struct json_tokens {
    struct arena arena;
    struct json_token *token; /* [cap] */
    uint32_t cap, n;          /* n: the highest id + 1 */
    uint32_t n_vocab;         /* entries of model.vocab */
    struct name_pool texts;
};

int json_tokens_vocab(struct json_tokens *t, uint32_t id, const char *text, size_t len,
                      struct err *e);
void json_tokens_free(struct json_tokens *t);

/* Add the added tokens, which are in the order of the file, and set the kinds of all tokens. */
int json_tokens_finish(struct json_tokens *t, enum vocab_model model,
                       const struct json_added *added, uint32_t n_added, struct err *e);

/*
 * Append the tokens that only tokenizer_config.json has: transformers adds them to the tokenizer,
 * with the id of the vocabulary, or else the next free one.  If that is not the id that the file
 * states, the token is left out with a notice.
 */
int json_tokens_config(const struct json_tokens *t, struct added_list *added,
                       const struct added_list *config, struct vocab_info *info, struct err *e);

/* Returns the id of a text, or -1.  Scans all tokens. */
int64_t json_tokens_find(const struct json_tokens *t, const char *text, size_t len);

#endif
