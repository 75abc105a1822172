#include "config.h"

#include "ui/talk/tokens.h"

#define PARTS ((size_t)4) /* of a long text, spread evenly */

static bool count(struct engine *g, const char *text, size_t n, uint32_t *out)
{
    struct err ignored = ERR_INIT;

    return g->calls->count != NULL && g->calls->count(g, text, n, out, &ignored) == 0;
}

bool tokens_of(struct engine *g, const char *text, size_t n, uint32_t *out)
{
    size_t part = TOKENS_COUNTED / PARTS;
    uint64_t sum = 0;

    if (n <= TOKENS_COUNTED)
        return count(g, text, n, out);
    for (size_t i = 0; i < PARTS; i++) {
        uint32_t n_token;

        if (!count(g, text + (n - part) / (PARTS - 1) * i, part, &n_token))
            return false;
        sum += n_token;
    }
    *out = (uint32_t)(sum * n / TOKENS_COUNTED);
    return true;
}
