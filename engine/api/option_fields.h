/*
 * option_fields.h - the fields of mw_options and mw_chat_options, and what a change of each
 * reaches in a session.
 *
 *     NUMBER(int, n_thread, MW_REACH_WORKSPACE)
 *
 * The structs themselves, the comparison of options and the copies of their texts are made from
 * these lists, so a field cannot be missing in one of them.
 */
#ifndef MEMWALL_ENGINE_API_OPTION_FIELDS_H
#define MEMWALL_ENGINE_API_OPTION_FIELDS_H

enum mw_reach {
    MW_REACH_NOTHING = 0,   /* read when it is needed */
    MW_REACH_PLAN = 1,      /* sizes of memory only; all below change these, too */
    MW_REACH_WORKSPACE = 2, /* buffers of the forward pass */
    MW_REACH_KV = 4,        /* keys and values: the conversation is evaluated again */
    MW_REACH_WEIGHTS = 8,   /* weights are read again */
    MW_REACH_ANSWER = 16,   /* an answer that is being made cannot go on */
    MW_REACH_TOKEN = 32,    /* the answerer, from the next token on */
};

/* NUMBER(type, name, reach), TEXT(name, reach): const char * */
#define MW_OPTION_FIELDS(NUMBER, TEXT)                                                         \
    /* the budget; 0: chosen from the available memory */                                      \
    NUMBER(uint64_t, memory_bytes, MW_REACH_PLAN)                                              \
    /* with memory_bytes 0: another number than before reads the free memory again */          \
    NUMBER(uint32_t, memory_choice, MW_REACH_NOTHING)                                          \
    /* needed by the caller itself, for a screen or for text that it keeps; a part of the plan */ \
    NUMBER(uint64_t, caller_bytes, MW_REACH_PLAN)                                              \
    /* reserved for the program; 0: the allowance, which is also the most.  For a caller that     \
     * has measured what the program holds, and that looks after its growth */                 \
    NUMBER(uint64_t, program_bytes, MW_REACH_PLAN)                                             \
    /* tokens; 0: 4096, or the trained context if that is shorter */                           \
    NUMBER(uint32_t, n_ctx, MW_REACH_WORKSPACE)                                                \
    /* types of keys and of values */                                                          \
    NUMBER(enum mw_kv, kv_k, MW_REACH_KV)                                                      \
    NUMBER(enum mw_kv, kv_v, MW_REACH_KV)                                                      \
    /* whether keys and values may go to a file in cache_folder if they do not fit */           \
    NUMBER(enum mw_kv_disk, kv_disk, MW_REACH_PLAN)                                            \
    /* the way weights are read */                                                             \
    NUMBER(enum mw_io, io, MW_REACH_WEIGHTS)                                                   \
    /* with MW_IO_MMAP: drop pages after they were used */                                     \
    NUMBER(bool, mmap_drop, MW_REACH_WEIGHTS)                                                  \
    /* read with pread(2) even if io_uring is available */                                     \
    NUMBER(bool, no_uring, MW_REACH_WEIGHTS)                                                   \
    /* of one read of weights, at most; 0: chosen by the budget */                             \
    NUMBER(uint32_t, block_bytes, MW_REACH_WEIGHTS)                                            \
    /* read at most this many bytes a second of each disk; 0: no limit */                      \
    NUMBER(uint64_t, disk_rate, MW_REACH_WEIGHTS)                                              \
    /* a copy of the model's file or folder on another disk, which shares the reads; NULL:     \
     * none.  Must outlive the session */                                                      \
    TEXT(mirror, MW_REACH_WEIGHTS)                                                             \
    /* the same as disk_rate for the mirror; 0: disk_rate */                                   \
    NUMBER(uint64_t, mirror_rate, MW_REACH_WEIGHTS)                                            \
    /* 0: one for each CPU */                                                                  \
    NUMBER(int, n_thread, MW_REACH_WORKSPACE)                                                  \
    /* keep activations in float; pinned weights then have other forms */                      \
    NUMBER(bool, exact, MW_REACH_KV | MW_REACH_WEIGHTS)                                        \
    NUMBER(enum mw_pack, pack, MW_REACH_WEIGHTS)                                               \
    /* OpenBLAS in long prompts; auto: see mw_model_set_products() */                          \
    NUMBER(enum mw_blas, blas, MW_REACH_KV)                                                    \
    /* kernel set; NULL: the fastest.  Must outlive the session */                             \
    TEXT(isa, MW_REACH_KV | MW_REACH_WEIGHTS)                                                  \
    /* tokens of a prompt evaluated together; 0: chosen by the plan */                         \
    NUMBER(uint32_t, chunk, MW_REACH_WORKSPACE)                                                \
    /* tokens that are guessed and verified in the pass of the one before them */              \
    NUMBER(enum mw_draft, draft, MW_REACH_WORKSPACE)                                           \
    /* the model or draft head of MW_DRAFT_FILE.  Must outlive the session */                  \
    TEXT(draft_file, MW_REACH_WORKSPACE)                                                       \
    /* of MW_DRAFT_SELF */                                                                     \
    NUMBER(enum mw_copies, draft_copies, MW_REACH_WORKSPACE)                                   \
    /* so many at a time if there is room; 0: as many as pay by what was measured */           \
    NUMBER(uint32_t, draft_depth, MW_REACH_NOTHING)                                            \
    /* rows of logits computed together; 0: 1 */                                               \
    NUMBER(uint32_t, n_logit_row, MW_REACH_WORKSPACE)                                          \
    /* keys and values will be written to files (mw_chat_save_kv()): a part of the plan */        \
    NUMBER(bool, saves_kv, MW_REACH_PLAN)                                                      \
    /* nothing that depends on the text is written to a disk, not even to files without a        \
     * name: keys and values, copies of turns, the use of experts */                           \
    NUMBER(bool, is_private, MW_REACH_PLAN)                                                    \
    /* the ids are not those of a chat: begin without the experts that chats use, and let no   \
     * chat begin with those of this session */                                                \
    NUMBER(bool, is_artificial, MW_REACH_NOTHING)                                              \
    /* drop the oldest turns when the context is full */                                       \
    NUMBER(bool, ctx_shift, MW_REACH_NOTHING)                                                  \
    /* folder for built tokenizers and copies of turns that do not fit memory; NULL: none.     \
     * That of the first options stays. */                                                     \
    TEXT(cache_folder, MW_REACH_NOTHING)

