/*
 * page_results.h - results of bench and sweep in a report.
 */
#ifndef MEMWALL_SRC_REPORT_PAGE_RESULTS_H
#define MEMWALL_SRC_REPORT_PAGE_RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "src/measure/results.h"
#include "ui/chart/chart.h"

/* Remove folders and names (page_facts.h) from the texts of results. */
void page_results_hide(struct results *r);

/* Store the decoding speed of points over the budget, at most n of them, with bars of the
 * spread.  Returns their number; 0 if the points differ in more than the budget. */
size_t page_results_wall(const struct results *r, struct chart_point *out, size_t n);

/* Write a chart of the speed over the setting that varies, if there is one.  id: of the chart.
 */
void page_results_chart(const struct results *r, const char *id, FILE *to);
/* Write the table, and the reasons for points that failed. */
void page_results_table(const struct results *r, const char *caption, FILE *to);

#endif
