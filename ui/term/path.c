#include "config.h"

#include "ui/term/path.h"

#include <sys/stat.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/visible.h"

char *path_expand(char *buf, size_t n, const char *path)
{
    const char *home = getenv("HOME");

    if (path[0] == '~' && (path[1] == '/' || path[1] == '\0') && home != NULL)
        snprintf(buf, n, "%s%s", home, path + 1);
    else
        snprintf(buf, n, "%s", path);
    return buf;
}

void path_complete(const char *path, path_add_fn *add, void *list)
{
    const char *slash = strrchr(path, '/'), *begin = slash == NULL ? path : slash + 1;
    char typed[4096], folder[4096], whole[8400];
    struct dirent **names = NULL;
    int n;

    snprintf(typed, sizeof typed, "%.*s", (int)(begin - path), path);
    path_expand(folder, sizeof folder, typed);
    n = scandir(folder[0] == '\0' ? "." : folder, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const char *name = names[i]->d_name;
        struct stat st;

        if (strncmp(name, begin, strlen(begin)) == 0 && (name[0] != '.' || begin[0] == '.') &&
            strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
            visible_all(name, strlen(name))) {
            int is_folder;

            snprintf(whole, sizeof whole, "%s%s", folder, name);
            is_folder = stat(whole, &st) == 0 && S_ISDIR(st.st_mode);
            snprintf(whole, sizeof whole, "%s%s%s", typed, name, is_folder ? "/" : "");
            add(list, whole);
        }
        free(names[i]);
    }
    free(names);
}
