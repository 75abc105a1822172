/* See results_print.h. */
#include "config.h"

#include "src/measure/results_print.h"

#include <sys/ioctl.h>

#include <inttypes.h>
#include <langinfo.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/statistics.h"
#include "ui/words/clean.h"
#include "ui/words/quote.h"

#define SIGNIFICANT 0.05
#define MIN_WIDTH   40

void results_look(struct results_look *out)
{
    struct winsize size;

    *out = (struct results_look){ .ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0 };
    if (!isatty(STDOUT_FILENO))
        return;
    out->width = 80;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        out->width = size.ws_col > MIN_WIDTH ? size.ws_col : MIN_WIDTH;
}

/* --- the table --- */

/* Does a dimension differ between points?  A budget is always shown. */
static bool is_varied(const struct results *r, enum dimension d)
{
    if (d == DIM_MEMORY)
        return true;
    for (size_t i = 1; i < r->n_point; i++)
        if (r->point[i].setting[d].number != r->point[0].setting[d].number ||
            strcmp(r->point[i].setting[d].text, r->point[0].setting[d].text) != 0)
            return true;
    return false;
}

static bool is_measured(const struct results *r, enum metric_id id)
{
    for (size_t i = 0; i < r->n_point; i++)
        if (!isnan(point_median(&r->point[i], id)))
            return true;
    return false;
}

static bool is_predicted(const struct results *r, enum metric_id id)
{
    for (size_t i = 0; i < r->n_point; i++)
        if (!isnan(r->point[i].predicted.value[id]))
            return true;
    return false;
}

/* A column of figures, or of predictions. */
struct figure_column {
    enum metric_id id;
    bool is_prediction;
    int rank; /* see struct text_column */
};

/* The speed of answers comes first: wide tables are cut at the right. */
static const struct figure_column figure_columns[] = {
    { METRIC_DECODE, false, 0 },  { METRIC_DECODE, true, 1 },   { METRIC_PROMPT, false, 0 },
    { METRIC_PROMPT, true, 6 },   { METRIC_FIRST, false, 3 },   { METRIC_LOAD, false, 8 },
    { METRIC_PEAK, false, 2 },    { METRIC_PEAK, true, 9 },     { METRIC_RSS, false, 12 },
    { METRIC_CACHED, false, 11 }, { METRIC_READ, false, 4 },    { METRIC_STALL, false, 5 },
    { METRIC_DISK, false, 7 },    { METRIC_MEMORY, false, 10 }, { METRIC_JOULES, false, 6 },
    { METRIC_PASS_TOKENS, false, 1 }, { METRIC_ACCEPTED, false, 2 },
    { METRIC_PASS_COST, false, 3 }, { METRIC_DRAFTER, false, 3 },
};
#define N_COLUMN (sizeof figure_columns / sizeof figure_columns[0])

/* The unit that suits all values of a figure, measured and predicted. */
static struct metric_unit unit_of(const struct results *r, enum metric_id id)
{
    double largest = 0;

    for (size_t i = 0; i < r->n_point; i++) {
        largest = fmax(largest, point_median(&r->point[i], id)); /* fmax() ignores NAN */
        largest = fmax(largest, r->point[i].predicted.value[id]);
    }
    return metric_unit(id, largest);
}

static void head_figure(struct text_column *c, const struct results *r,
                        const struct figure_column *f)
{
    snprintf(c->heading, sizeof c->heading, "%s%s", f->is_prediction ? "~" : "",
             metric_table[f->id].heading);
    snprintf(c->unit, sizeof c->unit, "%s", unit_of(r, f->id).name);
    c->rank = f->rank;
}

static bool is_rate(enum metric_id id)
{
    return metric_table[id].kind == METRIC_IS_RATE;
}

/* "12.3 ±0.4", "600 ±2 MiB": the spread only if there is more than one run; "12.3! ±4": a disturbed one. */
static void measured_text(char *buf, size_t n, const struct point *p, enum metric_id id,
                          struct metric_unit unit, bool ascii)
{
    char a[24], b[24], why[DISTURBANCE_TEXT];
    double middle = point_median(p, id);
    const char *mark = "";

