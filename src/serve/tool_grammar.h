/*
 * tool_grammar.h - answers that call tools, as a grammar of the form in which the model writes
 * calls (tool_calls.h has the forms).
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
 * An answer is one of these:
 *
 *     must_call        calls
 *     rules            calls, or a text that the rule "form" of these rules describes
 *     otherwise        any text, then calls or none
 */
struct tool_use {
    enum call_form form;
    const struct json_node *tools; /* definitions, a JSON array of OpenAI's form */
    const char *is_strict; /* [tools] '1': the arguments must match the schema */
    const char *only;      /* the name of the tool that is called, once; NULL: any of them, */
    bool one_call;         /* up to 8 times, or once */
    bool must_call;
    const char *rules; /* [rules_len] or NULL; they may use those of json-object */
    size_t rules_len;
};

/*
 * Write a grammar.  The arguments of a tool that is not strict match its parameters if their
 * schema has only keywords that grammars support, where arguments are JSON, and the schemas of all
 * tools do not take too much time; otherwise they are any JSON object, or have the names of
 * parameters and any values.  -1 with *e, whose field is the tool, "[3]", and *is_schema if its
 * schema is at fault.
 */
int tool_grammar(struct json *out, const struct tool_use *u, bool *is_schema, struct err *e);

#endif
