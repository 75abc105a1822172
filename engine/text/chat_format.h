/*
 * chat_format.h - turn a conversation into token ids, in the form the model was trained on.
 *
 * Formats render directly to ids.  Only the renderer emits control tokens; content is encoded
 * with control tokens off, so no content can become one.
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
    const char *reasoning; /* thinking of an assistant message; NULL: none */
    size_t reasoning_len;
    /* The ids of an answer as the model generated them, used instead of content if set: a
     * model may split a text into other tokens than encode() would. */
    const uint32_t *ids;
    size_t n_ids;
};

struct json_node;

struct chat_options {
    bool add_generation_prompt;
    enum { CHAT_THINK_DEFAULT, CHAT_THINK_ON, CHAT_THINK_OFF } think;
    bool is_strict;   /* do not join messages that a template refuses */
    /* An array of definitions that the template prints; NULL: none.  Its text is encoded like
     * that of a message. */
    const struct json_node *tools;
    const char *date; /* today's date if a format prints it, "26 Jul 2024"; NULL: its own */
};

struct chat_format;

/* Returns "template" for an evaluated template, else the name of the built-in format. */
const char *chat_format_name(const struct chat_format *f);
/* The name of built-in format i; NULL after the last.  "raw" is plain completion. */
const char *chat_format_at(int i);

/* ---- choosing the format of a model ---- */

enum chat_source {
    CHAT_NAMED,     /* the caller named a built-in format */
    CHAT_EVALUATED, /* the template is evaluated */
    CHAT_BY_TOKENS, /* guessed from control tokens of the vocabulary */
    CHAT_NO_FORMAT, /* no clue found: raw */
};

/* The caller's wishes.  All zero: follow the model. */
struct chat_wish {
    const char *format;   /* a built-in format by name, or NULL */
    const char *template; /* len bytes that replace the model's template, or NULL */
    size_t len;
};

/*
 * The format of a model, with the reason for the choice.  If the model has a template, it is
 * evaluated.  Without one, or if it cannot be evaluated, a built-in format is chosen by the
 * control tokens of the vocabulary.  Borrows the tokenizer.  One thread at a time may render with it.
 */
struct chat_choice;

/* Returns -1 with *e for an unknown format name or one whose tokens the vocabulary lacks, a template that cannot be read, or a
 * wish->template that cannot be evaluated.  wish may be NULL. */
int chat_choose(struct chat_choice **out, const struct catalogue *c, const struct tokenizer *t,
                const struct chat_wish *wish, struct err *e);
void chat_choice_free(struct chat_choice *choice); /* NULL: does nothing */
const struct chat_format *chat_choice_format(const struct chat_choice *choice);
/* Returns true if the caller named this format, or for NULL if the caller named none. */
bool chat_choice_is_named(const struct chat_choice *choice, const char *name);
enum chat_source chat_choice_source(const struct chat_choice *choice);
/* The time that the template prints (seconds since 1970; 0: there is no template), which is when it
 * was chosen, and the same with a chat that began at another time.  Returns false for a time that
 * cannot be printed. */
int64_t chat_choice_time(const struct chat_choice *choice);
bool chat_choice_set_time(struct chat_choice *choice, int64_t time_s);
/* Describe the choice on one line: "the model's template (evaluated)".  Returns buf. */
const char *chat_choice_text(const struct chat_choice *choice, char *buf, size_t n);
/*
 * Write a notice for the user if the template was not used, or if it refuses the system
 * message or leaves it out.  Returns false if there is nothing to say.
 */
bool chat_choice_notice(const struct chat_choice *choice, bool has_system, char *buf, size_t n);

/* ---- use ---- */

/*
 * Append the ids of the whole conversation.  ERR_ARGUMENT: the template refuses these
 * messages, and *e holds the message of the template.
 */
int chat_format_render(const struct chat_format *f, const struct tokenizer *t,
                       const struct chat_message *messages, size_t n_message,
                       const struct chat_options *options, struct ids *out, struct err *e);

/* A prompt: the text that the template prints, and its ids. */
struct chat_prompt {
    char *text; /* owned, a NUL follows */
    size_t len;
    struct ids ids;
};
void chat_prompt_free(struct chat_prompt *p);

/*
 * Render a JSON array of messages.  An evaluated template sees every member of a message.
 * Built-in formats accept role, content (a string or parts of type "text") and
 * reasoning_content, and refuse any other member, and tools.  *out is empty before, but its
 * ids.max bounds the ids.
 */
