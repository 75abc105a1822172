/*
 * vocab.h - struct mw_vocab, for the files of session/ that use it.
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
