/*
 * token_tree.h - the texts of all tokens of a vocabulary in order, to find those that a grammar
 * allows next.
 *
 *     in order     the, then, these, they       one array: "the" "n" "se" "y"
 *     shared          0     3      3     3      bytes that are those of the token before
 *
 * One walk over the array visits each beginning of a token once.  If the grammar refuses a
 * byte, all tokens that share it are skipped.
 */
#ifndef MEMWALL_ENGINE_GRAMMAR_TOKEN_TREE_H
#define MEMWALL_ENGINE_GRAMMAR_TOKEN_TREE_H

#include "engine/grammar/machine.h"

struct token_tree {
    uint32_t n;
    uint32_t *id;     /* [n] */
    uint8_t *shared;  /* [n] */
    uint8_t *n_more;  /* [n] bytes of the token after those */
    char *bytes;      /* all of them, one token after the other */
    uint32_t n_vocab; /* ids that the vocabulary has */
};

/*
 * Store at most n bytes of token `id` in buf.  Returns its length; 0: no text may have it.  A
 * token of more than TOKEN_TREE_LONGEST bytes is left out.
 */
typedef size_t token_text_fn(const void *ctx, uint32_t id, char *buf, size_t n);
#define TOKEN_TREE_LONGEST 255

/* The most memory that a tree takes, also while it is made. */
uint64_t token_tree_bytes(uint32_t n_vocab, uint64_t text_bytes);

int token_tree_open(struct token_tree *t, uint32_t n_vocab, token_text_fn *text,
                    const void *ctx, struct err *e);
void token_tree_close(struct token_tree *t);

/*
 * Set bit[id / 64] >> id % 64 for each token that the grammar allows after *state, which may get
 * another number.  drops_space: a space that begins the token is not a part of the text.  -1 with
 * *e if the grammar is too expensive.
 */
int token_tree_walk(const struct token_tree *t, struct machine *m, uint32_t *state,
                    bool drops_space, uint64_t *bits, struct err *e);

#endif
