/*
 * metrics.h - the metrics of one measurement, in one table.
 *
 * JSON, CSV, tables, medians and comparisons all walk metric_table, so a new metric is a row of
 * it and a line in measure.c.
 */
#ifndef MEMWALL_SRC_MEASURE_METRICS_H
#define MEMWALL_SRC_MEASURE_METRICS_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/json_write.h"
#include "engine/memwall.h"

enum metric_id {
    METRIC_PROMPT,
    METRIC_DECODE,
    METRIC_FIRST,
    METRIC_LOAD,
    METRIC_PEAK,
    METRIC_RSS,
    METRIC_CACHED,
    METRIC_READ,
    METRIC_STALL,
    METRIC_DISK,
    METRIC_MEMORY,
    METRIC_JOULES,
    METRIC_PASS_TOKENS,
    METRIC_ACCEPTED,
    METRIC_PASS_COST,
    METRIC_DRAFTER,
    METRIC_STOLEN,
    METRIC_OTHERS,
    METRIC_THROTTLED,
    N_METRIC,
};

enum metric_kind {
    METRIC_IS_RATE, /* tokens per second */
    METRIC_IS_SECONDS,
    METRIC_IS_SIZE,    /* bytes of memory, shown in MiB or GiB */
    METRIC_IS_TRAFFIC, /* bytes read, shown in kB, MB or GB */
    METRIC_IS_SHARE,   /* 0 to 1, shown in percent */
    METRIC_IS_JOULES,
    METRIC_IS_COUNT,
    METRIC_IS_RATIO,
};

struct metric {
    const char *name;    /* in JSON and CSV, with the unit */
    const char *heading; /* of a column, at most 10 characters */
    enum metric_kind kind;
    bool is_predicted; /* the plan predicts it */
    int better;        /* 1: higher is better; -1: lower; 0: neither */
};
extern const struct metric metric_table[N_METRIC];

/* One value per metric; NAN: not measured, or not predicted. */
struct metrics {
    double value[N_METRIC];
};
void metrics_clear(struct metrics *f);

/* Write one metric as a member of the open object; NAN becomes null. */
void metric_json(struct json *j, enum metric_id id, double value);
/* Write as members of an object with this key.  With only_predicted, only the metrics
 * that the plan predicts. */
void metrics_json(struct json *j, const char *key, const struct metrics *f,
                  bool only_predicted);
/* Read such an object; n may be NULL.  Members that are missing or no numbers are NAN. */
void metrics_read(struct metrics *f, const struct json_node *n);

/* The unit in which a metric is shown: kB, MB or GB, and others. */
struct metric_unit {
    const char *name; /* "tok/s"; "" if each value has its own */
    double divisor;   /* 0: the same */
};
/* The unit for values up to `largest`, which may be NAN. */
struct metric_unit metric_unit(enum metric_id id, double largest);

/* Write a value for people in this unit: "12.3", "0.734", "600 MiB"; a dash for NAN.  Returns buf. */
char *metric_text(char *buf, size_t n, struct metric_unit unit, double value, bool ascii);

#endif
