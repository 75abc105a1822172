/* See metrics.h. */
#include "config.h"

#include "src/measure/metrics.h"

#include <math.h>
#include <stdio.h>

#include "engine/base/numbers.h"

const struct metric metric_table[N_METRIC] = {
    [METRIC_PROMPT] = { "prompt_tps", "prompt", METRIC_IS_RATE, true, 1 },
    [METRIC_DECODE] = { "decode_tps", "decode", METRIC_IS_RATE, true, 1 },
    [METRIC_FIRST] = { "first_token_s", "first", METRIC_IS_SECONDS, true, -1 },
    [METRIC_LOAD] = { "load_s", "load", METRIC_IS_SECONDS, false, -1 },
    [METRIC_PEAK] = { "peak_bytes", "peak", METRIC_IS_SIZE, true, -1 },
    [METRIC_RSS] = { "rss_bytes", "rss", METRIC_IS_SIZE, false, -1 },
    [METRIC_CACHED] = { "model_cached_bytes", "cached", METRIC_IS_SIZE, false, -1 },
    [METRIC_READ] = { "read_bytes_per_token", "read/token", METRIC_IS_TRAFFIC, true, -1 },
    [METRIC_STALL] = { "stall_share", "stall", METRIC_IS_SHARE, false, -1 },
    [METRIC_DISK] = { "disk_limit_share", "of disk", METRIC_IS_SHARE, false, 0 },
    [METRIC_MEMORY] = { "memory_limit_share", "of memory", METRIC_IS_SHARE, false, 0 },
    [METRIC_JOULES] = { "joules_per_token", "energy/tok", METRIC_IS_JOULES, false, -1 },
    [METRIC_PASS_TOKENS] = { "tokens_per_pass", "tok/pass", METRIC_IS_RATIO, false, 1 },
    [METRIC_ACCEPTED] = { "accepted_share", "accepted", METRIC_IS_SHARE, false, 1 },
    [METRIC_PASS_COST] = { "pass_cost", "pass cost", METRIC_IS_RATIO, false, -1 },
    [METRIC_DRAFTER] = { "drafter_share", "drafting", METRIC_IS_SHARE, false, -1 },
    [METRIC_STOLEN] = { "stolen_share", "stolen", METRIC_IS_SHARE, false, 0 },
    [METRIC_OTHERS] = { "others_share", "others", METRIC_IS_SHARE, false, 0 },
    [METRIC_THROTTLED] = { "throttled", "throttled", METRIC_IS_COUNT, false, 0 },
};

void metrics_clear(struct metrics *f)
{
    for (int i = 0; i < N_METRIC; i++)
        f->value[i] = NAN;
}

static int decimals(enum metric_kind kind)
{
    return kind == METRIC_IS_SIZE || kind == METRIC_IS_TRAFFIC || kind == METRIC_IS_COUNT ? 0 : 6;
}

void metric_json(struct json *j, enum metric_id id, double value)
{
    if (isnan(value))
        json_null(j, metric_table[id].name);
    else
        json_double(j, metric_table[id].name, value, decimals(metric_table[id].kind));
}

void metrics_json(struct json *j, const char *key, const struct metrics *f, bool only_predicted)
{
    json_object(j, key);
    for (int i = 0; i < N_METRIC; i++)
        if (!only_predicted || metric_table[i].is_predicted)
            metric_json(j, (enum metric_id)i, f->value[i]);
    json_end(j);
}

void metrics_read(struct metrics *f, const struct json_node *n)
{
    metrics_clear(f);
    for (int i = 0; i < N_METRIC; i++) {
        double value;

        if (json_as_float(json_get(n, metric_table[i].name), &value))
            f->value[i] = value;
    }
}

/* Sizes have a unit each, as everywhere: a budget of 600 MiB never becomes 0.59 GiB. */
struct metric_unit metric_unit(enum metric_id id, double largest)
{
    switch (metric_table[id].kind) {
    case METRIC_IS_RATE: return (struct metric_unit){ "tok/s", 1 };
    case METRIC_IS_SECONDS: return (struct metric_unit){ "s", 1 };
    case METRIC_IS_JOULES: return (struct metric_unit){ "J", 1 };
    case METRIC_IS_COUNT: return (struct metric_unit){ "times", 1 };
    case METRIC_IS_RATIO: return (struct metric_unit){ "", 1 };
    case METRIC_IS_SHARE: return (struct metric_unit){ "%", 0.01 };
    case METRIC_IS_SIZE: return (struct metric_unit){ "", 0 };
    case METRIC_IS_TRAFFIC:
        return largest < 1e6   ? (struct metric_unit){ "kB", 1e3 }
               : largest < 1e8 ? (struct metric_unit){ "MB", 1e6 }
                               : (struct metric_unit){ "GB", 1e9 };
    }
    return (struct metric_unit){ "", 1 };
}

char *metric_text(char *buf, size_t n, struct metric_unit unit, double value, bool ascii)
{
    double size = fabs(value / unit.divisor);

    if (isnan(value))
        snprintf(buf, n, "%s", ascii ? "-" : "–");
    else if (!(unit.divisor > 0))
        units_size(buf, n, (uint64_t)value);
    else if (size == 0)
        snprintf(buf, n, "0");
    else if (size >= 999.5)
        numbers_measured(buf, n, size);
    else
        snprintf(buf, n, "%.*f",
                 size >= 99.95    ? 0
                 : size >= 9.995  ? 1
                 : size >= 0.9995 ? 2
                                  : 3,
                 value / unit.divisor);
    return buf;
}
