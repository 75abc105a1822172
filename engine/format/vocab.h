/*
 * vocab.h - the vocabulary of a model as a stream of events.
 *
 * GGUF arrays and tokenizer.json give the same events.  Both are read in order through a small
 * buffer, so neither a tokenizer.json of 33 MB nor the arrays of a GGUF file are ever in memory
 * as a whole.  text/ builds its tables from the events.
 */
#ifndef MEMWALL_ENGINE_FORMAT_VOCAB_H
#define MEMWALL_ENGINE_FORMAT_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/format/catalogue.h"

/* Larger vocabularies are refused.  The largest known one has 262,208 tokens, 514,906 merges
 * and a token of 256 bytes. */
#define VOCAB_MAX_TOKEN      ((uint32_t)1 << 20)
#define VOCAB_MAX_MERGE      ((uint32_t)1 << 21)
#define VOCAB_MAX_TEXT       ((size_t)1024)     /* bytes of one token in the file */
#define VOCAB_MAX_TEXT_BYTES ((size_t)16 << 20) /* of all tokens */

#define VOCAB_NOTICE 480

enum vocab_model {
    VOCAB_BPE_CHARS, /* BPE over characters, space as U+2581, byte fallback (Gemma) */
    VOCAB_SCORES,    /* SentencePiece scores (GGUF llama) */
    VOCAB_BPE_BYTES, /* byte-level BPE */
};

enum token_kind {
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN,
    TOKEN_CONTROL,
    TOKEN_USER, /* matched in raw text like a control token, but ordinary text */
    TOKEN_UNUSED,
    TOKEN_BYTE,
};

/* Known after the whole vocabulary was read. */
struct vocab_info {
    enum vocab_model model;
    uint32_t n_token, n_merge; /* merges in the file; 0 for VOCAB_SCORES */
    uint32_t n_char;           /* tokens of one character */
    bool has_joined;           /* normal tokens of several, which merges make */
    uint32_t n_added;          /* unknown, control and user tokens */
    uint64_t text_bytes;       /* of all tokens in the file */
    char pre[48]; /* patterns of text/split.c, joined by "+"; "": text is not cut */
    /* Over characters, the pattern cuts text with U+2581 for its spaces, or text as it is, whose
     * pieces get the U+2581 one by one. */
    enum { PIECES_OF_TEXT, PIECES_OF_BLOCKS } pieces;
    bool ignore_merges;
    bool byte_fallback; /* a character without a token becomes its byte tokens, if all exist */
    bool fuse_unk;      /* characters that become the unknown token: one for a run of them */
    bool nfc; /* normalise to NFC first */
    bool add_space_prefix;
    enum { PREFIX_ALWAYS, PREFIX_FIRST, PREFIX_NEVER } prefix_scheme;
    bool prefix_unless_space; /* no prefix if the text begins with a space */
    bool split_at_space;      /* Metaspace with split: each word is merged separately */
    bool add_bos;
    /* A GGUF file states add_bos: prompts of a chat begin with the token, too, as in llama.cpp.
     * Some exporters remove it from the template for that reason. */
    bool chat_adds_bos;
    int64_t bos, eos, unk, pad; /* -1: none */
    char notice[VOCAB_NOTICE];  /* what the file leaves open or has wrong, in sentences; or "" */
};

/* Text does not end in NUL, may contain any byte, and is valid during the call.  A function
 * that returns -1 stops the reading with its *e.  Functions may be NULL. */
struct vocab_sink {
    void *ctx;
    int (*token)(void *ctx, uint32_t id, const char *text, size_t len, float score,
                 enum token_kind kind, bool lstrip, bool rstrip, struct err *e);
    /* In order of rank.  left and right are token texts as in the file. */
    int (*merge)(void *ctx, const char *left, size_t n_left, const char *right, size_t n_right,
                 struct err *e);
};

/*
 * Open a catalogue for its vocabulary only.  Besides the paths of catalogue_open_bare this can
 * be a folder with tokenizer.json but no weights, or that file.  Close it with catalogue_close.
 */
int vocab_open(struct catalogue **out, const char *path, struct err *e);

/* Counts and flags only: takes some milliseconds for GGUF, a whole read for tokenizer.json. */
int vocab_info(const struct catalogue *c, struct vocab_info *info, struct err *e);

/*
 * The identity of the files that hold a vocabulary and the chat template; all zero: no file, or
 * an unknown one.  To keep something that is made from the vocabulary, store it before the first
 * byte is read, and keep nothing unless vocab_source_is() after the last one.
 */
struct vocab_source {
    struct {
        uint64_t dev, ino, size;
        int64_t mtime_ns, ctime_ns;
    } file[4];
};
/* The files as they were when the catalogue was opened; of a snapshot, as they are now. */
void vocab_source(const struct catalogue *c, struct vocab_source *out);
/* Whether nothing has changed since then. */
bool vocab_source_is(const struct catalogue *c, const struct vocab_source *from);

/*
 * Read all tokens in order of id, then all merges in order of rank.  An id that the file leaves
 * out is TOKEN_UNUSED with an empty text.  *info is complete before the first token, but for
 * n_merge and ignore_merges of a tokenizer.json, which come at the end.
 */
int vocab_read(const struct catalogue *c, struct vocab_info *info,
               const struct vocab_sink *sink, struct err *e);

/*
 * Get the source of the chat template, malloc'ed, which the caller frees; *out is NULL if the
 * model has none.  A template over 1 MiB is refused.
 */
int vocab_chat_template(const struct catalogue *c, char **out, size_t *len, struct err *e);

#endif
