/*
 * Pages on the disk, see kv.h.
 *
 *     file:   | page 0 of all layers | page 1 of all layers | ...    holes for those in memory
 *     page:   | keys of a layer | values |                           both rounded up to BLOCK
 *
 * The file has no name and is read and written past the page cache.  A page is written once, when
 * it is complete; after a rewind, the one that is not complete any longer is read back.
 */
#include "config.h"

#include "engine/kv/kv_internal.h"

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/units.h"

#define BLOCK 4096 /* of direct reads and writes */

struct kv_disk {
    int fd;
    uint64_t all_bytes; /* of a page of all layers */
    void *mapping;      /* slots are inside */
    unsigned char *slots;
    size_t slot_bytes, mapping_bytes;
    uint32_t n_slot, tail;
    uint32_t view; /* the slot of the first page on the disk, in the layer that attends */
    uint64_t written;
};

static size_t whole_blocks(uint64_t bytes)
{
    return (size_t)align_up(bytes, BLOCK);
}

uint64_t kv_disk_page_bytes(const struct kv_spec *spec, enum kv_type k, enum kv_type v)
{
    uint64_t keys = (uint64_t)spec->n_head_kv * kv_row_bytes(k, spec->head_dim_k) * KV_PAGE;

    return whole_blocks(keys) +
           whole_blocks(kv_token_bytes(spec, k, v) * KV_PAGE - keys);
}

uint64_t kv_disk_slot_bytes(const struct kv_spec *specs, uint32_t n_layer, enum kv_type k,
                            enum kv_type v)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < n_layer; i++) {
        uint64_t bytes = specs[i].is_sliding ? 0 : kv_disk_page_bytes(&specs[i], k, v);

        most = bytes > most ? bytes : most;
    }
    return most;
}

/* --- the file --- */

static int open_file(const char *folder)
{
    return open(folder, O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);
}

const char *kv_disk_why_not(const char *folder, uint64_t *free_bytes)
{
    const char *why = NULL;
    struct statvfs space;
    struct statfs fs;
    int fd;

    *free_bytes = 0;
    if (folder == NULL)
        return "there is no cache folder";
    fd = open_file(folder);
    if (fd < 0)
        return errno == EINVAL || errno == EOPNOTSUPP
                   ? "the cache folder has no direct I/O or no files without a name"
                   : "nothing can be written to the cache folder";
    if (fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC))
        why = "the cache folder is in memory, not on a disk";
    else if (fstatvfs(fd, &space) == 0)
        *free_bytes = (uint64_t)space.f_bavail * space.f_frsize;
    close(fd);
    return why;
}

/*
 * In huge pages, unless the slots are smaller than one: a direct read has a segment for each page,
 * and the kernel divides one that has many.  Reads of 1 MiB into small pages had 1.4 GB/s where
 * those into huge ones had 10.
 */
