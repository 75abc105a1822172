/*
 * tool_forms.h - read the calls between the marks of one form (tool_calls.h has all of them).
 */
#ifndef MEMWALL_SRC_SERVE_TOOL_FORMS_H
#define MEMWALL_SRC_SERVE_TOOL_FORMS_H

#include "engine/base/json_write.h"
#include "engine/memwall.h"

#define TOOL_CALLS_MOST 32 /* in one pair of marks */

struct tool_list {
    const struct json_node *tools; /* the definitions */
    struct {
        const char *name; /* of the definition */
        struct json arguments; /* a JSON object */
    } call[TOOL_CALLS_MOST];
    size_t n;
};

void tool_list_start(struct tool_list *l);
void tool_list_free(struct tool_list *l);

/* Add the calls of n bytes.  false: they are not calls of these tools. */
typedef bool tool_form_fn(struct tool_list *l, const char *s, size_t n);
tool_form_fn tool_form_json, tool_form_tagged, tool_form_seed, tool_form_mistral,
    tool_form_gemma, tool_form_harmony, tool_form_invoke, tool_form_deepseek, tool_form_kimi,
    tool_form_python;

/* A mark of DeepSeek. */
#define TOOL_BARS(name) "<\uff5c" name "\uff5c>"

#endif
