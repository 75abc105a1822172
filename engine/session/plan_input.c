/*
 * plan_input.c - from options to a plan: which numbers of the model go into the arithmetic.
 */
#include "config.h"

#include <string.h>

#include "engine/model/forward.h"
#include "engine/session/model.h"

/* What the process takes besides the files of the program and the other rows of the plan: 4
 * MiB for the heap, relocated pages of libraries, stacks and small files that it reads, and
 * 10.5 MiB for the largest screen that ui/ draws.  The budget tests compare the sum with the
 * measured charge. */
#define PROGRAM_BYTES (15 * MIB)

/*
 * Text that is held: a message or prompt, messages and files that wait, the conversation, and
 * all of it rendered have at most TEXT_BASE and TEXT_TOKEN_BYTES for each token of the context.
 * Text of a token is seldom longer than 6 bytes, so longer text cannot fit the context.
 *
 * In the plan: four such texts, two more for the values of a template that is evaluated
 * (chat_template.c), and 32 bytes of ids a token (of the session, of a prompt that grows, of
 * answers).  TEXT_FIXED: a parsed template takes at most 2 MiB and its values 1 MiB.  A chat
 * that cannot be saved keeps 1 MiB of text (STORE_MEMORY_BYTES) in a buffer that doubles.
 * Encoding a run of TOKENIZER_RUN_MAX bytes takes 13 bytes for each of them, an encoder keeps
 * such a run, its table takes 256 KiB, and a block of ENCODER_BLOCK bytes gives as many ids.
 */
#define TEXT_BASE        (64 * KIB)
#define TEXT_TOKEN_BYTES 32
#define TEXT_FIXED       (8 * MIB)

#define DEFAULT_CTX 4096

static const char *const kv_names[] = { "f32", "f16", "q8_0", "q4_0" };
static const char *const io_names[] = { "auto", "direct", "buffered", "mmap" };

const char *mw_kv_name(enum mw_kv t)
{
    return kv_names[t];
}

int mw_kv_parse(const char *name)
{
    for (int i = 0; i < 4; i++)
        if (strcmp(name, kv_names[i]) == 0)
            return i;
    return -1;
}

bool mw_kv_is_rotated(enum mw_kv t)
{
    return kv_type_is_rotated((enum kv_type)t);
}

const char *mw_io_name(enum mw_io io)
{
    return io_names[io];
}

int mw_io_parse(const char *name, bool *mmap_drop)
{
    *mmap_drop = strcmp(name, "mmap:drop") == 0;
    if (*mmap_drop || strcmp(name, "mmap:keep") == 0)
        return MW_IO_MMAP;
    for (int i = 0; i < 4; i++)
        if (strcmp(name, io_names[i]) == 0)
            return i;
    return -1;
}

const char *mw_mmap_notice(void)
{
    return "the weights are mapped: the kernel keeps their pages in the page cache, which the "
           "budget does not cover";
}

void mw_options_default(struct mw_options *o)
{
    *o = (struct mw_options){ .kv_k = MW_KV_F16, .kv_v = MW_KV_F16 };
}

/*
 * The budget that is chosen if none is given: what the hot weights need, if that leaves a
 * quarter of what this process can have to the rest of the machine; else three quarters of
 * it.  0: it cannot be known.
 */
static uint64_t default_budget(const struct mw_model *m)
{
    struct mw_machine machine;
    uint64_t all = m->hot_bytes + 512 * MIB, most;

    mw_machine_read(&machine);
    most = machine.budget_bytes / 4 * 3;
    return all < most ? all : most;
}

static uint32_t resolved_ctx(const struct mw_model *m, const struct mw_options *o)
{
    uint32_t n_train = m->catalogue->hparams.n_ctx_train;

    if (o->n_ctx > 0)
        return o->n_ctx;
    return n_train > 0 && n_train < DEFAULT_CTX ? n_train : DEFAULT_CTX;
}

int options_resolve(const struct mw_model *m, struct mw_options *o, struct err *e)
{
    if (o->n_thread <= 0) {
        struct mw_machine machine;

        mw_machine_read(&machine);
        o->n_thread = machine.n_cpu;
    }
    o->n_ctx = resolved_ctx(m, o);
    if (o->memory_bytes == 0)
        o->memory_bytes = default_budget(m);
    if (o->n_logit_row == 0)
        o->n_logit_row = 1;
    if (o->memory_bytes == 0)
        return err_set(e, ERR_ARGUMENT,
                       "cannot choose a budget: neither /proc/meminfo nor sysinfo(2) reports "
                       "how much memory is available. Give a budget, for example "
                       "--memory 2G");
    return 0;
}

uint64_t mw_text_bytes(const struct mw_model *m, const struct mw_options *o)
{
    return TEXT_BASE + (uint64_t)resolved_ctx(m, o) * TEXT_TOKEN_BYTES;
}

