#include "config.h"

#include "engine/hub/pull_blob.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/digest.h"
#include "engine/base/new_file.h"
#include "engine/base/units.h"

#define N_SLOT     (PULL_WINDOW / PULL_RANGE)
#define WRITE_MIN  MIB /* smaller writes only at the end of a range */
#define CHECK_READ MIB
#define PAGE       4096
#define WAIT_MS    200

/* A range of the file that is requested, or will be again after a pause. */
struct range {
    struct http_request request;
    struct fetch *fetch;
    char url[HTTP_URL_MAX];
    bool is_used, is_running, is_paused;
    bool is_checked;    /* the reply is one for this request */
    uint64_t at, to;    /* the next byte, and the end */
    uint64_t skip;      /* bytes before `at` that the server sends anyway */
    uint64_t asked_at;  /* `at` when the request began */
    uint32_t n_failed;  /* failures in a row, without a byte for any range */
};

struct fetch {
    const struct pull_blob *b;
    int fd;
    unsigned char *window;
    uint64_t size, base; /* of the file; bytes that were there at the start */
    uint64_t written;    /* bytes in the file */
    uint64_t next;       /* the first byte that belongs to no range yet */
    uint64_t got[N_SLOT];
    uint64_t to_disk, dropped; /* bytes handed to the disk; dropped from the page cache */
    struct range ranges[PULL_CONNECTIONS];
    char url[HTTP_URL_MAX];   /* where redirects led to; "": not known yet */
    bool is_known, is_whole;  /* a reply came; the server sends no ranges */
    struct http_reply *reply; /* that ended it */
    struct digest digest;
    struct pull_progress progress;
};

/* ---- the content ---- */

static void hash_start(struct fetch *f)
{
    char header[32];
    int n = snprintf(header, sizeof header, "blob %" PRIu64, f->size);

    digest_start(&f->digest, f->b->file->is_large ? DIGEST_SHA256 : DIGEST_SHA1);
    if (!f->b->file->is_large)
        digest_add(&f->digest, header, (size_t)n + 1);
}

static bool hash_is_right(struct fetch *f)
{
    char hex[DIGEST_HEX];

    digest_end(&f->digest, hex);
    return strcmp(hex, f->b->file->etag) == 0;
}

static void report(struct fetch *f, bool is_checking, uint64_t done)
{
    f->progress.is_checking = is_checking;
    f->progress.done = done;
    f->progress.fetched = is_checking ? 0 : done - f->base;
    if (f->b->progress != NULL)
        f->b->progress(f->b->ctx, &f->progress);
}

static int failed_file(const struct fetch *f, const char *what, struct err *e)
{
    char size[16];

    if (errno == EFBIG)
        err_set(e, ERR_IO,
                "could not write more than %s: the disk takes no larger file (FAT32: 4 GiB), or "
                "\"ulimit -f\" limits it; set HF_HOME to a folder on another disk",
                units_size(size, sizeof size, f->written));
    else
        err_sys(e, "could not %s", what);
    return err_at(e, f->b->incomplete, ERR_NO_OFFSET, NULL);
}

/* Hash the bytes that an earlier call fetched. */
static int check_base(struct fetch *f, struct err *e)
{
    for (uint64_t at = 0; at < f->base;) {
        size_t n = f->base - at < CHECK_READ ? (size_t)(f->base - at) : CHECK_READ;
        ssize_t got = pread(f->fd, f->window, n, (off_t)at);

        if (got <= 0) {
            if (got == 0)
                errno = EIO;
            return failed_file(f, "read", e);
        }
        digest_add(&f->digest, f->window, (size_t)got);
        at += (uint64_t)got;
        posix_fadvise(f->fd, 0, (off_t)align_down(at, PAGE), POSIX_FADV_DONTNEED);
        report(f, true, at);
        if (http_wait(f->b->http, 0, e) != 0)
            return -1;
    }
    return 0;
}

