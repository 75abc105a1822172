/*
 * model_mirror.h - the copy of a model on another disk (stream/mirror.h), which is opened and
 * compared once.
 */
#ifndef MEMWALL_ENGINE_SESSION_MODEL_MIRROR_H
#define MEMWALL_ENGINE_SESSION_MODEL_MIRROR_H

#include "engine/format/catalogue.h"
#include "engine/memwall.h"

struct model_mirror {
    char *path;                /* NULL: none */
    struct model_file *files;  /* [n_file] of the model */
    struct model_mirror *next;
};

/* Returns the files of the copy at path, or NULL with *e, which says why it is not one.  They stay
 * open until the model is closed, and a copy that changes later is still returned: the stream finds
 * out, and other options can be changed meanwhile.  Any thread. */
const struct model_file *model_mirror(struct mw_model *m, const char *path, struct err *e);
void model_mirror_close(struct mw_model *m);

#endif
