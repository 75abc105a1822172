#include "config.h"

#include "engine/session/copies.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/arena.h"
#include "engine/base/units.h"

#define MAX_COPY 16
/* A larger copy is not made at the beginning of a turn: evaluating again costs less. */
#define MAX_BYTES (256 * MIB)
#define PIECE     ((size_t)64 << 10) /* bytes of one write */

struct copy {
    uint32_t n_token;
    size_t bytes;        /* written */
    struct arena memory; /* base NULL: the copy is in the file */
    int place;           /* in the file: offset / MAX_BYTES */
};

struct copies {
    struct kv *kv;
    char *folder; /* NULL: none */
    uint32_t n, n_memory;
    struct copy copy[MAX_COPY]; /* by n_token, ascending */
    int fd;                     /* -1: no file yet */
};

int copies_new(struct copies **out, struct kv *kv, const char *folder, struct err *e)
{
    struct copies *c = calloc(1, sizeof *c);

    *out = NULL;
    if (c != NULL && folder != NULL)
        c->folder = strdup(folder);
    if (c == NULL || (folder != NULL && c->folder == NULL)) {
        free(c);
        return err_memory(e, "the table of turns");
    }
    c->kv = kv;
    c->fd = -1;
    *out = c;
    return 0;
}

void copies_free(struct copies *c)
{
    if (c == NULL)
        return;
    for (uint32_t i = 0; i < c->n; i++)
        arena_unmap(&c->copy[i].memory);
    if (c->fd >= 0)
        close(c->fd);
    free(c->folder);
    free(c);
}

/* --- in memory --- */

struct cursor {
    unsigned char *at;
};

static int to_memory(void *ctx, void *bytes, size_t n, struct err *e)
{
    struct cursor *to = ctx;

    (void)e;
    memcpy(to->at, bytes, n);
    to->at += n;
    return 0;
}

static int from_memory(void *ctx, void *bytes, size_t n, struct err *e)
{
    struct cursor *from = ctx;

    (void)e;
    memcpy(bytes, from->at, n);
    from->at += n;
    return 0;
}

/* --- in the file --- */

struct piece {
    int fd;
    uint64_t offset; /* of the piece in the file */
    size_t used;     /* bytes of buf that were filled, or consumed */
    unsigned char *buf;
};

static int write_piece(struct piece *p, struct err *e)
{
    if (pwrite(p->fd, p->buf, PIECE, (off_t)p->offset) != (ssize_t)PIECE)
        return err_sys(e, "could not write a copy of the sliding layers");
    p->offset += PIECE;
    p->used = 0;
    return 0;
}

static int read_piece(struct piece *p, struct err *e)
{
    if (pread(p->fd, p->buf, PIECE, (off_t)p->offset) != (ssize_t)PIECE)
        return err_sys(e, "could not read a copy of the sliding layers");
    p->offset += PIECE;
    p->used = 0;
    return 0;
}

static int to_file(void *ctx, void *bytes, size_t n, struct err *e)
{
    struct piece *p = ctx;
    const unsigned char *from = bytes;

    while (n > 0) {
        size_t part = n < PIECE - p->used ? n : PIECE - p->used;

        memcpy(p->buf + p->used, from, part);
        p->used += part;
        from += part;
        n -= part;
        if (p->used == PIECE && write_piece(p, e) != 0)
            return -1;
    }
    return 0;
}

static int from_file(void *ctx, void *bytes, size_t n, struct err *e)
{
    struct piece *p = ctx;
    unsigned char *to = bytes;

    while (n > 0) {
        size_t part;

        if (p->used == PIECE && read_piece(p, e) != 0)
            return -1;
        part = n < PIECE - p->used ? n : PIECE - p->used;
        memcpy(to, p->buf + p->used, part);
        p->used += part;
        to += part;
        n -= part;
    }
    return 0;
}

/* Only on a disk and past the page cache: any other file would take memory again. */
static bool open_file(struct copies *c)
{
    struct statfs fs;

    if (c->fd >= 0 || c->folder == NULL)
        return c->fd >= 0;
    c->fd = open(c->folder, O_RDWR | O_TMPFILE | O_DIRECT | O_CLOEXEC, 0600);
    if (c->fd < 0)
        return false;
    if (fstatfs(c->fd, &fs) == 0 && fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC)
        return true;
    close(c->fd);
    c->fd = -1;
    return false;
}

