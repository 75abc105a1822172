/* See known.h. */
#include "config.h"

#include "src/known.h"

#include <sys/stat.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/near.h"
#include "src/paths.h"

#define DATA_FILE "known-models.json"

int known_list(struct mw_known **out, struct err *e)
{
    char path[PATH_MAX];

    *out = NULL;
    if (paths_share(DATA_FILE, path, sizeof path))
        return mw_known_open(out, path, e);
    err_set(e, ERR_IO, "the file with known models is not installed");
    return err_at(e, path, ERR_NO_OFFSET, NULL);
}

/* The name without the organisation and the type is compared. */
static int refuse_name(const struct mw_known *list, const char *name, struct err *e)
{
    const char *slash = strrchr(name, '/');
    struct near near = { .word = slash != NULL ? slash + 1 : name };

    near.len = strcspn(near.word, ":");
    for (size_t i = 0; i < mw_known_count(list); i++) {
        struct mw_known_info known;

        mw_known_at(list, i, &known);
        near_try(&near, known.name);
    }
    if (near.name == NULL)
        return err_set(e, ERR_IO, "\"%.100s\" is not a known model", name);
    return err_set(e, ERR_ARGUMENT,
                   "\"%.100s\" is neither on this machine nor a known model; did you mean "
                   "\"%s\"?",
                   name, near.name);
}

static int open_model(struct mw_model **out, const struct mw_known *list, const char *name,
                      struct err *e)
{
    const char *label;
    char types[120];
    size_t i;

    if (mw_known_find(list, name, &i, &label))
        return mw_model_open_known(out, list, i, label, e);
    if (i == mw_known_count(list))
        return refuse_name(list, name, e);
    mw_known_types(types, sizeof types);
    return err_set(e, ERR_ARGUMENT, "the type of \"%.100s\" is not one of %s", name, types);
}

int known_open_model(struct mw_model **out, const char *name, struct err *e)
{
    struct mw_known *list;
    int rc;

    *out = NULL;
    if (known_list(&list, e) != 0)
        return -1;
    rc = open_model(out, list, name, e);
    mw_known_close(list);
    return rc;
}

void known_folder(char *buf, size_t n)
{
    struct err ignored = ERR_INIT;
    struct paths paths;
    struct stat st;

    if (paths_find(&paths, &ignored) != 0 || stat(paths.data_dir, &st) != 0)
        snprintf(buf, n, ".");
    else
        snprintf(buf, n, "%s", paths.data_dir);
}