    if (isnan(middle) && p->status == POINT_REFUSED && id == METRIC_DECODE) {
        snprintf(buf, n, "refused");
        return;
    }
    if (isnan(middle) && p->status == POINT_FAILED && id == METRIC_DECODE) {
        snprintf(buf, n, "failed");
        return;
    }
    metric_text(a, sizeof a, unit, middle, ascii);
    if (!isnan(middle) && p->n_run >= 2 && metric_table[id].kind == METRIC_IS_SIZE) {
        snprintf(buf, n, "%.*s %s%s%s", (int)strcspn(a, " "), a, ascii ? "+-" : "±",
                 units_size_like(b, sizeof b, (uint64_t)point_spread(p, id), a), strchr(a, ' '));
        return;
    }
    if (!isnan(middle) && is_rate(id) && point_disturbance(p, why, sizeof why)[0] != '\0')
        mark = "!";
    if (isnan(middle) || p->n_run < 2)
        snprintf(buf, n, "%s%s", a, mark);
    else
        snprintf(buf, n, "%s%s %s%s", a, mark, ascii ? "+-" : "±",
                 metric_text(b, sizeof b, unit, point_spread(p, id), ascii));
}

/* "~11.8 (+4 %)": the share by which the measured value is above the prediction. */
static void predicted_text(char *buf, size_t n, const struct point *p, enum metric_id id,
                           struct metric_unit unit, bool ascii)
{
    double expected = p->predicted.value[id], measured = point_median(p, id);
    char a[24], change[16];

    metric_text(a, sizeof a, unit, expected, ascii);
    if (isnan(expected))
        snprintf(buf, n, "%s", a);
    else if (isnan(measured) || expected <= 0)
        snprintf(buf, n, "~%s", a);
    else
        snprintf(buf, n, "~%s (%s)", a, units_change(change, sizeof change, measured / expected));
}

int results_table(struct text_table *t, const struct results *r, bool ascii, struct err *e)
{
    enum dimension dims[N_DIMENSION];
    const struct figure_column *columns[N_COLUMN];
    size_t n_dim = 0, n_column = 0;

    for (int d = 0; d < N_DIMENSION; d++)
        if (is_varied(r, (enum dimension)d))
            dims[n_dim++] = (enum dimension)d;
    for (size_t i = 0; i < N_COLUMN; i++)
        if (figure_columns[i].is_prediction
                ? is_predicted(r, figure_columns[i].id)
                : is_measured(r, figure_columns[i].id) || figure_columns[i].id == METRIC_DECODE)
            columns[n_column++] = &figure_columns[i];
    if (text_table_open(t, n_dim + n_column, r->n_point, e) != 0)
        return -1;
    for (size_t i = 0; i < n_dim; i++)
        snprintf(t->column[i].heading, sizeof t->column[i].heading, "%s",
                 dimension_table[dims[i]].heading);
    for (size_t i = 0; i < n_column; i++)
        head_figure(&t->column[n_dim + i], r, columns[i]);
    for (size_t row = 0; row < r->n_point; row++) {
        const struct point *p = &r->point[row];

        for (size_t i = 0; i < n_dim; i++) {
            char *cell = text_table_cell(t, row, i);

            setting_text(p, dims[i], cell, TEXT_TABLE_CELL);
            if (p->is_caged && dims[i] == DIM_IO)
                snprintf(cell, TEXT_TABLE_CELL, "mmap, caged");
        }
        for (size_t i = 0; i < n_column; i++)
            (columns[i]->is_prediction ? predicted_text : measured_text)(
                text_table_cell(t, row, n_dim + i), TEXT_TABLE_CELL, p, columns[i]->id,
                unit_of(r, columns[i]->id), ascii);
    }
    return 0;
}

/* --- the text around it --- */

/* Print a text of a file for a terminal, or as Markdown. */
static void print_clean(FILE *to, const struct results_look *look, const char *text)
{
    char line[700];

    if (look->width == 0) {
        quote_markdown(to, text);
        return;
    }
    clean_line(line, sizeof line, text, strlen(text));
    fputs(line, to);
}

