/*
 * gguf_write.h - small GGUF files for tests, built in memory.
 *
 *     struct gguf_out g = { 0 };
 *     gguf_put_header(&g, n_tensor, n_key);
 *     gguf_put_text(&g, "general.type", "adapter");
 *     gguf_put_tensor(&g, "a.weight", 0, 32, 1, 0);
 *     gguf_put_data(&g, 128);
 */
#ifndef MEMWALL_TESTS_LIB_GGUF_WRITE_H
#define MEMWALL_TESTS_LIB_GGUF_WRITE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct gguf_out {
    unsigned char bytes[16384];
    size_t n;
};

static inline void gguf_put(struct gguf_out *g, const void *bytes, size_t n)
{
    assert(g->n + n <= sizeof g->bytes);
    memcpy(g->bytes + g->n, bytes, n);
    g->n += n;
}

static inline void gguf_put_u32(struct gguf_out *g, uint32_t v)
{
    gguf_put(g, &v, sizeof v);
}

static inline void gguf_put_u64(struct gguf_out *g, uint64_t v)
{
    gguf_put(g, &v, sizeof v);
}

static inline void gguf_put_string(struct gguf_out *g, const char *s)
{
    gguf_put_u64(g, strlen(s));
    gguf_put(g, s, strlen(s));
}

static inline void gguf_put_header(struct gguf_out *g, uint64_t n_tensor, uint64_t n_key)
{
    gguf_put(g, "GGUF", 4);
    gguf_put_u32(g, 3);
    gguf_put_u64(g, n_tensor);
    gguf_put_u64(g, n_key);
}

static inline void gguf_put_text(struct gguf_out *g, const char *key, const char *text)
{
    gguf_put_string(g, key);
    gguf_put_u32(g, 8);
    gguf_put_string(g, text);
}

static inline void gguf_put_number(struct gguf_out *g, const char *key, uint32_t v)
{
    gguf_put_string(g, key);
    gguf_put_u32(g, 4);
    gguf_put_u32(g, v);
}

static inline void gguf_put_float(struct gguf_out *g, const char *key, float v)
{
    gguf_put_string(g, key);
    gguf_put_u32(g, 6);
    gguf_put(g, &v, sizeof v);
}

static inline void gguf_put_tensor(struct gguf_out *g, const char *name, uint32_t type,
                                   uint64_t cols, uint64_t rows, uint64_t offset)
{
    gguf_put_string(g, name);
    gguf_put_u32(g, 2);
    gguf_put_u64(g, cols);
    gguf_put_u64(g, rows);
    gguf_put_u32(g, type);
    gguf_put_u64(g, offset);
}

/* Pad to the data section and add n bytes of zeros. */
static inline void gguf_put_data(struct gguf_out *g, size_t n)
{
    static const unsigned char zeros[16384];

    gguf_put(g, zeros, (32 - g->n % 32) % 32);
    gguf_put(g, zeros, n);
}

#endif
