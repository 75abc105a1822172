/*
 * A GGUF file, opened as a model and as a plain container.  An accepted file must keep the
 * promises that the rest of the engine relies on.
 */
#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/format/catalogue.h"
#include "engine/format/gguf.h"
#include "engine/format/summary.h"
#include "tests/fuzz/fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_tensors(const struct catalogue *c)
{
    for (uint32_t i = 0; i < c->n_tensor; i++) {
        const struct tensor_info *t = &c->tensors[i];
        uint64_t file = c->files[t->file].size;

        if (t->offset > file || t->bytes > file - t->offset)
            abort();
        if (tensor_row_bytes(t->type, t->ne[0]) * tensor_rows(t) != t->bytes)
            abort();
        if (catalogue_find(c, t->name) != t)
            abort();
    }
}

static void check_model(const struct catalogue *c)
{
    static struct summary sums;
    const struct hparams *h = &c->hparams;

    if (h->n_layer < 1 || h->n_layer > MAX_LAYER || h->n_vocab == 0 || !(h->rms_eps > 0))
        abort();
    for (uint32_t i = 0; i < h->n_layer; i++) {
        const struct layer_hparams *y = &h->layers[i];
        const struct rope_hparams *r = y->is_sliding ? &h->rope_swa : &h->rope;

        if (y->n_head_kv == 0 || y->n_head % y->n_head_kv != 0 || y->head_dim_k < r->n_rot)
            abort();
        if (r->n_rot % 2 != 0 || (r->n_factor != 0 && r->n_factor != r->n_rot / 2))
            abort();
        if (y->is_sliding && h->n_swa == 0)
            abort();
    }
    summary_make(&sums, c);
    if (sums.n_param_active > sums.n_param)
        abort();
}

/* Read every array of the header, element by element. */
static void read_arrays(const struct gguf *g)
{
    for (uint32_t i = 0; i < g->n_key; i++) {
        struct err e = ERR_INIT;
        struct gguf_array a;
        const char *text;
        double number;
        size_t len;

        if (gguf_array_open(&a, g, g->keys[i].name, &e) == 1) {
            while ((a.elem == GGUF_STRING ? gguf_array_string(&a, &text, &len, &e)
                                          : gguf_array_float(&a, &number, &e)) == 1)
                ;
        }
        gguf_array_close(&a);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = fuzz_file(data, size);
    struct catalogue *c = NULL;
    struct err e = ERR_INIT;
    char path[40], text[600];

    if (fd < 0)
        return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (catalogue_open(&c, path, &e) == 0) {
        check_tensors(c);
        check_model(c);
        read_arrays(c->gguf);
        catalogue_close(c);
        return 0;
    }
    err_text(&e, text, sizeof text);
    if (c != NULL || e.code == ERR_NONE || e.what[0] == '\0')
        abort();
    /* A file that is not a model can still be listed. */
    if (e.code == ERR_UNSUPPORTED && catalogue_open_bare(&c, path, &e) == 0) {
        check_tensors(c);
        read_arrays(c->gguf);
        catalogue_close(c);
    }
    return 0;
}
