#include "config.h"

#include "engine/stream/expert_cache.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/units.h"
#include "engine/stream/area.h"
#include "engine/stream/expert_policy.h"
#include "engine/stream/populate.h"
#include "engine/stream/schedule.h"

#define NO_SLOT UINT32_MAX

/* One expert is computed while another is read. */
#define SLOTS_MIN 2

/* Populate this much more than the slots that hold weights, in steps. */
#define POPULATE_AHEAD (512 * MIB)
#define POPULATE_STEP  (64 * MIB)

/* A smaller cache copies at most so much, which takes some 50 ms: another program may be waiting
 * for the memory. */
#define MOVE_MOST (256 * MIB)

enum slot_kind { SLOT_EMPTY, SLOT_FETCHING, SLOT_HOLDS };

struct expert_slot {
    enum slot_kind kind;
    bool is_requested; /* by the current request, and not given back */
    uint32_t layer, expert;
};

/* One expert of the current request. */
enum entry_state { ENTRY_WAITING, ENTRY_FETCHING, ENTRY_READY, ENTRY_RETURNED };

struct entry {
    enum entry_state state;
    uint32_t expert, slot;
    struct stream_fetch fetch;
};

struct expert_cache {
    struct stream *stream;
    struct telemetry *telemetry;
    struct expert_layer *layers; /* [n_layer] */
    uint32_t n_layer;
    struct expert_policy policy;
    struct area area;
    struct populate_range populate;
    uint64_t slot_bytes;
    struct expert_slot *slots; /* [n_all], the first n_slot are used */
    float *wait;               /* [n_all] of the slots, from the current layer */
    bool has_waits;            /* they are those of the current layer */
    uint32_t n_slot, n_all, n_held;
    uint32_t *slot_of; /* [policy.first[n_layer]] of each expert; NO_SLOT: not in memory */

    uint32_t layer;        /* of the request */
    struct entry *entries; /* [most experts of a layer] */
    uint32_t n_entry;
    uint32_t returned;            /* the entry of the last expert_cache_next() */
    struct stream_fetch **flying; /* [most experts of a layer] scratch */
    uint32_t *flying_entry;

    uint32_t *favourites; /* [n_favourite] in the order of the file, of expert_cache_warm() */
    uint32_t n_favourite, n_warmed;
};

/* --- sizes --- */

/* Each part begins at the offset in its page that it has in the file. */
static uint64_t part_room(const struct expert_part *p)
{
    return align_up(p->bytes, SCHEDULE_ALIGN) + SCHEDULE_ALIGN;
}

static uint64_t expert_room(const struct expert_layer *l)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < l->n_part; i++)
        bytes += part_room(&l->part[i]);
    return bytes;
}

static uint32_t most_experts(const struct expert_layer *layers, uint32_t n_layer)
{
    uint32_t most = 0;

    for (uint32_t l = 0; l < n_layer; l++)
        most = layers[l].n_expert > most ? layers[l].n_expert : most;
    return most;
}

void expert_sizes_of(const struct expert_layer *layers, uint32_t n_layer,
                     struct expert_sizes *out)
{
    uint64_t n_all = 0;

    *out = (struct expert_sizes){ 0 };
    for (uint32_t l = 0; l < n_layer; l++) {
        uint64_t bytes = expert_room(&layers[l]);

        n_all += layers[l].n_expert;
        out->slot_bytes = bytes > out->slot_bytes ? bytes : out->slot_bytes;
        out->n_read = layers[l].n_used > out->n_read ? layers[l].n_used : out->n_read;
    }
    if (n_all == 0)
        return;
    out->n_all = n_all < NO_SLOT ? (uint32_t)n_all : NO_SLOT;
    out->n_min = out->n_all < SLOTS_MIN ? out->n_all : SLOTS_MIN;
    out->n_read = out->n_read > out->n_min ? out->n_read : out->n_min;
    out->n_read = out->n_read < out->n_all ? out->n_read : out->n_all;
    out->fixed_bytes =
        sizeof(struct expert_cache) + n_layer * sizeof *layers +
        n_all * (sizeof(struct expert_slot) + sizeof(float) + 2 * sizeof(uint32_t)) +
        most_experts(layers, n_layer) *
            (sizeof(struct entry) + sizeof(struct stream_fetch *) + sizeof(uint32_t)) +
        expert_policy_bytes(out->n_all, n_layer);
}

