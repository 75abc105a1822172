/*
 * json_out.h - a string of JSON on a stream.
 */
#ifndef MEMWALL_SRC_JSON_OUT_H
#define MEMWALL_SRC_JSON_OUT_H

#include <stddef.h>
#include <stdio.h>

/* n bytes of UTF-8 between quotes; controls and quotes escaped. */
void json_out_text(FILE *to, const char *text, size_t n);
void json_out_string(FILE *to, const char *text);

#endif
