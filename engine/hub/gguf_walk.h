/*
 * gguf_walk.h - finds the end of a GGUF header whose bytes arrive in pieces.
 *
 * gguf_read() of format/ checks a header that is there.  This only finds out how long it is: it
 * skips keys and tensors, and can go on when more bytes have come.
 *
 *     struct gguf_walk w = { 0 };
 *     while (!w.is_done && !w.is_bad) {
 *         get more bytes, set w.p and w.n to all of them
 *         gguf_walk_on(&w);
 *     }
 */
#ifndef MEMWALL_ENGINE_HUB_GGUF_WALK_H
#define MEMWALL_ENGINE_HUB_GGUF_WALK_H

#include <stdbool.h>
#include <stdint.h>

#define GGUF_WALK_MAX   ((uint64_t)64 << 20) /* a longer header is bad */
#define GGUF_WALK_FIXED 12 /* bytes at the end of a tensor's entry: type and offset */

struct gguf_walk {
    const unsigned char *p;
    uint64_t n, at; /* bytes that are there; the next one to look at */
    uint64_t n_tensor, n_key;
    uint64_t n_element; /* strings left of an array */
    uint64_t n_left;    /* tensors left */
    uint64_t tensors;   /* where their list begins; 0: not there yet */
    bool is_bad, is_done;
};

/* Walk as far as the bytes go.  At the end, `at` is the first byte after the list of tensors.
 */
void gguf_walk_on(struct gguf_walk *w);

/*
 * Do the first n bytes of a file say that it is a model?  general.type decides, except for
 * assistants, which call themselves models; without it, files with an architecture are models,
 * except for projectors ("clip").
 */
bool gguf_walk_is_model(const unsigned char *p, uint64_t n);

/* Returns the bytes of the tensor's entry at `at`; 0: more are needed, or it is bad. */
uint64_t gguf_walk_tensor(struct gguf_walk *w);

#endif
