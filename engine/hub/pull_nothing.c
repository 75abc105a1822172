#include "config.h"

#include "engine/hub/pull_nothing.h"

#include <fnmatch.h>
#include <string.h>

#include "engine/format/foreign_files.h"

#define LOOK_FOR "look for a repository with GGUF or safetensors files of it"

/* Files that every repository may have. */
static const char *const papers[] = { "README*", "LICENSE*", "NOTICE*", "USE_POLICY*",
                                      "*.md",    "*.png",    "*.jpg",   "*.svg" };

static bool is_like(const char *name, const char *pattern)
{
    const char *slash = strrchr(name, '/');

    return fnmatch(pattern, slash != NULL ? slash + 1 : name, FNM_CASEFOLD) == 0;
}

static bool is_paper(const char *name)
{
    for (size_t i = 0; i < sizeof papers / sizeof papers[0]; i++)
        if (is_like(name, papers[i]))
            return true;
    return false;
}

/* Returns the first kind that a file of the list has, or NULL. */
static const struct foreign_kind *kind_of(const struct pull_list *l, const char **file)
{
    const struct foreign_kind *kind;

    for (uint32_t k = 0; (kind = foreign_file_kind(k)) != NULL; k++)
        for (uint32_t i = 0; i < l->n; i++)
            if (foreign_file_is(kind, l->files[i].name)) {
                *file = l->files[i].name;
                return kind;
            }
    return NULL;
}

int pull_nothing(const char *name, const struct pull_list *l, const struct pull_variants *c,
                 struct err *e)
{
    const char *file = "";
    const struct foreign_kind *kind = kind_of(l, &file);
    uint32_t n_other = l->n_unsafe;

    if (c->n_broken > 0)
        return err_set(e, ERR_UNSUPPORTED,
                       "%.80s has no complete model: %.140s; try another --revision", name,
                       c->broken[0]);
    if (c->doubt.code != ERR_NONE) {
        *e = c->doubt;
        return -1;
    }
    if (kind != NULL)
        return err_set(e, ERR_UNSUPPORTED, "%.80s holds %s (%.60s); %s", name, kind->is, file,
                       kind->hint);
    for (uint32_t i = 0; i < l->n; i++)
        n_other += !is_paper(l->files[i].name);
    if (n_other == 0)
        return err_set(e, ERR_UNSUPPORTED,
                       "%.100s has no files of a model; check the name, or try another "
                       "--revision",
                       name);
    return err_set(e, ERR_UNSUPPORTED,
                   "%.100s has neither a complete GGUF model nor a complete safetensors "
                   "snapshot; " LOOK_FOR,
                   name);
}
