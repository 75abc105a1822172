/*
 * kept_limits.h - the speed of disk, memory and arithmetic on this machine, measured and cached.
 *
 * The cache folder keeps them in one file (engine/limits/store.h) by the rule of
 * engine/limits/limits.h.  Sessions correct them while they work.  Without a measurement there is
 * no prediction.
 */
#ifndef MEMWALL_SRC_MACHINE_KEPT_LIMITS_H
#define MEMWALL_SRC_MACHINE_KEPT_LIMITS_H

#include "engine/memwall.h"

enum limits_effort {
    LIMITS_KEPT,    /* use those that are cached */
    LIMITS_NO_DISK, /* of a model without a file: measure all but the disk; write no file */
    LIMITS_MEASURE,
    LIMITS_FRESH, /* the same, and measure again if older than a minute or doubtful */
    LIMITS_AGAIN, /* measure although there are cached ones */
};

/*
 * Set the limits of m: cached ones, or new ones, which take one or two seconds and are cached.
 * A failure is silent: there are no predictions then.  For a model without a
 * file, model_path is the folder where it would be.
 */
void limits_ensure(struct mw_model *m, const char *model_path, const struct mw_options *o,
                   enum limits_effort effort);

/* The same with LIMITS_MEASURE for a command that waits for it: a line on standard error
 * says so, unless is_quiet. */
void limits_ensure_shown(struct mw_model *m, const char *model_path, const struct mw_options *o,
                         bool is_quiet);

/* The same as limits_ensure() with LIMITS_AGAIN.  -1 with *e. */
int limits_measure_again(struct mw_model *m, const char *model_path, const struct mw_options *o,
                         struct err *e);

/*
 * Let as many threads compute by default as are kept to be best for these processors, or, with an
 * effort above LIMITS_KEPT, compare them, which takes a third of a second and is kept for good.
 * limits_ensure() does so where it may measure the disk.
 */
void limits_ensure_threads(const struct mw_options *o, enum limits_effort effort);

/* Use the ways of products that are kept for these processors. */
void limits_use_ways(const struct mw_options *o);

/* Measure the disk of a folder, where a model will be, and memory.  -1 with *e. */
int limits_measure_folder(const char *folder, const struct mw_options *o, struct err *e);

/* The same, unless they are cached.  A failure is silent. */
void limits_ensure_folder(const char *folder, const struct mw_options *o);

/* Write the settings with which answers of this model were measured, newest first, to
 * list[MW_TRIED_MOST].  Returns their number. */
size_t limits_tried(const char *model_path, const struct mw_options *o, struct mw_tried *list);

/* Read the cached limits, for models that are listed and not opened, and let as many threads
 * compute by default as they say.  limits_store_free() frees them. */
void limits_read(struct limits_store *kept);

/* A mw_limits_fn; ctx is a struct limits_store.  Without sizes, path is a folder. */
bool limits_kept(void *ctx, const char *path, const struct mw_options *o,
                 const struct mw_read_sizes *sizes, struct mw_limits *out,
                 struct plan_anchor *anchor);

#endif
