/* See tool_scan.h. */
#include "config.h"

#include "src/serve/tool_scan.h"

#include <ctype.h>
#include <string.h>

void scan_skip(struct scan *x, size_t n)
{
    x->s += n;
    x->n -= n;
}

void scan_skip_white(struct scan *x)
{
    while (x->n > 0 && isspace((unsigned char)*x->s))
        scan_skip(x, 1);
}

void scan_trim_end(struct scan *x)
{
    while (x->n > 0 && isspace((unsigned char)x->s[x->n - 1]))
        x->n--;
}

bool scan_takes(struct scan *x, const char *word)
{
    size_t n = strlen(word);

    if (x->n < n || memcmp(x->s, word, n) != 0)
        return false;
    scan_skip(x, n);
    return true;
}

bool scan_take_until(struct scan *x, const char *word, struct scan *out)
{
    const char *at = x->n > 0 ? memmem(x->s, x->n, word, strlen(word)) : NULL;

    if (at == NULL)
        return false;
    *out = (struct scan){ x->s, (size_t)(at - x->s) };
    scan_skip(x, out->n + strlen(word));
    return true;
}
