/* See options.h. */
#include "config.h"

#include "engine/session/options.h"

#include <string.h>

#define DEFAULT_CTX 4096

/* A draft head is used unasked if its weights are at most this part of the model's.  Where weights
 * are streamed, it makes a pass longer by that much, and several tokens come with a pass. */
#define HEAD_SHARE 8

/* --- names of option values --- */

_Static_assert((int)MW_KV_F32 == KV_F32 && (int)MW_KV_F16 == KV_F16 &&
                   (int)MW_KV_Q8_0 == KV_Q8_0 && (int)MW_KV_Q4_0 == KV_Q4_0 &&
                   KV_TYPE_COUNT == 4,
               "enum mw_kv and enum kv_type list the same types");
_Static_assert((int)MW_IO_AUTO == STREAM_AUTO && (int)MW_IO_DIRECT == STREAM_DIRECT &&
                   (int)MW_IO_BUFFERED == STREAM_BUFFERED && (int)MW_IO_MMAP == STREAM_MMAP,
               "enum mw_io and enum stream_io list the same modes");

size_t options_block(const struct mw_options *o)
{
    return o->block_bytes > 0 ? o->block_bytes : shape_target(o->memory_bytes);
}

enum kv_type options_kv_type(enum mw_kv t)
{
    return (enum kv_type)t;
}

enum stream_io options_stream_io(enum mw_io io)
{
    return (enum stream_io)io;
}

void options_think(enum mw_think think, struct chat_options *o)
{
    switch (think) {
    case MW_THINK_DEFAULT: o->think = CHAT_THINK_DEFAULT; break;
    case MW_THINK_ON: o->think = CHAT_THINK_ON; break;
    case MW_THINK_OFF: o->think = CHAT_THINK_OFF; break;
    }
}

const char *mw_kv_name(enum mw_kv t)
{
    return kv_type_name(options_kv_type(t));
}

int mw_kv_parse(const char *name)
{
    return kv_type_parse(name);
}

bool mw_kv_is_rotated(enum mw_kv t)
{
    return kv_type_is_rotated(options_kv_type(t));
}

static const char *const copies_names[] = { [MW_COPIES_AUTO] = "auto",
                                            [MW_COPIES_Q4_0] = "q4_0",
                                            [MW_COPIES_Q3_K] = "q3_k",
                                            [MW_COPIES_Q2_K] = "q2_k" };

const char *mw_copies_name(enum mw_copies c)
{
    return copies_names[c];
}

int mw_copies_parse(const char *name)
{
    for (size_t i = 0; i < sizeof copies_names / sizeof copies_names[0]; i++)
        if (strcmp(name, copies_names[i]) == 0)
            return (int)i;
    return -1;
}

static const char *const io_names[] = { [MW_IO_AUTO] = "auto",
                                        [MW_IO_DIRECT] = "direct",
                                        [MW_IO_BUFFERED] = "buffered",
                                        [MW_IO_MMAP] = "mmap" };

const char *mw_io_name(enum mw_io io)
{
    return io_names[io];
}

int mw_io_parse(const char *name, bool *mmap_drop)
{
    *mmap_drop = strcmp(name, "mmap:drop") == 0;
    if (*mmap_drop || strcmp(name, "mmap:keep") == 0)
        return MW_IO_MMAP;
    for (size_t i = 0; i < sizeof io_names / sizeof io_names[0]; i++)
        if (strcmp(name, io_names[i]) == 0)
            return (int)i;
    return -1;
}

const char *mw_mmap_notice(void)
{
    return "weights are mapped: the kernel keeps their pages in the page cache, which the "
           "budget does not cover";
}

/* --- defaults --- */

void mw_options_default(struct mw_options *o)
{
    *o = (struct mw_options){ .kv_k = MW_KV_F16, .kv_v = MW_KV_F16 };
}

void mw_options_without_drafter(struct mw_options *o)
{
    o->draft = o->draft == MW_DRAFT_AUTO ? MW_DRAFT_NGRAM : MW_DRAFT_OFF;
}

uint32_t options_ctx(const struct mw_model *m, const struct mw_options *o)
{
    uint32_t n_train = m->catalogue->hparams.n_ctx_train;

    if (o->n_ctx > 0)
        return o->n_ctx;
    return n_train > 0 && n_train < DEFAULT_CTX ? n_train : DEFAULT_CTX;
}

/* --- changes --- */

static bool same_text(const char *a, const char *b)
{
    return strcmp(a != NULL ? a : "", b != NULL ? b : "") == 0;
}

