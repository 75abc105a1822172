/*
 * model.h - an open model: its catalogue, its description and, once text is needed, its
 * tokenizer.  For the files of session/; programs use memwall.h.
 */
#ifndef MEMWALL_ENGINE_SESSION_MODEL_H
#define MEMWALL_ENGINE_SESSION_MODEL_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/base/arena.h"
#include "engine/format/catalogue.h"
#include "engine/format/vocab.h"
#include "engine/memwall.h"
#include "engine/model/desc.h"
#include "engine/model/products.h"
#include "engine/session/anchors.h"
#include "engine/session/model_head.h"
#include "engine/session/model_limits.h"
#include "engine/session/model_mirror.h"
#include "engine/text/chat_format.h"
#include "engine/text/tokenizer.h"

struct mw_model {
    struct catalogue *catalogue;
    struct header_room header; /* memory of the catalogue; part of the item "program" */
    struct model_desc *desc;
    struct stream_span *spans;        /* of a full pass */
    enum tensor_type *span_types;     /* [n_span] */
    struct stream_span *packed_spans; /* with the forms of packing.h; NULL: nothing is packed */
    uint32_t n_span;
    uint64_t hot_bytes, prompt_bytes; /* of all spans, and of a prompt pass */
    char key_notice[768]; /* about keys that memwall does not know, or "" */
    struct vocab_info vocab;
    bool has_vocab;
    struct err no_vocab; /* the reason, if it has none */
    uint64_t
        program_bytes; /* resident when the model was opened, before the items of the plan */
    uint64_t program_files_bytes; /* part of program_bytes: pages of files */
    /* Parts that are loaded at first use change under the lock.  Other threads read the atomic
     * ones without it. */
    pthread_mutex_t lock;
    /* The program and its libraries: page cache of a first start. */
    _Atomic uint64_t file_bytes;
    struct arena resident;       /* small weights, part of the item "pinned", while */
    uint32_t n_user;             /* > 0: who has loaded them */
    struct tokenizer *_Atomic tokenizer;
    struct vocab_source vocab_from; /* before the first byte of the vocabulary was read */
    char *keep_tokenizer;           /* the folder to write it to at the end; NULL: none */
    struct limits_box *limits;      /* of this machine and this model's file */
    struct anchor_box *anchors;     /* what tokens of this model measured */
    struct tried_box *tried;        /* the same, for each combination of settings */
    struct draft_list *drafts;      /* models that may draft for it, see draft_model.h */
    struct model_mirror *mirrors;   /* copies of its files that were opened; NULL: none */
    struct model_head *_Atomic heads; /* that were opened, see model_head.h */
    struct model_head *head; /* that drafts for it if options name no other one; NULL: none */
    struct err no_head;      /* its own head cannot be used; ERR_NONE: it has none */
    _Atomic uint64_t kv_file_bytes; /* disk space of the keys and values of its session */
    int n_core, n_efficient, n_low_power; /* of this machine, see machine.h */
    struct mw_products measured; /* rates of the kernels and of OpenBLAS; n 0: not measured */
    bool keeps_rows[TYPE_COUNT]; /* pinned weights of these types stay as in the file */
    bool has_blas;               /* OpenBLAS is loaded for this model */
    atomic_bool is_blas_denied;  /* it should be, but the system refused its buffers */
};

/* mw_model_open_within() without the samples of packing.h: no weight is read, so the file may
 * end after its headers, and many are described quickly. */
int model_open_headers(struct mw_model **out, const char *path, uint64_t memory_bytes,
                       uint64_t caller_bytes, struct err *e);

/* Refuse a model that was opened without a file.  Returns 0, or -1 with *e. */
int model_needs_file(const struct mw_model *m, struct err *e);

/* Returns the tokenizer, or NULL with *e.  The first call loads it, until cancel is set; NULL:
 * always.  Any thread. */
const struct tokenizer *model_tokenizer(struct mw_model *m, const struct cancel *cancel,
                                        struct err *e);

/*
 * Open the tokenizer that an earlier run kept in folder.  If there is none, it will be built
 * at first use and kept when the model is closed.  Any thread.
 */
void model_keep_tokenizer(struct mw_model *m, const char *folder);

/* Load norms and other small weights as floats, until cancel is set, unless they are there.  They
 * stay until the model is closed, or until all who have loaded them have called the second one.
 * Any thread. */
int model_load_small(struct mw_model *m, const struct cancel *cancel, struct err *e);
void model_unload_small(struct mw_model *m);

/* The same for a description, with an arena that is mapped for them, and the number of those who
 * use it.  The lock is that of m. */
int model_load_vecs(struct mw_model *m, struct model_desc *d, struct arena *to, uint32_t *n_user,
                    const struct cancel *cancel, struct err *e);
void model_unload_vecs(struct mw_model *m, struct arena *from, uint32_t *n_user);

#endif
