/*
 * setting_check.h - check the values that name a theme or a model.
 *
 * options_set() takes any name, because it does not know the folders.
 */
#ifndef MEMWALL_UI_OPTIONS_SETTING_CHECK_H
#define MEMWALL_UI_OPTIONS_SETTING_CHECK_H

#include "ui/options/options.h"

struct setting_folders {
    const char *config_dir;         /* of the user's themes; may be NULL */
    const struct mw_places *models; /* NULL: names of models are not checked */
};

/* Returns -1 with *e if there is no theme or model of this name.  Accepts the values of all
 * other options. */
int setting_check(enum option_id id, const char *value, const struct setting_folders *in,
                  struct err *e);

#endif
