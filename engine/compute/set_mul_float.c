/* Rows as floats, and their products: of all types, and packed. */
#include "config.h"

#include "engine/compute/set_mul_float.h"
#include "engine/compute/set_packed.h"

/* ---- rows ---- */

#define DEQUANT_OF(decoder, TYPE, name)                                                        \
    static NOINLINE void dequant_##name(const void *src, float *dst, size_t n)                 \
    {                                                                                          \
        decoder(TYPE_##TYPE, src, dst, n);                                                     \
    }
#define DEQUANT_32(TYPE, name, ...)    DEQUANT_OF(dequant_blocks, TYPE, name)
#define DEQUANT_64(TYPE, name, ...)    DEQUANT_OF(dequant_parts, TYPE, name)
#define DEQUANT_256(TYPE, name, ...)   DEQUANT_OF(dequant_spans, TYPE, name)
#define DEQUANT_FLOAT(TYPE, name, ...) DEQUANT_OF(widen_floats, TYPE, name)
TYPES_OF_32(DEQUANT_32)
TYPES_OF_64(DEQUANT_64)
TYPES_OF_256(DEQUANT_256)
FLOAT_TYPES(DEQUANT_FLOAT)

#define CALL_DEQUANT(TYPE, name, ...)                                                          \
    case TYPE_##TYPE: dequant_##name(src, dst, n); return;

void set_dequant(enum tensor_type type, const void *src, float *dst, size_t n)
{
    switch (type) {
        FLOAT_TYPES(CALL_DEQUANT)
        BLOCK_TYPES(CALL_DEQUANT)
        OTHER_TYPES(CASE_OF)
        break;
    }
    assert(false && "a type without kernels is refused when a model is opened");
}

/* ---- products ---- */

#define MUL_FLOATS(TYPE, ...)                                                                  \
    case TYPE_##TYPE: mul_floats(TYPE_##TYPE, p); return;

static void mul_columns(enum tensor_type type, const struct product *p)
{
    switch (type) {
        FLOAT_TYPES(MUL_FLOATS)
        BLOCK_TYPES(CASE_OF)
        mul_blocks(type, p);
        return;
        OTHER_TYPES(CASE_OF)
        break;
    }
    assert(false && "a type without kernels is refused when a model is opened");
}

static struct product product_of(const struct matmul *m)
{
    return (struct product){ .w = m->w,
                             .w_stride = (size_t)tensor_row_bytes(m->type, m->n_k),
                             .n_row = m->n_row,
                             .n_k = m->n_k,
                             .x = m->x,
                             .ldx = m->x_stride / sizeof(float),
                             .n_col = m->n_col,
                             .y = m->y,
                             .ldy = m->ldy,
                             .scales = m->scales };
}

void set_mul_float(const struct matmul *m)
{
    struct product p = product_of(m);

    mul_columns(m->type, &p);
}

void set_mul_packed(const struct packed_block *b, size_t first, const struct matmul *m)
{
    struct product p = product_of(m);

    p.packed = b;
    p.first = first;
    if (p.n_col <= PACKED_COLS)
        mul_packed_streams(&p);
    else
        mul_blocks(TYPE_BF16, &p);
}
