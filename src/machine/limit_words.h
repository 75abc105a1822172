/*
 * limit_words.h - the limit of the speed in words, the same in every command.
 */
#ifndef MEMWALL_SRC_MACHINE_LIMIT_WORDS_H
#define MEMWALL_SRC_MACHINE_LIMIT_WORDS_H

#include "engine/memwall.h"

/* "reading from disk", which follows "limited by" or is the value of a row. */
const char *limit_words(enum mw_binds b);

#endif
