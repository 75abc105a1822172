/*
 * settings.h - options of the command line as the engine and the screen take them.
 */
#ifndef MEMWALL_SRC_SETTINGS_H
#define MEMWALL_SRC_SETTINGS_H

#include "engine/memwall.h"
#include "src/options.h"
#include "ui/ui.h"

/* What the person should know about the settings before the engine starts. */
struct settings_notice {
    char lowered[320]; /* the budget is lower than the one given, and why; "": it is not */
    bool is_mapped;    /* weights are mapped: the budget does not cover them */
};

/* -1 with *e naming the option.  Texts in *out live as long as *o's. */
int settings_engine(const struct options *o, struct mw_options *out,
                    struct settings_notice *notice, struct err *e);

/* Print it to standard error; with --quiet only that the budget is lowered. */
void settings_report(const struct options *o, const struct settings_notice *notice);

/* Sampling: the model's recommendation where nothing was given. */
void settings_sampling(const struct options *o, const struct mw_model *m,
                       struct mw_sampling *out);

/* Of that only what was given. */
void settings_overlay(const struct options *o, struct mw_sampling *out);

/* Fill in what the options and the model's recommendation say of answers; out->engine stays. */
void settings_chat(const struct options *o, const struct mw_model *m,
                   struct mw_chat_options *out);

/* What the screen looks like. */
void settings_screen(const struct options *o, struct ui_options *out);

#endif
