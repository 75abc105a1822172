/*
 * queue.h - the requests that wait for the engine.
 *
 * Clients take turns: the first request of each address comes before the second one of any.  So
 * a client that sends many requests waits for its own, and not the others for it.
 */
#ifndef MEMWALL_SRC_SERVE_QUEUE_H
#define MEMWALL_SRC_SERVE_QUEUE_H

#include "src/serve/job.h"

#define QUEUE_MOST 32 /* requests that wait */

struct queue {
    struct job *first; /* in the order in which they are answered */
    uint32_t n;
    uint64_t last_client; /* of the request that was taken last */
    bool has_last;
};

/* Add a job in its place, and number all.  False if the queue is full. */
bool queue_add(struct queue *q, struct job *j);
/* Take the next job; NULL if there is none. */
struct job *queue_take(struct queue *q);
/* Take out a job whose client is gone. */
void queue_remove(struct queue *q, struct job *j);

#endif
