#include "config.h"

#include "engine/kv/kv_internal.h"

#include <sys/mman.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/arena.h"

static_assert(KV_PAGE % ATTN_BLOCK == 0, "a block of positions never straddles pages");

uint64_t kv_token_bytes(const struct kv_spec *spec, enum kv_type k, enum kv_type v)
{
    uint64_t v_row = spec->has_latent ? 0 : kv_row_bytes(v, spec->head_dim_v);

    return spec->n_head_kv * ((uint64_t)kv_row_bytes(k, spec->head_dim_k) + v_row);
}

static enum kv_type index_type(enum kv_type k)
{
    return k == KV_F32 ? KV_F32 : KV_F16;
}

static size_t index_row_bytes(const struct kv_spec *spec, enum kv_type k)
{
    return spec->index_dim > 0 ? kv_row_bytes(index_type(k), spec->index_dim) : 0;
}

uint64_t kv_index_page_bytes(const struct kv_spec *spec, enum kv_type k)
{
    uint64_t sum = 0;

    if (spec->index_dim > 0)
        sum += index_row_bytes(spec, k) * (KV_PAGE / spec->index_block);
    if (spec->entry_block > 0)
        sum += kv_row_bytes(k, spec->head_dim_k) * (KV_PAGE / spec->entry_block);
    return sum;
}

int kv_check_types(const struct kv_spec *specs, uint32_t n_layer, enum kv_type k,
                   enum kv_type v, struct err *e)
{
    for (uint32_t i = 0; i < n_layer; i++) {
        bool bad_k = k >= KV_Q8_0 && specs[i].head_dim_k % 32 != 0;
        bool bad_v = (specs[i].has_latent ? k : v) >= KV_Q8_0 && specs[i].head_dim_v % 32 != 0;

        if (bad_k || bad_v)
            return err_set(
                e, ERR_UNSUPPORTED,
                "KV type %s stores blocks of 32 values, but a head of the model has %u. "
                "Use f16 or f32",
                kv_type_name(bad_k ? k : v), bad_k ? specs[i].head_dim_k : specs[i].head_dim_v);
    }
    return 0;
}

/* Reserve addresses, of a ring or of pages.  Pages are charged when they are written: they are
 * small, because with huge ones a layer's first position would charge 2 MiB. */
static int reserve(unsigned char **out, size_t bytes, bool is_ring, struct err *e)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | (is_ring ? 0 : MAP_NORESERVE), -1, 0);

    if (p == MAP_FAILED)
        return err_sys(e, "cannot map %zu bytes for keys and values", bytes);
    if (!is_ring)
        madvise(p, bytes, MADV_NOHUGEPAGE);
    *out = p;
    return 0;
}

bool kv_type_is_rotated(enum kv_type t)
{
    return t == KV_Q8_0 || t == KV_Q4_0;
}

/*
 * The largest power of two that divides the head, because longer runs spread a channel more.
 * tests/bench/kv_error.py has figures.
 */
static uint32_t run_of(enum kv_type type, uint32_t head_dim)
{
    return kv_type_is_rotated(type) ? head_dim & (~head_dim + 1) : 0;
}

static int pools_new(struct kv_layer *l, const struct kv *kv, uint32_t n_pos, struct err *e)
{
    const struct kv_spec *spec = &l->spec;

    if (spec->index_dim > 0)
        l->pools[POOL_INDEX] = (struct kv_pool){ .row = index_row_bytes(spec, kv->type_k),
                                                 .block = spec->index_block };
    if (spec->entry_block > 0)
        l->pools[POOL_ENTRIES] =
            (struct kv_pool){ .row = l->k_row, .block = spec->entry_block };
    for (int i = 0; i < N_POOL; i++) {
        struct kv_pool *p = &l->pools[i];

        if (p->row == 0)
            continue;
        if (reserve(&p->rows, p->row * (n_pos / p->block), false, e) != 0)
            return -1;
        p->bytes = p->row * (n_pos / p->block);
    }
    return 0;
}

static int layer_new(struct kv_layer *l, const struct kv *kv, const struct kv_spec *spec,
                     struct err *e)
{
    uint32_t whole = (kv->n_ctx + KV_PAGE - 1) / KV_PAGE * KV_PAGE;

