/*
 * budget.h - a budget of `auto` in words: what was given back, why, and what comes next.
 */
#ifndef MEMWALL_UI_WORDS_BUDGET_H
#define MEMWALL_UI_WORDS_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/memwall.h"

/* Bytes that were given back since the budget was chosen. */
uint64_t budget_given(const struct mw_sample *s);

/* Whether the budget of a sample follows the free memory. */
bool budget_is_elastic(const struct mw_sample *s);

/* "given back 1.50 GiB, 12 s ago: little free memory".  Returns buf; "" for a fixed budget. */
char *budget_last(char *buf, size_t n, const struct mw_sample *s);

/* "next: pinned weights, below 1.00 GiB spare (now 2.10 GiB)".  "" for a fixed budget. */
char *budget_next(char *buf, size_t n, const struct mw_sample *s);

/* The same in at most so many columns, with less detail if need be; longer only if the least does
 * not fit. */
char *budget_last_within(char *buf, size_t n, const struct mw_sample *s, int columns);
char *budget_next_within(char *buf, size_t n, const struct mw_sample *s, int columns);

/* Both as a sentence for /why and for statistics; "" if nothing was given back. */
char *budget_sentence(char *buf, size_t n, const struct mw_sample *s);

#endif