/* Hand complete pieces to the disk, and drop the one before, which should be there by now. */
static void settle(struct fetch *f)
{
    const unsigned wait =
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;

    while (f->written - f->to_disk >= PULL_PIECE) {
        sync_file_range(f->fd, (off_t)f->to_disk, PULL_PIECE, SYNC_FILE_RANGE_WRITE);
        if (f->to_disk > f->dropped) {
            off_t n = (off_t)(f->to_disk - f->dropped);

            sync_file_range(f->fd, (off_t)f->dropped, n, wait);
            posix_fadvise(f->fd, (off_t)f->dropped, n, POSIX_FADV_DONTNEED);
        }
        f->dropped = f->to_disk;
        f->to_disk += PULL_PIECE;
    }
}

static int write_bytes(struct fetch *f, const unsigned char *data, size_t n, struct err *e)
{
    digest_add(&f->digest, data, n);
    while (n > 0) {
        ssize_t put = pwrite(f->fd, data, n, (off_t)f->written);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0) {
            if (put == 0)
                errno = ENOSPC;
            return failed_file(f, "write", e);
        }
        data += put;
        n -= (size_t)put;
        f->written += (uint64_t)put;
    }
    settle(f);
    return 0;
}

/* ---- the window ---- */

/* Slots are counted from `base` on, so that a range is in one of them. */
static uint64_t slot_of(const struct fetch *f, uint64_t at)
{
    return (at - f->base) / PULL_RANGE;
}

static uint64_t slot_end(const struct fetch *f, uint64_t slot)
{
    uint64_t end = f->base + (slot + 1) * PULL_RANGE;

    return end < f->size ? end : f->size;
}

/* The end of the window, as far as the file goes. */
static uint64_t window_end(const struct fetch *f)
{
    return slot_end(f, slot_of(f, f->written) + N_SLOT - 1);
}

static void store(struct fetch *f, uint64_t at, const char *data, size_t n)
{
    while (n > 0) {
        uint64_t slot = slot_of(f, at), end = slot_end(f, slot);
        size_t part = end - at < n ? (size_t)(end - at) : n;

        memcpy(f->window + (at - f->base) % PULL_WINDOW, data, part);
        f->got[slot % N_SLOT] += part;
        at += part;
        data += part;
        n -= part;
    }
}

/* Append the bytes that follow those already in the file.  all: even if they are few. */
static int write_ready(struct fetch *f, bool all, struct err *e)
{
    while (f->written < f->size) {
        uint64_t slot = slot_of(f, f->written), begin = f->base + slot * PULL_RANGE;
        uint64_t ready = begin + f->got[slot % N_SLOT], n = ready - f->written;
        bool is_last = ready == slot_end(f, slot);

        if (n == 0 || (n < WRITE_MIN && !is_last && !all))
            return 0;
        if (write_bytes(f, f->window + (f->written - f->base) % PULL_WINDOW, (size_t)n, e) != 0)
            return -1;
        if (is_last)
            f->got[slot % N_SLOT] = 0;
    }
    return 0;
}

/* ---- replies ---- */

/* Is the reply one for this request?  The first one decides whether there are ranges. */
static bool check_reply(struct range *g)
{
    struct fetch *f = g->fetch;
    const struct http_reply *r = &g->request.reply;

    g->skip = 0;
    if (r->status == 206)
        return r->from == g->request.from && r->total == f->size && r->to <= g->request.to;
    if (r->status != 200 || (r->length != HTTP_UNKNOWN && r->length != f->size))
        return false;
    if (f->is_known && !f->is_whole)
        return false;
    f->is_whole = true;
    g->skip = g->at;
    g->to = f->size;
    f->next = f->size;
    return true;
}

static void keep_url(struct fetch *f, const char *url)
{
    if (!http_is_own(f->b->http, url))
        snprintf(f->url, sizeof f->url, "%s", url);
    f->is_known = true;
}

