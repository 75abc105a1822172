#include "config.h"

#include "ui/text/parser_input.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ZEROS 16

char *parser_room(size_t n)
{
    char *copy = malloc(n + ZEROS);

    if (copy != NULL)
        memset(copy + n, 0, ZEROS);
    return copy;
}

char *parser_input(const char *text, size_t n)
{
    char *copy = parser_room(n);

    if (copy != NULL && n > 0)
        memcpy(copy, text, n);
    return copy;
}

const char *parser_source(const char *copy, const char *text, size_t n_text, const char *s,
                          size_t *n)
{
    uintptr_t from = (uintptr_t)copy, p = (uintptr_t)s;
    size_t at;

    if (p < from || p - from >= n_text + ZEROS)
        return s;
    at = p - from < n_text ? p - from : n_text;
    if (*n > n_text - at)
        *n = n_text - at;
    return text + at;
}
