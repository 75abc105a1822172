#include "config.h"

#include "engine/format/tensor_type.h"

#include <stdio.h>

#define ROW(TYPE, values, bytes, computed)                                                     \
    [TYPE_##TYPE] = {                                                                          \
        .name = #TYPE, .block_elems = values, .block_bytes = bytes, .is_computed = computed    \
    },
#define ROW_FLOAT(TYPE, name, id, bytes)    ROW(TYPE, 1, bytes, true)
#define ROW_32(TYPE, name, id, bytes, ...)  ROW(TYPE, 32, bytes, true)
#define ROW_64(TYPE, name, id, bytes, ...)  ROW(TYPE, 64, bytes, true)
#define ROW_256(TYPE, name, id, bytes, ...) ROW(TYPE, 256, bytes, true)
#define ROW_OTHER(TYPE, id, values, bytes)  ROW(TYPE, values, bytes, false)

static const struct tensor_type_info types[TYPE_COUNT] = { FLOAT_TYPES(ROW_FLOAT) TYPES_OF_32(
    ROW_32) TYPES_OF_64(ROW_64) TYPES_OF_256(ROW_256) OTHER_TYPES(ROW_OTHER) };

const struct tensor_type_info *tensor_type_info(uint32_t id)
{
    return id < TYPE_COUNT ? &types[id] : NULL;
}

uint64_t tensor_row_bytes(enum tensor_type type, uint64_t n)
{
    const struct tensor_type_info *t = &types[type];

    return n / t->block_elems * t->block_bytes;
}

void tensor_types_computed(char *buf, size_t n)
{
    size_t used = 0;

    buf[0] = '\0';
    for (uint32_t i = 0; i < TYPE_COUNT && used < n; i++)
        if (types[i].is_computed)
            used += (size_t)snprintf(buf + used, n - used, "%s%s", used > 0 ? ", " : "",
                                     types[i].name);
}
