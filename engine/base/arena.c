#include "config.h"

#include "engine/base/arena.h"

#include <sys/mman.h>

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/units.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* newer than some C libraries */
#endif


#if defined(__SANITIZE_ADDRESS__)
#define ARENA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#endif
#ifndef ARENA_ASAN
#define ARENA_ASAN 0
#endif

#if ARENA_ASAN
#include <sanitizer/asan_interface.h>
#define ARENA_GAP      64
#define POISON(p, n)   __asan_poison_memory_region(p, n)
#define UNPOISON(p, n) __asan_unpoison_memory_region(p, n)
#else
#define ARENA_GAP      0
#define POISON(p, n)   ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

size_t arena_size(size_t n)
{
    return (n + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN + ARENA_GAP;
}

/* Only complete huge pages: one that two mappings share would stay charged when one of them is
 * unmapped.  With larger base pages a huge page is 512 MiB, too large to help. */
static void advise_huge(void *p, size_t bytes)
{
    uintptr_t from = align_up((uintptr_t)p, HUGE_BYTES);
    uintptr_t end = align_down((uintptr_t)p + bytes, HUGE_BYTES);

    if (from < end && sysconf(_SC_PAGESIZE) == 4096)
        (void)madvise((void *)from, end - from, MADV_HUGEPAGE);
}

/* Pieces that nobody has taken are poisoned, and may be touched. */
__attribute__((no_sanitize_address)) void memory_enter(const void *p, size_t bytes)
{
    const volatile unsigned char *at = p;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    for (size_t i = 0; i < bytes; i += page)
        (void)at[i];
}

void memory_touch(void *p, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    advise_huge(p, bytes);
    if (madvise(p, bytes, MADV_POPULATE_WRITE) == 0) {
        memory_enter(p, bytes);
        return;
    }
    for (size_t i = 0; i < bytes; i += page) /* before Linux 5.14 */
        ((volatile unsigned char *)p)[i] = 0;
}

void memory_fetch(void *p, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = align_up((uintptr_t)p, page);
    uintptr_t end = align_down((uintptr_t)p + bytes, page);

    if (from < end)
        (void)madvise((void *)from, end - from, MADV_POPULATE_WRITE);
}

int arena_map(struct arena *a, const char *name, size_t size, bool touch, struct err *e)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *p;

    *a = (struct arena){ .name = name };
    if (size == 0)
        return 0;
    if (size > SIZE_MAX - page)
        return err_set(e, ERR_BUDGET, "plan item \"%s\" is too large: %zu bytes", name, size);
    size = (size + page - 1) / page * page;
    p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return err_sys(e, "cannot map %zu bytes for plan item \"%s\"", size, name);
    if (touch)
        memory_touch(p, size);
    a->base = p;
    a->size = size;
    POISON(a->base, a->size);
    return 0;
}

void *arena_take(struct arena *a, size_t n, struct err *e)
{
    size_t whole = arena_size(n);
    unsigned char *p;

    if (whole < n || whole > a->size - a->used) {
        err_set(e, ERR_BUDGET,
                "plan item \"%s\" of %zu bytes has %zu in use and needs %zu more", a->name,
                a->size, a->used, n);
        return NULL;
    }
    p = a->base + a->used;
    a->used += whole;
    UNPOISON(p, n);
    return p;
}

void arena_touch(struct arena *a)
{
    if (a->size > 0)
        memory_touch(a->base, a->size);
}

void arena_release(struct arena *a)
{
    if (a->size > 0)
        (void)madvise(a->base, a->size, MADV_DONTNEED);
}

void arena_unmap(struct arena *a)
{
    if (a->base != NULL) {
        UNPOISON(a->base, a->size);
        munmap(a->base, a->size);
    }
    *a = (struct arena){ .name = a->name };
}
