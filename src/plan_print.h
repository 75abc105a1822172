/*
 * plan_print.h - print the memory plan as a table or as JSON.
 */
#ifndef MEMWALL_SRC_PLAN_PRINT_H
#define MEMWALL_SRC_PLAN_PRINT_H

#include <stdio.h>

#include "engine/base/json_write.h"
#include "engine/memwall.h"

/* Print one line: name, type, layers, sizes. */
void plan_print_model(FILE *to, const struct mw_model_info *info);

/* Print the model, the KV types of o, the code that multiplies (products), the limits that the
 * predictions use, the table, and the predicted speed.  is_mapped: the weights are read with
 * mmap, so the budget does not cover them. */
void plan_print(FILE *to, const struct mw_model *m, const struct plan *p,
                const struct mw_options *o, const struct mw_io_choice *io, const char *products,
                bool is_mapped);

/* The purpose of a plan item: "weights kept in memory". */
const char *plan_row_text(enum mw_plan_row row);

/* Print only the plan items and the sum, for a budget that is too small. */
void plan_print_rows(FILE *to, const struct plan *p);

/* Print the plan of m with options o as one JSON object and a newline.  fits: the plan fits the
 * budget; smallest_budget and largest_ctx come from mw_plan_fit(). */
void plan_print_json(FILE *to, const struct mw_model *m, const struct plan *p,
                     const struct mw_options *o, const struct mw_io_choice *io,
                     const char *products, bool fits, bool is_mapped, uint64_t smallest_budget,
                     uint32_t largest_ctx);

/* Write the member "kv_token_bytes". */
void plan_print_kv_json(struct json *j, const struct mw_model *m, const struct mw_options *o);

#endif
