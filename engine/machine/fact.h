/*
 * fact.h - one figure of this machine for `memwall doctor`, read or measured.
 */
#ifndef MEMWALL_ENGINE_MACHINE_FACT_H
#define MEMWALL_ENGINE_MACHINE_FACT_H

#include <stdint.h>

enum mw_unit {
    MW_UNIT_TEXT,
    MW_UNIT_BYTES,
    MW_UNIT_RATE,  /* bytes per second */
    MW_UNIT_FLOPS, /* operations per second, on floats */
    MW_UNIT_OPS,   /* the same, on integers */
    MW_UNIT_COUNT,
    MW_UNIT_SHARE, /* 0 to 1 */
    MW_UNIT_SECONDS,
};

#define MW_FACT_TEXT 160

struct mw_fact {
    const char *key;   /* the name in JSON; a static text, as the next one */
    const char *label; /* for people */
    enum mw_unit unit;
    double value;
    char text[MW_FACT_TEXT];     /* of MW_UNIT_TEXT; else a remark, or "" */
    const char *why_not;         /* NULL if the fact is known, else a static reason */
    double spread;               /* of a measured rate; 0: none */
    uint32_t depth, block_bytes; /* of direct reads, for one cell of the table; 0: no cell */
};

/* Receives facts in the order in which they are printed. */
typedef void mw_fact_fn(void *ctx, const struct mw_fact *f);

#endif