/* --- figures --- */

static uint32_t *place_of(struct expert_cache *c, uint32_t layer, uint32_t expert)
{
    return &c->slot_of[c->policy.first[layer] + expert];
}

/* The level of a share relative to even use: 8 is even, a step is a factor of 2^0.5. */
static uint8_t level_of(float heat)
{
    float level = heat > 0 ? 8 + 2 * log2f(heat) : 1;

    return level < 1 ? 1 : level > 15 ? 15 : (uint8_t)(level + 0.5f);
}

/* Publish a row of the heat map (struct mw_sample). */
static void publish_heat(struct expert_cache *c, uint32_t layer)
{
    struct telemetry *t = c->telemetry;
    uint32_t n = c->layers[layer].n_expert, bins = (uint32_t)counter_get(&t->heat_bins);

    for (uint32_t b = 0; b < bins; b++) {
        uint32_t from = n * b / bins, end = n * (b + 1) / bins, held = 0;
        float heat = 0;

        for (uint32_t i = from; i < end; i++) {
            held += *place_of(c, layer, i) != NO_SLOT;
            heat += expert_policy_heat(&c->policy, layer, i);
        }
        if (end > from)
            atomic_store_explicit(&t->heat[layer * bins + b],
                                  (uint8_t)((held * 15 / (end - from)) << 4 |
                                            level_of(heat / (float)(end - from))),
                                  memory_order_relaxed);
    }
}

static void publish_sizes(struct expert_cache *c)
{
    struct telemetry *t = c->telemetry;
    uint32_t most = most_experts(c->layers, c->n_layer);
    uint32_t bins = most < MW_HEAT_BINS ? most : MW_HEAT_BINS;

    counter_set(&t->n_expert, most);
    counter_set(&t->expert_all, c->n_all);
    counter_set(&t->heat_bins, (uint64_t)bins * c->n_layer <= MW_HEAT ? bins : 0);
    for (uint32_t i = 0; i < MW_HEAT; i++) {
        uint32_t layer = bins > 0 ? i / bins : c->n_layer;
        bool has_experts = layer < c->n_layer && c->layers[layer].n_expert > 0;

        atomic_store_explicit(&t->heat[i], has_experts ? 1 : 0, memory_order_relaxed);
    }
}

/* --- life --- */

static int open_policy(struct expert_cache *c, struct err *e)
{
    uint32_t *counts = malloc(2 * (size_t)c->n_layer * sizeof *counts);
    int rc;

    if (counts == NULL)
        return err_memory(e, "the cache of experts");
    for (uint32_t l = 0; l < c->n_layer; l++) {
        counts[l] = c->layers[l].n_expert;
        counts[c->n_layer + l] = c->layers[l].n_used;
    }
    rc = expert_policy_open(&c->policy, counts, counts + c->n_layer, c->n_layer, e);
    free(counts);
    return rc;
}

static int open_tables(struct expert_cache *c, const struct expert_layer *layers,
                       uint32_t n_layer, struct err *e)
{
    uint32_t most = most_experts(layers, n_layer);

    c->n_layer = n_layer;
    c->layers = malloc(n_layer * sizeof *layers);
    c->slots = calloc(c->n_all, sizeof *c->slots);
    c->wait = calloc(c->n_all, sizeof *c->wait);
    c->slot_of = malloc(c->n_all * sizeof *c->slot_of);
    c->entries = calloc(most, sizeof *c->entries);
    c->flying = calloc(most, sizeof *c->flying);
    c->flying_entry = calloc(most, sizeof *c->flying_entry);
    if (c->layers == NULL || c->slots == NULL || c->wait == NULL || c->slot_of == NULL ||
        c->entries == NULL || c->flying == NULL || c->flying_entry == NULL)
        return err_memory(e, "the cache of experts");
    memcpy(c->layers, layers, n_layer * sizeof *layers);
    for (uint32_t i = 0; i < c->n_all; i++)
        c->slot_of[i] = NO_SLOT;
    return open_policy(c, e);
}

