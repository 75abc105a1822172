/*
 * answer.h - answer the last message of a conversation: evaluate the part of it that the
 * session does not hold yet, then sample until something ends the answer.
 */
#ifndef MEMWALL_ENGINE_SESSION_ANSWER_H
#define MEMWALL_ENGINE_SESSION_ANSWER_H

#include "engine/session/beginnings.h"
#include "engine/session/conversation.h"
#include "engine/session/events.h"
#include "engine/session/session.h"

/* Called between two passes of an answer, whose tokens need a context of more than n_token
 * tokens.  May change the session's options and the answerer. */
typedef void answer_change_fn(void *ctx, size_t n_token);

struct answerer {
    struct mw_model *m;
    struct mw_session *session;
    struct conversation *conversation;
    struct events *events;
    struct rendering rendering;
    struct chat_choice *choice;              /* owned, and so is sampler */
    const struct chat_format *parser_format; /* "raw" if rendering has none */
    struct mw_sampler *sampler;
    struct constraint *constraint; /* owned; NULL: any text */
    struct beginnings *beginnings; /* not owned; NULL: none are used */
    struct logprobs *logprobs;     /* owned; NULL: they are not reported */
    bool reports_ids;
    uint32_t stop_ids[64];
    size_t n_stop_id;
    const char *const *stop; /* strings that end an answer, then NULL; not owned */
    uint32_t n_predict;
    bool ctx_shift;
    const struct cancel *cancel;
    answer_change_fn *change;
    void *change_ctx;
    double prompt_compute_s; /* set by answer_run: arithmetic per token of the last long prompt */
};

/*
 * Answer the last turn of the conversation.  With is_continued the last turn is itself an
 * answer that was stopped, and this continues it.  Posts STARTED, PROGRESS, TEXT and one DONE.
 * However the answer ends, the conversation then has the text that was posted.
 */
void answer_run(struct answerer *a, bool is_continued);

#endif
