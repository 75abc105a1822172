/*
 * kv_file.h - a file of parts, which is replaced as a whole or not at all.
 *
 *     | header | header | slot 0 | slot 1 | slot 2 | slot 3 |  …
 *          \_____ index: slots and checksums ____/
 *
 * A part is a run of bytes, cut into pieces of KV_PIECE.  Each piece has a slot, and the index
 * has its slot and its checksum.  A header has the slots of the index and a number; the valid
 * header with the higher number is in force.
 *
 * A change writes new pieces and a new index into slots that the header in force does not use.
 * Then it syncs, and replaces the other header.  Parts that did not change keep their slots. So
 * a crash, a full disk or a kill at any moment leaves the contents of before, and what is
 * written is only what changed.  A new file has two headers of zeros until its first change is
 * complete: it is unfinished, and opening it deletes it as damage does.
 *
 * The file goes past the page cache, with one buffer of a piece.  On a file system in memory it
 * is refused: that memory would be beside the plan.  Contents are hostile until checked: an
 * index or a piece with another checksum is an error, and so are one that the disk cannot read
 * and a part that ends early.  A file of another user is refused.  Several processes may read a
 * file, or one may change or delete it; where locks do not work, none does.
 */
#ifndef MEMWALL_ENGINE_KV_KV_FILE_H
#define MEMWALL_ENGINE_KV_KV_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "engine/base/err.h"

/* One after the other, a busy virtual disk read 256 KiB at 108 MB/s, and 1 MiB at 722 MB/s. */
#define KV_PIECE      ((size_t)1 << 20)
#define KV_FILE_FACTS 1024
#define KV_FILE_NAME  128

/* The part of a header that describes the contents. */
struct kv_file_head {
    char facts[KV_FILE_FACTS]; /* lines of "key value" that a reader must agree with */
    char name[KV_FILE_NAME];   /* of the model, for lists; not clean */
    uint32_t n_token;
};

struct kv_file;

/* Bytes of memory that an open file of at most n_piece pieces takes. */
uint64_t kv_file_memory(uint32_t n_piece);

/*
 * Open a file to read it.  -1 with *e: ERR_FORMAT if it is none or is damaged, and then it is
 * deleted as kv_file_discard() does; ERR_IO with ENOENT if there is none and with EWOULDBLOCK
 * while another process changes it; ERR_BUDGET if it has more pieces than n_piece.
 */
int kv_file_open(struct kv_file **out, const char *path, uint32_t n_piece, struct err *e);
/* Open or create a file (mode 0600) to change it.  One without valid contents has no parts.  -1
 * with *e, also if another process uses it now. */
int kv_file_change(struct kv_file **out, const char *path, uint32_t n_piece, struct err *e);
/* Without kv_file_commit(), all changes are forgotten. */
void kv_file_close(struct kv_file *f); /* NULL is fine */

/* Read only the header of a file, for lists.  *head has zeros if the file is unfinished: it is
 * being written, or its writer was killed.  -1 with *e, as kv_file_open(), but nothing is
 * deleted. */
int kv_file_look(const char *path, struct kv_file_head *head, struct err *e);

/* Delete a file that was last used at this time, unless a process has used it since or does now.
 * Returns whether it is gone. */
bool kv_file_delete(const char *path, const struct timespec *used);
/* Delete a file that is open to be read, unless another process uses it, has written it since, or
 * put another one in its place.  Returns whether it was deleted.  Only close it afterwards. */
bool kv_file_discard(struct kv_file *f);

/* Ask this before each piece; true ends reading or writing with ERR_CANCELLED. */
typedef bool kv_file_stops_fn(void *ctx);
void kv_file_set_stop(struct kv_file *f, kv_file_stops_fn *stops, void *ctx);

/* ---- the contents in force ---- */

const struct kv_file_head *kv_file_head(const struct kv_file *f);
uint32_t kv_file_parts(const struct kv_file *f);

/* Begin to read a part.  Then take n bytes after another. */
void kv_file_seek(struct kv_file *f, uint32_t part);
int kv_file_read(struct kv_file *f, void *bytes, size_t n, struct err *e);

/* ---- other contents: kv_file_begin(), then one part after the other, then the commit ---- */

void kv_file_begin(struct kv_file *f);
/* The next part is one of the contents in force. */
int kv_file_keep(struct kv_file *f, uint32_t part, struct err *e);
/* Add bytes to the next part, and end it. */
int kv_file_write(struct kv_file *f, const void *bytes, size_t n, struct err *e);
int kv_file_end_part(struct kv_file *f, struct err *e);
int kv_file_commit(struct kv_file *f, const struct kv_file_head *head, struct err *e);

uint64_t kv_file_written(const struct kv_file *f); /* bytes since it was opened */
uint64_t kv_file_bytes_read(const struct kv_file *f);

#endif
