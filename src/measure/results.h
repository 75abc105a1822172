/*
 * results.h - what bench and sweep have measured, in memory and as a JSON file.
 *
 * The format is documented in memwall-bench(1) and share/schemas/measurements.schema.json.
 */
#ifndef MEMWALL_SRC_MEASURE_RESULTS_H
#define MEMWALL_SRC_MEASURE_RESULTS_H

#include <stdio.h>

#include "src/measure/point.h"

struct results {
    char command[8]; /* "bench", "sweep" or "demo" */
    char version[24];
    char started[24];  /* "2026-11-22T19:04:11Z" */
    char options[256]; /* those that hold for all points: "--cold --blas never" */
    char over[16];     /* the setting that a sweep changed: "budget"; "": a bench */
    bool is_complete;
    uint32_t n_repeat;
    struct {
        char path[4096]; /* as the user named it; safe to print after cleaning only */
        char name[128], arch[32], type[16];
        uint32_t n_layer;
        uint64_t file_bytes, hot_bytes;
        int64_t changed_s; /* when the file was written, in seconds since 1970 */
    } model;
    struct {
        char cpu[64], kernels[16];
        uint32_t n_cpu;
        uint64_t memory_bytes;
    } machine;
    struct point *point; /* [n_point] */
    size_t n_point;
};

/* Fill in all but the points and what is read from the model's file, for the options of o. */
void results_begin(struct results *r, const char *command, const struct options *o);
void results_free(struct results *r);

/* Take the answer of a process that planned or measured p (measure.h).  charge is the peak of
 * its control group; 0: unknown. */
void results_take(struct results *r, struct point *p, const struct json_node *answer,
                  bool is_run, uint64_t charge);
/* The same for a process that failed without an answer. */
void results_take_failure(struct point *p, const struct err *e);

/* Are two results about the same file, measured on the same machine by the same version with
 * the same options? */
bool results_are_comparable(const struct results *a, const struct results *b);

/* Write one JSON object and a newline.  The caller checks the stream. */
void results_json(FILE *to, const struct results *r);
/* The same with members that a command adds to the object. */
typedef void results_more_fn(void *ctx, struct json *j);
void results_json_with(FILE *to, const struct results *r, results_more_fn *more, void *ctx);
/* Read such an object from a file.  Returns -1 with *e, which names the file; *r is then
 * empty. */
int results_load(struct results *r, const char *path, struct err *e);

#endif
