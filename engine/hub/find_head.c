/*
 * Finds the draft head of a model, which publishers keep in a file or folder of its own:
 *
 *     gemma.gguf                             *assistant*.gguf or mtp-*.gguf in the same folder
 *     gemma-4-E2B-it/                        gemma-4-E2B-it-assistant/ beside it
 *     models--google--gemma-4-E2B-it/        the same in the hub's cache, any snapshot
 *
 * A file that is not a head of the model is skipped: only opening it shows that.
 */
#include "config.h"

#include <sys/stat.h>

#include <dirent.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/hub/find.h"
#include "engine/memwall.h"

#define MOST_TRIED 8 /* files of a folder that are opened */

bool find_is_head_name(const char *name)
{
    static const char *const patterns[] = { "*assistant*.gguf", "mtp-*.gguf", "*-mtp*.gguf" };

    if (strcasestr(name, "mmproj") != NULL || strcasestr(name, "imatrix") != NULL)
        return false;
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        if (fnmatch(patterns[i], name, FNM_CASEFOLD) == 0)
            return true;
    return false;
}

static bool try_head(struct mw_model *m, const char *path)
{
    struct err ignored = ERR_INIT;

    return mw_model_attach(m, path, &ignored) == 0;
}

/* Try the files in the folder of a GGUF file, in the order of their names. */
static bool try_files(struct mw_model *m, const char *path)
{
    const char *slash = strrchr(path, '/');
    int n = slash != NULL ? (int)(slash - path) : 0;
    char folder[PATH_MAX], file[PATH_MAX];
    struct dirent **list = NULL;
    bool found = false;
    int count, tried = 0;

    if (snprintf(folder, sizeof folder, "%.*s", n > 0 ? n : 1, slash == NULL ? "." : path) >=
        PATH_MAX)
        return false;
    count = scandir(folder, &list, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        if (!found && tried < MOST_TRIED && find_is_head_name(list[i]->d_name) &&
            snprintf(file, sizeof file, "%s/%s", folder, list[i]->d_name) < PATH_MAX &&
            strcmp(list[i]->d_name, slash != NULL ? slash + 1 : path) != 0) {
            tried++;
            found = try_head(m, file);
        }
        free(list[i]);
    }
    free(list);
    return found;
}

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Try the snapshots of a repository in the hub's cache. */
static bool try_snapshots(struct mw_model *m, const char *repository)
{
    char folder[PATH_MAX], path[PATH_MAX];
    struct dirent **list = NULL;
    bool found = false;
    int count;

    if (snprintf(folder, sizeof folder, "%s/snapshots", repository) >= PATH_MAX)
        return false;
    count = scandir(folder, &list, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        if (!found && list[i]->d_name[0] != '.' &&
            snprintf(path, sizeof path, "%s/%s", folder, list[i]->d_name) < PATH_MAX)
            found = try_head(m, path);
        free(list[i]);
    }
    free(list);
    return found;
}

/* Try a folder whose name has "-assistant" after that of the model's folder. */
static bool try_folder(struct mw_model *m, const char *path)
{
    char *folder = realpath(path, NULL), *at;
    char other[PATH_MAX];
    bool found = false;

    if (folder == NULL)
        return false;
    if (!is_folder(folder) && (at = strrchr(folder, '/')) != NULL)
        *at = '\0';
    if (snprintf(other, sizeof other, "%s-assistant", folder) < PATH_MAX && is_folder(other))
        found = try_head(m, other);
    at = strstr(folder, "/snapshots/");
    if (!found && at != NULL) {
        *at = '\0';
        if (snprintf(other, sizeof other, "%s-assistant", folder) < PATH_MAX && is_folder(other))
            found = try_snapshots(m, other);
    }
    free(folder);
    return found;
}

int mw_head_attach(struct mw_model *m, const char *path, const struct mw_options *o,
                   struct err *e)
{
    struct mw_head_info info;

    if (o->draft == MW_DRAFT_FILE)
        return mw_is_head(m, o->draft_file) ? mw_model_attach(m, o->draft_file, e) : 0;
    if ((o->draft != MW_DRAFT_AUTO && o->draft != MW_DRAFT_MTP) || mw_model_head(m, &info))
        return 0;
    if (!(find_ends_in(path, ".gguf") && try_files(m, path)))
        (void)try_folder(m, path);
    return 0;
}