int expert_cache_open(struct expert_cache **out, struct stream *s,
                      const struct expert_layer *layers, uint32_t n_layer, uint64_t bytes,
                      struct telemetry *t, struct err *e)
{
    struct expert_cache *c = calloc(1, sizeof *c);
    struct expert_sizes sizes;

    *out = NULL;
    if (c == NULL)
        return err_memory(e, "the cache of experts");
    expert_sizes_of(layers, n_layer, &sizes);
    c->stream = s;
    c->telemetry = t;
    c->slot_bytes = sizes.slot_bytes;
    c->n_all = sizes.n_all;
    if (open_tables(c, layers, n_layer, e) != 0 ||
        (!stream_is_mapped(s) &&
         (area_reserve(&c->area, "experts", c->n_all * c->slot_bytes, e) != 0 ||
          expert_cache_set_memory(c, bytes, e) != 0))) {
        expert_cache_close(c);
        return -1;
    }
    publish_sizes(c);
    *out = c;
    return 0;
}

/* No read may go on into slots that change their owner. */
static void drop_request(struct expert_cache *c);

void expert_cache_close(struct expert_cache *c)
{
    if (c == NULL)
        return;
    drop_request(c);
    populate_forget(stream_populator(c->stream), &c->populate);
    area_unmap(&c->area);
    expert_policy_close(&c->policy);
    free(c->layers);
    free(c->slots);
    free(c->wait);
    free(c->slot_of);
    free(c->entries);
    free(c->flying);
    free(c->flying_entry);
    free(c->favourites);
    free(c);
}

/* --- slots --- */

static unsigned char *slot_at(const struct expert_cache *c, uint32_t slot)
{
    return c->area.base + slot * c->slot_bytes;
}

static void publish(const struct expert_cache *c)
{
    counter_set(&c->telemetry->expert_slots, c->n_slot);
    counter_set(&c->telemetry->expert_held, c->n_held);
}

static void empty_slot(struct expert_cache *c, uint32_t slot)
{
    struct expert_slot *s = &c->slots[slot];

    if (s->kind == SLOT_EMPTY)
        return;
    *place_of(c, s->layer, s->expert) = NO_SLOT;
    *s = (struct expert_slot){ 0 };
    c->n_held--;
}

static void measure_waits(struct expert_cache *c)
{
    for (uint32_t i = 0; i < c->n_slot; i++) {
        const struct expert_slot *s = &c->slots[i];

        c->wait[i] =
            s->kind == SLOT_EMPTY ? 0 : expert_policy_wait(&c->policy, s->layer, s->expert);
    }
    c->has_waits = true;
}

/* Populate slots ahead of the reads that fill them. */
static void populate_ahead(struct expert_cache *c)
{
    uint64_t target = c->n_held * c->slot_bytes + POPULATE_AHEAD;

    target = target < c->area.held ? target : c->area.held;
    if (target >= c->populate.target + POPULATE_STEP ||
        (target == c->area.held && target > c->populate.target))
        populate_to(stream_populator(c->stream), &c->populate, c->area.base, target);
}

/*
 * Returns an empty slot whose memory is ready, or else the slot whose expert is expected to be
 * used last.  To read that expert again takes less time than to wait for new memory
 * (populate.h).  If all these experts are part of the request, returns an empty slot whose
 * memory is not ready, or NO_SLOT.
 */
static uint32_t find_victim(struct expert_cache *c)
{
    uint32_t n_ready = (uint32_t)(populate_ready(&c->populate) / c->slot_bytes);
    uint32_t victim = NO_SLOT, unready = NO_SLOT;

    if (!c->has_waits)
        measure_waits(c);
    for (uint32_t i = 0; i < c->n_slot; i++) {
        if (c->slots[i].kind == SLOT_EMPTY && i < n_ready)
            return i;
        if (c->slots[i].kind == SLOT_EMPTY)
            unready = i < unready ? i : unready;
        else if (!c->slots[i].is_requested &&
                 (victim == NO_SLOT || c->wait[i] > c->wait[victim]))
            victim = i;
    }
    return victim != NO_SLOT ? victim : unready;
}

