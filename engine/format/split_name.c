#include "config.h"

#include "engine/format/split_name.h"

#include <stdio.h>
#include <string.h>

static bool five_digits(const char *p, uint32_t *v)
{
    *v = 0;
    for (int i = 0; i < 5; i++) {
        if (p[i] < '0' || p[i] > '9')
            return false;
        *v = *v * 10 + (uint32_t)(p[i] - '0');
    }
    return true;
}

bool split_name_parse(const char *path, struct split_name *s)
{
    static const char form[] = "-00001-of-00003.gguf";
    size_t n = strlen(path), m = sizeof form - 1;
    const char *p = n > m ? path + n - m : "";

    if (p[0] != '-' || p[-1] == '/' || strncmp(p + 6, "-of-", 4) != 0 ||
        strcmp(p + 15, ".gguf") != 0)
        return false;
    s->prefix = n - m;
    return five_digits(p + 1, &s->number) && five_digits(p + 10, &s->count);
}

void split_name_write(char *buf, size_t n, const char *path, const struct split_name *s,
                      uint32_t number)
{
    snprintf(buf, n, "%.*s-%05u-of-%05u.gguf", (int)s->prefix, path, number, s->count);
}
