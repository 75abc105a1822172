/*
 * expert_sim [RECORDING…]: compare policies for the cache of experts on traces of routers.
 *
 * A trace is a list of tokens, each with the experts that it chose in every layer.  Recordings
 * are files of --telemetry.  Without any, the traces are generated (30 layers, 128 experts, 8
 * of them per token, 600 tokens):
 *
 *   uniform  every expert is equally likely
 *   zipf     expert i of a layer, in an order of its own, with a weight of 1 / i
 *   topics   zipf, and every 150 tokens another order
 *   sticky   zipf; each expert of the token before stays with a probability of 0.5
 *
 * Prints the share of chosen experts that were in memory, for caches of 1/16 to 3/4 of all
 * experts.  The first sixth of a trace fills the cache and is not counted.
 *
 *   lru      the expert that was not used for the longest time goes
 *   lfu      the expert that was used least often since the start goes
 *   static   the experts that the whole trace uses most often are in memory: needs the future
 *   memwall  engine/stream/expert_policy.c
 *   belady   the expert that is used again last goes: the optimum, needs the future
 *
 *     expert_sim --start RECORDING…
 *
 * shows what it brings to know at the start what earlier texts used: for each recording, the hits
 * in its first 64 tokens with an empty cache, with one that has the favourites of all the others
 * (never its own), and the optimum from an empty and from a perfect cache.  Without recordings,
 * pieces of generated traces are texts: of one order of popularity (zipf), and each of another
 * (topics), where there is nothing to learn.
 *
 * All policies see the same requests: the experts of a layer together, none of which may go.
 */
#include "config.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/stream/expert_policy.h"

enum { LAYERS = 30, EXPERTS = 128, USED = 8, TOKENS = 600, EXPERTS_MAX = 1024 };

struct trace {
    uint32_t n_layer, n_expert, n_used, n_token;
    uint16_t *id; /* [n_token][n_layer][n_used] */
};

static void *take(size_t n, size_t size)
{
    void *p = calloc(n > 0 ? n : 1, size);

    if (p == NULL) {
        fputs("expert_sim: out of memory\n", stderr);
        exit(1);
    }
    return p;
}

static uint16_t *ids_at(const struct trace *t, uint32_t token, uint32_t layer)
{
    return t->id + ((size_t)token * t->n_layer + layer) * t->n_used;
}

/* ---- generated traces ---- */

static uint64_t seed = 1;

static double chance(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (double)(seed >> 11) / 9007199254740992.0;
}

enum kind { UNIFORM, ZIPF, TOPICS, STICKY, KINDS };
static const char *const kind_names[KINDS] = { "uniform", "zipf", "topics", "sticky" };

static void shuffle(uint16_t *order)
{
    for (uint32_t i = 0; i < EXPERTS; i++)
        order[i] = (uint16_t)i;
    for (uint32_t i = EXPERTS - 1; i > 0; i--) {
        uint32_t j = (uint32_t)(chance() * (i + 1));
        uint16_t swap = order[i];

        order[i] = order[j];
        order[j] = swap;
    }
}

static uint16_t draw(enum kind kind, const uint16_t *order)
{
    static double sum[EXPERTS];
    double at;
    uint32_t i = 0;

    if (kind == UNIFORM)
        return (uint16_t)(chance() * EXPERTS);
    for (; sum[EXPERTS - 1] <= 0 && i < EXPERTS; i++)
        sum[i] = (i > 0 ? sum[i - 1] : 0) + 1.0 / (i + 1);
    at = chance() * sum[EXPERTS - 1];
    for (i = 0; sum[i] < at; i++)
        ;
    return order[i];
}

