/*
 * settings.h - convert the options of the command line for the engine and the screen.
 */
#ifndef MEMWALL_SRC_SETTINGS_H
#define MEMWALL_SRC_SETTINGS_H

#include "engine/memwall.h"
#include "ui/options/options.h"
#include "ui/ui.h"

/* Notices about the settings, for the user, before the engine starts. */
struct settings_notice {
    char lowered[320]; /* why the budget is lower than requested; "" if it is not */
    bool is_mapped;    /* weights are mapped, so the budget does not cover them */
};

/* Set what the engine may write to the disk: the cache folder, which is made, and keys and values
 * unless the options forbid it.  Every command plans with it, so all plans are the same. */
void settings_disk(const struct options *o, struct mw_options *engine);

/* The options of the engine, with a budget that this machine can give, and settings_disk(). */
void settings_engine(const struct options *o, struct mw_options *out,
                     struct settings_notice *notice);

/* For a command that draws no screen and keeps no chat: the engine plans no memory for them. */
void settings_no_screen(struct mw_options *engine);

/* Print the notices to standard error; with --quiet only that the budget is lowered. */
void settings_report(const struct options *o, const struct settings_notice *notice);

/* Open a model within the engine's budget, with the draft head that the options name or that is
 * beside the model.  -1 with *e. */
int settings_open(const char *path, const struct mw_options *engine, struct mw_model **out,
                  struct err *e);

/* Report a context that is longer than those the model was trained with. */
void settings_report_context(const struct options *o, const struct mw_model_info *info);

/* After a plan or a session: report that the system refuses OpenBLAS its buffers. */
void settings_report_products(const struct options *o, struct mw_model *m,
                              const struct mw_options *engine);

/* Fill in everything but out->engine from the options and the model's recommendation. */
void settings_chat(const struct options *o, const struct mw_model *m,
                   struct mw_chat_options *out);

void settings_screen(const struct options *o, struct ui_options *out);

/* Does the chat to resume bring the model?  It comes before the one of the configuration file, and
 * after the one of the command line. */
bool settings_chat_has_model(const struct options *o);

#endif
