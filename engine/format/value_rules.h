/*
 * value_rules.h - keys and fields of a model file that memwall does not compute with.
 *
 * hparams_gguf.c and hparams_config.c read the values that memwall uses.  Others could change
 * the answers: gguf_keys.c and config_fields.c list them, each with a rule for values that
 * change nothing.  A value that breaks its rule is refused by name.
 */
#ifndef MEMWALL_ENGINE_FORMAT_VALUE_RULES_H
#define MEMWALL_ENGINE_FORMAT_VALUE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/format/catalogue.h"
#include "engine/format/hparams.h"
#include "engine/format/json.h"

/* Rules for values that change nothing. */
enum value_rule {
    RULE_ANY,          /* the key never changes the logits of a text, or is always read */
    RULE_OFF,          /* 0, false, empty, "none", or an array of those */
    RULE_ONE,          /* 1; 0 means "not set" */
    RULE_ONE_BY_KIND,  /* 1 or 0 if sliding layers have a rope table of their own */
    RULE_ONE_UNSCALED, /* 1 or 0 if rope is not scaled by yarn, which reads the value */
    RULE_ON,           /* true */
    RULE_SIGMOID,      /* true if routers score by sigmoid, else false */
    RULE_SCALE,        /* the factor of q.k that memwall uses; 0 means "not set" */
    RULE_SAME,         /* the value of another key */
    RULE_ACT,          /* the activation that memwall uses */
};

struct value_rule_row {
    const char *name;
    enum value_rule rule;
    uint64_t read_if;  /* traits: with any of them the value is used, so no rule applies */
    const char *other; /* RULE_SAME: the other key; else a text that changes nothing, or NULL */
};

/* A value of a file. */
struct stated_value {
    enum { STATED_NOTHING, STATED_NUMBER, STATED_TEXT, STATED_LIST, STATED_BAD } kind;
    double number;    /* of STATED_NUMBER; true is 1 */
    bool is_same;     /* equals the row's other key, for RULE_SAME */
    const char *text; /* of STATED_TEXT */
    uint64_t n;       /* elements of a list */
    bool (*element)(const void *ctx, uint64_t i,
                    double *out); /* NULL: elements follow no rule */
    const void *ctx;
    char shown[64]; /* for the message */
};

/* Returns 0, or -1 with *e (without the place) if the value breaks the rule. */
int value_check(const struct value_rule_row *r, const struct stated_value *v,
                const struct hparams *h, struct err *e);

struct absent_list;

/* Check all keys "ARCH.*" of c->gguf, and those that may stand for an absent one.  Returns 0, or
 * -1 with *e naming the first that would change the answers. */
int gguf_check_keys(const struct catalogue *c, const struct absent_list *absent, struct err *e);

/*
 * Refuse an unknown key if its name resembles that of an absent one: a default would then give
 * wrong answers without a word.  suffix is the key without its architecture, or NULL: then only
 * a name of config.json is refused.  Returns 0, or -1 with *e (without the place).
 */
int gguf_check_unknown(const struct catalogue *c, const char *suffix, const char *key,
                       const struct absent_list *absent, struct err *e);

/* Write a notice about unknown keys of an open model, one of which may be another name of a value
 * that has a default, or "". */
void gguf_unknown_notice(const struct catalogue *c, char *buf, size_t n);

/* Write the keys "ARCH.*" that are in no table to buf, separated by commas, as many as fit.
 * Returns their number. */
uint32_t gguf_unknown_keys(const struct catalogue *c, char *buf, size_t n);

/* Check the fields of a configuration; text is its part about the text model. */
int config_check_fields(const struct hparams *h, const struct json_node *text, struct err *e);

#endif
