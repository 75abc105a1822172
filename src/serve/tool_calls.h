/*
 * tool_calls.h - find the calls of tools in the text of an answer, while it comes.
 *
 * Models write calls as their templates taught them:
 *
 *     Hermes, Qwen       <tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>
 *     Qwen 3 Coder, 3.5  <tool_call><function=f><parameter=a>1</parameter></function></tool_call>
 *     Llama 3            {"name": "f", "parameters": {"a": 1}}, also after <|python_tag|>
 *     Mistral            [TOOL_CALLS][{"name": "f", "arguments": {"a": 1}}]
 *                        [TOOL_CALLS]f[ARGS]{"a": 1}
 *     Gemma 4            <|tool_call>call:f{a:1,b:<|"|>text<|"|>}<tool_call|>
 *     gpt-oss            <|channel|>commentary to=functions.f<|message|>{"a": 1}
 *     GLM, Laguna        <tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value></tool_call>
 *     LFM2               <|tool_call_start|>[f(a=1)]<|tool_call_end|>
 *     MiniMax, Muse, DeepSeek V4
 *                        <minimax:tool_call><invoke name="f"><parameter name="a">1</parameter>
 *                        </invoke></minimax:tool_call>
 *     Seed-OSS, Command R, DeepSeek V3, Kimi
 *                        functions in tags or JSON, in marks of their own
 *
 * A call counts only if it names a tool of the request and can be read.  Everything else is text,
 * with its marks, so nothing that a model writes is lost.
 */
#ifndef MEMWALL_SRC_SERVE_TOOL_CALLS_H
#define MEMWALL_SRC_SERVE_TOOL_CALLS_H

#include "engine/base/json_write.h"
#include "engine/memwall.h"
#include "src/serve/tool_grammar.h"

/* Takes a part of the answer: text, or a call of `name` with its arguments, a JSON object.
 * Returns -1 with *e to stop. */
typedef int tool_text_fn(void *ctx, const char *text, size_t len, struct err *e);
typedef int tool_call_fn(void *ctx, const char *name, const char *arguments, size_t len,
                         struct err *e);

struct tool_calls;

/* How calls are found. */
struct tool_reading {
    const char *tools; /* definitions, a JSON array of OpenAI's form, which is copied */
    size_t len;
    enum call_form form; /* the answer's grammar has calls in this form only; CALLS_UNKNOWN: any */
    bool is_whole;       /* and an answer that does not begin with a call has none */
};

/* -1 with *e. */
int tool_calls_new(struct tool_calls **out, const struct tool_reading *how, tool_text_fn *text,
                   tool_call_fn *call, void *ctx, struct err *e);
void tool_calls_free(struct tool_calls *t);

/* The next piece of the answer.  Text that may be the beginning of a call is held back. */
int tool_calls_push(struct tool_calls *t, const char *text, size_t len, struct err *e);
/* The text until now was thinking: pass on the part that was held back.  Text that follows is the
 * beginning of the answer. */
int tool_calls_restart(struct tool_calls *t, struct err *e);
/* The answer is over. */
int tool_calls_end(struct tool_calls *t, struct err *e);
/* The bytes that were looked at or moved, which are bounded by a multiple of those of the answer. */
uint64_t tool_calls_work(const struct tool_calls *t);

#endif
