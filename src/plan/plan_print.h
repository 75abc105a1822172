/*
 * plan_print.h - print the memory plan as a table or as JSON.
 */
#ifndef MEMWALL_SRC_PLAN_PLAN_PRINT_H
#define MEMWALL_SRC_PLAN_PLAN_PRINT_H

#include <stdio.h>

#include "engine/base/json_write.h"
#include "engine/memwall.h"
#include "src/plan/what_if.h"

/* Print one line: name, type, layers, sizes. */
void plan_print_model(FILE *to, const struct mw_model_info *info);

/* Figures that are printed with a plan. */
struct plan_print_more {
    const struct mw_io_choice *io;
    const char *products;          /* the code that multiplies */
    const struct what_if *what_if; /* the machine that one does not have; NULL: this one */
    const struct mw_diagnosis *diagnosis; /* of the same options */
    bool fits;                     /* the plan fits the budget */
    uint64_t smallest_budget;      /* of mw_plan_fit(), as the next */
    uint32_t largest_ctx;
};

/* Print the model, the KV types of o, the limits that the predictions use, the table, and the
 * predicted speed. */
void plan_print(FILE *to, const struct mw_model *m, const struct plan *p,
                const struct mw_options *o, const struct plan_print_more *more);

/* The purpose of a plan item: "weights kept in memory". */
const char *plan_row_text(enum mw_plan_row row);

/* Print only the plan items and the sum, for a budget that is too small. */
void plan_print_rows(FILE *to, const struct plan *p);

/* Print the plan of m with options o, which have a budget, and the table of plan_table.h as one
 * JSON object and a newline. */
void plan_print_json(FILE *to, struct mw_model *m, const struct plan *p,
                     const struct mw_options *o, const struct plan_print_more *more);

/* Write the members "rows" and "sum_bytes". */
void plan_print_rows_json(struct json *j, const struct plan *p);

/* Write the member "kv_token_bytes". */
void plan_print_kv_json(struct json *j, const struct mw_model *m, const struct mw_options *o);

#endif
