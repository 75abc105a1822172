#include "config.h"

#include "engine/limits/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/format/tensor_type.h"

#define SAMPLE      256  /* values: a multiple of every block */
#define PACKED_BITS 12.0 /* of a packed BF16 weight */

/* Bits for a weight of a type in a form; 0: an unknown type. */
static double bits_of(const char *type)
{
    const char *form = strstr(type, MW_RATE_INTERLEAVED);
    size_t n = form != NULL ? (size_t)(form - type) : strlen(type);

    if (strcmp(type, MW_RATE_PACKED) == 0)
        return PACKED_BITS;
    for (int t = 0; t < TYPE_COUNT; t++) {
        const char *name = tensor_type_info((enum tensor_type)t)->name;

        if (strlen(name) == n && memcmp(name, type, n) == 0)
            return 8.0 * (double)tensor_row_bytes((enum tensor_type)t, SAMPLE) / SAMPLE;
    }
    return 0;
}

bool limits_types_agree(const char *type, double bytes_s, const char *other, double other_s)
{
    double bits = bits_of(type), other_bits = bits_of(other);

    if (bits < other_bits)
        return limits_types_agree(other, other_s, type, bytes_s);
    if (!(other_bits > 0) || !(bytes_s > 0) || !(other_s > 0))
        return true;
    return bytes_s * LIMITS_KNOWN_RATIO >= other_s &&
           bytes_s <= other_s * LIMITS_KNOWN_RATIO * bits / other_bits;
}

bool limits_memory_allows(const struct mw_limits *l)
{
    for (uint32_t i = 0; i < l->n_rate && l->memory_bytes_s > 0; i++)
        if (l->rate[i].column_bytes_s > LIMITS_KNOWN_RATIO * l->memory_bytes_s)
            return false;
    return true;
}

bool limits_agree(const struct mw_limits *l)
{
    for (uint32_t i = 0; i < l->n_rate; i++)
        for (uint32_t j = 0; j < i; j++)
            if (!limits_types_agree(l->rate[i].type, l->rate[i].column_bytes_s, l->rate[j].type,
                                    l->rate[j].column_bytes_s))
                return false;
    return limits_memory_allows(l);
}

bool limits_of_one_go(const struct mw_limits *l)
{
    int64_t first_s = INT64_MAX, last_s = INT64_MIN;

    for (uint32_t i = 0; i < l->n_rate; i++) {
        first_s = l->rate[i].measured_s < first_s ? l->rate[i].measured_s : first_s;
        last_s = l->rate[i].measured_s > last_s ? l->rate[i].measured_s : last_s;
    }
    return limits_memory_allows(l) &&
           (l->n_rate == 0 || (first_s != 0 && last_s - first_s <= LIMITS_ONE_GO_S));
}

static const struct mw_rate *rate_of(const struct mw_limits *l, const char *type, const char *form)
{
    char name[sizeof l->rate[0].type];

    snprintf(name, sizeof name, "%.11s%s", type, form);
    for (uint32_t i = 0; i < l->n_rate; i++)
        if (strcmp(l->rate[i].type, name) == 0)
            return &l->rate[i];
    return NULL;
}

static bool is_trusted(const struct mw_rate *r)
{
    return r != NULL && r->measured_s != 0 && !r->is_doubtful && r->column_bytes_s > 0 &&
           r->few_bytes_s > 0 && r->chunk_flops_s > 0;
}

/* Seconds for a weight of so many bytes. */
static double form_s(const struct mw_rate *r, double bytes)
{
    return bytes / r->column_bytes_s + bytes / (LIMITS_FEW * r->few_bytes_s) +
           2 / r->chunk_flops_s;
}

bool limits_forms(const struct mw_limits *l, const char *type, double *in_file_s,
                  double *interleaved_s)
{
    const struct mw_rate *file = rate_of(l, type, ""),
                         *laid = rate_of(l, type, MW_RATE_INTERLEAVED);
    const double bytes = bits_of(type) / 8;

    if (!is_trusted(file) || !is_trusted(laid) || !(bytes > 0) ||
        llabs(file->measured_s - laid->measured_s) > LIMITS_ONE_GO_S)
        return false;
    *in_file_s = form_s(file, bytes);
    *interleaved_s = form_s(laid, bytes);
    return true;
}

int limits_threads(const struct mw_threads *t)
{
    double best_s = t->core_s / LIMITS_THREADS_MARGIN;
    int n = t->n_core;

    if (t->measured_s == 0 || t->is_doubtful)
        return n;
    if (t->cpu_s > 0 && t->cpu_s < best_s) {
        best_s = t->cpu_s;
        n = t->n_cpu;
    }
    return t->fewer_s > 0 && t->fewer_s < best_s ? t->n_core - 1 : n;
}
