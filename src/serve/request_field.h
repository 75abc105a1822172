/*
 * request_field.h - the tables of fields of the protocols, and readers of values.
 */
#ifndef MEMWALL_SRC_SERVE_REQUEST_FIELD_H
#define MEMWALL_SRC_SERVE_REQUEST_FIELD_H

#include "src/serve/request.h"

/* How deep the arguments of a call may be nested, in a request and in an answer: a client sends
 * back the calls that it was given. */
#define CALL_DEPTH 20

struct request_field {
    const char *name;
    /* Store the value, which is not null.  -1 with *e, whose field is the part of it that is
     * wrong, or "". */
    int (*take)(struct request *r, const struct json_node *n, struct err *e);
};

/* Read all members of an object by a table, which ends with a name of NULL. */
int request_fields(struct request *r, const struct json_node *object,
                   const struct request_field *table, struct err *e);

/* Readers of values that protocols share. */
int take_model(struct request *r, const struct json_node *n, struct err *e);
int take_temperature(struct request *r, const struct json_node *n, struct err *e);
int take_top_p(struct request *r, const struct json_node *n, struct err *e);
int take_min_p(struct request *r, const struct json_node *n, struct err *e);
int take_top_k(struct request *r, const struct json_node *n, struct err *e);
int take_repeat_penalty(struct request *r, const struct json_node *n, struct err *e);
int take_repeat_last(struct request *r, const struct json_node *n, struct err *e);
int take_presence_penalty(struct request *r, const struct json_node *n, struct err *e);
int take_frequency_penalty(struct request *r, const struct json_node *n, struct err *e);
int take_seed(struct request *r, const struct json_node *n, struct err *e);
int take_max_tokens(struct request *r, const struct json_node *n, struct err *e);
int take_stop(struct request *r, const struct json_node *n, struct err *e);
int take_stream(struct request *r, const struct json_node *n, struct err *e);

/* For a field that changes no answer: a text or an object that only identifies something. */
int take_label(struct request *r, const struct json_node *n, struct err *e);
/* For values that ask for nothing that memwall lacks: 0, false, an empty list. */
int take_zero(struct request *r, const struct json_node *n, struct err *e);
int take_one(struct request *r, const struct json_node *n, struct err *e);
int take_false(struct request *r, const struct json_node *n, struct err *e);
int take_empty(struct request *r, const struct json_node *n, struct err *e);

/* Store a number, an integer or a boolean.  -1 with *e if it is something else or outside. */
int value_number(const struct json_node *n, double low, double high, double *out,
                 struct err *e);
int value_integer(const struct json_node *n, int64_t low, int64_t high, int64_t *out,
                  struct err *e);
int value_bool(const struct json_node *n, bool *out, struct err *e);
/* Returns the text, or NULL with *e. */
const char *value_text(const struct json_node *n, struct err *e);
/* Is it this text? */
bool value_is(const struct json_node *n, const char *word);
/* A copy of n bytes with a NUL, or NULL with *e. */
char *value_copy(const char *text, size_t n, struct err *e);

/* ---- messages ---- */

/* Begin r->messages again: a field may be given twice, and the last one counts. */
void request_begin_messages(struct request *r);

/*
 * Append the text of a message to `text`, without quotes: a string, or parts {"type":"text"},
 * joined; nothing for NULL and null.  A part has no members but those in `also` (names, then
 * NULL).
 */
int request_text(struct json *text, const struct json_node *content, const char *const *also,
                 struct err *e);
/* The same for one part. */
int request_part(struct json *text, const struct json_node *part, const char *const *also,
                 struct err *e);
/* The same as a string of j with this key. */
int request_content(struct json *j, const char *key, const struct json_node *content,
                    const char *const *also, struct err *e);

