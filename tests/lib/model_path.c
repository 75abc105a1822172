#include "config.h"

#include "tests/lib/model_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char *model_path(const char *name)
{
    static const char *const folders[] = { "models", "families", "families2" };
    static char path[4352];
    const char *src = getenv("MW_SRCDIR"), *shared = getenv("MW_SHARED");

    snprintf(path, sizeof path, "%s/tests/data/models/%s", src != NULL ? src : ".", name);
    if (access(path, R_OK) == 0)
        return path;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(path, sizeof path, "%s/conformance/%s/%s", shared != NULL ? shared : "",
                 folders[i], name);
        if (access(path, R_OK) == 0)
            return path;
    }
    return NULL;
}

void *model_read(const char *name, size_t *len)
{
    const char *path = model_path(name);
    FILE *f = path != NULL ? fopen(path, "rb") : NULL;
    void *data = NULL;
    long size;

    if (f == NULL)
        return NULL;
    if (fseek(f, 0, SEEK_END) == 0 && (size = ftell(f)) >= 0) {
        rewind(f);
        data = calloc(1, (size_t)size + 1);
        *len = (size_t)size;
        if (data != NULL && fread(data, 1, *len, f) != *len) {
            free(data);
            data = NULL;
        }
    }
    fclose(f);
    return data;
}
