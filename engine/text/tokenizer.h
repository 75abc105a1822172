/*
 * tokenizer.h - convert text to token ids and back, exactly like the model's own tokenizer.
 *
 * Supports BPE over characters (Gemma), SentencePiece scores and byte-level BPE, built from
 * the events of format/vocab.h.  A tokenizer is immutable after tokenizer_open, so any thread
 * may use it, each with its own decoder.
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
 * Growing list of ids.  Start from { 0 }, free with ids_free.
 *
 * max limits the list to the size of a context, and with it the memory for encoding.  One more
 * id fails with ERR_CONTEXT, and so does a run of more than TOKENIZER_RUN_MAX bytes in which
 * no token ends.  0: no limit.
 */
#define TOKENIZER_RUN_MAX ((size_t)128 << 10)
struct ids {
    uint32_t *id; /* [n] */
    size_t n, cap, max;
};
int ids_reserve(struct ids *list, size_t n, struct err *e); /* make room for n in total */
int ids_push(struct ids *list, uint32_t id, struct err *e);
int ids_append(struct ids *list, const uint32_t *id, size_t n, struct err *e);
void ids_free(struct ids *list);

/* Returns an upper bound of the memory of tokenizer_open, computed from the counts alone: the
 * plan item "tokenizer". */
uint64_t tokenizer_bytes_bound(const struct vocab_info *info);

/* The same for the memory that tokenizer_open takes in addition while it runs. */
uint64_t tokenizer_build_bytes(const struct vocab_info *info);

int tokenizer_open(struct tokenizer **out, const struct catalogue *c, struct err *e);
void tokenizer_close(struct tokenizer *t);
uint64_t tokenizer_bytes(const struct tokenizer *t); /* memory in use now */
const struct vocab_info *tokenizer_info(const struct tokenizer *t);

/*
 * Append the ids of text (len bytes, may contain NUL; invalid UTF-8 becomes U+FFFD).  Adds no
 * begin token.  Control tokens are recognised only if parse_special is set, so user text
 * never becomes one.  is_start: text is at the very start of the input, where some
 * vocabularies insert a space.
 */
int tokenizer_encode(const struct tokenizer *t, const char *text, size_t len,
                     bool parse_special, bool is_start, struct ids *out, struct err *e);

/*
 * Encodes text that comes in pieces of any length.  The ids equal those of tokenizer_encode for
 * the complete text (with is_start set) and are appended to out as soon as no later text can
 * change them.  The encoder keeps only the text after the last position where it could be cut.
 * run_max (0: no limit, else at least ENCODER_BLOCK) limits that text: a longer run without a
 * cut fails with ERR_UNSUPPORTED and its first byte.  After an error the encoder can only be
 * freed.
 */
#define ENCODER_BLOCK 65536 /* bytes encoded at once */
struct encoder;
int encoder_new(struct encoder **out, const struct tokenizer *t, bool parse_special,
                size_t run_max, struct err *e);
int encoder_push(struct encoder *x, const char *text, size_t len, struct ids *out,
                 struct err *e);
int encoder_end(struct encoder *x, struct ids *out, struct err *e); /* no more text */
void encoder_free(struct encoder *x);

/* The same for text that continues earlier ids: no space prefix, no control tokens. */
int tokenizer_encode_on(const struct tokenizer *t, const char *text, size_t len,
                        struct ids *out, struct err *e);

/* Find the first control token that tokenizer_encode with parse_special would find in
 * text[from..len).  Returns false if there is none. */
bool tokenizer_next_control(const struct tokenizer *t, const char *text, size_t from,
                            size_t len, size_t *at, size_t *n, uint32_t *id);

/* Returns a lower bound of the number of ids of a text of len bytes without control tokens, to
 * refuse text that cannot fit before any work is done. */
uint64_t tokenizer_least_ids(const struct tokenizer *t, uint64_t len);

/* Returns the id with exactly this text (byte-level vocabularies: these raw bytes), or -1.
 * Prefers added tokens. */
int64_t tokenizer_find(const struct tokenizer *t, const char *text, size_t len);

enum token_kind tokenizer_kind(const struct tokenizer *t, uint32_t id);

/* Store whether a control token absorbs the white space before and after it. */
void tokenizer_strips(const struct tokenizer *t, uint32_t id, bool *left, bool *right);

/*
 * Store up to n raw bytes of a token in buf.  Returns the length of the token in bytes.
 * Control tokens have no bytes unless show_control is set, then their text.
 */
size_t tokenizer_piece(const struct tokenizer *t, uint32_t id, bool show_control, char *buf,
                       size_t n);

/* Returns true if id may never be sampled: it has no text, is unused, or stands for media. */
bool tokenizer_is_unusable(const struct tokenizer *t, uint32_t id);

/* Keeps an incomplete UTF-8 character until its remaining bytes arrive. */
struct decoder {
    unsigned char held[4];
    uint32_t n_held;
    bool is_started;   /* false until the first text, whose leading space may be dropped */
    bool show_control; /* print the text of control tokens */
};

/*
 * Decode id and store the text that can be shown now in buf, which must hold DECODE_MAX bytes.
 * The text is complete UTF-8; bytes that can never become a character become U+FFFD.
 * Returns the length.
 */
#define DECODE_MAX 4096
size_t decoder_push(struct decoder *d, const struct tokenizer *t, uint32_t id, char *buf);

/* Decode the rest at the end: U+FFFD if a character is incomplete, else nothing. */
size_t decoder_end(struct decoder *d, char *buf);

#endif
