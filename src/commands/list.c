/* memwall list: the models on this machine, and the outlook for each. */
#include "config.h"

#include <sys/ioctl.h>
#include <sys/stat.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/json_write.h"
#include "engine/base/numbers.h"
#include "src/base/progress.h"
#include "src/command.h"
#include "src/machine/limits_print.h"
#include "src/models/kv_files_print.h"
#include "src/models/models.h"
#include "src/settings.h"
#include "ui/words/clean.h"
#include "ui/words/cluster.h"

/* The columns, in the order in which they are printed. */
enum column {
    COLUMN_NAME,
    COLUMN_SIZE,
    COLUMN_TYPE,
    COLUMN_CONTEXT,
    COLUMN_WHERE,
    COLUMN_HERE,
    N_COLUMN
};

static const struct {
    const char *title;
    bool is_number;
} columns[N_COLUMN] = {
    [COLUMN_NAME] = { "NAME", false },   [COLUMN_SIZE] = { "SIZE", true },
    [COLUMN_TYPE] = { "TYPE", false },   [COLUMN_CONTEXT] = { "CONTEXT", true },
    [COLUMN_WHERE] = { "WHERE", false }, [COLUMN_HERE] = { "HERE", false },
};

#define GAP 2 /* blanks between two columns */

static void cell_text(const struct mw_found *f, enum column column, char *buf, size_t n)
{
    buf[0] = '\0';
    switch (column) {
    case COLUMN_NAME: snprintf(buf, n, "%s", f->name); break;
    case COLUMN_SIZE: units_size(buf, n, f->file_bytes); break;
    case COLUMN_TYPE: snprintf(buf, n, "%s", f->type); break;
    case COLUMN_CONTEXT:
        if (f->n_ctx_train > 0)
            numbers_count(buf, n, f->n_ctx_train);
        break;
    case COLUMN_WHERE: snprintf(buf, n, "%s", mw_store_name(f->store)); break;
    case COLUMN_HERE:
        mw_fit_text(f, buf, n);
        /* A row has the reason; opening the model also says what to do. */
        if (f->fit >= MW_FIT_UNSUPPORTED && strstr(buf, "; ") != NULL)
            *strstr(buf, "; ") = '\0';
        break;
    case N_COLUMN: break;
    }
}

struct table {
    int width[N_COLUMN]; /* 0: left out */
    const struct mw_found **models;
    size_t n;
};

static int sum_width(const struct table *t)
{
    int sum = -GAP;

    for (int c = 0; c < N_COLUMN; c++)
        sum += t->width[c] > 0 ? t->width[c] + GAP : 0;
    return sum;
}

static void measure(struct table *t)
{
    char text[512];

    for (int c = 0; c < N_COLUMN; c++) {
        t->width[c] = (int)strlen(columns[c].title);
        for (size_t i = 0; i < t->n; i++) {
            int width;

            cell_text(t->models[i], (enum column)c, text, sizeof text);
            width = cluster_width(text, strlen(text));
            t->width[c] = width > t->width[c] ? width : t->width[c];
        }
    }
}

/* Cut a column to `least` columns of the terminal if the table is too wide. */
static void cut(struct table *t, enum column column, int least, int terminal)
{
    int over = sum_width(t) - terminal, width = t->width[column] - over;

    if (over > 0 && t->width[column] > least)
        t->width[column] = width > least ? width : least;
}

/* Fit the table to the terminal: cut long reasons, leave out the less important columns, then
 * cut outlooks and names in turn. */
static void fit(struct table *t, int terminal)
{
    static const enum column less_important[] = { COLUMN_WHERE, COLUMN_CONTEXT, COLUMN_TYPE };

    measure(t);
    if (terminal == 0)
        return;
    cut(t, COLUMN_HERE, 36, terminal);
    for (size_t i = 0; i < 3 && sum_width(t) > terminal; i++)
        t->width[less_important[i]] = 0;
    cut(t, COLUMN_NAME, 30, terminal);
    cut(t, COLUMN_HERE, 20, terminal);
    cut(t, COLUMN_NAME, 14, terminal);
    cut(t, COLUMN_HERE, 8, terminal);
    if (sum_width(t) < terminal)
        t->width[COLUMN_HERE] += terminal - sum_width(t);
}

/* Print text in a column, cut with "..." if it is too wide: sentences, which are in the last
 * column, after a word. */
