/* The basis of the cost of a prompt: see prompt_cost.h. */
#include "config.h"

#include <stdlib.h>

#include "engine/session/model.h"
#include "engine/session/options.h"
#include "engine/session/plan_input.h"
#include "engine/session/prompt_cost.h"

struct cost_basis *cost_basis_new(struct mw_model *m, const struct mw_options *o,
                                  const struct plan *plan, uint64_t held, double pace_s)
{
    struct cost_basis *b = malloc(sizeof *b);
    struct mw_options resolved = *o;
    struct err ignored = ERR_INIT;
    double share;

    if (b == NULL)
        return NULL;
    *b = (struct cost_basis){ .pace_s = pace_s };
    if (options_resolve(m, &resolved, &ignored) != 0 ||
        plan_input_of(m, &resolved, &b->in, &ignored) != 0) {
        b->in = (struct plan_input){ .hot_bytes = m->hot_bytes,
                                     .prompt_bytes = m->prompt_bytes };
        b->in.disk_bytes_s = limits_disk(m, &resolved);
    }
    b->pass = speed_pass(&b->in, plan);
    share = b->in.hot_bytes > 0 ? (double)held / (double)b->in.hot_bytes : 1;
    b->pass.streamed_share = share < 1 ? 1 - share : 0;
    b->pass.keeps_rows = false; /* the rows of a new text were seldom read before */
    return b;
}
