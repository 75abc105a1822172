/* See results.h. */
#include "config.h"

#include "src/measure/results.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/measure/measure_child.h"

#define FORMAT         "memwall-measurements"
#define FORMAT_VERSION 1
#define FILE_MAX       ((off_t)JSON_MAX_TREE)
#define POINTS_MAX     10000

/* Describe this machine: outside of any cage. */
static void take_machine(struct results *r)
{
    struct mw_machine machine;

    mw_machine_read(&machine);
    snprintf(r->machine.cpu, sizeof r->machine.cpu, "%s", machine.cpu);
    snprintf(r->machine.kernels, sizeof r->machine.kernels, "%s", mw_isa(0));
    r->machine.n_cpu = machine.n_cpu > 0 ? (uint32_t)machine.n_cpu : 0;
    r->machine.memory_bytes = machine.memory_bytes;
}

void results_begin(struct results *r, const char *command, const struct options *o)
{
    time_t now = time(NULL);
    struct stat st;
    struct tm tm;

    memset(r, 0, sizeof *r);
    snprintf(r->command, sizeof r->command, "%s", command);
    snprintf(r->version, sizeof r->version, "%s", mw_version());
    if (gmtime_r(&now, &tm) != NULL)
        strftime(r->started, sizeof r->started, "%Y-%m-%dT%H:%M:%SZ", &tm);
    measure_child_options(o, r->options, sizeof r->options);
    r->n_repeat = o->n_repeat;
    take_machine(r);
    snprintf(r->model.path, sizeof r->model.path, "%s", o->model);
    if (stat(o->model, &st) == 0)
        r->model.changed_s = (int64_t)st.st_mtime;
}

void results_free(struct results *r)
{
    points_free(r->point, r->n_point);
    memset(r, 0, sizeof *r);
}

bool results_are_comparable(const struct results *a, const struct results *b)
{
    return strcmp(a->version, b->version) == 0 && strcmp(a->over, b->over) == 0 &&
           strcmp(a->options, b->options) == 0 && strcmp(a->model.path, b->model.path) == 0 &&
           a->model.changed_s == b->model.changed_s &&
           strcmp(a->machine.cpu, b->machine.cpu) == 0 && a->machine.n_cpu == b->machine.n_cpu;
}

/* --- reading --- */

static uint64_t get_u64(const struct json_node *n, const char *key)
{
    int64_t value;

    return json_as_int(json_get(n, key), &value) && value > 0 ? (uint64_t)value : 0;
}

