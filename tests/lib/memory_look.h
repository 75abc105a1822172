/*
 * memory_look.h - compare memory with the budget while weights get other memory.
 *
 * The program is linked with -Wl,--wrap=stream_set_memory, so that a session is looked at before
 * and after each call.
 */
#ifndef MEMWALL_TESTS_LIB_MEMORY_LOOK_H
#define MEMWALL_TESTS_LIB_MEMORY_LOOK_H

#include "engine/memwall.h"

struct memory_look {
    struct mw_session *session; /* NULL: nobody looks */
    uint32_t n;                 /* looks */
    double predicted;           /* tokens per second of the last one */
};
extern struct memory_look memory_look;

/* Look now. */
void memory_look_now(void);

#endif
