/*
 * Choose the next id from a row of logits.
 *
 * A vocabulary has 262144 entries and a token takes a few milliseconds, so the entries are
 * never all sorted: a heap gives the most likely ones one after the other, as many as needed.
 * Order: suppressed ids, those that a constraint forbids, biases, penalties, temperature, top-k,
 * top-p, min-p, draw.
 *
 * The draw has no state.  Each candidate gets a random number u in (0, 1) from the seed, the
 * position and its id, and the least -log(u) / share wins.  These times are exponential with
 * the shares as rates, so a candidate wins with its share of the sum: the Gumbel-max trick
 * (Gumbel 1954) with one logarithm less.  Hence the same seed gives the same id at a position
 * however the session came there, and two models whose shares are alike mostly choose the same
 * id: a draft is accepted at any temperature if it was drawn with the same numbers.
 *
 * The id with the greatest logit is a candidate in every step, whatever the values are, so no
 * list is ever empty.  Logits may be so large, or the temperature so small, that the difference
 * to the next candidate is lost in rounding.
 */
#include "config.h"

#include "engine/session/sampler.h"

#include <sys/random.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/greatest.h"
#include "engine/session/constraint.h"
#include "engine/session/model.h"

/* Candidates whose share is below e^-REACH of the greatest are ignored: all of them together,
 * in any vocabulary, are less than the rounding of one float. */
#define REACH 30.0f

struct mw_sampler {
    struct mw_sampling s;
    uint32_t attempt;
    uint64_t key; /* of the random numbers of this answer */
    uint32_t n_vocab;
    uint64_t *never; /* one bit per id: must not be sampled */
    uint64_t *seen;  /* one bit per id: has its penalty; all clear between rows */
    uint32_t *heap;  /* ids, [n_vocab] */
    size_t from;     /* position of the answer's first token */
    struct constraint *constraint; /* NULL: none */
    const struct mw_logit_bias *bias; /* [n_bias] */
    uint32_t n_bias;
    struct err failure;            /* of the last token */
};

static size_t words_of(uint32_t n_vocab)
{
    return n_vocab / 64 + 1;
}

uint64_t sampler_bytes(uint32_t n_vocab)
{
    return sizeof(struct mw_sampler) + 2 * words_of(n_vocab) * sizeof(uint64_t) +
           (uint64_t)n_vocab * sizeof(uint32_t) + 16 * KIB;
}

static bool has_bit(const uint64_t *bits, uint32_t id)
{
    return (bits[id / 64] >> id % 64 & 1) != 0;
}

static void set_bit(uint64_t *bits, uint32_t id)
{
    bits[id / 64] |= (uint64_t)1 << id % 64;
}

void mw_sampling_default(const struct mw_model *m, struct mw_sampling *s)
{
    const struct generation_hparams *g = &m->catalogue->generation;

    *s = (struct mw_sampling){ .temp = g->has_temp ? g->temp : 0.8f,
                               .top_k = g->has_top_k ? g->top_k : 40,
                               .top_p = g->has_top_p ? g->top_p : 0.95f,
                               .min_p = g->has_min_p ? g->min_p : 0.05f,
                               .repeat_penalty = g->has_repeat_penalty ? g->repeat_penalty : 1,
                               .repeat_last = 64 };
    /* A model that recommends a temperature and no min-p is used without min-p. */
    if (g->has_temp && !g->has_min_p)
        s->min_p = 0;
}

/* The output function of splitmix64 (Steele, Lea and Flood 2014). */
static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Number n of the sequence with this key. */
static uint64_t random_at(uint64_t key, uint64_t n)
{
    return mix(key + (n + 1) * 0x9e3779b97f4a7c15u);
}

static void make_key(struct mw_sampler *p)
{
    uint64_t x = p->s.seed.value;

    if (!p->s.seed.is_set && getrandom(&x, sizeof x, 0) != (ssize_t)sizeof x)
        x = 1;
    p->key = random_at(mix(x), p->attempt);
}

void sampler_begin(struct mw_sampler *p, uint32_t attempt)
{
    p->attempt = attempt;
    make_key(p);
}

/* Suppress ids that no text has: those that the model names, and those without a usable token.
 */
static void collect_never(struct mw_sampler *p, const struct mw_model *m)
{
    const struct generation_hparams *g = &m->catalogue->generation;

    for (uint32_t i = 0; i < g->n_suppress; i++)
        if (g->suppress[i] < p->n_vocab)
            set_bit(p->never, g->suppress[i]);
    for (uint32_t id = 0; m->tokenizer != NULL && id < p->n_vocab; id++)
        if (tokenizer_is_unusable(m->tokenizer, id))
            set_bit(p->never, id);
}

