#include "config.h"

#include "engine/format/snapshot_index.h"

#include <stdlib.h>
#include <string.h>

#include "engine/format/json.h"

#define MAX_SHARD_NAME 255
#define MAX_INDEX      ((uint64_t)64 << 20)
#define NAMES_BYTES    (SHARD_MAX * sizeof(const char *))

/* State kept between events. */
struct reading {
    struct shard_list *list;
    bool in_map, has_map;
};

static int shard_fail(struct err *e)
{
    return err_at(e, NULL, ERR_NO_OFFSET, "weight_map");
}

static bool is_safetensors(const char *name)
{
    static const char tail[] = ".safetensors";
    size_t n = strlen(name), m = sizeof tail - 1;

    return n > m && name[0] != '.' && strcmp(name + n - m, tail) == 0;
}

static int make_names(struct shard_list *s, struct err *e)
{
    if (header_room_take(s->pool.room, NAMES_BYTES, e) != 0)
        return -1;
    s->names = calloc(1, NAMES_BYTES);
    if (s->names != NULL)
        return 0;
    header_room_give(s->pool.room, NAMES_BYTES);
    return err_memory(e, "the names of files");
}

/* Adds a plain file name that ends in .safetensors and does not leave the folder. */
static int add_shard(struct shard_list *s, const char *text, size_t len, struct err *e)
{
    char name[MAX_SHARD_NAME + 1];

    if (len == 0 || len > MAX_SHARD_NAME || memchr(text, '\0', len) != NULL) {
        err_set(e, ERR_FORMAT, "a file's name is empty, contains a NUL or has over %d bytes",
                MAX_SHARD_NAME);
        return shard_fail(e);
    }
    memcpy(name, text, len);
    name[len] = '\0';
    if (name_index_find(&s->index, name) >= 0)
        return 0;
    for (size_t i = 0; i < len; i++) {
        if (name[i] != '/' && name[i] != '\\' && (unsigned char)name[i] >= 0x20)
            continue;
        err_set(e, ERR_FORMAT, "\"%.200s\" is not a file of this folder", name);
        return shard_fail(e);
    }
    if (!is_safetensors(name)) {
        err_set(e, ERR_FORMAT, "\"%.200s\" is not the name of a safetensors file", name);
        return shard_fail(e);
    }
    if (s->n == SHARD_MAX) {
        err_set(e, ERR_FORMAT, "more than %d files", SHARD_MAX);
        return shard_fail(e);
    }
    if (s->names == NULL && make_names(s, e) != 0)
        return -1;
    s->names[s->n] = name_pool_copy(&s->pool, name, len, e);
    if (s->names[s->n] == NULL || name_index_add(&s->index, s->names[s->n], s->n, e) != 0)
        return -1;
    s->n++;
    return 0;
}

static int on_index(void *ctx, enum json_event event, const char *text, size_t len,
                    unsigned depth, struct err *e)
{
    struct reading *s = ctx;

    if (depth == 1 && event == JSON_KEY) {
        s->in_map = len == 10 && memcmp(text, "weight_map", 10) == 0;
        return 0;
    }
    if (!s->in_map || depth == 0)
        return 0;
    if (depth == 1 && event == JSON_OBJECT) {
        s->has_map = true;
        return 0;
    }
    if (depth == 1 && event == JSON_OBJECT_END)
        return 0;
    if (depth == 2 && event == JSON_KEY)
        return 0;
    if (depth == 2 && event == JSON_STRING)
        return add_shard(s->list, text, len, e);
    err_set(e, ERR_FORMAT, "is not an object of file names");
    return shard_fail(e);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Check what was read, and sort it. */
static int end_index(const struct reading *r, struct err *e)
{
    struct shard_list *s = r->list;

    if (!r->has_map || s->n == 0) {
        err_set(e, ERR_FORMAT, "names no files");
        return shard_fail(e);
    }
    qsort(s->names, s->n, sizeof s->names[0], by_name);
    return 0;
}

int snapshot_index_read(struct shard_list *s, int fd, uint64_t size, struct err *e)
{
    struct reading r = { .list = s };

    if (size > MAX_INDEX)
        return err_set(e, ERR_FORMAT, "an index of %llu bytes is too long",
                       (unsigned long long)size);
    return json_stream(fd, size, 0, size, on_index, &r, e) == 0 ? end_index(&r, e) : -1;
}

int snapshot_index_parse(struct shard_list *s, const char *text, size_t len, struct err *e)
{
    struct reading r = { .list = s };

    return json_stream_text(text, len, on_index, &r, e) == 0 ? end_index(&r, e) : -1;
}

int snapshot_weights(struct shard_list *s, const struct snapshot_place *p, struct err *e)
{
    if (p->has(p->ctx, SNAPSHOT_SINGLE))
        return add_shard(s, SNAPSHOT_SINGLE, strlen(SNAPSHOT_SINGLE), e);
    return p->has(p->ctx, SNAPSHOT_INDEX) ? p->read_index(p->ctx, s, e) : 0;
}

void shard_list_free(struct shard_list *s)
{
    if (s->names != NULL)
        header_room_give(s->pool.room, NAMES_BYTES);
    free(s->names);
    name_index_free(&s->index);
    name_pool_free(&s->pool);
    *s = (struct shard_list){ 0 };
}
