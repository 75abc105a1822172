/* See setting_check.h. */
#include "config.h"

#include "ui/options/setting_check.h"

#include <limits.h>
#include <unistd.h>

#include "ui/look/theme.h"
#include "ui/words/path.h"

static int check_theme(const char *name, const char *config_dir, struct err *e)
{
    struct theme unused;

    return theme_find(&unused, name, config_dir, false, e);
}

static int check_model(const char *name, const struct mw_places *places, struct err *e)
{
    char expanded[PATH_MAX], path[PATH_MAX];

    path_expand(expanded, sizeof expanded, name);
    if (mw_models_resolve(places, expanded, path, sizeof path, NULL, NULL, e) != 0)
        return -1;
    return access(path, R_OK) == 0 ? 0 : err_sys(e, "cannot open \"%.150s\"", path);
}

int setting_check(enum option_id id, const char *value, const struct setting_folders *in,
                  struct err *e)
{
    if (id == OPT_THEME)
        return check_theme(value, in->config_dir, e);
    if (id == OPT_MODEL && in->models != NULL)
        return check_model(value, in->models, e);
    return 0;
}
