/*
 * limits_print.h - the measured limits of the machine, as a line of text and as JSON.
 */
#ifndef MEMWALL_SRC_MACHINE_LIMITS_PRINT_H
#define MEMWALL_SRC_MACHINE_LIMITS_PRINT_H

#include <stdio.h>

#include "engine/base/json_write.h"
#include "engine/memwall.h"

/* Print "limits", blanks up to column `at`, and the limits of m with their age. */
void limits_print(FILE *to, int at, const struct mw_model *m);

/* Write the member "limits": an object with rates, spreads, doubts and times. */
void limits_json(struct json *j, const struct mw_limits *l);

#endif
