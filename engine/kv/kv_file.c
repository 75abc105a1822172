#include "config.h"

#include "engine/kv/kv_file.h"

#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/new_file.h"
#include "engine/kv/kv_file_format.h"

#define TRIES_MAX 3 /* of a read that failed */

/* Parts and pieces: the index on disk is first the bytes of the parts, then the pieces. */
struct contents {
    uint32_t n_part, n_piece;
    uint64_t *part;         /* [n_part] bytes */
    uint32_t *first;        /* [n_part] their first pieces */
    struct kv_piece *piece; /* [n_piece] */
};

struct kv_file {
    int fd;
    char *path;
    bool is_direct;
    bool is_new;             /* made here, and nothing was committed yet */
    bool is_locked;          /* by a lock that other processes see */
    bool has_bad_header;     /* the other header may have been in force, and is lost */
    bool is_changing;        /* there may be pieces in slots that nothing in force uses */
    bool is_committing;      /* the header that uses them may be on the disk */
    uint32_t most;           /* pieces, and parts */
    struct kv_header header; /* in force; number 0: none */
    int header_at;
    struct contents now, next;
    unsigned char *used; /* [KV_SLOT_MOST / 8] a bit for each slot that is in use */
    uint32_t free_from;  /* no slot before it is free */
    unsigned char *buf;  /* [KV_PIECE] */
    size_t buf_used, buf_len;
    const struct kv_piece *read_next; /* after the one in buf */
    uint64_t read_left;               /* bytes of it and those after it */
    uint64_t part_bytes;              /* of the part that is written */
    kv_file_stops_fn *stops;
    void *stops_ctx;
    uint64_t written, read;
};

static size_t round_up(size_t n)
{
    return (n + KV_ALIGN - 1) / KV_ALIGN * KV_ALIGN;
}

static uint64_t pieces_of(uint64_t bytes)
{
    return (bytes + KV_PIECE - 1) / KV_PIECE;
}

uint64_t kv_file_memory(uint32_t n_piece)
{
    uint64_t one =
        (uint64_t)n_piece * (sizeof(uint64_t) + sizeof(uint32_t) + sizeof(struct kv_piece));

    return sizeof(struct kv_file) + KV_PIECE + KV_ALIGN + 2 * one + KV_SLOT_MOST / 8;
}

static int damaged(const struct kv_file *f, uint64_t offset, const char *what, struct err *e)
{
    err_set(e, ERR_FORMAT, "%s", what);
    return err_at(e, f->path, offset, NULL);
}

/* --- opening --- */

