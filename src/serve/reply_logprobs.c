/* The probabilities of tokens, in OpenAI's forms.  See reply.h. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "src/serve/reply.h"

/* A logarithm that JSON has: of a token that cannot come, the clients' usual number. */
#define NEVER -9999.0

static size_t text_of(const struct reply *r, uint32_t id, char *text)
{
    size_t n = mw_token_piece(r->model->m, id, text, MW_PIECE_MAX);

    return n < MW_PIECE_MAX ? n : MW_PIECE_MAX;
}

static double number_of(const struct mw_logprob *p)
{
    return (double)p->logprob > NEVER ? (double)p->logprob : NEVER;
}

static void write_token(const struct reply *r, const struct mw_logprob *p, struct json *out)
{
    char text[MW_PIECE_MAX];
    size_t n = text_of(r, p->id, text);

    json_string_n(out, "token", text, n);
    json_double(out, "logprob", number_of(p), 6);
    json_array(out, "bytes");
    for (size_t i = 0; i < n; i++)
        json_u64(out, NULL, (unsigned char)text[i]);
    json_end(out);
}

/* Entries of a token: itself, then the most likely ones. */
struct entry {
    const char *at;
    uint32_t n;
};

static struct mw_logprob entry_at(const struct entry *x, uint32_t i)
{
    struct mw_logprob p;

    memcpy(&p, x->at + i * sizeof p, sizeof p);
    return p;
}

static void write_content(const struct reply *r, struct entry x, const char *end,
                          struct json *out)
{
    json_array(out, "content");
    for (; x.at < end; x.at += x.n * sizeof(struct mw_logprob)) {
        struct mw_logprob p = entry_at(&x, 0);

        json_object(out, NULL);
        write_token(r, &p, out);
        json_array(out, "top_logprobs");
        for (uint32_t i = 1; i < x.n; i++) {
            p = entry_at(&x, i);
            if (p.id == UINT32_MAX)
                continue;
            json_object(out, NULL);
            write_token(r, &p, out);
            json_end(out);
        }
        json_end(out);
        json_end(out);
    }
    json_end(out);
    json_null(out, "refusal");
}

/* A token as the name of a member, with broken UTF-8 replaced as JSON has it. */
static void write_named(const struct reply *r, const struct mw_logprob *p, struct json *out)
{
    char text[MW_PIECE_MAX + 1];

    text[text_of(r, p->id, text)] = '\0';
    json_double(out, text, number_of(p), 6);
}

enum list { TOKENS, LOGPROBS, MOST_LIKELY, OFFSETS, N_LIST };

static void write_list(const struct reply *r, enum list which, struct entry x, const char *end,
                       uint64_t offset, struct json *out)
{
    static const char *const names[N_LIST] = { "tokens", "token_logprobs", "top_logprobs",
                                               "text_offset" };

    json_array(out, names[which]);
    for (; x.at < end; x.at += x.n * sizeof(struct mw_logprob)) {
        struct mw_logprob p = entry_at(&x, 0);
        char text[MW_PIECE_MAX];
        size_t n = text_of(r, p.id, text);

        switch (which) {
        case TOKENS: json_string_n(out, NULL, text, n); break;
        case LOGPROBS: json_double(out, NULL, number_of(&p), 6); break;
        case OFFSETS: json_u64(out, NULL, offset); break;
        case MOST_LIKELY:
            json_object(out, NULL);
            for (uint32_t i = 1; i < x.n; i++) {
                p = entry_at(&x, i);
                if (p.id != UINT32_MAX)
                    write_named(r, &p, out);
            }
            json_end(out);
            break;
        case N_LIST: break;
        }
        offset += n;
    }
    json_end(out);
}

static uint64_t bytes_of(const struct reply *r, struct entry x, const char *end)
{
    char text[MW_PIECE_MAX];
    uint64_t n = 0;

    for (; x.at < end; x.at += x.n * sizeof(struct mw_logprob))
        n += text_of(r, entry_at(&x, 0).id, text);
    return n;
}

void reply_logprobs(const struct reply *r, const char *list, size_t n, uint64_t *offset,
                    struct json *out)
{
    struct entry x = { list, r->job->request.n_logprob };

    if (n == 0) {
        json_null(out, "logprobs");
        return;
    }
    json_object(out, "logprobs");
    if (r->job->request.form == FORM_CHAT)
        write_content(r, x, list + n, out);
    else
        for (enum list i = 0; i < N_LIST; i++)
            write_list(r, i, x, list + n, *offset, out);
    *offset += bytes_of(r, x, list + n);
    json_end(out);
}
