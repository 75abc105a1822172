/* See settings.h. */
#include "config.h"

#include "engine/base/folder.h"
#include "engine/base/numbers.h"
#include "src/base/paths.h"
#include "src/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/command.h"

void settings_disk(const struct options *o, struct mw_options *engine)
{
    static struct paths paths;
    static bool has_folder;
    struct err ignored = ERR_INIT;

    if (!has_folder && paths_find(&paths, &ignored) == 0) /* --no-disk writes nothing */
        has_folder = o->no_disk ? access(paths.cache_dir, W_OK) == 0
                                : folder_make(paths.cache_dir) == 0;
    engine->cache_folder = has_folder ? paths.cache_dir : NULL;
    engine->is_private = o->no_save;
    engine->saves_kv = has_folder && !o->no_save && o->kv_space != OPTIONS_NO_SPACE;
}

void settings_engine(const struct options *o, struct mw_options *out,
                     struct settings_notice *notice)
{
    *out = o->chat.engine;
    settings_disk(o, out);
    *notice = (struct settings_notice){ .is_mapped = out->io == MW_IO_MMAP };
    if (out->memory_bytes != 0)
        mw_budget_lower(&out->memory_bytes, notice->lowered, sizeof notice->lowered);
}

void settings_no_screen(struct mw_options *engine)
{
    engine->caller_bytes = 0;
    engine->saves_kv = false;
}

void settings_report(const struct options *o, const struct settings_notice *notice)
{
    if (notice->lowered[0] != '\0')
        report_notice(notice->lowered, strlen(notice->lowered));
    if (notice->is_mapped && !o->quiet)
        report_notice(mw_mmap_notice(), strlen(mw_mmap_notice()));
}

void settings_report_context(const struct options *o, const struct mw_model_info *info)
{
    uint32_t n_ctx = o->chat.engine.n_ctx;
    char text[120], ctx[24], trained[24];
    int n;

    if (o->quiet || info->n_ctx_train == 0 || n_ctx <= info->n_ctx_train)
        return;
    n = snprintf(text, sizeof text,
                 "a context of %s is more than the %s tokens that the model was trained for",
                 numbers_count(ctx, sizeof ctx, n_ctx),
                 numbers_count(trained, sizeof trained, info->n_ctx_train));
    report_notice(text, (size_t)n);
}

void settings_report_products(const struct options *o, struct mw_model *m,
                              const struct mw_options *engine)
{
    const char *text = mw_products_notice(m, engine);

    if (!o->quiet && text[0] != '\0')
        report_notice(text, strlen(text));
    text = mw_mirror_notice(m, engine);
    if (!o->quiet && text[0] != '\0')
        report_notice(text, strlen(text));
}

void settings_chat(const struct options *o, const struct mw_model *m,
                   struct mw_chat_options *out)
{
    struct mw_options engine = out->engine;

    *out = o->chat;
    out->engine = engine;
    out->stop = o->stop;
    mw_sampling_default(m, &out->sampling);
    options_overlay(o, &out->sampling);
}

bool settings_chat_has_model(const struct options *o)
{
    return (o->last_chat || o->open_chat != NULL) && !o->on_line[OPT_MODEL] && o->server == NULL;
}

/* True if the terminal cannot draw a screen, or the user has set ACCESSIBLE. */
static bool is_plain_terminal(void)
{
    const char *term = getenv("TERM"), *accessible = getenv("ACCESSIBLE");

    return (accessible != NULL && accessible[0] != '\0') || term == NULL || term[0] == '\0' ||
           strcmp(term, "dumb") == 0;
}

void settings_screen(const struct options *o, struct ui_options *out)
{
    *out = o->ui;
    out->plain = out->plain || is_plain_terminal();
}

int settings_open(const char *path, const struct mw_options *engine, struct mw_model **out,
                  struct err *e)
{
    if (mw_model_open_within(out, path, engine->memory_bytes, engine->caller_bytes, e) != 0)
        return -1;
    if (mw_head_attach(*out, path, engine, e) == 0)
        return 0;
    mw_model_close(*out);
    *out = NULL;
    return -1;
}