    l->spec = *spec;
    l->keep = l->want = UINT32_MAX;
    l->type_v = spec->has_latent ? kv->type_k : kv->type_v;
    l->k_run = run_of(kv->type_k, spec->head_dim_k);
    l->v_run = run_of(l->type_v, spec->head_dim_v);
    if (spec->has_latent) /* runs that both consist of */
        l->k_run = l->v_run = run_of(kv->type_k, spec->head_dim_k | spec->head_dim_v);
    l->k_row = kv_row_bytes(kv->type_k, spec->head_dim_k);
    l->v_row = spec->has_latent ? 0 : kv_row_bytes(l->type_v, spec->head_dim_v);
    l->k_stride = l->k_row * spec->n_head_kv;
    l->v_stride = l->v_row * spec->n_head_kv;
    l->n_slot = spec->is_sliding ? kv->n_slot : whole;
    l->k_bytes = l->k_stride * l->n_slot;
    l->v_bytes = l->v_stride * l->n_slot;
    if (reserve(&l->k, l->k_bytes, spec->is_sliding, e) != 0 ||
        pools_new(l, kv, whole, e) != 0)
        return -1;
    if (spec->has_latent)
        return 0;
    return reserve(&l->v, l->v_bytes, spec->is_sliding, e);
}

int kv_new(struct kv **out, const struct kv_spec *specs, uint32_t n_layer, enum kv_type k,
           enum kv_type v, uint32_t n_ctx, uint32_t n_slot, uint32_t window, struct err *e)
{
    struct kv *kv;

    *out = NULL;
    assert(n_slot % ATTN_BLOCK == 0);
    if (kv_check_types(specs, n_layer, k, v, e) != 0)
        return -1;
    kv = calloc(1, sizeof *kv + n_layer * sizeof kv->layers[0]);
    if (kv == NULL)
        return err_memory(e, "the table of %u KV layers", n_layer);
    kv->type_k = k;
    kv->type_v = v;
    kv->n_layer = n_layer;
    kv->n_ctx = n_ctx;
    kv->n_slot = n_slot;
    kv->window = window;
    kv->lost_page = NO_PAGE;
    for (uint32_t i = 0; i < n_layer; i++) {
        if (layer_new(&kv->layers[i], kv, &specs[i], e) != 0) {
            kv_free(kv);
            return -1;
        }
    }
    *out = kv;
    return 0;
}

void kv_touch(struct kv *kv)
{
    for (uint32_t i = 0; i < kv->n_layer; i++) {
        struct kv_layer *l = &kv->layers[i];

        if (!l->spec.is_sliding)
            continue;
        memory_touch(l->k, l->k_bytes);
        memory_touch(l->v, l->v_bytes);
    }
}

void kv_free(struct kv *kv)
{
    if (kv == NULL)
        return;
    kv_disk_close(kv);
    for (uint32_t i = 0; i < kv->n_layer; i++) {
        struct kv_layer *l = &kv->layers[i];

        if (l->k != NULL)
            munmap(l->k, l->k_bytes);
        if (l->v != NULL)
            munmap(l->v, l->v_bytes);
        for (int p = 0; p < N_POOL; p++)
            if (l->pools[p].rows != NULL)
                munmap(l->pools[p].rows, l->pools[p].bytes);
    }
    recurrent_free(kv->recurrent);
    free(kv);
}

void kv_own_recurrent(struct kv *kv, struct recurrent *r)
{
    kv->recurrent = r;
}

void kv_move_recurrent(struct kv *to, struct kv *from)
{
    to->recurrent = from->recurrent;
    from->recurrent = NULL;
    if (to->recurrent != NULL)
        recurrent_clear(to->recurrent);
}

const struct recurrent *kv_recurrent(const struct kv *kv)
{
    return kv->recurrent;
}

uint32_t kv_tokens(const struct kv *kv)
{
    return kv->n_token;
}

static uint32_t page_round(uint32_t n)
{
    return (n + KV_PAGE - 1) / KV_PAGE * KV_PAGE;
}

/* Positions of a layer in memory if the first n have pages and those from `keep` to the disk's end
 * do not. */
