/*
 * tool_scan.h - read the text of calls from its beginning, and add the calls (tool_forms.h).
 */
#ifndef MEMWALL_SRC_SERVE_TOOL_SCAN_H
#define MEMWALL_SRC_SERVE_TOOL_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "src/serve/tool_forms.h"

/* A part of the text that is not read yet. */
struct scan {
    const char *s;
    size_t n;
};

void scan_skip(struct scan *x, size_t n);
void scan_skip_white(struct scan *x);
void scan_trim_end(struct scan *x);
/* Take a word.  false: the text begins with something else. */
bool scan_takes(struct scan *x, const char *word);
/* Take everything up to a word, and the word. */
bool scan_take_until(struct scan *x, const char *word, struct scan *out);

/* The definition of a tool; NULL: there is none of this name. */
const struct json_node *tool_find(const struct tool_list *l, const char *name, size_t n);
/* Begin a call.  Returns its arguments, to be written; NULL: it is not one of these tools. */
struct json *tool_add(struct tool_list *l, const char *name, size_t n);
/* Add a call whose arguments are the text of a JSON object. */
bool tool_add_named(struct tool_list *l, struct scan name, struct scan arguments);

#endif