/* --- memory --- */

/* Keep the expert of slot `from` in one of the first n_kept slots if one of them is empty, or has
 * an expert that is expected to be used later.  Otherwise it leaves.  Returns whether it stays. */
static bool keep_sooner(struct expert_cache *c, uint32_t from, uint32_t n_kept)
{
    uint32_t to = NO_SLOT;

    for (uint32_t i = 0; i < n_kept && (to == NO_SLOT || c->slots[to].kind != SLOT_EMPTY); i++)
        if (c->slots[i].kind == SLOT_EMPTY || to == NO_SLOT || c->wait[i] > c->wait[to])
            to = i;
    if (to == NO_SLOT || (c->slots[to].kind != SLOT_EMPTY && c->wait[to] <= c->wait[from])) {
        empty_slot(c, from);
        return false;
    }
    empty_slot(c, to);
    memcpy(slot_at(c, to), slot_at(c, from), c->slot_bytes);
    c->slots[to] = c->slots[from];
    c->wait[to] = c->wait[from];
    *place_of(c, c->slots[to].layer, c->slots[to].expert) = to;
    c->slots[from] = (struct expert_slot){ 0 };
    return true;
}

/* Let experts leave the slots that lose their content as the area gets smaller. */
static void leave_slots(struct expert_cache *c, uint64_t bytes)
{
    uint64_t kept = area_kept(&c->area, bytes), moved = 0;
    uint32_t n = (uint32_t)(kept / c->slot_bytes);

    measure_waits(c);
    for (uint32_t i = n; i < c->n_slot; i++) {
        if (c->slots[i].kind == SLOT_EMPTY)
            continue;
        if (moved + c->slot_bytes > MOVE_MOST)
            empty_slot(c, i);
        else if (keep_sooner(c, i, n))
            moved += c->slot_bytes;
    }
    if (c->populate.target > kept)
        populate_to(stream_populator(c->stream), &c->populate, c->area.base, kept);
}

/* The memory follows from the number of slots, which is never below the minimum. */
int expert_cache_set_memory(struct expert_cache *c, uint64_t bytes, struct err *e)
{
    uint64_t n = bytes / c->slot_bytes;
    int rc;

    if (stream_is_mapped(c->stream))
        return 0;
    drop_request(c);
    n = n < c->n_all ? n : c->n_all;
    if (n < SLOTS_MIN && n < c->n_all)
        return err_set(e, ERR_BUDGET,
                       "a cache of %llu bytes for experts is too small: %d of %llu bytes each "
                       "are needed",
                       (unsigned long long)bytes, SLOTS_MIN, (unsigned long long)c->slot_bytes);
    if (n * c->slot_bytes < c->area.held)
        leave_slots(c, n * c->slot_bytes);
    rc = area_hold(&c->area, n * c->slot_bytes, false, e);
    c->n_slot = (uint32_t)(c->area.held / c->slot_bytes);
    c->n_slot = c->n_slot < c->n_all ? c->n_slot : c->n_all;
    c->has_waits = false;
    populate_ahead(c);
    publish(c);
    return rc;
}

uint64_t expert_cache_held(const struct expert_cache *c)
{
    return c->n_held * c->slot_bytes;
}

uint64_t expert_cache_charged(const struct expert_cache *c)
{
    uint64_t held = expert_cache_held(c), ready = populate_ready(&c->populate);

    return held > ready ? held : ready;
}

/* --- a request --- */

static void drop_request(struct expert_cache *c)
{
    bool is_flying = false;

    for (uint32_t i = 0; i < c->n_entry; i++)
        is_flying |= c->entries[i].state == ENTRY_FETCHING;
    if (is_flying)
        stream_fetch_drain(c->stream, false);
    for (uint32_t i = 0; i < c->n_entry; i++) {
        struct entry *x = &c->entries[i];

        if (x->state == ENTRY_WAITING || x->slot == NO_SLOT)
            continue;
        c->slots[x->slot].is_requested = false;
        if (x->state != ENTRY_FETCHING)
            continue;
        if (x->fetch.state == FETCH_DONE)
            c->slots[x->slot].kind = SLOT_HOLDS;
        else
            empty_slot(c, x->slot);
    }
    c->n_entry = 0;
    c->returned = NO_SLOT;
}

