/*
 * product_choice.h - choose OpenBLAS or our kernels for the prompts of a model.
 */
#ifndef MEMWALL_ENGINE_SESSION_PRODUCT_CHOICE_H
#define MEMWALL_ENGINE_SESSION_PRODUCT_CHOICE_H

#include <stdbool.h>

#include "engine/session/model.h"

struct product_choice {
    struct products products;
    bool has_blas; /* at least one weight type goes through OpenBLAS, which is loaded */
    double speedup[TYPE_COUNT]; /* of prompts, against the kernels; 0: the kernels multiply */
};

/* Choose from resolved options and the rates of the model, and load OpenBLAS if it is used. The
 * library stays loaded until the model is closed.  If the system refuses its buffers, our
 * kernels are chosen.  Returns -1 with *e if it cannot be loaded. */
int product_choice_of(struct mw_model *m, const struct mw_options *o,
                      struct product_choice *out, struct err *e);

/* Returns the kernel set of the options, or NULL with *e if this CPU does not run it. */
const struct kernels *kernels_of(const struct mw_options *o, struct err *e);

#endif
