/*
 * result_files.h - the files that --output names: JSON, CSV, Markdown, and of a sweep SVG and
 * PNG.
 *
 * A JSON file is written after each run, and a repeated command continues it.  The others are
 * written at the end.
 */
#ifndef MEMWALL_SRC_MEASURE_RESULT_FILES_H
#define MEMWALL_SRC_MEASURE_RESULT_FILES_H

#include "src/measure/results.h"

/* Draws the SVG.  Returns -1 with *e. */
typedef int result_svg_fn(void *ctx, FILE *to, struct err *e);

struct result_files {
    const struct options *o;
    const char *json;   /* the JSON file, or NULL */
    result_svg_fn *svg; /* set by the caller; NULL: neither SVG nor PNG is possible */
    void *ctx;
};

/*
 * Set o and json; svg and ctx are set already.
 *
 * Check all names before anything is measured, and continue the JSON file if there is one: runs
 * of points with the same settings are moved to r.  Writes the JSON file once, so that a folder
 * that cannot be written is known now.  Returns -1 with *e; ERR_ARGUMENT: a wrong name.
 */
int result_files_open(struct result_files *f, const struct options *o, struct results *r,
                      struct err *e);
/* Write the JSON file, if there is one. */
int result_files_save(const struct result_files *f, const struct results *r, struct err *e);
/* Write all files. */
int result_files_write(const struct result_files *f, const struct results *r, struct err *e);

#endif