static void print_cell(const char *text, int width, bool is_number, bool is_last)
{
    size_t n = strlen(text);
    int used = cluster_width(text, n);
    bool is_cut = used > width;

    if (is_cut) {
        const char *blank;

        n = cluster_fit(text, n, width - 3);
        blank = is_last && text[n] != ' ' ? memrchr(text, ' ', n) : NULL;
        if (blank != NULL)
            n = (size_t)(blank - text);
        used = cluster_width(text, n) + 3;
    }
    printf("%*s%.*s%s%*s", is_number ? width - used : 0, "", (int)n, text, is_cut ? "..." : "",
           is_number || is_last ? 0 : width - used, "");
}

static void print_table(const struct table *t)
{
    char text[512];

    for (size_t row = 0; row <= t->n; row++) {
        for (int c = 0; c < N_COLUMN; c++) {
            bool is_last = c == N_COLUMN - 1;

            if (t->width[c] == 0)
                continue;
            if (row > 0)
                cell_text(t->models[row - 1], (enum column)c, text, sizeof text);
            print_cell(row == 0 ? columns[c].title : text, t->width[c], columns[c].is_number,
                       is_last);
            if (!is_last)
                printf("%*s", GAP, "");
        }
        putchar('\n');
    }
}

static void print_json(const struct table *t)
{
    struct json j;

    json_start_stream(&j, stdout);
    json_array(&j, NULL);
    for (size_t i = 0; i < t->n; i++) {
        const struct mw_found *f = t->models[i];
        char outlook[512];

        json_object(&j, NULL);
        json_string(&j, "name", f->name);
        json_string(&j, "path", f->path);
        json_string(&j, "where", mw_store_name(f->store));
        json_string(&j, "beside", mw_parts_text(f->parts, outlook, sizeof outlook));
        json_u64(&j, "file_bytes", f->file_bytes);
        json_u64(&j, "changed", (uint64_t)f->changed_s);
        json_u64(&j, "used", (uint64_t)f->used_s);
        json_string(&j, "arch", f->arch);
        json_string(&j, "type", f->type);
        json_u64(&j, "n_ctx_train", f->n_ctx_train);
        json_u64(&j, "n_param", f->n_param);
        json_bool(&j, "supported", f->fit < MW_FIT_UNSUPPORTED);
        mw_fit_text(f, outlook, sizeof outlook);
        json_bool(&j, "fits", f->fit == MW_FIT_FITS || f->fit == MW_FIT_STREAMS);
        json_string(&j, "here", outlook);
        json_u64(&j, "budget_bytes", f->plan.budget_bytes);
        json_u64(&j, "sum_bytes", f->plan.sum_bytes);
        json_u64(&j, "streamed_bytes", f->plan.streamed_bytes);
        json_double(&j, "decode_tps", f->plan.decode_tps, 6);
        json_string(&j, "binds", mw_binds_name(f->plan.binds));
        if (f->plan.decode_tps > 0)
            limits_json(&j, &f->limits);
        else
            json_null(&j, "limits");
        json_end(&j);
    }
    json_end(&j);
    json_line(&j);
}

/* Columns of the terminal; 0: standard output is not one, so nothing is cut. */
static int terminal_width(void)
{
    struct winsize size;

    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        return 0;
    return size.ws_col > 0 ? size.ws_col : 80;
}

/* Show how many are described once it takes a while, as the first time. */
static void show_progress(struct progress *p, size_t done, size_t n)
{
    char text[64];

    if (clock_ns() - p->from_ns < PROGRESS_EVERY_MS * 1000000ull || !progress_is_due(p))
        return;
    snprintf(text, sizeof text, "reading headers, %zu of %zu", done, n);
    progress_text(p, text);
}

static int describe_all(const struct mw_options *engine, struct mw_models *m, struct err *e)
{
    struct mw_describe_options how = models_describe_options();
    struct mw_describer *d;
    struct progress progress;
    size_t n = mw_models_count(m);

    if (mw_describer_new(&d, engine, &how, e) != 0)
        return -1;
    progress_open(&progress, false);
    for (size_t i = 0; i < n; i++) {
        show_progress(&progress, i, n);
        mw_describe(d, m, i);
    }
    progress_clear(&progress);
    mw_describer_free(d);
    return 0;
}

