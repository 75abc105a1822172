/*
 * saved_kv.h - a session in a KV file, and back.
 *
 *     part 0 … n - 1   the pages of the KV store, one part each
 *     part n           ids, rings, recurrent state, the newest copies, and the notes of a
 * caller
 *
 * Keys and values follow from the ids before them and from the arithmetic.  So a page stays in
 * the file while the ids up to its end are the same, and a file is used only if it agrees in
 * all facts on which the arithmetic depends: version, model, kernels, OpenBLAS, rope, KV types.
 * Then the next token has the bits of a session that never stopped.
 */
#ifndef MEMWALL_ENGINE_SESSION_SAVED_KV_H
#define MEMWALL_ENGINE_SESSION_SAVED_KV_H

#include <stdint.h>

#include "engine/kv/kv.h"
#include "engine/kv/kv_file.h"
#include "engine/session/session.h"

/* How a session is saved or loaded.  Zeros: without end and without notes. */
struct saved_kv_call {
    uint64_t max_bytes;      /* of the file; 0: no limit */
    kv_file_stops_fn *stops; /* ends it early with ERR_CANCELLED */
    void *stops_ctx;
    /* The caller's bytes at the end: give them to fn, or take them from it.  NULL: none. */
    int (*save_notes)(void *ctx, kv_bytes_fn *fn, void *fn_ctx, struct err *e);
    int (*load_notes)(void *ctx, kv_bytes_fn *fn, void *fn_ctx, struct err *e);
    void *notes_ctx;
};

struct saved_kv {
    uint32_t n_token;
    uint64_t bytes; /* written or read */
};

/* Predict the seconds to read a file of so many bytes now, or at most to write it; 0: not known. */
double session_kv_read_s(const struct mw_session *s, uint64_t bytes);
double session_kv_write_s(const struct mw_session *s, uint64_t bytes);

/* Write what the session holds.  -1 with *e and the file as before. */
int session_save_kv(struct mw_session *s, const char *path, const struct saved_kv_call *call,
                    struct saved_kv *out, struct err *e);

/*
 * Let the session hold what is in the file, in place of what it holds.  After damage in a page
 * that is fewer tokens, up to the damage or to a copy before it.  A damaged file is deleted. -1
 * with *e, which says why the file is not used: then the session is as before, or holds
 * nothing.
 */
int session_load_kv(struct mw_session *s, const char *path, const struct saved_kv_call *call,
                    struct saved_kv *out, struct err *e);

#endif
