/*
 * tried.h - the settings with which a model answered, as its sessions measure them.
 *
 * The thread of the engine writes the list while others read it, so it is copied under a lock.
 */
#ifndef MEMWALL_ENGINE_SESSION_TRIED_H
#define MEMWALL_ENGINE_SESSION_TRIED_H

#include <pthread.h>
#include <stdint.h>

#include "engine/memwall.h"

struct tried_box {
    pthread_mutex_t lock;
    struct mw_tried list[MW_TRIED_MOST];
    size_t n;
};

/* Returns NULL without memory. */
struct tried_box *tried_new(void);
void tried_free(struct tried_box *b); /* NULL is allowed */

/* The tokens of an answer, after its first one, with the same settings. */
struct tried_answer {
    uint64_t n, ns, stall_ns;
};

/* Begin again. */
void tried_begin(struct tried_answer *a);
/* Add a token that took ns and waited stall_ns for the disk.  From MW_TRIED_TOKENS tokens on, m
 * has a record of the answer with options o, which are resolved.  Allocates nothing. */
void tried_add(struct tried_answer *a, uint64_t ns, uint64_t stall_ns, struct mw_model *m,
               const struct mw_options *o);

#endif
