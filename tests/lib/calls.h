/*
 * calls.h - calls of the engine that end the test with the engine's message if they fail.
 */
#ifndef MEMWALL_TESTS_LIB_CALLS_H
#define MEMWALL_TESTS_LIB_CALLS_H

#include "engine/memwall.h"

/* Open a model of model_path.h; skip the test if its file is missing. */
struct mw_model *open_model(const char *name);

/* The same of a copy in memory, see model_copy.h. */
struct mw_model *open_model_copy(const char *name);

/* Two threads, 128 MiB, and a context of n_ctx tokens. */
struct mw_options small_options(uint32_t n_ctx);

uint32_t vocab_of(const struct mw_model *m); /* tokens of the vocabulary */

/* Returns the smallest budget in bytes that these options fit. */
uint64_t smallest_budget(struct mw_model *m, const struct mw_options *o);

/* Give a model limits: a disk of this rate, slow products and fast memory. */
void give_limits(struct mw_model *m, const struct mw_options *o, double disk_bytes_s);

struct mw_session *open_session(struct mw_model *m, const struct mw_options *o);
void eval(struct mw_session *s, const uint32_t *ids, size_t n);

/* Everything that one command of a chat posted. */
struct said {
    char text[16384];
    size_t len;
    char notice[256]; /* the last one */
    struct mw_receipt receipt;
    struct err err;
};

/* Take events up to READY, DONE, PLAN, REFUSED or ERROR, and return which of them came. */
enum mw_event_kind wait_for_end(struct mw_chat *c, struct said *said);

/* Open a chat and wait until its model is loaded. */
struct mw_chat *open_chat(struct mw_model *m, const struct mw_chat_options *o);

/* Send a message and wait for the end of its answer. */
void ask(struct mw_chat *c, const char *text, struct said *said);

#endif
