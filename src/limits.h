/*
 * limits.h - the speed of disk, memory and arithmetic on this machine, measured and cached.
 *
 * The cache folder keeps limits per file system, processor and weight type for a day, and
 * doubtful ones for an hour (limits_book.h, rates_book.h).  Sessions correct them while they
 * work.  A new rate of a disk that differs from a trustworthy earlier one by a factor of
 * FAR_OFF or more is measured a second time; if that does not bring it nearer, it is doubtful.
 * Without a measurement there is no prediction.
 *
 * Small reads are slower, so the disk is measured with the reads of the plan, and its rate is
 * kept for them.
 */
#ifndef MEMWALL_SRC_LIMITS_H
#define MEMWALL_SRC_LIMITS_H

#include "engine/memwall.h"

enum limits_effort {
    LIMITS_KEPT,    /* use those that are cached */
    LIMITS_NO_DISK, /* of a model without a file: measure all but the disk; write no file */
    LIMITS_MEASURE,
    LIMITS_FRESH, /* the same, and measure again if older than a minute or doubtful */
};

/*
 * Set the limits of m: cached ones, or new ones, which take one or two seconds and are cached.
 * A failure is silent: there are no predictions then.  For a model without a
 * file, model_path is the folder where it would be.
 */
void limits_ensure(struct mw_model *m, const char *model_path, const struct mw_options *o,
                   enum limits_effort effort);

/* Measure although there are cached limits, which the new ones replace.  -1 with *e. */
int limits_measure_again(struct mw_model *m, const char *model_path, const struct mw_options *o,
                         struct err *e);

/* Measure the disk of a folder, where a model will be, and memory.  -1 with *e. */
int limits_measure_folder(const char *folder, const struct mw_options *o, struct err *e);

/* The same, unless they are cached.  A failure is silent. */
void limits_ensure_folder(const char *folder, const struct mw_options *o);

/*
 * A mw_limits_fn: the cached limits, for models that are listed and not opened.  They are read
 * at the first call; ctx is not used.  One thread.  For models with a weight type that was not
 * measured on that disk, it gives the rates of disk and memory of another model.
 */
bool limits_kept(void *ctx, const char *path, const char *type, const struct mw_options *o,
                 struct mw_limits *out);

#endif
