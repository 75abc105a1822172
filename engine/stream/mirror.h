/*
 * mirror.h - a copy of the model on another disk, and how reads are shared between the two.
 *
 *     block:   b0     b1      b2     b3     b4      …
 *     disk:    model  mirror  model  model  mirror        the one that ends this read first
 *
 * A copy is used if it has the same sizes, headers and samples of weights, and no hole where the
 * model has weights.  Each block goes to
 * the disk that is done sooner with what it has to read, by the rates that were measured while
 * they were busy.  So both are always busy, in proportion to their rates.  Rows and experts,
 * which the engine waits for, go to the disk that will have them first.
 *
 * A copy that fails, or that somebody changes, is not used any longer: what it did not deliver
 * is read from the model.  A read of the copy counts only if the copy has not changed until
 * then, so no wrong byte is used.
 */
#ifndef MEMWALL_ENGINE_STREAM_MIRROR_H
#define MEMWALL_ENGINE_STREAM_MIRROR_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/format/catalogue.h"
#include "engine/stream/backend.h"
#include "engine/telemetry/telemetry.h"

/*
 * Open the copies of all files of c, and compare them.  path is the copy of a model in one
 * file, or a folder where the copies have the names of the files; the folder of a file, if the
 * model has several.  *out is [c->n_file], allocated.  Returns 0, or -1 with *e: ERR_FORMAT if
 * one differs.
 */
int mirror_open(struct model_file **out, const struct catalogue *c, const char *path,
                struct err *e);
void mirror_close(struct model_file *files, uint32_t n); /* NULL is fine */

/* Returns whether a file has changed since it was opened. */
bool mirror_has_changed(const struct model_file *f);

/* ---- the two disks of a stream; the reader's thread only ---- */

struct disk_load {
    uint64_t flying;                  /* bytes in flight */
    uint64_t busy_from_ns, last_ns;   /* since when there are any; the end of the last read */
    uint64_t window_ns, window_bytes; /* since the rate was measured */
    double bytes_s;                   /* while it is busy; 0: not measured */
    bool is_old;                      /* that was before a pause */
};

struct disks {
    bool has_mirror; /* and it is used */
    struct disk_load disk[READ_DISKS];
    struct err failure; /* why the mirror is not used any longer */
    struct telemetry *telemetry;
};

void disks_open(struct disks *d, struct telemetry *t);
/* Choose the disk of a read that has not begun, for a ring of n_slot slots. */
enum read_disk disks_choose(const struct disks *d, const struct read_op *op, uint32_t n_slot,
                            uint64_t now_ns);
/* A read, or a part of one, is submitted; it is done. */
void disks_begin(struct disks *d, const struct read_op *op, uint64_t now_ns);
void disks_end(struct disks *d, const struct read_op *op, uint64_t now_ns);
/* No read is in flight any longer: the backend has stopped. */
void disks_stop(struct disks *d);
/* Use the mirror no longer. */
void disks_drop(struct disks *d, const struct err *why);

#endif
