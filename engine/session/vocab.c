/* Text to ids and back, with the vocabulary of a model or with one by itself. */
#include "config.h"

#include "engine/session/vocab.h"

#include <stdlib.h>
#include <string.h>

#include "engine/format/vocab.h"
#include "engine/session/model.h"

/* --- a vocabulary --- */

int mw_vocab_open(struct mw_vocab **out, const char *path, struct err *e)
{
    struct mw_vocab *v = calloc(1, sizeof *v);

    *out = NULL;
    if (v == NULL)
        return err_memory(e, "a vocabulary");
    if (vocab_open(&v->catalogue, path, e) != 0 ||
        tokenizer_open(&v->tokenizer, v->catalogue, e) != 0) {
        mw_vocab_close(v);
        return -1;
    }
    *out = v;
    return 0;
}

void mw_vocab_close(struct mw_vocab *v)
{
    if (v == NULL)
        return;
    tokenizer_close(v->tokenizer);
    catalogue_close(v->catalogue);
    free(v);
}

uint32_t mw_vocab_size(const struct mw_vocab *v)
{
    return tokenizer_info(v->tokenizer)->n_token;
}

const char *mw_vocab_notice(const struct mw_vocab *v)
{
    return tokenizer_info(v->tokenizer)->notice;
}

/* --- text to ids --- */

struct mw_encoder {
    struct encoder *encoder;
    struct ids ids; /* returned by the last push */
};

static int make_encoder(struct mw_encoder **out, const struct tokenizer *t, bool parse_special,
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
    const struct tokenizer *t = model_tokenizer(m, NULL, e);

    *out = NULL;
    return t == NULL ? -1 : make_encoder(out, t, parse_special, TOKENIZER_RUN_MAX, e);
}

int mw_vocab_encoder(struct mw_encoder **out, const struct mw_vocab *v, bool parse_special,
                     struct err *e)
{
    return make_encoder(out, v->tokenizer, parse_special, 0, e);
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

const char *mw_model_notice(const struct mw_model *m)
{
    return m->tokenizer != NULL ? tokenizer_info(m->tokenizer)->notice : m->vocab.notice;
}

const char *mw_model_key_notice(const struct mw_model *m)
{
    return m->key_notice;
}

size_t mw_token_piece(const struct mw_model *m, uint32_t id, char *buf, size_t n)
{
    const struct tokenizer *t = m->tokenizer;

    return t != NULL ? tokenizer_piece(t, id, true, buf, n) : 0;
}

int mw_model_template(const struct mw_model *m, char **out, size_t *len, struct err *e)
{
    return vocab_chat_template(m->catalogue, out, len, e);
}

int64_t mw_begin_id(const struct mw_model *m)
{
    return m->has_vocab && m->vocab.add_bos ? m->vocab.bos : -1;
}

/* --- ids to text --- */

int mw_vocab_decode(const struct mw_vocab *v, const uint32_t *ids, size_t n, bool show_control,
                    char **text, size_t *len, struct err *e)
{
    struct decoder d = { .show_control = show_control };
    size_t room = 0, used = 0;
    char *out = NULL;

    *text = NULL;
    *len = 0;
    for (size_t i = 0; i <= n; i++) {
        if (room - used <= DECODE_MAX) {
            char *more;

            room += room / 2 + 2 * DECODE_MAX;
            more = realloc(out, room);
            if (more == NULL) {
                free(out);
                return err_memory(e, "the text");
            }
            out = more;
        }
        used += i < n ? decoder_push(&d, v->tokenizer, ids[i], out + used)
                      : decoder_end(&d, out + used);
    }
    out[used] = '\0';
    *text = out;
    *len = used;
    return 0;
}

_Static_assert(MW_PIECE_MAX >= VOCAB_MAX_TEXT, "MW_PIECE_MAX is enough for every token");

size_t mw_vocab_piece(const struct mw_vocab *v, uint32_t id, char *buf, size_t n)
{
    return tokenizer_piece(v->tokenizer, id, true, buf, n);
}

const char *mw_vocab_kind(const struct mw_vocab *v, uint32_t id)
{
    switch (tokenizer_kind(v->tokenizer, id)) {
    case TOKEN_NORMAL: return "normal";
    case TOKEN_UNKNOWN: return "unknown";
    case TOKEN_CONTROL: return "control";
    case TOKEN_USER: return "user";
    case TOKEN_UNUSED: return "unused";
    case TOKEN_BYTE: return "byte";
    }
    return "unused";
}
