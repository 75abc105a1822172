/* See doctor_advice.h. */
#include "config.h"

#include "src/doctor/doctor_advice.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/numbers.h"

#define MUCH       0.1  /* share of time that tasks waited, or that the host took */
#define BUSY       0.25 /* share of time that tasks waited for a processor */
#define SLOW_READ  2e-3 /* seconds of a small read */
#define SAME       0.95 /* rates that differ by less are the same */
#define MUCH_LESS  0.5  /* of another rate */

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

void advice_model(struct mw_model *m, const struct mw_options *o, const struct plan *plan,
                  advice_fn *fn, void *ctx)
{
    struct mw_options planned = *o;
    struct mw_diagnosis d = { 0 };
    char text[ADVICE_TEXT], advice[MW_DIAGNOSIS_TEXT], rate[24];
    struct err ignored = ERR_INIT;

    planned.memory_bytes = plan->budget_bytes;
    planned.n_ctx = plan->n_ctx;
    if (mw_diagnose(m, &planned, NULL, &d, &ignored) != 0 || !(d.tps > 0))
        return;
    if (mw_diagnosis_advice(&d, "--", advice, sizeof advice)[0] == '\0') {
        mw_diagnosis_why_not(&d, advice, sizeof advice);
        snprintf(text, sizeof text, "%c%s.", toupper((unsigned char)advice[0]), advice + 1);
    } else if (d.to_tps > 0) {
        snprintf(text, sizeof text, "%s instead of ~%s.", advice,
                 numbers_rough(rate, sizeof rate, d.tps));
    } else {
        snprintf(text, sizeof text, "%c%s.", toupper((unsigned char)advice[0]), advice + 1);
    }
    fn(ctx, d.advice[0] != '\0' ? d.advice : d.is_doubtful ? "doubt" : "none", text);
}
