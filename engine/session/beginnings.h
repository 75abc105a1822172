/*
 * beginnings.h - beginnings that many chats share: a system message, a manual that is asked
 * about more than once.
 *
 * Each is a KV file in the folder of all KV files, and its name is its fingerprint.  So a
 * prompt finds the longest kept beginning without looking at the others.  A beginning is kept
 * when it is known to be shared: the caller says how much of the prompt does not depend on the
 * question, and a list has fingerprints of the prompts of before.  Those of this chat do not
 * count, or each question that is asked again would become a beginning.  The list is a text of
 * a few kilobytes.  A person who can read it can confirm a guess of a whole beginning.
 *
 * Nothing is written before the answer is over.
 */
#ifndef MEMWALL_ENGINE_SESSION_BEGINNINGS_H
#define MEMWALL_ENGINE_SESSION_BEGINNINGS_H

#include "engine/session/saved_beginning.h"

struct beginnings {
    char *folder;       /* NULL: nothing is kept or used */
    uint64_t max_bytes; /* of all KV files there */
    char *own;          /* the lines that this chat added to the list; NULL: none */
    /* Until they are written: fingerprints of the last new prompt, one for each page. */
    char (*print)[DIGEST_HEX];
    uint32_t n_print;
    uint32_t n_kept; /* pages of the beginning to keep; 0: none */
};

/* Use this folder from now on, for another chat; NULL: none.  A beginning that is left to write
 * is still written if the folder is the same.  Returns 0, or -1 with *e. */
int beginnings_set(struct beginnings *b, const char *folder, uint64_t max_bytes, struct err *e);
void beginnings_free(struct beginnings *b);
/* The first n tokens that the session holds are of a chat that goes on here: a prompt that begins
 * like them is not of another one. */
void beginnings_take_own(struct beginnings *b, const struct mw_session *s, uint32_t n);
/* The next prompt is not of the chat of the prompts before it. */
void beginnings_other_chat(struct beginnings *b);

/* How a beginning was used.  err: why it was not, although there is one. */
struct beginning_use {
    uint32_t n_token; /* 0: there is none */
    uint64_t bytes, ns;
    struct err err;
};

/*
 * A prompt of n ids is about to be evaluated by a session that holds a part of it.  Load the
 * longest beginning that is kept, unless evaluating is faster, and let the evaluation make the
 * copy that a new one needs.  The first n_common ids do not depend on the question.  is_new: the
 * chat asks its first question for the first time, so that a prompt of before is of another
 * chat.  stops ends loading, and then *use has ERR_CANCELLED.
 */
void beginnings_use(struct beginnings *b, struct mw_session *s, const uint32_t *ids, uint32_t n,
                    uint32_t n_common, bool is_new, const struct saved_kv_call *call,
                    struct beginning_use *use);

/* Is writing the new beginning predicted to take so much less time than evaluating it that others
 * may wait for it? */
bool beginnings_pay(const struct beginnings *b, const struct mw_session *s);

/* Write the beginnings that are not written yet.  Returns 0, or -1 with *e; after ERR_CANCELLED
 * they can be written later. */
int beginnings_keep(struct beginnings *b, struct mw_session *s,
                    const struct saved_kv_call *call, struct err *e);

#endif
