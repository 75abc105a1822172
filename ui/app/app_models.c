/* /model: the list of models over the panes. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "ui/app/app.h"
#include "ui/talk/command_list.h"

int app_pick_model(struct app *a, struct err *e)
{
    struct ui_models models = talk_settings(a->talk)->models;
    const struct plan *plan = talk_plan(a->talk);
    struct pick *pick;

    /* The budget is the open model's: a header may take what its plan leaves. */
    models.describe.header_bytes =
        plan->budget_bytes > plan->sum_bytes ? plan->budget_bytes - plan->sum_bytes : 1;
    pick = pick_new(&models, &talk_options(a->talk)->engine, talk_model_path(a->talk),
                    talk_model_lasting(a->talk), e);
    if (pick == NULL)
        return -1;
    app_enter(a, MODE_MODELS);
    a->models.pick = pick;
    return 0;
}

void app_leave_models(struct app *a)
{
    pick_free(a->models.pick);
    a->models.pick = NULL;
}

static void open_chosen(struct app *a)
{
    char *path = strdup(pick_target(a->models.pick));

    app_enter(a, MODE_LINE);
    if (path != NULL)
        run_model(a->talk, path);
    free(path);
}

bool app_models_key(struct app *a, const struct key *key)
{
    struct key local = *key;

    if (key->kind == KEYS_MOUSE) {
        local.mouse.y -= a->models.y;
        local.mouse.x -= a->models.x;
    }
    app_dirty(a, DIRT_ALL);
    switch (pick_key(a->models.pick, &local)) {
    case PICK_IGNORES:
    case PICK_STAYS: break;
    case PICK_LEAVES: app_enter(a, MODE_LINE); break;
    case PICK_OPENS: open_chosen(a); break;
    }
    return true;
}

void app_models_work(struct app *a)
{
    if (a->models.pick != NULL && pick_work(a->models.pick))
        app_dirty(a, DIRT_ALL);
}
