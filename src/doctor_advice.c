/* See doctor_advice.h. */
#include "config.h"

#include "src/doctor_advice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/text/receipt.h"

#define MUCH       0.1  /* share of time that tasks waited, or that the host took */
#define BUSY       0.25 /* share of time that tasks waited for a processor */
#define SLOW_READ  2e-3 /* seconds of a small read */
#define SAME       0.95 /* rates that differ by less are the same */
#define MUCH_LESS  0.5  /* of another rate */
#define GAIN       1.05 /* smaller gains are not mentioned */
#define FASTER     2.0  /* a disk or memory to compare with */
#define EVERYTHING ((uint64_t)1 << 50) /* a budget for all weights */

void advice_note(struct advice_facts *a, const char *section, const struct mw_fact *f)
{
    if (f->why_not != NULL || f->unit == MW_UNIT_TEXT || a->n == ADVICE_FACTS)
        return;
    a->fact[a->n].section = section;
    a->fact[a->n].key = f->key;
    a->fact[a->n].value = f->value;
    a->fact[a->n].block_bytes = f->block_bytes;
    a->fact[a->n++].depth = f->depth;
}

/* The value of a figure, the largest one of several; 0: unknown. */
static double value_of(const struct advice_facts *a, const char *section, const char *key)
{
    double value = 0;

    for (int i = 0; i < a->n; i++)
        if (strcmp(a->fact[i].section, section) == 0 && strcmp(a->fact[i].key, key) == 0 &&
            a->fact[i].value > value)
            value = a->fact[i].value;
    return value;
}

double advice_memory_rate(const struct advice_facts *a)
{
    double best = 0;

    for (int i = 0; i < a->n; i++)
        if (strcmp(a->fact[i].section, "memory") == 0 &&
            strncmp(a->fact[i].key, "read_", 5) == 0 && a->fact[i].value > best)
            best = a->fact[i].value;
    return best;
}

double advice_disk_rate(const struct advice_facts *a)
{
    double direct = value_of(a, "disk", "direct");

    return direct > 0 ? direct : value_of(a, "disk", "buffered_bytes_s");
}

/* --- the machine --- */

struct say {
    advice_fn *fn;
    void *ctx;
    char text[ADVICE_TEXT];
};

static void advise_on_memory(const struct advice_facts *a, struct say *s)
{
    double one = value_of(a, "memory", "read_1"), best = advice_memory_rate(a), more;
    char x[24], y[24];

    more = value_of(a, "memory", "read_2");
    if (more > 0 && one >= SAME * best && value_of(a, "arithmetic", "pressure") < BUSY) {
        snprintf(s->text, sizeof s->text,
                 "One thread reads memory at %s, as fast as several: more threads do not make "
                 "answers faster, only prompts.",
                 units_rate(x, sizeof x, one));
        s->fn(s->ctx, "threads", s->text);
    }
    if (value_of(a, "memory", "pressure") > MUCH) {
        snprintf(s->text, sizeof s->text,
                 "Tasks waited for memory in %.0f %% of the last ten seconds: other programs "
                 "need memory, too. End some, or give memwall a smaller --memory.",
                 100 * value_of(a, "memory", "pressure"));
        s->fn(s->ctx, "pressure", s->text);
    }
    if (value_of(a, "memory", "cgroup_limit") > 0 &&
        value_of(a, "memory", "cgroup_limit") < value_of(a, "memory", "total")) {
        snprintf(s->text, sizeof s->text,
                 "The control group allows %s of the %s of this machine; budgets are chosen "
                 "below it.",
                 units_size(x, sizeof x, (uint64_t)value_of(a, "memory", "cgroup_limit")),
                 units_size(y, sizeof y, (uint64_t)value_of(a, "memory", "total")));
        s->fn(s->ctx, "group", s->text);
    }
}

static void advise_on_disk(const struct advice_facts *a, struct say *s)
{
    double direct = value_of(a, "disk", "direct");
    double buffered = value_of(a, "disk", "buffered_bytes_s");
    double mapped = value_of(a, "disk", "mapped_bytes_s");
    char x[24], y[24];

    if (direct > 0 && buffered * MUCH_LESS > direct) {
        snprintf(s->text, sizeof s->text,
                 "Reads through the page cache reach %s, direct reads %s: --io buffered is "
                 "faster here.",
                 units_rate(x, sizeof x, buffered), units_rate(y, sizeof y, direct));
        s->fn(s->ctx, "buffered", s->text);
    }
    if (mapped > 0 && mapped < MUCH_LESS * direct) {
        snprintf(
            s->text, sizeof s->text,
            "Mapped pages are read at %s, direct reads reach %s: a model that does not fit "
            "runs faster with direct reads than where its file is mapped.",
            units_rate(x, sizeof x, mapped), units_rate(y, sizeof y, direct));
        s->fn(s->ctx, "mapped", s->text);
    }
    if (value_of(a, "disk", "small_read_s") > SLOW_READ) {
        snprintf(
            s->text, sizeof s->text,
            "One small read takes %.2g ms. Models with tables of embeddings for each layer "
            "(Gemma 4 E2B and E4B) wait for one per token until the tables are in memory.",
            1e3 * value_of(a, "disk", "small_read_s"));
        s->fn(s->ctx, "small_reads", s->text);
    }
}