/* List those that the filter, which may be NULL, lets through. */
static int list_models(const struct options *o, struct mw_models *m, const char *filter,
                       struct table *t, struct err *e)
{
    struct settings_notice notice;
    struct mw_options engine;

    settings_engine(o, &engine, &notice);
    settings_report(o, &notice);
    if (describe_all(&engine, m, e) != 0)
        return -1;
    for (size_t i = 0; i < mw_models_count(m); i++)
        if (filter == NULL || mw_found_has(mw_models_at(m, i), filter))
            t->models[t->n++] = mw_models_at(m, i);
    if (o->json) {
        print_json(t);
    } else if (t->n > 0) {
        fit(t, terminal_width());
        print_table(t);
    }
    return 0;
}

static void print_names(const struct mw_models *m)
{
    for (size_t i = 0; i < mw_models_count(m); i++)
        puts(mw_models_at(m, i)->name);
}

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Whether the argument is a folder rather than words: "models" may be either, and is words. */
static bool names_a_folder(const char *arg)
{
    return (strchr(arg, '/') != NULL || arg[0] == '.') && is_folder(arg);
}

static void say_nothing_found(const char *arg, bool in_folder)
{
    char clean[300];

    if (arg != NULL)
        clean_line(clean, sizeof clean, arg, strlen(arg));
    if (arg == NULL)
        fputs("memwall: no models found; memwall-list(1) names the folders it looks in\n", stderr);
    else if (in_folder)
        fprintf(stderr, "memwall: there are no models in the folder \"%s\"\n", clean);
    else if (is_folder(arg))
        fprintf(stderr, "memwall: no model has \"%s\" in its name, architecture, type or place; "
                        "\"memwall list ./%s\" lists that folder\n", clean, clean);
    else if (strchr(arg, '/') != NULL && access(arg, F_OK) == 0)
        fprintf(stderr, "memwall: \"%s\" is not a folder; \"memwall inspect %s\" describes a "
                        "model file\n", clean, clean);
    else
        fprintf(stderr, "memwall: no model has \"%s\" in its name, architecture, type or place\n",
                clean);
}

static int run_list(const struct options *o)
{
    bool in_folder = o->arg != NULL && names_a_folder(o->arg);
    const struct mw_place folder = { MW_STORE_FOLDER, o->arg };
    const struct mw_places one = { .place = &folder, .n = 1 };
    struct err e = ERR_INIT;
    struct table t = { .n = 0 };
    struct mw_models *m;
    int rc = 0;

    if (o->kv_files)
        return kv_files_print(o->json, &e) == 0 ? report_end(EXIT_OK) : report_error(&e);
    if (mw_models_find(&m, in_folder ? &one : models_places(), &e) != 0)
        return report_error(&e);
    if (o->names) {
        print_names(m);
        mw_models_free(m);
        return EXIT_OK;
    }
    mw_models_sort(m, (enum mw_models_order)o->sort);
    t.models = calloc(mw_models_count(m) + 1, sizeof t.models[0]);
    rc = t.models != NULL ? list_models(o, m, in_folder ? NULL : o->arg, &t, &e)
                          : err_memory(&e, "the table of models");
    if (rc == 0 && t.n == 0 && !o->json)
        say_nothing_found(mw_models_count(m) == 0 && !in_folder ? NULL : o->arg, in_folder);
    free(t.models);
    mw_models_free(m);
    return rc == 0 ? EXIT_OK : report_error(&e);
}

const struct command cmd_list = {
    .name = "list",
    .args = "[FILTER | FOLDER]",
    .help = "list the models on this machine, and how they would run",
    .about = "List the models in the folders of memwall, the Hugging Face hub, Ollama,\n"
             "LM Studio and llama.cpp, in the current folder, and those that were opened\n"
             "before.  A name of the list can be given to -m.  FILTER is words that name,\n"
             "architecture, type or place must contain; of FOLDER, which is written with a\n"
             "slash, only the models in it are listed.  Only headers are read.",
    .examples = "memwall list\n"
                "memwall list \"gemma q4\" --memory 2G\n"
                "memwall list ./\n"
                "memwall list --sort recent --json\n"
                "memwall list --kv-files\n",
    .asks = "models installed",
    .bit = CMD_LIST,
    .takes_arg = true,
    .reads_config = true,
    .run = run_list,
};
