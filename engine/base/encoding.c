#include "config.h"

#include "engine/base/encoding.h"

#include <string.h>

struct mark {
    const char *bytes, *name;
    size_t n;
};

int encoding_mark(const void *text, size_t n, struct err *e)
{
    static const struct mark marks[] = {
        { "\xef\xbb\xbf", NULL, 3 },     { "\xff\xfe\0\0", "UTF-32", 4 },
        { "\0\0\xfe\xff", "UTF-32", 4 }, { "\xff\xfe", "UTF-16", 2 },
        { "\xfe\xff", "UTF-16", 2 },
    };

    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        const struct mark *m = &marks[i];

        if (n < m->n || memcmp(text, m->bytes, m->n) != 0)
            continue;
        if (m->name == NULL)
            return (int)m->n;
        return err_set(e, ERR_FORMAT,
                       "the text is %s, not UTF-8; convert it with \"iconv -f %s -t UTF-8\"",
                       m->name, m->name);
    }
    return 0;
}