static bool is_in_memory(int fd)
{
    struct statfs fs;

    return fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

static int open_flags(int flags)
{
    return flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
}

/* NFS gives the lock of a writer only to a descriptor that may write, and a reader may come to
 * delete the file. */
static int open_for_locks(const char *path, int flags)
{
    int fd = open(path, open_flags(O_RDWR | flags));

    return fd < 0 && (errno == EACCES || errno == EPERM || errno == EROFS)
               ? open(path, open_flags(O_RDONLY | flags))
               : fd;
}

static int open_fd(struct kv_file *f, struct err *e)
{
    struct stat st;

    f->is_direct = true;
    f->fd = open_for_locks(f->path, O_DIRECT);
    if (f->fd < 0 && errno == EINVAL) { /* a file system without O_DIRECT */
        f->is_direct = false;
        f->fd = open_for_locks(f->path, 0);
    }
    if (f->fd < 0) {
        err_sys(e, "cannot open the keys and values of a chat");
        return err_at(e, f->path, ERR_NO_OFFSET, NULL);
    }
    if (fstat(f->fd, &st) != 0 || !S_ISREG(st.st_mode))
        return damaged(f, ERR_NO_OFFSET, "not a file", e);
    if (st.st_uid != geteuid()) { /* who could have made keys and values of another text */
        err_set(e, ERR_ARGUMENT, "belongs to another user");
        return err_at(e, f->path, ERR_NO_OFFSET, NULL);
    }
    if (is_in_memory(f->fd)) {
        err_set(e, ERR_UNSUPPORTED,
                "the folder of saved keys and values is in memory, not on a disk");
        return err_at(e, f->path, ERR_NO_OFFSET, NULL);
    }
    return 0;
}

/* Open the file, or make it.  Without O_DIRECT first: a file system that does not have it makes
 * the file before it says so. */
static int open_or_make(struct kv_file *f, struct err *e)
{
    int fd = open(f->path, open_flags(O_WRONLY | O_CREAT | O_EXCL), 0600);

    if (fd < 0 && errno != EEXIST) {
        err_sys(e, "cannot open the keys and values of a chat");
        return err_at(e, f->path, ERR_NO_OFFSET, NULL);
    }
    f->is_new = fd >= 0;
    if (fd >= 0)
        close(fd);
    return open_fd(f, e);
}

/* --- locks, and deleting ---
 *
 * A file is deleted while this process has the lock of a writer, if the path still has the file
 * that is locked: another process may have deleted that one, and written a new one.  Where locks
 * do not work, nothing is written, and nothing is deleted but an empty file that was made here. */

/* Take the lock of a reader or of a writer until the file is closed.  Readers need none: if
 * another process writes meanwhile, checksums show it. */
static int lock_file(struct kv_file *f, int lock, struct err *e)
{
    f->is_locked = flock(f->fd, lock | LOCK_NB) == 0;
    if (f->is_locked || (lock == LOCK_SH && errno != EWOULDBLOCK))
        return 0;
    err_sys(e, errno == EWOULDBLOCK ? "another process uses the keys and values of this chat"
                                    : "cannot lock the keys and values of this chat");
    return err_at(e, f->path, ERR_NO_OFFSET, NULL);
}

/* Whether the open file is the one that has the path. */
static bool is_at_path(int fd, const char *path)
{
    struct stat own, st;

    return fstat(fd, &own) == 0 && lstat(path, &st) == 0 && own.st_dev == st.st_dev &&
           own.st_ino == st.st_ino;
}

/* Whether a file that was made here is still empty, and no other process has its lock. */
static bool is_still_new(const struct kv_file *f)
{
    struct stat st;

    return f->is_new && (flock(f->fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) &&
           fstat(f->fd, &st) == 0 && st.st_size == 0;
}

/* Delete a file in which nothing was committed. */
static void remove_empty(const struct kv_file *f)
{
    if ((f->is_locked || is_still_new(f)) && is_at_path(f->fd, f->path))
        unlink(f->path);
}

static int contents_new(struct contents *c, uint32_t most, struct err *e)
{
    c->part = calloc(most, sizeof *c->part);
    c->first = calloc(most, sizeof *c->first);
    c->piece = calloc(most, sizeof *c->piece);
    return c->part != NULL && c->first != NULL && c->piece != NULL
               ? 0
               : err_memory(e, "the places of keys and values");
}

static void contents_free(struct contents *c)
{
    free(c->part);
    free(c->first);
    free(c->piece);
}

static int file_new(struct kv_file **out, const char *path, uint32_t n_piece, struct err *e)
{
    struct kv_file *f = calloc(1, sizeof *f);
    void *buf = NULL;

    *out = NULL;
    if (f == NULL)
        return err_memory(e, "a file of keys and values");
    f->fd = -1;
    f->most = n_piece;
    f->path = strdup(path);
    f->used = calloc(KV_SLOT_MOST / 8, 1);
    if (posix_memalign(&buf, KV_ALIGN, KV_PIECE) == 0)
        f->buf = buf;
    *out = f;
    if (f->path == NULL || f->used == NULL || f->buf == NULL)
        return err_memory(e, "a file of keys and values");
    return contents_new(&f->now, n_piece, e) != 0 ? -1 : contents_new(&f->next, n_piece, e);
}

/* Bytes of the file up to the last slot that contents use. */
static uint64_t end_of(const struct kv_header *h, const struct contents *c)
{
    uint32_t end = 0;

    for (uint32_t i = 0; i < c->n_piece; i++)
        if (c->piece[i].slot >= end)
            end = c->piece[i].slot + 1;
    for (uint32_t i = 0; i < h->n_index; i++)
        if (h->index[i].slot >= end)
            end = h->index[i].slot + 1;
    return kv_slot_at(end);
}

/* Give back the space of a change that was not committed.  If its header was not synced, either
 * contents may be in force after a crash, so both stay. */
static void forget_change(const struct kv_file *f)
{
    if (f->now.n_piece == 0)
        remove_empty(f);
    else if (!f->is_committing)
        (void)!ftruncate(f->fd, (off_t)end_of(&f->header, &f->now));
}

void kv_file_close(struct kv_file *f)
{
    if (f == NULL)
        return;
    if (f->fd >= 0) {
        if (f->is_changing)
            forget_change(f);
        else if (f->is_new)
            remove_empty(f);
        if (!f->is_direct)
            (void)posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED);
        close(f->fd);
    }
    contents_free(&f->now);
    contents_free(&f->next);
    free(f->used);
    free(f->buf);
    free(f->path);
    free(f);
}

void kv_file_set_stop(struct kv_file *f, kv_file_stops_fn *stops, void *ctx)
{
    f->stops = stops;
    f->stops_ctx = ctx;
}

static int check_stop(const struct kv_file *f, struct err *e)
{
    if (f->stops == NULL || !f->stops(f->stops_ctx))
        return 0;
    return err_set(e, ERR_CANCELLED, "stopped");
}

/* --- blocks of the disk --- */

/* Whether a read failed because the disk cannot read the place, or reads it wrongly. */
static bool is_lost(int error)
{
    return error == EIO || error == ENODATA || error == EILSEQ || error == EBADMSG;
}

/* Read n bytes, a multiple of KV_ALIGN, into buf; bytes after the end of the file are zeros.  A
 * place that cannot be read is damage like bytes that changed: otherwise a file with one would fail
 * each time, and keep its other pages each time it is saved. */
static int read_block(struct kv_file *f, uint64_t at, size_t n, struct err *e)
{
    size_t got = 0;
    int tries = 0;
    ssize_t r;

    while (got < n) {
        r = pread(f->fd, f->buf + got, n - got, (off_t)(at + got));
        if (r < 0 && (errno == EINTR || (is_lost(errno) && ++tries < TRIES_MAX)))
            continue;
        if (r < 0) {
            err_sys(e, "cannot read keys and values");
            if (is_lost(e->sys))
                e->code = ERR_FORMAT;
            return err_at(e, f->path, at + got, NULL);
        }
        got += (size_t)r;
        /* A read past the page cache stays aligned up to the end of the file. */
        if (r == 0 || (size_t)r % KV_ALIGN != 0)
            break;
    }
    memset(f->buf + got, 0, n - got);
    f->read += n;
    if (!f->is_direct)
        (void)posix_fadvise(f->fd, (off_t)at, (off_t)n, POSIX_FADV_DONTNEED);
    return 0;
}

static int write_block(struct kv_file *f, uint64_t at, size_t n, struct err *e)
{
    size_t done = 0;

    while (done < n) {
        ssize_t r = pwrite(f->fd, f->buf + done, n - done, (off_t)(at + done));

        if (r < 0 && errno == EINTR)
            continue;
        if (r == 0 || (r > 0 && (size_t)r % KV_ALIGN != 0)) {
            errno = ENOSPC;
            r = -1;
        }
        if (r < 0) {
            err_sys(e, "cannot write keys and values");
            return err_at(e, f->path, at + done, NULL);
        }
        done += (size_t)r;
    }
    f->written += n;
    if (f->is_direct)
        return 0;
    /* Pages in the page cache would be charged to this process. */
    if (new_file_sync(f->fd) != 0) {
        err_sys(e, "cannot write keys and values");
        return err_at(e, f->path, at, NULL);
    }
    (void)posix_fadvise(f->fd, (off_t)at, (off_t)n, POSIX_FADV_DONTNEED);
    return 0;
}

/* --- reading what is in force --- */

static bool is_header(const struct kv_header *h)
{
    uint64_t index_bytes =
        h->n_part * (uint64_t)sizeof(uint64_t) + h->n_piece * (uint64_t)sizeof(struct kv_piece);

    return h->magic == KV_MAGIC && h->sum == kv_header_sum(h) && h->number > 0 &&
           h->n_part > 0 && h->n_part <= KV_SLOT_MOST && h->n_piece <= KV_SLOT_MOST &&
           h->n_index == pieces_of(index_bytes) && h->n_index <= KV_INDEX_MOST &&
           memchr(h->head.facts, '\0', sizeof h->head.facts) != NULL &&
           memchr(h->head.name, '\0', sizeof h->head.name) != NULL;
}

/* Whether the headers, which were read, are still to be written: nothing was ever committed. */
static bool is_unfinished(const struct kv_file *f)
{
    return f->header.number == 0 && !f->has_bad_header;
}

/* Find the header in force.  If the disk cannot read one of them, the other is in force. */
static int read_headers(struct kv_file *f, struct err *e)
{
    struct kv_header h;
    bool is_unread = false;

    f->has_bad_header = false;
    for (int i = 0; i < KV_HEADERS; i++) {
        if (read_block(f, (uint64_t)i * KV_ALIGN, KV_ALIGN, e) != 0) {
            if (e->code != ERR_FORMAT)
                return -1;
            f->has_bad_header = is_unread = true;
            continue;
        }
        memcpy(&h, f->buf, sizeof h);
        if (!is_header(&h)) {
            f->has_bad_header |= h.magic != 0 || h.sum != 0; /* zeros: not yet written */
        } else if (h.number > f->header.number) {
            f->header = h;
            f->header_at = i;
        }
    }
    if (is_unfinished(f))
        return damaged(f, ERR_NO_OFFSET, "it was never completely written", e);
    if (f->header.number == 0)
        return is_unread ? -1
                         : damaged(f, 0, "this is not a KV file, or it is damaged", e);
    *e = (struct err)ERR_INIT;
    return 0;
}

static void use_slot(struct kv_file *f, uint32_t slot)
{
    f->used[slot / 8] |= (unsigned char)(1u << slot % 8);
}

/* Read `bytes` of a piece into buf and compare its checksum. */
static int read_piece(struct kv_file *f, const struct kv_piece *p, size_t bytes, struct err *e)
{
    if (check_stop(f, e) != 0)
        return -1;
    if (p->slot >= KV_SLOT_MOST)
        return damaged(f, ERR_NO_OFFSET, "a piece is beyond the end", e);
    if (read_block(f, kv_slot_at(p->slot), round_up(bytes), e) != 0)
        return -1;
    return checksum(f->buf, bytes) == p->sum
               ? 0
               : damaged(f, kv_slot_at(p->slot), "keys and values are damaged", e);
}

/* Read the bytes of these pieces next. */
static void begin_read(struct kv_file *f, const struct kv_piece *pieces, uint64_t bytes)
{
    f->read_next = pieces;
    f->read_left = bytes;
    f->buf_used = f->buf_len = 0;
}

int kv_file_read(struct kv_file *f, void *bytes, size_t n, struct err *e)
{
    unsigned char *at = bytes;

    while (n > 0) {
        size_t part = f->buf_len - f->buf_used;

        if (part == 0 && f->read_left == 0)
            return damaged(f, ERR_NO_OFFSET, "a part ends early", e);
        if (part == 0) {
            size_t next = f->read_left < KV_PIECE ? (size_t)f->read_left : KV_PIECE;

            if (read_piece(f, f->read_next++, next, e) != 0)
                return -1;
            f->read_left -= next;
            f->buf_used = 0;
            f->buf_len = part = next;
        }
        part = part < n ? part : n;
        memcpy(at, f->buf + f->buf_used, part);
        f->buf_used += part;
        at += part;
        n -= part;
    }
    return 0;
}

void kv_file_seek(struct kv_file *f, uint32_t part)
{
    begin_read(f, &f->now.piece[f->now.first[part]], f->now.part[part]);
}

/* Set the first pieces of the parts.  Returns false if they do not make n_piece. */
static bool place_parts(struct contents *c)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < c->n_part; i++) {
        c->first[i] = (uint32_t)n;
        if (c->part[i] == 0 || c->part[i] > (uint64_t)KV_SLOT_MOST * KV_PIECE)
            return false;
        n += pieces_of(c->part[i]);
        if (n > c->n_piece)
            return false;
    }
    return n == c->n_piece;
}

