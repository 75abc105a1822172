#include "config.h"

#include "engine/stream/area.h"

#include <sys/mman.h>

#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/arena.h"
#include "engine/base/units.h"

static uint64_t page_bytes(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* With larger base pages a huge page is 512 MiB, too large to help. */
static bool has_huge(void)
{
    return page_bytes() == 4096;
}

int area_reserve(struct area *a, const char *name, uint64_t bytes, struct err *e)
{
    uint64_t whole;
    void *p;

    *a = (struct area){ .name = name };
    if (bytes == 0)
        return 0;
    if (bytes > SIZE_MAX / 2)
        return err_set(e, ERR_BUDGET, "\"%s\" needs %llu bytes, more than there are addresses",
                       name, (unsigned long long)bytes);
    bytes = align_up(bytes, page_bytes());
    whole = bytes + HUGE_BYTES;
    p = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return err_sys(e, "cannot reserve %llu bytes of addresses for \"%s\"",
                       (unsigned long long)whole, name);
    a->mapping = p;
    a->mapping_bytes = whole;
    a->base = (unsigned char *)p + (HUGE_BYTES - (uintptr_t)p % HUGE_BYTES) % HUGE_BYTES;
    a->reserved = bytes;
    return 0;
}

uint64_t area_kept(const struct area *a, uint64_t bytes)
{
    if (bytes >= a->held)
        return a->held;
    /* Only small pages follow the last complete huge page. */
    if (has_huge() && bytes < align_down(a->held, HUGE_BYTES))
        return align_down(bytes, HUGE_BYTES);
    return align_down(bytes, page_bytes());
}

static int grow(struct area *a, uint64_t bytes, bool touch, struct err *e)
{
    uint64_t huge = align_down(bytes, HUGE_BYTES);

    if (mprotect(a->base + a->held, bytes - a->held, PROT_READ | PROT_WRITE) != 0)
        return err_sys(e, "cannot map %llu bytes for \"%s\"", (unsigned long long)bytes,
                       a->name);
    if (has_huge() && huge > 0)
        (void)madvise(a->base, huge, MADV_HUGEPAGE);
    if (touch)
        memory_touch(a->base + a->held, bytes - a->held);
    a->held = bytes;
    return 0;
}

static int shrink(struct area *a, uint64_t bytes, bool touch, struct err *e)
{
    uint64_t kept = area_kept(a, bytes);

    /* A new mapping also drops the advice on huge pages; MADV_DONTNEED would keep it. */
    if (mmap(a->base + kept, a->held - kept, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        return err_sys(e, "cannot give back %llu bytes of \"%s\"",
                       (unsigned long long)(a->held - kept), a->name);
    a->held = kept;
    return kept < bytes ? grow(a, bytes, touch, e) : 0;
}

int area_hold(struct area *a, uint64_t bytes, bool touch, struct err *e)
{
    bytes = align_up(bytes, page_bytes());
    assert(bytes <= a->reserved);
    if (bytes > a->held)
        return grow(a, bytes, touch, e);
    if (bytes < a->held)
        return shrink(a, bytes, touch, e);
    return 0;
}

/* Count the bytes whose lowest bit is set; mincore() defines only that bit. */
static uint64_t count_ones(const unsigned char *bytes, uint64_t n)
{
    uint64_t ones = 0, eight, i = 0;

    for (; i + 8 <= n; i += 8) {
        memcpy(&eight, bytes + i, 8);
        ones += (uint64_t)__builtin_popcountll(eight & 0x0101010101010101u);
    }
    for (; i < n; i++)
        ones += bytes[i] & 1;
    return ones;
}

uint64_t area_resident(const struct area *a)
{
    unsigned char pages[4096]; /* one byte each */
    uint64_t step = sizeof pages * page_bytes(), n = 0;

    for (uint64_t at = 0; at < a->held; at += step) {
        uint64_t bytes = a->held - at < step ? a->held - at : step;

        if (mincore(a->base + at, bytes, pages) != 0)
            return a->held;
        n += count_ones(pages, bytes / page_bytes());
    }
    return n * page_bytes();
}

void area_unmap(struct area *a)
{
    if (a->mapping != NULL)
        munmap(a->mapping, a->mapping_bytes);
    *a = (struct area){ .name = a->name };
}
