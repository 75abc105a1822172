/*
 * model_limits.h - the limits of this machine that a model uses.
 *
 * The thread of the engine corrects them (observe.h) while others plan with them, so they are
 * copied under a lock.
 */
#ifndef MEMWALL_ENGINE_SESSION_MODEL_LIMITS_H
#define MEMWALL_ENGINE_SESSION_MODEL_LIMITS_H

#include <pthread.h>
#include <stdbool.h>

#include "engine/base/units.h"
#include "engine/memwall.h"

struct limits_box {
    pthread_mutex_t lock;
    struct mw_limits now;
    bool is_corrected;       /* by work, since they were set */
    mw_limits_keep_fn *keep; /* called when the model is closed; NULL: none */
    void *keep_ctx;
};

/* Returns NULL without memory. */
struct limits_box *limits_new(void);
/* Hand corrected limits, the anchor and the tried settings of m to its keeper. */
void limits_let_keep(struct mw_model *m);
void limits_free(struct limits_box *b); /* NULL is allowed */

/* Add a rate that is not measured yet, of a type that *l does not have. */
void limits_add_rate(struct mw_limits *l, const char *type);

/* Write the name of the rates of pinned weights of a type; "": they are as in the file. */
struct packing;
void limits_laid_type(const char *type, const struct packing *p, char laid[16]);

/* Copy the limits of m.  Any thread. */
struct mw_limits limits_of(const struct mw_model *m);

/* Replace them by corrected ones. */
void limits_correct(const struct mw_model *m, const struct mw_limits *limits);

/* A descriptor of the largest file of m, which m keeps. */
int limits_file(const struct mw_model *m);
/* Open a file of DISK_FILE bytes of noise, which no file system compresses, without a name.
 * Returns a descriptor, or -1 with *e. */
#define DISK_FILE (128 * MIB)
int limits_open_noise(const char *folder, struct err *e);

/* Read a file for a time as the stream of these options does.  p->buffer_bytes 0: enough. */
struct probe_options;
struct probe_rate;
int limits_probe(struct mw_model *m, const struct mw_options *o, int fd,
                 const struct probe_options *p, struct probe_rate *out, struct err *e);

/* Returns the lower of two rates: the measured one at which the disk, or both disks, deliver
 * weights, and the limit in the options.  0: there is neither. */
double limits_disk(const struct mw_model *m, const struct mw_options *o);
double limits_disk_within(double measured, const struct mw_options *o);

#endif
