/*
 * results_print.h - the results of bench and sweep as a table, Markdown or CSV.
 */
#ifndef MEMWALL_SRC_MEASURE_RESULTS_PRINT_H
#define MEMWALL_SRC_MEASURE_RESULTS_PRINT_H

#include <stdio.h>

#include "src/base/text_table.h"
#include "src/measure/results.h"

/* How a table is printed. */
struct results_look {
    int width; /* columns of the terminal; 0: Markdown */
    bool ascii;
};
/* The look of a standard output: a terminal with its width, or Markdown. */
void results_look(struct results_look *out);

/* Fill a table with a row for each point: the settings that vary, and the figures.  The caller
 * closes it.  Returns -1 with *e. */
int results_table(struct text_table *t, const struct results *r, bool ascii, struct err *e);

/* Print model and machine, the table, and what its columns are. */
int results_print(FILE *to, const struct results *r, const struct results_look *look,
                  struct err *e);

/* Print the differences from an earlier result, with the significance of each. */
int results_print_changes(FILE *to, const struct results *before, const struct results *now,
                          const struct results_look *look, struct err *e);

/* Print a line of headings and one for each point, with exact numbers. */
void results_csv(FILE *to, const struct results *r);

#endif
