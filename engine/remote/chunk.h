/*
 * chunk.h - one piece of an answer in OpenAI's form: an event of a stream, or a whole reply.
 */
#ifndef MEMWALL_ENGINE_REMOTE_CHUNK_H
#define MEMWALL_ENGINE_REMOTE_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/format/json.h"

/* Texts of a piece, in the order in which they came.  A piece of a stream has a few, and a whole
 * reply may have more; one with too many is refused, so that none is lost. */
#define CHUNK_TEXTS 64

struct chunk {
    struct json_doc *doc; /* texts are in it */
    struct {
        const char *text; /* UTF-8 but for halves of characters (halves.h), len bytes */
        size_t len;
        bool is_thinking;
        bool closes; /* a mark: all text before it was thinking; only memwall sends it */
    } text[CHUNK_TEXTS];
    size_t n_text;
    bool has_more; /* texts than these */
    const char *finish; /* "stop", "length", ...; NULL: the answer goes on */
    const char *error;  /* a sentence of the server, not safe to print; NULL: none */
    bool has_usage, has_cached;
    uint32_t n_prompt, n_cached, n_decoded; /* tokens */
    double prompt_tps, answer_tps;          /* as the server measured them; NaN: not reported */
    bool has_progress;
    uint32_t n_done, n_all; /* tokens of the prompt */
};

/* Read n bytes of JSON.  -1 with *e if they are not the piece of an answer.  chunk_free() frees
 * *out in both cases. */
int chunk_read(struct chunk *out, const char *json, size_t n, struct err *e);
void chunk_free(struct chunk *c);

#endif