static int read_index(struct kv_file *f, struct err *e)
{
    const struct kv_header *h = &f->header;
    struct contents *c = &f->now;
    size_t part_bytes = h->n_part * sizeof *c->part,
           piece_bytes = h->n_piece * sizeof *c->piece;

    if (h->n_part > f->most || h->n_piece > f->most) {
        err_set(e, ERR_BUDGET, "it holds more tokens than the context");
        return err_at(e, f->path, ERR_NO_OFFSET, NULL);
    }
    begin_read(f, h->index, part_bytes + piece_bytes);
    if (kv_file_read(f, c->part, part_bytes, e) != 0 ||
        kv_file_read(f, c->piece, piece_bytes, e) != 0)
        return -1;
    c->n_part = h->n_part;
    c->n_piece = h->n_piece;
    for (uint32_t i = 0; i < c->n_piece; i++)
        if (c->piece[i].slot >= KV_SLOT_MOST)
            return damaged(f, ERR_NO_OFFSET, "a piece is beyond the end", e);
    return place_parts(c) ? 0 : damaged(f, ERR_NO_OFFSET, "its parts do not fit its pieces", e);
}

static int open_to_read(struct kv_file **out, const char *path, uint32_t n_piece,
                        struct err *e)
{
    if (file_new(out, path, n_piece, e) != 0 || open_fd(*out, e) != 0 ||
        lock_file(*out, LOCK_SH, e) != 0 || read_headers(*out, e) != 0)
        return -1;
    return read_index(*out, e);
}