int chat_format_render_json(const struct chat_format *f, const struct tokenizer *t,
                            const struct json_node *messages,
                            const struct chat_options *options, struct chat_prompt *out,
                            struct err *e);
/* Check for an array of objects that have a role.  Returns -1 with *e if it is something else.
 */
int chat_format_check_json(const struct json_node *messages, struct err *e);

/*
 * Collect at most n ids that end an answer: those listed by the model, control tokens with the
 * text of a known end marker, the token that f's template prints after an answer, and the
 * control tokens that open a turn in f (f may be NULL).  Returns the number of ids.
 */
size_t chat_stop_ids(const struct catalogue *c, const struct tokenizer *t,
                     const struct chat_format *f, uint32_t *out, size_t n);

/* Returns word i of text that opens a turn in f and ends an answer; NULL after the last. */
const char *chat_turn_word(const struct chat_format *f, size_t i);

#define ANSWER_HELD_MAX 256 /* the header of a message has the name of a tool */
#define ANSWER_TEXT_MAX (DECODE_MAX + ANSWER_HELD_MAX)

/*
 * Splits an answer into thinking and text: by id for marks that are tokens (Gemma 4, Qwen 3),
 * and by text for marks that are not.  Start from { 0 } with format set.
 *
 * An answer may begin inside its thinking.  The prompt shows that if it ends with the opening
 * mark.  Otherwise it turns out at a closing mark that nothing opened: was_inside is set, and
 * all text that came before it was thinking.
 */
struct answer_parser {
    const struct chat_format *format;
    const struct tokenizer *tokenizer;
    /* Control tokens that are not marks of thinking are part of the text, and so are messages of
     * gpt-oss to a tool: "<|channel|>commentary to=functions.NAME<|message|>", and what follows. */
    bool shows_marks;
    bool has_marks;
    int64_t open, close; /* ids of the marks around thinking, -1: not tokens */
    bool is_in_reply;    /* the answer began with a mark and ends with its partner */
    bool is_over;        /* the answer has ended: with that, or with a turn of another role */
    bool was_inside;
    bool has_thought; /* the opening mark was found: no text before it was thinking */
    char last;        /* byte of the answer's text */
    struct decoder decoder;
    int state;
    char held[ANSWER_HELD_MAX];
    size_t n_held;
    char tool[ANSWER_HELD_MAX]; /* gpt-oss: the tool that the message is for; "": none */
};

/* Write the text of the mark that this token ended thinking with to buf[n].  Returns its length. */
size_t answer_parser_closing(const struct answer_parser *p, uint32_t id, char *buf, size_t n);

/* Begin an answer after this prompt.  It begins inside thinking if the prompt ends there, or if
 * is_inside is set: an earlier parser of the same answer had was_inside. */
void answer_parser_start(struct answer_parser *p, const uint32_t *prompt, size_t n,
                         bool is_inside);

/*
 * Add a token to the answer and store the text that can be shown in buf, which must hold
 * ANSWER_TEXT_MAX bytes.  *is_thinking says which part the text belongs to.  Returns the
 * length, or 0 if there is no text to show yet.
 */
size_t answer_parser_push(struct answer_parser *p, uint32_t id, char *buf, bool *is_thinking);
/* The model has ended the answer: store the text that was held back. */
size_t answer_parser_end(struct answer_parser *p, char *buf, bool *is_thinking);
/* The answer was cut: the same, but without a character that is not complete. */
size_t answer_parser_cut(struct answer_parser *p, char *buf, bool *is_thinking);
/* Whether the answer is inside its thinking. */
bool answer_parser_thinks(const struct answer_parser *p);
/* The same, or between two messages of gpt-oss: what comes now is not text. */
bool answer_parser_hides(const struct answer_parser *p);
/* Store token i of those that an answer may begin its thinking with; false: there are fewer. */
bool answer_parser_mark(struct answer_parser *p, uint32_t i, uint32_t *id);

/*
 * Append the ids of an answer, made from its content and reasoning alone, so that
 * the model goes on with it.  Without content it goes on inside its thinking.  is_inside: the
 * prompt opens the thinking.
 */
int chat_answer_again(const struct chat_format *f, const struct tokenizer *t,
                      const struct chat_message *m, bool is_inside, struct ids *out,
                      struct err *e);

#endif
