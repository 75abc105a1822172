/*
 * limits.h - the speed of disk, memory and arithmetic on this machine, measured and cached.
 *
 * The cache folder has one line per file system, processor and weight type, valid for a day.
 * The file may be deleted at any time.  Without a measurement there is no prediction.
 */
#ifndef MEMWALL_SRC_LIMITS_H
#define MEMWALL_SRC_LIMITS_H

#include "engine/memwall.h"

/* Set the limits of m: cached ones, or, with may_measure, new ones, which take about a second
 * and are cached.  A failure is silent: there are no predictions then. */
void limits_ensure(struct mw_model *m, const char *model_path, const struct mw_options *o,
                   bool may_measure);

/*
 * The limits in the cache folder, for models that are listed and not opened.  limits_kept() is
 * a mw_limits_fn whose ctx is a book.
 */
struct limits_book;
struct limits_book *limits_book_read(void); /* NULL if none are kept */
bool limits_kept(void *book, const char *path, const char *type, const struct mw_options *o,
                 struct mw_limits *out);
void limits_book_free(struct limits_book *b);

#endif
