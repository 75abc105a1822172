/* disks.h - the two disks of a model with a mirror, in words. */
#ifndef MEMWALL_UI_WORDS_DISKS_H
#define MEMWALL_UI_WORDS_DISKS_H

#include <stddef.h>

#include "engine/memwall.h"

#define DISKS_TEXT 160

/* "model 400 MB/s, mirror 395 MB/s": what each delivered while it had reads.  "" without a
 * mirror, or before anything was read.  Returns buf. */
char *disks_text(const struct mw_sample *s, char *buf, size_t n);

#endif
