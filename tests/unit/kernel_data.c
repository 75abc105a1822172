#include "config.h"

#include "tests/unit/kernel_data.h"

#include <sys/mman.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/compute/half.h"

const enum tensor_type computed_types[] = {
    TYPE_F32,  TYPE_F16,  TYPE_BF16, TYPE_Q8_0, TYPE_Q4_0, TYPE_Q4_1,   TYPE_Q5_0,   TYPE_Q5_1,
    TYPE_Q2_K, TYPE_Q3_K, TYPE_Q4_K, TYPE_Q5_K, TYPE_Q6_K, TYPE_IQ4_NL, TYPE_IQ4_XS, TYPE_COUNT,
};

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

/* Where the f16 scales of a block lie; -1: none. */
static void scale_fields(enum tensor_type type, int at[2])
{
    at[0] = 0;
    at[1] = -1;
    switch ((int)type) {
    case TYPE_Q4_1:
    case TYPE_Q5_1:
    case TYPE_Q4_K:
    case TYPE_Q5_K: at[1] = 2; break;
    case TYPE_Q2_K:
        at[0] = 80;
        at[1] = 82;
        break;
    case TYPE_Q3_K: at[0] = 108; break;
    case TYPE_Q6_K: at[0] = 208; break;
    default: break;
    }
}

void random_blocks(enum tensor_type type, void *dst, size_t n, uint64_t *seed)
{
    const struct tensor_type_info *info = tensor_type_info(type);
    uint8_t *p = dst;
    int at[2];

    if (info->block_elems == 1) {
        for (size_t i = 0; i < n; i++) {
            float f = random_float(seed);
            uint32_t bits = bits_of_float(f);

            if (type == TYPE_F32)
                memcpy(p + 4 * i, &bits, 4);
            else
                store_u16(p + 2 * i, type == TYPE_F16 ? f16_of_f32(f) : (uint16_t)(bits >> 16));
        }
        return;
    }
    scale_fields(type, at);
    for (size_t b = 0; b < n / info->block_elems; b++, p += info->block_bytes) {
        for (int i = 0; i < info->block_bytes; i++)
            p[i] = (uint8_t)random_u32(seed);
        for (int i = 0; i < 2; i++)
            if (at[i] >= 0)
                store_u16(p + at[i], f16_of_f32(random_float(seed) / 64));
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