/* Names of tools by the ids of their calls, as far as messages were read.  All zero is empty. */
struct call_names {
    struct call_name {
        const struct json_node *id, *name;
    } *slot; /* [size] id is NULL in free ones */
    size_t n, size;
};
/* Add a call, in place of an earlier one with this id.  Nothing without an id that is a text. */
int call_names_add(struct call_names *c, const struct json_node *id, const struct json_node *name,
                   struct err *e);
/* Returns the name of the last call with this id, a text; NULL: there is none. */
const struct json_node *call_names_find(const struct call_names *c, const struct json_node *id);
void call_names_free(struct call_names *c);

/*
 * Write a call of an earlier answer, as templates read it: {"function":{"name":…,"arguments":{…}}},
 * and add it to names.  arguments: an object, or its text.  Both ids may be NULL.
 */
int request_call(struct json *j, struct call_names *names, const struct json_node *id,
                 const struct json_node *name, const struct json_node *arguments, struct err *e);
/* Write the member "tool_calls" of a message, in OpenAI's form, unless it is NULL or empty. */
int request_calls(struct json *j, const struct json_node *calls, struct call_names *names,
                  struct err *e);
/* Write the id of the call of a result, and the name of its tool: that of the call if name is
 * NULL.  Both may be NULL. */
int request_result(struct json *j, const struct call_names *names, const struct json_node *id,
                   const struct json_node *name, struct err *e);

/* Write a list of at least n_least messages to r->messages.  `write` writes one as an object, or
 * as several. */
typedef int request_message_fn(struct json *j, const struct json_node *message,
                               struct call_names *names, struct err *e);
int request_messages(struct request *r, const struct json_node *n, size_t n_least,
                     request_message_fn *write, struct err *e);

/* Write a list of definitions to r->tools, in place of those before.  `take` reads one and calls
 * request_tool(), which writes its name, and the rest if it is there. */
typedef int request_tool_fn(struct request *r, const struct json_node *tool, struct err *e);
int request_tools(struct request *r, const struct json_node *n, request_tool_fn *take,
                  struct err *e);
int request_tool(struct request *r, const struct json_node *name,
                 const struct json_node *description, const struct json_node *parameters,
                 const struct json_node *strict, struct err *e);
/* Read a list of definitions {"type":"function","function":{…}}. */
int take_tools(struct request *r, const struct json_node *n, struct err *e);

/* ---- request_grammar.c ---- */

/* Read a grammar in GBNF, the response format of OpenAI's requests, the output configuration of
 * Anthropic's, or the format of Ollama's. */
int take_grammar(struct request *r, const struct json_node *n, struct err *e);
int take_response_format(struct request *r, const struct json_node *n, struct err *e);
int take_output_config(struct request *r, const struct json_node *n, struct err *e);
int take_format(struct request *r, const struct json_node *n, struct err *e);
/* Check that nothing else in the request contradicts it. */
int request_check_form(struct request *r, const struct request_defaults *d, struct err *e);

/* The answer must call a tool: the one of this name, or any for NULL. */
int request_must_call(struct request *r, const struct json_node *name, struct err *e);

/* Say what is wrong with a field.  Returns -1. */
int request_wrong(struct err *e, const char *field, const char *what);

/* Is a member one of the names, which end with NULL?  -1 with *e that names it otherwise. */
int request_known(const struct json_node *object, const char *const *names, struct err *e);

/* The field of *e is in another one, or in item i of a list: "content" in "[3]" in "messages" is
 * "messages[3].content".  Both return -1. */
int request_in(struct err *e, const char *outer);
int request_at(struct err *e, size_t i);

extern const struct request_field request_chat_fields[], request_completion_fields[],
    request_messages_fields[], request_ollama_chat_fields[], request_ollama_generate_fields[];

/* Check what only the complete request shows, such as a field that is missing. */
int request_check_openai(struct request *r, struct err *e);
int request_check_anthropic(struct request *r, struct err *e);
int request_check_ollama(struct request *r, struct err *e);

#endif