int kv_file_open(struct kv_file **out, const char *path, uint32_t n_piece, struct err *e)
{
    if (open_to_read(out, path, n_piece, e) == 0)
        return 0;
    if (e->code == ERR_FORMAT)
        (void)kv_file_discard(*out);
    kv_file_close(*out);
    *out = NULL;
    return -1;
}

int kv_file_look(const char *path, struct kv_file_head *head, struct err *e)
{
    struct kv_file *f;
    int rc = -1;

    if (file_new(&f, path, 1, e) == 0 && open_fd(f, e) == 0 &&
        (read_headers(f, e) == 0 || (e->code == ERR_FORMAT && is_unfinished(f)))) {
        *head = f->header.head;
        *e = (struct err)ERR_INIT;
        rc = 0;
    }
    kv_file_close(f);
    return rc;
}

bool kv_file_delete(const char *path, const struct timespec *used)
{
    int fd = open_for_locks(path, 0);
    struct stat st;
    bool ok;

    if (fd < 0)
        return errno == ENOENT;
    ok = flock(fd, LOCK_EX | LOCK_NB) == 0 && is_at_path(fd, path) && fstat(fd, &st) == 0 &&
         st.st_mtim.tv_sec == used->tv_sec && st.st_mtim.tv_nsec == used->tv_nsec &&
         unlink(path) == 0;
    close(fd);
    return ok;
}