void advice_machine(const struct advice_facts *a, advice_fn *fn, void *ctx)
{
    struct say s = { .fn = fn, .ctx = ctx };

    advise_on_disk(a, &s);
    advise_on_memory(a, &s);
    if (value_of(a, "arithmetic", "pressure") > BUSY) {
        snprintf(s.text, sizeof s.text,
                 "Tasks waited for a processor in %.0f %% of the last ten seconds, so these "
                 "rates are too low. Measure again when the machine is idle.",
                 100 * value_of(a, "arithmetic", "pressure"));
        fn(ctx, "busy", s.text);
    }
    if (value_of(a, "arithmetic", "steal") > MUCH) {
        snprintf(s.text, sizeof s.text,
                 "The host of this virtual machine took %.0f %% of the processors' time since "
                 "the start: speeds will vary.",
                 100 * value_of(a, "arithmetic", "steal"));
        fn(ctx, "steal", s.text);
    }
}

/* --- a model --- */

#define CHANGES 6

struct change {
    const char *key;
    char what[160];
    double tps;
};

struct changes {
    struct mw_model *m;
    struct mw_options o; /* with the budget of the plan */
    double tps;          /* now */
    struct change change[CHANGES];
    int n;
};

static double rate_with(struct changes *c, const struct mw_options *o,
                        const struct mw_limits *limits, struct plan *p)
{
    struct mw_limits now;
    struct err ignored = ERR_INIT;
    int rc;

    mw_model_limits(c->m, &now);
    if (limits != NULL)
        mw_model_set_limits(c->m, limits);
    rc = mw_plan(c->m, o, p, &ignored);
    if (limits != NULL)
        mw_model_set_limits(c->m, &now);
    return rc == 0 ? p->decode_tps : 0;
}

static struct change *add(struct changes *c, const char *key, double tps)
{
    if (tps < GAIN * c->tps || c->n == CHANGES)
        return NULL;
    c->change[c->n] = (struct change){ .key = key, .tps = tps };
    return &c->change[c->n++];
}

/* The budget that keeps all weights in memory, or the largest of this machine. */
static void try_budget(struct changes *c)
{
    struct mw_options o = c->o;
    struct mw_machine machine;
    struct change *change;
    struct plan p;
    char size[16];
    double tps;

    mw_machine_read(&machine);
    o.memory_bytes = EVERYTHING;
    if (!(rate_with(c, &o, NULL, &p) > 0))
        return;
    o.memory_bytes = p.sum_bytes;
    if (o.memory_bytes > machine.budget_bytes)
        o.memory_bytes = machine.budget_bytes;
    if (o.memory_bytes <= c->o.memory_bytes)
        return;
    tps = rate_with(c, &o, NULL, &p);
    change = add(c, "memory", tps);
    if (change != NULL)
        snprintf(change->what, sizeof change->what, "--memory %lluM (%s, %s)",
                 (unsigned long long)((o.memory_bytes + MIB - 1) / MIB),
                 units_size(size, sizeof size, o.memory_bytes),
                 p.streamed_share == 0 ? "all weights in memory" : "all that is free now");
}

static void try_kv(struct changes *c)
{
    struct mw_options o = c->o;
    struct change *change;
    struct plan p;

    if (o.kv_k == MW_KV_Q8_0 || o.kv_k == MW_KV_Q4_0)
        return;
    o.kv_k = o.kv_v = MW_KV_Q8_0;
    change = add(c, "kv", rate_with(c, &o, NULL, &p));
    if (change != NULL)
        snprintf(change->what, sizeof change->what, "--kv q8_0");
}

static void try_ctx(struct changes *c)
{
    struct mw_options o = c->o;
    struct change *change;
    struct plan p;

    if (o.n_ctx <= 4096)
        return;
    o.n_ctx = 4096;
    change = add(c, "ctx", rate_with(c, &o, NULL, &p));
    if (change != NULL)
        snprintf(change->what, sizeof change->what, "--ctx 4096");
}

static void try_hardware(struct changes *c)
{
    struct mw_limits l;
    struct change *change;
    struct plan p;

    mw_model_limits(c->m, &l);
    l.disk_bytes_s *= FASTER;
    l.lookup_s /= FASTER;
    change = add(c, "disk", rate_with(c, &c->o, &l, &p));
    if (change != NULL)
        snprintf(change->what, sizeof change->what, "A disk that is twice as fast");
    mw_model_limits(c->m, &l);
    l.memory_bytes_s *= FASTER;
    change = add(c, "memory_rate", rate_with(c, &c->o, &l, &p));
    if (change != NULL)
        snprintf(change->what, sizeof change->what, "Memory that is read twice as fast");
}

static int by_gain(const void *a, const void *b)
{
    const struct change *x = a, *y = b;

    return x->tps > y->tps ? -1 : x->tps < y->tps;
}

void advice_model(struct mw_model *m, const struct mw_options *o, const struct plan *plan,
                  advice_fn *fn, void *ctx)
{
    struct changes c = { .m = m, .o = *o, .tps = plan->decode_tps };
    char text[ADVICE_TEXT], rate[24], now[24];
    struct mw_limits l;

    mw_model_limits(m, &l);
    if (mw_limits_doubtful(&l))
        fn(ctx, "doubt",
           "These predictions are doubtful: the machine was busy. Measure again.");
    if (!(c.tps > 0))
        return;
    c.o.memory_bytes = plan->budget_bytes;
    c.o.n_ctx = plan->n_ctx;
    try_budget(&c);
    try_kv(&c);
    try_ctx(&c);
    try_hardware(&c);
    qsort(c.change, (size_t)c.n, sizeof c.change[0], by_gain);
    for (int i = 0; i < c.n; i++) {
        snprintf(text, sizeof text, "%s would give ~%s tokens per second instead of ~%s.",
                 c.change[i].what, receipt_rate(rate, sizeof rate, c.change[i].tps),
                 receipt_rate(now, sizeof now, c.tps));
        fn(ctx, c.change[i].key, text);
    }
}
