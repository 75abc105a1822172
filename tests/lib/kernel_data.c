#include "config.h"

#include "tests/lib/kernel_data.h"

#include <sys/mman.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/compute/dequant.h"
#include "engine/compute/half.h"

#define ID_OF(TYPE, ...) TYPE_##TYPE,
const enum tensor_type computed_types[] = { FLOAT_TYPES(ID_OF) BLOCK_TYPES(ID_OF) TYPE_COUNT };

uint32_t random_u32(uint64_t *seed)
{
    /* splitmix64 */
    uint64_t z = *seed += 0x9e3779b97f4a7c15;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (uint32_t)((z ^ z >> 31) >> 32);
}

float random_float(uint64_t *seed)
{
    float sum = 0;

    for (int i = 0; i < 12; i++)
        sum += (float)(random_u32(seed) >> 8) * 0x1p-24f;
    return sum - 6;
}

static float largest(const float *x, size_t n)
{
    float top = 0;

    for (size_t i = 0; i < n; i++)
        top = isfinite(x[i]) ? fmaxf(top, fabsf(x[i])) : INFINITY;
    return top;
}

/* Any bytes are a valid block.  Make blocks until the values have a usual size. */
static void random_block(enum tensor_type type, uint8_t *p, uint64_t *seed)
{
    const struct tensor_type_info *info = tensor_type_info(type);
    float value[256], top;

    do {
        for (int i = 0; i < info->block_bytes; i++)
            p[i] = (uint8_t)random_u32(seed);
        dequant_row(type, p, value, info->block_elems);
        top = largest(value, info->block_elems);
    } while (!(top > 0x1p-5f && top < 4));
}

void random_blocks(enum tensor_type type, void *dst, size_t n, uint64_t *seed)
{
    const struct tensor_type_info *info = tensor_type_info(type);
    uint8_t *p = dst;

    for (size_t i = 0; i < n; i += info->block_elems, p += info->block_bytes) {
        if (info->block_elems > 1) {
            random_block(type, p, seed);
            continue;
        }

        if (type == TYPE_F8_E4M3) {
            *p = (uint8_t)(random_u32(seed) & 0xbf); /* below 2 */
            continue;
        }

        float f = random_float(seed);
        uint32_t bits = bits_of_float(f);

        if (type == TYPE_F32)
            memcpy(p, &bits, 4);
        else
            store_u16(p, type == TYPE_F16 ? f16_of_f32(f) : (uint16_t)(bits >> 16));
    }
}

static size_t fenced_pages(size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (n + page - 1) / page * page;
}

void *fenced_new(size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t pages = fenced_pages(n);
    char *p =
        mmap(NULL, pages + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED || mprotect(p + pages, page, PROT_NONE) != 0)
        abort();
    return p + pages - n;
}

void fenced_free(void *p, size_t n)
{
    size_t pages = fenced_pages(n);

    munmap((char *)p + n - pages, pages + (size_t)sysconf(_SC_PAGESIZE));
}
