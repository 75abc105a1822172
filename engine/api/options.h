/*
 * options.h - the settings with which a model runs, and those of the sampler.
 *
 * A session is opened with mw_options.  Plans, measurements and diagnoses take the same struct, so
 * they are about the session that these options give.
 */
#ifndef MEMWALL_ENGINE_API_OPTIONS_H
#define MEMWALL_ENGINE_API_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/api/option_fields.h"

enum mw_io { MW_IO_AUTO, MW_IO_DIRECT, MW_IO_BUFFERED, MW_IO_MMAP };
/* Pinned BF16 in 12 bits, without loss; auto: where it saves memory.  never: all as in the file */
enum mw_pack { MW_PACK_AUTO, MW_PACK_ALWAYS, MW_PACK_NEVER };
enum mw_blas { MW_BLAS_AUTO, MW_BLAS_ALWAYS, MW_BLAS_NEVER };
/*
 * Where drafts come from: tokens that are guessed, and verified together with the sampled token
 * before them in one pass over the weights.  The tokens of an answer are the same with all of
 * them.  mtp: the draft head of the model.  auto: mtp or ngram.  self: the model itself, with
 * copies in few bits of the weights that stream.  file: a smaller model with the same vocabulary,
 * mw_options.draft_file, or the draft head in that file.
 */
enum mw_draft {
    MW_DRAFT_OFF,
    MW_DRAFT_AUTO,
    MW_DRAFT_NGRAM,
    MW_DRAFT_SELF,
    MW_DRAFT_MTP,
    MW_DRAFT_FILE
};
/* The type of the copies of MW_DRAFT_SELF; auto: the one with which answers are predicted to be the
 * fastest */
enum mw_copies { MW_COPIES_AUTO, MW_COPIES_Q4_0, MW_COPIES_Q3_K, MW_COPIES_Q2_K };
/* Keys and values that do not fit memory; auto: a file in the cache folder has them meanwhile */
enum mw_kv_disk { MW_KV_DISK_AUTO, MW_KV_DISK_NEVER };
enum mw_kv { MW_KV_F32, MW_KV_F16, MW_KV_Q8_0, MW_KV_Q4_0 };

const char *mw_kv_name(enum mw_kv t);               /* "q8_0" */
int mw_kv_parse(const char *name);                  /* an enum mw_kv, or -1 */
bool mw_kv_is_rotated(enum mw_kv t);                /* before rounding: q8_0 and q4_0 are */
const char *mw_copies_name(enum mw_copies c);       /* "q3_k" */
int mw_copies_parse(const char *name);              /* an enum mw_copies, or -1 */
const char *mw_io_name(enum mw_io io);              /* "direct" */
int mw_io_parse(const char *name, bool *mmap_drop); /* an enum mw_io, or -1; "mmap:drop" */
/* A sentence to show with MW_IO_MMAP: the budget does not cover mapped weights. */
const char *mw_mmap_notice(void);

/* Whether the model thinks before it answers, if its chat format has a switch for it. */
enum mw_think { MW_THINK_DEFAULT, MW_THINK_ON, MW_THINK_OFF };

struct mw_model;

/* A zeroed struct asks for the default everywhere except in kv_k and kv_v.  option_fields.h has
 * the fields. */
struct mw_options {
    MW_OPTION_FIELDS(MW_NUMBER_MEMBER, MW_TEXT_MEMBER)
};
/* Leave out the drafter, as a session does that has closed it (MW_DRAFTER_CLOSED of its plan). */
void mw_options_without_drafter(struct mw_options *o);
/* The defaults, with keys and values in F16. */
void mw_options_default(struct mw_options *o);

/* The seed of a sampler.  Every number is one; not set: a new random one for each answer. */
struct mw_seed {
    bool is_set;
    uint64_t value;
};

struct mw_sampling {
    float temp; /* 0: greedy */
    int top_k;  /* 0: all tokens */
    float top_p, min_p;
    float repeat_penalty; /* 1: off */
    uint32_t repeat_last; /* number of last tokens that are penalised */
    /* Subtracted from the logit of a token that the answer has, once, and for each time. */
    float presence_penalty, frequency_penalty;
    struct mw_seed seed;
};
/* Added to the logit of a token, before penalties. */
struct mw_logit_bias {
    uint32_t id;
    float bias;
};
#define MW_LOGIT_BIASES 1024 /* at most */

/* The model's own recommendation, or else temp 0.8, top_k 40, top_p 0.95, min_p 0.05. */
void mw_sampling_default(const struct mw_model *m, struct mw_sampling *s);

#endif
