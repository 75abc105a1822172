/*
 * Models found in stores whose small files have the bytes of the input: a manifest of Ollama, a
 * ref of the hub's cache, the list of models that were opened.  The input is also a name that a
 * user types.
 */
#include "config.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/hub/cache_layout.h"
#include "engine/memwall.h"
#include "tests/fuzz/fuzz_file.h"

#define DIGEST "7777777777777777777777777777777777777777777777777777777777777777"
#define COMMIT "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static char root[] = "/tmp/memwall-fuzz-XXXXXX";

static const char *const folders[] = { "blobs",
                                       "manifests",
                                       "manifests/h",
                                       "manifests/h/n",
                                       "manifests/h/n/m",
                                       "models--o--n",
                                       "models--o--n/refs",
                                       "models--o--n/snapshots",
                                       ("models--o--n/snapshots/" COMMIT) };
/* The first three have the input, the others are models. */
static const char *const files[] = { "manifests/h/n/m/t", "models--o--n/refs/main", "recent",
                                     "blobs/sha256-" DIGEST,
                                     "models--o--n/snapshots/" COMMIT "/m-Q4_0.gguf" };
enum { N_FOLDER = sizeof folders / sizeof folders[0], N_FILE = sizeof files / sizeof files[0] };

static const char *below(const char *name)
{
    static char path[300];

    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static void remove_tree(void)
{
    for (int i = 0; i < N_FILE; i++)
        unlink(below(files[i]));
    for (int i = N_FOLDER - 1; i >= 0; i--)
        rmdir(below(folders[i]));
    rmdir(root);
}

static bool make_tree(int fd)
{
    char target[40];

    snprintf(target, sizeof target, "/proc/self/fd/%d", fd);
    if (mkdtemp(root) == NULL)
        return false;
    atexit(remove_tree);
    for (int i = 0; i < N_FOLDER; i++)
        if (mkdir(below(folders[i]), 0700) != 0)
            return false;
    for (int i = 0; i < 3; i++)
        if (symlink(target, below(files[i])) != 0)
            return false;
    for (int i = 3; i < N_FILE; i++)
        close(open(below(files[i]), O_CREAT | O_WRONLY, 0600));
    return true;
}

static void check(const struct mw_models *m, const uint8_t *data, size_t size)
{
    char name[200];
    size_t found[4], n = mw_models_count(m);

    if (n > 42) /* one of each store, 40 lines */
        abort();
    for (size_t i = 0; i < n; i++)
        if (!cache_is_file(mw_models_at(m, i)->name))
            abort();
    snprintf(name, sizeof name, "%.*s", (int)size, (const char *)data);
    if (mw_models_match(m, name, found, 4) > n || mw_models_similar(m, name, found, 4) > n)
        abort();
    for (size_t i = 0; i < n; i++)
        (void)mw_found_has(mw_models_at(m, i), name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static enum { NEW, MADE, FAILED } state;
    struct mw_place place[] = { { MW_STORE_HUB, root }, { MW_STORE_OLLAMA, root } };
    char recent[64];
    struct mw_places places = { place, 2, recent };
    int fd = fuzz_file(data, size);
    struct err e = ERR_INIT;
    struct mw_models *m;

    if (fd < 0)
        return 0;
    if (state == NEW)
        state = make_tree(fd) ? MADE : FAILED;
    if (state == FAILED)
        return 0;
    snprintf(recent, sizeof recent, "%s/recent", root);
    if (mw_models_find(&m, &places, &e) != 0)
        abort();
    check(m, data, size);
    mw_models_free(m);
    return 0;
}
