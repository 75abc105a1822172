/* See queue.h. */
#include "config.h"

#include "src/serve/queue.h"

static void number(struct queue *q)
{
    uint32_t i = 0;

    for (struct job *j = q->first; j != NULL; j = j->next)
        j->ahead = ++i;
    q->n = i;
}

/* The number of requests of a client before `until`, with the one that was taken last. */
static uint32_t turns_of(const struct queue *q, uint64_t client, const struct job *until)
{
    uint32_t n = q->has_last && q->last_client == client;

    for (const struct job *j = q->first; j != until; j = j->next)
        n += j->client == client;
    return n;
}

bool queue_add(struct queue *q, struct job *j)
{
    uint32_t turn = turns_of(q, j->client, NULL);
    struct job **at = &q->first;

    if (q->n >= QUEUE_MOST)
        return false;
    /* After all requests that are at most the same turn of their own clients. */
    while (*at != NULL && turns_of(q, (*at)->client, *at) <= turn)
        at = &(*at)->next;
    j->next = *at;
    *at = j;
    number(q);
    j->position = j->ahead;
    return true;
}

struct job *queue_take(struct queue *q)
{
    struct job *j = q->first;

    if (j == NULL)
        return NULL;
    q->first = j->next;
    j->next = NULL;
    j->ahead = 0;
    q->last_client = j->client;
    q->has_last = true;
    number(q);
    return j;
}

void queue_remove(struct queue *q, struct job *j)
{
    for (struct job **at = &q->first; *at != NULL; at = &(*at)->next)
        if (*at == j) {
            *at = j->next;
            j->next = NULL;
            number(q);
            return;
        }
}
