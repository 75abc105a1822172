#include "config.h"

#include "engine/kv/recurrent.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"

struct recurrent {
    struct recurrent_spec spec;
    struct arena memory;
    float *side[2]; /* [n_layer] layers, then other parts */
    int committed;
};

static uint64_t past_values(const struct recurrent_spec *s)
{
    return (uint64_t)s->n_past * s->n_channel;
}

static uint64_t layer_values(const struct recurrent_spec *s)
{
    return past_values(s) + (uint64_t)s->n_head * s->head_dim_v * s->head_dim_k;
}

uint64_t recurrent_copy_bytes(const struct recurrent_spec *s)
{
    return (s->n_layer * layer_values(s) + s->n_other) * sizeof(float);
}

uint64_t recurrent_bytes(const struct recurrent_spec *s)
{
    uint64_t bytes = recurrent_copy_bytes(s);

    return bytes > 0 ? 2 * (uint64_t)arena_size(bytes) : 0;
}

uint64_t recurrent_layer_bytes(const struct recurrent_spec *s)
{
    return 2 * layer_values(s) * sizeof(float);
}

int recurrent_new(struct recurrent **out, const struct recurrent_spec *s, struct err *e)
{
    struct recurrent *r = calloc(1, sizeof *r);

    *out = NULL;
    if (r == NULL)
        return err_memory(e, "the recurrent state");
    r->spec = *s;
    if (arena_map(&r->memory, "kv_recurrent", recurrent_bytes(s), true, e) != 0)
        goto fail;
    for (int i = 0; i < 2; i++) {
        r->side[i] = arena_take(&r->memory, recurrent_copy_bytes(s), e);
        if (r->side[i] == NULL)
            goto fail;
    }
    *out = r;
    return 0;

fail:
    recurrent_free(r);
    return -1;
}

void recurrent_free(struct recurrent *r)
{
    if (r == NULL)
        return;
    arena_unmap(&r->memory);
    free(r);
}

const struct recurrent_spec *recurrent_spec(const struct recurrent *r)
{
    return &r->spec;
}

static struct recurrent_side side_of(const struct recurrent *r, int side, uint32_t layer)
{
    float *past = r->side[side] + layer * layer_values(&r->spec);

    return (struct recurrent_side){ .past = past, .state = past + past_values(&r->spec) };
}

void recurrent_sides(const struct recurrent *r, uint32_t layer, struct recurrent_side *from,
                     struct recurrent_side *to)
{
    *from = side_of(r, r->committed, layer);
    *to = side_of(r, 1 - r->committed, layer);
}

void recurrent_others(const struct recurrent *r, const float **from, float **to)
{
    uint64_t at = r->spec.n_layer * layer_values(&r->spec);

    *from = r->side[r->committed] + at;
    *to = r->side[1 - r->committed] + at;
}

void recurrent_commit(struct recurrent *r)
{
    r->committed = 1 - r->committed;
}

void recurrent_take_back(struct recurrent *r)
{
    recurrent_commit(r);
}

void recurrent_clear(struct recurrent *r)
{
    memset(r->side[r->committed], 0, recurrent_copy_bytes(&r->spec));
}

int recurrent_each(const struct recurrent *r, recurrent_bytes_fn *fn, void *ctx, struct err *e)
{
    return fn(ctx, r->side[r->committed], recurrent_copy_bytes(&r->spec), e);
}
