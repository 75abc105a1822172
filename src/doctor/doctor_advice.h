/*
 * doctor_advice.h - what the measurements of `memwall doctor` mean for the user.
 *
 * A sentence is printed only if a figure of this run supports it, and it names the figure.
 */
#ifndef MEMWALL_SRC_DOCTOR_DOCTOR_ADVICE_H
#define MEMWALL_SRC_DOCTOR_DOCTOR_ADVICE_H

#include "engine/memwall.h"

#define ADVICE_FACTS 96
#define ADVICE_TEXT  320

/* The known figures of a run.  Begin with { 0 }. */
struct advice_facts {
    struct {
        const char *section, *key; /* static */
        double value;
        uint32_t block_bytes, depth; /* of a cell of the table of direct reads */
    } fact[ADVICE_FACTS];
    int n;
};

void advice_note(struct advice_facts *a, const char *section, const struct mw_fact *f);

/* The fastest measured rates of reading memory and disk, in bytes per second; 0: unknown. */
double advice_memory_rate(const struct advice_facts *a);
double advice_disk_rate(const struct advice_facts *a);

/* Receives a sentence; key names its kind: "threads", "buffered", "mapped", "pressure",
 * "busy", "steal", "small_reads", "group". */
typedef void advice_fn(void *ctx, const char *key, const char *text);

void advice_machine(const struct advice_facts *a, advice_fn *fn, void *ctx);

/* Call fn with the advice of mw_diagnose() for answers of m with this plan, or with the reason
 * why there is none.  key is the key of the advice, "doubt" or "none". */
void advice_model(struct mw_model *m, const struct mw_options *o, const struct plan *plan,
                  advice_fn *fn, void *ctx);

#endif
