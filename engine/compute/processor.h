/*
 * processor.h - what differs between processors and systems beside instruction sets.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_PROCESSOR_H
#define MEMWALL_ENGINE_COMPUTE_PROCESSOR_H

#include <stdbool.h>

/* Whether the processor reports AMX with products of 8 bits. */
bool processor_has_amx(void);

/* Ask the system for permission to use AMX, which then holds for all threads of the process.
 * Returns NULL, or why it cannot be used although the processor has it: a sentence. */
const char *processor_amx_denied(void);

bool processor_is_amd(void);

#endif
