/*
 * encoding.h - the mark with which a text says how its characters are encoded.
 *
 * Editors and shells of Windows begin texts with U+FEFF, the byte order mark.  In UTF-8 it has
 * no meaning and is not a part of the text.  Every reader of a text that people write skips it.
 */
#ifndef MEMWALL_ENGINE_BASE_ENCODING_H
#define MEMWALL_ENGINE_BASE_ENCODING_H

#include <stddef.h>

#include "engine/base/err.h"

#define ENCODING_MARK_BYTES 4 /* that are enough to recognise every mark */

/* Returns the bytes of the mark at the start of a text: 3 in UTF-8, 0 if there is none.  Returns
 * -1 with *e, which says how to convert it, if the text is UTF-16 or UTF-32. */
int encoding_mark(const void *text, size_t n, struct err *e);

#endif
