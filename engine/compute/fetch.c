/* See fetch.h.  README.md has what was measured on Zen and on a Xeon. */
#include "config.h"

#include "engine/compute/fetch.h"

#include <stdatomic.h>
#include <stdio.h>

#include "engine/compute/processor.h"

/* Way 0 is the best on Intel, and is used for makes that were not measured; way 1 on AMD. */
static const struct {
    int n;
    struct fetch_way way[FETCH_WAYS];
} ways[FETCH_LAYOUTS] = {
    [FETCH_ROWS] = { 5,
                     { { FETCH_SECOND, 1536 },
                       { FETCH_ONCE, 1536 },
                       { FETCH_FIRST, 1536 },
                       { FETCH_SECOND, 3072 },
                       { FETCH_NONE, 0 } } },
    [FETCH_INTERLEAVED] = { 7,
                            { { FETCH_BOTH, 2048 },
                              { FETCH_ONCE, 4352 },
                              { FETCH_FIRST, 2048 },
                              { FETCH_SECOND, 2048 },
                              { FETCH_SECOND, 3072 },
                              { FETCH_SECOND, 4352 },
                              { FETCH_NONE, 0 } } },
};

static atomic_int chosen[FETCH_LAYOUTS]; /* 0, or 1 more than the index */

int fetch_count(enum fetch_layout layout)
{
    return ways[layout].n;
}

int fetch_of_make(enum fetch_layout layout)
{
    (void)layout; /* both lists begin alike */
    return processor_is_amd() ? 1 : 0;
}

/* Asking the processor takes many microseconds in a virtual machine, so it is done once.  Threads
 * that get here together store the same answer. */
int fetch_chosen(enum fetch_layout layout)
{
    int i = atomic_load_explicit(&chosen[layout], memory_order_relaxed), none = 0;

    if (i > 0)
        return i - 1;
    i = fetch_of_make(layout);
    return atomic_compare_exchange_strong(&chosen[layout], &none, i + 1) ? i : none - 1;
}

void fetch_choose(enum fetch_layout layout, int i)
{
    if (i >= 0 && i < ways[layout].n)
        atomic_store_explicit(&chosen[layout], i + 1, memory_order_relaxed);
}

struct fetch_way fetch_way(enum fetch_layout layout)
{
    return ways[layout].way[fetch_chosen(layout)];
}

char *fetch_text(enum fetch_layout layout, int i, char *buf, size_t n)
{
    static const char *const where[] = {
        [FETCH_ONCE] = "into the first-level cache only",
        [FETCH_FIRST] = "into the first-level cache",
        [FETCH_SECOND] = "into the second-level cache",
        [FETCH_BOTH] = "into both caches",
    };
    const struct fetch_way w = ways[layout].way[i];

    if (w.hint == FETCH_NONE)
        snprintf(buf, n, "not at all");
    else
        snprintf(buf, n, "%s, %u bytes ahead", where[w.hint], w.ahead);
    return buf;
}
