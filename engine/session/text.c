/* Text to ids for programs that evaluate ids themselves. */
#include "config.h"

#include "engine/session/model_open.h"

int mw_tokenize(struct mw_model *m, const char *text, size_t len, bool parse_special,
                uint32_t **ids, size_t *n, struct err *e)
{
    const struct tokenizer *t = mw_model_tokenizer(m, e);
    struct ids list = { 0 };

    *ids = NULL;
    *n = 0;
    if (t == NULL)
        return -1;
    if (tokenizer_encode(t, text, len, parse_special, true, &list, e) != 0) {
        ids_free(&list);
        return -1;
    }
    *ids = list.id;
    *n = list.n;
    return 0;
}

int64_t mw_begin_id(const struct mw_model *m)
{
    return m->has_vocab && m->vocab.add_bos ? m->vocab.bos : -1;
}
