/*
 * tokenizer_internal.h - the tables of a tokenizer, shared by the files that build it,
 * encode with it and decode with it.
 *
 * All of them are carved from two mappings whose sizes follow from the counts of the
 * vocabulary; nothing is changed after tokenizer_open.
 */
#ifndef MEMWALL_ENGINE_TEXT_TOKENIZER_INTERNAL_H
#define MEMWALL_ENGINE_TEXT_TOKENIZER_INTERNAL_H

#include "engine/base/arena.h"
#include "engine/base/keyed_hash.h"
#include "engine/text/added.h"
#include "engine/text/pairs.h"
#include "engine/text/tokenizer.h"

struct split;

#define NO_ID UINT32_MAX

#define BLOCK_CP 0x2581u /* SentencePiece writes it for a space */

#define FLAG_KIND   0x07 /* enum token_kind */
#define FLAG_LSTRIP 0x10
#define FLAG_RSTRIP 0x20
#define FLAG_MEDIA  0x40

/* Texts of tokens -> ids.  Kept only where whole pieces are looked up. */
struct token_hash {
    const struct hash_key *key;
    uint32_t *slot; /* [n_slot] */
    uint32_t n_slot;
};

/* Code points -> ids of the tokens that are one character. */
struct char_ids {
    uint64_t *slot; /* [n_slot] code point << 32 | id */
    uint32_t n_slot;
    struct hash_key key;
};

struct tokenizer {
    struct vocab_info info;
    struct arena tokens, tables;
    char *text;       /* all texts; byte-level ones as raw bytes */
    uint32_t *start;  /* [n_token + 1] offsets into text */
    uint8_t *flag;    /* [n_token] */
    uint32_t longest; /* bytes of the longest text that encoding can give */
    uint32_t byte_id[256];
    struct char_ids chars; /* not of byte-level vocabularies */
    struct pairs pairs;
    uint64_t *seams;
    struct added all, plain; /* with and without control tokens */
    struct token_hash hash;
    struct split *split; /* byte-level only */
};

static inline const char *token_text(const struct tokenizer *t, uint32_t id, size_t *len)
{
    *len = t->start[id + 1] - t->start[id];
    return t->text + t->start[id];
}

static inline enum token_kind token_kind(const struct tokenizer *t, uint32_t id)
{
    return (enum token_kind)(t->flag[id] & FLAG_KIND);
}

/* The id of a character that is a token of its own, or NO_ID. */
uint32_t char_ids_find(const struct char_ids *x, uint32_t cp);

/* Can ordinary text become this token?  Control tokens it never becomes. */
static inline bool is_text_token(const struct tokenizer *t, uint32_t id)
{
    enum token_kind kind = token_kind(t, id);

    return kind == TOKEN_NORMAL || kind == TOKEN_USER || kind == TOKEN_BYTE;
}

/* The others too if with_others is set; where texts are equal, the text token counts. */
size_t token_hash_bytes(uint32_t n_token);
int token_hash_build(struct token_hash *h, struct arena *a, const struct tokenizer *t,
                     bool with_others, struct err *e);

/* The token of this text, or NO_ID. */
uint32_t token_hash_find(const struct token_hash *h, const struct tokenizer *t,
                         const char *text, size_t len);

/* The same in two steps, so that several searches wait for memory together: start returns
 * the hash for finish. */
uint32_t token_hash_start(const struct token_hash *h, const char *text, size_t len);
uint32_t token_hash_finish(const struct token_hash *h, const struct tokenizer *t,
                           const char *text, size_t len, uint32_t hash);

size_t char_ids_bytes(uint32_t n_char);
int char_ids_build(struct char_ids *x, struct arena *a, const struct tokenizer *t,
                   struct err *e);

/* A growing list of merges in order of rank, in pieces that are given back whole. */
#define PAIR_CHUNK 32768
struct pair_list {
    struct arena chunk[VOCAB_MAX_MERGE / PAIR_CHUNK];
    struct pair *pairs[VOCAB_MAX_MERGE / PAIR_CHUNK];
    uint32_t n;
};

int pair_list_add(struct pair_list *list, struct pair pair, struct err *e);
void pair_list_free(struct pair_list *list);

/* Merges that follow from the scores of a SentencePiece vocabulary; score[n_token].  Ends
 * when the loading of c is cancelled. */
int scores_to_pairs(struct pair_list *out, const struct tokenizer *t,
                    const struct token_hash *hash, const float *score,
                    const struct catalogue *c, struct err *e);

/* Most merges that a vocabulary of scores may give: known ones have 2 per token. */
uint32_t scores_max_pairs(const struct vocab_info *info);

#endif
