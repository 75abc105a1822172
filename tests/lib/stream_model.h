/*
 * stream_model.h - files of random bytes, with a catalogue for streams.
 */
#ifndef MEMWALL_TESTS_LIB_STREAM_MODEL_H
#define MEMWALL_TESTS_LIB_STREAM_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/format/catalogue.h"
#include "engine/stream/stream.h"

enum { MODEL_FILES = 2, MODEL_SPANS = 64 };

struct stream_model {
    struct catalogue catalogue;
    struct model_file files[MODEL_FILES];
    unsigned char *bytes[MODEL_FILES]; /* contents of the files */
    char dir[64];
    struct stream_span spans[MODEL_SPANS];
    uint32_t n_span, n_layer;
};

/* A way to read, for tests that try them all. */
struct stream_mode {
    const char *name;
    enum stream_io io;
    bool no_uring, drop;
};

/* Equal seeds give equal numbers. */
void model_seed(uint64_t seed);
uint64_t model_random(uint64_t below);

/* Make two files of uneven sizes, with random spans in them. */
void model_make(struct stream_model *m, uint64_t file_bytes);
void model_remove(struct stream_model *m);

/* Use other spans, each of about span_bytes, in rows of row_bytes (1 to 20000). */
void model_random_spans(struct stream_model *m, uint64_t span_bytes);

/* Returns whether a block has the contents of the files. */
int model_holds(const struct stream_model *m, const struct stream_block *b);

#endif
