/*
 * tokenizer_kept.h - keep a built tokenizer in a file, for the next start.
 *
 * The file belongs to one vocabulary: its source is recognised by device, inode, size and the
 * times of its last changes (struct vocab_source).  Other builds of the program and other
 * vocabularies build a tokenizer and replace the file.
 */
#ifndef MEMWALL_ENGINE_TEXT_TOKENIZER_KEPT_H
#define MEMWALL_ENGINE_TEXT_TOKENIZER_KEPT_H

#include "engine/text/tokenizer.h"

/* Open the tokenizer that is kept in folder; info is that of vocab_info(), and from is the
 * source that it was read from.  It takes the memory of tokenizer_open(), but no more while it
 * opens. Returns 0, or -1 with *e if none is kept or the file is damaged, a link, or of another
 * user. */
int tokenizer_kept_open(struct tokenizer **out, const struct vocab_source *from,
                        const struct vocab_info *info, const char *folder, struct err *e);

/* Write a tokenizer that was built from this source to folder, past the page cache.  Returns 0,
 * or -1 with *e. */
int tokenizer_keep(const struct tokenizer *t, const struct vocab_source *from,
                   const char *folder, struct err *e);

#endif
