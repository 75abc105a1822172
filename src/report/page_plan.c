/* See page_plan.h. */
#include "config.h"

#include "engine/base/numbers.h"
#include "src/report/page_plan.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "src/plan/plan_print.h"
#include "src/report/page_html.h"
#include "ui/chart/chart.h"

/* Plans from the smallest budget to somewhat more than reads nothing. */
static void make_points(struct page_plan *p)
{
    struct mw_options o = p->engine;
    double low = (double)p->smallest_budget, high = (double)p->all.sum_bytes * 1.15;

    if (p->smallest_budget == 0 || !(high > low))
        return;
    for (int i = 0; i < PLAN_POINTS; i++) {
        struct err ignored = ERR_INIT;

        o.memory_bytes = (uint64_t)(low + (high - low) * i / (PLAN_POINTS - 1));
        if (mw_plan(p->m, &o, &p->point[p->n_point], &ignored) == 0)
            p->n_point++;
    }
}

void page_plan_predict(struct page_plan *p)
{
    struct mw_options engine = p->engine;
    struct err ignored = ERR_INIT;
    struct plan now;

    engine.memory_bytes = p->plan.budget_bytes;
    if (p->fits && mw_plan(p->m, &engine, &now, &ignored) == 0) {
        p->plan = now;
        (void)mw_diagnose(p->m, &engine, NULL, &p->diagnosis, &ignored);
    }
    p->n_point = 0;
    make_points(p);
}

int page_plan_make(struct page_plan *p, struct mw_model *m, const struct mw_options *o,
                   bool is_mapped, struct err *e)
{
    struct mw_options all = *o;
    struct err ignored = ERR_INIT;

    *p = (struct page_plan){ .m = m, .engine = *o, .is_mapped = is_mapped };
    mw_model_info(m, &p->info);
    mw_model_limits(m, &p->limits);
    if (mw_io_choose(m, o, &p->io, e) != 0)
        return -1;
    mw_products_text(m, o, p->products, sizeof p->products);
    p->fits = mw_plan(m, o, &p->plan, e) == 0;
    if (!p->fits && e->code != ERR_BUDGET)
        return -1;
    mw_plan_fit(m, o, &p->smallest_budget, &p->largest_ctx, &ignored);
    if (p->info.n_ctx_train > 0 && p->largest_ctx > p->info.n_ctx_train)
        p->largest_ctx = p->info.n_ctx_train;
    all.memory_bytes = mw_reads_nothing_budget(m, o);
    if (all.memory_bytes == 0 || mw_plan(m, &all, &p->all, &ignored) != 0)
        p->all = (struct plan){ 0 };
    page_plan_predict(p);
    return 0;
}

static void write_items(const struct plan *p, FILE *to)
{
    char text[32];

    page_html_table(to, "The memory plan: what takes how much of the budget",
                    "Item|#Bytes|Share|For");
    for (int i = 0; i < MW_PLAN_ROWS; i++) {
        if (p->row[i] == 0)
            continue;
        page_html_row(to, mw_plan_row_label((enum mw_plan_row)i));
        page_html_number(to, units_size(text, sizeof text, p->row[i]));
        fprintf(to,
                "<td class=\"wide\"><span class=\"bar\" style=\"width:%.1f%%\"></span></td>",
                p->sum_bytes > 0 ? (double)p->row[i] * 100 / (double)p->sum_bytes : 0.0);
        page_html_cell(to, plan_row_text((enum mw_plan_row)i));
        page_html_row_end(to);
    }
    page_html_row(to, "total");
    page_html_number(to, units_size(text, sizeof text, p->sum_bytes));
    fputs("<td></td>", to);
    fputs("<td>of a budget of ", to);
    page_html_words(to, units_size(text, sizeof text, p->budget_bytes));
    fputs("</td></tr>\n", to);
    page_html_table_end(to);
}

static void put(FILE *to, const char *heading, const char *text)
{
    page_html_row(to, heading);
    page_html_cell(to, text);
    page_html_row_end(to);
}