static uint32_t get_u32(const struct json_node *n, const char *key)
{
    uint64_t value = get_u64(n, key);

    return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static void get_text(const struct json_node *n, const char *key, char *to, size_t size)
{
    const char *text = json_as_string(json_get(n, key));

    snprintf(to, size, "%s", text != NULL ? text : "");
}

static enum point_status get_status(const struct json_node *n)
{
    const char *name = json_as_string(json_get(n, "status"));

    for (int i = POINT_OK; name != NULL && i <= POINT_FAILED; i++)
        if (strcmp(name, point_status_name((enum point_status)i)) == 0)
            return (enum point_status)i;
    return POINT_PENDING;
}

static void read_machine(struct results *r, const struct json_node *n)
{
    get_text(n, "cpu", r->machine.cpu, sizeof r->machine.cpu);
    get_text(n, "kernels", r->machine.kernels, sizeof r->machine.kernels);
    r->machine.n_cpu = get_u32(n, "n_cpu");
    r->machine.memory_bytes = get_u64(n, "memory_bytes");
}

static void read_model(struct results *r, const struct json_node *n)
{
    get_text(n, "name", r->model.name, sizeof r->model.name);
    get_text(n, "arch", r->model.arch, sizeof r->model.arch);
    get_text(n, "type", r->model.type, sizeof r->model.type);
    r->model.n_layer = get_u32(n, "n_layer");
    r->model.file_bytes = get_u64(n, "file_bytes");
    r->model.hot_bytes = get_u64(n, "hot_bytes");
}

static void read_plan(struct point *p, const struct json_node *n)
{
    const struct json_node *limits = json_get(n, "limits");

    p->budget_bytes = get_u64(n, "budget_bytes");
    p->pinned_bytes = get_u64(n, "pinned_bytes");
    p->smallest_bytes = get_u64(n, "smallest_budget_bytes");
    p->all_pinned_bytes = get_u64(n, "all_pinned_budget_bytes");
    p->files_bytes = get_u64(n, "program_files_bytes");
    p->n_ctx = get_u32(n, "ctx");
    p->chunk = get_u32(n, "chunk");
    get_text(n, "binds", p->binds, sizeof p->binds);
    /* As a plan has them, or as a file of measurements. */
    if (!json_as_float(json_get(limits, "disk_bytes_s"), &p->disk_bytes_s) &&
        !json_as_float(json_get(json_get(limits, "disk"), "bytes_s"), &p->disk_bytes_s))
        p->disk_bytes_s = 0;
    if (!json_as_float(json_get(limits, "memory_bytes_s"), &p->memory_bytes_s) &&
        !json_as_float(json_get(json_get(limits, "memory"), "bytes_s"), &p->memory_bytes_s))
        p->memory_bytes_s = 0;
}

/* Read up to n numbers of a list; nulls are NAN.  Returns how many there were. */
static uint32_t read_numbers(double *out, uint32_t n, const struct json_node *list)
{
    const struct json_node *one = list != NULL ? list->first : NULL;
    uint32_t i;

    for (i = 0; one != NULL && i < n; i++, one = one->next)
        if (!json_as_float(one, &out[i]))
            out[i] = NAN;
    return i;
}

/* Read the figures of each place of a pass. */
static void read_drafts(struct run *run, const struct json_node *n)
{
    for (uint32_t i = 0; i <= MW_DRAFT_MOST; i++)
        run->pass_costs[i] = NAN;
    run->n_place = read_numbers(run->accepted_at, MW_DRAFT_MOST, json_get(n, "accepted_at"));
    read_numbers(run->pass_costs, MW_DRAFT_MOST + 1, json_get(n, "pass_costs"));
}

/* Read the figures of a run, and the reasons for those that are not known. */
static void read_run(struct run *run, const struct json_node *figures,
                     const struct json_node *unknown, const struct json_node *drafts)
{
    memset(run, 0, sizeof *run);
    metrics_read(&run->figures, figures);
    read_drafts(run, drafts);
    for (int i = 0; i < N_METRIC; i++)
        get_text(unknown, metric_table[i].name, run->why[i], sizeof run->why[i]);
}

/* Results of earlier versions have no bounds. */
static void read_predictions(struct point *p, const struct json_node *n)
{
    metrics_read(&p->predicted, json_get(n, "predicted"));
}

void results_take(struct results *r, struct point *p, const struct json_node *answer,
                  bool is_run, uint64_t charge)
{
    struct run *run;
    const struct json_node *plan = json_get(answer, "plan");

    p->status = get_status(answer);
    get_text(answer, "error", p->error, sizeof p->error);
    if (!is_run) { /* a prediction is made before anything is measured, and outside of cages */
        if (json_get(answer, "model") != NULL)
            read_model(r, json_get(answer, "model"));
        read_plan(p, plan);
        if (!p->is_caged) /* the plan knows nothing of what the kernel does to mapped weights */
            read_predictions(p, answer);
        if (p->status == POINT_OK)
            p->status = POINT_PENDING;
        return;
    }
    if (p->status != POINT_OK || p->n_run == p->n_repeat)
        return;
    get_text(answer, "io", p->io, sizeof p->io);
    p->n_thread = get_u32(answer, "threads");
    run = &p->run[p->n_run++];
    read_run(run, json_get(answer, "figures"), json_get(answer, "unknown"), answer);
    if (charge > 0) {
        /* The kernel counts both in batches, so the charge may be a little less. */
        run->figures.value[METRIC_PEAK] = fmax((double)charge, run->figures.value[METRIC_RSS]);
        run->why[METRIC_PEAK][0] = '\0';
        run->is_charge = true;
        /* The process that made the plan has read the program's files, so the group is not
         * charged for them. */
        if (p->n_run == 1)
            p->predicted.value[METRIC_PEAK] -= (double)p->files_bytes;
    }
}

void results_take_failure(struct point *p, const struct err *e)
{
    p->status = POINT_FAILED;
    err_text(e, p->error, sizeof p->error);
}

static void read_settings(struct point *p, const struct json_node *n)
{
    for (int d = 0; d < N_DIMENSION; d++) {
        const struct dimension_row *row = &dimension_table[d];

        if (row->is_text)
            get_text(n, row->name, p->setting[d].text, sizeof p->setting[d].text);
        else
            p->setting[d].number = get_u64(n, row->name);
    }
}

static int read_point(struct point *p, const struct json_node *n, uint32_t n_repeat,
                      struct err *e)
{
    const struct json_node *runs = json_get(n, "runs");
    uint32_t n_run = runs != NULL && runs->kind == JSON_IS_ARRAY ? runs->n : 0;

    if (n_run > RUNS_MAX)
        return err_set(e, ERR_FORMAT, "a point has %u runs, more than %d", n_run, RUNS_MAX);
    if (point_reserve(p, n_run > n_repeat ? n_run : n_repeat, e) != 0)
        return -1;
    read_settings(p, json_get(n, "settings"));
    if (!json_as_bool(json_get(n, "caged"), &p->is_caged))
        p->is_caged = false;
    p->status = get_status(n);
    get_text(n, "error", p->error, sizeof p->error);
    read_plan(p, json_get(n, "plan"));
    read_predictions(p, n);
    get_text(n, "io", p->io, sizeof p->io);
    p->n_thread = get_u32(n, "threads");
    if (n_run == 0)
        return 0;
    for (const struct json_node *one = runs->first; one != NULL; one = one->next) {
        struct run *run = &p->run[p->n_run++];
        const char *peak_of = json_as_string(json_get(one, "peak_of"));

        read_run(run, one, json_get(one, "unknown"), one);
        run->is_charge = peak_of != NULL && strcmp(peak_of, "control group") == 0;
    }
    return 0;
}

static int read_points(struct results *r, const struct json_node *n, struct err *e)
{
    size_t i = 0;

    if (n == NULL || n->kind != JSON_IS_ARRAY)
        return err_set(e, ERR_FORMAT, "has no array \"points\"");
    if (n->n > POINTS_MAX)
        return err_set(e, ERR_FORMAT, "has more than %d points", POINTS_MAX);
    r->point = calloc((size_t)n->n + 1, sizeof *r->point);
    if (r->point == NULL)
        return err_memory(e, "%u points", n->n);
    r->n_point = n->n;
    for (const struct json_node *one = n->first; one != NULL; one = one->next)
        if (read_point(&r->point[i++], one, r->n_repeat, e) != 0)
            return -1;
    return 0;
}

static int read_all(struct results *r, const struct json_node *n, struct err *e)
{
    const char *format = json_as_string(json_get(n, "format"));
    const struct json_node *model = json_get(n, "model");
    int64_t version, changed;
    bool complete;

    if (format == NULL || strcmp(format, FORMAT) != 0)
        return err_set(e, ERR_FORMAT,
                       "is not a result of memwall bench or sweep: \"format\" is not "
                       "\"" FORMAT "\"");
    if (!json_as_int(json_get(n, "format_version"), &version) || version != FORMAT_VERSION)
        return err_set(e, ERR_UNSUPPORTED,
                       "has another \"format_version\" than %d, which this memwall reads",
                       FORMAT_VERSION);
    get_text(n, "command", r->command, sizeof r->command);
    get_text(n, "version", r->version, sizeof r->version);
    get_text(n, "started", r->started, sizeof r->started);
    get_text(n, "over", r->over, sizeof r->over);
    get_text(n, "options", r->options, sizeof r->options);
    r->is_complete = json_as_bool(json_get(n, "complete"), &complete) && complete;
    r->n_repeat = get_u32(n, "n_repeat");
    if (r->n_repeat < 1 || r->n_repeat > RUNS_MAX)
        return err_set(e, ERR_FORMAT, "\"n_repeat\" is not a number from 1 to %d", RUNS_MAX);
    read_machine(r, json_get(n, "machine"));
    read_model(r, model);
    get_text(model, "path", r->model.path, sizeof r->model.path);
    if (json_as_int(json_get(model, "changed"), &changed))
        r->model.changed_s = changed;
    return read_points(r, json_get(n, "points"), e);
}

int results_load(struct results *r, const char *path, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), result = -1;
    struct json_doc *doc = NULL;
    struct stat st;

    memset(r, 0, sizeof *r);
    if (fd < 0) {
        err_sys(e, "cannot open");
        return err_at(e, path, ERR_NO_OFFSET, NULL);
    }
    if (fstat(fd, &st) != 0)
        err_sys(e, "cannot read");
    else if (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX)
        err_set(e, ERR_FORMAT, "is not a result of memwall bench or sweep");
    else if (json_read(&doc, fd, (uint64_t)st.st_size, e) == 0)
        result = read_all(r, json_root(doc), e);
    json_free(doc);
    close(fd);
    if (result != 0) {
        results_free(r);
        return err_at(e, path, ERR_NO_OFFSET, NULL);
    }
    return 0;
}