static uint64_t in_memory(const struct kv *kv, uint32_t n, uint32_t keep)
{
    uint32_t end = kv->disk_end < n ? kv->disk_end : n;

    return n - (end > keep ? end - keep : 0);
}

/* Bytes of pages in memory. */
static uint64_t pages_now(const struct kv *kv)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < kv->n_layer; i++) {
        const struct kv_layer *l = &kv->layers[i];

        if (kv_has_pages(l))
            sum += (l->k_stride + l->v_stride) * in_memory(kv, kv->page_end, l->keep);
    }
    return sum;
}

/* The same once n positions have pages.  Pages that are complete go to the disk before others are
 * written, so besides those that stay there are only those of a pass. */
static uint64_t pages_then(const struct kv *kv, uint32_t n)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < kv->n_layer; i++) {
        const struct kv_layer *l = &kv->layers[i];
        uint64_t positions = in_memory(kv, n, l->want), most;

        most = kv->disk != NULL && l->want < UINT32_MAX ? (uint64_t)l->want + kv_disk_tail(kv)
                                                        : UINT64_MAX;
        if (kv_has_pages(l))
            sum += (l->k_stride + l->v_stride) * (positions < most ? positions : most);
    }
    return sum;
}

static uint64_t index_page_bytes(const struct kv *kv)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < kv->n_layer; i++)
        sum += kv_index_page_bytes(&kv->layers[i].spec, kv->type_k);
    return sum;
}

uint64_t kv_grow_bytes(const struct kv *kv, uint32_t n)
{
    uint32_t end = page_round(kv->n_token + n);
    uint64_t now = pages_now(kv), then, index = 0;

    if (end < kv->page_end)
        end = kv->page_end;
    then = pages_then(kv, end);
    index = (end - kv->page_end) / KV_PAGE * index_page_bytes(kv);
    return (then > now ? then - now : 0) + index;
}

/* Fetch the memory of positions [from .. to), which are written next, except that of pages on the
 * disk. */
static void fetch_pages(const struct kv *kv, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < kv->n_layer; i++) {
        const struct kv_layer *l = &kv->layers[i];

        for (int p = 0; p < N_POOL; p++)
            if (l->pools[p].row > 0)
                memory_fetch(l->pools[p].rows + from / l->pools[p].block * l->pools[p].row,
                             (to - from) / l->pools[p].block * l->pools[p].row);
        for (uint32_t at = from; at < to && kv_has_pages(l); at += KV_PAGE) {
            if (kv_is_on_disk(kv, l, at))
                continue;
            memory_fetch(l->k + at * l->k_stride, KV_PAGE * l->k_stride);
            if (l->v != NULL) /* latent values are a part of the keys */
                memory_fetch(l->v + at * l->v_stride, KV_PAGE * l->v_stride);
        }
    }
}

void kv_begin(struct kv *kv, uint32_t n)
{
    uint32_t end = kv->n_token + n;

    assert(end <= kv->n_ctx && kv->n_token >= kv->disk_end && kv->lost_page == NO_PAGE);
    if (end > kv->ring_end)
        kv->ring_end = end;
    if (page_round(end) > kv->page_end) {
        fetch_pages(kv, kv->page_end, page_round(end));
        kv->page_end = page_round(end);
    }
}

void kv_commit(struct kv *kv, uint32_t n)
{
    kv->n_token += n;
    if (kv->recurrent != NULL)
        recurrent_commit(kv->recurrent);
    assert(kv->n_token <= kv->ring_end);
}

void kv_write(struct kv *kv, const struct kernels *kern, uint32_t layer, uint32_t pos, float *k,
              float *v)
{
    struct kv_layer *l = &kv->layers[layer];
    uint32_t slot = l->spec.is_sliding ? pos % l->n_slot : pos;
    unsigned char *to_k = l->k + slot * l->k_stride;
    unsigned char *to_v = l->spec.has_latent ? NULL : l->v + slot * l->v_stride;

    if (l->k_run > 0)
        kern->rotate(k, (size_t)l->spec.n_head_kv * l->spec.head_dim_k, l->k_run);
    if (l->v_run > 0 && !l->spec.has_latent)
        kern->rotate(v, (size_t)l->spec.n_head_kv * l->spec.head_dim_v, l->v_run);
    for (uint32_t h = 0; h < l->spec.n_head_kv; h++) {
        kern->kv_store(kv->type_k, k + (size_t)h * l->spec.head_dim_k, l->spec.head_dim_k,
                       to_k + h * l->k_row);
        if (l->spec.has_latent)
            continue;
        kern->kv_store(kv->type_v, v + (size_t)h * l->spec.head_dim_v, l->spec.head_dim_v,
                       to_v + h * l->v_row);
    }
}

