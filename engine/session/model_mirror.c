#include "config.h"

#include "engine/session/model_mirror.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/machine/probe.h"
#include "engine/session/model.h"
#include "engine/session/model_limits.h"
#include "engine/stream/mirror.h"

static void free_one(struct model_mirror *q, uint32_t n_file)
{
    mirror_close(q->files, n_file);
    free(q->path);
    free(q);
}

void model_mirror_close(struct mw_model *m)
{
    while (m->mirrors != NULL) {
        struct model_mirror *q = m->mirrors;

        m->mirrors = q->next;
        free_one(q, m->catalogue->n_file);
    }
}

/* Open and compare a copy, and add it to the list.  Called with the lock. */
static struct model_mirror *open_one(struct mw_model *m, const char *path, struct err *e)
{
    struct model_mirror *q = calloc(1, sizeof *q);

    if (q == NULL || (q->path = strdup(path)) == NULL) {
        free(q);
        err_memory(e, "a copy of the model");
        return NULL;
    }
    if (mirror_open(&q->files, m->catalogue, path, e) != 0) {
        free_one(q, 0);
        return NULL;
    }
    q->next = m->mirrors;
    m->mirrors = q;
    return q;
}

const struct model_file *model_mirror(struct mw_model *m, const char *path, struct err *e)
{
    struct model_mirror *q;

    if (model_needs_file(m, e) != 0)
        return NULL;
    pthread_mutex_lock(&m->lock);
    for (q = m->mirrors; q != NULL; q = q->next)
        if (strcmp(q->path, path) == 0)
            break;
    if (q == NULL)
        q = open_one(m, path, e);
    pthread_mutex_unlock(&m->lock);
    return q != NULL ? q->files : NULL;
}

/* Returns the largest file of the copy, or NULL. */
static const struct model_file *largest(struct mw_model *m, const char *path, struct err *e)
{
    const struct model_file *files = model_mirror(m, path, e);
    uint32_t best = 0;

    for (uint32_t i = 1; files != NULL && i < m->catalogue->n_file; i++)
        if (files[i].size > files[best].size)
            best = i;
    return files != NULL ? &files[best] : NULL;
}

int mw_mirror_measure(struct mw_model *m, const struct mw_options *o, double seconds,
                      double *bytes_s, struct err *e)
{
    const struct probe_options p = { .seconds = seconds, .buffer_bytes = o->memory_bytes / 4 };
    const struct model_file *f = largest(m, o->mirror, e);
    struct probe_rate r;

    *bytes_s = 0;
    if (f == NULL)
        return -1;
    if (limits_probe(m, o, f->fd, &p, &r, e) != 0)
        return -1;
    *bytes_s = r.is_cached ? 0 : r.bytes_s;
    return 0;
}

const char *mw_mirror_notice(struct mw_model *m, const struct mw_options *o)
{
    struct err ignored = ERR_INIT;
    const struct model_file *files =
        o->mirror != NULL ? model_mirror(m, o->mirror, &ignored) : NULL;

    if (files == NULL || files[0].dev != m->catalogue->files[0].dev)
        return "";
    return files[0].ino == m->catalogue->files[0].ino
               ? "the mirror is the model's own file, so reading from both gains nothing"
               : "the mirror is on the disk of the model, so reading from both gains nothing";
}
