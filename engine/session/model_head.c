#include "config.h"

#include "engine/session/model_head.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/format/draft_head.h"
#include "engine/session/model.h"

static void close_head(struct model_head *h)
{
    arena_unmap(&h->resident);
    desc_free(h->desc);
    free(h->spans);
    catalogue_close(h->catalogue);
    free(h->path);
    *h = (struct model_head){ .catalogue = NULL };
}

static int make_spans(struct model_head *h, struct err *e)
{
    h->n_span = desc_spans(h->desc, NULL);
    h->spans = calloc(h->n_span, sizeof h->spans[0]);
    if (h->spans == NULL)
        return err_memory(e, "the schedule of %u spans", h->n_span);
    desc_spans(h->desc, h->spans);
    for (uint32_t i = 0; i < h->n_span; i++)
        h->hot_bytes += h->spans[i].row_bytes * h->spans[i].n_row;
    return 0;
}

int model_head_open(struct mw_model *m, const char *path, struct err *e)
{
    struct model_head h = { .catalogue = NULL };

    if (draft_head_open(&h.catalogue, m->catalogue, path, e) != 0)
        return -1;
    if (desc_new(&h.desc, h.catalogue, e) != 0 || make_spans(&h, e) != 0) {
        close_head(&h);
        return -1;
    }
    if (path != NULL && (h.path = strdup(path)) == NULL) {
        close_head(&h);
        return err_memory(e, "the draft head");
    }
    close_head(&m->head);
    m->head = h;
    return 0;
}

void model_head_close(struct mw_model *m)
{
    close_head(&m->head);
}

int model_head_load(struct mw_model *m, const struct cancel *cancel, struct err *e)
{
    return model_load_vecs(m, m->head.desc, &m->head.resident, cancel, e);
}

int mw_model_attach(struct mw_model *m, const char *path, struct err *e)
{
    return model_head_open(m, path, e);
}

bool mw_is_head(const struct mw_model *m, const char *path)
{
    return draft_head_is(m->catalogue, path);
}

bool mw_model_head(const struct mw_model *m, struct mw_head_info *out)
{
    const struct catalogue *c = m->head.catalogue;
    const char *slash;

    *out = (struct mw_head_info){ .n_layer = 0 };
    if (c == NULL)
        return false;
    slash = strrchr(c->path, '/');
    out->is_in_model = strcmp(c->path, m->catalogue->path) == 0;
    snprintf(out->name, sizeof out->name, "%s", c->hparams.name);
    snprintf(out->file, sizeof out->file, "%s", slash != NULL ? slash + 1 : c->path);
    out->n_layer = c->hparams.n_layer;
    out->hot_bytes = m->head.hot_bytes;
    return true;
}

const struct err *mw_model_no_head(const struct mw_model *m)
{
    return m->head.catalogue == NULL && m->head.why_not.code != ERR_NONE ? &m->head.why_not : NULL;
}