const void *kv_keys(const struct kv *kv, uint32_t layer, uint32_t pos, uint32_t head,
                    size_t *stride)
{
    const struct kv_layer *l = &kv->layers[layer];
    uint32_t slot = l->spec.is_sliding ? pos % l->n_slot : pos;

    *stride = l->k_stride;
    if (kv_is_on_disk(kv, l, pos))
        return kv_disk_page(kv, l, pos) + pos % KV_PAGE * l->k_stride + head * l->k_row;
    return l->k + slot * l->k_stride + head * l->k_row;
}

const void *kv_values(const struct kv *kv, uint32_t layer, uint32_t pos, uint32_t head,
                      size_t *stride)
{
    const struct kv_layer *l = &kv->layers[layer];
    uint32_t slot = l->spec.is_sliding ? pos % l->n_slot : pos;

    if (l->spec.has_latent)
        return kv_keys(kv, layer, pos, head, stride);
    *stride = l->v_stride;
    if (kv_is_on_disk(kv, l, pos))
        return kv_disk_page(kv, l, pos) + l->k_page + pos % KV_PAGE * l->v_stride +
               head * l->v_row;
    return l->v + slot * l->v_stride + head * l->v_row;
}

enum tensor_type kv_index_type(const struct kv *kv)
{
    return index_type(kv->type_k) == KV_F32 ? TYPE_F32 : TYPE_F16;
}

void kv_index_write(struct kv *kv, const struct kernels *kern, uint32_t layer, uint32_t block,
                    const float *key)
{
    struct kv_layer *l = &kv->layers[layer];

    kern->kv_store(index_type(kv->type_k), key, l->spec.index_dim,
                   l->pools[POOL_INDEX].rows + block * l->pools[POOL_INDEX].row);
}

const void *kv_index_keys(const struct kv *kv, uint32_t layer, uint32_t block)
{
    const struct kv_pool *p = &kv->layers[layer].pools[POOL_INDEX];

    return p->rows + block * p->row;
}

void kv_entry_write(struct kv *kv, const struct kernels *kern, uint32_t layer, uint32_t entry,
                    float *x)
{
    const struct kv_layer *l = &kv->layers[layer];
    const struct kv_pool *p = &l->pools[POOL_ENTRIES];

    if (l->k_run > 0)
        kern->rotate(x, l->spec.head_dim_k, l->k_run);
    kern->kv_store(kv->type_k, x, l->spec.head_dim_k, p->rows + entry * p->row);
}

const void *kv_entries(const struct kv *kv, uint32_t layer, uint32_t entry, size_t *stride)
{
    const struct kv_pool *p = &kv->layers[layer].pools[POOL_ENTRIES];

    *stride = p->row;
    return p->rows + entry * p->row;
}

enum kv_type kv_type_k(const struct kv *kv)
{
    return kv->type_k;
}

enum kv_type kv_type_v(const struct kv *kv, uint32_t layer)
{
    return kv->layers[layer].type_v;
}

uint32_t kv_run_k(const struct kv *kv, uint32_t layer)
{
    return kv->layers[layer].k_run;
}

uint32_t kv_run_v(const struct kv *kv, uint32_t layer)
{
    return kv->layers[layer].v_run;
}

static bool has_rings(const struct kv *kv)
{
    for (uint32_t i = 0; i < kv->n_layer; i++)
        if (kv->layers[i].spec.is_sliding)
            return true;
    return false;
}

/* Give back the memory after the first `used` bytes. */
static void drop_after(unsigned char *p, size_t used, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), from = (used + page - 1) / page * page;

    if (from < bytes)
        madvise(p + from, bytes - from, MADV_DONTNEED);
}