/* Read an expert of a layer into a slot, which is empty. */
static void fetch_into(struct expert_cache *c, uint32_t layer, struct entry *x, uint32_t slot)
{
    const struct expert_layer *l = &c->layers[layer];
    unsigned char *to = slot_at(c, slot);

    c->slots[slot] = (struct expert_slot){ SLOT_FETCHING, true, layer, x->expert };
    *place_of(c, layer, x->expert) = slot;
    c->n_held++;
    c->wait[slot] = expert_policy_wait(&c->policy, layer, x->expert);
    x->slot = slot;
    x->state = ENTRY_FETCHING;
    x->fetch = (struct stream_fetch){ .n_range = l->n_part, .layer = layer };
    for (uint32_t i = 0; i < l->n_part; i++) {
        const struct expert_part *p = &l->part[i];
        struct tensor_piece at = expert_part_at(p, x->expert);
        uint64_t from = at.offset, first = align_down(from, SCHEDULE_ALIGN);

        x->fetch.range[i] = (struct stream_range){
            .file = at.file,
            .offset = first,
            .bytes = (size_t)(align_up(from + p->bytes, SCHEDULE_ALIGN) - first),
            .need = (size_t)(from + p->bytes - first),
            .dst = to,
        };
        to += part_room(p);
    }
    stream_fetch_start(c->stream, &x->fetch);
}

/* Begin to read as many waiting experts as there are slots for. */
static void fetch_waiting(struct expert_cache *c)
{
    for (uint32_t i = 0; i < c->n_entry; i++) {
        uint32_t slot;

        if (c->entries[i].state != ENTRY_WAITING)
            continue;
        slot = find_victim(c);
        if (slot == NO_SLOT)
            break;
        empty_slot(c, slot);
        fetch_into(c, c->layer, &c->entries[i], slot);
    }
    populate_ahead(c);
    publish(c);
}

static void count_request(struct expert_cache *c)
{
    struct telemetry *t = c->telemetry;
    uint32_t n_hit = 0;

    for (uint32_t i = 0; i < c->n_entry; i++)
        n_hit += c->entries[i].state == ENTRY_READY;
    counter_add(&t->expert_hits, n_hit);
    counter_add(&t->expert_misses, c->n_entry - n_hit);
}

void expert_cache_observed(const struct expert_cache *c, struct mw_expert_use *out)
{
    expert_policy_observed(&c->policy, out);
}

void expert_cache_expect(struct expert_cache *c, uint32_t n_token)
{
    expert_policy_expect(&c->policy, n_token);
}

void expert_cache_begin(struct expert_cache *c, uint32_t layer, uint32_t n_token,
                        const uint32_t *experts, const uint32_t *n_choice, uint32_t n)
{
    assert(layer < c->n_layer && n <= c->layers[layer].n_expert);
    c->n_warmed = c->n_favourite;
    drop_request(c);
    expert_policy_layer(&c->policy, layer, n_token);
    c->layer = layer;
    c->n_entry = n;
    c->has_waits = false;
    for (uint32_t i = 0; i < n; i++) {
        struct entry *x = &c->entries[i];

        expert_policy_use(&c->policy, experts[i], n_choice[i]);
        x->expert = experts[i];
        x->slot = *place_of(c, layer, experts[i]);
        x->state = x->slot != NO_SLOT ? ENTRY_READY : ENTRY_WAITING;
        if (x->slot != NO_SLOT)
            c->slots[x->slot].is_requested = true;
    }
    count_request(c);
    publish_heat(c, layer);
    if (!stream_is_mapped(c->stream))
        fetch_waiting(c);
}

/* The slots are taken by experts that come later: let one of them go, so that entry i can be
 * read.  Only a cache of fewer slots than experts in a request needs it. */
