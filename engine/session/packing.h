/*
 * packing.h - the forms in which pinned weights are stored: BF16 packed (compute/packed.h),
 * quantised types with sixteen rows side by side (compute/interleave.h).
 *
 * The size of packed weights is known only when they are read.  So a few of each matrix are
 * read when a model is opened, and each of its blocks gets room for twice the patches that
 * these need, and a byte more for each 128 weights.  A block that needs more is streamed.
 * Interleaved weights take the same bytes as in the file.
 */
#ifndef MEMWALL_ENGINE_SESSION_PACKING_H
#define MEMWALL_ENGINE_SESSION_PACKING_H

#include "engine/session/model.h"

/* Bytes of weights that are read of each matrix, a page of the file. */
#define PACKING_SAMPLE 4096

/* Read the samples.  Returns 0, or -1 with *e. */
int packing_sample(struct mw_model *m, struct err *e);

/* The choice for some options, and what a plan needs of it; zeros if all is as in the file. */
struct packing {
    bool packs;
    bool interleaves[TYPE_COUNT]; /* weight types */
    uint64_t saved_bytes;   /* of all spans, if all of them are pinned */
    uint64_t landing_bytes; /* stream_landing_bytes() */
};

/* Unless the option says so, weights are packed only if that saves more than the ring and the
 * landing take.  Types are interleaved unless mw_model_keep_rows() says that they are faster as in
 * the file. */
void packing_choose(const struct mw_model *m, const struct mw_options *o, struct packing *out);

/* Whether pinned weights of this type are interleaved. */
bool packing_interleaves(const struct packing *p, enum tensor_type type);

/* Write the m->n_span spans with their forms to `spans`. */
void packing_spans(const struct mw_model *m, const struct packing *p, struct stream_span *spans);

/* The stream_lay_fn of these spans. */
bool packing_lay(const struct stream_span *span, uint64_t n_row, const void *from, void *to,
                 size_t room, void *scratch);

#endif