/* Give back the pages after position n. */
static void drop_pages(struct kv *kv, uint32_t n)
{
    uint32_t end = page_round(n);

    kv_disk_cut(kv, n);
    if (end >= kv->page_end)
        return;
    for (uint32_t i = 0; i < kv->n_layer; i++) {
        struct kv_layer *l = &kv->layers[i];

        for (int p = 0; p < N_POOL; p++)
            if (l->pools[p].row > 0)
                drop_after(l->pools[p].rows, end / l->pools[p].block * l->pools[p].row,
                           l->pools[p].bytes);
        if (l->spec.is_sliding)
            continue;
        drop_after(l->k, end * l->k_stride, l->k_bytes);
        drop_after(l->v, end * l->v_stride, l->v_bytes);
    }
    kv->page_end = end;
}

/* The oldest position in the rings. */
static uint32_t ring_begin(const struct kv *kv)
{
    uint32_t lost = kv->ring_end > kv->n_slot ? kv->ring_end - kv->n_slot : 0;

    return lost > kv->ring_from ? lost : kv->ring_from;
}

/* The number of positions before n that a sliding layer sees from n. */
static uint32_t seen_before(const struct kv *kv, uint32_t n)
{
    uint32_t most = kv->window > 0 ? kv->window - 1 : 0;

    return n < most ? n : most;
}

bool kv_rewind(struct kv *kv, uint32_t n)
{
    if (n >= kv->n_token)
        return n == kv->n_token;
    if (has_rings(kv) && seen_before(kv, n) > 0 && n - seen_before(kv, n) < ring_begin(kv))
        return false;
    if (kv->recurrent != NULL && n > 0)
        return false;
    if (kv->recurrent != NULL)
        recurrent_clear(kv->recurrent);
    kv->n_token = n;
    if (n == 0)
        kv->ring_end = kv->ring_from = 0;
    drop_pages(kv, n);
    return true;
}

void kv_take_back(struct kv *kv, uint32_t n)
{
    assert(n <= kv->n_token && kv->n_token - n >= kv->disk_end);
    kv->n_token -= n;
    assert(!has_rings(kv) || seen_before(kv, kv->n_token) == 0 ||
           kv->n_token - seen_before(kv, kv->n_token) >= ring_begin(kv));
    if (kv->recurrent != NULL)
        recurrent_take_back(kv->recurrent);
}

uint64_t kv_copy_bytes_at(const struct kv *kv, uint32_t n)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < kv->n_layer; i++)
        if (kv->layers[i].spec.is_sliding)
            sum += kv->layers[i].k_stride + kv->layers[i].v_stride;
    sum *= seen_before(kv, n);
    return kv->recurrent != NULL ? sum + recurrent_copy_bytes(recurrent_spec(kv->recurrent))
                                 : sum;
}

uint64_t kv_copy_bytes(const struct kv *kv)
{
    return kv_copy_bytes_at(kv, kv->n_ctx);
}

int kv_each_ring(const struct kv *kv, uint32_t from, uint32_t n, kv_bytes_fn *fn, void *ctx,
                 struct err *e)
{
    for (uint32_t i = 0; i < kv->n_layer; i++) {
        const struct kv_layer *l = &kv->layers[i];

        for (uint32_t pos = from; l->spec.is_sliding && pos < n; pos++) {
            uint32_t slot = pos % l->n_slot;

            if (fn(ctx, l->k + slot * l->k_stride, l->k_stride, e) != 0)
                return -1;
            if (!l->spec.has_latent &&
                fn(ctx, l->v + slot * l->v_stride, l->v_stride, e) != 0)
                return -1;
        }
    }
    return 0;
}

int kv_each_state(const struct kv *kv, kv_bytes_fn *fn, void *ctx, struct err *e)
{
    return kv->recurrent != NULL ? recurrent_each(kv->recurrent, fn, ctx, e) : 0;
}

/* Pass the keys and values of the positions that n sees to fn, layer by layer, then the
 * recurrent state. */
static int each_seen(const struct kv *kv, uint32_t n, kv_bytes_fn *fn, void *ctx, struct err *e)
{
    if (kv_each_ring(kv, n - seen_before(kv, n), n, fn, ctx, e) != 0)
        return -1;
    return kv_each_state(kv, fn, ctx, e);
}