static int make_slots(struct kv_disk *d, uint32_t n_slot, struct err *e)
{
    size_t bytes = (size_t)whole_huge_pages(n_slot * d->slot_bytes);
    uintptr_t at;

    d->mapping_bytes = bytes + HUGE_BYTES;
    d->mapping = mmap(NULL, d->mapping_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (d->mapping == MAP_FAILED) {
        d->mapping = NULL;
        return err_sys(e, "cannot map %zu bytes for keys and values", bytes);
    }
    at = (uintptr_t)d->mapping;
    d->slots = (unsigned char *)d->mapping + (align_up(at, HUGE_BYTES) - at);
    madvise(d->slots, bytes, bytes >= HUGE_BYTES ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    d->n_slot = n_slot;
    return 0;
}

static void lay_out(struct kv *kv)
{
    struct kv_disk *d = kv->disk;

    for (uint32_t i = 0; i < kv->n_layer; i++) {
        struct kv_layer *l = &kv->layers[i];

        if (!kv_has_pages(l))
            continue;
        l->k_page = whole_blocks(l->k_stride * KV_PAGE);
        l->v_page = whole_blocks(l->v_stride * KV_PAGE);
        l->page_at = d->all_bytes;
        d->all_bytes += l->k_page + l->v_page;
        if (l->k_page + l->v_page > d->slot_bytes)
            d->slot_bytes = l->k_page + l->v_page;
    }
}

int kv_disk_open(struct kv *kv, const struct kv_disk_options *o, struct err *e)
{
    struct kv_disk *d = calloc(1, sizeof *d);

    assert(kv->disk == NULL && o->n_slot >= 2);
    if (d == NULL)
        return err_memory(e, "keys and values on the disk");
    kv->disk = d;
    d->tail = o->tail;
    lay_out(kv);
    d->fd = open_file(o->folder);
    if (d->fd < 0) {
        err_sys(e, "cannot make a file for keys and values");
        err_at(e, o->folder, ERR_NO_OFFSET, NULL);
    }
    if (d->fd < 0 || make_slots(d, o->n_slot, e) != 0) {
        kv_disk_close(kv);
        return -1;
    }
    return 0;
}

void kv_disk_set_tail(struct kv *kv, uint32_t tail)
{
    kv->disk->tail = tail;
}

void kv_disk_close(struct kv *kv)
{
    struct kv_disk *d = kv->disk;

    if (d == NULL)
        return;
    if (d->fd >= 0)
        close(d->fd);
    if (d->mapping != NULL)
        munmap(d->mapping, d->mapping_bytes);
    free(d);
    kv->disk = NULL;
    kv->disk_end = 0;
    kv->lost_page = NO_PAGE;
    for (uint32_t i = 0; i < kv->n_layer; i++)
        kv->layers[i].keep = kv->layers[i].want = UINT32_MAX;
}

int kv_disk_fd(const struct kv *kv)
{
    return kv->disk != NULL ? kv->disk->fd : -1;
}

uint32_t kv_disk_slots(const struct kv *kv)
{
    return kv->disk != NULL ? kv->disk->n_slot : 0;
}

uint32_t kv_disk_tail(const struct kv *kv)
{
    return kv->disk != NULL ? kv->disk->tail : 0;
}

uint64_t kv_disk_memory(const struct kv *kv)
{
    return kv->disk != NULL ? whole_huge_pages(kv->disk->n_slot * kv->disk->slot_bytes) : 0;
}

uint64_t kv_disk_written(const struct kv *kv)
{
    return kv->disk != NULL ? kv->disk->written : 0;
}

uint64_t kv_disk_file_bytes(const struct kv *kv)
{
    struct stat st;

    return kv->disk != NULL && fstat(kv->disk->fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

uint64_t kv_disk_bytes(const struct kv *kv)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < kv->n_layer; i++) {
        const struct kv_layer *l = &kv->layers[i];

        if (kv_has_pages(l) && kv->disk_end > l->keep)
            sum += (kv->disk_end - l->keep) / KV_PAGE * (uint64_t)(l->k_page + l->v_page);
    }
    return sum;
}

/* --- one page --- */

static unsigned char *slot_of(const struct kv_disk *d, uint32_t slot)
{
    return d->slots + slot % d->n_slot * d->slot_bytes;
}

static uint64_t offset_of(const struct kv *kv, const struct kv_layer *l, uint32_t page)
{
    return page * kv->disk->all_bytes + l->page_at;
}

unsigned char *kv_disk_page(const struct kv *kv, const struct kv_layer *l, uint32_t pos)
{
    return slot_of(kv->disk, kv->disk->view + (pos - l->keep) / KV_PAGE);
}

struct kv_disk_range kv_disk_range(const struct kv *kv, uint32_t layer, uint32_t page,
                                   uint32_t slot)
{
    const struct kv_layer *l = &kv->layers[layer];

    return (struct kv_disk_range){ .offset = offset_of(kv, l, page),
                                   .bytes = l->k_page + l->v_page,
                                   .dst = slot_of(kv->disk, slot) };
}

void kv_disk_view(struct kv *kv, uint32_t slot)
{
    kv->disk->view = slot;
}

void kv_disk_positions(const struct kv *kv, uint32_t layer, uint32_t *from, uint32_t *to)
{
    const struct kv_layer *l = &kv->layers[layer];

    *from = l->keep;
    *to = kv_has_pages(l) ? kv->disk_end : 0;
}

unsigned char *kv_disk_spare(const struct kv *kv)
{
    return kv->disk->slots;
}

unsigned char *kv_disk_fetch(const struct kv *kv, const struct kv_layer *l, uint32_t page,
                             struct err *e)
{
    size_t bytes = l->k_page + l->v_page, got = 0;
    uint64_t from = offset_of(kv, l, page);

    while (got < bytes) {
        ssize_t n = pread(kv->disk->fd, kv->disk->slots + got, bytes - got, (off_t)(from + got));

        if (n < 0 && errno == EINTR)
            continue;
        if (n > 0 && n % BLOCK != 0) /* direct reads go on at a block */
            n -= n % BLOCK;
        if (n <= 0) {
            errno = n == 0 ? EIO : errno;
            err_sys(e, "could not read keys and values back from the disk");
            e->code = ERR_IO;
            return NULL;
        }
        got += (size_t)n;
    }
    return kv->disk->slots;
}

int kv_disk_store(const struct kv *kv, const struct kv_layer *l, uint32_t page, struct err *e)
{
    size_t bytes = l->k_page + l->v_page, put = 0;
    uint64_t to = offset_of(kv, l, page);

    while (put < bytes) {
        ssize_t n = pwrite(kv->disk->fd, kv->disk->slots + put, bytes - put, (off_t)(to + put));

        if (n < 0 && errno == EINTR)
            continue;
        if (n > 0 && n % BLOCK != 0)
            n -= n % BLOCK;
        if (n <= 0) {
            errno = n == 0 ? ENOSPC : errno;
            err_sys(e, "could not write keys and values to the disk; a smaller context or "
                       "--kv-disk never needs none");
            e->code = ERR_IO;
            return -1;
        }
        put += (size_t)n;
    }
    kv->disk->written += bytes;
    return 0;
}

static int write_page(const struct kv *kv, const struct kv_layer *l, uint32_t page,
                      struct err *e)
{
    unsigned char *slot = kv_disk_spare(kv);
    size_t k = l->k_stride * KV_PAGE, v = l->v_stride * KV_PAGE;

    memcpy(slot, l->k + page * k, k);
    memset(slot + k, 0, l->k_page - k);
    if (v > 0)
        memcpy(slot + l->k_page, l->v + page * v, v);
    memset(slot + l->k_page + v, 0, l->v_page - v);
    return kv_disk_store(kv, l, page, e);
}

static int read_page(const struct kv *kv, const struct kv_layer *l, uint32_t page, struct err *e)
{
    const unsigned char *slot = kv_disk_fetch(kv, l, page, e);
    size_t k = l->k_stride * KV_PAGE, v = l->v_stride * KV_PAGE;

    if (slot == NULL)
        return -1;
    memcpy(l->k + page * k, slot, k);
    if (v > 0)
        memcpy(l->v + page * v, slot + l->k_page, v);
    return 0;
}

/* --- pages out and in --- */

/* Give back the memory of positions from .. to - 1.  Those from l->keep on are on the disk, so a
 * page of the system that has the end of the one before goes, too. */
static void drop_rows(unsigned char *rows, size_t stride, uint32_t keep, uint32_t from, uint32_t to)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), first = from * stride / page * page;
    size_t least = (keep * stride + page - 1) / page * page, end = to * stride / page * page;

    first = first > least ? first : least;
    if (first < end)
        madvise(rows + first, end - first, MADV_DONTNEED);
}

