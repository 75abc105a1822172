/* See settled.h. */
#include "config.h"

#include "engine/session/settled.h"

#include "engine/plan/plan.h"
#include "engine/session/options.h"

/* The budget follows from the free memory, as it was read when the budget was last chosen. */
static void choose_budget(struct mw_model *m, const struct settled *before, struct settled *s)
{
    bool is_same = before->asked.memory_choice == s->asked.memory_choice;

    if (s->asked.memory_bytes > 0)
        return;
    if (is_same && before->free_bytes > 0) {
        s->free_bytes = before->free_bytes;
    } else {
        struct mw_machine machine;

        mw_machine_read(&machine);
        s->free_bytes = machine.budget_bytes;
    }
    s->o.memory_bytes = mw_default_budget(m, &s->o, s->free_bytes);
}

int settled_options(struct mw_model *m, const struct settled *before,
                    const struct mw_options *o, struct settled *out, struct err *e)
{
    struct settled s = { .asked = *o, .o = *o, .chunk_target = before->chunk_target };

    if (before->chunk_target != 0)
        options_keep(&before->asked, &before->o, &s.o);
    choose_budget(m, before, &s);
    if (options_resolve(m, &s.o, e) != 0)
        return -1;
    *out = s;
    return 0;
}

static int try_plan(struct mw_model *m, struct settled *s, const struct mw_expert_use *use,
                    struct plan *plan, struct err *e)
{
    struct plan_input in;

    if (plan_input_of(m, &s->o, &in, e) != 0)
        return -1;
    if (use != NULL)
        in.expert_use = *use;
    if (s->chunk_target == 0)
        s->chunk_target = plan_chunk_target(&in);
    in.chunk_target = s->chunk_target;
    return plan_of(m, &s->o, &in, plan, e);
}

int settled_plan(struct mw_model *m, struct settled *s, const struct mw_expert_use *use,
                 struct plan *plan, struct err *e)
{
    struct err first = ERR_INIT;
    int rc = try_plan(m, s, use, plan, &first);

    *e = first;
    if (rc != 0 && first.code == ERR_BUDGET && s->o.block_bytes != s->asked.block_bytes) {
        *e = (struct err)ERR_INIT;
        s->o.block_bytes = s->asked.block_bytes;
        rc = try_plan(m, s, use, plan, e);
    }
    s->o.block_bytes = (uint32_t)options_block(&s->o);
    return rc;
}
