/*
 * config_lookup.h - numbers out of a config.json, with the first error kept.
 *
 * null counts as absent.  A lookup whose failed is set answers with the minimum from
 * then on, so that lists of lookups read as lists and are checked once at their end.
 */
#ifndef MEMWALL_ENGINE_FORMAT_CONFIG_LOOKUP_H
#define MEMWALL_ENGINE_FORMAT_CONFIG_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/format/json.h"

struct config_lookup {
    const struct json_node *node; /* the object that is asked */
    struct err *e;
    bool failed;
};

#define CONFIG_NEEDED INT64_MIN /* as absent: the field must be there */

int64_t config_int(struct config_lookup *l, const char *key, int64_t min, int64_t max,
                   int64_t absent);
/* Finite and at least min.  absent NaN: the field must be there. */
double config_float(struct config_lookup *l, const char *key, double min, double absent);
bool config_bool(struct config_lookup *l, const char *key, bool absent);
/* NULL if absent. */
const char *config_string(struct config_lookup *l, const char *key);

/* Refuse a field; the sentence is in l->e already. */
void config_fail(struct config_lookup *l, const char *key);

#endif
