/*
 * model_path.h - find the small models for tests: some are in tests/data, the others in
 * MW_SHARED if that exists.
 */
#ifndef MEMWALL_TESTS_LIB_MODEL_PATH_H
#define MEMWALL_TESTS_LIB_MODEL_PATH_H

#include <stddef.h>

/* Returns the path of a file such as "gemma4-tiny.gguf" or a folder such as "gemma4-tiny-hf",
 * or NULL if it is missing.  The text is valid until the next call. */
const char *model_path(const char *name);

/* Read a whole file and append a NUL; the caller frees it.  Returns NULL if it is missing. */
void *model_read(const char *name, size_t *len);

#endif