static void add_kv(const struct mw_model *m, const struct mw_options *o, struct plan_input *in)
{
    const struct model_desc *d = m->desc;

    for (uint32_t i = 0; i < d->n_kv; i++) {
        uint64_t bytes =
            kv_token_bytes(&d->kv_specs[i], (enum kv_type)o->kv_k, (enum kv_type)o->kv_v);

        if (d->kv_specs[i].is_sliding)
            in->kv_sliding_token_bytes += bytes;
        else
            in->kv_global_token_bytes += bytes;
    }
    in->kv_page_tokens = KV_PAGE;
    in->n_swa = d->hp->n_swa;
    /* Every layer reads, those that share too. */
    for (uint32_t l = 0; l < d->n_layer; l++) {
        const struct layer_desc *layer = &d->layers[l];
        uint32_t seen =
            layer->window > 0 && layer->window < o->n_ctx ? layer->window : o->n_ctx;

        in->kv_read_token_bytes +=
            (double)seen * (double)kv_token_bytes(&d->kv_specs[layer->kv_layer],
                                                  (enum kv_type)o->kv_k, (enum kv_type)o->kv_v);
    }
}

uint64_t program_bytes(const struct mw_model *m)
{
    return PROGRAM_BYTES + m->file_bytes;
}

int plan_input_of(struct mw_model *m, const struct mw_options *o, struct plan_input *in,
                  struct err *e)
{
    const struct model_desc *d = m->desc;
    struct forward_bytes bytes;
    struct stream_shape shape;

    if (o->n_ctx > (uint32_t)1 << 24)
        return err_set(e, ERR_ARGUMENT, "a context of %u tokens is not possible", o->n_ctx);
    if (kv_check_types(d->kv_specs, d->n_kv, (enum kv_type)o->kv_k, (enum kv_type)o->kv_v, e) !=
        0)
        return -1;
    forward_bytes(d, &bytes);
    *in = (struct plan_input){
        .budget_bytes = o->memory_bytes,
        .n_ctx = o->n_ctx,
        .chunk_max = o->chunk,
        .n_thread = o->n_thread,
        .program_bytes = program_bytes(m) + m->header.used + TEXT_FIXED,
        .text_token_bytes = 6 * TEXT_TOKEN_BYTES + 32,
        .tokenizer_bytes = m->has_vocab ? tokenizer_bytes_bound(&m->vocab) : 0,
        .logits_bytes = forward_logit_bytes(d, o->n_logit_row) + sampler_bytes(d->n_vocab),
        .act_fixed_bytes = bytes.act_fixed,
        .act_col_bytes = bytes.act_col,
        .rows_col_bytes = bytes.rows_col,
        .rows_fixed_bytes = bytes.rows_fixed + bytes.lookup,
        .resident_bytes = desc_resident_bytes(m->desc),
        .hot_bytes = m->hot_bytes,
        .prompt_bytes = m->prompt_bytes,
        .streams = o->io != MW_IO_MMAP,
        .experts_bytes = bytes.experts,
        .disk_bytes_s = m->disk_bytes_s,
        .memory_bytes_s = m->memory_bytes_s,
        .flops_s = m->flops_s,
        .flops_prompt_token = forward_prompt_flops(d),
    };
    shape_make(&shape, m->spans, m->n_span, shape_target(o->memory_bytes));
    in->slot_bytes = shape.slot_bytes;
    in->n_slot = shape.n_slot;
    in->n_block = shape.n_block;
    in->ring_fixed_bytes =
        stream_overhead_bytes(m->n_span, shape.n_block, m->catalogue->n_file);
    add_kv(m, o, in);
    return 0;
}

int mw_plan(struct mw_model *m, const struct mw_options *o, struct plan *out, struct err *e)
{
    struct mw_options resolved = *o;
    struct plan_input in;

    if (options_resolve(m, &resolved, e) != 0 || plan_input_of(m, &resolved, &in, e) != 0)
        return -1;
    return plan_make(&in, out, e);
}

int mw_plan_fit(struct mw_model *m, const struct mw_options *o, uint64_t *smallest_budget,
                uint32_t *largest_ctx, struct err *e)
{
    struct mw_options resolved = *o;
    struct plan_input in;

    if (options_resolve(m, &resolved, e) != 0 || plan_input_of(m, &resolved, &in, e) != 0)
        return -1;
    *largest_ctx = plan_largest_ctx(&in);
    /* Blocks grow with the budget, up to a point, and the floor with them. */
    resolved.memory_bytes = 0;
    do {
        *smallest_budget = resolved.memory_bytes;
        if (plan_input_of(m, &resolved, &in, e) != 0)
            return -1;
        resolved.memory_bytes = plan_smallest_budget(&in);
    } while (resolved.memory_bytes > *smallest_budget);
    return 0;
}
