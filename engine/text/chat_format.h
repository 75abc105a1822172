/*
 * chat_format.h - a conversation to token ids, in the form the model was trained on.
 *
 * Rendered straight to ids: control tokens are emitted by the renderer, content is
 * encoded with control tokens off, so that no content can become one.
 */
#ifndef MEMWALL_ENGINE_TEXT_CHAT_FORMAT_H
#define MEMWALL_ENGINE_TEXT_CHAT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"
#include "engine/text/tokenizer.h"

enum chat_role { CHAT_SYSTEM, CHAT_USER, CHAT_ASSISTANT };

struct chat_message {
    enum chat_role role;
    const char *content; /* UTF-8, len bytes */
    size_t len;
    const char *reasoning; /* of an assistant's message; NULL: none */
    size_t reasoning_len;
    /* An answer as it was generated: when set, these ids stand for content (a model
     * may emit another split than encode() would). */
    const uint32_t *ids;
    size_t n_ids;
};

struct chat_options {
    bool add_generation_prompt;
    enum { CHAT_THINK_DEFAULT, CHAT_THINK_ON, CHAT_THINK_OFF } think;
    bool is_strict;   /* messages that a template refuses are not joined for it */
    const char *date; /* for formats that print today's; "26 Jul 2024"; NULL: the template's */
};

struct chat_format;

/* Returns the built-in format of that name, static; "raw" is completion.  NULL if there is
 * none, with *e listing the names. */
const struct chat_format *chat_format_named(const char *name, struct err *e);
/* "template" for the model's own template that is evaluated. */
const char *chat_format_name(const struct chat_format *f);

/* ---- which format a model gets ---- */

enum chat_source {
    CHAT_NAMED,     /* the caller named a built-in format */
    CHAT_EQUAL,     /* a built-in format that is equal to the model's template */
    CHAT_EVALUATED, /* the template is evaluated */
    CHAT_BY_WORDS,  /* guessed from words of a template that cannot be evaluated */
    CHAT_BY_TOKENS, /* guessed from control tokens of the vocabulary */
    CHAT_NO_FORMAT, /* nothing is known: raw */
};

/* The caller's wishes; all zero: the model decides. */
struct chat_wish {
    const char *format;   /* a built-in format by name, or NULL */
    const char *template; /* len bytes that replace the model's template, or NULL */
    size_t len;
    bool evaluates; /* evaluate a template even if a built-in format is equal to it */
};

/*
 * The format of a model, and why it is this one.  A template that the model carries is
 * evaluated, or replaced by a built-in format that is known to be equal.  One that cannot
 * be evaluated is guessed by its words, then by the vocabulary's control tokens.
 * Borrows the tokenizer.  One thread at a time may render with it.
 */
struct chat_choice;

/* Returns -1 with *e for an unknown name, for a template that cannot be read, and for a
 * wish->template that cannot be evaluated.  wish may be NULL. */
int chat_choose(struct chat_choice **out, const struct catalogue *c, const struct tokenizer *t,
                const struct chat_wish *wish, struct err *e);
void chat_choice_free(struct chat_choice *choice); /* NULL: nothing happens */
const struct chat_format *chat_choice_format(const struct chat_choice *choice);
/* Was it made for a wish for this format?  NULL: for the model's own. */
bool chat_choice_is_named(const struct chat_choice *choice, const char *name);
enum chat_source chat_choice_source(const struct chat_choice *choice);
/* Describe it on one line: "the model's template (evaluated)".  Returns buf. */
const char *chat_choice_text(const struct chat_choice *choice, char *buf, size_t n);
/*
 * Write a sentence that the person must read: a template that was not used, a system
 * message that the template refuses or leaves out.  Returns false if there is none.
 */
bool chat_choice_notice(const struct chat_choice *choice, bool has_system, char *buf, size_t n);

/* ---- use ---- */

/*
 * Append the ids of the whole conversation.  ERR_ARGUMENT: the template refuses these
 * messages, *e has its own words.
 */
int chat_format_render(const struct chat_format *f, const struct tokenizer *t,
                       const struct chat_message *messages, size_t n_message,
                       const struct chat_options *options, struct ids *out, struct err *e);

struct json_node;

/* A prompt: the text as the template prints it, and the ids. */
struct chat_prompt {
    char *text; /* owned, a NUL follows */
    size_t len;
    struct ids ids;
};
void chat_prompt_free(struct chat_prompt *p);

/*
 * Render a JSON array of messages.  An evaluated template sees every member of a message;
 * built-in formats take role, content (a string or parts of type "text") and
 * reasoning_content, and refuse others.
 */
int chat_format_render_json(const struct chat_format *f, const struct tokenizer *t,
                            const struct json_node *messages,
                            const struct chat_options *options, struct chat_prompt *out,
                            struct err *e);
/* Is it an array of objects with a role?  -1 with *e: it is not. */
int chat_format_check_json(const struct json_node *messages, struct err *e);

/*
 * Ids that end an answer: stated by the model, control tokens with the texts of known end
 * markers, and the token that f's template prints after an answer (f may be NULL).  At most
 * n; returns how many.
 */
size_t chat_stop_ids(const struct catalogue *c, const struct tokenizer *t,
                     const struct chat_format *f, uint32_t *out, size_t n);

/*
 * Splits an answer into thinking and text, by id where the family has channel tokens
 * (Gemma 4), by text where it has tags (Qwen 3).  Start from { 0 } with format set.
 */
struct answer_parser {
    const struct chat_format *format;
    const struct tokenizer *tokenizer;
    struct decoder decoder;
    int state;
    char held[64];
    size_t n_held;
};

/* Begin after a prompt: one that ends inside <think> makes the answer begin there too. */
void answer_parser_start(struct answer_parser *p, const uint32_t *prompt, size_t n);

/*
 * Add a token to the answer and store its text in buf, which has DECODE_MAX + 64 bytes;
 * *is_thinking is the part it belongs to.  Returns the length, 0 if there is no text to show
 * yet.
 */
size_t answer_parser_push(struct answer_parser *p, uint32_t id, char *buf, bool *is_thinking);
size_t answer_parser_end(struct answer_parser *p, char *buf, bool *is_thinking);

#endif
