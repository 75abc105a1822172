/*
 * inspect.h - the parts of a model file, also of one that memwall cannot run.
 */
#ifndef MEMWALL_ENGINE_API_INSPECT_H
#define MEMWALL_ENGINE_API_INSPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/format/summary.h"

struct mw_inspect;

/*
 * Read the headers of a model file.  A model that memwall cannot run is described as far as its
 * keys allow, and mw_inspect_problem() gives the reason.  mw_inspect_open() fails with a
 * specific error if the file is not a model; mw_inspect_open_bare() accepts such a file, so
 * that its tensors can be listed (summary.n_layer is 0).
 */
int mw_inspect_open(struct mw_inspect **out, const char *path, struct err *e);
int mw_inspect_open_bare(struct mw_inspect **out, const char *path, struct err *e);
void mw_inspect_close(struct mw_inspect *i);
/* The reason why memwall cannot run the model, or NULL if it can. */
const struct err *mw_inspect_problem(const struct mw_inspect *i);

/* The sums and tables of format/summary.h.  Valid until i is closed. */
const struct summary *mw_inspect_summary(const struct mw_inspect *i);
/* Describe tensor n of summary.n_tensor.  Returns false after the last. */
bool mw_inspect_tensor(const struct mw_inspect *i, uint32_t n, struct summary_tensor *out);

/* Read up to 64 KiB of each BF16 matrix, or of each F16 one.  Returns 0, or -1 with *e. */
int mw_inspect_exponents(const struct mw_inspect *i, bool f16, struct mw_exponents *out,
                         struct err *e);

struct mw_text_info {
    char kind[40]; /* of the tokenizer: "BPE over bytes (qwen2)" */
    uint32_t n_token, n_merge;
    char chat_format[32];  /* "gemma4", "template" (the model's own), or "raw" (none) */
    char chat_choice[400]; /* the same in words: "the model's template (evaluated)" */
    char notice[512]; /* what the vocabulary leaves open or has wrong, for the user; or "" */
};
/* Read the vocabulary.  Fails if the model has none, or one that cannot be read. */
int mw_inspect_text(const struct mw_inspect *i, struct mw_text_info *out, struct err *e);

#endif