int kv_copy_save(const struct kv *kv, kv_bytes_fn *fn, void *ctx, struct err *e)
{
    return each_seen(kv, kv->n_token, fn, ctx, e);
}

int kv_copy_restore(struct kv *kv, uint32_t n, kv_bytes_fn *fn, void *ctx, struct err *e)
{
    int rc;

    assert(n <= kv->n_token);
    rc = each_seen(kv, n, fn, ctx, e);
    /* A copy that fails part way leaves the rings empty. */
    kv->n_token = rc == 0 ? n : 0;
    if (rc != 0 && kv->recurrent != NULL)
        recurrent_clear(kv->recurrent);
    kv->ring_end = kv->n_token;
    kv->ring_from = kv->n_token - seen_before(kv, kv->n_token);
    drop_pages(kv, kv->n_token);
    return rc;
}

/* --- the store as bytes --- */

uint32_t kv_page_count(const struct kv *kv, uint32_t n)
{
    bool has_pages = index_page_bytes(kv) > 0;

    for (uint32_t i = 0; i < kv->n_layer; i++)
        has_pages |= kv_has_pages(&kv->layers[i]);
    return has_pages ? page_round(n) / KV_PAGE : 0;
}

uint64_t kv_page_bytes_at(const struct kv *kv, uint32_t n)
{
    uint64_t sum = page_round(n) / KV_PAGE * index_page_bytes(kv);

    for (uint32_t i = 0; i < kv->n_layer; i++)
        if (kv_has_pages(&kv->layers[i]))
            sum += page_round(n) * (kv->layers[i].k_stride + kv->layers[i].v_stride);
    return sum;
}

/* Rows [from .. to) of `row` bytes. */
static int each_rows(unsigned char *rows, size_t row, uint32_t from, uint32_t to,
                     kv_bytes_fn *fn, void *ctx, struct err *e)
{
    return row > 0 ? fn(ctx, rows + from * row, (to - from) * row, e) : 0;
}

/* The same of a page on the disk, which is read, or filled and written. */
static int each_row_on_disk(const struct kv *kv, const struct kv_layer *l, uint32_t page,
                            uint32_t n, kv_bytes_fn *fn, void *ctx, struct err *e)
{
    unsigned char *rows =
        kv->is_filling ? kv_disk_spare(kv) : kv_disk_fetch(kv, l, page, e);

    if (rows == NULL || each_rows(rows, l->k_stride, 0, n, fn, ctx, e) != 0 ||
        each_rows(rows + l->k_page, l->v_stride, 0, n, fn, ctx, e) != 0)
        return -1;
    return kv->is_filling ? kv_disk_store(kv, l, page, e) : 0;
}

int kv_each_page(const struct kv *kv, uint32_t page, uint32_t n, kv_bytes_fn *fn, void *ctx,
                 struct err *e)
{
    uint32_t from = page * KV_PAGE, to = n - from < KV_PAGE ? n : from + KV_PAGE;

    if (kv->is_filling)
        fetch_pages(kv, from, from + KV_PAGE);
    for (uint32_t i = 0; i < kv->n_layer; i++) {
        const struct kv_layer *l = &kv->layers[i];

        for (int p = 0; p < N_POOL; p++) {
            const struct kv_pool *pool = &l->pools[p];

            /* A block of which only some positions are held may have a row. */
            if (pool->row > 0 &&
                each_rows(pool->rows, pool->row, from / pool->block,
                          (to + pool->block - 1) / pool->block, fn, ctx, e) != 0)
                return -1;
        }
        if (l->spec.is_sliding)
            continue;
        if (kv_is_on_disk(kv, l, from)) {
            if (each_row_on_disk(kv, l, page, to - from, fn, ctx, e) != 0)
                return -1;
            continue;
        }
        if (each_rows(l->k, l->k_stride, from, to, fn, ctx, e) != 0 ||
            each_rows(l->v, l->v_stride, from, to, fn, ctx, e) != 0)
            return -1;
    }
    return 0;
}