static size_t on_bytes(struct http_request *r, const char *data, size_t n)
{
    struct range *g = r->ctx;
    struct fetch *f = g->fetch;
    size_t skip, take;

    if (!g->is_checked) {
        if (!check_reply(g))
            return HTTP_STOP;
        g->is_checked = true;
        keep_url(f, r->reply.url);
    }
    skip = g->skip < n ? (size_t)g->skip : n;
    take = n - skip < g->to - g->at ? n - skip : (size_t)(g->to - g->at);
    if (take > 0 && g->at + take > window_end(f)) {
        g->is_paused = true;
        return HTTP_PAUSE;
    }
    store(f, g->at, data + skip, take);
    g->skip -= skip;
    g->at += take;
    for (int i = 0; i < PULL_CONNECTIONS && take > 0; i++)
        f->ranges[i].n_failed = 0;
    /* More bytes than requested are not wanted, however many there are. */
    return skip + take == n ? n : HTTP_STOP;
}

/* ---- ranges ---- */

static int start_range(struct range *g, struct err *e)
{
    struct fetch *f = g->fetch;

    snprintf(g->url, sizeof g->url, "%s", f->url[0] != '\0' ? f->url : f->b->url);
    g->request.url = g->url;
    g->request.from = g->at;
    g->request.to = g->to;
    g->request.sink = on_bytes;
    g->request.ctx = g;
    g->is_checked = g->is_paused = false;
    g->asked_at = g->at;
    if (http_start(f->b->http, &g->request, e) != 0)
        return -1;
    g->is_running = true;
    return 0;
}

/* Start requests: one until the first reply, then as many as the window allows. */
static int start_ranges(struct fetch *f, struct err *e)
{
    int n_max = f->is_known && !f->is_whole ? PULL_CONNECTIONS : 1;

    for (int i = 0; i < n_max; i++) {
        struct range *g = &f->ranges[i];

        if (!g->is_used && f->next < window_end(f)) {
            g->fetch = f;
            g->is_used = true;
            g->at = f->next;
            g->to = f->next = slot_end(f, slot_of(f, f->next));
        }
        if (g->is_used && !g->is_running && http_held_ms(f->b->http) == 0 &&
            start_range(g, e) != 0)
            return -1;
    }
    return 0;
}

/* Fill *e with the reason why the last attempt failed. */
static int give_up(struct fetch *f, const struct range *g, struct err *e)
{
    const struct http_request *r = &g->request;

    *f->reply = r->reply;
    if (r->err.code != ERR_NONE) {
        *e = r->err;
        f->reply->status = 0;
    } else if (r->reply.status / 100 == 2) {
        f->reply->status = 0;
        err_set(e, ERR_IO, "the server sends other bytes than those requested");
    } else {
        err_set(e, ERR_IO, "the server answered with status %ld", r->reply.status);
    }
    return err_at(e, f->b->file->name, ERR_NO_OFFSET, NULL);
}

/* A request ended before its range was complete: ask again for the rest, at once if it brought
 * bytes, otherwise after a pause. */
static int retry(struct fetch *f, struct range *g, struct err *e)
{
    struct http_request *r = &g->request;
    bool is_refused = r->err.code == ERR_NONE && r->reply.status / 100 == 4;

    if (g->at > g->asked_at)
        return 0;
    if (r->is_stopped)
        return give_up(f, g, e);
    g->n_failed++;
    if (is_refused && !http_is_own(f->b->http, g->url))
        f->url[0] = '\0'; /* addresses of other hosts expire: ask the hub for another */
    else if (is_refused && !http_is_transient(r))
        return give_up(f, g, e);
    if (r->is_fatal || g->n_failed >= (f->is_known ? PULL_ATTEMPTS : PULL_ATTEMPTS_FIRST))
        return give_up(f, g, e);
    return http_hold(f->b->http, g->n_failed, r) ? 0 : give_up(f, g, e);
}

static int end_ranges(struct fetch *f, struct err *e)
{
    for (int i = 0; i < PULL_CONNECTIONS; i++) {
        struct range *g = &f->ranges[i];

        if (!g->is_running || !g->request.is_done)
            continue;
        g->is_running = false;
        http_end(&g->request);
        if (g->at == g->to)
            g->is_used = false;
        else if (retry(f, g, e) != 0)
            return -1;
    }
    return 0;
}

static void resume_ranges(struct fetch *f)
{
    for (int i = 0; i < PULL_CONNECTIONS; i++)
        if (f->ranges[i].is_running && f->ranges[i].is_paused) {
            f->ranges[i].is_paused = false;
            http_resume(&f->ranges[i].request);
        }
}

