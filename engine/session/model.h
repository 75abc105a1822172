/*
 * model.h - an opened model: catalogue, description and, once text is needed, its
 * tokenizer.  What the files of session/ share; programs see struct mw_model only.
 */
#ifndef MEMWALL_ENGINE_SESSION_MODEL_H
#define MEMWALL_ENGINE_SESSION_MODEL_H

#include <pthread.h>

#include "engine/base/arena.h"
#include "engine/format/catalogue.h"
#include "engine/format/vocab.h"
#include "engine/memwall.h"
#include "engine/model/desc.h"
#include "engine/model/products.h"
#include "engine/text/chat_format.h"
#include "engine/text/tokenizer.h"

struct mw_model {
    struct catalogue *catalogue;
    struct header_room header; /* what the catalogue takes; part of the row "program" */
    struct model_desc *desc;
    struct stream_span *spans; /* of a full pass */
    uint32_t n_span;
    uint64_t hot_bytes, prompt_bytes; /* of all spans, and of a prompt pass */
    struct vocab_info vocab;
    bool has_vocab;
    uint64_t program_bytes; /* resident when the model was opened, before any row was */
    uint64_t file_bytes;    /* of the program and its libraries: page cache of a first start */
    pthread_mutex_t lock;   /* of what is loaded at first use: tokenizer, small weights */
    struct arena resident;  /* small weights, part of the row "pinned" */
    struct tokenizer *tokenizer;
    struct mw_limits limits;     /* of this machine and this model's file; 0: not measured */
    struct mw_products measured; /* rates of who multiplies prompts; n 0: not measured */
    bool has_blas;               /* OpenBLAS is loaded for this model */
};

/* The tokenizer, loaded at the first call; any thread.  NULL with *e on failure. */
const struct tokenizer *model_tokenizer(struct mw_model *m, struct err *e);

/* Norms and other small weights as floats, loaded at the first call and kept as long as the
 * model; any thread. */
int model_load_small(struct mw_model *m, struct err *e);

#endif
