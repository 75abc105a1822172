#include "config.h"

#include "engine/format/config_lookup.h"

#include <math.h>

void config_fail(struct config_lookup *l, const char *key)
{
    err_at(l->e, NULL, ERR_NO_OFFSET, key);
    l->failed = true;
}

static void missing(struct config_lookup *l, const char *key)
{
    err_set(l->e, ERR_FORMAT,
            "the field is missing; fetch the config.json of the published model");
    config_fail(l, key);
}

/* Describes a wrong value for a message. */
static const char *seen(const struct json_node *n)
{
    static const char *const kinds[] = {
        [JSON_IS_NULL] = "null",        [JSON_IS_BOOL] = "true or false",
        [JSON_IS_NUMBER] = "a number",  [JSON_IS_STRING] = "a string",
        [JSON_IS_OBJECT] = "an object", [JSON_IS_ARRAY] = "an array",
    };

    return n->kind == JSON_IS_NUMBER ? n->text : kinds[n->kind];
}

int64_t config_int(struct config_lookup *l, const char *key, int64_t min, int64_t max,
                   int64_t absent)
{
    const struct json_node *n = json_get(l->node, key);
    int64_t v = min;

    if (l->failed)
        return min;
    if (n == NULL) {
        if (absent != CONFIG_NEEDED) {
            defaults_note(l->defaults, key, (double)absent);
            return absent;
        }
        missing(l, key);
    } else if (!json_as_int(n, &v) || v < min || v > max) {
        err_set(l->e, ERR_FORMAT, "is %.60s; expected an integer from %lld to %lld", seen(n),
                (long long)min, (long long)max);
        config_fail(l, key);
    } else {
        defaults_drop(l->defaults, key);
    }
    return l->failed ? min : v;
}

double config_float(struct config_lookup *l, const char *key, double min, double absent)
{
    const struct json_node *n = json_get(l->node, key);
    double v = min;

    if (l->failed)
        return min;
    if (n == NULL) {
        if (!isnan(absent)) {
            defaults_note(l->defaults, key, absent);
            return absent;
        }
        missing(l, key);
    } else if (!json_as_float(n, &v) || v < min || v > 1e30) {
        err_set(l->e, ERR_FORMAT, "is %.60s; expected a number of at least %g", seen(n), min);
        config_fail(l, key);
    } else {
        defaults_drop(l->defaults, key);
    }
    return l->failed ? min : v;
}

bool config_bool(struct config_lookup *l, const char *key, bool absent)
{
    const struct json_node *n = json_get(l->node, key);
    bool v = absent;

    if (l->failed || n == NULL)
        return absent;
    if (!json_as_bool(n, &v)) {
        err_set(l->e, ERR_FORMAT, "is %.60s; expected true or false", seen(n));
        config_fail(l, key);
    }
    return v;
}

const char *config_string(struct config_lookup *l, const char *key)
{
    const struct json_node *n = json_get(l->node, key);
    const char *s = json_as_string(n);

    if (l->failed || n == NULL)
        return NULL;
    if (s == NULL) {
        err_set(l->e, ERR_FORMAT, "is %.60s; expected a string", seen(n));
        config_fail(l, key);
    }
    return s;
}

const struct json_node *config_object(struct config_lookup *l, const char *key)
{
    const struct json_node *n = json_get(l->node, key);

    if (l->failed || n == NULL || n->kind == JSON_IS_OBJECT)
        return l->failed ? NULL : n;
    err_set(l->e, ERR_FORMAT, "is %.60s; expected an object", seen(n));
    config_fail(l, key);
    return NULL;
}
