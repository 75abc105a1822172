/* /model: the list of models over the panes. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "ui/app/app.h"
#include "ui/talk/command_list.h"

/* Models are described for so long between two looks at the keys. */
#define WORK_NS ((uint64_t)10 * 1000 * 1000)

int app_pick_model(struct app *a, struct err *e)
{
    const struct ui_models *models = &talk_settings(a->talk)->models;
    const struct plan *plan = talk_plan(a->talk);
    struct mw_describe_options how = models->describe;
    struct mw_describer *describer;
    struct mw_models *list;
    struct pick *pick;

    /* The budget is the open model's: a header may take what its plan leaves. */
    how.header_bytes =
        plan->budget_bytes > plan->sum_bytes ? plan->budget_bytes - plan->sum_bytes : 1;
    if (models->places == NULL)
        return err_set(e, ERR_UNSUPPORTED, "the places of models are not known");
    if (mw_models_find(&list, models->places, e) != 0)
        return -1;
    if (mw_describer_new(&describer, &talk_options(a->talk)->engine, &how, e) != 0) {
        mw_models_free(list);
        return -1;
    }
    pick = pick_new(list, describer, talk_model_path(a->talk));
    if (pick == NULL)
        return err_memory(e, "the list of models");
    app_enter(a, MODE_MODELS);
    a->models.pick = pick;
    a->models.has_work = true;
    return 0;
}

void app_leave_models(struct app *a)
{
    pick_free(a->models.pick);
    a->models.pick = NULL;
    a->models.has_work = false;
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
        return key->kind != KEYS_CHAR || (key->ch != 'L' - 64 && key->ch != 'Z' - 64);
    case PICK_STAYS: a->models.has_work = true; break;
    case PICK_LEAVES: app_enter(a, MODE_LINE); break;
    case PICK_OPENS: open_chosen(a); break;
    }
    return true;
}

void app_models_work(struct app *a)
{
    uint64_t end = clock_ns() + WORK_NS;

    while (a->models.has_work && clock_ns() < end) {
        a->models.has_work = pick_work(a->models.pick);
        app_dirty(a, DIRT_ALL);
    }
}