/* A comparison of each field of now and then, which adds to reach. */
#define NUMBER_DIFFERS(type, name, bits)                                                       \
    if (now->name != then->name)                                                               \
        reach |= (bits);
#define TEXT_DIFFERS(name, bits)                                                               \
    if (!same_text(now->name, then->name))                                                     \
        reach |= (bits);
#define PART_DIFFERS(type, name, bits)

enum head_use options_head(const struct mw_model *m, const struct mw_options *o)
{
    const struct model_head *head = model_head_of(m, o);

    if (head == NULL || (o->draft != MW_DRAFT_MTP && o->draft != MW_DRAFT_AUTO))
        return HEAD_UNUSED;
    if (o->draft == MW_DRAFT_MTP)
        return HEAD_NEEDED;
    return head->hot_bytes <= m->hot_bytes / HEAD_SHARE ? HEAD_IF_IT_FITS : HEAD_UNUSED;
}

unsigned options_reach(const struct mw_model *m, const struct mw_options *now,
                       const struct mw_options *then)
{
    unsigned reach = 0;

    MW_OPTION_FIELDS(NUMBER_DIFFERS, TEXT_DIFFERS)
    if (m != NULL && !mw_rotates_alike(m, now, then))
        reach |= MW_REACH_KV;
    return reach;
}

/* Without the parts: they reach no answer that is being made, except for the engine. */
static unsigned chat_reach(const struct mw_chat_options *now, const struct mw_chat_options *then)
{
    unsigned reach = 0;

    MW_CHAT_OPTION_FIELDS(NUMBER_DIFFERS, TEXT_DIFFERS, PART_DIFFERS)
    return reach;
}

bool mw_keeps_kv(const struct mw_model *m, const struct mw_options *now,
                 const struct mw_options *then)
{
    return (options_reach(m, now, then) & MW_REACH_KV) == 0;
}

bool mw_keeps_answer(const struct mw_model *m, const struct mw_chat_options *now,
                     const struct mw_chat_options *then)
{
    return mw_keeps_kv(m, &now->engine, &then->engine) &&
           (chat_reach(now, then) & MW_REACH_ANSWER) == 0;
}

#define WITHOUT_NUMBER(type, name, bits)                                                       \
    if (refused->name != now->name && later->name == refused->name)                            \
        later->name = now->name;
#define WITHOUT_TEXT(name, bits)                                                               \
    if (!same_text(refused->name, now->name) && same_text(later->name, refused->name))         \
        later->name = now->name;
#define WITHOUT_PART(type, name, bits)

static void engine_without(const struct mw_options *now, const struct mw_options *refused,
                           struct mw_options *later)
{
    MW_OPTION_FIELDS(WITHOUT_NUMBER, WITHOUT_TEXT)
}

/* Sampling and stop texts are never the reason, so they may stay. */
void mw_options_without(const struct mw_chat_options *now, const struct mw_chat_options *refused,
                        struct mw_chat_options *later)
{
    MW_CHAT_OPTION_FIELDS(WITHOUT_NUMBER, WITHOUT_TEXT, WITHOUT_PART)
    engine_without(&now->engine, &refused->engine, &later->engine);
}

/* Texts have no default to keep, and those of `asked` may be gone. */
#define KEEP_NUMBER(type, name, bits)                                                          \
    if (o->name == asked->name)                                                                \
        o->name = got->name;
#define KEEP_TEXT(name, bits)

void options_keep(const struct mw_options *asked, const struct mw_options *got,
                  struct mw_options *o)
{
    MW_OPTION_FIELDS(KEEP_NUMBER, KEEP_TEXT)
}

/* --- tried settings --- */

void mw_tried_of_options(struct mw_tried *t, const struct mw_options *o)
{
    t->memory_bytes = (double)o->memory_bytes;
    t->n_ctx = o->n_ctx;
    t->kv_k = o->kv_k;
    t->kv_v = o->kv_v;
    t->n_thread = o->n_thread;
    t->io = o->io;
    t->chunk = o->chunk;
    t->disk_rate = (double)o->disk_rate;
    t->exact = o->exact;
}

void mw_tried_to_options(const struct mw_tried *t, struct mw_options *o)
{
    o->memory_bytes = (uint64_t)t->memory_bytes;
    o->n_ctx = (uint32_t)t->n_ctx;
    o->kv_k = (enum mw_kv)t->kv_k;
    o->kv_v = (enum mw_kv)t->kv_v;
    o->n_thread = (int)t->n_thread;
    o->io = (enum mw_io)t->io;
    o->chunk = (uint32_t)t->chunk;
    o->disk_rate = (uint64_t)t->disk_rate;
    o->exact = t->exact != 0;
}
