#include "config.h"

#include "engine/session/model_head.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/format/draft_head.h"
#include "engine/session/draft_model.h"
#include "engine/session/model.h"

static void close_head(struct model_head *h)
{
    arena_unmap(&h->resident);
    desc_free(h->desc);
    free(h->spans);
    catalogue_close(h->catalogue);
    free(h->path);
    free(h);
}

void model_heads_close(struct mw_model *m)
{
    struct model_head *h = m->heads;

    while (h != NULL) {
        struct model_head *next = h->next;

        close_head(h);
        h = next;
    }
    m->heads = m->head = NULL;
}

uint64_t model_heads_bytes(const struct mw_model *m)
{
    uint64_t bytes = 0;

    for (const struct model_head *h = m->heads; h != NULL; h = h->next)
        if (h->catalogue->token_order != NULL)
            bytes += h->desc->n_vocab * sizeof *h->catalogue->token_order;
    return bytes;
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

/* The open head of a path; NULL: there is none. */
static struct model_head *open_one(const struct mw_model *m, const char *path)
{
    struct model_head *h = m->heads;

    while (h != NULL && (h->path == NULL || path == NULL ? h->path != path
                                                         : strcmp(h->path, path) != 0))
        h = h->next;
    return h;
}

/* Called with the lock. */
static int open_new(struct model_head **out, struct mw_model *m, const char *path, struct err *e)
{
    struct model_head *h = calloc(1, sizeof *h);

    if (h == NULL || (path != NULL && (h->path = strdup(path)) == NULL)) {
        free(h);
        return err_memory(e, "the draft head");
    }
    if (draft_head_open(&h->catalogue, m->catalogue, path, e) != 0 ||
        desc_new(&h->desc, h->catalogue, e) != 0 || make_spans(h, e) != 0) {
        close_head(h);
        return -1;
    }
    h->next = m->heads;
    m->heads = h; /* last, for threads that look without the lock */
    *out = h;
    return 0;
}

int model_head_open(struct model_head **out, struct mw_model *m, const char *path, struct err *e)
{
    int rc;

    pthread_mutex_lock(&m->lock);
    *out = open_one(m, path);
    rc = *out != NULL ? 0 : open_new(out, m, path, e);
    pthread_mutex_unlock(&m->lock);
    return rc;
}

int model_head_find(struct model_head **out, struct mw_model *m, const char *path, struct err *e)
{
    int rc = 0;

    pthread_mutex_lock(&m->lock);
    *out = open_one(m, path);
    if (*out == NULL && mw_model_has_file(m) && !draft_model_is_open(m, path) &&
        draft_head_is(m->catalogue, path))
        rc = open_new(out, m, path, e);
    pthread_mutex_unlock(&m->lock);
    return rc;
}

struct model_head *model_head_of(const struct mw_model *m, const struct mw_options *o)
{
    return o->draft == MW_DRAFT_MTP && o->draft_file != NULL ? open_one(m, o->draft_file)
                                                             : m->head;
}

int model_head_load(struct mw_model *m, struct model_head *h, const struct cancel *cancel,
                    struct err *e)
{
    return model_load_vecs(m, h->desc, &h->resident, &h->n_user, cancel, e);
}

void model_head_unload(struct mw_model *m, struct model_head *h)
{
    model_unload_vecs(m, &h->resident, &h->n_user);
}

int mw_model_attach(struct mw_model *m, const char *path, struct err *e)
{
    struct model_head *h;

    if (model_head_open(&h, m, path, e) != 0)
        return -1;
    m->head = h;
    return 0;
}

bool mw_is_head(const struct mw_model *m, const char *path)
{
    return draft_head_is(m->catalogue, path);
}

bool mw_model_head(const struct mw_model *m, struct mw_head_info *out)
{
    const struct catalogue *c = m->head != NULL ? m->head->catalogue : NULL;
    const char *slash;

    *out = (struct mw_head_info){ .n_layer = 0 };
    if (c == NULL)
        return false;
    slash = strrchr(c->path, '/');
    out->is_in_model = strcmp(c->path, m->catalogue->path) == 0;
    snprintf(out->name, sizeof out->name, "%s", c->hparams.name);
    snprintf(out->file, sizeof out->file, "%s", slash != NULL ? slash + 1 : c->path);
    out->n_layer = c->hparams.n_layer;
    out->hot_bytes = m->head->hot_bytes;
    return true;
}

const struct err *mw_model_no_head(const struct mw_model *m)
{
    return m->head == NULL && m->no_head.code != ERR_NONE ? &m->no_head : NULL;
}
