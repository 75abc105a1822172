/* See sweep_chart.h. */
#include "config.h"

#include "src/measure/sweep_chart.h"

#include <sys/wait.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONVERTER "rsvg-convert"
#define PNG_ZOOM  "2" /* pixels per unit of the SVG */

const struct sweep_axis sweep_axes[N_OVER] = {
    [OVER_BUDGET] = { "budget", DIM_MEMORY, "memory budget", CHART_BYTES },
    [OVER_CTX] = { "ctx", DIM_CTX, "context, filled", CHART_TOKENS },
    [OVER_KV] = { "kv", DIM_KV, "type of keys and values", CHART_NAMES },
    [OVER_THREADS] = { "threads", DIM_THREADS, "threads", CHART_NUMBER },
    [OVER_BLOCK] = { "block", DIM_BLOCK, "block size", CHART_BYTES },
};

/* --- the series --- */

/* Returns where a point is on the x axis. */
static double place(const struct point *p, enum dimension d, size_t index)
{
    uint64_t number = p->setting[d].number;

    if (dimension_table[d].is_text)
        return (double)index;
    if (d == DIM_MEMORY && number == 0)
        number = p->budget_bytes;
    return (double)number;
}

/* Does the first plan that is valid allow all weights to be pinned, and where? */
static double all_pinned(const struct results *r)
{
    for (size_t i = 0; i < r->n_point; i++)
        if (r->point[i].all_pinned_bytes > 0)
            return (double)r->point[i].all_pinned_bytes;
    return NAN;
}

/* Add a series of points that are caged or not. */
static void add_series(struct sweep_chart *s, const struct results *r, enum dimension d,
                       bool is_caged, enum chart_style style, struct chart_point *point)
{
    static const char *const names[] = { [CHART_MEASURED] = "measured",
                                         [CHART_PREDICTED] = "predicted",
                                         [CHART_AGAINST] = "mmap, in a cage" };
    struct chart_series *series = &s->series[s->chart.n_series];
    size_t n = 0;
    bool any = false;

    for (size_t i = 0; i < r->n_point; i++) {
        const struct point *p = &r->point[i];
        double spread = p->n_run > 1 ? point_spread(p, METRIC_DECODE) : NAN, y;

        if (p->is_caged != is_caged)
            continue;
        y = style == CHART_PREDICTED ? p->predicted.value[METRIC_DECODE]
                                     : point_median(p, METRIC_DECODE);
        if (style == CHART_PREDICTED)
            spread = NAN;
        any = any || !isnan(y);
        point[n] = (struct chart_point){ place(p, d, n), y, y - spread, y + spread };
        n++;
    }
    if (!any)
        return;
    *series =
        (struct chart_series){ .name = names[style], .style = style, .point = point, .n = n };
    s->chart.n_series++;
}

static void add_names(struct sweep_chart *s, const struct results *r, enum dimension d)
{
    int n = 0;

    for (size_t i = 0; i < r->n_point && n < TICKS_MAX; i++) {
        if (r->point[i].is_caged)
            continue;
        setting_text(&r->point[i], d, s->name[n], sizeof s->name[n]);
        s->names[n] = s->name[n];
        n++;
    }
    s->chart.x.name = s->names;
    s->chart.x.n_name = n;
}

int sweep_chart_open(struct sweep_chart *s, const struct results *r, enum sweep_over over,
                     struct err *e)
{
    const struct sweep_axis *axis = &sweep_axes[over];

    *s = (struct sweep_chart){ 0 };
    s->point = calloc(3 * r->n_point + 1, sizeof *s->point);
    s->name = calloc(TICKS_MAX, sizeof *s->name);
    s->names = calloc(TICKS_MAX, sizeof *s->names);
    if (s->point == NULL || s->name == NULL || s->names == NULL) {
        sweep_chart_close(s);
        return err_memory(e, "a chart");
    }
    snprintf(s->title, sizeof s->title, "%s %s over %s", r->model.name, r->model.type,
             axis->label);
    s->chart = (struct chart){
        .id = "sweep",
        .title = s->title,
        .about = "Decoded tokens per second, measured and as the plan predicts them.",
        .x = { .label = axis->label, .unit = axis->unit },
        .y = { .label = "decode", .symbol = "tok/s", .unit = CHART_NUMBER, .from_zero = true },
        .series = s->series,
    };
    add_series(s, r, axis->dimension, false, CHART_MEASURED, s->point);
    add_series(s, r, axis->dimension, false, CHART_PREDICTED, s->point + r->n_point);
    add_series(s, r, axis->dimension, true, CHART_AGAINST, s->point + 2 * r->n_point);
    if (axis->unit == CHART_NAMES)
        add_names(s, r, axis->dimension);
    if (over == OVER_BUDGET && !isnan(all_pinned(r))) {
        s->mark = (struct chart_mark){ all_pinned(r), "nothing is read per token", false };
        s->chart.mark = &s->mark;
        s->chart.n_mark = 1;
    }
    return 0;
}

void sweep_chart_close(struct sweep_chart *s)
{
    free(s->point);
    free(s->name);
    free(s->names);
    *s = (struct sweep_chart){ 0 };
}

/* --- PNG --- */

bool sweep_can_png(void)
{
    const char *path = getenv("PATH");
    char file[4096];

    while (path != NULL && *path != '\0') {
        size_t n = strcspn(path, ":");

        snprintf(file, sizeof file, "%.*s/" CONVERTER, (int)n, path);
        if (n > 0 && access(file, X_OK) == 0)
            return true;
        path += n + (path[n] == ':');
    }
    return false;
}

int sweep_png(int from, int to, struct err *e)
{
    int status;
    pid_t pid = fork();

    if (pid < 0)
        return err_sys(e, "cannot start " CONVERTER);
    if (pid == 0) {
        if (dup2(from, 0) == 0 && dup2(to, 1) == 1)
            execlp(CONVERTER, CONVERTER, "--zoom", PNG_ZOOM, (char *)NULL);
        _exit(127);
    }
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_sys(e, "cannot wait for " CONVERTER);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return err_set(e, ERR_IO, CONVERTER " failed");
    return 0;
}
