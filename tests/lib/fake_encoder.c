/* The tokenizer of fake_chat.h: each token is four bytes. */
#include "config.h"

#include <stdlib.h>

#include "engine/memwall.h"
#include "tests/lib/fake_chat.h"

struct mw_encoder {
    size_t n_byte;
    uint32_t *ids;
};

static _Atomic uint64_t n_encoded;

uint64_t fake_chat_encoded(void)
{
    return n_encoded;
}

int mw_encoder_new(struct mw_encoder **out, struct mw_model *m, bool parse_special,
                   struct err *e)
{
    (void)m;
    (void)parse_special;
    *out = calloc(1, sizeof **out);
    return *out != NULL ? 0 : err_memory(e, "an encoder");
}

void mw_encoder_free(struct mw_encoder *x)
{
    free(x->ids);
    free(x);
}

int mw_encoder_push(struct mw_encoder *x, const char *text, size_t len, const uint32_t **ids,
                    size_t *n, struct err *e)
{
    (void)text;
    n_encoded += len;
    *n = (x->n_byte % 4 + len) / 4;
    x->n_byte += len;
    free(x->ids);
    x->ids = calloc(*n + 1, sizeof *x->ids);
    *ids = x->ids;
    return x->ids != NULL ? 0 : err_memory(e, "ids");
}
