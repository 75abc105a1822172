/*
 * show.h - what a server shows: a line on standard error for each request that is over, or in a
 * terminal the dashboard with the queue and the request that is being answered.
 */
#ifndef MEMWALL_SRC_SERVE_SHOW_H
#define MEMWALL_SRC_SERVE_SHOW_H

#include "src/serve/job.h"
#include "ui/ui.h"

struct show {
    bool quiet;
    struct ui_serving_screen *screen; /* NULL: lines on standard error */
    struct ui_serving text;
    uint64_t next_ns; /* when the next picture is due */
    int fd[2];        /* of the screen: keys and signals; -1 without one */
};

/* Take the terminal if ui is not NULL.  Call it before threads start.  -1 with *e. */
int show_open(struct show *w, bool quiet, const struct ui_options *ui,
              const struct ui_paths *paths, struct err *e);
void show_close(struct show *w);

/* A line about a request, or a notice: n bytes. */
void show_line(struct show *w, const char *text, size_t n);

/* The state of a server. */
struct show_now {
    const char *model, *address;
    bool is_ready;
    uint32_t connections, waiting;
    const struct job *running; /* NULL: none */
};

/* Whether a picture is due, which needs a sample. */
bool show_is_due(const struct show *w);
/* Draw, and take keys.  sample NULL: none is due.  Returns 0, or 128 + n if the person stops the
 * server, as signal n would. */
int show_draw(struct show *w, const struct show_now *now, const struct mw_sample *sample);

#endif