/* Whether the header in force is the one that was read, or there is still none. */
static bool has_same_header(struct kv_file *f)
{
    struct err ignored = ERR_INIT;
    uint64_t sum = f->header.sum;

    f->header = (struct kv_header){ 0 };
    return read_headers(f, &ignored) == 0 ? f->header.sum == sum : ignored.code == ERR_FORMAT;
}

/* While a lock changes from that of a reader to that of a writer, there is none. */
bool kv_file_discard(struct kv_file *f)
{
    struct err ignored = ERR_INIT;

    return f->is_locked && lock_file(f, LOCK_EX, &ignored) == 0 &&
           is_at_path(f->fd, f->path) && has_same_header(f) && unlink(f->path) == 0;
}

const struct kv_file_head *kv_file_head(const struct kv_file *f)
{
    return &f->header.head;
}

uint32_t kv_file_parts(const struct kv_file *f)
{
    return f->now.n_part;
}

/* --- changing --- */

/* Nothing in the file can be used.  A header that could not be read, and may have a higher number
 * than the next one, goes. */
static int begin_empty(struct kv_file *f, struct err *e)
{
    f->header = (struct kv_header){ 0 };
    f->now.n_part = f->now.n_piece = 0;
    if (ftruncate(f->fd, 0) == 0)
        return 0;
    err_sys(e, "cannot write keys and values");
    return err_at(e, f->path, ERR_NO_OFFSET, NULL);
}

