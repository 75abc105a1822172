/*
 * tool_grammar.h - answers that must call a tool, as a grammar of the form in which the model
 * writes calls (tool_calls.h has the forms).
 */
#ifndef MEMWALL_SRC_SERVE_TOOL_GRAMMAR_H
#define MEMWALL_SRC_SERVE_TOOL_GRAMMAR_H

#include "engine/base/json_write.h"
#include "engine/memwall.h"

enum call_form {
    CALLS_UNKNOWN, /* no form is known, or it cannot be forced */
    CALLS_HERMES,
    CALLS_TAGGED, /* Qwen 3 Coder */
    CALLS_LLAMA,
    CALLS_MISTRAL,
    CALLS_MISTRAL_ARGS, /* a name between marks */
    CALLS_GEMMA,
};

/* The form that a chat template teaches. */
enum call_form call_form_of(const char *chat_template, size_t len);

/*
 * Write a grammar.  tools: definitions, a JSON array of OpenAI's form.  only: the name of the one
 * that is called, once; NULL: any of them, up to 8 times, or once with `one`.  Arguments match the parameters of a
 * tool if their schema has only keywords that grammars support; otherwise they are any JSON
 * object.  Those in marks that are not JSON have the names of parameters and any values.
 */
int tool_grammar(struct json *out, enum call_form form, const struct json_node *tools,
                 const char *only, bool one, struct err *e);

#endif