static bool open_piece(const struct copies *c, const struct copy *copy, struct piece *p)
{
    uint64_t whole = (kv_copy_bytes(c->kv) + PIECE - 1) / PIECE * PIECE;
    void *buf;

    /* Copies of another context have other sizes, so every place has the largest. */
    if (whole > MAX_BYTES || posix_memalign(&buf, 4096, PIECE) != 0)
        return false;
    memset(buf, 0, PIECE);
    *p = (struct piece){ .fd = c->fd, .offset = (uint64_t)copy->place * MAX_BYTES, .buf = buf };
    return true;
}

static int free_place(const struct copies *c)
{
    for (int place = 0;; place++) {
        uint32_t i = 0;

        while (i < c->n && (c->copy[i].memory.base != NULL || c->copy[i].place != place))
            i++;
        if (i == c->n)
            return place;
    }
}

/* Write a copy to the file: from memory if it is there, or else from the KV store.  Its memory
 * is freed only if all of it was written. */
static bool save_to_file(struct copies *c, struct copy *copy)
{
    struct err ignored = ERR_INIT;
    struct piece p;
    bool ok;

    copy->place = free_place(c);
    if (!open_file(c) || !open_piece(c, copy, &p))
        return false;
    ok = (copy->memory.base != NULL ? to_file(&p, copy->memory.base, copy->bytes, &ignored)
                                    : kv_copy_save(c->kv, to_file, &p, &ignored)) == 0 &&
         (p.used == 0 || write_piece(&p, &ignored) == 0);
    free(p.buf);
    if (ok)
        arena_unmap(&copy->memory);
    return ok;
}

/* --- the table --- */

static void forget(struct copies *c, uint32_t i)
{
    arena_unmap(&c->copy[i].memory);
    c->n--;
    memmove(&c->copy[i], &c->copy[i + 1], (c->n - i) * sizeof c->copy[0]);
}

static uint32_t n_in_memory(const struct copies *c)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < c->n; i++)
        n += c->copy[i].memory.base != NULL;
    return n;
}

/* Move the oldest copies out of memory until n_memory are left. */
static void make_room(struct copies *c, uint32_t n_memory)
{
    for (uint32_t i = 0; n_in_memory(c) > n_memory;) {
        if (c->copy[i].memory.base == NULL || save_to_file(c, &c->copy[i]))
            i++;
        else
            forget(c, i);
    }
}

void copies_set_room(struct copies *c, uint32_t n_memory)
{
    c->n_memory = n_memory;
    make_room(c, n_memory);
}

void copies_of(struct copies *c, struct kv *kv)
{
    copies_cut(c, 0);
    c->kv = kv;
}

static bool save_to_memory(struct copies *c, struct copy *copy)
{
    struct err ignored = ERR_INIT;
    uint64_t bytes = kv_copy_bytes(c->kv);
    struct cursor to;

    if (c->n_memory == 0 ||
        arena_map(&copy->memory, "copies", arena_size(bytes), false, &ignored) != 0)
        return false;
    to.at = arena_take(&copy->memory, bytes, &ignored);
    if (to.at != NULL && kv_copy_save(c->kv, to_memory, &to, &ignored) == 0) {
        copy->bytes = (size_t)(to.at - copy->memory.base);
        return true;
    }
    arena_unmap(&copy->memory);
    return false;
}

void copies_mark(struct copies *c)
{
    uint64_t bytes = kv_copy_bytes(c->kv);
    uint32_t n = kv_tokens(c->kv);
    struct copy new = { .n_token = n };

    if (bytes == 0 || bytes > MAX_BYTES || n == 0 ||
        (c->n > 0 && c->copy[c->n - 1].n_token >= n))
        return;
    if (c->n == MAX_COPY)
        forget(c, 0);
    if (c->n_memory > 0)
        make_room(c, c->n_memory - 1);
    if (save_to_memory(c, &new) || save_to_file(c, &new))
        c->copy[c->n++] = new;
}

void copies_cut(struct copies *c, uint32_t n)
{
    while (c->n > 0 && c->copy[c->n - 1].n_token > n)
        forget(c, c->n - 1);
}

static bool restore(struct copies *c, const struct copy *copy)
{
    struct err ignored = ERR_INIT;
    struct cursor from = { copy->memory.base };
    struct piece p;
    int rc;

    if (copy->memory.base != NULL)
        return kv_copy_restore(c->kv, copy->n_token, from_memory, &from, &ignored) == 0;
    if (!open_piece(c, copy, &p))
        return false;
    p.used = PIECE;
    rc = kv_copy_restore(c->kv, copy->n_token, from_file, &p, &ignored);
    free(p.buf);
    return rc == 0;
}

