/*
 * value_rules.h - keys and fields of a model file that memwall does not compute with.
 *
 * A value that is read by hparams_gguf.c or hparams_config.c is honoured.  Of the others the
 * tables in gguf_keys.c and config_fields.c list those that would change the answers, each
 * with the values that change nothing.  Any other value is refused by name.
 */
#ifndef MEMWALL_ENGINE_FORMAT_VALUE_RULES_H
#define MEMWALL_ENGINE_FORMAT_VALUE_RULES_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"
#include "engine/format/catalogue.h"
#include "engine/format/hparams.h"
#include "engine/format/json.h"

#define ARCH_BIT(a) (1u << (a))
#define ARCH_ALL    (ARCH_BIT(ARCH_COUNT) - 1)
#define ARCH_GEMMAS (ARCH_BIT(ARCH_GEMMA2) | ARCH_BIT(ARCH_GEMMA3) | ARCH_BIT(ARCH_GEMMA4))

/* Values that change nothing where an architecture does not read the key. */
enum value_rule {
    RULE_ANY,   /* the key never changes the logits of a text */
    RULE_OFF,   /* 0, false, empty, "none", or an array of those */
    RULE_ONE,   /* 1; 0 stands for "not set" */
    RULE_ON,    /* true */
    RULE_SCALE, /* the factor of q.k that memwall uses anyway; 0 stands for "not set" */
    RULE_SAME,  /* the value of another key */
    RULE_ACT,   /* the name of the activation that memwall uses anyway */
};

struct value_rule_row {
    const char *name;
    unsigned read_by; /* ARCH_BIT of those that honour it */
    enum value_rule rule;
    const char *same_as; /* of RULE_SAME */
};

/* Whether a number follows a rule other than RULE_SAME. */
bool value_follows(enum value_rule rule, double v, const struct hparams *h);

/* Refuse a value: the sentence, without the place.  shown is the value in a few words. */
int value_refuse(const struct hparams *h, const char *shown, struct err *e);

/* Check all keys "ARCH.*" of c->gguf.  Returns 0, or -1 with *e naming the first that would
 * change the answers. */
int gguf_check_keys(const struct catalogue *c, struct err *e);

/* Write the keys "ARCH.*" that are in no table to buf, separated by commas, as many as fit.
 * Returns how many there are. */
uint32_t gguf_unknown_keys(const struct catalogue *c, char *buf, size_t n);

/* The same for the fields of a configuration; text is its part about the text model. */
int config_check_fields(const struct hparams *h, const struct json_node *text, struct err *e);

#endif