static void make_way(struct expert_cache *c, uint32_t i)
{
    for (uint32_t j = c->n_entry; j-- > i + 1;) {
        struct entry *x = &c->entries[j];

        if (x->state != ENTRY_READY)
            continue;
        empty_slot(c, x->slot);
        x->slot = NO_SLOT;
        x->state = ENTRY_WAITING;
        return;
    }
}

static void return_entry(struct expert_cache *c, uint32_t i, struct expert_weights *out)
{
    const struct expert_layer *l = &c->layers[c->layer];
    struct entry *x = &c->entries[i];
    unsigned char *at = slot_at(c, x->slot);

    x->state = ENTRY_RETURNED;
    c->slots[x->slot].kind = SLOT_HOLDS;
    c->returned = i;
    out->expert = x->expert;
    for (uint32_t p = 0; p < l->n_part; p++) {
        out->part[p] = at + expert_part_at(&l->part[p], x->expert).offset % SCHEDULE_ALIGN;
        at += part_room(&l->part[p]);
    }
}

static int next_mapped(struct expert_cache *c, struct expert_weights *out, struct err *e)
{
    const struct expert_layer *l = &c->layers[c->layer];
    uint32_t i = 0;

    while (c->entries[i].state == ENTRY_RETURNED)
        i++;
    out->expert = c->entries[i].expert;
    for (uint32_t p = 0; p < l->n_part; p++) {
        struct tensor_piece at = expert_part_at(&l->part[p], out->expert);

        out->part[p] = stream_mapped_at(c->stream, at.file, at.offset, l->part[p].bytes, e);
        if (out->part[p] == NULL)
            return -1;
    }
    c->entries[i].state = ENTRY_RETURNED;
    c->returned = i;
    return 0;
}

int expert_cache_next(struct expert_cache *c, uint32_t end, struct expert_weights *out,
                      uint64_t *stall_ns, struct err *e)
{
    uint32_t first = NO_SLOT, n = 0;
    int found;

    assert(end <= c->n_entry);
    if (stream_is_mapped(c->stream))
        return next_mapped(c, out, e);
    for (uint32_t i = 0; i < end; i++) {
        if (c->entries[i].state == ENTRY_READY) {
            return_entry(c, i, out);
            return 0;
        }
        if (c->entries[i].state == ENTRY_FETCHING) {
            c->flying_entry[n] = i;
            c->flying[n++] = &c->entries[i].fetch;
        }
        if (c->entries[i].state == ENTRY_WAITING && first == NO_SLOT)
            first = i;
    }
    if (n == 0) {
        assert(first != NO_SLOT);
        make_way(c, first);
        fetch_waiting(c);
        if (c->entries[first].state != ENTRY_FETCHING) {
            drop_request(c);
            return err_memory(e, "the cache of experts");
        }
        c->flying_entry[n] = first;
        c->flying[n++] = &c->entries[first].fetch;
    }
    found = stream_fetch_wait(c->stream, c->flying, n, stall_ns, e);
    if (found < 0) {
        drop_request(c);
        return -1;
    }
    return_entry(c, c->flying_entry[found], out);
    return 0;
}

static void give_mapped(struct expert_cache *c, uint32_t expert)
{
    const struct expert_layer *l = &c->layers[c->layer];

    for (uint32_t p = 0; p < l->n_part; p++) {
        struct tensor_piece at = expert_part_at(&l->part[p], expert);

        stream_mapped_give(c->stream, at.file, at.offset, l->part[p].bytes);
    }
}

void expert_cache_give(struct expert_cache *c)
{
    struct entry *x = &c->entries[c->returned];

    assert(c->returned < c->n_entry && x->state == ENTRY_RETURNED);
    c->returned = NO_SLOT;
    if (stream_is_mapped(c->stream)) {
        give_mapped(c, x->expert);
        return;
    }
    c->slots[x->slot].is_requested = false;
    x->slot = NO_SLOT;
    fetch_waiting(c);
}

/* --- favourites of earlier sessions --- */

static uint32_t layer_of(const struct expert_cache *c, uint32_t which)
{
    uint32_t l = 0;

    while (which >= c->policy.first[l + 1])
        l++;
    return l;
}

struct favourite {
    uint32_t which, file;
    uint64_t offset;
    float use; /* share of the tokens of its layer */
};

