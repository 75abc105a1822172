/*
 * fuzz_model.h - tiny valid models, changed as an input says, as files in memory.
 */
#ifndef MEMWALL_TESTS_FUZZ_FUZZ_MODEL_H
#define MEMWALL_TESTS_FUZZ_FUZZ_MODEL_H

#include <stddef.h>
#include <stdint.h>

/*
 * The path of the model that the input describes, a GGUF file or a folder; it is good until
 * the next call.  The first two bytes choose one of the models and its weight type, each
 * further group of bytes is one change.  NULL: the system gives no files.
 */
const char *fuzz_model_make(const uint8_t *data, size_t size);

#endif