static void drop_positions(const struct kv_layer *l, uint32_t keep, uint32_t from, uint32_t to)
{
    drop_rows(l->k, l->k_stride, keep, from, to);
    if (l->v_stride > 0)
        drop_rows(l->v, l->v_stride, keep, from, to);
}

void kv_disk_want(struct kv *kv, uint32_t layer, uint32_t keep)
{
    if (kv_has_pages(&kv->layers[layer]))
        kv->layers[layer].want = keep;
}

/* Write the page after the last one on the disk. */
static int next_page_out(struct kv *kv, struct err *e)
{
    uint32_t at = kv->disk_end;

    for (uint32_t i = 0; i < kv->n_layer; i++) {
        const struct kv_layer *l = &kv->layers[i];

        if (kv_has_pages(l) && l->keep <= at && write_page(kv, l, at / KV_PAGE, e) != 0)
            return -1;
    }
    kv->disk_end = at + KV_PAGE;
    for (uint32_t i = 0; i < kv->n_layer; i++) {
        const struct kv_layer *l = &kv->layers[i];

        if (kv_has_pages(l) && l->keep <= at)
            drop_positions(l, l->keep, at, kv->disk_end);
    }
    return 0;
}

/* Let a layer keep fewer pages, the last one first.  The page that a rewind left incomplete is
 * perhaps only in memory: it is written, too, and comes back with the others. */