/* The settings that all points share. */
static void print_shared(FILE *to, const struct results *r, const struct results_look *look)
{
    char text[40];

    for (int d = 0; d < N_DIMENSION; d++)
        if (!is_varied(r, (enum dimension)d) &&
            strcmp(setting_text(&r->point[0], (enum dimension)d, text, sizeof text), "auto") !=
                0)
            fprintf(to, "%s %s, ", dimension_table[d].heading, text);
    fprintf(to, "%" PRIu32 " run%s", r->n_repeat, r->n_repeat == 1 ? "" : "s");
    if (r->options[0] != '\0') {
        char options[sizeof r->options + 2];

        snprintf(options, sizeof options, ", %s", r->options); /* not at the start of a text */
        print_clean(to, look, options);
    }
    fputc('\n', to);
}

static void print_heading(FILE *to, const struct results *r, const struct results_look *look)
{
    char files[16], hot[16], memory[16];

    print_clean(to, look, r->model.name[0] != '\0' ? r->model.name : r->model.arch);
    fprintf(to, " %s, %s in files; a token uses %s\n", r->model.type,
            units_size(files, sizeof files, r->model.file_bytes),
            units_size(hot, sizeof hot, r->model.hot_bytes));
    print_clean(to, look, r->machine.cpu);
    fprintf(to, ", %" PRIu32 " CPU%s, %s of memory; memwall %s, %s kernels\n", r->machine.n_cpu,
            r->machine.n_cpu == 1 ? "" : "s",
            units_size(memory, sizeof memory, r->machine.memory_bytes), r->version,
            r->machine.kernels);
}

static void print_point_name(FILE *to, const struct results *r, const struct point *p)
{
    const char *between = "";
    char text[40];

    for (int d = 0; d < N_DIMENSION; d++)
        if (is_varied(r, (enum dimension)d)) {
            fprintf(to, "%s%s %s", between, dimension_table[d].heading,
                    setting_text(p, (enum dimension)d, text, sizeof text));
            between = ", ";
        }
}

/* Print what disturbed runs. */
static void print_disturbances(FILE *to, const struct results *r)
{
    char why[DISTURBANCE_TEXT];

    for (size_t i = 0; i < r->n_point; i++) {
        const struct point *p = &r->point[i];

        if (point_disturbance(p, why, sizeof why)[0] == '\0')
            continue;
        fputs("! ", to);
        print_point_name(to, r, p);
        fprintf(to, ": %s; its speeds may be too low.\n", why);
    }
}

/* Print why points have no figures, and why figures are not known. */
static void print_reasons(FILE *to, const struct results *r, const struct results_look *look)
{
    for (size_t i = 0; i < r->n_point; i++) {
        const struct point *p = &r->point[i];

        if (p->error[0] == '\0')
            continue;
        print_point_name(to, r, p);
        fputs(": ", to);
        print_clean(to, look, p->error);
        fputc('\n', to);
    }
    for (size_t c = 0; c < N_COLUMN; c++)
        for (size_t i = 0; i < r->n_point && !figure_columns[c].is_prediction; i++) {
            enum metric_id id = figure_columns[c].id;

            if (r->point[i].n_run > 0 && r->point[i].run[0].why[id][0] != '\0') {
                fprintf(to, "%s: ", metric_table[id].heading);
                print_clean(to, look, r->point[i].run[0].why[id]);
                fputc('\n', to);
                break;
            }
        }
}

static bool is_charge(const struct results *r)
{
    for (size_t i = 0; i < r->n_point; i++)
        if (r->point[i].n_run > 0)
            return r->point[i].run[0].is_charge;
    return false;
}

