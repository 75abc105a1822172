/*
 * json_text.h - JSON written by hand: a buffer, strings escaped.
 *
 * Beyond what JSON asks, every character is escaped that a terminal would obey or not show
 * (controls, direction marks, invisible ones), so that a file can be looked at with cat.
 */
#ifndef MEMWALL_UI_STORE_JSON_TEXT_H
#define MEMWALL_UI_STORE_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct json_text {
    char *s; /* n bytes, no NUL */
    size_t n, room;
    bool failed; /* memory was out: something is missing */
};

void json_text_free(struct json_text *j); /* back to all zero */

/* As it is. */
void json_text_raw(struct json_text *j, const char *s, size_t n);
void json_text_print(struct json_text *j, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* What stands between the quotes of a string; bad UTF-8 becomes U+FFFD. */
void json_text_inside(struct json_text *j, const char *s, size_t n);
/* "…" */
void json_text_string(struct json_text *j, const char *s, size_t n);

#endif