static int keep_less(struct kv *kv, struct kv_layer *l, struct err *e)
{
    uint32_t held = kv->disk_end + (kv->lost_page != NO_PAGE ? KV_PAGE : 0);

    if (l->keep > held)
        l->keep = l->want > held ? l->want : held;
    while (l->keep > l->want) {
        uint32_t at = l->keep - KV_PAGE;

        if (write_page(kv, l, at / KV_PAGE, e) != 0)
            return -1;
        l->keep = at;
        drop_positions(l, at, at, kv->disk_end);
    }
    return 0;
}

/* Whether a layer cannot keep the page at `at`. */
static bool is_full(const struct kv *kv, uint32_t at)
{
    for (uint32_t i = 0; i < kv->n_layer; i++)
        if (kv_has_pages(&kv->layers[i]) && kv->layers[i].want <= at)
            return true;
    return false;
}

int kv_disk_out(struct kv *kv, struct err *e)
{
    uint32_t complete = kv->n_token / KV_PAGE * KV_PAGE;

    if (kv->disk == NULL)
        return 0;
    /* Once all complete pages have a place in memory again, a full disk stops nothing. */
    while (kv->disk_end < complete && is_full(kv, complete - KV_PAGE))
        if (next_page_out(kv, e) != 0)
            return -1;
    for (uint32_t i = 0; i < kv->n_layer; i++) {
        struct kv_layer *l = &kv->layers[i];

        if (kv_has_pages(l) && l->keep > l->want && keep_less(kv, l, e) != 0)
            return -1;
    }
    return 0;
}

static int keep_more(struct kv *kv, struct kv_layer *l, struct err *e)
{
    for (uint32_t at = l->keep; at < l->want && at < kv->disk_end; at += KV_PAGE) {
        if (read_page(kv, l, at / KV_PAGE, e) == 0)
            continue;
        drop_positions(l, l->keep, l->keep, at + KV_PAGE);
        return -1;
    }
    l->keep = l->want;
    return 0;
}

int kv_disk_in(struct kv *kv, struct err *e)
{
    for (uint32_t i = 0; kv->lost_page != NO_PAGE && i < kv->n_layer; i++) {
        const struct kv_layer *l = &kv->layers[i];

        if (kv_is_on_disk(kv, l, kv->lost_page * KV_PAGE) &&
            read_page(kv, l, kv->lost_page, e) != 0)
            return -1;
    }
    kv->lost_page = NO_PAGE;
    for (uint32_t i = 0; kv->disk != NULL && i < kv->n_layer; i++) {
        struct kv_layer *l = &kv->layers[i];

        if (kv_has_pages(l) && l->want > l->keep && keep_more(kv, l, e) != 0)
            return -1;
    }
    return 0;
}

void kv_disk_cut(struct kv *kv, uint32_t n)
{
    if (kv->disk == NULL)
        return;
    if (kv->lost_page != NO_PAGE && n <= kv->lost_page * KV_PAGE)
        kv->lost_page = NO_PAGE;
    if (n >= kv->disk_end)
        return;
    kv->disk_end = n / KV_PAGE * KV_PAGE;
    if (n % KV_PAGE != 0)
        kv->lost_page = n / KV_PAGE;
    if (n == 0 && ftruncate(kv->disk->fd, 0) != 0)
        return; /* its space is used again */
}
