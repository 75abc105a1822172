/*
 * setting_values.h - values to try for a row of the table of options.
 */
#ifndef MEMWALL_TESTS_LIB_SETTING_VALUES_H
#define MEMWALL_TESTS_LIB_SETTING_VALUES_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/options/options.h"

/* Value i that the row takes, or value i that it refuses; NULL after the last.  Valid until the
 * next call. */
const char *setting_value(const struct option *row, bool is_valid, size_t i);

#endif
