/* Text to ids for programs that evaluate ids themselves. */
#include "config.h"

#include <stdlib.h>

#include "engine/session/model.h"

struct mw_encoder {
    struct encoder *encoder;
    struct ids ids; /* given out by the last push */
};

int text_encoder_new(struct mw_encoder **out, const struct tokenizer *t, bool parse_special,
                     size_t run_max, struct err *e)
{
    struct mw_encoder *x = calloc(1, sizeof *x);

    *out = NULL;
    if (x == NULL)
        return err_memory(e, "reading a text");
    if (encoder_new(&x->encoder, t, parse_special, run_max, e) != 0) {
        free(x);
        return -1;
    }
    *out = x;
    return 0;
}

int mw_encoder_new(struct mw_encoder **out, struct mw_model *m, bool parse_special,
                   struct err *e)
{
    const struct tokenizer *t = model_tokenizer(m, e);

    *out = NULL;
    return t == NULL ? -1 : text_encoder_new(out, t, parse_special, TOKENIZER_RUN_MAX, e);
}

void mw_encoder_free(struct mw_encoder *x)
{
    if (x == NULL)
        return;
    encoder_free(x->encoder);
    ids_free(&x->ids);
    free(x);
}

int mw_encoder_push(struct mw_encoder *x, const char *text, size_t len, const uint32_t **ids,
                    size_t *n, struct err *e)
{
    int rc;

    x->ids.n = 0;
    rc = len > 0 ? encoder_push(x->encoder, text, len, &x->ids, e)
                 : encoder_end(x->encoder, &x->ids, e);
    *ids = x->ids.id;
    *n = rc == 0 ? x->ids.n : 0;
    return rc;
}

int64_t mw_begin_id(const struct mw_model *m)
{
    return m->has_vocab && m->vocab.add_bos ? m->vocab.bos : -1;
}
