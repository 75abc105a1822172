/*
 * plan_table.h - plans of a model for each context and each type of keys and values.
 */
#ifndef MEMWALL_SRC_PLAN_PLAN_TABLE_H
#define MEMWALL_SRC_PLAN_PLAN_TABLE_H

#include <stdio.h>

#include "engine/base/json_write.h"
#include "engine/memwall.h"

/*
 * Print a table for contexts from 2048 tokens to the trained one, doubling, for keys and values
 * as in o and in f16, q8_0 and q4_0, with two bounds for each type: the largest context with
 * which all weights stay in memory, and the largest one that fits.  o has a budget.
 */
void plan_table_print(FILE *to, struct mw_model *m, const struct mw_options *o);

/* Write the same, with all items of each plan, as the member "table". */
void plan_table_json(struct json *j, struct mw_model *m, const struct mw_options *o);

#endif