int mw_sampler_new(struct mw_sampler **out, const struct mw_model *m,
                   const struct mw_sampling *s, struct err *e)
{
    struct mw_sampler *p = calloc(1, sizeof *p);

    *out = NULL;
    if (p == NULL)
        return err_memory(e, "the sampler");
    p->s = *s;
    p->n_vocab = m->desc->n_vocab;
    make_key(p);
    p->never = calloc(words_of(p->n_vocab), sizeof *p->never);
    p->seen = calloc(words_of(p->n_vocab), sizeof *p->seen);
    p->heap = calloc(p->n_vocab, sizeof *p->heap);
    if (p->never == NULL || p->seen == NULL || p->heap == NULL) {
        err_memory(e, "the sampler");
        mw_sampler_free(p);
        return -1;
    }
    collect_never(p, m);
    *out = p;
    return 0;
}

void sampler_set_from(struct mw_sampler *p, size_t from)
{
    p->from = from;
}

void sampler_constrain(struct mw_sampler *p, struct constraint *c)
{
    p->constraint = c;
}

void sampler_bias(struct mw_sampler *p, const struct mw_logit_bias *bias, uint32_t n)
{
    p->bias = bias;
    p->n_bias = n;
}

bool sampler_failed(const struct mw_sampler *p, struct err *e)
{
    if (p->failure.code != ERR_NONE)
        *e = p->failure;
    return p->failure.code != ERR_NONE;
}

void sampler_set(struct mw_sampler *p, const struct mw_sampling *s)
{
    bool is_new = s->seed.is_set != p->s.seed.is_set || s->seed.value != p->s.seed.value;

    p->s = *s;
    if (is_new)
        make_key(p);
}

void mw_sampler_free(struct mw_sampler *p)
{
    if (p == NULL)
        return;
    free(p->heap);
    free(p->seen);
    free(p->never);
    free(p);
}

/* A logit that is a number stays one, so the id stays before those that are suppressed. */
static float penalised(float logit, float penalty)
{
    float x = logit > 0 ? logit / penalty : logit * penalty;

    return logit > -INFINITY ? fminf(fmaxf(x, -FLT_MAX), FLT_MAX) : logit;
}

/* Penalise each id of the window once, however often it occurs: the penalty is not a power. */
static void penalise(struct mw_sampler *p, float *logits, const uint32_t *before,
                     size_t n_before)
{
    size_t from = n_before > p->s.repeat_last ? n_before - p->s.repeat_last : 0;

    if (p->s.repeat_penalty == 1 || !(p->s.repeat_penalty > 0))
        return;
    for (size_t i = from; i < n_before; i++) {
        uint32_t id = before[i];

        if (id >= p->n_vocab || has_bit(p->seen, id))
            continue;
        set_bit(p->seen, id);
        logits[id] = penalised(logits[id], p->s.repeat_penalty);
    }
    for (size_t i = from; i < n_before; i++)
        if (before[i] < p->n_vocab)
            p->seen[before[i] / 64] = 0;
}

/*
 * The penalties of OpenAI's protocol: one for each time that the answer has the token, and one if
 * it has it at all.
 */
static void penalise_answer(struct mw_sampler *p, float *logits, const uint32_t *before,
                            size_t n_before)
{
    if (p->s.presence_penalty == 0 && p->s.frequency_penalty == 0)
        return;
    for (size_t i = p->from; i < n_before; i++) {
        uint32_t id = before[i];

        if (id >= p->n_vocab)
            continue;
        logits[id] -= p->s.frequency_penalty;
        if (!has_bit(p->seen, id))
            logits[id] -= p->s.presence_penalty;
        set_bit(p->seen, id);
    }
    for (size_t i = p->from; i < n_before; i++)
        if (before[i] < p->n_vocab)
            p->seen[before[i] / 64] = 0;
}

/* --- a heap of ids by their logits --- */

struct heap {
    uint32_t *id;
    size_t n;
    const float *logits;
    bool least_first;
};

/* If logits are equal, the lower id is the greater one, so the order is total. */
static bool is_before(const struct heap *h, uint32_t a, uint32_t b)
{
    float x = h->logits[a], y = h->logits[b];
    bool greater = x > y || (x == y && a < b);

    return greater != h->least_first;
}

/* Let the id at i sink to its place. */
static void sink(struct heap *h, size_t i)
{
    uint32_t moved = h->id[i];

    for (;;) {
        size_t child = 2 * i + 1;

        if (child >= h->n)
            break;
        if (child + 1 < h->n && is_before(h, h->id[child + 1], h->id[child]))
            child++;
        if (!is_before(h, h->id[child], moved))
            break;
        h->id[i] = h->id[child];
        i = child;
    }
    h->id[i] = moved;
}

