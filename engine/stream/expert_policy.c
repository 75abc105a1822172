#include "config.h"

#include "engine/stream/expert_policy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A token counts half after this many others. */
#define HALF_LIFE 256
/* The same for the share of the last few tokens, and the part of that share in the mean. */
#define HALF_LIFE_RECENT 4
#define PART_RECENT      0.3f
#define DECAYS           (sizeof((struct expert_policy *)0)->decay / sizeof(float))
/* Tokens of even use that every estimate begins with. */
#define PRIOR_TOKENS 16
/* Weights are scaled down before a float loses their differences. */
#define WEIGHT_MAX 1e9f

int expert_policy_open(struct expert_policy *p, const uint32_t *n_expert,
                       const uint32_t *n_used, uint32_t n_layer, struct err *e)
{
    *p = (struct expert_policy){ .n_layer = n_layer, .weight = 1, .n_next = 1 };
    p->first = malloc((n_layer + 1) * sizeof *p->first);
    p->tokens = calloc(n_layer + 1, sizeof *p->tokens);
    p->prior = calloc(n_layer + 1, sizeof *p->prior);
    if (p->first == NULL || p->tokens == NULL || p->prior == NULL)
        goto fail;
    p->first[0] = 0;
    for (uint32_t l = 0; l < n_layer; l++) {
        p->first[l + 1] = p->first[l] + n_expert[l];
        p->prior[l] = n_expert[l] > 0 ? (float)n_used[l] / (float)n_expert[l] : 0;
    }
    p->uses = calloc(p->first[n_layer] + 1, sizeof *p->uses);
    p->recent = calloc(p->first[n_layer] + 1, sizeof *p->recent);
    p->seen = calloc(p->first[n_layer] + 1, sizeof *p->seen);
    if (p->uses == NULL || p->recent == NULL || p->seen == NULL)
        goto fail;
    for (size_t i = 0; i < DECAYS; i++)
        p->decay[i] = exp2f(-(float)i / HALF_LIFE_RECENT);
    return 0;

fail:
    expert_policy_close(p);
    return err_memory(e, "the use of experts");
}

void expert_policy_close(struct expert_policy *p)
{
    free(p->first);
    free(p->uses);
    free(p->recent);
    free(p->seen);
    free(p->tokens);
    free(p->prior);
    *p = (struct expert_policy){ 0 };
}

uint64_t expert_policy_bytes(uint32_t n_expert_all, uint32_t n_layer)
{
    return (n_expert_all + 1) * (2 * sizeof(float) + sizeof(uint32_t)) +
           (n_layer + 1) * (2 * sizeof(float) + sizeof(uint32_t));
}

static void scale_down(struct expert_policy *p)
{
    for (uint32_t i = 0; i < p->first[p->n_layer]; i++)
        p->uses[i] /= p->weight;
    for (uint32_t l = 0; l < p->n_layer; l++)
        p->tokens[l] /= p->weight;
    p->weight = 1;
}

void expert_policy_expect(struct expert_policy *p, uint32_t n_token)
{
    p->n_next = n_token;
}

void expert_policy_layer(struct expert_policy *p, uint32_t layer, uint32_t n_token)
{
    if (layer <= p->layer) { /* a new pass */
        p->clock += n_token;
        p->weight *= exp2f((float)n_token / HALF_LIFE);
        if (p->weight > WEIGHT_MAX)
            scale_down(p);
    }
    p->layer = layer;
    p->n_token = n_token;
    p->tokens[layer] += p->weight * (float)n_token;
}

/* The share of the last few tokens that chose expert i. */
static float recent_share(const struct expert_policy *p, uint32_t i)
{
    uint32_t age = p->clock - p->seen[i];

    return age < DECAYS ? p->recent[i] * p->decay[age] : 0;
}

void expert_policy_use(struct expert_policy *p, uint32_t expert, uint32_t n)
{
    uint32_t i = p->first[p->layer] + expert;
    float part = p->n_token < DECAYS ? 1 - p->decay[p->n_token] : 1;

    p->uses[i] += p->weight * (float)n;
    p->recent[i] = recent_share(p, i) + part * (float)n / (float)p->n_token;
    p->seen[i] = p->clock;
}

