/*
 * answer.h - from a conversation to its next answer: evaluate what the session does not
 * hold yet, then sample until something ends it.
 */
#ifndef MEMWALL_ENGINE_SESSION_ANSWER_H
#define MEMWALL_ENGINE_SESSION_ANSWER_H

#include <stdatomic.h>

#include "engine/session/conversation.h"
#include "engine/session/events.h"
#include "engine/session/session.h"

struct answerer {
    struct mw_model *m;
    struct mw_session *session;
    struct conversation *conversation;
    struct events *events;
    struct rendering rendering;
    struct chat_choice *choice;              /* owned, and so is sampler */
    const struct chat_format *parser_format; /* "raw" where rendering has none */
    struct mw_sampler *sampler;
    uint32_t stop_ids[32];
    size_t n_stop_id;
    const char *const *stop; /* strings that end an answer, then NULL; not owned */
    uint32_t n_predict;
    bool ctx_shift;
    const atomic_bool *cancel;
    double prompt_compute_s; /* out: arithmetic of one token of the last prompt; 0: none */
};

/*
 * Answer the last turn of the conversation; with is_continued the last turn is an answer
 * that was stopped, and goes on.  Posts STARTED, PROGRESS, TEXT and one DONE; what was said
 * is in the conversation, however it ended.
 */
void answer_run(struct answerer *a, bool is_continued);

#endif
