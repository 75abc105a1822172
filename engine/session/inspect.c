/* The parts of a model file, described without loading the model. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/compute/packed.h"
#include "engine/format/catalogue.h"
#include "engine/format/vocab.h"
#include "engine/memwall.h"
#include "engine/model/desc.h"
#include "engine/stream/read_now.h"
#include "engine/text/chat_format.h"
#include "engine/text/tokenizer.h"

struct mw_inspect {
    struct catalogue *catalogue;
    struct summary summary;
    struct err problem; /* the reason why it cannot run */
};

static int open_bare(struct mw_inspect *i, const char *path, struct err *e)
{
    if (catalogue_open_bare(&i->catalogue, path, e) != 0)
        return -1;
    summary_make(&i->summary, i->catalogue);
    return 0;
}

/* A model that memwall cannot run is still described, as far as its keys allow. */
static int open_described(struct mw_inspect *i, const char *path, struct err *e)
{
    struct model_desc *desc = NULL;
    struct err ignored = ERR_INIT;

    if (catalogue_open(&i->catalogue, path, e) == 0) {
        summary_make(&i->summary, i->catalogue);
        desc_new(&desc, i->catalogue, &i->problem);
        desc_free(desc);
        return 0;
    }
    if (e->code != ERR_UNSUPPORTED || catalogue_open_bare(&i->catalogue, path, &ignored) != 0)
        return -1;
    i->problem = *e;
    if (summary_make_foreign(&i->summary, i->catalogue)) {
        *e = (struct err)ERR_INIT;
        return 0;
    }
    catalogue_close(i->catalogue);
    return -1;
}

static int inspect(struct mw_inspect **out, const char *path,
                   int (*open)(struct mw_inspect *i, const char *path, struct err *e),
                   struct err *e)
{
    struct mw_inspect *i = calloc(1, sizeof *i);

    *out = NULL;
    if (i == NULL)
        return err_memory(e, "the sums of a model");
    i->problem = (struct err)ERR_INIT;
    if (open(i, path, e) != 0) {
        free(i);
        return -1;
    }
    *out = i;
    return 0;
}

int mw_inspect_open(struct mw_inspect **out, const char *path, struct err *e)
{
    return inspect(out, path, open_described, e);
}

int mw_inspect_open_bare(struct mw_inspect **out, const char *path, struct err *e)
{
    return inspect(out, path, open_bare, e);
}

const struct err *mw_inspect_problem(const struct mw_inspect *i)
{
    return i->problem.code != ERR_NONE ? &i->problem : NULL;
}

void mw_inspect_close(struct mw_inspect *i)
{
    if (i == NULL)
        return;
    catalogue_close(i->catalogue);
    free(i);
}

const struct summary *mw_inspect_summary(const struct mw_inspect *i)
{
    return &i->summary;
}

bool mw_inspect_tensor(const struct mw_inspect *i, uint32_t n, struct summary_tensor *out)
{
    if (n >= i->catalogue->n_tensor)
        return false;
    summary_tensor_at(i->catalogue, n, out);
    return true;
}

/* --- exponents --- */

#define EXPONENT_SAMPLE ((size_t)64 << 10) /* bytes of each tensor */

/* Count a part in the middle of a tensor, from the beginning of a row on. */
static int count_tensor(struct read_now *reads, const struct tensor_info *t, void *buffer,
                        struct packed_count *c, struct err *e)
{
    uint64_t row_bytes = tensor_row_bytes(t->type, t->ne[0]);
    uint64_t at = t->bytes / 2 / row_bytes * row_bytes;
    uint64_t bytes = t->bytes - at < EXPONENT_SAMPLE ? t->bytes - at : EXPONENT_SAMPLE;

    if (read_now(reads, t->file, t->offset + at, bytes, buffer, e) != 0)
        return -1;
    if (t->type == TYPE_BF16)
        packed_add(c, buffer, (size_t)bytes / sizeof(uint16_t));
    else
        packed_add_f16(c, buffer, (size_t)bytes / sizeof(uint16_t));
    return 0;
}

int mw_inspect_exponents(const struct mw_inspect *i, bool f16, struct mw_exponents *out,
                         struct err *e)
{
    enum tensor_type type = f16 ? TYPE_F16 : TYPE_BF16;
    struct packed_count c = { 0 };
    void *buffer = malloc(EXPONENT_SAMPLE);
    struct read_now reads = { 0 };
    double patches;
    int rc;

    *out = (struct mw_exponents){ 0 };
    rc = buffer != NULL ? read_now_open(&reads, i->catalogue, e)
                        : err_memory(e, "a sample of weights");
    for (uint32_t t = 0; rc == 0 && t < i->catalogue->n_tensor; t++) {
        const struct tensor_info *info = &i->catalogue->tensors[t];

        if (info->type != type || !packed_takes(info->ne[0]))
            continue;
        rc = count_tensor(&reads, info, buffer, &c, e);
        out->n_tensor++;
        out->bytes += info->bytes;
    }
    read_now_close(&reads);
    free(buffer);
    if (rc != 0)
        return -1;
    memcpy(out->count, c.exponents, sizeof out->count);
    out->n_weight = c.n_weight;
    out->n_escape = c.n_escape;
    if (c.n_weight == 0)
        return 0;
    patches = (double)c.patch_bytes + (double)c.n_span * sizeof(uint32_t);
    out->packed_share = ((f16 ? 1.75 : 1.5) + patches / (double)c.n_weight) / 2;
    return 0;
}

int mw_inspect_text(const struct mw_inspect *i, struct mw_text_info *out, struct err *e)
{
    static const char *const kinds[] = {
        [VOCAB_BPE_CHARS] = "BPE over characters",
        [VOCAB_SCORES] = "SentencePiece scores",
        [VOCAB_BPE_BYTES] = "BPE over bytes",
    };
    struct chat_choice *choice;
    int rc;
    const struct vocab_info *v;
    struct tokenizer *t = NULL;

    *out = (struct mw_text_info){ .n_token = 0 };
    if (tokenizer_open(&t, i->catalogue, e) != 0)
        return -1;
    v = tokenizer_info(t);
    if (v->pre[0] != '\0')
        snprintf(out->kind, sizeof out->kind, "%s (%.16s)", kinds[v->model], v->pre);
    else
        snprintf(out->kind, sizeof out->kind, "%s", kinds[v->model]);
    snprintf(out->notice, sizeof out->notice, "%s", v->notice);
    out->n_token = v->n_token;
    out->n_merge = v->n_merge;
    rc = chat_choose(&choice, i->catalogue, t, NULL, e);
    if (rc == 0) {
        snprintf(out->chat_format, sizeof out->chat_format, "%s",
                 chat_format_name(chat_choice_format(choice)));
        chat_choice_text(choice, out->chat_choice, sizeof out->chat_choice);
        chat_choice_free(choice);
    }
    tokenizer_close(t);
    return rc;
}
