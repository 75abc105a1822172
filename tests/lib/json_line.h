/*
 * json_line.h - parse one line of JSON to a tree.  Strings keep their length: they may
 * hold NUL, which yajl's own tree does not.
 */
#ifndef MEMWALL_TESTS_LIB_JSON_LINE_H
#define MEMWALL_TESTS_LIB_JSON_LINE_H

#include <stdbool.h>
#include <stddef.h>

enum json_line_kind { LINE_NULL, LINE_BOOL, LINE_NUMBER, LINE_TEXT, LINE_MAP, LINE_LIST };

struct json_line {
    enum json_line_kind kind;
    char *key;  /* in a map; ends in NUL */
    char *text; /* ends in NUL, may hold others */
    size_t len;
    long long number; /* also for a bool */
    size_t n;         /* members or elements */
    struct json_line *first, *last, *next;
};

/* Parse a JSON value.  Returns NULL if text is not one. */
struct json_line *json_line_parse(const char *text, size_t len);
void json_line_free(struct json_line *v);

/* Returns a member of an object; NULL if there is no such member or v is NULL. */
const struct json_line *json_line_get(const struct json_line *v, const char *key);
bool json_line_is(const struct json_line *v); /* Returns whether v is true. */

#endif
