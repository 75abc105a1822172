/*
 * talker.h - writes a small model file that gives a predetermined answer.
 *
 * The engine that runs it is the real one.  The text is cut into tokens that differ from
 * each other; every token is a random code of +1 and -1, attention and feed-forward add
 * nothing, and the head's row of a token is the code of the token before it: so the
 * likeliest next token is always the next piece of the text, whatever the sampling.  An
 * answer begins after the newline that ends a ChatML prompt.
 */
#ifndef MEMWALL_TESTS_TALKER_H
#define MEMWALL_TESTS_TALKER_H

#include <stdbool.h>
#include <stdint.h>

struct talker {
    const char *text; /* of every answer */
    bool is_endless;  /* then from the start again, else the end of the turn */
    uint32_t n_layer; /* more of them: slower */
    uint32_t n_ff;
    const char *template; /* of the chat; NULL: ChatML */
};

/* 0, or -1 with a line on standard error. */
int talker_write(const char *path, const struct talker *t);

#endif
