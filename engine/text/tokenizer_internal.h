/*
 * tokenizer_internal.h - the tables of a tokenizer, shared by the files that build it,
 * encode and decode.
 *
 * All tables are in two mappings, whose sizes follow from the counts of the vocabulary.
 * Nothing changes after tokenizer_open.
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

#define N_REPAIRED 64 /* the most tokens with FLAG_REPAIRED */

#define BLOCK_CP 0x2581u /* SentencePiece uses it for a space */

#define FLAG_KIND   0x07 /* enum token_kind */
#define FLAG_LSTRIP 0x10
#define FLAG_RSTRIP 0x20
#define FLAG_MEDIA  0x40
#define FLAG_REPAIRED 0x80 /* a control token that the file gives another type */

/* Token texts -> ids.  Kept only for vocabularies that look up complete pieces. */
struct token_hash {
    uint32_t *slot; /* [n_slot] */
    uint32_t n_slot;
    struct hash_key key;
};

/* Code points -> ids of the tokens that consist of one character. */
struct char_ids {
    uint64_t *slot; /* [n_slot] code point << 32 | id */
    uint32_t n_slot;
    struct hash_key key;
};

struct tokenizer {
    struct vocab_info info;
    struct arena tokens, tables;
    char *text;       /* texts of all tokens; byte-level texts as raw bytes */
    uint32_t *start;  /* [n_token + 1] offsets into text */
    uint8_t *flag;    /* [n_token] */
    uint32_t longest; /* bytes of the longest token that encoding can produce */
    uint32_t byte_id[256]; /* NO_ID: the vocabulary has no token for it */
    bool lacks_bytes;      /* some of them are NO_ID */
    struct char_ids chars; /* unused by byte-level vocabularies */
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

/* Returns the size of the set of seams. */
static inline size_t seam_bytes(const struct vocab_info *info)
{
    return ((size_t)1 << (info->model == VOCAB_BPE_BYTES ? SEAM_BITS_BYTES : SEAM_BITS_CHARS)) /
           8;
}

/* Returns the id of a character that is itself a token, or NO_ID. */
uint32_t char_ids_find(const struct char_ids *x, uint32_t cp);

/* Returns true if ordinary text can become this token.  It never becomes a control token. */
static inline bool is_text_token(const struct tokenizer *t, uint32_t id)
{
    enum token_kind kind = token_kind(t, id);

    return kind == TOKEN_NORMAL || kind == TOKEN_USER || kind == TOKEN_BYTE;
}

/* The table holds the text tokens, and all others if with_others is set.  A text token takes
 * precedence over another token with the same text. */
size_t token_hash_bytes(uint32_t n_token);
int token_hash_start(struct token_hash *h, struct arena *a, uint32_t n_token, struct err *e);
void token_hash_fill(struct token_hash *h, const struct tokenizer *t, bool with_others);

/* Whether all its ids are below n_token, and searches end. */
bool token_hash_is_sound(const struct token_hash *h, uint32_t n_token);

/* Returns the token with this text, or NO_ID. */
uint32_t token_hash_find(const struct token_hash *h, const struct tokenizer *t,
                         const char *text, size_t len);

/* The same in two steps, so that the memory accesses of several searches overlap.  begin
 * returns the hash that finish expects.  In between, fetch_place and later fetch_text may
 * prefetch more of what finish reads. */
uint32_t token_hash_begin(const struct token_hash *h, const char *text, size_t len);
void token_hash_fetch_place(const struct token_hash *h, const struct tokenizer *t,
                            uint32_t hash);
void token_hash_fetch_text(const struct token_hash *h, const struct tokenizer *t,
                           uint32_t hash);
uint32_t token_hash_finish(const struct token_hash *h, const struct tokenizer *t,
                           const char *text, size_t len, uint32_t hash);

size_t char_ids_bytes(uint32_t n_char);
int char_ids_start(struct char_ids *x, struct arena *a, uint32_t n_char, struct err *e);
void char_ids_fill(struct char_ids *x, const struct tokenizer *t);

/* Returns the number of merges that a vocabulary can have. */
uint32_t tokenizer_most_merges(const struct vocab_info *info);

/* Map the memory for t->info, and make its tables, which are empty.  Only the added tokens,
 * the longest one and the bytes have no table.  Both return 0, or -1 with *e. */
int tokenizer_map_tokens(struct tokenizer *t, struct err *e);
int tokenizer_map_tables(struct tokenizer *t, uint32_t n_merge, struct err *e);

/* Set lacks_bytes. */
void tokenizer_count_bytes(struct tokenizer *t);

/* Add a sentence about the tokens with FLAG_REPAIRED to the notice of the vocabulary. */
void tokenizer_name_repaired(struct tokenizer *t);

/* A growing list of merges in order of rank, allocated in chunks. */
#define PAIR_CHUNK 32768
struct pair_list {
    struct arena chunk[VOCAB_MAX_MERGE / PAIR_CHUNK];
    struct pair *pairs[VOCAB_MAX_MERGE / PAIR_CHUNK];
    uint32_t n;
};

int pair_list_add(struct pair_list *list, struct pair pair, struct err *e);
void pair_list_free(struct pair_list *list);
uint64_t pair_list_bytes(uint32_t n); /* memory of n pairs */

/* Derive the merges of a SentencePiece vocabulary from its scores; score[n_token].  Stops with
 * an error when the loading of c is cancelled. */
int scores_to_pairs(struct pair_list *out, const struct tokenizer *t,
                    const struct token_hash *hash, const float *score,
                    const struct catalogue *c, struct err *e);

/* Returns the limit of merges for a vocabulary of scores.  Known ones have 2 per token. */
uint32_t scores_max_pairs(const struct vocab_info *info);
uint64_t scores_build_bytes(const struct vocab_info *info); /* of scores_to_pairs(), at most */

#endif