uint32_t kv_ring_from(const struct kv *kv)
{
    return has_rings(kv) ? ring_begin(kv) : kv->n_token;
}

uint32_t kv_ring_needed(const struct kv *kv, uint32_t n)
{
    return has_rings(kv) ? n - seen_before(kv, n) : n;
}

void kv_fill_begin(struct kv *kv, uint32_t n)
{
    assert(kv->n_token == 0 && n <= kv->n_ctx);
    if (page_round(n) > kv->page_end)
        kv->page_end = page_round(n);
    kv->is_filling = true;
    if (kv->disk != NULL)
        kv->disk_end = n / KV_PAGE * KV_PAGE;
}

void kv_fill_end(struct kv *kv, uint32_t n, uint32_t ring_from)
{
    kv->is_filling = false;
    kv->n_token = kv->ring_end = n;
    kv->ring_from = ring_from;
}

uint64_t kv_resize_bytes(const struct kv *kv, uint32_t n_slot)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < kv->n_layer; i++) {
        const struct kv_layer *l = &kv->layers[i];
        uint64_t stride = l->k_stride > l->v_stride ? l->k_stride : l->v_stride;

        if (l->spec.is_sliding && l->n_slot != n_slot && stride * n_slot > most)
            most = stride * n_slot;
    }
    return most;
}

/* Reserve rings of n_slot slots for the layers that change. */
static int reserve_rings(const struct kv *kv, uint32_t n_slot, struct kv_layer *new,
                         struct err *e)
{
    for (uint32_t i = 0; i < kv->n_layer; i++) {
        const struct kv_layer *l = &kv->layers[i];

        if (!l->spec.is_sliding || l->n_slot == n_slot)
            continue;
        new[i].n_slot = n_slot;
        new[i].k_bytes = l->k_stride *n_slot;
        new[i].v_bytes = l->v_stride *n_slot;
        if (reserve(&new[i].k, new[i].k_bytes, true, e) != 0 ||
            (!l->spec.has_latent && reserve(&new[i].v, new[i].v_bytes, true, e) != 0))
            return -1;
    }
    return 0;
}

/* Unmap the rings of a change that failed. */
static void unmap_rings(struct kv_layer *layers, uint32_t n_layer)
{
    for (uint32_t i = 0; i < n_layer; i++) {
        if (layers[i].k != NULL)
            munmap(layers[i].k, layers[i].k_bytes);
        if (layers[i].v != NULL)
            munmap(layers[i].v, layers[i].v_bytes);
    }
}

/* Copy the positions from `from` on to a ring of another size, and unmap the old one. */
static void move_ring(const struct kv *kv, uint32_t from, size_t stride, uint32_t n_before,
                      unsigned char *before, uint32_t n_slot, unsigned char *ring)
{
    memory_touch(ring, stride * n_slot);
    for (uint32_t pos = from; pos < kv->n_token; pos++)
        memcpy(ring + pos % n_slot * stride, before + pos % n_before * stride, stride);
    munmap(before, stride * n_before);
}

static void move_rings(struct kv *kv, struct kv_layer *new)
{
    for (uint32_t i = 0; i < kv->n_layer; i++) {
        struct kv_layer *l = &kv->layers[i], *to = &new[i];

        if (to->k == NULL)
            continue;
        move_ring(kv, kv->ring_from, l->k_stride, l->n_slot, l->k, to->n_slot, to->k);
        if (!l->spec.has_latent)
            move_ring(kv, kv->ring_from, l->v_stride, l->n_slot, l->v, to->n_slot, to->v);
        l->k = to->k;
        l->v = to->v;
        l->k_bytes = to->k_bytes;
        l->v_bytes = to->v_bytes;
        l->n_slot = to->n_slot;
    }
}

/* Change the reserved addresses; mremap() moves written pages without copying, and cannot fail
 * if they get fewer. */
static int resize_pages(unsigned char **pages, size_t *bytes, size_t new_bytes, struct err *e)
{
    void *p;

    if (new_bytes == *bytes)
        return 0;
    p = mremap(*pages, *bytes, new_bytes, MREMAP_MAYMOVE);
    if (p == MAP_FAILED)
        return err_sys(e, "cannot map %zu bytes for keys and values", new_bytes);
    *pages = p;
    *bytes = new_bytes;
    return 0;
}

