#include "config.h"

#include "engine/hub/find_record.h"

#include <sys/stat.h>

#include <stdlib.h>
#include <string.h>

#include "engine/base/digest.h"
#include "engine/base/folder.h"
#include "engine/base/new_file.h"
#include "engine/base/small_file.h"

#define MAX_RECORDS 4096

/* The file: this header, the records, and the SHA-256 of both as text.  Only the same build on
 * the same machine reads it, so it has the layout of memory. */
struct header {
    char magic[8];
    uint64_t record_bytes, n;
    uint64_t dev, ino, bytes; /* of the program */
    int64_t mtime_ns, ctime_ns;
};

static void make_header(struct header *h, size_t n)
{
    struct stat st;

    memset(h, 0, sizeof *h);
    memcpy(h->magic, "mwfound4", sizeof h->magic);
    h->record_bytes = sizeof(struct record);
    h->n = n;
    if (stat("/proc/self/exe", &st) != 0)
        return;
    h->dev = (uint64_t)st.st_dev;
    h->ino = (uint64_t)st.st_ino;
    h->bytes = (uint64_t)st.st_size;
    h->mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    h->ctime_ns = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec;
}

static bool is_whole(const char *bytes, size_t n)
{
    struct header expected, h;
    char digest[DIGEST_HEX];

    if (n < sizeof h)
        return false;
    memcpy(&h, bytes, sizeof h);
    if (h.n > MAX_RECORDS || n != sizeof h + h.n * sizeof(struct record) + DIGEST_HEX)
        return false;
    make_header(&expected, h.n);
    if (memcmp(&h, &expected, sizeof h) != 0)
        return false;
    digest_sha256(bytes, n - DIGEST_HEX, digest);
    return memcmp(digest, bytes + n - DIGEST_HEX, DIGEST_HEX) == 0;
}

void record_list_read(struct record_list *list, const char *file)
{
    size_t most = sizeof(struct header) + MAX_RECORDS * sizeof(struct record) + DIGEST_HEX, n;
    struct err ignored = ERR_INIT;
    char *bytes = small_file_read_own(file, most, &n, &ignored);

    *list = (struct record_list){ .n = 0 };
    if (bytes != NULL && is_whole(bytes, n)) {
        list->n = (n - sizeof(struct header) - DIGEST_HEX) / sizeof(struct record);
        list->n_room = list->n;
        list->records = malloc(list->n_room * sizeof(struct record));
        if (list->records == NULL)
            list->n = list->n_room = 0;
        else
            memcpy(list->records, bytes + sizeof(struct header),
                   list->n * sizeof(struct record));
    }
    free(bytes);
}

const struct record *record_find(const struct record_list *list, const struct find_id *id,
                                 uint64_t options)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->records[i].options == options &&
            memcmp(&list->records[i].id, id, sizeof *id) == 0)
            return &list->records[i];
    return NULL;
}

void record_add(struct record_list *list, const struct record *r)
{
    struct record *old = (struct record *)(uintptr_t)record_find(list, &r->id, r->options);

    if (old != NULL) { /* made for a budget with other blocks */
        memcpy(old, r, sizeof *r);
        list->n_new++;
        return;
    }
    if (list->n == list->n_room) {
        size_t n = list->n_room == 0 ? 64 : list->n_room * 2;
        struct record *more = realloc(list->records, n * sizeof *more);

        if (more == NULL)
            return;
        list->records = more;
        list->n_room = n;
    }
    memcpy(&list->records[list->n++], r, sizeof *r);
    list->n_new++;
}

/* The oldest records go first, so that the list does not grow with files that are gone. */
void record_list_write(const struct record_list *list, const char *file)
{
    size_t n = list->n < MAX_RECORDS ? list->n : MAX_RECORDS;
    size_t n_bytes = sizeof(struct header) + n * sizeof(struct record);
    struct err ignored = ERR_INIT;
    struct header h;
    struct new_file to;
    char *bytes;

    if (list->n_new == 0)
        return;
    bytes = malloc(n_bytes + DIGEST_HEX);
    if (bytes == NULL)
        return;
    make_header(&h, n);
    memcpy(bytes, &h, sizeof h);
    memcpy(bytes + sizeof h, list->records + (list->n - n), n * sizeof(struct record));
    digest_sha256(bytes, n_bytes, bytes + n_bytes);
    (void)folder_make_parent(file);
    if (new_file_begin(&to, file, true, &ignored) == 0) {
        fwrite(bytes, 1, n_bytes + DIGEST_HEX, to.f);
        (void)new_file_end(&to, &ignored);
    }
    free(bytes);
}

void record_list_free(struct record_list *list)
{
    free(list->records);
}
