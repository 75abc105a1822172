/*
 * plan_print.h - the memory plan for a person: what each row is for and what it takes.
 */
#ifndef MEMWALL_SRC_PLAN_PRINT_H
#define MEMWALL_SRC_PLAN_PRINT_H

#include <stdio.h>

#include "engine/memwall.h"

/* One line: name, type, layers, sizes. */
void plan_print_model(FILE *to, const struct mw_model_info *info);

/* The model, the types of keys and values from o, the table, and what follows from it.
 * is_mapped: the weights are read by mmap, which the budget does not cover. */
void plan_print(FILE *to, const struct plan *p, const struct mw_model_info *info,
                const struct mw_options *o, bool is_mapped);

/* The rows and the sum alone: what a refusal shows. */
void plan_print_rows(FILE *to, const struct plan *p);

/* All of it as one JSON object and a newline; fits says whether the plan holds, smallest
 * and largest are those of mw_plan_fit. */
void plan_print_json(FILE *to, const struct plan *p, const struct mw_model_info *info,
                     bool fits, bool is_mapped, uint64_t smallest_budget, uint32_t largest_ctx);

#endif
