/*
 * page_plan.h - the plan of a model for a report: its items, and the predicted speed at other
 * budgets.
 */
#ifndef MEMWALL_SRC_REPORT_PAGE_PLAN_H
#define MEMWALL_SRC_REPORT_PAGE_PLAN_H

#include <stdbool.h>
#include <stdio.h>

#include "engine/memwall.h"
#include "ui/chart/chart.h"

#define PLAN_POINTS 24

struct page_plan {
    struct mw_model *m; /* must outlive the plan */
    struct mw_model_info info;
    struct mw_options engine;
    struct mw_limits limits;
    struct mw_io_choice io;
    char products[MW_PRODUCTS_TEXT];
    struct plan plan; /* the smallest one if it does not fit */
    bool fits;
    bool is_mapped;
    uint64_t smallest_budget;
    uint32_t largest_ctx;
    struct mw_diagnosis diagnosis;  /* of answers with the options */
    struct plan all; /* of the budget from which on a token reads nothing; sum_bytes 0: unknown */
    struct plan point[PLAN_POINTS]; /* [n_point], budgets from the smallest one up */
    int n_point;
};

/* Make the plans of m.  Returns -1 with *e if no plan can be made,
 * not even one that exceeds the budget. */
int page_plan_make(struct page_plan *p, struct mw_model *m, const struct mw_options *o,
                   bool is_mapped, struct err *e);

/* Predict again, after tokens were measured: then the plan, the curve and the diagnosis begin at
 * the same tokens. */
void page_plan_predict(struct page_plan *p);

void page_plan_html(const struct page_plan *p, FILE *to);
/* Write the chart of the predicted speed over the budget.  measured: [n] points to compare. */
void page_plan_curve(const struct page_plan *p, const struct chart_point *measured, size_t n,
                     FILE *to);
/* One JSON object, as of `memwall plan --json`, and a newline. */
void page_plan_json(const struct page_plan *p, FILE *to);

#endif
