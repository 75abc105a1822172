/*
 * fuzz_folder.h - a folder of a snapshot in which one file has the bytes of the input: a link
 * to the descriptor of fuzz_file.h, made once.
 */
#ifndef MEMWALL_TESTS_FUZZ_FUZZ_FOLDER_H
#define MEMWALL_TESTS_FUZZ_FUZZ_FOLDER_H

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "engine/format/catalogue.h"
#include "tests/fuzz/fuzz_file.h"

static char fuzz_folder_path[] = "/tmp/memwall-fuzz-XXXXXX";
static const char *fuzz_folder_name;

static void fuzz_folder_remove(void)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", fuzz_folder_path, fuzz_folder_name);
    unlink(path);
    rmdir(fuzz_folder_path);
}

/* Returns false if the system has no descriptor or folder. */
static inline bool fuzz_folder(struct catalogue *c, const char *name, const uint8_t *data,
                               size_t size)
{
    static int dir = -1;
    int fd = fuzz_file(data, size);
    char target[40];

    if (fd < 0)
        return false;
    if (dir < 0) {
        snprintf(target, sizeof target, "/proc/self/fd/%d", fd);
        fuzz_folder_name = name;
        if (mkdtemp(fuzz_folder_path) == NULL)
            return false;
        dir = open(fuzz_folder_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0 || symlinkat(target, dir, name) != 0)
            return false;
        atexit(fuzz_folder_remove);
    }
    *c = (struct catalogue){ .kind = CATALOGUE_SNAPSHOT,
                             .path = fuzz_folder_path,
                             .dir_fd = dir };
    return true;
}

#endif