/* Milliseconds until ranges are requested again, at most WAIT_MS. */
static int wait_ms(const struct fetch *f)
{
    int held = http_held_ms(f->b->http);

    return held > 0 && held < WAIT_MS ? held : WAIT_MS;
}

static int fetch_all(struct fetch *f, struct err *e)
{
    int rc = 0;

    while (rc == 0 && f->written < f->size) {
        report(f, false, f->written);
        if (start_ranges(f, e) != 0 || http_wait(f->b->http, wait_ms(f), e) != 0 ||
            end_ranges(f, e) != 0 || write_ready(f, false, e) != 0)
            rc = -1;
        resume_ranges(f);
    }
    report(f, false, f->written);
    return rc;
}

/* ---- the file ---- */

uint64_t pull_blob_have(const char *incomplete, uint64_t size)
{
    struct stat st;

    if (lstat(incomplete, &st) != 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size > size)
        return 0;
    return (uint64_t)st.st_size;
}

static int open_file(struct fetch *f, struct err *e)
{
    struct stat st;

    /* Without ftruncate(2), which not every file system has. */
    if (lstat(f->b->incomplete, &st) == 0 && S_ISREG(st.st_mode) &&
        (uint64_t)st.st_size > f->size)
        unlink(f->b->incomplete);
    f->fd =
        open(f->b->incomplete, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (f->fd < 0 || fstat(f->fd, &st) != 0)
        return failed_file(f, "open", e);
    if (!S_ISREG(st.st_mode)) {
        err_set(e, ERR_IO, "is not a regular file; delete it");
        return err_at(e, f->b->incomplete, ERR_NO_OFFSET, NULL);
    }
    f->base = (uint64_t)st.st_size;
    f->written = f->next = f->base;
    f->to_disk = f->dropped = align_down(f->base, PAGE);
    return 0;
}

/* Sync the folder of path, so that the new name survives a loss of power. */
static void sync_folder(const char *path)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    int fd;

    if (slash == NULL || (size_t)(slash - path) >= sizeof folder)
        return;
    memcpy(folder, path, (size_t)(slash - path));
    folder[slash - path] = '\0';
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

static int complete(struct fetch *f, struct err *e)
{
    if (!hash_is_right(f)) {
        unlink(f->b->incomplete);
        err_set(e, ERR_FORMAT,
                "the content does not have the %s that the hub reports; it was deleted, run "
                "this again",
                f->b->file->is_large ? "SHA-256" : "git hash");
        return err_at(e, f->b->file->name, ERR_NO_OFFSET, NULL);
    }
    if (new_file_sync(f->fd) != 0)
        return failed_file(f, "sync", e);
    posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED);
    if (rename(f->b->incomplete, f->b->path) != 0)
        return failed_file(f, "rename", e);
    sync_folder(f->b->path);
    return 0;
}

static int run(struct fetch *f, struct err *e)
{
    struct err ignored = ERR_INIT;

    if (open_file(f, e) != 0)
        return -1;
    hash_start(f);
    if (check_base(f, e) != 0)
        return -1;
    if (fetch_all(f, e) == 0)
        return complete(f, e);
    /* Keep every byte that may be kept. */
    write_ready(f, true, &ignored);
    fdatasync(f->fd);
    posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED);
    return -1;
}

int pull_blob(const struct pull_blob *b, struct http_reply *reply, struct err *e)
{
    struct fetch *f = calloc(1, sizeof *f);
    int rc = -1;

    memset(reply, 0, sizeof *reply);
    if (f == NULL)
        return err_memory(e, "a download");
    f->b = b;
    f->fd = -1;
    f->reply = reply;
    f->size = b->file->size;
    f->progress = (struct pull_progress){ .file = b->file, .total = f->size };
    f->window = malloc(PULL_WINDOW);
    if (f->window == NULL)
        err_memory(e, "a download");
    else
        rc = run(f, e);
    for (int i = 0; i < PULL_CONNECTIONS; i++)
        http_end(&f->ranges[i].request);
    if (f->fd >= 0)
        close(f->fd);
    free(f->window);
    free(f);
    return rc;
}
