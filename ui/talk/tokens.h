/*
 * tokens.h - how many tokens a text has, in bounded time.
 */
#ifndef MEMWALL_UI_TALK_TOKENS_H
#define MEMWALL_UI_TALK_TOKENS_H

#include "ui/engine/engine.h"

/*
 * Count the tokens of text[0 .. n) with the tokenizer of g, which must be loaded.  A text of
 * more than TOKENS_COUNTED bytes is estimated from parts of it: the thread that handles the
 * keys must not tokenize megabytes.  Returns false if it is not known, or without memory.
 */
#define TOKENS_COUNTED ((size_t)64 << 10)
bool tokens_of(struct engine *g, const char *text, size_t n, uint32_t *out);

#endif
