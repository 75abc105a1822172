/*
 * tokenizer.h - text to token ids and back, exactly as the model's own tokenizer.
 *
 * BPE over characters (Gemma), SentencePiece scores and byte-level BPE, built from the
 * events of format/vocab.h.  A tokenizer is not changed after it was opened; any
 * thread may use it, each with its own decoder.
 */
#ifndef MEMWALL_ENGINE_TEXT_TOKENIZER_H
#define MEMWALL_ENGINE_TEXT_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/format/vocab.h"

struct tokenizer;

/*
 * Growing list of ids; start from { 0 }, free with ids_free.
 *
 * max limits the list to the ids of a context, and the memory that making them takes: one
 * more is ERR_CONTEXT, and so is a run of more than TOKENIZER_RUN_MAX bytes that no token
 * ends in.  0: no limit.
 */
#define TOKENIZER_RUN_MAX ((size_t)128 << 10)
struct ids {
    uint32_t *id; /* [n] */
    size_t n, cap, max;
};
int ids_reserve(struct ids *list, size_t n, struct err *e); /* room for n in all */
int ids_push(struct ids *list, uint32_t id, struct err *e);
int ids_append(struct ids *list, const uint32_t *id, size_t n, struct err *e);
void ids_free(struct ids *list);

/* Upper bound of what tokenizer_open will hold, from the counts alone; the plan's
 * row "tokenizer". */
uint64_t tokenizer_bytes_bound(const struct vocab_info *info);

int tokenizer_open(struct tokenizer **out, const struct catalogue *c, struct err *e);
void tokenizer_close(struct tokenizer *t);
uint64_t tokenizer_bytes(const struct tokenizer *t); /* what it holds now */
const struct vocab_info *tokenizer_info(const struct tokenizer *t);

/*
 * Append the ids of text (len bytes, may hold NUL; invalid UTF-8 becomes U+FFFD).
 * No begin token is added.  Control tokens are recognised only if parse_special is
 * set: user text never becomes one.  is_start: text is at the very start of the
 * input (matters to vocabularies that prefix a space there).
 */
int tokenizer_encode(const struct tokenizer *t, const char *text, size_t len,
                     bool parse_special, bool is_start, struct ids *out, struct err *e);

/*
 * Text that comes in pieces, of any length: its ids are those that tokenizer_encode gives
 * for the whole (is_start set), appended to out as soon as no later text can change them.
 * The encoder holds at most the text since the last place where it could be cut.  run_max
 * (0: none, else at least ENCODER_BLOCK) limits that: a longer run without such a place
 * is ERR_UNSUPPORTED, named by its byte.  After an error the encoder can only be freed.
 */
#define ENCODER_BLOCK 65536 /* bytes that are encoded at once */
struct encoder;
int encoder_new(struct encoder **out, const struct tokenizer *t, bool parse_special,
                size_t run_max, struct err *e);
int encoder_push(struct encoder *x, const char *text, size_t len, struct ids *out,
                 struct err *e);
int encoder_end(struct encoder *x, struct ids *out, struct err *e); /* no more text */
void encoder_free(struct encoder *x);

/* The same for text that continues the ids before it: no space prefix, no control tokens. */
int tokenizer_encode_on(const struct tokenizer *t, const char *text, size_t len,
                        struct ids *out, struct err *e);

/* Find the first control token that text[from..len) spells, as tokenizer_encode with
 * parse_special would find it.  Returns false if there is none. */
bool tokenizer_next_control(const struct tokenizer *t, const char *text, size_t from,
                            size_t len, size_t *at, size_t *n, uint32_t *id);

/* A lower bound of how many ids a text of len bytes can have: one that cannot fit is
 * refused before work is done.  Control tokens in it are not counted on. */
uint64_t tokenizer_least_ids(const struct tokenizer *t, uint64_t len);

/* The id whose text is exactly this (of byte-level vocabularies: these raw bytes), or
 * -1.  Added tokens come first. */
int64_t tokenizer_find(const struct tokenizer *t, const char *text, size_t len);

enum token_kind tokenizer_kind(const struct tokenizer *t, uint32_t id);

/* Does a control token swallow the white space of the text before and after it? */
void tokenizer_strips(const struct tokenizer *t, uint32_t id, bool *left, bool *right);

/*
 * Raw bytes of one token into buf (at most n), and how many there are in all.
 * Control tokens give nothing unless show_control, then their text.
 */
size_t tokenizer_piece(const struct tokenizer *t, uint32_t id, bool show_control, char *buf,
                       size_t n);

/* Ids that may never be sampled: without text, unused, media.  True if id is one. */
bool tokenizer_is_unusable(const struct tokenizer *t, uint32_t id);

/* Bytes that end inside a UTF-8 character wait here for the rest. */
struct decoder {
    unsigned char held[4];
    uint32_t n_held;
    bool is_started;   /* a first piece was seen: one leading space may be dropped before */
    bool show_control; /* write control tokens out */
};

/*
 * Text that may be shown after id: complete UTF-8, bytes that can never become a
 * character as U+FFFD.  buf must hold DECODE_MAX bytes.  Returns the length.
 */
#define DECODE_MAX 4096
size_t decoder_push(struct decoder *d, const struct tokenizer *t, uint32_t id, char *buf);

/* Decode the rest at the end: U+FFFD for an incomplete character, or nothing. */
size_t decoder_end(struct decoder *d, char *buf);

#endif
