/* See draft_model.h: which models can draft for another one. */
#include "config.h"

#include "engine/session/draft_model.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct draft_list {
    struct draft_list *next;
    char *path;
    struct mw_model *model;
};

/* --- the same vocabulary --- */

/* A hash of each token; 0: the model does not use it. */
struct token_hashes {
    uint32_t *hash; /* [n] */
    uint32_t n;
};

static int hash_token(void *ctx, uint32_t id, const char *text, size_t len, float score,
                      enum token_kind kind, bool lstrip, bool rstrip, struct err *e)
{
    struct token_hashes *h = ctx;
    uint32_t x = 2166136261u;

    (void)score;
    (void)lstrip;
    (void)rstrip;
    (void)e;
    for (size_t i = 0; i < len; i++)
        x = (x ^ (unsigned char)text[i]) * 16777619u;
    if (id < h->n)
        h->hash[id] = kind == TOKEN_UNUSED ? 0 : x | 1;
    return 0;
}

static int hash_vocabulary(const struct mw_model *m, struct token_hashes *h, struct err *e)
{
    const struct vocab_sink sink = { .ctx = h, .token = hash_token };
    struct vocab_info info;

    *h = (struct token_hashes){ .n = m->desc->n_vocab };
    if (!m->has_vocab) {
        *e = m->no_vocab;
        return -1;
    }
    h->hash = calloc(h->n, sizeof *h->hash);
    if (h->hash == NULL)
        return err_memory(e, "hashes of %u tokens", h->n);
    return vocab_read(m->catalogue, &info, &sink, e);
}

static uint32_t hash_at(const struct token_hashes *h, uint32_t id)
{
    return id < h->n ? h->hash[id] : 0;
}

/* Where one vocabulary ends, the other one may go on with tokens that it does not use: publishers
 * fill up the rows of a matrix to a round number, which differs by the size of the model. */
static int compare_hashes(const struct token_hashes *a, const struct token_hashes *b,
                          struct err *e)
{
    for (uint32_t i = 0; i < a->n || i < b->n; i++) {
        if (hash_at(a, i) == hash_at(b, i))
            continue;
        if (i < a->n && i < b->n)
            return err_set(e, ERR_UNSUPPORTED,
                           "cannot draft for this model: token %u is another one in its "
                           "vocabulary",
                           i);
        return err_set(e, ERR_UNSUPPORTED,
                       "cannot draft for this model: its vocabulary has %u tokens, not %u, and "
                       "token %u is in use",
                       b->n, a->n, i);
    }
    return 0;
}

static int compare_vocabularies(const struct mw_model *m, const struct mw_model *draft,
                                struct err *e)
{
    struct token_hashes a = { 0 }, b = { 0 };
    int rc = hash_vocabulary(m, &a, e) != 0 || hash_vocabulary(draft, &b, e) != 0 ||
                     compare_hashes(&a, &b, e) != 0
                 ? -1
                 : 0;

    free(a.hash);
    free(b.hash);
    return rc;
}

/* --- opening --- */

static int check(const struct mw_model *m, const struct mw_model *draft, struct err *e)
{
    if (recurrent_bytes(&draft->desc->recurrent) > 0)
        return err_set(e, ERR_UNSUPPORTED,
                       "cannot draft: its recurrent state cannot go back after a wrong draft");
    if (draft->desc->hp->n_expert > 0)
        return err_set(e, ERR_UNSUPPORTED, "cannot draft: it is a mixture of experts");
    return compare_vocabularies(m, draft, e);
}

static int open_new(struct draft_list **out, struct mw_model *m, const char *path, struct err *e)
{
    struct draft_list *l = calloc(1, sizeof *l);

    *out = NULL;
    if (l == NULL || (l->path = strdup(path)) == NULL) {
        free(l);
        return err_memory(e, "a draft model");
    }
    if (model_open_headers(&l->model, path, 0, 0, e) != 0) {
        free(l->path);
        free(l);
        return -1;
    }
    if (check(m, l->model, e) != 0) {
        err_at(e, path, ERR_NO_OFFSET, NULL);
        mw_model_close(l->model);
        free(l->path);
        free(l);
        return -1;
    }
    *out = l;
    return 0;
}

bool draft_model_is_same(const struct mw_model *m, const char *path)
{
    const struct catalogue *c = m->catalogue;
    struct stat other, own;

    if (stat(path, &other) != 0)
        return false;
    for (uint32_t i = 0; i < c->n_file; i++)
        if (fstat(c->files[i].fd, &own) == 0 && own.st_dev == other.st_dev &&
            own.st_ino == other.st_ino)
            return true;
    return false;
}

static struct draft_list *find_open(const struct mw_model *m, const char *path)
{
    struct draft_list *l = m->drafts;

    while (l != NULL && strcmp(l->path, path) != 0)
        l = l->next;
    return l;
}

bool draft_model_is_open(const struct mw_model *m, const char *path)
{
    return find_open(m, path) != NULL;
}

int draft_model_open(struct mw_model **out, struct mw_model *m, const char *path, struct err *e)
{
    struct draft_list *l;
    int rc = 0;

    *out = NULL;
    pthread_mutex_lock(&m->lock);
    l = find_open(m, path);
    if (l == NULL && (rc = open_new(&l, m, path, e)) == 0) {
        l->next = m->drafts;
        m->drafts = l;
    }
    if (rc == 0)
        *out = l->model;
    pthread_mutex_unlock(&m->lock);
    return rc;
}

uint64_t draft_models_bytes(struct mw_model *m)
{
    uint64_t bytes = 0;

    pthread_mutex_lock(&m->lock);
    for (const struct draft_list *l = m->drafts; l != NULL; l = l->next)
        bytes += l->model->header.used;
    pthread_mutex_unlock(&m->lock);
    return bytes;
}

void draft_models_close(struct mw_model *m)
{
    while (m->drafts != NULL) {
        struct draft_list *next = m->drafts->next;

        mw_model_close(m->drafts->model);
        free(m->drafts->path);
        free(m->drafts);
        m->drafts = next;
    }
}
