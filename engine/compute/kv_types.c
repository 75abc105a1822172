#include "config.h"

#include "engine/compute/kv_types.h"

#include <math.h>
#include <string.h>

#include "engine/compute/half.h"

/* A scale below this has no finite inverse; such a block is stored as zeros. */
#define SMALLEST_SCALE 1e-37f

const char *kv_type_name(enum kv_type t)
{
    static const char *const names[KV_TYPE_COUNT] = { "f32", "f16", "q8_0", "q4_0" };

    return t >= 0 && t < KV_TYPE_COUNT ? names[t] : "?";
}

int kv_type_parse(const char *name)
{
    for (int t = 0; t < KV_TYPE_COUNT; t++)
        if (strcmp(name, kv_type_name((enum kv_type)t)) == 0)
            return t;
    return -1;
}

size_t kv_row_bytes(enum kv_type t, size_t n)
{
    switch (t) {
    case KV_F32: return 4 * n;
    case KV_F16: return 2 * n;
    case KV_Q8_0: return (n + 31) / 32 * sizeof(struct block_q8_0);
    case KV_Q4_0: return (n + 31) / 32 * sizeof(struct block_q4_0);
    case KV_TYPE_COUNT: break;
    }
    return 0;
}

static float inverse(float d)
{
    return fabsf(d) >= SMALLEST_SCALE ? 1 / d : 0;
}

/* Returns d, or NaN if a value is not finite, so that loading the block gives NaN as well. */
static float scale_of(const float *x, float d)
{
    for (int j = 0; j < 32; j++)
        if (!isfinite(x[j]))
            return NAN;
    return d;
}

static void store_q8_0(const float *x, uint8_t *p)
{
    float amax = 0;

    for (int j = 0; j < 32; j++)
        amax = fmaxf(amax, fabsf(x[j]));

    float d = scale_of(x, amax / 127);
    float id = inverse(d);

    store_u16(p, f16_of_f32(d));
    for (int j = 0; j < 32; j++)
        p[2 + j] = (uint8_t)(int8_t)roundf(fminf(fmaxf(x[j] * id, -127), 127));
}

static int q4_0_quant(float v)
{
    return (int)fminf(fmaxf(v + 8.5f, 0), 15);
}

static void store_q4_0(const float *x, uint8_t *p)
{
    float smax = 0; /* the value with the largest magnitude */

    for (int j = 0; j < 32; j++)
        if (fabsf(x[j]) > fabsf(smax))
            smax = x[j];

    float d = scale_of(x, smax / -8);
    float id = inverse(d);

    store_u16(p, f16_of_f32(d));
    for (int j = 0; j < 16; j++)
        p[2 + j] = (uint8_t)(q4_0_quant(x[j] * id) | q4_0_quant(x[16 + j] * id) << 4);
}

void kv_row_store(enum kv_type type, const float *src, size_t n, void *dst)
{
    uint8_t *p = dst;

    switch (type) {
    case KV_F32: memcpy(p, src, n * sizeof *src); return;
    case KV_F16:
        for (size_t i = 0; i < n; i++)
            store_u16(p + 2 * i, f16_of_f32(src[i]));
        return;
    case KV_Q8_0:
    case KV_Q4_0:
        for (size_t i = 0; i < n; i += 32) {
            float x[32] = { 0 };

            memcpy(x, src + i, (n - i < 32 ? n - i : 32) * sizeof *x);
            if (type == KV_Q8_0)
                store_q8_0(x, p + i / 32 * 34);
            else
                store_q4_0(x, p + i / 32 * 18);
        }
        return;
    case KV_TYPE_COUNT: return;
    }
}

void kv_row_load(enum kv_type type, const void *row, size_t first, float *dst, size_t n)
{
    const uint8_t *p = row;

    switch (type) {
    case KV_F32: memcpy(dst, p + 4 * first, n * sizeof *dst); return;
    case KV_F16:
        for (size_t i = 0; i < n; i++)
            dst[i] = load_f16(p + 2 * (first + i));
        return;
    case KV_Q8_0:
        for (size_t i = 0; i < n; i++) {
            const uint8_t *b = p + (first + i) / 32 * 34;

            dst[i] = (float)(int8_t)b[2 + i % 32] * load_f16(b);
        }
        return;
    case KV_Q4_0:
        for (size_t i = 0; i < n; i++) {
            const uint8_t *b = p + (first + i) / 32 * 18;

            dst[i] = (float)((b[2 + i % 16] >> (i % 32 / 16 * 4) & 15) - 8) * load_f16(b);
        }
        return;
    case KV_TYPE_COUNT: return;
    }
}
