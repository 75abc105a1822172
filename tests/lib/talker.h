/*
 * talker.h - write a small model file whose answer is a given text.  The real engine runs it.
 *
 * The text is cut into tokens that differ from each other.  Each token is a random code of +1
 * and -1.  Attention and feed-forward add nothing.  The head's row of a token is the code of
 * the
 * token before it, so the likeliest next token is always the next piece of the text, with any
 * sampling.  An answer begins after the newline that ends a ChatML prompt.
 */
#ifndef MEMWALL_TESTS_TALKER_H
#define MEMWALL_TESTS_TALKER_H

#include <stdbool.h>
#include <stdint.h>

struct talker {
    const char *text; /* the text of every answer */
    bool is_endless;  /* repeat the text without an end; otherwise end the turn */
    uint32_t n_layer; /* more layers are slower */
    uint32_t n_ff;
    const char *template; /* the chat template; NULL: ChatML */
};

/* Returns 0, or -1 after a line on standard error. */
int talker_write(const char *path, const struct talker *t);

#endif
