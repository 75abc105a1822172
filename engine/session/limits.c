/*
 * limits.c - what disk, memory and arithmetic give, for the model at hand.
 */
#include "config.h"

#include "engine/machine/probe.h"
#include "engine/model/forward.h"
#include "engine/session/model.h"
#include "engine/session/options.h"
#include "engine/stream/shape.h"

/* Several times a last-level cache: half of 64 MiB would come from one of 32. */
#define MOST_BUFFER (256 * MIB)

/* The file that most bytes of a token come from. */
static const struct model_file *main_file(const struct mw_model *m)
{
    const struct model_file *files = m->catalogue->files;
    uint32_t best = 0;

    for (uint32_t i = 1; i < m->catalogue->n_file; i++)
        if (files[i].size > files[best].size)
            best = i;
    return &files[best];
}

int mw_limits_measure(const struct mw_model *m, const struct mw_options *o, double seconds,
                      struct mw_limits *out, struct err *e)
{
    struct mw_options resolved = *o;
    struct probe_options p = { .seconds = seconds / 3, .buffer_bytes = MOST_BUFFER };
    const struct kernels *kernels = o->isa != NULL ? kernels_by_name(o->isa) : kernels_best();
    struct probe_rate disk = { 0 }, memory = { 0 };
    bool is_direct = o->io == MW_IO_AUTO || o->io == MW_IO_DIRECT;
    int fd = main_file(m)->fd, rc;

    *out = (struct mw_limits){ 0 };
    if (options_resolve(m, &resolved, e) != 0)
        return -1;
    if (kernels == NULL)
        return err_set(e, ERR_ARGUMENT, "no kernels \"%s\" for this CPU", o->isa);
    if (p.buffer_bytes > resolved.memory_bytes / 2)
        p.buffer_bytes = resolved.memory_bytes / 2;
    rc = probe_disk(fd, is_direct, SHAPE_PROBE_DEPTH, SHAPE_PROBE_BYTES, &p, &disk, e);
    if (rc != 0 && e->code == ERR_UNSUPPORTED && o->io == MW_IO_AUTO)
        rc = probe_disk(fd, false, SHAPE_PROBE_DEPTH, SHAPE_PROBE_BYTES, &p, &disk, e);
    if (rc != 0 || probe_memory(resolved.n_thread, &p, &memory, e) != 0 ||
        forward_measure(m->desc, kernels, resolved.exact, resolved.n_thread, p.seconds,
                        &out->flops_s, e) != 0)
        return -1;
    out->disk_bytes_s = disk.bytes_s;
    out->memory_bytes_s = memory.bytes_s;
    return 0;
}

void mw_model_set_limits(struct mw_model *m, const struct mw_limits *limits)
{
    m->disk_bytes_s = limits->disk_bytes_s;
    m->memory_bytes_s = limits->memory_bytes_s;
    m->flops_s = limits->flops_s;
}
