/*
 * tokenizer_kept.h - keep a built tokenizer in a file, for the next start.
 *
 * The file belongs to one vocabulary: its source is recognised by device, inode, size and
 * modification time.  Other versions of the program and other vocabularies build a tokenizer
 * and replace the file.
 */
#ifndef MEMWALL_ENGINE_TEXT_TOKENIZER_KEPT_H
#define MEMWALL_ENGINE_TEXT_TOKENIZER_KEPT_H

#include "engine/text/tokenizer.h"

/* Open the tokenizer of c that is kept in folder; info is that of vocab_info().  It takes the
 * memory of tokenizer_open(), but no more while it opens.  Returns 0, or -1 with *e if none is
 * kept or the file is damaged. */
int tokenizer_kept_open(struct tokenizer **out, const struct catalogue *c,
                        const struct vocab_info *info, const char *folder, struct err *e);

/* Write the tokenizer of c to folder, past the page cache.  Returns 0, or -1 with *e. */
int tokenizer_keep(const struct tokenizer *t, const struct catalogue *c, const char *folder,
                   struct err *e);

#endif