static bool has(const uint16_t *ids, uint32_t n, uint16_t id)
{
    for (uint32_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

static struct trace generate(enum kind kind)
{
    struct trace t = { LAYERS, EXPERTS, USED, TOKENS, NULL };
    static uint16_t order[LAYERS][EXPERTS];

    t.id = take((size_t)TOKENS * LAYERS * USED, sizeof *t.id);
    for (uint32_t k = 0; k < TOKENS; k++)
        for (uint32_t l = 0; l < LAYERS; l++) {
            uint16_t *ids = ids_at(&t, k, l);
            uint32_t n = 0;

            if (k == 0 || (kind == TOPICS && k % 150 == 0))
                shuffle(order[l]);
            for (uint32_t i = 0; kind == STICKY && k > 0 && i < USED; i++)
                if (chance() < 0.5)
                    ids[n++] = ids_at(&t, k - 1, l)[i];
            while (n < USED) {
                uint16_t id = draw(kind, order[l]);

                if (!has(ids, n, id))
                    ids[n++] = id;
            }
        }
    return t;
}

/* ---- recordings ---- */

/* Append the token of a line; false: it has another shape than those before. */
static bool add_token(struct trace *t, const char *text)
{
    uint32_t n_layer = 0, n = 0;
    uint16_t *ids;

    for (const char *p = text; *p != '"' && *p != '\0'; p++)
        if (*p == '/')
            n_layer++;
    for (const char *p = text; *p != '/' && *p != '\0'; p++)
        n += *p == ' ';
    if (t->n_token == 0) {
        t->n_layer = n_layer;
        t->n_used = n + 1;
    }
    if (n_layer == 0 || t->n_layer != n_layer || t->n_used != n + 1)
        return false;
    t->id = realloc(t->id, (size_t)(t->n_token + 1) * n_layer * t->n_used * sizeof *t->id);
    if (t->id == NULL)
        exit(1);
    ids = ids_at(t, t->n_token, 0);
    for (n = 0; n < n_layer * t->n_used; n++) {
        char *end;
        unsigned long id = strtoul(text, &end, 10);

        if (end == text || id >= EXPERTS_MAX)
            return false;
        ids[n] = (uint16_t)id;
        t->n_expert = id >= t->n_expert ? (uint32_t)id + 1 : t->n_expert;
        text = end + (*end == ' ' || *end == '/');
    }
    t->n_token++;
    return true;
}

static bool read_trace(struct trace *t, const char *path)
{
    static char line[1 << 20];
    static const char key[] = "\"experts\":\"";
    FILE *f = fopen(path, "re");

    *t = (struct trace){ 0 };
    if (f == NULL)
        return false;
    while (fgets(line, sizeof line, f) != NULL) {
        const char *at = strstr(line, "\"event\":\"token\"") != NULL ? strstr(line, key) : NULL;

        if (at != NULL && !add_token(t, at + sizeof key - 1))
            break;
    }
    fclose(f);
    return t->n_token > 1;
}

/* ---- policies ---- */

enum rule { LRU, LFU, STATIC, MEMWALL, BELADY, RULES };
static const char *const rule_names[RULES] = { "lru", "lfu", "static", "memwall", "belady" };

struct cache {
    const struct trace *trace;
    const uint8_t *seed; /* of the policy, whose favourites are in memory; NULL: an empty cache */
    bool begins_perfect; /* with the experts that are used first */
    enum rule rule;
    uint32_t n_slot, n_held, now;            /* now: token * n_layer + layer */
    uint32_t *slots;                         /* layer * n_expert + expert */
    bool *is_held;                           /* [n_layer * n_expert] */
    uint32_t *last, *uses, *all_uses, *next; /* of each */
    struct expert_policy policy;
};

/* The moment when the expert is used again. */
static uint32_t next_use(const struct cache *c, uint32_t which)
{
    uint32_t layer = which / c->trace->n_expert, from = c->now / c->trace->n_layer;

    for (uint32_t k = from; k < c->trace->n_token; k++)
        if (k * c->trace->n_layer + layer > c->now &&
            has(ids_at(c->trace, k, layer), c->trace->n_used,
                (uint16_t)(which % c->trace->n_expert)))
            return k * c->trace->n_layer + layer;
    return UINT32_MAX;
}

/* The expert with the largest badness goes. */
static double badness(struct cache *c, uint32_t which)
{
    switch (c->rule) {
    case LRU: return -(double)c->last[which];
    case LFU: return -(double)c->uses[which] - (double)c->last[which] * 1e-9;
    case STATIC: return -(double)c->all_uses[which];
    case MEMWALL:
        return (double)expert_policy_wait(&c->policy, which / c->trace->n_expert,
                                          which % c->trace->n_expert);
    case BELADY:
        if (c->next[which] <= c->now)
            c->next[which] = next_use(c, which);
        return c->next[which];
    case RULES: break;
    }
    return 0;
}

static void insert(struct cache *c, uint32_t which)
{
    uint32_t layer = c->now % c->trace->n_layer, token = c->now / c->trace->n_layer;
    uint32_t victim = UINT32_MAX;
    double worst = 0;

    c->is_held[which] = true;
    if (c->n_held < c->n_slot) {
        c->slots[c->n_held++] = which;
        return;
    }
    for (uint32_t i = 0; i < c->n_slot; i++) {
        uint32_t w = c->slots[i];
        double b;

        if (w / c->trace->n_expert == layer &&
            has(ids_at(c->trace, token, layer), c->trace->n_used,
                (uint16_t)(w % c->trace->n_expert)))
            continue;
        b = badness(c, w);
        if (victim == UINT32_MAX || b > worst) {
            victim = i;
            worst = b;
        }
    }
    c->is_held[c->slots[victim]] = false;
    c->slots[victim] = which;
}

static void open_policy(struct cache *c)
{
    uint32_t *counts = take(2 * (size_t)c->trace->n_layer, sizeof *counts);
    struct err e = ERR_INIT;

    for (uint32_t l = 0; l < c->trace->n_layer; l++) {
        counts[l] = c->trace->n_expert;
        counts[c->trace->n_layer + l] = c->trace->n_used;
    }
    if (expert_policy_open(&c->policy, counts, counts + c->trace->n_layer, c->trace->n_layer,
                           &e) != 0)
        exit(1);
    free(counts);
}

/* Put the n_slot experts with the least badness into the cache. */
static void fill(struct cache *c)
{
    uint32_t n = c->trace->n_layer * c->trace->n_expert;

    while (c->n_held < c->n_slot && c->n_held < n) {
        uint32_t best = UINT32_MAX;
        double least = 0;

        for (uint32_t i = 0; i < n; i++) {
            double b = c->is_held[i] ? 0 : c->seed != NULL ? -(double)c->seed[i] : badness(c, i);

            if (!c->is_held[i] && (best == UINT32_MAX || b < least)) {
                best = i;
                least = b;
            }
        }
        c->is_held[best] = true;
        c->slots[c->n_held++] = best;
    }
}

/* How a simulation begins, and which of its tokens count. */
struct begin {
    const uint8_t *seed; /* or NULL */
    bool is_perfect;
    uint32_t from, to; /* tokens that count */
};

/* Returns the share of hits. */
static double simulate(const struct trace *t, enum rule rule, uint32_t n_slot,
                       const struct begin *begin)
{
    uint32_t n = t->n_layer * t->n_expert;
    struct cache c = { .trace = t, .rule = rule, .n_slot = n_slot, .seed = begin->seed };
    uint64_t hits = 0, all = 0;

    c.slots = take(n_slot, sizeof *c.slots);
    c.is_held = take(n, sizeof *c.is_held);
    c.last = take(n, sizeof *c.last);
    c.uses = take(n, sizeof *c.uses);
    c.all_uses = take(n, sizeof *c.all_uses);
    c.next = take(n, sizeof *c.next);
    open_policy(&c);
    for (size_t i = 0; i < (size_t)t->n_token * t->n_layer * t->n_used; i++)
        c.all_uses[i / t->n_used % t->n_layer * t->n_expert + t->id[i]]++;
    if (begin->seed != NULL)
        expert_policy_seed(&c.policy, begin->seed);
    if (begin->seed != NULL || begin->is_perfect)
        fill(&c);
    for (c.now = 0; c.now < begin->to * t->n_layer; c.now++) {
        uint32_t layer = c.now % t->n_layer, token = c.now / t->n_layer;
        const uint16_t *ids = ids_at(t, token, layer);

        expert_policy_layer(&c.policy, layer, 1);
        for (uint32_t i = 0; i < t->n_used; i++)
            expert_policy_use(&c.policy, ids[i], 1);
        for (uint32_t i = 0; i < t->n_used; i++) {
            uint32_t which = layer * t->n_expert + ids[i];

            c.last[which] = c.now + 1;
            c.uses[which]++;
            all += token >= begin->from;
            hits += token >= begin->from && c.is_held[which];
        }
        for (uint32_t i = 0; i < t->n_used; i++)
            if (!c.is_held[layer * t->n_expert + ids[i]])
                insert(&c, layer * t->n_expert + ids[i]);
    }
    expert_policy_close(&c.policy);
    free(c.slots);
    free(c.is_held);
    free(c.last);
    free(c.uses);
    free(c.all_uses);
    free(c.next);
    return (double)hits / (double)all;
}

static void compare(const char *name, const struct trace *t)
{
    static const uint32_t sixteenths[] = { 1, 2, 4, 8, 12 };

    printf("%s: %u tokens, %u layers, %u experts, %u used\n  %-9s", name, t->n_token,
           t->n_layer, t->n_expert, t->n_used, "cached");
    for (int r = 0; r < RULES; r++)
        printf("%9s", rule_names[r]);
    putchar('\n');
    for (size_t i = 0; i < sizeof sixteenths / sizeof sixteenths[0]; i++) {
        uint32_t n_slot = t->n_layer * t->n_expert * sixteenths[i] / 16;

        if (n_slot < t->n_used)
            continue;
        printf("  %6.1f %% ", 100.0 * sixteenths[i] / 16);
        for (int r = 0; r < RULES; r++)
            printf("%7.1f %%", 100 * simulate(t, (enum rule)r, n_slot,
                                              &(struct begin){ .from = t->n_token / 6,
                                                               .to = t->n_token }));
        putchar('\n');
        fflush(stdout);
    }
}

/* ---- starts ---- */

enum { FIRST = 64, TEXTS_MAX = 32 };

/* Returns the experts that all texts but one use, as the program keeps them. */
static uint8_t *learn(const struct trace *texts, size_t n_text, size_t but)
{
    const struct trace *t = &texts[but];
    uint8_t *uses = take((size_t)t->n_layer * t->n_expert, 1);
    struct cache c = { .trace = t };

    open_policy(&c);
    for (size_t i = 0; i < n_text; i++)
        for (uint32_t k = 0; i != but && k < texts[i].n_token; k++)
            for (uint32_t l = 0; l < t->n_layer; l++) {
                expert_policy_layer(&c.policy, l, 1);
                for (uint32_t u = 0; u < t->n_used; u++)
                    expert_policy_use(&c.policy, ids_at(&texts[i], k, l)[u], 1);
            }
    expert_policy_uses(&c.policy, uses);
    expert_policy_close(&c.policy);
    return uses;
}

static void compare_starts(const char *name, struct trace *texts, size_t n)
{
    static const uint32_t sixteenths[] = { 1, 2, 4, 8 };
    uint32_t n_expert = 0;

    for (size_t i = 0; i < n; i++)
        n_expert = texts[i].n_expert > n_expert ? texts[i].n_expert : n_expert;
    for (size_t i = 0; i < n; i++)
        texts[i].n_expert = n_expert;
    printf("%s: %zu texts, the first %d tokens of each\n  cached      cold  favourites   "
           "belady  from a perfect start  texts that gain\n",
           name, n, FIRST);
    for (size_t k = 0; k < sizeof sixteenths / sizeof sixteenths[0]; k++) {
        double cold = 0, seeded = 0, belady = 0, perfect = 0;
        uint32_t n_slot = texts[0].n_layer * n_expert * sixteenths[k] / 16, n_gain = 0;

        if (n_slot <= texts[0].n_used)
            continue;
        for (size_t i = 0; i < n; i++) {
            const struct trace *t = &texts[i];
            uint8_t *uses = learn(texts, n, i);
            struct begin b = { .to = t->n_token < FIRST ? t->n_token : FIRST };
            double without = simulate(t, MEMWALL, n_slot, &b), with;

            belady += simulate(t, BELADY, n_slot, &b) / (double)n;
            b.is_perfect = true;
            perfect += simulate(t, BELADY, n_slot, &b) / (double)n;
            b.is_perfect = false;
            b.seed = uses;
            with = simulate(t, MEMWALL, n_slot, &b);
            cold += without / (double)n;
            seeded += with / (double)n;
            n_gain += with > without;
            free(uses);
        }
        printf("  %5.1f %%  %5.1f %%     %5.1f %%  %5.1f %%               %5.1f %%  %u of %zu\n",
               100.0 * sixteenths[k] / 16, 100 * cold, 100 * seeded, 100 * belady, 100 * perfect,
               n_gain, n);
        fflush(stdout);
    }
}

/* Pieces of 150 tokens of a trace. */
static void compare_pieces(enum kind kind)
{
    struct trace whole = generate(kind), texts[TOKENS / 150];

    for (size_t i = 0; i < TOKENS / 150; i++) {
        texts[i] = whole;
        texts[i].n_token = 150;
        texts[i].id = ids_at(&whole, (uint32_t)i * 150, 0);
    }
    compare_starts(kind_names[kind], texts, TOKENS / 150);
    free(whole.id);
}

static int starts(int n, char **paths)
{
    static struct trace texts[TEXTS_MAX];

    if (n == 0) {
        compare_pieces(ZIPF);
        compare_pieces(TOPICS);
        return 0;
    }
    for (int i = 0; i < n && i < TEXTS_MAX; i++)
        if (!read_trace(&texts[i], paths[i]) || texts[i].n_layer != texts[0].n_layer ||
            texts[i].n_used != texts[0].n_used) {
            fprintf(stderr, "expert_sim: \"%s\" has no tokens of the same model\n", paths[i]);
            return 1;
        }
    compare_starts("recordings", texts, (size_t)(n < TEXTS_MAX ? n : TEXTS_MAX));
    for (int i = 0; i < n && i < TEXTS_MAX; i++)
        free(texts[i].id);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--start") == 0)
        return starts(argc - 2, argv + 2);
    for (int i = 1; i < argc; i++) {
        struct trace t;

        if (!read_trace(&t, argv[i])) {
            fprintf(stderr, "expert_sim: \"%s\" has no tokens with experts\n", argv[i]);
            return 1;
        }
        compare(argv[i], &t);
        free(t.id);
    }
    for (int k = 0; argc == 1 && k < KINDS; k++) {
        struct trace t = generate((enum kind)k);

        compare(kind_names[k], &t);
        free(t.id);
    }
    return 0;
}
