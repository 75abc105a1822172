/* See show.h. */
#include "config.h"

#include "src/serve/show.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/clock.h"
#include "src/command.h"
#include "ui/words/clean.h"

#define EVERY_NS 250000000u /* between two pictures */

int show_open(struct show *w, bool quiet, const struct ui_options *ui,
              const struct ui_paths *paths, struct err *e)
{
    *w = (struct show){ .quiet = quiet, .fd = { -1, -1 } };
    if (ui == NULL)
        return 0;
    if (ui_serving_open(&w->screen, ui, paths, e) != 0)
        return -1;
    ui_serving_watch(w->screen, w->fd);
    return 0;
}

void show_close(struct show *w)
{
    ui_serving_close(w->screen);
    w->screen = NULL;
    w->fd[0] = w->fd[1] = -1;
}

void show_line(struct show *w, const char *text, size_t n)
{
    struct ui_serving *x = &w->text;

    if (w->screen == NULL) {
        if (!w->quiet)
            report_notice(text, n);
        return;
    }
    if (x->n_line == UI_SERVING_LINES) {
        memmove(x->line, x->line + 1, (UI_SERVING_LINES - 1) * sizeof x->line[0]);
        x->n_line--;
    }
    clean_line(x->line[x->n_line++], sizeof x->line[0], text, n);
    w->next_ns = 0;
}

bool show_is_due(const struct show *w)
{
    return w->screen != NULL && clock_ns() >= w->next_ns;
}

static void write_title(struct ui_serving *x, const struct show_now *now)
{
    char text[UI_SERVING_TEXT];

    snprintf(text, sizeof text,
             "%s%.120s on http://%s: %" PRIu32 " connection%s, %" PRIu32 " waiting",
             now->is_ready ? "" : "loading ", now->model, now->address, now->connections,
             now->connections == 1 ? "" : "s", now->waiting);
    clean_line(x->title, sizeof x->title, text, strlen(text));
}

static void write_now(struct ui_serving *x, const struct job *j, const struct mw_sample *s)
{
    double seconds;

    if (j == NULL) {
        snprintf(x->now, sizeof x->now, "no request is being answered");
        return;
    }
    seconds = (double)(clock_ns() - j->started_ns) / 1e9;
    if (!j->has_begun)
        snprintf(x->now, sizeof x->now, "a request begins, %.1f s", seconds);
    else if (s->state == MW_PREFILL)
        snprintf(x->now, sizeof x->now,
                 "prompt: %" PRIu64 " of %" PRIu64 " tokens, %" PRIu64 " more reused, %.1f s",
                 s->n_prompt_done, s->n_prompt, j->n_cached, seconds);
    else
        snprintf(x->now, sizeof x->now,
                 "answer: %" PRIu64 " tokens after a prompt of %" PRIu64 ", %.1f s",
                 s->n_decoded, j->n_prompt, seconds);
}

int show_draw(struct show *w, const struct show_now *now, const struct mw_sample *sample)
{
    int status;

    if (sample != NULL) {
        w->next_ns = clock_ns() + EVERY_NS;
        write_title(&w->text, now);
        write_now(&w->text, now->running, sample);
    }
    if (ui_serving_draw(w->screen, &w->text, sample))
        return 0;
    status = ui_serving_status(w->screen);
    return status != 0 ? status : 128 + SIGINT;
}
