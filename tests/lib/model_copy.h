/*
 * model_copy.h - models in memory, for tests that open one again and again, or stream its weights.
 * Opening one compares some weights with direct reads, which wait for a disk.
 */
#ifndef MEMWALL_TESTS_LIB_MODEL_COPY_H
#define MEMWALL_TESTS_LIB_MODEL_COPY_H

/* As model_path(): the path of a copy, which is removed when the process ends, or of the model
 * itself where no file system in memory has direct reads, which are a part of the tests.  The text
 * is valid until the next call. */
const char *model_copy(const char *name);

#endif
