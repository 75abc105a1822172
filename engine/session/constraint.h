/*
 * constraint.h - the tokens that the grammar of an answer allows next.
 *
 *     thinking ... | {"a":1}        thinking is free, and the text after it follows the grammar
 *
 * What is allowed depends on the tokens of the answer so far and on nothing else, so a drafter
 * that looks ahead and the sampler that verifies its drafts get the same tokens.  The states of
 * the last tokens are kept: after a rejected draft it goes on from one of them.
 *
 * Control tokens are not text, so no grammar allows them, except those that it names.  Tokens that
 * end an answer are allowed where the grammar may end.
 */
#ifndef MEMWALL_ENGINE_SESSION_CONSTRAINT_H
#define MEMWALL_ENGINE_SESSION_CONSTRAINT_H

#include "engine/grammar/token_tree.h"
#include "engine/text/chat_format.h"

struct constraint;

/* Fill a tree with the texts of a vocabulary, for any number of constraints. */
int constraint_tree(struct token_tree *out, const struct tokenizer *t, struct err *e);

struct constraint_options {
    const char *grammar; /* GBNF, with a NUL */
    const struct token_tree *tree;
    const struct tokenizer *tokenizer;
    const struct chat_format *format; /* of the answer's parser */
    const uint32_t *stop_ids;         /* [n_stop_id] copied */
    size_t n_stop_id;
    bool may_think; /* the answer may begin with thinking */
};

/* The tree, the tokenizer and the format must outlive it. */
int constraint_new(struct constraint **out, const struct constraint_options *o, struct err *e);
void constraint_free(struct constraint *c);

/* An answer begins after this prompt. */
void constraint_begin(struct constraint *c, const uint32_t *prompt, size_t n);

/*
 * Set the logits of tokens that are not allowed after the ids `before` to -INFINITY.  The ids
 * begin with the prompt.  -1 with *e if no token is allowed, or if the grammar is too expensive.
 */
int constraint_mask(struct constraint *c, const uint32_t *before, size_t n, float *logits,
                    uint32_t n_vocab, struct err *e);

/* Whether nothing may follow the ids and then `id`. */
bool constraint_ends_with(struct constraint *c, const uint32_t *before, size_t n, uint32_t id);

#endif
