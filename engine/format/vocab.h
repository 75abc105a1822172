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

/* Larger vocabularies are refused; the largest known has 262,208 tokens, 514,906 merges
 * and a token of 256 bytes. */
#define VOCAB_MAX_TOKEN      ((uint32_t)1 << 20)
#define VOCAB_MAX_MERGE      ((uint32_t)1 << 21)
#define VOCAB_MAX_TEXT       ((size_t)1024)     /* bytes of one token as stored */
#define VOCAB_MAX_TEXT_BYTES ((size_t)16 << 20) /* of all tokens */

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
    uint32_t n_token, n_merge; /* merges as stated; 0 for VOCAB_SCORES */
    uint32_t n_char;           /* tokens of one character */
    uint32_t n_added;          /* unknown, control and user tokens */
    uint64_t text_bytes;       /* of all tokens as stored */
    char pre[32];              /* of byte-level: name of the pattern in text/split.c; else "" */
    bool ignore_merges;
    bool nfc; /* normalise to NFC first */
    bool add_space_prefix;
    enum { PREFIX_ALWAYS, PREFIX_FIRST, PREFIX_NEVER } prefix_scheme;
    bool prefix_unless_space; /* no prefix where the text begins with a space already */
    bool split_at_space;      /* Metaspace with split: each word is its own BPE run */
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
    int (*merge)(void *ctx, const char *left, size_t n_left, const char *right, size_t n_right,
                 struct err *e);
};

/*
 * A catalogue for its vocabulary alone: besides what catalogue_open_bare opens, a folder
 * with tokenizer.json but no weights, or that file.  Closed by catalogue_close.
 */
int vocab_open(struct catalogue **out, const char *path, struct err *e);

/* Counts and flags only: some milliseconds from a GGUF, a pass over a tokenizer.json. */
int vocab_info(const struct catalogue *c, struct vocab_info *info, struct err *e);

/*
 * All tokens in order of id (one that the file leaves out is TOKEN_UNUSED and empty),
 * then all merges in order of rank.  *info is filled before the first token, except
 * that a tokenizer.json tells n_merge and ignore_merges only at the end.
 */
int vocab_read(const struct catalogue *c, struct vocab_info *info,
               const struct vocab_sink *sink, struct err *e);

/*
 * The chat template's source, as a malloc'ed string that the caller frees; *out NULL
 * if the model has none.  At most 1 MiB, longer ones are refused.
 */
int vocab_chat_template(const struct catalogue *c, char **out, size_t *len, struct err *e);

#endif
