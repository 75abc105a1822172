/*
 * other_words.h - words that are commands of other programs, and what they are here.
 */
#ifndef MEMWALL_SRC_OTHER_WORDS_H
#define MEMWALL_SRC_OTHER_WORDS_H

#include "engine/base/err.h"

/* Returns the command that does here what `word` does elsewhere, or NULL. */
const char *other_words_command(const char *word);

/* Returns a sentence for a word of something that memwall does not do, or NULL. */
const char *other_words_answer(const char *word);

#endif
