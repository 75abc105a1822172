/* See page.h. */
#include "config.h"

#include "src/report/page.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/json_write.h"
#include "engine/base/numbers.h"
#include "src/report/page_html.h"
#include "src/report/page_results.h"
#include "ui/words/markup.h"

#define WALL_POINTS 64

void page_note(struct page *p, const char *fmt, ...)
{
    va_list ap;

    if (p->n_note == PAGE_NOTES)
        return;
    va_start(ap, fmt);
    vsnprintf(p->note[p->n_note], sizeof p->note[0], fmt, ap);
    va_end(ap);
    page_facts_hide(p->note[p->n_note++]);
}

static void write_notes(const struct page *p, FILE *to)
{
    for (size_t i = 0; i < p->n_note; i++) {
        fputs("<p class=\"dim\">Note: ", to);
        markup_text(to, p->note[i]);
        fputs("</p>\n", to);
    }
}

/* --- sections --- */

static void write_navigation(const struct page *p, FILE *to)
{
    fputs("<nav aria-label=\"Sections\"><ul>\n<li><a href=\"#summary\">Summary</a></li>\n", to);
    if (p->plan != NULL)
        fputs("<li><a href=\"#plan\">The plan</a></li>\n", to);
    if (p->bench.n_point > 0)
        fputs("<li><a href=\"#bench\">Bench</a></li>\n", to);
    if (p->sweep.n_point > 0)
        fputs("<li><a href=\"#sweep\">Sweep</a></li>\n", to);
    if (p->track != NULL)
        fputs("<li><a href=\"#recording\">The recording</a></li>\n", to);
    if (p->facts.n > 0)
        fputs("<li><a href=\"#machine\">This machine</a></li>\n", to);
    fputs("<li><a href=\"#about\">About this page</a></li>\n</ul></nav>\n", to);
}

/* The measured points of the wall: the sweep, if it is of the same model. */
static size_t wall_points(const struct page *p, struct chart_point *out)
{
    if (p->plan == NULL || strcmp(p->sweep.model.name, p->plan->info.name) != 0 ||
        strcmp(p->sweep.model.type, p->plan->info.type) != 0)
        return 0;
    return page_results_wall(&p->sweep, out, WALL_POINTS);
}

static void write_plan(const struct page *p, FILE *to)
{
    struct chart_point measured[WALL_POINTS];

    page_html_section(to, "plan", "The plan");
    page_html_text(to,
                   "How the memory is divided before anything is loaded, and the speed that "
                   "follows from the measured limits of this machine.");
    if (p->plan->n_point > 1)
        page_plan_curve(p->plan, measured, wall_points(p, measured), to);
    page_plan_html(p->plan, to);
    page_html_section_end(to);
}

/* Name the model and the time of results that were measured before. */
static void write_origin(const struct results *r, bool is_own, FILE *to)
{
    if (is_own)
        page_html_text(to,
                       "Measured for this report with few tokens, so the spread between runs "
                       "is not known.");
    else
        page_html_text(to, "%s, %s, measured %s by memwall %s%s%s with %s, %u processors.",
                       r->model.name[0] != '\0' ? r->model.name : r->model.arch, r->model.type,
                       r->started, r->version, r->options[0] != '\0' ? " " : "", r->options,
                       r->machine.cpu, r->machine.n_cpu);
    if (!r->is_complete)
        page_html_text(to, "The measurement was stopped before its end.");
}

static void write_bench(const struct page *p, FILE *to)
{
    page_html_section(to, "bench", "Bench");
    write_origin(&p->bench, p->is_own_bench, to);
    page_results_table(&p->bench, "Medians of the runs; ~ marks predictions", to);
    page_results_chart(&p->bench, "bench-chart", to);
    page_html_section_end(to);
}

static void write_sweep(const struct page *p, FILE *to)
{
    struct chart_point measured[WALL_POINTS];

    page_html_section(to, "sweep", "Sweep");
    write_origin(&p->sweep, p->is_own_sweep, to);
    if (wall_points(p, measured) == 0) /* else the chart of the plan has them */
        page_results_chart(&p->sweep, "sweep-chart", to);
    page_results_table(&p->sweep, "Medians of the runs; ~ marks predictions", to);
    page_html_section_end(to);
}

static void write_track(const struct page *p, FILE *to)
{
    const struct track *t = p->track;
    char budget[16], rate[24];
    double mean, measured, predicted;

    /* The same answers were measured for the table before. */
    mean = page_decode(p, &measured, &predicted) && p->is_own_track ? 0 : track_mean_tps(t);
    page_html_section(to, "recording", "The recording");
    page_html_text(to, "%s%s%s, %s, with a budget of %s, %s: %zu tokens%s%s%s.",
                   p->is_own_track ? "Recorded while this report was made: " : "", t->run.model,
                   t->run.model[0] != '\0' ? "" : t->run.arch, t->run.type,
                   units_size(budget, sizeof budget, t->run.budget_bytes), t->run.io,
                   t->n_token, mean > 0 ? " at a mean of " : "",
                   mean > 0 ? numbers_measured(rate, sizeof rate, mean) : "",
                   mean > 0 ? " tokens per second" : "");
    if (t->broken[0] != '\0')
        page_html_text(to, "The recording is damaged and was read up to %s.", t->broken);
    track_html(t, to);
    page_html_section_end(to);
}

