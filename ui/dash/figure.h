/*
 * figure.h - formats numbers for the dashboard.  Each format has a fixed width, so that text
 * to its right never moves.  An unknown value is a "-" at the right end.
 */
#ifndef MEMWALL_UI_DASH_FIGURE_H
#define MEMWALL_UI_DASH_FIGURE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/memwall.h"

#define FIGURE_MAX 24

struct figure {
    char text[FIGURE_MAX];
};

/* The digit in a name is the width in columns. */
struct figure figure_size8(uint64_t bytes);              /* "1.98 GiB", "  48 MiB" */
struct figure figure_os8(struct mw_os_value v);          /* the same, or "-" */
struct figure figure_budget8(const struct mw_sample *s); /* "-" without a plan */
struct figure figure_rate5(double per_second); /* " 3.12", " 99.9", " 1204"; < 0: "-" */
struct figure figure_percent5(double share);   /* " 71 %"; < 0: "-" */
/* A measured rate; or if it is < 0, a predicted one, which has two digits: "  3.12", "  ~3.1",
 * "     -". */
struct figure figure_rate6(double measured, double predicted);
/* Without blanks at its beginning. */
const char *figure_trim(const char *text);
struct figure figure_count7(uint64_t n);    /* "  3,100", "999,999", "  1.23M" */
struct figure figure_time7(double seconds); /* " 8.2 s ", "12:05  " … ; < 0: "-" */
struct figure figure_left10(double seconds); /* "      45 s", "    31 min", "1 h 57 min" */
struct figure figure_ms6(uint64_t ns);      /* " 12.3 " milliseconds */
struct figure figure_ms4(double ns);        /* " 1.2", "  12", "2345", " 12s"; < 0: "-" */

/* The unit of disk rates, in bytes per second: GB/s, or MB/s if the disk is slow. */
double figure_disk_unit(const struct mw_sample *s, const char **name);

#endif
