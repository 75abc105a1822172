/*
 * job.h - a request that is being answered: its place in the queue, and the answer so far.
 *
 * The server adds pieces of the answer, and the connection takes them out.  A slow client makes
 * pieces wait: they are joined, so the memory is that of the text.  The memory of a request, of
 * the pieces, and of the reply that the connection makes of them is counted (room.h).
 */
#ifndef MEMWALL_SRC_SERVE_JOB_H
#define MEMWALL_SRC_SERVE_JOB_H

#include <time.h>

#include "engine/memwall.h"
#include "src/serve/request.h"
#include "src/serve/room.h"

enum job_state {
    JOB_WAITS, /* in the queue */
    JOB_RUNS,  /* the engine answers it */
    JOB_ENDED, /* receipt and err say how */
};

/*
 * The text of a call is the name of the tool, a NUL, and the arguments as JSON.  That of
 * probabilities is an array of struct mw_logprob, request.n_logprob for each token of the text
 * that follows.
 */
enum piece_kind {
    PIECE_THINKING,
    PIECE_TEXT,
    PIECE_MARK, /* in a stream for FORM_CHAT: it closes thinking, which all text before it was */
    PIECE_CALL,
    PIECE_LOGPROBS,
    PIECE_PROMPT_IDS, /* arrays of uint32_t */
    PIECE_IDS,
};

struct piece {
    struct piece *next;
    enum piece_kind kind;
    char *text;
    size_t len, size;
    size_t from; /* bytes of it that were taken out */
};

struct job {
    struct job *next; /* in the queue */
    void *exchange;   /* of the connection that reads the answer (web.c) */
    struct request request;
    char id[40];         /* unique, for the reply */
    time_t created;
    uint64_t client;     /* equal for requests from one address */
    uint32_t position;   /* in the queue when it arrived; 0: it began at once */
    uint32_t ahead;      /* jobs before it now */
    enum job_state state;
    bool is_gone;        /* the client is; nobody reads the answer */
    uint64_t arrived_ns, started_ns, ended_ns;

    bool has_begun;      /* the prompt was accepted: n_prompt is known */
    uint64_t n_prompt;   /* tokens of the prompt, */
    uint64_t n_cached;   /* and of them those whose keys and values were still there */
    uint32_t n_call;     /* of tools, in the answer */
    struct rooms *rooms;
    struct piece *first, *last;
    uint64_t n_request;  /* bytes that it takes of the part of requests */
    uint64_t n_held;     /* bytes of the pieces and the reply, */
    uint64_t n_reply;    /* those of the reply, */
    uint64_t n_kept;     /* and those that it takes of the part of answers at least */
    struct mw_receipt receipt;
    struct err err;
};

/* Takes the request, which job_free() frees. */
struct job *job_new(struct request *request, struct rooms *rooms, struct err *e);
void job_free(struct job *j);

/* Take the memory for an answer.  false: it is not free now. */
bool job_begin(struct job *j);
/* The engine has a copy of the request: free the texts of it. */
void job_taken(struct job *j);
/* Nobody reads the answer: free all but the job itself. */
void job_forget(struct job *j);
/* The answer is over, or an error in its place: give back all that sending it does not need. */
void job_end(struct job *j);
/* Count the memory of the reply, in place of that until now.  false: there is no more. */
bool job_hold(struct job *j, uint64_t bytes);
/* The same for a complete reply, which takes the place of the answer. */
bool job_replied(struct job *j, uint64_t bytes);
/* Returns the bytes that the reply may have at most. */
uint64_t job_left(const struct job *j);

/* Add a piece of the answer.  -1 with *e if there is no memory for it. */
int job_add(struct job *j, enum piece_kind kind, const char *text, size_t len, struct err *e);
int job_add_call(struct job *j, const char *name, const char *arguments, size_t len,
                 struct err *e);
/* The arguments of a call, *n bytes. */
const char *piece_arguments(const struct piece *p, size_t *n);
/* All text that came until now was thinking; of an answer of which nothing was sent. */
void job_was_thinking(struct job *j);
/* Look at the next part of the answer; false: there is none.  Text and probabilities come in parts
 * of about JOB_PART bytes, so that a reply in another form is not long, either.  The text of *out
 * stays until job_drop(), which removes the part. */
#define JOB_PART 1024
bool job_next(const struct job *j, struct piece *out);
void job_drop(struct job *j, const struct piece *part);
/* Has it ended with an error?  An answer that filled the context is one that was cut. */
bool job_has_error(const struct job *j);

#endif
