/* memwall replay: a recording in the dashboard, or its last moment as text or JSON. */
#include "config.h"

#include <sys/ioctl.h>

#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/command.h"
#include "src/paths.h"
#include "src/settings.h"
#include "ui/dash/player.h"
#include "ui/ui.h"

#define TEXT_WIDTH  80 /* of --once where nothing says otherwise */
#define TEXT_HEIGHT 40

/* A number of the environment from 1 to 1000. */
static int from_environment(const char *name, int otherwise)
{
    const char *text = getenv(name);
    long n = text != NULL ? strtol(text, NULL, 10) : 0;

    return n > 0 && n <= 1000 ? (int)n : otherwise;
}

/* The terminal's size, COLUMNS and LINES, or what a page has. */
static void text_size(int *width, int *height)
{
    struct winsize size;

    *width = from_environment("COLUMNS", TEXT_WIDTH);
    *height = from_environment("LINES", TEXT_HEIGHT);
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 1) {
        *width = size.ws_col;
        *height = size.ws_row - 1;
    }
}

static int print(const struct options *o, struct err *e)
{
    bool ascii = o->ascii || (!o->utf8 && strcmp(nl_langinfo(CODESET), "UTF-8") != 0);
    int width, height;

    if (o->json)
        return player_print_json(o->arg, stdout, e);
    text_size(&width, &height);
    return player_print(o->arg, width, height, ascii, stdout, e);
}

/* The dashboard needs a terminal: without one its last picture is what there is to show. */
static int play(const struct options *o, struct err *e)
{
    struct ui_replay_options r = { .path = o->arg, .speed = o->speed };
    struct paths paths = { 0 };
    struct err ignored = ERR_INIT;

    settings_screen(o, &r.ui);
    if (r.ui.plain || !ui_can_draw())
        return print(o, e);
    (void)paths_find(&paths, &ignored); /* only themes of one's own need it */
    r.paths = (struct ui_paths){ paths.config_file, paths.config_dir, paths.state_dir,
                                 paths.data_dir };
    return ui_replay(&r, e);
}

int cmd_replay(const struct options *o)
{
    struct err e = ERR_INIT;
    int rc;

    if (o->arg == NULL) {
        err_set(&e, ERR_ARGUMENT, "which recording? (a file that --telemetry wrote)");
        return report_usage(command_named("replay"), &e);
    }
    rc = o->once || o->json ? print(o, &e) : play(o, &e);
    if (rc < 0)
        return report_error(&e);
    return rc;
}
