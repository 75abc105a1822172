/* filled.h - a session that holds random keys and values, because evaluating so many takes hours. */
#ifndef MEMWALL_TESTS_BENCH_FILLED_H
#define MEMWALL_TESTS_BENCH_FILLED_H

#include "engine/session/session_internal.h"

/* Numbers of all types that are finite: halves between 0.5 and 1. */
static inline int filled_random(void *ctx, void *bytes, size_t n, struct err *e)
{
    uint64_t *x = ctx;
    uint16_t *to = bytes;

    (void)e;
    for (size_t i = 0; i < n / 2; i++) {
        *x ^= *x << 13;
        *x ^= *x >> 7;
        *x ^= *x << 17;
        to[i] = (uint16_t)((*x & 0x83ff) | 0x3800);
    }
    return 0;
}

/* The session is new, and holds n tokens then. */
static inline int filled_session(struct mw_session *s, uint32_t n, struct err *e)
{
    uint32_t from = kv_ring_needed(s->kv, n), n_page = kv_page_count(s->kv, n);
    uint64_t x = 88172645463325252u;
    int rc = 0;

    if (settle_memory(s, n, e) != 0)
        return -1;
    kv_fill_begin(s->kv, n);
    for (uint32_t i = 0; i < n_page && rc == 0; i++)
        rc = kv_each_page(s->kv, i, n, filled_random, &x, e);
    if (rc == 0)
        rc = kv_each_ring(s->kv, from, n, filled_random, &x, e);
    kv_fill_end(s->kv, n, from);
    for (uint32_t i = 0; i < n; i++) {
        s->tokens.id[i] = 5;
        s->tokens.in_tiles[i] = false;
    }
    s->tokens.n = n;
    return rc;
}

#endif