static int resize_global(struct kv *kv, uint32_t n_ctx, struct err *e)
{
    uint32_t n_slot = page_round(n_ctx);

    for (uint32_t i = 0; i < kv->n_layer; i++) {
        struct kv_layer *l = &kv->layers[i];

        for (int p = 0; p < N_POOL; p++)
            if (l->pools[p].row > 0 &&
                resize_pages(&l->pools[p].rows, &l->pools[p].bytes,
                             l->pools[p].row * (n_slot / l->pools[p].block), e) != 0)
                return -1;
        if (l->spec.is_sliding)
            continue;
        if (resize_pages(&l->k, &l->k_bytes, l->k_stride * n_slot, e) != 0 ||
            (l->v != NULL && resize_pages(&l->v, &l->v_bytes, l->v_stride * n_slot, e) != 0))
            return -1;
        l->n_slot = n_slot;
    }
    return 0;
}

/* Positions that do not fit a smaller ring, and those after the held ones, are lost. */
static void cut_rings(struct kv *kv, uint32_t n_slot)
{
    uint32_t from = ring_begin(kv), least = kv->n_slot < n_slot ? kv->n_slot : n_slot;

    if (kv->n_token > least && from < kv->n_token - least)
        from = kv->n_token - least;
    kv->ring_from = from < kv->n_token ? from : kv->n_token;
    kv->ring_end = kv->n_token;
}

int kv_resize(struct kv *kv, uint32_t n_ctx, uint32_t n_slot, struct err *e)
{
    struct kv_layer *new = calloc(kv->n_layer + 1, sizeof *new);
    struct err ignored = ERR_INIT;

    assert(n_slot % ATTN_BLOCK == 0 && n_ctx >= kv->n_token);
    if (new == NULL)
        return err_memory(e, "the table of %u KV layers", kv->n_layer);
    if (reserve_rings(kv, n_slot, new, e) != 0 || resize_global(kv, n_ctx, e) != 0) {
        (void)resize_global(kv, kv->n_ctx, &ignored);
        unmap_rings(new, kv->n_layer);
        free(new);
        return -1;
    }
    if (kv->n_slot != n_slot)
        cut_rings(kv, n_slot);
    move_rings(kv, new);
    free(new);
    kv->n_ctx = n_ctx;
    kv->n_slot = n_slot;
    if (kv->page_end > page_round(n_ctx))
        kv->page_end = page_round(n_ctx);
    return 0;
}

uint64_t kv_layer_bytes(const struct kv *kv, uint32_t layer)
{
    const struct kv_layer *l = &kv->layers[layer];
    uint64_t positions =
        l->spec.is_sliding ? l->n_slot : in_memory(kv, kv->page_end, l->keep);

    return positions * (l->k_stride + l->v_stride) +
           kv->page_end / KV_PAGE * kv_index_page_bytes(&l->spec, kv->type_k);
}

uint64_t kv_global_bytes(const struct kv *kv)
{
    return pages_now(kv) + kv_disk_memory(kv);
}

uint64_t kv_index_bytes(const struct kv *kv)
{
    return kv->page_end / KV_PAGE * index_page_bytes(kv);
}

uint64_t kv_page_bytes(const struct kv *kv)
{
    return kv_global_bytes(kv) + kv_index_bytes(kv);
}

uint64_t kv_sliding_bytes(const struct kv *kv)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < kv->n_layer; i++)
        if (kv->layers[i].spec.is_sliding)
            sum += (uint64_t)kv->layers[i].k_bytes + kv->layers[i].v_bytes;
    return sum;
}

uint64_t kv_reserved_bytes(const struct kv *kv)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < kv->n_layer; i++) {
        const struct kv_layer *l = &kv->layers[i];

        sum += (uint64_t)l->k_bytes + l->v_bytes;
        for (int p = 0; p < N_POOL; p++)
            sum += l->pools[p].bytes;
    }
    return sum;
}

uint64_t kv_recurrent_bytes(const struct kv *kv)
{
    return kv->recurrent != NULL ? recurrent_bytes(recurrent_spec(kv->recurrent)) : 0;
}
