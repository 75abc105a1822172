#include "config.h"

#include "engine/format/gguf_check.h"

#include <stddef.h>

#define MAX_DIM      ((uint64_t)1 << 40)
#define MAX_ELEMENTS ((uint64_t)1 << 62)

int gguf_check_dims(uint32_t n_dims, const uint64_t ne[4], struct err *e)
{
    uint64_t product = 1;

    for (uint32_t i = 0; i < n_dims; i++) {
        if (ne[i] < 1 || ne[i] > MAX_DIM)
            return err_set(e, ERR_FORMAT, "dimension %u is %llu; 1 to 2^40 are read", i,
                           (unsigned long long)ne[i]);
        if (__builtin_mul_overflow(product, ne[i], &product) || product > MAX_ELEMENTS)
            return err_set(e, ERR_FORMAT, "%llu x %llu x %llu x %llu values are too many",
                           (unsigned long long)ne[0], (unsigned long long)ne[1],
                           (unsigned long long)ne[2], (unsigned long long)ne[3]);
    }
    return 0;
}

/* Who else writes ids that ggml does not know. */
static const char *foreign_type(uint32_t id)
{
    return id >= 97 && id <= 399 ? " (a type of ik_llama.cpp)" : "";
}

int gguf_check_type(uint32_t type, const uint64_t ne[4], uint64_t *bytes, struct err *e)
{
    const struct tensor_type_info *t = tensor_type_info(type);
    uint64_t rows = ne[1] * ne[2] * ne[3];
    char list[TYPES_COMPUTED_BYTES];

    if (t == NULL) {
        tensor_types_computed(list, sizeof list);
        return err_set(e, ERR_UNSUPPORTED,
                       "weight type %u%s is not supported; memwall runs: %s", type,
                       foreign_type(type), list);
    }
    if (t->block_elems == 0)
        return err_set(e, ERR_UNSUPPORTED,
                       "weight type %u (%s) is no longer written by anyone and not read", type,
                       t->name != NULL ? t->name : "removed");
    if (ne[0] % t->block_elems != 0)
        return err_set(e, ERR_FORMAT, "row length %llu is not a multiple of %u (%s)",
                       (unsigned long long)ne[0], t->block_elems, t->name);
    if (__builtin_mul_overflow(ne[0] / t->block_elems * t->block_bytes, rows, bytes))
        return err_set(e, ERR_FORMAT, "its size in bytes is too large");
    return 0;
}