/* The share of recent tokens that chose the expert. */
static float share(const struct expert_policy *p, uint32_t layer, uint32_t expert)
{
    float prior = p->weight * PRIOR_TOKENS;
    uint32_t i = p->first[layer] + expert;
    float slow = (p->uses[i] + prior * p->prior[layer]) / (p->tokens[layer] + prior);
    float all = (1 - PART_RECENT) * slow + PART_RECENT * recent_share(p, i);

    return all < 1 ? all : 1;
}

float expert_policy_wait(const struct expert_policy *p, uint32_t layer, uint32_t expert)
{
    uint32_t ahead = layer > p->layer ? layer - p->layer : layer + p->n_layer - p->layer;
    float distance = (float)ahead / (float)p->n_layer;
    float unused = 1 - share(p, layer, expert);
    /* Layers ahead are still those of this pass. */
    uint32_t n_token = layer > p->layer ? p->n_token : p->n_next;

    if (!(unused > 0))
        return distance;
    if (n_token > 1)
        unused = powf(unused, (float)n_token);
    return distance + unused / (1 - unused);
}

float expert_policy_heat(const struct expert_policy *p, uint32_t layer, uint32_t expert)
{
    return p->prior[layer] > 0 ? share(p, layer, expert) / p->prior[layer] : 0;
}

void expert_policy_seed(struct expert_policy *p, const uint8_t *use)
{
    for (uint32_t l = 0; l < p->n_layer; l++) {
        uint32_t from = p->first[l], n = p->first[l + 1] - from;
        float sum = 0, scale;

        for (uint32_t i = 0; i < n; i++)
            sum += use[from + i];
        if (!(sum > 0))
            continue;
        scale = p->weight * EXPERT_SEED_TOKENS * p->prior[l] * (float)n / sum;
        for (uint32_t i = 0; i < n; i++)
            p->uses[from + i] += scale * use[from + i];
        p->tokens[l] += p->weight * EXPERT_SEED_TOKENS;
    }
}

void expert_policy_uses(const struct expert_policy *p, uint8_t *use)
{
    for (uint32_t l = 0; l < p->n_layer; l++) {
        uint32_t from = p->first[l], n = p->first[l + 1] - from;
        float most = 0;

        for (uint32_t i = 0; i < n; i++)
            most = fmaxf(most, p->uses[from + i]);
        for (uint32_t i = 0; i < n; i++)
            use[from + i] = most > 0 ? (uint8_t)(255 * p->uses[from + i] / most + 0.5f) : 0;
    }
}

/* The part of rank `rank` of n that part i of the ranks covers, as a share of the rank. */
static double overlap(double rank, double n, int i)
{
    double from = fmax(rank, i * n / MW_USE_PARTS);
    double to = fmin(rank + 1, (i + 1) * n / MW_USE_PARTS);

    return fmax(to - from, 0);
}

/* How many experts of the layer are more popular than the i-th. */
static uint32_t rank_of(const float *uses, uint32_t n, uint32_t i)
{
    uint32_t rank = 0;

    for (uint32_t k = 0; k < n; k++)
        rank += uses[k] > uses[i] || (uses[k] >= uses[i] && k < i);
    return rank;
}

void expert_policy_observed(const struct expert_policy *p, struct mw_expert_use *out)
{
    double all = 0;

    *out = (struct mw_expert_use){ .n_token = p->clock };
    for (uint32_t l = 0; l < p->n_layer; l++) {
        uint32_t n = p->first[l + 1] - p->first[l];
        const float *uses = p->uses + p->first[l];

        for (uint32_t e = 0; e < n; e++) {
            uint32_t rank = rank_of(uses, n, e);

            all += (double)uses[e];
            for (int i = 0; i < MW_USE_PARTS; i++)
                out->share[i] += (double)uses[e] * overlap(rank, n, i);
        }
    }
    for (int i = 0; i < MW_USE_PARTS; i++)
        out->share[i] = all > 0 ? out->share[i] / all : 0;
}