static void print_legend(FILE *to, const struct results *r, bool ascii)
{
    if (r->n_repeat > 1)
        fprintf(to, "Medians; %s is half the distance between the smallest and the largest.\n",
                ascii ? "+-" : "±");
    fprintf(to,
            "~ marks predictions, with the measured difference; or their range, if the limits\n"
            "of the machine changed while they were measured.\n"
            "peak: %s.\n",
            is_charge(r)
                ? "the kernel's charge to the control group of a run.  It and rss have no pages "
                  "cached\nby others"
                : "the high-water mark of the process and its page tables");
    if (!r->is_complete)
        fputs("The measurement was interrupted or failed; rows have the runs that were "
              "finished.\n",
              to);
}

int results_print(FILE *to, const struct results *r, const struct results_look *look,
                  struct err *e)
{
    struct text_table t;

    if (results_table(&t, r, look->ascii, e) != 0)
        return -1;
    print_heading(to, r, look);
    print_shared(to, r, look);
    fputc('\n', to);
    if (look->width > 0)
        text_table_print(to, &t, look->width);
    else
        text_table_markdown(to, &t);
    fputc('\n', to);
    print_legend(to, r, look->ascii);
    print_disturbances(to, r);
    print_reasons(to, r, look);
    text_table_close(&t);
    return 0;
}

/* --- changes --- */

static const enum metric_id compared[] = { METRIC_PROMPT, METRIC_DECODE, METRIC_FIRST,
                                           METRIC_PEAK,   METRIC_READ,   METRIC_JOULES };
#define N_COMPARED (sizeof compared / sizeof compared[0])

static const struct point *find_point(const struct results *r, const struct point *like)
{
    for (size_t i = 0; i < r->n_point; i++)
        if (point_is_same(&r->point[i], like))
            return &r->point[i];
    return NULL;
}

/* "p 0.003", "p 0.31, not significant", "too few runs (1 and 3)". */
static void significance_text(char *buf, size_t n, const struct point *before,
                              const struct point *now, enum metric_id id)
{
    double a[RUNS_MAX], b[RUNS_MAX];
    size_t na = point_values(before, id, a), nb = point_values(now, id, b);
    struct welch w = welch_test(a, na, b, nb);

    if (isnan(w.p))
        snprintf(buf, n, "too few runs (%zu and %zu)", na, nb);
    else
        snprintf(buf, n, "%s%.*f%s", w.p < 0.001 ? "p < " : "p ", w.p < 0.1 ? 3 : 2,
                 w.p < 0.001 ? 0.001 : w.p, w.p < SIGNIFICANT ? "" : ", not significant");
}

static void change_row(struct text_table *t, size_t row, const struct results *r,
                       const struct point *before, const struct point *now, enum metric_id id,
                       bool ascii)
{
    double a = point_median(before, id), b = point_median(now, id);
    char *name = text_table_cell(t, row, 0);
    struct metric_unit unit = unit_of(r, id);
    size_t used = 0;
    char text[40];

    for (int d = 0; d < N_DIMENSION; d++)
        if (is_varied(r, (enum dimension)d) && used < TEXT_TABLE_CELL)
            used += (size_t)snprintf(
                name + used, TEXT_TABLE_CELL - used, "%s%s%s%s", used > 0 ? ", " : "",
                d == DIM_MEMORY ? "" : dimension_table[d].heading, d == DIM_MEMORY ? "" : " ",
                setting_text(now, (enum dimension)d, text, sizeof text));
    snprintf(text_table_cell(t, row, 1), TEXT_TABLE_CELL, "%s%s%s", metric_table[id].heading,
             unit.name[0] != '\0' ? ", " : "", unit.name);
    measured_text(text_table_cell(t, row, 2), TEXT_TABLE_CELL, before, id, unit, ascii);
    measured_text(text_table_cell(t, row, 3), TEXT_TABLE_CELL, now, id, unit, ascii);
    if (a > 0)
        snprintf(text_table_cell(t, row, 4), TEXT_TABLE_CELL, "%+.1f %%%s", 100 * (b / a - 1),
                 fabs(b / a - 1) < 0.0005 || metric_table[id].better == 0 ? ""
                 : (b > a) == (metric_table[id].better > 0)               ? " better"
                                                                          : " worse");
    significance_text(text_table_cell(t, row, 5), TEXT_TABLE_CELL, before, now, id);
}

