/*
 * vocab.h - the vocabulary of a model as a stream of events.
 *
 * GGUF arrays and tokenizer.json give the same events, read sequentially with a small
 * buffer: neither the 33 MB of a tokenizer.json nor the arrays of a GGUF are ever
 * whole in memory.  text/ builds its tables from them.
 */
#ifndef MEMWALL_ENGINE_FORMAT_VOCAB_H
#define MEMWALL_ENGINE_FORMAT_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/format/catalogue.h"

enum vocab_model {
    VOCAB_BPE_CHARS, /* BPE over characters, space as U+2581, byte fallback (Gemma) */
    VOCAB_SCORES,    /* SentencePiece scores (GGUF llama) */
    VOCAB_BPE_BYTES, /* byte-level BPE */
};

enum token_kind {
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN,
    TOKEN_CONTROL,
    TOKEN_USER, /* matched on raw text like a control token, but ordinary text */
    TOKEN_UNUSED,
    TOKEN_BYTE,
};

/* What is known when the whole vocabulary has been read. */
struct vocab_info {
    enum vocab_model model;
    uint32_t n_token, n_merge;
    char pre[32];        /* name of the pattern, see facts of text/; "" if none */
    bool ignore_merges;
    bool nfc;            /* normalise to NFC first */
    bool add_space_prefix;
    enum { PREFIX_ALWAYS, PREFIX_FIRST, PREFIX_NEVER } prefix_scheme;
    bool split_at_space; /* Metaspace with split: each word is its own BPE run */
    bool add_bos;
    int64_t bos, eos, unk, pad; /* -1: none */
};

/* Text is not terminated and may hold any byte; it is valid during the call.  A
 * function that returns -1 ends the reading with its *e.  Functions may be NULL. */
struct vocab_sink {
    void *ctx;
    int (*token)(void *ctx, uint32_t id, const char *text, size_t len, float score,
                 enum token_kind kind, bool lstrip, bool rstrip, struct err *e);
    /* In order of rank.  left and right are token texts as stored. */
    int (*merge)(void *ctx, const char *left, size_t n_left, const char *right,
                 size_t n_right, struct err *e);
};

/* Counts and flags only, without calling anything: a few milliseconds. */
int vocab_info(const struct catalogue *c, struct vocab_info *info, struct err *e);

/* All tokens in order of id, then all merges in order of rank. */
int vocab_read(const struct catalogue *c, struct vocab_info *info,
               const struct vocab_sink *sink, struct err *e);

/*
 * The chat template's source, as a malloc'ed string that the caller frees; *out NULL
 * if the model has none.  At most 1 MiB, longer ones are refused.
 */
int vocab_chat_template(const struct catalogue *c, char **out, size_t *len, struct err *e);

#endif
