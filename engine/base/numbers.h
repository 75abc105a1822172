/*
 * numbers.h - counts, times and rates of tokens as people read them.  units.h has sizes.
 */
#ifndef MEMWALL_ENGINE_BASE_NUMBERS_H
#define MEMWALL_ENGINE_BASE_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns a figure as a whole number: 0 below 0 and for not-a-number, 2^63 for larger ones.  Those
 * of a recording or a server may be anything. */
uint64_t numbers_whole(double value);

/* Write "2,140".  Returns buf. */
char *numbers_count(char *buf, size_t n, uint64_t value);

/* Write "4.63 B", "485 M", "12.3 K", as model cards do.  Returns buf. */
char *numbers_parameters(char *buf, size_t n, uint64_t count);

/* Write "3.4 s", "55 s", "2 min 5 s", "1 h 3 min".  Returns buf. */
char *numbers_time(char *buf, size_t n, double seconds);

/* Write tokens per second as they are measured, with three digits, or as they are predicted,
 * with two: "0.017", "3.41", "24.1", "24,200"; "0.55", "3.4", "24,000".  Both return buf. */
char *numbers_measured(char *buf, size_t n, double per_s);
char *numbers_rough(char *buf, size_t n, double per_s);
/* Write a prediction with its marks: "~12", or "~12?" from doubtful limits.  Returns buf. */
char *numbers_predicted(char *buf, size_t n, double per_s, bool is_doubtful);

#endif
