/*
 * encode_internal.h - the encoder, shared by whole texts (encode.c) and texts that come in
 * pieces (encode_pieces.c).
 */
#ifndef MEMWALL_ENGINE_TEXT_ENCODE_INTERNAL_H
#define MEMWALL_ENGINE_TEXT_ENCODE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/text/bpe.h"
#include "engine/text/tokenizer_internal.h"

struct seen;

/* The position of a text, which decides whether a space is inserted before it. */
enum begins { AT_START, AT_SEGMENT, INSIDE };

struct encoder {
    const struct tokenizer *t;
    struct ids *out;
    struct bpe bpe;
    struct arena table;
    struct seen *seen; /* [SEEN_SLOTS] or NULL */
    size_t per_byte;   /* maximum symbols per byte: 3 if U+2581 is not a token */

    /* State of a text that comes in pieces. */
    bool parse_special;
    bool may_be_token;  /* a text without a piece is complete, so it may be one token */
    bool ends_unknown;  /* the last id of the segment is the unknown token */
    enum begins begins; /* position of the pending text */
    size_t run_max;     /* limit of text without a cut; 0: no limit */
    size_t longest;     /* bytes of the longest added token */
    uint64_t offset;    /* offset of pending in the text */
    char *pending;
    size_t n, room;
};

/* Start an encoder, with a table of pieces if has_table is set.  Returns -1 with *e; finish it
 * in any case. */
int encoder_start(struct encoder *x, const struct tokenizer *t, bool parse_special,
                  bool has_table, struct err *e);
void encoder_finish(struct encoder *x);

/* Returns the added tokens that this text may have. */
const struct added *encoder_added(const struct encoder *x);

/* Append the ids of a text, which may be broken UTF-8, to x->out. */
int encoder_encode(struct encoder *x, const char *text, size_t len, enum begins begins,
                   struct err *e);

#endif