static int begin_change(struct kv_file *f, struct err *e)
{
    if (read_headers(f, e) != 0 || read_index(f, e) != 0) {
        if (e->code == ERR_IO || e->code == ERR_CANCELLED)
            return -1;
        *e = (struct err)ERR_INIT;
        return begin_empty(f, e);
    }
    /* Since then, another change may have written over its pieces: no part stays. */
    if (f->has_bad_header)
        f->now.n_part = 0;
    return 0;
}

int kv_file_change(struct kv_file **out, const char *path, uint32_t n_piece, struct err *e)
{
    struct kv_file *f;

    *out = NULL;
    if (file_new(&f, path, n_piece, e) != 0)
        goto fail;
    if (open_or_make(f, e) != 0 || lock_file(f, LOCK_EX, e) != 0)
        goto fail;
    if (!is_at_path(f->fd, f->path)) { /* between the two calls */
        err_set(e, ERR_IO, "another process deleted the keys and values of this chat");
        goto fail;
    }
    (void)fchmod(f->fd, 0600); /* it may be older than the umask of its writer */
    if (begin_change(f, e) != 0)
        goto fail;
    *out = f;
    return 0;

fail:
    kv_file_close(f);
    return -1;
}

void kv_file_begin(struct kv_file *f)
{
    memset(f->used, 0, KV_SLOT_MOST / 8);
    f->free_from = 0;
    for (uint32_t i = 0; i < f->now.n_piece; i++)
        use_slot(f, f->now.piece[i].slot);
    for (uint32_t i = 0; i < f->header.n_index; i++)
        use_slot(f, f->header.index[i].slot);
    f->is_changing = true;
    f->is_committing = false;
    f->next.n_part = f->next.n_piece = 0;
    f->buf_used = 0;
    f->part_bytes = 0;
}

static int next_part(struct kv_file *f, uint64_t bytes, struct err *e)
{
    struct contents *c = &f->next;

    if (c->n_part == f->most)
        return err_set(e, ERR_BUDGET, "keys and values have more than %u parts", f->most);
    c->part[c->n_part++] = bytes;
    return 0;
}

static int add_piece(struct kv_file *f, const struct kv_piece *p, struct err *e)
{
    struct contents *c = &f->next;

    if (c->n_piece == f->most)
        return err_set(e, ERR_BUDGET, "keys and values have more than %u pieces", f->most);
    c->piece[c->n_piece++] = *p;
    return 0;
}

int kv_file_keep(struct kv_file *f, uint32_t part, struct err *e)
{
    uint64_t n = pieces_of(f->now.part[part]);

    for (uint64_t i = 0; i < n; i++)
        if (add_piece(f, &f->now.piece[f->now.first[part] + i], e) != 0)
            return -1;
    return next_part(f, f->now.part[part], e);
}

/* Write the bytes of buf into a free slot. */
static int write_piece(struct kv_file *f, struct kv_piece *p, struct err *e)
{
    size_t n = f->buf_used;
    uint32_t slot = f->free_from;

    if (check_stop(f, e) != 0)
        return -1;
    while (slot < KV_SLOT_MOST && (f->used[slot / 8] & 1u << slot % 8) != 0)
        slot++;
    if (slot == KV_SLOT_MOST)
        return err_set(e, ERR_BUDGET, "keys and values have no place left in the file");
    use_slot(f, slot);
    f->free_from = slot + 1;
    *p = (struct kv_piece){ .sum = checksum(f->buf, n), .slot = slot };
    memset(f->buf + n, 0, round_up(n) - n);
    f->buf_used = 0;
    return write_block(f, kv_slot_at(slot), round_up(n), e);
}

static int flush(struct kv_file *f, struct err *e)
{
    struct kv_piece p;

    return write_piece(f, &p, e) != 0 ? -1 : add_piece(f, &p, e);
}

