/*
 * vocab.h - what a vocabulary consists of, for the files that use it.
 */
#ifndef MEMWALL_ENGINE_SESSION_VOCAB_H
#define MEMWALL_ENGINE_SESSION_VOCAB_H

#include "engine/memwall.h"
#include "engine/text/tokenizer.h"

struct mw_vocab {
    struct catalogue *catalogue;
    struct tokenizer *tokenizer;
};

#endif
