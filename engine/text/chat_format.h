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
    const char *date; /* for formats that print today's; "26 Jul 2024"; NULL: the template's */
};

struct chat_format;

/* Every format's name in order, NULL behind the last; "raw" is completion. */
const char *const *chat_format_names(void);

/*
 * Choose from the model's own template and vocabulary, or by name if name is not
 * NULL.  The result is static.  Returns NULL with *e for an unknown name.
 */
const struct chat_format *chat_format_choose(const struct catalogue *c,
                                             const struct tokenizer *t, const char *name,
                                             struct err *e);
const char *chat_format_name(const struct chat_format *f);

/* Does the format know a thinking part that can be switched? */
bool chat_format_can_think(const struct chat_format *f);

/* Append the ids of the whole conversation. */
int chat_format_render(const struct chat_format *f, const struct tokenizer *t,
                       const struct chat_message *messages, size_t n_message,
                       const struct chat_options *options, struct ids *out, struct err *e);

/* Ids that end an answer: stated by the model, and control tokens with the texts of
 * known end markers.  At most n; returns how many. */
size_t chat_stop_ids(const struct catalogue *c, const struct tokenizer *t, uint32_t *out,
                     size_t n);

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

/*
 * What id adds to the answer.  *text gets len bytes (buf holds DECODE_MAX + 64);
 * *is_thinking tells to which part it belongs.  Returns the length, 0 if nothing is to be
 * shown yet.
 */
size_t answer_parser_push(struct answer_parser *p, uint32_t id, char *buf, bool *is_thinking);
size_t answer_parser_end(struct answer_parser *p, char *buf, bool *is_thinking);

#endif
