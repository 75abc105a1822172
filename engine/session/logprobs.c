/* See logprobs.h. */
#include "config.h"

#include "engine/session/logprobs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/greatest.h"
#include "engine/session/model.h"

struct logprobs {
    uint32_t n_vocab, n;
    float row[]; /* [n_vocab] */
};

uint64_t mw_logprob_bytes(const struct mw_model *m)
{
    return sizeof(struct logprobs) + (uint64_t)m->desc->n_vocab * sizeof(float);
}

int logprobs_new(struct logprobs **out, uint32_t n_vocab, uint32_t n, struct err *e)
{
    *out = calloc(1, sizeof **out + n_vocab * sizeof(float));
    if (*out == NULL)
        return err_memory(e, "the probabilities of tokens");
    (*out)->n_vocab = n_vocab;
    (*out)->n = n < MW_LOGPROBS ? n : MW_LOGPROBS;
    return 0;
}

void logprobs_free(struct logprobs *l)
{
    free(l);
}

void logprobs_take(struct logprobs *l, const float *logits)
{
    memcpy(l->row, logits, l->n_vocab * sizeof *l->row);
}

/* Find the k most likely tokens, the most likely first; of equal ones, the lower id. */
static uint32_t find_most(const struct logprobs *l, struct mw_logprob *out, uint32_t k)
{
    uint32_t n = 0;

    for (uint32_t id = 0; id < l->n_vocab && k > 0; id++) {
        uint32_t at;

        if (!(l->row[id] > -INFINITY) || (n == k && !(l->row[id] > out[n - 1].logprob)))
            continue;
        n += n < k;
        for (at = n - 1; at > 0 && l->row[id] > out[at - 1].logprob; at--)
            out[at] = out[at - 1];
        out[at] = (struct mw_logprob){ id, l->row[id] };
    }
    return n;
}

uint32_t logprobs_of(const struct logprobs *l, uint32_t id, struct mw_logprob out[MW_LOGPROBS])
{
    float top = l->row[greatest_of(l->row, l->n_vocab)];
    double sum = 0;
    uint32_t n;

    for (uint32_t i = 0; i < l->n_vocab; i++)
        sum += exp((double)l->row[i] - (double)top);
    n = 1 + find_most(l, out + 1, l->n - 1);
    out[0] = (struct mw_logprob){ id, l->row[id] };
    for (uint32_t i = 0; i < n; i++)
        out[i].logprob = (float)((double)out[i].logprob - (double)top - log(sum));
    /* An entry without a token: the row has fewer numbers than were asked for. */
    for (uint32_t i = n; i < l->n; i++)
        out[i] = (struct mw_logprob){ UINT32_MAX, -INFINITY };
    return l->n;
}
