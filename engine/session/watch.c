/* Start the watcher of telemetry/ for the files of a model. */
#include "config.h"

#include "engine/telemetry/watch.h"

#include <stdlib.h>

#include "engine/session/model.h"

int mw_watch_new(struct mw_watch **out, const struct mw_model *m, struct err *e)
{
    const struct catalogue *c = m->catalogue;
    struct watch_file *files = calloc((size_t)c->n_file + 1, sizeof *files);
    int result;

    *out = NULL;
    if (files == NULL)
        return err_memory(e, "watching the model\'s files");
    for (uint32_t i = 0; i < c->n_file; i++)
        files[i] = (struct watch_file){ c->files[i].fd, c->files[i].size };
    result = watch_start(out, "", files, c->n_file, e);
    free(files);
    return result;
}