int kv_file_write(struct kv_file *f, const void *bytes, size_t n, struct err *e)
{
    const unsigned char *at = bytes;

    while (n > 0) {
        size_t part = KV_PIECE - f->buf_used < n ? KV_PIECE - f->buf_used : n;

        memcpy(f->buf + f->buf_used, at, part);
        f->buf_used += part;
        f->part_bytes += part;
        at += part;
        n -= part;
        if (f->buf_used == KV_PIECE && flush(f, e) != 0)
            return -1;
    }
    return 0;
}

int kv_file_end_part(struct kv_file *f, struct err *e)
{
    uint64_t bytes = f->part_bytes;

    f->part_bytes = 0;
    if (f->buf_used > 0 && flush(f, e) != 0)
        return -1;
    return next_part(f, bytes, e);
}

/* Write bytes of the index; the pieces go to the header. */
static int write_index_bytes(struct kv_file *f, struct kv_header *h, const void *bytes,
                             size_t n, bool is_end, struct err *e)
{
    const unsigned char *at = bytes;

    while (n > 0 || (is_end && f->buf_used > 0)) {
        size_t part = KV_PIECE - f->buf_used < n ? KV_PIECE - f->buf_used : n;

        if (part > 0)
            memcpy(f->buf + f->buf_used, at, part);
        f->buf_used += part;
        at += part;
        n -= part;
        if (f->buf_used < KV_PIECE && !(is_end && n == 0))
            continue;
        if (h->n_index == KV_INDEX_MOST)
            return err_set(e, ERR_BUDGET, "keys and values have too many pieces");
        if (write_piece(f, &h->index[h->n_index++], e) != 0)
            return -1;
    }
    return 0;
}

static int sync_file(const struct kv_file *f, struct err *e)
{
    if (new_file_sync(f->fd) == 0)
        return 0;
    err_sys(e, "cannot write keys and values");
    return err_at(e, f->path, ERR_NO_OFFSET, NULL);
}

static int write_header(struct kv_file *f, const struct kv_header *h, int at, struct err *e)
{
    memset(f->buf, 0, KV_ALIGN);
    memcpy(f->buf, h, sizeof *h);
    return write_block(f, (uint64_t)at * KV_ALIGN, KV_ALIGN, e);
}

/* A header that the disk took and cannot read would leave the contents of before in force. */
static int check_header(struct kv_file *f, const struct kv_header *h, int at, struct err *e)
{
    const uint64_t offset = (uint64_t)at * KV_ALIGN;

    if (read_block(f, offset, KV_ALIGN, e) != 0)
        return -1;
    return memcmp(f->buf, h, sizeof *h) == 0
               ? 0
               : damaged(f, offset, "the disk did not keep keys and values", e);
}

int kv_file_commit(struct kv_file *f, const struct kv_file_head *head, struct err *e)
{
    struct contents *c = &f->next, old = f->now;
    struct kv_header h;
    int at = f->header.number > 0 ? 1 - f->header_at : 0;

    memset(&h, 0, sizeof h); /* its padding is written, too */
    h.magic = KV_MAGIC;
    h.number = f->header.number + 1;
    h.head = *head;
    h.n_part = c->n_part;
    h.n_piece = c->n_piece;
    if (write_index_bytes(f, &h, c->part, c->n_part * sizeof *c->part, false, e) != 0 ||
        write_index_bytes(f, &h, c->piece, c->n_piece * sizeof *c->piece, true, e) != 0 ||
        sync_file(f, e) != 0)
        return -1;
    h.sum = kv_header_sum(&h);
    f->is_committing = true;
    if (write_header(f, &h, at, e) != 0 || sync_file(f, e) != 0 ||
        check_header(f, &h, at, e) != 0)
        return -1;
    f->header = h;
    f->header_at = at;
    f->now = *c;
    f->next = old;
    f->is_changing = f->is_new = false;
    (void)place_parts(&f->now);
    /* The slots at the end that only the old contents used. */
    (void)!ftruncate(f->fd, (off_t)end_of(&f->header, &f->now));
    return 0;
}

uint64_t kv_file_written(const struct kv_file *f)
{
    return f->written;
}

uint64_t kv_file_bytes_read(const struct kv_file *f)
{
    return f->read;
}