static void write_model(const struct page_plan *p, FILE *to)
{
    char text[MW_LIMITS_TEXT + 64], size[16], ctx[24], trained[24];

    page_html_table(to, "The model and how it is run", "Figure|Value");
    put(to, "model", p->info.name[0] != '\0' ? p->info.name : p->info.arch);
    snprintf(text, sizeof text, "%s, %u layers, %.2f billion parameters", p->info.arch,
             p->info.n_layer, (double)p->info.n_param / 1e9);
    put(to, "architecture", text);
    put(to, "weight type", p->info.type);
    put(to, "files", units_size(size, sizeof size, p->info.file_bytes));
    put(to, "weights that a token uses", units_size(size, sizeof size, p->info.hot_bytes));
    snprintf(text, sizeof text, "%s tokens; trained for %s",
             numbers_count(ctx, sizeof ctx, p->plan.n_ctx),
             numbers_count(trained, sizeof trained, p->info.n_ctx_train));
    put(to, "context", text);
    snprintf(text, sizeof text, "keys %s, values %s", mw_kv_name(p->engine.kv_k),
             mw_kv_name(p->engine.kv_v));
    put(to, "keys and values", text);
    snprintf(text, sizeof text, "%s (%.200s)", p->io.name, p->io.reason);
    put(to, "weights are read", text);
    put(to, "matrices are multiplied by", p->products);
    mw_limits_text(&p->limits, (int64_t)time(NULL), text, sizeof text);
    put(to, "measured limits", text);
    if (p->smallest_budget > 0)
        put(to, "smallest budget for this context",
            units_size(size, sizeof size, p->smallest_budget));
    if (p->largest_ctx > 0) {
        snprintf(text, sizeof text, "%u tokens", p->largest_ctx);
        put(to, "largest context for this budget", text);
    }
    page_html_table_end(to);
}

void page_plan_html(const struct page_plan *p, FILE *to)
{
    write_model(p, to);
    write_items(&p->plan, to);
}

void page_plan_curve(const struct page_plan *p, const struct chart_point *measured, size_t n,
                     FILE *to)
{
    struct chart_point predicted[PLAN_POINTS];
    const struct chart_series s[] = {
        { "measured", CHART_MEASURED, measured, n, false },
        { "predicted", CHART_PREDICTED, predicted, (size_t)p->n_point, false },
    };
    const struct chart_mark marks[] = {
        { (double)p->all.sum_bytes, "nothing is read per token", false },
        { (double)p->plan.budget_bytes, "this budget", false },
    };
    const struct chart c = {
        .id = "wall",
        .title = "The wall: speed of answers against the budget",
        .x = { .label = "memory budget", .unit = CHART_BYTES },
        .y = { .symbol = "tok/s", .unit = CHART_NUMBER, .from_zero = true },
        .series = n > 0 ? s : s + 1,
        .n_series = n > 0 ? 2 : 1,
        .mark = marks,
        .n_mark =
            p->fits && p->plan.budget_bytes <= p->point[p->n_point - 1].budget_bytes ? 2 : 1,
    };

    for (int i = 0; i < p->n_point; i++)
        predicted[i] = (struct chart_point){ (double)p->point[i].budget_bytes,
                                             p->point[i].pass_tps > 0 ? p->point[i].pass_tps
                                                                      : (double)NAN,
                                             (double)NAN, (double)NAN };
    fputs("<figure class=\"one\">", to);
    chart_svg(&c, 600, 360, to);
    fputs("</figure>\n", to);
}

void page_plan_json(const struct page_plan *p, FILE *to)
{
    const struct plan_print_more more = { .io = &p->io,
                                          .products = p->products,
                                          .diagnosis = &p->diagnosis,
                                          .fits = p->fits,
                                          .smallest_budget = p->smallest_budget,
                                          .largest_ctx = p->largest_ctx };
    struct mw_options engine = p->engine;

    engine.memory_bytes = p->plan.budget_bytes;
    plan_print_json(to, p->m, &p->plan, &engine, &more);
}
