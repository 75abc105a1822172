/*
 * latency.h - measures how late keys are on the screen, for --count-bytes.
 */
#ifndef MEMWALL_UI_APP_LATENCY_H
#define MEMWALL_UI_APP_LATENCY_H

#include <stdint.h>

#define LATENCY_KEPT 4096 /* the newest measurements */

struct latency {
    uint32_t n;
    uint32_t late_us[LATENCY_KEPT];
};

/* A frame that shows a key was drawn ns nanoseconds after the key was read. */
void latency_add(struct latency *l, uint64_t ns);
/* Print the number of keys, the median, the 99th percentile and the maximum to standard
 * output.  The order of the measurements is lost. */
void latency_print(struct latency *l);

#endif
