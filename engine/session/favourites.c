/* See favourites.h. */
#include "config.h"

#include "engine/session/favourites.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/folder.h"
#include "engine/base/keyed_hash.h"
#include "engine/base/new_file.h"
#include "engine/base/small_file.h"
#include "engine/limits/store.h"

/* The number of files in a folder.  A model that has the place of another one replaces it. */
#define N_PLACE 256

/* Change the number with the meaning of the bytes. */
#define MAGIC "memwall favourites 1"

#define EXPERTS_MOST (1u << 20)

/* The most tokens that earlier sessions count for, so that new habits are learned. */
#define TOKENS_MOST 2048

struct head {
    char magic[24];
    char model[128];
    uint32_t n, n_token; /* experts; tokens that chose them */
    uint64_t sum;        /* of the bytes after it */
};

static uint64_t sum_of(const void *bytes, size_t n)
{
    static const struct hash_key key = { 0x6d656d77616c6c21u, 0x6661766f75726974u };

    return keyed_hash(&key, bytes, n);
}

static bool path_of(const char *folder, const char *model, char *path, size_t n)
{
    int len = snprintf(path, n, "%s/experts.%u", folder,
                       (unsigned)(sum_of(model, strlen(model)) % N_PLACE));

    return model[0] != '\0' && len > 0 && (size_t)len < n;
}

/* Returns the bytes after the head, malloc'ed with it at *head; NULL: none fit. */
static char *read_file(const char *path, const char *model, uint32_t n, struct head *head)
{
    struct err ignored = ERR_INIT;
    size_t len = 0;
    char *text = small_file_read_own(path, sizeof *head + EXPERTS_MOST, &len, &ignored);

    if (text != NULL && len == sizeof *head + n) {
        memcpy(head, text, sizeof *head);
        if (memcmp(head->magic, MAGIC, sizeof MAGIC) == 0 &&
            strncmp(head->model, model, sizeof head->model) == 0 && head->n == n &&
            head->sum == sum_of(text + sizeof *head, n))
            return text;
    }
    free(text);
    return NULL;
}

bool favourites_read(const char *folder, const char *model, uint32_t n, uint8_t *use)
{
    struct head head;
    char path[4096], *text;

    if (n == 0 || n > EXPERTS_MOST || !path_of(folder, model, path, sizeof path))
        return false;
    text = read_file(path, model, n, &head);
    if (text == NULL)
        return false;
    memcpy(use, text + sizeof head, n);
    free(text);
    return true;
}

static void write_file(const char *path, const struct head *head, const uint8_t *use)
{
    struct err ignored = ERR_INIT;
    struct new_file file;

    if (folder_make_parent(path) != 0 || new_file_begin(&file, path, true, &ignored) != 0)
        return;
    (void)fwrite(head, sizeof *head, 1, file.f); /* new_file_end() finds the errors */
    (void)fwrite(use, 1, head->n, file.f);
    (void)new_file_end(&file, &ignored);
}

void favourites_keep(const char *folder, const char *model, uint32_t n, const uint8_t *use,
                     uint32_t n_token)
{
    struct head head = { .magic = MAGIC, .n = n, .n_token = n_token }, old;
    char path[4096], *text;
    uint8_t *mean = n > 0 && n <= EXPERTS_MOST ? malloc(n) : NULL;

    if (mean == NULL || n_token == 0 || !path_of(folder, model, path, sizeof path)) {
        free(mean);
        return;
    }
    memcpy(mean, use, n);
    text = read_file(path, model, n, &old);
    for (uint32_t i = 0; text != NULL && i < n; i++) {
        double was = (unsigned char)text[sizeof old + i];

        mean[i] = (uint8_t)((was * old.n_token + (double)use[i] * n_token) /
                                ((double)old.n_token + n_token) +
                            0.5);
    }
    if (text != NULL)
        head.n_token += old.n_token;
    if (head.n_token > TOKENS_MOST)
        head.n_token = TOKENS_MOST;
    free(text);
    snprintf(head.model, sizeof head.model, "%s", model);
    head.sum = sum_of(mean, n);
    write_file(path, &head, mean);
    free(mean);
}