bool copies_restore(struct copies *c)
{
    if (c->n > 0 && restore(c, &c->copy[c->n - 1]))
        return true;
    /* If one copy cannot be read, the others of the file are not trusted either. */
    while (c->n > 0)
        forget(c, c->n - 1);
    kv_rewind(c->kv, 0);
    return false;
}

/* --- as bytes --- */

uint32_t copies_count(const struct copies *c)
{
    return c->n;
}

uint32_t copies_at(const struct copies *c, uint32_t i)
{
    return c->copy[i].n_token;
}

/* The bytes of a copy in the file, piece by piece. */
static int each_in_file(struct piece *p, uint64_t bytes, kv_bytes_fn *fn, void *ctx,
                        struct err *e)
{
    for (uint64_t left = bytes; left > 0;) {
        size_t part = left < PIECE ? (size_t)left : PIECE;

        if (read_piece(p, e) != 0 || fn(ctx, p->buf, part, e) != 0)
            return -1;
        left -= part;
    }
    return 0;
}

int copies_each(struct copies *c, uint32_t i, kv_bytes_fn *fn, void *ctx, struct err *e)
{
    const struct copy *copy = &c->copy[i];
    uint64_t bytes = kv_copy_bytes_at(c->kv, copy->n_token);
    struct piece p;
    int rc;

    if (copy->memory.base != NULL)
        return fn(ctx, copy->memory.base, bytes, e);
    if (!open_piece(c, copy, &p))
        return err_memory(e, "a copy of the sliding layers");
    rc = each_in_file(&p, bytes, fn, ctx, e);
    free(p.buf);
    return rc;
}

/* Fill a copy in memory.  Returns false if it has no place there; *rc is the result of fn. */
static bool fill_memory(struct copies *c, struct copy *copy, kv_bytes_fn *fn, void *ctx, int *rc,
                        struct err *e)
{
    uint64_t bytes = kv_copy_bytes_at(c->kv, copy->n_token);
    struct err ignored = ERR_INIT;
    void *to;

    if (c->n_memory == 0 ||
        arena_map(&copy->memory, "copies", arena_size(bytes), false, &ignored) != 0)
        return false;
    to = arena_take(&copy->memory, bytes, &ignored);
    if (to == NULL) {
        arena_unmap(&copy->memory);
        return false;
    }
    copy->bytes = bytes;
    *rc = fn(ctx, to, bytes, e);
    if (*rc != 0)
        arena_unmap(&copy->memory);
    return true;
}

/* Fill a copy in the file.  *is_kept: all of it was written. */
static int fill_file(struct copies *c, struct copy *copy, kv_bytes_fn *fn, void *ctx,
                     bool *is_kept, struct err *e)
{
    uint64_t left = kv_copy_bytes_at(c->kv, copy->n_token);
    struct err ignored = ERR_INIT;
    struct piece p;
    int rc = 0;

    copy->place = free_place(c);
    *is_kept = open_file(c);
    if (!open_piece(c, copy, &p))
        return err_memory(e, "a copy of the sliding layers");
    while (rc == 0 && left > 0) {
        size_t part = left < PIECE ? (size_t)left : PIECE;

        rc = fn(ctx, p.buf, part, e);
        if (rc == 0 && *is_kept)
            *is_kept = write_piece(&p, &ignored) == 0;
        left -= part;
    }
    free(p.buf);
    return rc;
}

int copies_fill(struct copies *c, uint32_t n, kv_bytes_fn *fn, void *ctx, struct err *e)
{
    struct copy new = { .n_token = n };
    bool is_kept = true;
    int rc = 0;

    if (c->n == MAX_COPY)
        forget(c, 0);
    if (c->n_memory > 0)
        make_room(c, c->n_memory - 1);
    if (!fill_memory(c, &new, fn, ctx, &rc, e))
        rc = fill_file(c, &new, fn, ctx, &is_kept, e);
    if (rc == 0 && is_kept)
        c->copy[c->n++] = new;
    return rc;
}

uint64_t copies_bytes(const struct copies *c)
{
    return n_in_memory(c) * kv_copy_bytes(c->kv);
}
