/* split_name.h - names of split GGUF sets: PREFIX-00001-of-00003.gguf. */
#ifndef MEMWALL_ENGINE_FORMAT_SPLIT_NAME_H
#define MEMWALL_ENGINE_FORMAT_SPLIT_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct split_name {
    size_t prefix; /* bytes before "-00001-of-" */
    uint32_t number, count;
};

/* Returns whether the path ends in such a name.  PREFIX must have a character after the last
 * slash. */
bool split_name_parse(const char *path, struct split_name *s);

/* Write the path of file `number` of the set, which takes as many bytes as the given one. */
void split_name_write(char *buf, size_t n, const char *path, const struct split_name *s,
                      uint32_t number);

#endif
