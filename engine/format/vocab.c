#include "config.h"

#include "engine/format/vocab.h"

#include "engine/format/gguf.h"
#include "engine/format/vocab_rules.h"

int vocab_info(const struct catalogue *c, struct vocab_info *info, struct err *e)
{
    static const struct vocab_sink nothing = { 0 };
    int rc = c->kind == CATALOGUE_GGUF ? vocab_gguf_info(c, info, e)
                                       : vocab_json_read(c, info, &nothing, e);

    return rc == 0 ? 0 : err_at(e, c->path, ERR_NO_OFFSET, NULL);
}

int vocab_read(const struct catalogue *c, struct vocab_info *info,
               const struct vocab_sink *sink, struct err *e)
{
    int rc = c->kind == CATALOGUE_GGUF ? vocab_gguf_read(c, info, sink, e)
                                       : vocab_json_read(c, info, sink, e);

    return rc == 0 ? 0 : err_at(e, c->path, ERR_NO_OFFSET, NULL);
}

int vocab_chat_template(const struct catalogue *c, char **out, size_t *len, struct err *e)
{
    int rc;

    *out = NULL;
    *len = 0;
    rc = c->kind == CATALOGUE_GGUF ? gguf_long_string(c->gguf, "tokenizer.chat_template",
                                                      VOCAB_MAX_TEMPLATE, out, len, e)
                                   : vocab_config_template(c, out, len, e);
    return rc >= 0 ? 0 : err_at(e, c->path, ERR_NO_OFFSET, NULL);
}
