/* See once.h. */
#include "config.h"

#include "src/text/once.h"

#include <sys/ioctl.h>

#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/machine/kept_limits.h"
#include "ui/dash/dash.h"

#define TEXT_WIDTH  80 /* without a terminal, COLUMNS and LINES */
#define TEXT_HEIGHT 40

/* Read a number from 1 to 1000 from the environment. */
static int from_environment(const char *name, int otherwise)
{
    const char *text = getenv(name);
    long n = text != NULL ? strtol(text, NULL, 10) : 0;

    return n > 0 && n <= 1000 ? (int)n : otherwise;
}

void once_look(const struct options *o, struct once_look *out)
{
    struct winsize size;

    out->ascii = o->ui.ascii || (!o->ui.utf8 && strcmp(nl_langinfo(CODESET), "UTF-8") != 0);
    out->width = from_environment("COLUMNS", TEXT_WIDTH);
    out->height = from_environment("LINES", TEXT_HEIGHT);
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 1) {
        out->width = size.ws_col;
        out->height = size.ws_row - 1;
    }
    canvas_fit(&out->height, &out->width);
}

static int print(const struct options *o, const struct mw_sample *s, struct err *e)
{
    struct once_look look;

    if (o->json) {
        ui_dash_json(s, stdout);
        return 0;
    }
    once_look(o, &look);
    return ui_dash_once(s, look.width, look.height, look.ascii, stdout, e);
}

int once_chat(const struct options *o, const struct mw_options *engine, struct err *e)
{
    struct mw_sample *sample = calloc(1, sizeof *sample);
    struct mw_model *model = NULL;
    struct mw_session *session = NULL;
    struct mw_watch *watch = NULL;
    int rc = -1;

    if (sample == NULL) {
        err_memory(e, "the figures");
    } else if (mw_model_open_within(&model, o->model, engine->memory_bytes,
                                    engine->caller_bytes, e) == 0 &&
               mw_head_attach(model, o->model, engine, e) == 0) {
        limits_ensure_shown(model, o->model, engine, false);
        /* Start watching before the session: memory in use now belongs to the program. */
        if (mw_watch_new(&watch, model, e) == 0 &&
            mw_session_open(&session, model, engine, e) == 0) {
            mw_session_sample(session, sample);
            mw_watch_complete(watch, sample);
            rc = print(o, sample, e);
        }
    }
    mw_watch_free(watch);
    if (session != NULL)
        mw_session_close(session);
    if (model != NULL)
        mw_model_close(model);
    free(sample);
    return rc;
}
