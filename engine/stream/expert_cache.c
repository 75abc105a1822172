#include "config.h"

#include "engine/stream/expert_cache.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"

struct expert_cache {
    struct stream *stream;
    struct expert_layer *layers; /* [n_layer] */
    uint32_t n_layer;
    uint32_t layer; /* of the request */
    uint32_t *experts, n_requested, n_returned;
    unsigned char *buffer; /* weights of one expert */
};

static uint64_t expert_bytes(const struct expert_layer *l)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < l->n_part; i++)
        bytes += l->part[i].bytes;
    return bytes;
}

static uint64_t buffer_bytes(const struct expert_layer *layers, uint32_t n_layer)
{
    uint64_t most = 0;

    for (uint32_t l = 0; l < n_layer; l++) {
        uint64_t n = expert_bytes(&layers[l]);

        most = n > most ? n : most;
    }
    return most;
}

uint64_t expert_cache_min_bytes(const struct expert_layer *l)
{
    return l->n_expert > 0 ? arena_size(expert_bytes(l)) : 0;
}

int expert_cache_new(struct expert_cache **out, struct stream *s,
                     const struct expert_layer *layers, uint32_t n_layer, struct arena *memory,
                     struct err *e)
{
    struct expert_cache *c = calloc(1, sizeof *c);
    uint32_t most = 0;

    *out = NULL;
    for (uint32_t l = 0; l < n_layer; l++)
        most = layers[l].n_expert > most ? layers[l].n_expert : most;
    if (c == NULL)
        return err_memory(e, "the cache of experts");
    c->stream = s;
    c->n_layer = n_layer;
    c->layers = malloc(n_layer * sizeof *layers);
    c->experts = malloc(most * sizeof *c->experts);
    if (c->layers == NULL || c->experts == NULL) {
        err_memory(e, "the cache of experts");
        goto fail;
    }
    memcpy(c->layers, layers, n_layer * sizeof *layers);
    c->buffer = arena_take(memory, buffer_bytes(layers, n_layer), e);
    if (c->buffer == NULL)
        goto fail;
    *out = c;
    return 0;

fail:
    expert_cache_free(c);
    return -1;
}

void expert_cache_free(struct expert_cache *c)
{
    if (c == NULL)
        return;
    free(c->layers);
    free(c->experts);
    free(c);
}

void expert_cache_begin(struct expert_cache *c, uint32_t layer, const uint32_t *experts,
                        uint32_t n)
{
    assert(layer < c->n_layer && n <= c->layers[layer].n_expert);
    memcpy(c->experts, experts, n * sizeof *experts);
    c->layer = layer;
    c->n_requested = n;
    c->n_returned = 0;
}

int expert_cache_next(struct expert_cache *c, uint32_t end, struct expert_weights *out,
                      uint64_t *stall_ns, struct err *e)
{
    const struct expert_layer *l = &c->layers[c->layer];
    struct stream_lookup lookups[EXPERT_PARTS];
    unsigned char *to = c->buffer;
    uint64_t start = clock_ns();

    assert(c->n_returned < end && end <= c->n_requested);
    out->expert = c->experts[c->n_returned++];
    for (uint32_t i = 0; i < l->n_part; i++) {
        const struct expert_part *p = &l->part[i];

        out->part[i] = to;
        lookups[i] = (struct stream_lookup){ .file = p->file,
                                             .offset = p->offset + out->expert * p->bytes,
                                             .bytes = p->bytes,
                                             .dst = to };
        to += p->bytes;
    }
    stream_lookup_start(c->stream, lookups, l->n_part);
    if (stream_lookup_wait(c->stream, e) != 0)
        return -1;
    *stall_ns += clock_ns() - start;
    return 0;
}

void expert_cache_give(struct expert_cache *c)
{
    (void)c;
}