/* Fill the rows of points that both results have; t NULL only counts them. */
static size_t change_rows(struct text_table *t, const struct results *before,
                          const struct results *now, bool ascii)
{
    size_t row = 0;

    for (size_t i = 0; i < now->n_point; i++) {
        const struct point *p = &now->point[i], *old = find_point(before, p);

        for (size_t k = 0; old != NULL && k < N_COMPARED; k++) {
            if (isnan(point_median(old, compared[k])) || isnan(point_median(p, compared[k])))
                continue;
            if (t != NULL)
                change_row(t, row, now, old, p, compared[k], ascii);
            row++;
        }
    }
    return row;
}

int results_print_changes(FILE *to, const struct results *before, const struct results *now,
                          const struct results_look *look, struct err *e)
{
    static const char *const headings[] = { "point", "figure", "before",
                                            "now",   "change", "significance" };
    size_t n = change_rows(NULL, before, now, look->ascii);
    struct text_table t;

    if (n == 0) {
        fputs("\nNo point of the earlier result has the same settings.\n", to);
        return 0;
    }
    if (text_table_open(&t, 6, n, e) != 0)
        return -1;
    for (size_t i = 0; i < 6; i++) {
        snprintf(t.column[i].heading, sizeof t.column[i].heading, "%s", headings[i]);
        t.column[i].is_left = i < 2 || i == 5;
    }
    change_rows(&t, before, now, look->ascii);
    fputs("\nCompared with the result of ", to);
    print_clean(to, look, before->started);
    fputs(" by memwall ", to);
    print_clean(to, look, before->version);
    fputs(":\n\n", to);
    if (look->width > 0)
        text_table_print(to, &t, look->width);
    else
        text_table_markdown(to, &t);
    fputs(
        "\nSignificance: Welch's t-test of the runs, two-sided; significant means p < 0.05,\n"
        "which one of twenty equal pairs also reaches by chance. It needs two runs of each.\n",
        to);
    if (strcmp(before->model.name, now->model.name) != 0 ||
        before->model.file_bytes != now->model.file_bytes)
        fputs("The two results are about different models.\n", to);
    if (strcmp(before->machine.cpu, now->machine.cpu) != 0 ||
        before->machine.n_cpu != now->machine.n_cpu)
        fputs("The two results are of different machines.\n", to);
    text_table_close(&t);
    return 0;
}

/* --- CSV --- */

static void csv_number(FILE *to, double value)
{
    fputc(',', to);
    if (!isnan(value))
        fprintf(to, "%.15g", value);
}

void results_csv(FILE *to, const struct results *r)
{
    char text[40];

    fputs("model,type,version", to);
    for (int d = 0; d < N_DIMENSION; d++)
        fprintf(to, ",%s", dimension_table[d].name);
    fputs(",status,budget_bytes,runs,peak_of", to);
    for (int i = 0; i < N_METRIC; i++) {
        fprintf(to, ",%s,%s_spread", metric_table[i].name, metric_table[i].name);
        if (metric_table[i].is_predicted)
            fprintf(to, ",%s_predicted", metric_table[i].name);
    }
    fputc('\n', to);
    for (size_t k = 0; k < r->n_point; k++) {
        const struct point *p = &r->point[k];

        quote_csv(to, r->model.name);
        fprintf(to, ",%s,%s", r->model.type, r->version);
        for (int d = 0; d < N_DIMENSION; d++)
            fprintf(to, ",%s", setting_print(p, (enum dimension)d, text, sizeof text));
        fprintf(to, ",%s,%" PRIu64 ",%" PRIu32 ",%s", point_status_name(p->status),
                p->budget_bytes, p->n_run,
                p->n_run == 0         ? ""
                : p->run[0].is_charge ? "control group"
                                      : "process");
        for (int i = 0; i < N_METRIC; i++) {
            csv_number(to, point_median(p, (enum metric_id)i));
            csv_number(to, point_spread(p, (enum metric_id)i));
            if (metric_table[i].is_predicted)
                csv_number(to, p->predicted.value[i]);
        }
        fputc('\n', to);
    }
}
