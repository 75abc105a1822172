/*
 * program.h - this build of memwall, its libraries, and the kernels that this CPU runs.
 */
#ifndef MEMWALL_ENGINE_API_PROGRAM_H
#define MEMWALL_ENGINE_API_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "0.1.0" */
const char *mw_version(void);
/* Feature i of this build and its libraries: "io_uring", "openblas 0.3.21 SkylakeX".  NULL
 * after the last. */
const char *mw_feature(int i);
/* Returns "openblas 0.3.21 SkylakeX", or "" if the library cannot be loaded or does not get its
 * buffers.  Loads the library to ask it, and unloads it unless a model uses it. */
const char *mw_blas_name(void);
/* Is a thread in that library?  *returned: how often its calls returned.  It may be called by the
 * handler of a signal: a call that does not return cannot be cancelled. */
bool mw_blas_is_inside(uint64_t *returned);
/* Whether the system refuses the library its buffers now. */
bool mw_blas_is_denied(void);
/* Kernel set i that this CPU runs, the fastest first.  NULL after the last. */
const char *mw_isa(int i);
/* Why this system cannot use kernels that its processor has, as a sentence; NULL if it can. */
const char *mw_isa_denied(void);
const char *mw_chat_format(int i); /* the name of built-in chat format i; NULL after the last */

#endif
