/*
 * fuzz_model.h - small valid models in memory, changed as an input says.
 */
#ifndef MEMWALL_TESTS_FUZZ_FUZZ_MODEL_H
#define MEMWALL_TESTS_FUZZ_FUZZ_MODEL_H

#include <stddef.h>
#include <stdint.h>

/*
 * Returns the path of the model that the input describes, a GGUF file or a folder, valid until
 * the next call.  The first two bytes choose a model and its weight type; each further group of
 * bytes is one change.  Returns NULL if the system has no files.
 */
const char *fuzz_model_make(const uint8_t *data, size_t size);

#endif
