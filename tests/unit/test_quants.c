/*
 * Weights are unpacked bit for bit: every set of kernels against blocks of the reference
 * implementation.  Some blocks are in tests/data, all of them in MW_SHARED.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/compute/kernels.h"
#include "tests/lib/kernel_data.h"

struct row {
    char name[96];
    const char *set;
    enum tensor_type type;
    const char *kind; /* "" or ".random" */
    const char *folder;
    bool may_miss; /* only in MW_SHARED */
};

/* Returns the whole file and its size in *n, or NULL. */
static void *read_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *p = NULL;

    if (f == NULL)
        return NULL;
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    p = fenced_new(*n);
    if (fread(p, 1, *n, f) != *n)
        abort();
    fclose(f);
    return p;
}

static void equals_the_reference(void **state)
{
    const struct row *r = *state;
    const struct kernels *set = kernels_by_name(r->set);
    const char *name = tensor_type_info(r->type)->name;
    char path[1024];
    size_t n_block, n_want;

    snprintf(path, sizeof path, "%s/%s%s.blocks", r->folder, name, r->kind);
    void *blocks = read_file(path, &n_block);
    snprintf(path, sizeof path, "%s/%s%s.f32", r->folder, name, r->kind);
    uint32_t *want = read_file(path, &n_want);
    if (blocks == NULL || want == NULL) {
        if (r->may_miss)
            skip();
        fail_msg("%s is missing", path);
    }

    size_t n = n_want / 4;
    uint32_t *got = calloc(n, 4);

    assert_int_equal(tensor_row_bytes(r->type, n), n_block);
    set->dequant(r->type, blocks, (float *)got, n);
    for (size_t i = 0; i < n; i++)
        if (got[i] != want[i])
            fail_msg("value %zu is %08x, not %08x", i, got[i], want[i]);
    free(got);
    fenced_free(blocks, n_block);
    fenced_free(want, n_want);
}

/* MW_SHARED has blocks of quantised weights for some types only. */
static bool lacks_weights(const char *shared, enum tensor_type type)
{
    char path[1024];

    snprintf(path, sizeof path, "%s/%s.blocks", shared, tensor_type_info(type)->name);
    return access(shared, F_OK) == 0 && access(path, F_OK) != 0;
}

int main(void)
{
    static char local[900], shared[900];
    const char *const folders[] = { local, shared };
    static struct row rows[1024];
    static struct CMUnitTest tests[1024];
    const char *srcdir = getenv("MW_SRCDIR");
    const char *mw_shared = getenv("MW_SHARED");
    size_t n = 0;

    snprintf(local, sizeof local, "%s/tests/data/quants", srcdir != NULL ? srcdir : ".");
    snprintf(shared, sizeof shared, "%s/conformance/quants",
             mw_shared != NULL ? mw_shared : "");
    for (const char *const *set = kernels_names(); *set != NULL; set++)
        for (int t = 0; computed_types[t] != TYPE_COUNT; t++)
            for (int f = 0; f < 2; f++)
                for (int k = 0; k < (f == 0 ? 1 : 2); k++) {
                    struct row *r = &rows[n];

                    if (computed_types[t] == TYPE_F32) /* the identity has no file */
                        continue;
                    if (f == 1 && k == 1 && lacks_weights(shared, computed_types[t]))
                        continue;
                    *r = (struct row){ .set = *set,
                                       .type = computed_types[t],
                                       .kind = k == 0 ? ".random" : "",
                                       .folder = folders[f],
                                       .may_miss = f == 1 };
                    snprintf(r->name, sizeof r->name,
                             "%s reads %s%s of %s as the reference does", *set,
                             tensor_type_info(r->type)->name, r->kind,
                             f == 0 ? "tests/data" : "the shared folder");
                    tests[n] =
                        (struct CMUnitTest){ r->name, equals_the_reference, NULL, NULL, r };
                    n++;
                }
    return _cmocka_run_group_tests("quants", tests, n, NULL, NULL);
}
