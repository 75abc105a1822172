/* See page_results.h. */
#include "config.h"

#include "src/report/page_results.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/text_table.h"
#include "src/measure/results_print.h"
#include "src/report/page_facts.h"
#include "src/report/page_html.h"

#define MAX_POINTS 128
#define MAX_NAMES  16

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

static bool is_varied(const struct results *r, enum dimension d)
{
    for (size_t i = 1; i < r->n_point; i++)
        if (!same(&r->point[0], &r->point[i], d))
            return true;
    return false;
}

/* The setting along the chart, or N_DIMENSION.  Ways to read are lines of a chart if anything
 * else varies. */
static enum dimension along(const struct results *r)
{
    enum dimension found = N_DIMENSION;

    for (int d = 0; d < N_DIMENSION; d++)
        if (d != DIM_IO && is_varied(r, (enum dimension)d)) {
            if (found != N_DIMENSION)
                return N_DIMENSION; /* a grid: the table shows it */
            found = (enum dimension)d;
        }
    return found == N_DIMENSION && is_varied(r, DIM_IO) ? DIM_IO : found;
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

    if (r->n_point == 0 || (r->n_point > 1 && along(r) != DIM_MEMORY) || is_varied(r, DIM_IO))
        return 0;
    for (size_t i = 0; i < r->n_point && used < n; i++)
        if (r->point[i].n_run > 0)
            out[used++] = at(&r->point[i], (double)r->point[i].budget_bytes);
    return used;
}

struct names {
    char text[MAX_NAMES][24];
    const char *name[MAX_NAMES];
    int n;
};

static double name_place(struct names *names, const char *text)
{
    for (int i = 0; i < names->n; i++)
        if (strcmp(names->name[i], text) == 0)
            return i;
    if (names->n == MAX_NAMES)
        return (double)NAN;
    snprintf(names->text[names->n], sizeof names->text[0], "%s", text);
    names->name[names->n] = names->text[names->n];
    return names->n++;
}

static double place(const struct point *p, enum dimension d, struct names *names)
{
    char text[24];

    if (dimension_table[d].is_text)
        return name_place(names, setting_print(p, d, text, sizeof text));
    if (d == DIM_MEMORY)
        return (double)p->budget_bytes;
    if (d == DIM_THREADS && p->setting[d].number == 0)
        return (double)p->n_thread;
    return (double)p->setting[d].number;
}

static enum chart_unit unit_of(enum dimension d)
{
    if (dimension_table[d].is_text)
        return CHART_NAMES;
    if (d == DIM_MEMORY)
        return CHART_BYTES;
    return d == DIM_THREADS || d == DIM_CHUNK ? CHART_NUMBER : CHART_TOKENS;
}

struct lines {
    struct chart_point point[CHART_SERIES_MAX][MAX_POINTS];
    struct chart_series series[CHART_SERIES_MAX];
    char name[CHART_SERIES_MAX][48];
    size_t n;
};

/* A line of the points that are read as the point `like` is. */
static void add_line(struct lines *l, const struct results *r, const struct point *like,
                     enum dimension d, bool is_prediction, struct names *names)
{
    struct chart_series *s = &l->series[l->n];
    char io[24], *name = l->name[l->n];
    bool is_mmap = strncmp(setting_print(like, DIM_IO, io, sizeof io), "mmap", 4) == 0;

    snprintf(name, sizeof l->name[0], "%s%s%s", is_prediction ? "predicted" : "measured",
             is_varied(r, DIM_IO) && d != DIM_IO ? ", " : "",
             is_varied(r, DIM_IO) && d != DIM_IO ? io[0] != '\0' ? io : "auto" : "");
    *s = (struct chart_series){ name,
                                is_prediction ? CHART_PREDICTED
                                : is_mmap     ? CHART_AGAINST
                                              : CHART_MEASURED,
                                l->point[l->n], 0, false };
    for (size_t i = 0; i < r->n_point && s->n < MAX_POINTS; i++) {
        const struct point *p = &r->point[i];
        double x;

        if (d != DIM_IO && !same(like, p, DIM_IO))
            continue;
        x = place(p, d, names);
        l->point[l->n][s->n++] = is_prediction
                                     ? (struct chart_point){ x, p->predicted.value[METRIC_DECODE],
                                                             (double)NAN, (double)NAN }
                                     : at(p, x);
    }
    l->n++;
}

void page_results_chart(const struct results *r, const char *id, FILE *to)
{
    struct lines *l = calloc(1, sizeof *l);
    enum dimension d = along(r);
    struct names names = { .n = 0 };
    struct chart c = {
        .id = id,
        .y = { .symbol = "tok/s", .unit = CHART_NUMBER, .from_zero = true },
    };
    char title[64];

    if (l == NULL || d == N_DIMENSION) {
        free(l);
        return;
    }
    for (size_t i = 0; i < r->n_point && l->n + 1 < CHART_SERIES_MAX; i++) {
        bool is_first = true;

        for (size_t k = 0; k < i && d != DIM_IO; k++)
            is_first &= !same(&r->point[k], &r->point[i], DIM_IO);
        if (is_first && (d != DIM_IO || i == 0)) {
            add_line(l, r, &r->point[i], d, false, &names);
            add_line(l, r, &r->point[i], d, true, &names);
        }
    }
    snprintf(title, sizeof title, "Speed of answers by %s", dimension_table[d].heading);
    c.title = title;
    c.x = (struct chart_axis){ .label = dimension_table[d].heading,
                               .unit = unit_of(d),
                               .name = names.name,
                               .n_name = names.n };
    c.series = l->series;
    c.n_series = l->n;
    fputs("<figure class=\"one\">", to);
    chart_svg(&c, 600, 360, to);
    fputs("</figure>\n", to);
    free(l);
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
            page_html_text(to, "Point %zu is %s: %s.", i + 1,
                           point_status_name(r->point[i].status), r->point[i].error);
    }
}
