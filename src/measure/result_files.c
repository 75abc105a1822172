/* See result_files.h. */
#include "config.h"

#include "src/measure/result_files.h"

#include <sys/stat.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/new_file.h"
#include "src/measure/results_print.h"
#include "src/measure/sweep_chart.h"

enum format { FORMAT_JSON, FORMAT_CSV, FORMAT_MARKDOWN, FORMAT_SVG, FORMAT_PNG, N_FORMAT };

static const char *const endings[N_FORMAT] = { ".json", ".csv", ".md", ".svg", ".png" };

/* Returns an enum format, or -1. */
static int format_of(const char *path)
{
    const char *dot = strrchr(path, '.');

    for (int i = 0; dot != NULL && i < N_FORMAT; i++)
        if (strcmp(dot, endings[i]) == 0)
            return i;
    return -1;
}

/* Move the runs of the same points from an earlier result. */
static void take_runs(struct results *r, struct results *from)
{
    for (size_t i = 0; i < r->n_point; i++)
        for (size_t k = 0; k < from->n_point; k++) {
            struct point *to = &r->point[i], *old = &from->point[k], swap;
            uint32_t most = to->n_repeat;

            if (!point_is_same(to, old) || old->n_run == 0 || to->n_run > 0)
                continue;
            swap = *to;
            *to = *old;
            *old = swap;
            to->n_repeat = most;
            to->n_run = to->n_run < most ? to->n_run : most;
        }
}

static int resume(struct results *r, const char *path, struct err *e)
{
    struct results old;

    if (results_load(&old, path, e) != 0)
        return -1;
    if (!results_are_comparable(&old, r)) {
        results_free(&old);
        return err_set(e, ERR_ARGUMENT,
                       "\"%.120s\" is of another model, machine, version or option; --force "
                       "replaces it",
                       path);
    }
    r->model = old.model;
    take_runs(r, &old);
    results_free(&old);
    return 0;
}

static int check(struct result_files *f, struct results *r, const char *path, struct err *e)
{
    struct mw_output file = { path, f->o->force, "--force" };
    int format = format_of(path);

    if (format < 0 || (format >= FORMAT_SVG && f->svg == NULL))
        return err_set(e, ERR_ARGUMENT,
                       "\"%.120s\" does not end in .json, .csv%s, which choose the format",
                       path, f->svg != NULL ? ", .md, .svg or .png" : " or .md");
    if (format == FORMAT_PNG && !sweep_can_png())
        return err_set(e, ERR_UNSUPPORTED,
                       "\"%.120s\" needs rsvg-convert, which is not installed (Debian: "
                       "librsvg2-bin); FILE.svg needs nothing",
                       path);
    if (format != FORMAT_JSON)
        return mw_output_check(NULL, &file, e);
    if (f->json != NULL)
        return err_set(e, ERR_ARGUMENT, "two JSON files are too many");
    f->json = path;
    if (!f->o->force && access(path, F_OK) == 0 && resume(r, path, e) != 0)
        return -1;
    return result_files_save(f, r, e);
}

int result_files_open(struct result_files *f, const struct options *o, struct results *r,
                      struct err *e)
{
    f->o = o;
    f->json = NULL;
    for (size_t i = 0; o->output[i] != NULL; i++)
        if (check(f, r, o->output[i], e) != 0)
            return -1;
    return 0;
}

/* Draw into a file without a name, and convert that. */
static int write_png(const struct result_files *f, FILE *to, struct err *e)
{
    FILE *svg = tmpfile();
    int r = -1;

    if (svg == NULL)
        return err_sys(e, "cannot make a temporary file");
    if (f->svg(f->ctx, svg, e) == 0) {
        if (fflush(svg) != 0 || lseek(fileno(svg), 0, SEEK_SET) != 0)
            err_sys(e, "cannot write a temporary file");
        else
            r = sweep_png(fileno(svg), fileno(to), e);
    }
    fclose(svg);
    return r;
}

static int write_one(const struct result_files *f, const struct results *r, const char *path,
                     struct err *e)
{
    static const struct results_look markdown = { 0 };
    bool is_new = access(path, F_OK) != 0;
    struct new_file file;
    int result = 0;

    if (new_file_begin(&file, path, true, e) != 0)
        return -1;
    if (is_new) { /* readable by others, as far as the user's mask allows */
        mode_t mask = umask(0);

        umask(mask);
        (void)!fchmod(fileno(file.f), 0666 & ~mask);
    }
    switch (format_of(path)) {
    case FORMAT_JSON: results_json(file.f, r); break;
    case FORMAT_CSV: results_csv(file.f, r); break;
    case FORMAT_SVG: result = f->svg(f->ctx, file.f, e); break;
    case FORMAT_PNG: result = write_png(f, file.f, e); break;
    default: result = results_print(file.f, r, &markdown, e); break;
    }
    if (result == 0)
        return new_file_end(&file, e);
    new_file_drop(&file);
    return -1;
}

int result_files_save(const struct result_files *f, const struct results *r, struct err *e)
{
    return f->json != NULL ? write_one(f, r, f->json, e) : 0;
}

int result_files_write(const struct result_files *f, const struct results *r, struct err *e)
{
    for (size_t i = 0; f->o->output[i] != NULL; i++)
        if (write_one(f, r, f->o->output[i], e) != 0)
            return -1;
    return 0;
}