static void write_machine(const struct page *p, FILE *to)
{
    page_html_section(to, "machine", "This machine");
    page_html_text(to,
                   "Measured by memwall doctor. A figure that the system does not report is "
                   "a dash with the reason.");
    page_facts_html(&p->facts, to);
    page_html_section_end(to);
}

static void write_about(const struct page *p, FILE *to)
{
    page_html_section(to, "about", "About this page");
    write_notes(p, to);
    page_html_text(to,
                   "Sizes are in powers of 1024 (GiB), rates of disks and memory in powers of "
                   "1000 (GB/s). Predictions are marked as such or with ~.");
    page_html_text(to,
                   "The page shows the processor, the sizes of memory and swap, the limits of "
                   "the control group, file system and device under the model, and name, sizes "
                   "and speeds of the model. It has neither the name of the machine or of the "
                   "user, nor folders, addresses or serial numbers, and no text of prompts or "
                   "answers.");
    page_html_text(to,
                   "All figures are in the page as JSON, in the script elements whose ids "
                   "begin with \"data-\". No script of this page runs, and it loads nothing.");
    page_html_section_end(to);
}

/* --- data --- */

static void data(const struct page *p, const char *id,
                 void (*write)(const struct page *p, FILE *f), FILE *to)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);

    if (f == NULL)
        return;
    write(p, f);
    if (fclose(f) == 0)
        page_html_data(to, id, text, n);
    free(text);
}

static void data_page(const struct page *p, FILE *f)
{
    struct json j;

    json_start_stream(&j, f);
    json_object(&j, NULL);
    json_u64(&j, "version", 1);
    json_string(&j, "memwall", mw_version());
    json_u64(&j, "made", (uint64_t)p->made_s);
    json_string(&j, "file", p->file);
    json_bool(&j, "complete", !p->is_stopped && p->n_note == 0);
    json_array(&j, "notes");
    for (size_t i = 0; i < p->n_note; i++)
        json_string(&j, NULL, p->note[i]);
    json_end(&j);
    json_end(&j);
    json_line(&j);
}

static void data_facts(const struct page *p, FILE *f)
{
    page_facts_json(&p->facts, f);
}

static void data_plan(const struct page *p, FILE *f)
{
    page_plan_json(p->plan, f);
}

static void data_bench(const struct page *p, FILE *f)
{
    results_json(f, &p->bench);
}

static void data_sweep(const struct page *p, FILE *f)
{
    results_json(f, &p->sweep);
}

static void data_track(const struct page *p, FILE *f)
{
    track_json(p->track, f);
}

static void write_data(const struct page *p, FILE *to)
{
    data(p, "report", data_page, to);
    if (p->facts.n > 0)
        data(p, "doctor", data_facts, to);
    if (p->plan != NULL)
        data(p, "plan", data_plan, to);
    if (p->bench.n_point > 0)
        data(p, "bench", data_bench, to);
    if (p->sweep.n_point > 0)
        data(p, "sweep", data_sweep, to);
    if (p->track != NULL)
        data(p, "recording", data_track, to);
}

void page_write(const struct page *p, FILE *to)
{
    char title[256], below[128], date[32];
    const char *model = p->plan == NULL                 ? ""
                        : p->plan->info.name[0] != '\0' ? p->plan->info.name
                                                        : p->plan->info.arch;
    struct tm when;
    time_t made = (time_t)p->made_s;

    snprintf(title, sizeof title, "Memory wall report%s%s", model[0] != '\0' ? ": " : "",
             model);
    strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", gmtime_r(&made, &when));
    snprintf(below, sizeof below, "memwall %s, %s", mw_version(), date);
    page_html_begin(to, title, below);
    write_navigation(p, to);
    page_html_section(to, "summary", "Summary");
    if (p->is_stopped)
        page_html_text(to, "The measurement was stopped; the page has what there was.");
    page_words(p, to);
    page_html_section_end(to);
    if (p->plan != NULL)
        write_plan(p, to);
    if (p->bench.n_point > 0)
        write_bench(p, to);
    if (p->sweep.n_point > 0)
        write_sweep(p, to);
    if (p->track != NULL)
        write_track(p, to);
    if (p->facts.n > 0)
        write_machine(p, to);
    write_about(p, to);
    fputs("</main>\n", to);
    write_data(p, to);
    page_html_end(to);
}
