/* resolve.c - the defaults that depend on the machine and the model (options.h). */
#include "config.h"

#include "engine/session/options.h"

#include <string.h>

#include "engine/plan/plan.h"
#include "engine/session/plan_input.h"

/* Blocks grow with the budget, and the plan with them: choose until it does not change. */
uint64_t mw_default_budget(struct mw_model *m, const struct mw_options *o, uint64_t free_bytes)
{
    struct mw_options then = *o;
    struct err ignored = ERR_INIT; /* planning reports it */
    struct plan_input in;
    uint64_t before;

    if (free_bytes == 0)
        return 0;
    then.memory_bytes = plan_auto_limit(free_bytes);
    if (options_resolve(m, &then, &ignored) != 0)
        return then.memory_bytes;
    for (int i = 0; i < 4; i++) {
        before = then.memory_bytes;
        if (plan_input_of(m, &then, &in, &ignored) != 0)
            break;
        then.memory_bytes = plan_default_budget(&in, free_bytes);
        if (then.memory_bytes == before)
            break;
    }
    return then.memory_bytes;
}

uint64_t mw_reads_nothing_budget(struct mw_model *m, const struct mw_options *o)
{
    struct mw_options then = *o;
    struct err ignored = ERR_INIT;
    uint64_t before = 0;
    struct plan_input in;

    then.memory_bytes = MIB;
    if (options_resolve(m, &then, &ignored) != 0)
        return 0;
    while (then.memory_bytes > before) {
        before = then.memory_bytes;
        if (plan_input_of(m, &then, &in, &ignored) != 0)
            return 0;
        then.memory_bytes = plan_reads_nothing_budget(&in);
        if (then.memory_bytes == UINT64_MAX)
            return 0;
    }
    return before;
}

static uint64_t default_budget(struct mw_model *m, const struct mw_options *o)
{
    struct mw_machine machine;

    mw_machine_read(&machine);
    return mw_default_budget(m, o, machine.budget_bytes);
}

/* A file may have a draft head or a model.  It may be another one than before, when the options
 * were completed. */
static int resolve_head(struct mw_model *m, struct mw_options *o, struct err *e)
{
    struct model_head *head = m->head;

    if (o->draft_file != NULL && (o->draft == MW_DRAFT_FILE || o->draft == MW_DRAFT_MTP)) {
        if (model_head_find(&head, m, o->draft_file, e) != 0)
            return -1;
        o->draft = head != NULL ? MW_DRAFT_MTP : MW_DRAFT_FILE;
    }
    if (o->draft != MW_DRAFT_MTP || head != NULL)
        return 0;
    if (m->no_head.code == ERR_NONE)
        return err_set(e, ERR_ARGUMENT,
                       "the model has no draft head, in its own files or beside them; name "
                       "the file of one with --draft FILE");
    *e = m->no_head;
    return -1;
}

int options_resolve(struct mw_model *m, struct mw_options *o, struct err *e)
{
    if (o->n_thread <= 0) {
        struct mw_machine machine;

        mw_machine_read(&machine);
        o->n_thread = machine.n_thread;
    }
    if ((o->disk_rate > 0 || o->mirror_rate > 0) && o->io == MW_IO_MMAP)
        return err_set(e, ERR_ARGUMENT,
                       "a disk rate cannot be set for mapped weights; use another --io");
    if (o->mirror != NULL && o->io == MW_IO_MMAP)
        return err_set(e, ERR_ARGUMENT,
                       "mapped weights cannot be read from two disks; use another --io");
    if (o->mirror != NULL && model_mirror(m, o->mirror, e) == NULL)
        return -1;
    if (resolve_head(m, o, e) != 0)
        return -1;
    o->n_ctx = options_ctx(m, o);
    if (o->n_logit_row == 0)
        o->n_logit_row = 1;
    if (o->memory_bytes == 0)
        o->memory_bytes = default_budget(m, o);
    if (o->memory_bytes == 0)
        return err_set(e, ERR_ARGUMENT,
                       "cannot choose a budget: neither /proc/meminfo nor sysinfo(2) reports "
                       "how much memory is available. Give a budget, for example "
                       "--memory 2G");
    return 0;
}