/* --- writing --- */

static void write_header(struct json *j, const struct results *r)
{
    json_string(j, "format", FORMAT);
    json_u64(j, "format_version", FORMAT_VERSION);
    json_string(j, "command", r->command);
    json_string(j, "version", r->version);
    json_string(j, "started", r->started);
    if (r->over[0] != '\0')
        json_string(j, "over", r->over);
    else
        json_null(j, "over");
    json_string(j, "options", r->options);
    json_u64(j, "n_repeat", r->n_repeat);
    json_bool(j, "complete", r->is_complete);
    json_object(j, "machine");
    json_string(j, "cpu", r->machine.cpu);
    json_u64(j, "n_cpu", r->machine.n_cpu);
    json_u64(j, "memory_bytes", r->machine.memory_bytes);
    json_string(j, "kernels", r->machine.kernels);
    json_end(j);
    json_object(j, "model");
    json_string(j, "path", r->model.path);
    json_string(j, "name", r->model.name);
    json_string(j, "arch", r->model.arch);
    json_string(j, "type", r->model.type);
    json_u64(j, "n_layer", r->model.n_layer);
    json_u64(j, "file_bytes", r->model.file_bytes);
    json_u64(j, "hot_bytes", r->model.hot_bytes);
    json_u64(j, "changed", r->model.changed_s > 0 ? (uint64_t)r->model.changed_s : 0);
    json_end(j);
}

