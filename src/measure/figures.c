/* See figures.h. */
#include "config.h"

#include "src/measure/figures.h"

#include <math.h>
#include <stdio.h>

#include "ui/text/receipt.h"

const struct figure figure_table[N_FIGURE] = {
    [FIG_PROMPT] = { "prompt_tps", "prompt", FIGURE_RATE, true, 1 },
    [FIG_DECODE] = { "decode_tps", "decode", FIGURE_RATE, true, 1 },
    [FIG_FIRST] = { "first_token_s", "first", FIGURE_SECONDS, true, -1 },
    [FIG_LOAD] = { "load_s", "load", FIGURE_SECONDS, false, -1 },
    [FIG_PEAK] = { "peak_bytes", "peak", FIGURE_SIZE, true, -1 },
    [FIG_RSS] = { "rss_bytes", "rss", FIGURE_SIZE, false, -1 },
    [FIG_CACHED] = { "model_cached_bytes", "cached", FIGURE_SIZE, false, -1 },
    [FIG_READ] = { "read_bytes_per_token", "read/token", FIGURE_TRAFFIC, true, -1 },
    [FIG_STALL] = { "stall_share", "stall", FIGURE_SHARE, false, -1 },
    [FIG_DISK] = { "disk_limit_share", "of disk", FIGURE_SHARE, false, 0 },
    [FIG_MEMORY] = { "memory_limit_share", "of memory", FIGURE_SHARE, false, 0 },
    [FIG_JOULES] = { "joules_per_token", "energy/tok", FIGURE_JOULES, false, -1 },
    [FIG_STOLEN] = { "stolen_share", "stolen", FIGURE_SHARE, false, 0 },
    [FIG_OTHERS] = { "others_share", "others", FIGURE_SHARE, false, 0 },
    [FIG_THROTTLED] = { "throttled", "throttled", FIGURE_COUNT, false, 0 },
};

void figures_clear(struct figures *f)
{
    for (int i = 0; i < N_FIGURE; i++)
        f->value[i] = NAN;
}

static int decimals(enum figure_kind kind)
{
    return kind == FIGURE_SIZE || kind == FIGURE_TRAFFIC || kind == FIGURE_COUNT ? 0 : 6;
}

void figure_json(struct json *j, enum figure_id id, double value)
{
    if (isnan(value))
        json_null(j, figure_table[id].name);
    else
        json_double(j, figure_table[id].name, value, decimals(figure_table[id].kind));
}

void figures_json(struct json *j, const char *key, const struct figures *f, bool only_predicted)
{
    json_object(j, key);
    for (int i = 0; i < N_FIGURE; i++)
        if (!only_predicted || figure_table[i].is_predicted)
            figure_json(j, (enum figure_id)i, f->value[i]);
    json_end(j);
}

void figures_read(struct figures *f, const struct json_node *n)
{
    figures_clear(f);
    for (int i = 0; i < N_FIGURE; i++) {
        double value;

        if (json_as_float(json_get(n, figure_table[i].name), &value))
            f->value[i] = value;
    }
}

struct figure_unit figure_unit(enum figure_id id, double largest)
{
    switch (figure_table[id].kind) {
    case FIGURE_RATE: return (struct figure_unit){ "tok/s", 1 };
    case FIGURE_SECONDS: return (struct figure_unit){ "s", 1 };
    case FIGURE_JOULES: return (struct figure_unit){ "J", 1 };
    case FIGURE_COUNT: return (struct figure_unit){ "times", 1 };
    case FIGURE_SHARE: return (struct figure_unit){ "%", 0.01 };
    case FIGURE_SIZE:
        return largest < 0.1 * (double)GIB ? (struct figure_unit){ "MiB", (double)MIB }
                                           : (struct figure_unit){ "GiB", (double)GIB };
    case FIGURE_TRAFFIC:
        return largest < 1e6   ? (struct figure_unit){ "kB", 1e3 }
               : largest < 1e8 ? (struct figure_unit){ "MB", 1e6 }
                               : (struct figure_unit){ "GB", 1e9 };
    }
    return (struct figure_unit){ "", 1 };
}

char *figure_text(char *buf, size_t n, struct figure_unit unit, double value, bool ascii)
{
    double size = fabs(value / unit.divisor);

    if (isnan(value))
        snprintf(buf, n, "%s", ascii ? "-" : "–");
    else if (size == 0)
        snprintf(buf, n, "0");
    else if (size >= 999.5)
        receipt_rate(buf, n, size);
    else
        snprintf(buf, n, "%.*f",
                 size >= 99.95    ? 0
                 : size >= 9.995  ? 1
                 : size >= 0.9995 ? 2
                                  : 3,
                 value / unit.divisor);
    return buf;
}
