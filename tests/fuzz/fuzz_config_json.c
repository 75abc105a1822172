/* config.json: the program can compute with any hyper-parameters that it accepts. */
#include "config.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "engine/format/arch.h"
#include "engine/format/catalogue_build.h"
#include "engine/format/hparams_fill.h"
#include "engine/format/json.h"
#include "engine/format/snapshot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct hparams *h)
{
    if (h->n_layer < 1 || h->n_layer > MAX_LAYER || !(h->rms_eps > 0) ||
        !isfinite(h->attn_scale) || !(h->attn_scale > 0))
        abort();
    for (uint32_t i = 0; i < h->n_layer; i++) {
        const struct layer_hparams *y = &h->layers[i];
        const struct rope_hparams *r = y->is_sliding ? &h->rope_swa : &h->rope;

        if (y->n_head_kv == 0 || y->n_head % y->n_head_kv != 0 || y->n_ff == 0)
            abort();
        if (r->n_rot < 2 || r->n_rot > y->head_dim_k || r->n_factor > MAX_ROPE_FACTOR)
            abort();
        if (!isfinite(r->attn_factor) || !(r->attn_factor > 0) || !(r->base > 1))
            abort();
        for (uint32_t k = 0; k < r->n_factor; k++)
            if (!(r->factors[k] > 0))
                abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct catalogue c; /* without tensors */
    struct catalogue_index index = { .room_file = 0 };
    struct err e = ERR_INIT;
    struct json_doc *config = NULL;

    c = (struct catalogue){ .kind = CATALOGUE_SNAPSHOT, .index = &index };
    if (json_parse(&config, (const char *)data, size, &e) == 0)
        c.hparams.arch = snapshot_arch(json_root(config), &e);
    if (c.hparams.arch != NULL) {
        if (hparams_from_trees(&c, json_root(config), json_root(config), &e) == 0 &&
            hparams_finish(&c, &e) == 0) {
            check(&c.hparams);
            json_free(config);
            return 0;
        }
    }
    json_free(config);
    if (e.code == ERR_NONE || e.what[0] == '\0')
        abort();
    return 0;
}
