/*
 * request.h - a request for an answer, read from the JSON of one of the protocols.
 *
 *     OpenAI      /v1/chat/completions, /v1/completions     request_openai.c
 *     Anthropic   /v1/messages                              request_anthropic.c
 *     Ollama      /api/chat, /api/generate                  request_ollama.c
 *
 * Each protocol has a table of fields.  A field that is not in the table, or whose value asks for
 * something that memwall does not do, is an error that names the field: nothing is ignored that
 * would change an answer.  Messages become those that chat templates read.
 *
 * The text comes from the network.  It is bounded in length, depth and number of values before
 * anything else is done with it.
 */
#ifndef MEMWALL_SRC_SERVE_REQUEST_H
#define MEMWALL_SRC_SERVE_REQUEST_H

#include "engine/base/json_write.h"
#include "engine/memwall.h"
#include "src/serve/tool_grammar.h"

enum request_form {
    FORM_CHAT,       /* OpenAI: messages */
    FORM_COMPLETION, /* OpenAI: a text to continue */
    FORM_MESSAGES,   /* Anthropic */
    FORM_OLLAMA_CHAT,
    FORM_OLLAMA_GENERATE,
    N_FORM,
};

#define REQUEST_STOPS 16

struct request {
    enum request_form form;
    struct mw_sampling sampling;
    enum mw_think think;
    uint32_t n_predict;
    char *stop[REQUEST_STOPS + 1]; /* then NULL; owned */
    size_t n_stop;
    char *model; /* owned; NULL: not named */
    bool stream;
    bool with_usage; /* at the end of a stream */
    bool is_load;    /* only to have the model loaded: there is nothing to answer */
    uint32_t n_ctx;  /* the context that is expected at least; 0: any */
    /* A JSON array of messages, or else a text to continue; owned. */
    bool has_messages;
    struct json messages;
    char *text;
    size_t text_len;
    uint32_t *ids; /* [n_ids] or the tokens of that text; owned */
    size_t n_ids;
    struct mw_logit_bias *bias; /* [n_bias] owned */
    uint32_t n_bias;
    uint32_t n_logprob; /* mw_chat_options.n_logprob */
    bool has_ids;       /* the reply has the tokens of prompt and answer */
    bool has_logprobs;  /* while it is read: they are asked for */
    /* The grammar that the answer must follow, or NULL; owned.  The field that asked for it. */
    char *grammar;
    size_t grammar_len;
    const char *grammar_field;
    size_t n_form_rule; /* while it is read: bytes of the rules of a form */
    /* Definitions of tools, a JSON array of OpenAI's form; owned. */
    bool has_tools;
    struct json tools;
    struct json strict; /* while it is read: '1' for each tool whose arguments must be right */
    /* The grammar has calls in this form, and not only them, but another form of text. */
    enum call_form calls;
    bool is_form_or_calls;
    /* While it is read: the system message, which is a field beside the messages, as text. */
    struct json system;
    bool has_system; /* and whether one is among the messages */
    bool is_raw;   /* the text stays one, also where messages could be made of it */
    bool no_tools; /* the definitions are not used */
    bool must_call;  /* the answer is a call of one of them, */
    char *call_name; /* of this one; owned; NULL: any */
    bool one_call;   /* and not more than one */
};

/* The values of a request that does not give them. */
struct request_defaults {
    struct mw_sampling sampling;
    enum mw_think think;
    uint32_t n_predict;
    const char *system;      /* its system message, or NULL */
    const char *const *stop; /* its stop texts, then NULL, up to REQUEST_STOPS; NULL: none */
    enum call_form calls;    /* of the model */
};

/* Read a request.  Returns 0, or -1 with *e, whose field is the one that is wrong.
 * request_free() frees *out in both cases. */
int request_parse(struct request *out, enum request_form form, const struct request_defaults *d,
                  const char *json, size_t len, struct err *e);
void request_free(struct request *r);

/* The bytes of messages, text, tools, grammar and biases, which are most of a request; and free
 * them, when they were copied. */
uint64_t request_texts(const struct request *r);
void request_free_texts(struct request *r);

/* Does a request for the model `name` mean this one?  Names without ":latest" and without the
 * organisation mean it, too. */
bool request_names_model(const char *name, const char *model);

#endif
