/* A hub's list of files: no name leaves its folder, and every model has files of the list. */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/hub/pull_list.h"
#include "engine/hub/pull_variant.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_file(const struct pull_file *f)
{
    if (!cache_is_file(f->name) || strstr(f->name, "..") == f->name || f->name[0] == '/' ||
        strpbrk(f->name, "\n\033\177") != NULL || f->size > PULL_SIZE_MAX)
        abort();
    if (f->etag[0] != '\0' &&
        (!cache_is_digest(f->etag) || f->is_large != (strlen(f->etag) == 64)))
        abort();
}

/* An index with a file of the list, and one that may be missing. */
static int read_index(void *ctx, uint32_t file, struct shard_list *s, struct err *e)
{
    static const char text[] = "{\"weight_map\":{\"a\":\"model-00001-of-00002.safetensors\","
                               "\"b\":\"x.safetensors\"}}";

    (void)ctx;
    (void)file;
    return snapshot_index_parse(s, text, sizeof text - 1, e);
}

static int is_model(void *ctx, uint32_t file, bool *is, struct err *e)
{
    (void)ctx;
    *is = file % 2 == 0;
    return file % 3 == 0 ? err_set(e, ERR_IO, "no header") : 0;
}

static const struct pull_look look = { read_index, is_model, NULL };

static void check_choices(const struct pull_list *l)
{
    struct pull_variants c = { .n = 0 };
    struct err e = ERR_INIT;
    uint32_t first;

    if (pull_variants_make(&c, l, &look, &e) != 0)
        abort();
    for (uint32_t i = 0; i < c.n; i++) {
        uint64_t bytes = 0;

        for (uint32_t k = 0; k < c.all[i].n_file; k++)
            bytes += l->files[c.all[i].files[k]].size;
        if (c.all[i].n_file == 0 || bytes != c.all[i].bytes ||
            pull_variants_match(&c, l, l->files[c.all[i].files[0]].name, &first) >
                (c.all[i].is_snapshot ? c.n : 1))
            abort();
    }
    pull_variants_free(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pull_list l = { .n = 0 };
    struct err e = ERR_INIT;

    if (pull_list_parse(&l, (const char *)data, size, &e) == 0) {
        for (uint32_t i = 0; i < l.n; i++) {
            check_file(&l.files[i]);
            if (i > 0 && strcasecmp(l.files[i - 1].name, l.files[i].name) >= 0)
                abort();
        }
        check_choices(&l);
    } else if (e.code == ERR_NONE || e.what[0] == '\0') {
        abort();
    }
    pull_list_free(&l);
    return 0;
}
