/* See ways.h.  README.md has what was measured on Zen and on a Xeon. */
#include "config.h"

#include "engine/compute/ways.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "engine/compute/kernels.h"
#include "engine/compute/processor.h"

struct list {
    int n;
    struct fetch_way way[WAYS_MOST];
    uint32_t cols[WAYS_MOST]; /* of a choice of columns */
};

/* Way 0 to prefetch is the best on Intel and serves makes that were not measured; way 1 is the best
 * on AMD. */
static const struct list of_file = { .n = 5,
                                     .way = { { FETCH_SECOND, 1536 },
                                              { FETCH_ONCE, 1536 },
                                              { FETCH_FIRST, 1536 },
                                              { FETCH_SECOND, 3072 },
                                              { FETCH_NONE, 0 } } };
static const struct list of_interleaved = { .n = 7,
                                            .way = { { FETCH_BOTH, 2048 },
                                                     { FETCH_ONCE, 4352 },
                                                     { FETCH_FIRST, 2048 },
                                                     { FETCH_SECOND, 2048 },
                                                     { FETCH_SECOND, 3072 },
                                                     { FETCH_SECOND, 4352 },
                                                     { FETCH_NONE, 0 } } };

/* The first number comes from measurements on Zen, that of AMX on a Xeon. */
static const struct list few_cols = { .n = 3, .cols = { 4, 2, WAYS_FEW_MOST } };
static const struct list panel_cols = { .n = 3, .cols = { 128, 64, WAYS_PANEL_MOST } };
static const struct list lane_cols = { .n = 3, .cols = { 64, 32, WAYS_LANE_MOST } };
static const struct list amx_cols = { .n = 3, .cols = { 32, 16, 64 } };

static const struct list *const lists[WAY_CHOICES] = {
    [WAY_FILE_5] = &of_file,
    [WAY_FILE_6] = &of_file,
    [WAY_FILE_8] = &of_file,
    [WAY_INTERLEAVED_5] = &of_interleaved,
    [WAY_INTERLEAVED_6] = &of_interleaved,
    [WAY_INTERLEAVED_8] = &of_interleaved,
    [WAY_FEW_COLS] = &few_cols,
    [WAY_PANEL_COLS] = &panel_cols,
    [WAY_LANE_COLS] = &lane_cols,
    [WAY_AMX_COLS] = &amx_cols,
};

static atomic_int chosen[WAY_CHOICES]; /* 0, or 1 more than the index */

bool ways_matter(enum way_choice c, const struct kernels *k)
{
    if (c == WAY_AMX_COLS)
        return strcmp(k->name, "amx") == 0;
    if (c == WAY_LANE_COLS || lists[c] == &of_interleaved)
        return k->mul_interleaved != NULL;
    return k->has_ways;
}

int ways_count(enum way_choice c)
{
    return lists[c]->n;
}

/* Asking the processor takes many microseconds in a virtual machine, so it is done once.  Threads
 * that get here together store the same answer. */
static bool is_amd(void)
{
    static atomic_int answer; /* 0: not asked yet, 1: no, 2: yes */
    int i = atomic_load_explicit(&answer, memory_order_relaxed);

    if (i == 0) {
        i = processor_is_amd() ? 2 : 1;
        atomic_store_explicit(&answer, i, memory_order_relaxed);
    }
    return i == 2;
}

int ways_of_make(enum way_choice c)
{
    return lists[c]->cols[0] == 0 && is_amd() ? 1 : 0;
}

int ways_chosen(enum way_choice c)
{
    const int i = atomic_load_explicit(&chosen[c], memory_order_relaxed);

    return i > 0 ? i - 1 : ways_of_make(c);
}

void ways_choose(enum way_choice c, int i)
{
    if (i >= 0 && i < lists[c]->n)
        atomic_store_explicit(&chosen[c], i + 1, memory_order_relaxed);
}

struct fetch_way ways_fetch(bool is_interleaved, enum tensor_type type)
{
    const enum way_choice first = is_interleaved ? WAY_INTERLEAVED_5 : WAY_FILE_5;
    const enum way_choice c = type == TYPE_Q8_0 ? first + 2 : type == TYPE_Q6_K ? first + 1 : first;

    return lists[c]->way[ways_chosen(c)];
}

size_t ways_cols(enum way_choice c)
{
    return lists[c]->cols[ways_chosen(c)];
}

char *ways_text(enum way_choice c, int i, char *buf, size_t n)
{
    static const char *const where[] = {
        [FETCH_ONCE] = "into the first-level cache only",
        [FETCH_FIRST] = "into the first-level cache",
        [FETCH_SECOND] = "into the second-level cache",
        [FETCH_BOTH] = "into both caches",
    };
    const struct fetch_way w = lists[c]->way[i];

    if (lists[c]->cols[i] > 0)
        snprintf(buf, n, "%u columns", lists[c]->cols[i]);
    else if (w.hint == FETCH_NONE)
        snprintf(buf, n, "not at all");
    else
        snprintf(buf, n, "%s, %u bytes ahead", where[w.hint], w.ahead);
    return buf;
}