static void make_heap(struct heap *h, bool least_first)
{
    h->least_first = least_first;
    for (size_t i = h->n / 2; i-- > 0;)
        sink(h, i);
}

/* Remove the first id from the heap and store it after the others. */
static uint32_t pop(struct heap *h)
{
    uint32_t first = h->id[0];

    h->id[0] = h->id[--h->n];
    h->id[h->n] = first;
    sink(h, 0);
    return first;
}

/* --- candidates --- */

/* Collect the k greatest that are not below the floor, in no order. */
static void take_greatest(struct heap *h, size_t k, uint32_t n_vocab, float floor)
{
    for (uint32_t id = 0; id < n_vocab; id++) {
        if (!(h->logits[id] >= floor))
            continue;
        if (h->n < k) {
            h->id[h->n++] = id;
            if (h->n == k && k < n_vocab)
                make_heap(h, true);
        } else if (is_before(h, h->id[0], id)) {
            h->id[0] = id;
            sink(h, 0);
        }
    }
}

/* Turn logits into shares, where the greatest has 1.  Returns their sum. */
static double to_shares(const struct heap *h, float *logits, float top, float temp)
{
    double sum = 0;

    for (size_t i = 0; i < h->n; i++) {
        float *x = &logits[h->id[i]];

        *x = expf((*x - top) / temp);
        sum += *x;
    }
    return sum;
}

/*
 * Select the smallest set of candidates whose shares add up to top_p of sum, without those
 * below min_p.  They are left after the heap in ascending order.  Returns the end index.
 * Candidates too small to matter to top_p are dropped before sorting.
 */
static size_t keep(struct heap *h, float top_p, float min_p, double sum)
{
    double wanted = top_p * sum;
    double floor = (sum - wanted) / (double)h->n;
    size_t n = 0;

    if (floor < min_p)
        floor = min_p;
    if (!(floor <= 1)) /* the share of the greatest */
        floor = 1;
    for (size_t i = 0; i < h->n; i++)
        if (h->logits[h->id[i]] >= floor)
            h->id[n++] = h->id[i];
    h->n = 0;
    if (top_p >= 1)
        return n;
    h->n = n;
    make_heap(h, false);
    sum = 0;
    do
        sum += h->logits[pop(h)];
    while (h->n > 0 && sum < wanted);
    return n;
}

/* Draw one of the candidates that keep() left in id[0 .. n), by their shares. */
static uint32_t draw(const uint32_t *id, size_t n, const float *shares, uint64_t key)
{
    double least = INFINITY;
    uint32_t first = id[0];

    for (size_t i = 0; i < n; i++) {
        double share = shares[id[i]], time;
        double u = ((double)(random_at(key, id[i]) >> 12) + 0.5) * 0x1p-52;

        if (1 - u > least * share) /* -log(u) is larger still, so most need no logarithm */
            continue;
        time = -log(u) / share;
        if (time < least || (time == least && id[i] < first)) {
            least = time;
            first = id[i];
        }
    }
    return first;
}

uint32_t mw_sampler_next(struct mw_sampler *p, float *logits, const uint32_t *before,
                         size_t n_before)
{
    size_t k =
        p->s.top_k > 0 && (uint32_t)p->s.top_k < p->n_vocab ? (size_t)p->s.top_k : p->n_vocab;
    struct heap h = { .id = p->heap, .logits = logits };
    float temp = fminf(p->s.temp, FLT_MAX), floor;
    uint32_t best;
    size_t end;

    for (size_t w = 0; w < words_of(p->n_vocab); w++)
        for (uint64_t bits = p->never[w]; bits != 0; bits &= bits - 1)
            logits[w * 64 + (size_t)__builtin_ctzll(bits)] = -INFINITY;
    p->failure = (struct err)ERR_INIT;
    if (p->constraint != NULL)
        constraint_mask(p->constraint, before, n_before, logits, p->n_vocab, &p->failure);
    for (uint32_t i = 0; i < p->n_bias; i++)
        if (p->bias[i].id < p->n_vocab)
            logits[p->bias[i].id] += p->bias[i].bias;
    penalise(p, logits, before, n_before);
    penalise_answer(p, logits, before, n_before);
    best = greatest_of(logits, p->n_vocab);
    if (!(p->s.temp > 0) || !(fabsf(logits[best]) < INFINITY))
        return best;
    floor = fmaxf(logits[best] - temp * REACH, -FLT_MAX); /* above suppressed ids */
    take_greatest(&h, k, p->n_vocab, floor);
    end = keep(&h, p->s.top_p, p->s.min_p, to_shares(&h, logits, logits[best], temp));
    return draw(p->heap + h.n, end - h.n, logits, random_at(p->key, n_before));
}
