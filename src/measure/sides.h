/*
 * sides.h - memwall demo -m MODEL: the same budget twice, memwall and mapped pages.
 *
 * Both runs are `memwall bench --one run` in a control group whose limit is the budget
 * (measure_child.h), one after the other, so that neither takes disk or processors from the
 * other.  The same kernels compute the same tokens; only the way of reading differs:
 *
 *     memwall        direct reads past the page cache; the plan pins weights
 *     mapped pages   the file is mapped, as in other programs; the kernel keeps what it likes
 */
#ifndef MEMWALL_SRC_MEASURE_SIDES_H
#define MEMWALL_SRC_MEASURE_SIDES_H

#include <stdbool.h>
#include <stdint.h>

#include "src/measure/measure_child.h"
#include "src/measure/results.h"
#include "ui/ui.h"

enum side_state { SIDE_WAITS, SIDE_LOADS, SIDE_DECODES, SIDE_DONE, SIDE_FAILED, SIDE_LEFT_OUT };

struct side {
    const char *name; /* "mapped pages" */
    const struct point *point;
    enum side_state state;
    bool is_late; /* SIDE_FAILED: the time limit ended it */
    uint32_t n_token, n_total;
    uint64_t start_ns, decode_ns, token_ns, end_ns; /* decode_ns: begun; token_ns: the last one */
    struct measure_live now;                        /* the last reading */
};

struct sides {
    const struct results *results;
    struct side side[UI_SIDES];
};

/* The speed of a side. */
struct side_rate {
    double tps;    /* 0: unknown */
    bool is_below; /* not even one token came; it is less than this */
};
struct side_rate side_rate(const struct side *s);

/* How many times as fast as mapped pages memwall is, or more; 0: unknown. */
double sides_times(const struct sides *s, bool *is_more);

/* Describe all for the screen; is_over: with the result. */
void sides_for_screen(const struct sides *s, bool is_over, struct ui_sides *out);
/* Print the same as lines of text. */
void sides_print(const struct sides *s);
/* "memwall 3.2 tok/s, mapped pages 0.11: 29 times as fast" */
char *sides_summary(const struct sides *s, char *buf, size_t n);

struct options;
/* Run the comparison for the model of o.  Returns an exit code. */
int sides_run(const struct options *o);

#endif
