/*
 * reply.h - answers in the JSON of the protocols: complete, or as a stream of pieces.
 *
 *     form               complete            stream
 *     FORM_CHAT          one object          SSE, "data: {...}", ends with "data: [DONE]"
 *     FORM_COMPLETION    one object          the same
 *     FORM_MESSAGES      one object          SSE with names of events
 *     FORM_OLLAMA_*      one object          one object per line
 */
#ifndef MEMWALL_SRC_SERVE_REPLY_H
#define MEMWALL_SRC_SERVE_REPLY_H

#include "src/serve/job.h"

/* The model, as replies describe it. */
struct reply_model {
    char id[160]; /* the name that clients use */
    struct mw_model_info info;
    const struct mw_model *m; /* for the texts of tokens */
    const struct mw_chat_options *chat; /* the values of requests that do not give them */
    uint32_t n_ctx;
    bool has_tools, thinks; /* its chat template prints tools, or knows of thinking */
    time_t loaded;
};

/* The state of a stream. */
struct reply {
    const struct job *job;
    const struct reply_model *model;
    uint32_t n_block; /* Anthropic: blocks that were begun; others: calls */
    bool is_open;     /* and whether the last one is */
    enum piece_kind kind; /* of this block */
    uint64_t offset;      /* bytes of text until now, with the probabilities of their tokens */
};

struct reply_form {
    const char *stream_type; /* Content-Type of a stream */
    bool has_comments;       /* lines that begin with a colon are left out by clients */
    void (*begin)(struct reply *r, struct json *out);
    void (*piece)(struct reply *r, const struct piece *p, struct json *out);
    void (*end)(struct reply *r, struct json *out); /* also of an answer that failed */
    void (*whole)(struct reply *r, struct json *out);
    /* status: of HTTP */
    void (*error)(int status, const struct err *err, struct json *out);
};
const struct reply_form *reply_form_of(enum request_form form);
extern const struct reply_form reply_chat, reply_completion, reply_messages, reply_ollama_chat,
    reply_ollama_generate;

/* The status of HTTP for an error. */
int reply_status(const struct err *e);

/* Write an error of OpenAI's form, which is also that of all other paths. */
void reply_error(int status, const struct err *err, struct json *out);

/* The text of an error: "field: what is wrong". */
#define REPLY_ERROR_TEXT 900
char *reply_error_text(const struct err *err, char buf[REPLY_ERROR_TEXT]);

/* Join all pieces of one kind to a text of *n bytes, for free(); NULL: there is none. */
char *reply_join(const struct job *j, enum piece_kind kind, size_t *n);

/* Write the probabilities of tokens in OpenAI's form, n bytes of them; null if there are none.
 * For the text of a completion, *offset is where it begins, and is advanced. */
void reply_logprobs(const struct reply *r, const char *list, size_t n, uint64_t *offset,
                    struct json *out);

/* Write "2026-11-27T06:00:00Z" to buf and return it. */
char *reply_time(time_t t, char buf[40]);

#endif
