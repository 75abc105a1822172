/*
 * replay.c - main() for fuzz targets without libFuzzer.
 *
 *     fuzz_NAME [FILE|FOLDER]...
 *
 * Feed each file to the target, then the same bytes cut short and with small changes.  The
 * random generator has a fixed seed, so an old crash stays a test with any compiler, and a new
 * one is found now and then.  Without arguments the folder is tests/fuzz/corpus/NAME.  The
 * bytes
 * are in a block of exactly their size, so a sanitizer sees the first byte read after them.
 */
#include "config.h"

#include <sys/stat.h>

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHANGES          200    /* changed copies of each input */
#define CHANGE_MAX_BYTES 300000 /* larger inputs are fed once as they are */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t random_state = 0x9e3779b97f4a7c15u;

static uint32_t next_random(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33);
}

static void feed(const uint8_t *data, size_t n)
{
    uint8_t *copy = malloc(n > 0 ? n : 1);

    if (copy == NULL)
        exit(1);
    memcpy(copy, data, n);
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
}

static void feed_changed(const uint8_t *data, size_t n)
{
    static const uint8_t edges[] = { 0x00, 0x01, 0x7f, 0x80, 0xff, '"', '{', '[', '\\', '\n' };
    uint8_t *copy = malloc(n);

    if (copy == NULL)
        exit(1);
    for (int i = 0; i < CHANGES; i++) {
        size_t len = n;

        memcpy(copy, data, n);
        for (uint32_t k = 1 + next_random() % 4; k > 0; k--) {
            size_t at = next_random() % n;

            switch (next_random() % 4) {
            case 0: copy[at] ^= (uint8_t)(1u << next_random() % 8); break;
            case 1: copy[at] = edges[next_random() % sizeof edges]; break;
            case 2: len = at; break;
            default: /* eight bytes that may be a size or an offset */
                for (size_t b = at; b < n && b < at + 8; b++)
                    copy[b] = edges[next_random() % 5];
            }
        }
        feed(copy, len);
    }
    free(copy);
}

static void feed_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    size_t n = 0, room = 0;
    int c;

    if (f == NULL) {
        printf("not ok %s: cannot be opened\n", path);
        exit(1);
    }
    while ((c = getc(f)) != EOF) {
        if (n == room) {
            room = room > 0 ? room * 2 : 65536;
            data = realloc(data, room);
            if (data == NULL)
                exit(1);
        }
        data[n++] = (uint8_t)c;
    }
    fclose(f);
    feed(data != NULL ? data : (const uint8_t *)"", n);
    if (n > 0 && n <= CHANGE_MAX_BYTES)
        feed_changed(data, n);
    free(data);
    printf("ok %s\n", strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path);
    /* Print the name first, so that the log shows the input of a crash. */
    fflush(stdout);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int feed_path(const char *path)
{
    struct dirent **list;
    struct stat st;
    int n;

    if (stat(path, &st) != 0) {
        printf("not ok %s: is not there\n", path);
        return 1;
    }
    if (!S_ISDIR(st.st_mode)) {
        feed_file(path);
        return 0;
    }
    n = scandir(path, &list, NULL, by_name);
    for (int i = 0; i < n; i++) {
        char file[4096];

        if (list[i]->d_name[0] != '.' &&
            snprintf(file, sizeof file, "%s/%s", path, list[i]->d_name) < (int)sizeof file)
            feed_file(file);
        free(list[i]);
    }
    if (n >= 0)
        free(list);
    return n < 0;
}

int main(int argc, char **argv)
{
    const char *src = getenv("MW_SRCDIR");
    const char *name = strrchr(argv[0], '/');
    char path[4096];
    int failed = 0;

    if (argc > 1) {
        for (int i = 1; i < argc; i++)
            failed |= feed_path(argv[i]);
        return failed;
    }
    name = name != NULL ? name + 1 : argv[0];
    if (strncmp(name, "fuzz_", 5) == 0)
        name += 5;
    snprintf(path, sizeof path, "%s/tests/fuzz/corpus/%s", src != NULL ? src : ".", name);
    return feed_path(path);
}
