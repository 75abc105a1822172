/* memwall replay: play a recording in the dashboard, or print its end as text or JSON. */
#include "config.h"

#include <stdio.h>
#include <unistd.h>

#include "engine/base/lookalike.h"
#include "src/base/paths.h"
#include "src/command.h"
#include "src/settings.h"
#include "src/text/once.h"
#include "ui/dash/player.h"
#include "ui/ui.h"
#include "ui/words/path.h"

static int print(const struct options *o, struct err *e)
{
    struct once_look look;

    if (o->json)
        return player_print_json(path_expanded(o->arg), stdout, e);
    once_look(o, &look);
    return player_print(path_expanded(o->arg), look.width, look.height, look.ascii, stdout, e);
}

/* Without a terminal, print the end of the recording. */
static int play(const struct options *o, struct err *e)
{
    struct ui_replay_options r = { .path = path_expanded(o->arg), .speed = o->speed };
    struct paths paths = { 0 };
    struct err ignored = ERR_INIT;

    settings_screen(o, &r.ui);
    if (r.ui.plain || !ui_can_draw())
        return print(o, e);
    (void)paths_find(&paths, &ignored); /* only the user's own themes need it */
    r.paths = (struct ui_paths){ paths.config_file, paths.config_dir, paths.state_dir,
                                 paths.data_dir };
    return ui_replay(&r, e);
}

static int run_replay(const struct options *o)
{
    struct err e = ERR_INIT;
    int rc;

    if (o->arg == NULL) {
        err_set(&e, ERR_ARGUMENT, "no recording given; name a file written with --telemetry");
        return report_usage(&cmd_replay, &e);
    }
    rc = o->once || o->json ? print(o, &e) : play(o, &e);
    if (rc < 0 && access(path_expanded(o->arg), F_OK) != 0)
        (void)lookalike_explain(&e, o->arg);
    if (rc < 0)
        return report_error(&e);
    return rc;
}

const struct command cmd_replay = {
    .name = "replay",
    .args = "FILE",
    .help = "play a recording made with --telemetry in the dashboard",
    .about = "Space pauses, . steps to the next token or second, + and - change the speed,\n"
             "Left and Right (or < and >) go back and forward, Up and Down inspect a layer,\n"
             "? explains the dashboard, q quits.  --once prints the dashboard at the end of\n"
             "the recording; --json prints its figures.",
    .examples = "memwall run -m model.gguf --telemetry log.jsonl \"Hello\"\n"
                "memwall replay log.jsonl\n"
                "memwall replay --once log.jsonl\n",
    .asks = "recording recorded",
    .bit = CMD_REPLAY,
    .takes_arg = true,
    .files = ".jsonl",
    .reads_config = true,
    .run = run_replay,
};