static int by_use(const void *a, const void *b)
{
    const struct favourite *x = a, *y = b;

    return x->use < y->use ? 1 : x->use > y->use ? -1 : x->which < y->which ? -1 : 1;
}

static int by_place(const void *a, const void *b)
{
    const struct favourite *x = a, *y = b;

    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void find_favourite(const struct expert_cache *c, uint32_t which, struct favourite *out)
{
    uint32_t l = layer_of(c, which), expert = which - c->policy.first[l];
    struct tensor_piece at = expert_part_at(&c->layers[l].part[0], expert);

    *out = (struct favourite){ which, at.file, at.offset, c->policy.uses[which] };
}

void expert_cache_seed(struct expert_cache *c, const uint8_t *use)
{
    struct favourite *all = malloc((c->n_all + 1) * sizeof *all);
    uint32_t n = 0;

    expert_policy_seed(&c->policy, use);
    c->favourites = malloc((c->n_all + 1) * sizeof *c->favourites);
    if (all == NULL || c->favourites == NULL || stream_is_mapped(c->stream)) {
        free(all);
        return;
    }
    for (uint32_t i = 0; i < c->n_all; i++)
        if (use[i] > 0)
            find_favourite(c, i, &all[n++]);
    qsort(all, n, sizeof *all, by_use);
    n = n < c->n_slot ? n : c->n_slot;
    qsort(all, n, sizeof *all, by_place);
    for (uint32_t i = 0; i < n; i++)
        c->favourites[i] = all[i].which;
    c->n_favourite = n;
    free(all);
}

void expert_cache_uses(const struct expert_cache *c, uint8_t *use)
{
    expert_policy_uses(&c->policy, use);
}

/* How many are read at once: enough to keep the disk busy. */
#define WARM_MOST 4

/* Begin to read a favourite into an empty slot.  Returns false if there is none. */
static bool warm_one(struct expert_cache *c, struct entry *x, uint32_t which)
{
    uint32_t layer = layer_of(c, which), slot = 0;

    while (slot < c->n_slot && c->slots[slot].kind != SLOT_EMPTY)
        slot++;
    if (slot == c->n_slot)
        return false;
    x->expert = which - c->policy.first[layer];
    fetch_into(c, layer, x, slot);
    return true;
}

/* Wait for one of n reads.  Returns whether it was read. */
static bool warm_wait(struct expert_cache *c, struct entry *entries, uint32_t n)
{
    struct stream_fetch *flying[WARM_MOST];
    struct err ignored = ERR_INIT;
    uint64_t no_stall = 0;
    uint32_t left = 0, of[WARM_MOST];
    int found;

    for (uint32_t i = 0; i < n; i++)
        if (entries[i].state == ENTRY_FETCHING) {
            of[left] = i;
            flying[left++] = &entries[i].fetch;
        }
    found = stream_fetch_wait(c->stream, flying, left, &no_stall, &ignored);
    if (found < 0)
        return false;
    entries[of[found]].state = ENTRY_RETURNED;
    c->slots[entries[of[found]].slot].kind = SLOT_HOLDS;
    c->slots[entries[of[found]].slot].is_requested = false;
    return true;
}

bool expert_cache_warm(struct expert_cache *c)
{
    struct entry entries[WARM_MOST];
    uint32_t n = 0;
    bool works = true;

    while (n < WARM_MOST && c->n_warmed < c->n_favourite) {
        uint32_t which = c->favourites[c->n_warmed++];

        if (c->slot_of[which] == NO_SLOT && !warm_one(c, &entries[n++], which)) {
            c->n_warmed = c->n_favourite; /* the cache is smaller than it was */
            n--;
        }
    }
    for (uint32_t i = 0; i < n && works; i++)
        works = warm_wait(c, entries, n);
    if (!works) {
        stream_fetch_drain(c->stream, false);
        for (uint32_t i = 0; i < n; i++)
            if (entries[i].state == ENTRY_FETCHING)
                empty_slot(c, entries[i].slot);
        c->n_warmed = c->n_favourite;
    }
    populate_ahead(c);
    publish(c);
    return c->n_warmed < c->n_favourite;
}
