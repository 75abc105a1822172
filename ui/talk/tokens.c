#include "config.h"

#include "ui/talk/tokens.h"

#define PARTS ((size_t)4) /* of a long text, spread evenly */

static bool count(struct mw_model *m, const char *text, size_t n, uint32_t *out)
{
    struct err ignored = ERR_INIT;
    struct mw_encoder *encoder;
    const uint32_t *ids;
    size_t n_id = 0, n_last = 0;
    bool ok;

    if (mw_encoder_new(&encoder, m, false, &ignored) != 0)
        return false;
    ok = n == 0 || mw_encoder_push(encoder, text, n, &ids, &n_id, &ignored) == 0;
    ok = ok && mw_encoder_push(encoder, NULL, 0, &ids, &n_last, &ignored) == 0;
    mw_encoder_free(encoder);
    *out = (uint32_t)(n_id + n_last);
    return ok;
}

bool tokens_of(struct mw_model *m, const char *text, size_t n, uint32_t *out)
{
    size_t part = TOKENS_COUNTED / PARTS;
    uint64_t sum = 0;

    if (n <= TOKENS_COUNTED)
        return count(m, text, n, out);
    for (size_t i = 0; i < PARTS; i++) {
        uint32_t n_token;

        if (!count(m, text + (n - part) / (PARTS - 1) * i, part, &n_token))
            return false;
        sum += n_token;
    }
    *out = (uint32_t)(sum * n / TOKENS_COUNTED);
    return true;
}
