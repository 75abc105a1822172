/*
 * config_lookup.h - values from a config.json; the first error is kept.
 *
 * null counts as absent.  After an error (failed is set) every lookup returns its minimum, so a
 * list of lookups needs one check at its end.
 */
#ifndef MEMWALL_ENGINE_FORMAT_CONFIG_LOOKUP_H
#define MEMWALL_ENGINE_FORMAT_CONFIG_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/format/defaults.h"
#include "engine/format/json.h"

struct config_lookup {
    const struct json_node *node; /* the object to look in */
    struct err *e;
    bool failed;
    struct default_list *defaults; /* gets the values of absent fields; may be NULL */
};

#define CONFIG_NEEDED INT64_MIN /* for absent: the field is required */

int64_t config_int(struct config_lookup *l, const char *key, int64_t min, int64_t max,
                   int64_t absent);
/* A finite number of at least min.  If absent is NaN, the field is required. */
double config_float(struct config_lookup *l, const char *key, double min, double absent);
bool config_bool(struct config_lookup *l, const char *key, bool absent);
/* Returns NULL if the field is absent. */
const char *config_string(struct config_lookup *l, const char *key);
/* Returns an object of the node that the lookup is in; NULL if it is absent. */
const struct json_node *config_object(struct config_lookup *l, const char *key);

/* Refuse a field.  The message is already in l->e. */
void config_fail(struct config_lookup *l, const char *key);

#endif
