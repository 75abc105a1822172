/*
 * The next id from a row of logits.
 *
 * A vocabulary has 262144 entries and a token a few milliseconds: one pass finds the
 * maximum, one counts how many lie near enough to matter, and only those are sorted.
 * Order: suppressed ids, repetition penalty, temperature, top-k, top-p, min-p, draw.
 */
#include "config.h"

#include <sys/random.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/session/model_open.h"

/* Candidates that are sorted at most when top_k is 0: behind them lies less than a
 * millionth of the probability of any text model's row. */
#define MAX_CANDIDATE 4096

struct candidate {
    uint32_t id;
    float logit;
};

struct mw_sampler {
    struct mw_sampling s;
    uint64_t state[2];
    uint32_t n_vocab;
    uint32_t n_never, *never; /* ids that may not be sampled */
    struct candidate *heap;   /* [MAX_CANDIDATE] */
};

uint64_t sampler_bytes(uint32_t n_vocab)
{
    (void)n_vocab;
    return sizeof(struct mw_sampler) + MAX_CANDIDATE * sizeof(struct candidate) + 64 * KIB;
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
    /* A recommendation without min-p means none. */
    if (g->has_temp && !g->has_min_p)
        s->min_p = 0;
}

/* xorshift128+ (Vigna 2014), seeded by splitmix64. */
static uint64_t splitmix(uint64_t *x)
{
    uint64_t z = *x += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static double draw(struct mw_sampler *p)
{
    uint64_t a = p->state[0], b = p->state[1];

    p->state[0] = b;
    a ^= a << 23;
    p->state[1] = a ^ b ^ a >> 17 ^ b >> 26;
    return (double)((p->state[1] + b) >> 11) * 0x1p-53;
}

static void seed(struct mw_sampler *p)
{
    uint64_t x = p->s.seed;

    if (x == 0 && getrandom(&x, sizeof x, 0) != (ssize_t)sizeof x)
        x = 1;
    p->state[0] = splitmix(&x);
    p->state[1] = splitmix(&x);
}

/* Ids that no text has: stated by the model, or without a usable token. */
static int collect_never(struct mw_sampler *p, const struct mw_model *m, struct err *e)
{
    const struct generation_hparams *g = &m->catalogue->generation;
    const struct tokenizer *t = m->tokenizer;
    uint32_t cap = g->n_suppress;

    for (uint32_t id = 0; t != NULL && id < p->n_vocab; id++)
        cap += tokenizer_is_unusable(t, id);
    p->never = calloc(cap + 1u, sizeof *p->never);
    if (p->never == NULL)
        return err_sys(e, "cannot allocate the list of %u suppressed tokens", cap);
    for (uint32_t i = 0; i < g->n_suppress; i++)
        if (g->suppress[i] < p->n_vocab)
            p->never[p->n_never++] = g->suppress[i];
    for (uint32_t id = 0; t != NULL && id < p->n_vocab; id++)
        if (tokenizer_is_unusable(t, id))
            p->never[p->n_never++] = id;
    return 0;
}

int mw_sampler_new(struct mw_sampler **out, const struct mw_model *m,
                   const struct mw_sampling *s, struct err *e)
{
    struct mw_sampler *p = calloc(1, sizeof *p);

    *out = NULL;
    if (p == NULL)
        return err_sys(e, "cannot allocate the sampler");
    p->s = *s;
    p->n_vocab = m->desc->n_vocab;
    seed(p);
    p->heap = calloc(MAX_CANDIDATE, sizeof *p->heap);
    if (p->heap == NULL || collect_never(p, m, e) != 0) {
        if (p->heap == NULL)
            err_sys(e, "cannot allocate the sampler");
        mw_sampler_free(p);
        return -1;
    }
    *out = p;
    return 0;
}

void mw_sampler_free(struct mw_sampler *p)
{
    if (p == NULL)
        return;
    free(p->heap);
    free(p->never);
    free(p);
}

/* Each id of the window once, however often it stands there: the penalty is not a power. */
static void penalise(const struct mw_sampler *p, float *logits, const uint32_t *before,
                     size_t n_before)
{
    size_t from = n_before > p->s.repeat_last ? n_before - p->s.repeat_last : 0;

    if (p->s.repeat_penalty == 1 || p->s.repeat_penalty <= 0)
        return;
    for (size_t i = from; i < n_before; i++) {
        size_t seen = from;

        while (seen < i && before[seen] != before[i])
            seen++;
        if (seen < i || before[i] >= p->n_vocab)
            continue;
        if (logits[before[i]] > 0)
            logits[before[i]] /= p->s.repeat_penalty;
        else
            logits[before[i]] *= p->s.repeat_penalty;
    }
}

static uint32_t greatest(const float *logits, uint32_t n)
{
    uint32_t best = 0;
    float top = logits[0];

    for (uint32_t i = 1; i < n; i++) {
        if (logits[i] > top) {
            top = logits[i];
            best = i;
        }
    }
    return best;
}

static bool is_less(const struct candidate *a, const struct candidate *b)
{
    /* At equal logits the lower id counts as the greater: the order is total. */
    return a->logit < b->logit || (a->logit == b->logit && a->id > b->id);
}

/* heap[0] is the least; let the entry at i sink to its place. */
static void sink(struct candidate *heap, size_t n, size_t i)
{
    for (;;) {
        size_t child = 2 * i + 1;
        struct candidate moved = heap[i];

        if (child >= n)
            return;
        if (child + 1 < n && is_less(&heap[child + 1], &heap[child]))
            child++;
        if (!is_less(&heap[child], &moved))
            return;
        heap[i] = heap[child];
        heap[child] = moved;
        i = child;
    }
}

static void make_heap(struct candidate *heap, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sink(heap, n, i);
}

/* The least goes behind the others, again and again: descending.  The library's qsort may
 * allocate. */
static void sort_heap(struct candidate *heap, size_t n)
{
    while (n > 1) {
        struct candidate least = heap[0];

        heap[0] = heap[--n];
        heap[n] = least;
        sink(heap, n, 0);
    }
}

/* The k greatest, sorted; returns how many. */
static size_t take_greatest(struct mw_sampler *p, const float *logits, size_t k)
{
    struct candidate *heap = p->heap;
    size_t n = 0;

    for (uint32_t id = 0; id < p->n_vocab; id++) {
        struct candidate c = { id, logits[id] };

        if (!(c.logit > -INFINITY))
            continue;
        if (n < k) {
            heap[n++] = c;
            if (n == k)
                make_heap(heap, n);
        } else if (is_less(&heap[0], &c)) {
            heap[0] = c;
            sink(heap, n, 0);
        }
    }
    if (n < k)
        make_heap(heap, n);
    sort_heap(heap, n);
    return n;
}

uint32_t mw_sampler_next(struct mw_sampler *p, float *logits, const uint32_t *before,
                         size_t n_before)
{
    size_t k =
        p->s.top_k > 0 && p->s.top_k < MAX_CANDIDATE ? (size_t)p->s.top_k : MAX_CANDIDATE;
    size_t n, kept = 0;
    double sum = 0, total = 0, at;

    for (uint32_t i = 0; i < p->n_never; i++)
        logits[p->never[i]] = -INFINITY;
    penalise(p, logits, before, n_before);
    if (p->s.temp <= 0)
        return greatest(logits, p->n_vocab);
    n = take_greatest(p, logits, k);
    if (n == 0)
        return greatest(logits, p->n_vocab);
    for (size_t i = n; i-- > 0;) {
        float share = expf((p->heap[i].logit - p->heap[0].logit) / p->s.temp);

        p->heap[i].logit = share; /* from here on a probability, not yet normed */
        total += share;
    }
    for (; kept < n; kept++) {
        double share = p->heap[kept].logit;

        if (kept > 0 && (sum >= p->s.top_p * total || share < p->s.min_p * p->heap[0].logit))
            break;
        sum += share;
    }
    at = draw(p) * sum;
    for (size_t i = 0; i < kept; i++) {
        at -= p->heap[i].logit;
        if (at < 0)
            return p->heap[i].id;
    }
    return p->heap[0].id;
}
