/*
 * Keeps large blocks of memory for the next input.
 *
 * AddressSanitizer gives each block of more than 128 KiB back to the system, with the pages of its
 * shadow, and takes it again for the next input: two thirds of the time of some targets.  The
 * linker calls these functions instead.  A block that is free, and the bytes after each, are
 * poisoned as usual.
 */
#include "config.h"

#include <sanitizer/asan_interface.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LARGE  ((size_t)64 << 10)
#define AFTER  ((size_t)4096) /* poisoned bytes after a block; also its alignment */
#define BLOCKS 32

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
int __real_posix_memalign(void **out, size_t align, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
int __wrap_posix_memalign(void **out, size_t align, size_t n);
void __wrap_free(void *p);

static struct block {
    void *p;
    size_t n;
    bool is_used;
} blocks[BLOCKS];

/* Returns a block of n bytes; NULL: an ordinary one must do. */
static void *take(size_t n)
{
    struct block *b = blocks;

    while (b < blocks + BLOCKS && b->p != NULL && (b->is_used || b->n != n))
        b++;
    if (n < LARGE || n > SIZE_MAX / 2 || b == blocks + BLOCKS)
        return NULL;
    if (b->p == NULL && __real_posix_memalign(&b->p, AFTER, n + AFTER) != 0)
        return b->p = NULL;
    b->n = n;
    b->is_used = true;
    __asan_unpoison_memory_region(b->p, n);
    __asan_poison_memory_region((char *)b->p + n, AFTER);
    return b->p;
}

static struct block *block_at(const void *p)
{
    for (struct block *b = blocks; b < blocks + BLOCKS && b->p != NULL; b++)
        if (b->p == p)
            return b;
    return NULL;
}

void *__wrap_malloc(size_t n)
{
    void *p = take(n);

    return p != NULL ? p : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    void *p = size > 0 && n <= SIZE_MAX / size ? take(n * size) : NULL;

    return p != NULL ? memset(p, 0, n * size) : __real_calloc(n, size);
}

int __wrap_posix_memalign(void **out, size_t align, size_t n)
{
    void *p = align <= AFTER ? take(n) : NULL;

    if (p == NULL)
        return __real_posix_memalign(out, align, n);
    *out = p;
    return 0;
}

void __wrap_free(void *p)
{
    struct block *b = block_at(p);

    if (b == NULL) {
        __real_free(p);
        return;
    }
    if (!b->is_used)
        abort(); /* it was freed before */
    b->is_used = false;
    __asan_poison_memory_region(b->p, b->n);
}

void *__wrap_realloc(void *p, size_t n)
{
    const struct block *b = block_at(p);
    void *more;

    if (b == NULL)
        return __real_realloc(p, n);
    more = __wrap_malloc(n);
    if (more != NULL) {
        memcpy(more, p, n < b->n ? n : b->n);
        __wrap_free(p);
    }
    return more;
}
