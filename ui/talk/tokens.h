/*
 * tokens.h - how many tokens a text has, in bounded time.
 */
#ifndef MEMWALL_UI_TALK_TOKENS_H
#define MEMWALL_UI_TALK_TOKENS_H

#include "engine/memwall.h"

/*
 * Count the tokens of text[0 .. n) with the tokenizer of m, which must be loaded.  A text of
 * more than TOKENS_COUNTED bytes is estimated from parts of it: the thread that handles the
 * keys must not tokenize megabytes.  Returns false without memory.
 */
#define TOKENS_COUNTED ((size_t)64 << 10)
bool tokens_of(struct mw_model *m, const char *text, size_t n, uint32_t *out);

#endif
