/* See page_results.h. */
#include "config.h"

#include "src/report/page_results.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/text_table.h"
#include "src/measure/results_print.h"
#include "src/measure/sweep_chart.h"
#include "src/report/page_facts.h"
#include "src/report/page_html.h"

void page_results_hide(struct results *r)
{
    page_facts_hide(r->model.path);
    page_facts_hide(r->model.name);
    for (size_t i = 0; i < r->n_point; i++)
        page_facts_hide(r->point[i].error);
}

/* --- the chart --- */

static bool same(const struct point *a, const struct point *b, enum dimension d)
{
    return a->setting[d].number == b->setting[d].number &&
           strcmp(a->setting[d].text, b->setting[d].text) == 0;
}

/* Mapped points in a cage are a line of their own beside the others. */
static bool is_varied(const struct results *r, enum dimension d)
{
    const struct point *first = NULL;

    for (size_t i = 0; i < r->n_point; i++) {
        if (r->point[i].is_caged)
            continue;
        if (first != NULL && !same(first, &r->point[i], d))
            return true;
        first = &r->point[i];
    }
    return false;
}

static bool has_caged(const struct results *r)
{
    for (size_t i = 0; i < r->n_point; i++)
        if (r->point[i].is_caged)
            return true;
    return false;
}

/* The setting along the chart, or N_DIMENSION: the table shows a grid. */
static enum dimension along(const struct results *r)
{
    enum dimension found = N_DIMENSION;

    for (int d = 0; d < N_DIMENSION; d++)
        if (is_varied(r, (enum dimension)d)) {
            if (found != N_DIMENSION)
                return N_DIMENSION;
            found = (enum dimension)d;
        }
    return found;
}

static struct chart_point at(const struct point *p, double x)
{
    double y = point_median(p, METRIC_DECODE), spread = point_spread(p, METRIC_DECODE);
    double bar = p->n_run > 1 ? spread : (double)NAN;

    return (struct chart_point){ x, y, y - bar, y + bar };
}

size_t page_results_wall(const struct results *r, struct chart_point *out, size_t n)
{
    size_t used = 0;

    if (r->n_point == 0 || (r->n_point > 1 && along(r) != DIM_MEMORY) || has_caged(r))
        return 0;
    for (size_t i = 0; i < r->n_point && used < n; i++)
        if (r->point[i].n_run > 0)
            out[used++] = at(&r->point[i], (double)r->point[i].budget_bytes);
    return used;
}

void page_results_chart(const struct results *r, const char *id, FILE *to)
{
    enum dimension d = along(r);
    struct err ignored = ERR_INIT;
    struct sweep_chart s;
    int over = 0;

    while (over < N_OVER && sweep_axes[over].dimension != d)
        over++;
    if (over == N_OVER || sweep_chart_open(&s, r, (enum sweep_over)over, &ignored) != 0)
        return;
    snprintf(s.title, sizeof s.title, "Speed of answers by %s", dimension_table[d].heading);
    s.chart.id = id;
    fputs("<figure class=\"one\">", to);
    chart_svg(&s.chart, 600, 360, to);
    fputs("</figure>\n", to);
    sweep_chart_close(&s);
}

/* --- the table --- */

static void write_cells(const struct text_table *t, size_t row, FILE *to)
{
    for (size_t c = 0; c < t->n_column; c++) {
        const char *text = text_table_cell((struct text_table *)(uintptr_t)t, row, c);

        if (c == 0)
            page_html_row(to, text);
        else if (t->column[c].is_left)
            page_html_cell(to, text);
        else
            page_html_number(to, text);
    }
    page_html_row_end(to);
}

void page_results_table(const struct results *r, const char *caption, FILE *to)
{
    struct text_table t;
    struct err ignored = ERR_INIT;
    char columns[1024] = "";

    if (results_table(&t, r, false, &ignored) != 0)
        return;
    for (size_t c = 0; c < t.n_column; c++)
        snprintf(columns + strlen(columns), sizeof columns - strlen(columns), "%s%s%s%s%s",
                 c > 0 ? "|" : "", c > 0 && !t.column[c].is_left ? "#" : "",
                 t.column[c].heading, t.column[c].unit[0] != '\0' ? ", " : "",
                 t.column[c].unit);
    page_html_table(to, caption, columns);
    for (size_t row = 0; row < t.n_row; row++)
        write_cells(&t, row, to);
    page_html_table_end(to);
    text_table_close(&t);
    for (size_t i = 0; i < r->n_point; i++) {
        char why[DISTURBANCE_TEXT];

        if (point_disturbance(&r->point[i], why, sizeof why)[0] != '\0')
            page_html_text(to, "Speeds with \"!\" in row %zu may be too low: %s.", i + 1, why);
        if (r->point[i].error[0] != '\0')
            page_html_text(to, "Point %zu %s: %s.", i + 1,
                           r->point[i].status == POINT_REFUSED ? "was refused" : "failed",
                           r->point[i].error);
    }
}