static void write_settings(struct json *j, const struct point *p)
{
    json_object(j, "settings");
    for (int d = 0; d < N_DIMENSION; d++) {
        const struct dimension_row *row = &dimension_table[d];

        if (row->is_text)
            json_string(j, row->name, p->setting[d].text);
        else if (row->has_default && p->setting[d].number == 0)
            json_null(j, row->name);
        else
            json_u64(j, row->name, p->setting[d].number);
    }
    json_end(j);
}

static void write_plan(struct json *j, const struct point *p)
{
    json_object(j, "plan");
    json_u64(j, "budget_bytes", p->budget_bytes);
    json_u64(j, "ctx", p->n_ctx);
    json_u64(j, "chunk", p->chunk);
    json_u64(j, "pinned_bytes", p->pinned_bytes);
    json_u64(j, "smallest_budget_bytes", p->smallest_bytes);
    json_u64(j, "all_pinned_budget_bytes", p->all_pinned_bytes);
    json_u64(j, "program_files_bytes", p->files_bytes);
    json_string(j, "binds", p->binds);
    json_object(j, "limits");
    json_object(j, "disk");
    json_double(j, "bytes_s", p->disk_bytes_s, 0);
    json_end(j);
    json_object(j, "memory");
    json_double(j, "bytes_s", p->memory_bytes_s, 0);
    json_end(j);
    json_end(j);
    json_end(j);
}

static void write_number(struct json *j, double value)
{
    if (isnan(value))
        json_null(j, NULL);
    else
        json_double(j, NULL, value, 6);
}

static void write_drafts(struct json *j, const struct run *run)
{
    json_array(j, "accepted_at");
    for (uint32_t i = 0; i < run->n_place; i++)
        write_number(j, run->accepted_at[i]);
    json_end(j);
    json_array(j, "pass_costs");
    for (uint32_t i = 0; i <= run->n_place; i++)
        write_number(j, run->pass_costs[i]);
    json_end(j);
}

static void write_run(struct json *j, const struct run *run)
{
    json_object(j, NULL);
    for (int i = 0; i < N_METRIC; i++)
        metric_json(j, (enum metric_id)i, run->figures.value[i]);
    if (run->n_place > 0)
        write_drafts(j, run);
    json_string(j, "peak_of", run->is_charge ? "control group" : "process");
    json_object(j, "unknown");
    for (int i = 0; i < N_METRIC; i++)
        if (run->why[i][0] != '\0')
            json_string(j, metric_table[i].name, run->why[i]);
    json_end(j);
    json_end(j);
}

static void write_point(struct json *j, const struct point *p)
{
    struct metrics middle, spread;

    json_object(j, NULL);
    write_settings(j, p);
    json_bool(j, "caged", p->is_caged);
    json_string(j, "status", point_status_name(p->status));
    if (p->error[0] != '\0')
        json_string(j, "error", p->error);
    else
        json_null(j, "error");
    write_plan(j, p);
    metrics_json(j, "predicted", &p->predicted, true);
    json_string(j, "io", p->io);
    json_u64(j, "threads", p->n_thread);
    json_array(j, "runs");
    for (uint32_t i = 0; i < p->n_run; i++)
        write_run(j, &p->run[i]);
    json_end(j);
    for (int i = 0; i < N_METRIC; i++) {
        middle.value[i] = point_median(p, (enum metric_id)i);
        spread.value[i] = point_spread(p, (enum metric_id)i);
    }
    metrics_json(j, "median", &middle, false);
    metrics_json(j, "spread", &spread, false);
    json_end(j);
}

void results_json(FILE *to, const struct results *r)
{
    results_json_with(to, r, NULL, NULL);
}

void results_json_with(FILE *to, const struct results *r, results_more_fn *more, void *ctx)
{
    struct json j;

    json_start_stream(&j, to);
    json_object(&j, NULL);
    write_header(&j, r);
    json_array(&j, "points");
    for (size_t i = 0; i < r->n_point; i++)
        write_point(&j, &r->point[i]);
    json_end(&j);
    if (more != NULL)
        more(ctx, &j);
    json_end(&j);
    json_line(&j);
}
