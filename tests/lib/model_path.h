/*
 * model_path.h - where the small models for tests lie: two in tests/data, the others beside
 * the tree when they are there.
 */
#ifndef MEMWALL_TESTS_LIB_MODEL_PATH_H
#define MEMWALL_TESTS_LIB_MODEL_PATH_H

#include <stddef.h>

/* Path of file "gemma4-tiny.gguf" or folder "gemma4-tiny-hf"; NULL: neither place has it.
 * Static buffer, until the next call. */
const char *model_path(const char *name);

/* Read a whole file, with a NUL after it; the caller frees it.  NULL if it is missing. */
void *model_read(const char *name, size_t *len);

#endif
