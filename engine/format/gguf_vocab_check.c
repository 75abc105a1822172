/*
 * That the arrays of a GGUF vocabulary fit each other and the embedding, told from
 * their counts alone: nothing of them is read here.
 */
#include "config.h"

#include "engine/format/catalogue_build.h"
#include "engine/format/hparams_fill.h"

/* found: 1 there and fine, 0 absent, -1 wrong. */
static int check_array(const struct gguf *g, const char *key, bool (*fits)(enum gguf_type),
                       const char *what, uint64_t count, struct err *e)
{
    const struct gguf_value *v = gguf_find(g, key);

    if (v == NULL)
        return 0;
    if (v->type != GGUF_ARRAY || !fits(v->elem)) {
        err_set(e, ERR_FORMAT, "is %s%s, not an array of %s",
                v->type == GGUF_ARRAY ? "an array of " : "",
                gguf_type_name(v->type == GGUF_ARRAY ? v->elem : v->type), what);
        return err_at(e, NULL, v->offset, key);
    }
    if (v->count != count) {
        err_set(e, ERR_FORMAT, "%llu entries for %llu tokens (rows of token_embd.weight)",
                (unsigned long long)v->count, (unsigned long long)count);
        return err_at(e, NULL, v->offset, key);
    }
    return 1;
}

static bool is_string(enum gguf_type t)
{
    return t == GGUF_STRING;
}

static bool is_float(enum gguf_type t)
{
    return t == GGUF_F32;
}

static bool is_id(enum gguf_type t)
{
    return t == GGUF_I32 || t == GGUF_U32;
}

int gguf_check_vocab(const struct catalogue *c, struct err *e)
{
    const struct gguf *g = c->gguf;
    uint64_t n = c->hparams.n_vocab;
    int tokens = check_array(g, "tokenizer.ggml.tokens", is_string, "strings", n, e);

    if (tokens < 0)
        return -1;
    if (tokens == 0) /* a model without a vocabulary is read; text is refused later */
        return 0;
    if (check_array(g, "tokenizer.ggml.scores", is_float, "f32", n, e) < 0 ||
        check_array(g, "tokenizer.ggml.token_type", is_id, "i32", n, e) < 0)
        return -1;
    return 0;
}