/* PART(type, name, reach): a field that is not compared as a number */
#define MW_CHAT_OPTION_FIELDS(NUMBER, TEXT, PART)                                              \
    PART(struct mw_options, engine, MW_REACH_NOTHING)                                          \
    PART(struct mw_sampling, sampling, MW_REACH_TOKEN)                                         \
    /* the system message, or NULL */                                                          \
    TEXT(system, MW_REACH_ANSWER)                                                              \
    /* name of a chat format; NULL: the model's own */                                         \
    TEXT(format, MW_REACH_ANSWER)                                                              \
    /* use no chat format: continue the text as it is */                                       \
    NUMBER(bool, raw, MW_REACH_ANSWER)                                                         \
    NUMBER(enum mw_think, think, MW_REACH_ANSWER)                                              \
    /* maximum tokens of an answer; 0: until the context is full */                            \
    NUMBER(uint32_t, n_predict, MW_REACH_TOKEN)                                                \
    /* report how likely each token is, and the n_logprob - 1 most likely ones; 0: neither */  \
    NUMBER(uint32_t, n_logprob, MW_REACH_ANSWER)                                               \
    /* report the tokens of the prompt and of the answer */                                    \
    NUMBER(bool, reports_ids, MW_REACH_ANSWER)                                                 \
    /* GBNF that all of the answer's text must follow, or NULL */                              \
    TEXT(grammar, MW_REACH_ANSWER)                                                             \
    /* a JSON schema in its place, which a server makes a grammar of; or NULL */               \
    TEXT(schema, MW_REACH_ANSWER)                                                              \
    /* added to logits before a token is chosen: [n_logit_bias], of different tokens */           \
    PART(uint32_t, n_logit_bias, MW_REACH_TOKEN)                                               \
    PART(const struct mw_logit_bias *, logit_bias, MW_REACH_TOKEN)                             \
    /* Texts that end an answer, of 1 to MW_STOP_BYTES bytes, then NULL; or NULL.  Neither the \
     * answer nor the conversation has the text.  Thinking is not searched. */                 \
    PART(const char *const *, stop, MW_REACH_TOKEN)

/* The members of the structs. */
#define MW_NUMBER_MEMBER(type, name, reach) type name;
#define MW_TEXT_MEMBER(name, reach)         const char *name;
#define MW_PART_MEMBER(type, name, reach)   type name;

#endif
