/* memwall demo: the tour of the memory wall, with the guide and a disk that is slowed down, or
 * the comparison of sides.h for another model. */
#include "config.h"

#include <math.h>
#include <unistd.h>

#include "src/base/paths.h"
#include "src/command.h"
#include "src/machine/kept_limits.h"
#include "src/measure/sides.h"
#include "src/models/models.h"
#include "src/settings.h"
#include "ui/engine/local.h"
#include "ui/ui.h"

#define DEMO_CTX      512
#define DEMO_CHUNK    32  /* a larger one would take the memory of the weights that are shown */
#define TOKEN_SECONDS 0.3 /* of a token that reads all weights: slow enough to watch */

static void limits(struct mw_model *m, const char *path, const struct mw_options *o)
{
    limits_ensure(m, path, o, LIMITS_MEASURE);
}

/* Round to two digits: the rate is shown all the time. */
static uint64_t round_rate(double bytes_s)
{
    double unit = pow(10, floor(log10(bytes_s)) - 1);

    return (uint64_t)(round(bytes_s / unit) * unit);
}

/* Choose the smallest budget, and a disk that reads all weights in TOKEN_SECONDS unless this
 * one is slower. */
static int choose(struct mw_model *m, const char *path, struct mw_options *o, struct err *e)
{
    struct mw_model_info info;
    struct plan plan;
    uint32_t ignored;

    mw_model_info(m, &info);
    o->n_ctx = DEMO_CTX;
    if (info.n_ctx_train > 1 && info.n_ctx_train < 2 * DEMO_CTX)
        o->n_ctx = info.n_ctx_train / 2; /* the last step doubles it */
    o->chunk = DEMO_CHUNK;
    o->blas = MW_BLAS_NEVER; /* its memory would hide that of the weights */
    if (mw_plan_fit(m, o, &o->memory_bytes, &ignored, e) != 0)
        return -1;
    limits_ensure_shown(m, path, o, false); /* within this budget */
    if (mw_plan(m, o, &plan, e) != 0)
        return -1;
    if (plan.streamed_bytes > 0 &&
        !(plan.pass_tps > 0 && plan.pass_tps < 1 / TOKEN_SECONDS))
        o->disk_rate = round_rate((double)plan.streamed_bytes / TOKEN_SECONDS);
    return 0;
}

static int use_model(struct options *o, struct err *e)
{
    struct mw_model *m;
    int rc;

    /* With its draft head, as the chat will open it. */
    if (settings_open(o->model, &o->chat.engine, &m, e) != 0)
        return -1;
    rc = choose(m, o->model, &o->chat.engine, e);
    mw_model_close(m);
    return rc;
}

/* Only a model on the command line counts, not one of the configuration file. */
static int find_model(struct options *o)
{
    struct err e = ERR_INIT, ignored = ERR_INIT;

    if (o->on_line[OPT_MODEL])
        return models_resolve(o, CMD_DEMO);
    o->model = NULL;
    if (models_use_guide(o, &ignored) == 0)
        return EXIT_OK;
    err_set(&e, ERR_ARGUMENT,
            "the guide is not installed; \"memwall demo --tour MODEL\" takes the tour with "
            "another model");
    return report_error(&e);
}

/* Settings that only the comparison has need a model. */
static int check(const struct options *o, struct err *e)
{
    static const enum option_id of_sides[] = { OPT_MEMORY,     OPT_CTX,  OPT_PREDICT,
                                               OPT_TIME_LIMIT, OPT_JSON, OPT_QUIET };

    for (size_t i = 0; i < sizeof of_sides / sizeof of_sides[0]; i++)
        if (o->on_line[of_sides[i]] && o->tour)
            return err_set(e, ERR_ARGUMENT, "--%s and --tour cannot be combined",
                           options_table[of_sides[i]].name);
        else if (o->on_line[of_sides[i]] && !o->on_line[OPT_MODEL])
            return err_set(e, ERR_ARGUMENT,
                           "--%s needs a model: \"memwall demo -m MODEL\" compares memwall with "
                           "mapped pages",
                           options_table[of_sides[i]].name);
    return 0;
}

static int take_tour(const struct options *o)
{
    struct options used = *o;
    struct ui_chat_options c = {
        .options = &used, .engine = &engine_local, .limits = limits, .tour = true
    };
    struct err e = ERR_INIT;
    struct paths paths;
    int rc;

    settings_screen(o, &used.ui);
    used.ui.plain = used.ui.plain || !isatty(STDOUT_FILENO) || !ui_can_draw();
    used.no_save = true;
    settings_disk(&used, &used.chat.engine);
    if (paths_find(&paths, &e) != 0)
        return report_error(&e);
    if (use_model(&used, &e) != 0)
        return report_error(&e);
    c.models = (struct ui_models){ models_places(), models_describe_options() };
    c.paths = (struct ui_paths){ paths.config_file, paths.config_dir, paths.state_dir,
                                 paths.data_dir };
    rc = ui_chat(&c, &e);
    return rc < 0 ? report_error(&e) : rc;
}

static int run_demo(const struct options *o)
{
    struct options used = *o;
    struct err e = ERR_INIT;
    int code;

    if (check(o, &e) != 0)
        return report_usage(&cmd_demo, &e);
    code = find_model(&used);
    if (code != EXIT_OK)
        return code;
    return o->on_line[OPT_MODEL] && !o->tour ? sides_run(&used) : take_tour(&used);
}

const struct command cmd_demo = {
    .name = "demo",
    .args = "[MODEL]",
    .help = "show the memory wall: a tour, or a model beside mapped pages",
    .about = "Without MODEL, open the chat with a small budget and a disk that is slowed down,\n"
             "ask the guide five questions, and change budget, drafts and context in between,\n"
             "so that stalls, pinned weights and the verdict change.  Space goes on, Esc ends\n"
             "the tour.  Then it is an ordinary chat, which is not saved.\n"
             "\n"
             "With MODEL, answer with the same memory budget twice: as memwall reads weights,\n"
             "and with mapped pages, as other programs do.  Both run in a control group with\n"
             "this limit, one after the other, and their speeds are shown side by side.",
    .examples = "memwall demo\n"
                "memwall demo --plain\n"
                "memwall demo -m model.gguf\n"
                "memwall demo -m model.gguf -b 1G --json\n"
                "memwall demo --tour model.gguf\n",
    .asks = "tour introduction",
    .bit = CMD_DEMO,
    .needs_model = true,
    .resolves = true,
    .has_guide = true,
    .reads_config = true,
    .run = run_demo,
};
