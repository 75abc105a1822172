/*
 * figures.h - the figures of one measurement, in one table.
 *
 * JSON, CSV, tables, medians and comparisons all walk figure_table, so a new figure is a row of
 * it and a line in measure.c.
 */
#ifndef MEMWALL_SRC_MEASURE_FIGURES_H
#define MEMWALL_SRC_MEASURE_FIGURES_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/json_write.h"
#include "engine/memwall.h"

enum figure_id {
    FIG_PROMPT,
    FIG_DECODE,
    FIG_FIRST,
    FIG_LOAD,
    FIG_PEAK,
    FIG_RSS,
    FIG_CACHED,
    FIG_READ,
    FIG_STALL,
    FIG_DISK,
    FIG_MEMORY,
    FIG_JOULES,
    FIG_STOLEN,
    FIG_OTHERS,
    FIG_THROTTLED,
    N_FIGURE,
};

enum figure_kind {
    FIGURE_RATE, /* tokens per second */
    FIGURE_SECONDS,
    FIGURE_SIZE,    /* bytes of memory, shown in MiB or GiB */
    FIGURE_TRAFFIC, /* bytes read, shown in kB, MB or GB */
    FIGURE_SHARE,   /* 0 to 1, shown in percent */
    FIGURE_JOULES,
    FIGURE_COUNT,
};

struct figure {
    const char *name;    /* in JSON and CSV, with the unit */
    const char *heading; /* of a column, at most 10 characters */
    enum figure_kind kind;
    bool is_predicted; /* the plan predicts it */
    int better;        /* 1: higher is better; -1: lower; 0: neither */
};
extern const struct figure figure_table[N_FIGURE];

/* One value per figure; NAN: not measured, or not predicted. */
struct figures {
    double value[N_FIGURE];
};
void figures_clear(struct figures *f);

/* Write one figure as a member of the open object; NAN becomes null. */
void figure_json(struct json *j, enum figure_id id, double value);
/* Write as members of an object with this key.  With only_predicted, only the figures
 * that the plan predicts. */
void figures_json(struct json *j, const char *key, const struct figures *f,
                  bool only_predicted);
/* Read such an object; n may be NULL.  Members that are missing or no numbers are NAN. */
void figures_read(struct figures *f, const struct json_node *n);

/* The unit in which a figure is shown: MiB or GiB, kB, MB or GB, and others. */
struct figure_unit {
    const char *name; /* "tok/s" */
    double divisor;
};
/* The unit for values up to `largest`, which may be NAN. */
struct figure_unit figure_unit(enum figure_id id, double largest);

/* Write a value for people in this unit: "12.3", "0.734"; a dash for NAN.  Returns buf. */
char *figure_text(char *buf, size_t n, struct figure_unit unit, double value, bool ascii);

#endif
