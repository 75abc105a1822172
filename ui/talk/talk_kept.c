/*
 * Settings that come back (ui/options/kept.h): those of the chat, in its file, and those that a
 * person chose for the model.  They are written once they are in force, so a budget that does
 * not fit is never kept.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "ui/options/kept.h"
#include "ui/talk/talk_internal.h"

_Static_assert(KEPT_BYTES == STORE_SETTINGS_BYTES, "a chat has the text of its settings");

/* The values in force.  A budget that was lowered, because the machine cannot give it now, is
 * kept as it was wished. */
static void values(const struct talk *t, struct options *out)
{
    const struct options *o = t->o->options;

    talk_values(t, out);
    out->chat = t->changes.applied;
    if (o->memory_wish > 0 && out->chat.engine.memory_bytes == o->chat.engine.memory_bytes)
        out->chat.engine.memory_bytes = o->memory_wish;
}

static struct kept_model model_of(const struct talk *t)
{
    return (struct kept_model){ t->model_lasting, t->model_path };
}

void kept_save(struct talk *t)
{
    char text[KEPT_BYTES];
    struct options o;

    values(t, &o);
    saving_settings(&t->saving, kept_print(&o, o.given, text));
}

/* Keep the values of the options in use[] for the model. */
static void keep_for_model(struct talk *t, const bool use[N_OPTION])
{
    const struct kept_model m = model_of(t);
    struct err e = ERR_INIT;
    struct options o;

    values(t, &o);
    if (t->o->kept_file != NULL && kept_change(t->o->kept_file, &m, &o, use, &e) != 0)
        talk_report(t, &e);
}

void kept_begin(struct talk *t)
{
    if (strcmp(t->model_path, t->o->options->model) == 0) /* not after /model */
        keep_for_model(t, t->o->options->on_line);
}

void kept_changed(struct talk *t, const struct mw_options *was, bool is_of_chat)
{
    const struct options before = { .chat.engine = *was };
    bool use[N_OPTION] = { false }, any = false;
    char old[40], new[40];
    struct options o;

    values(t, &o);
    for (int id = 0; id < N_OPTION; id++) {
        if (kept_of((enum option_id)id) != (enum option_id)id)
            continue;
        options_print(&before, (enum option_id)id, old, sizeof old);
        options_print(&o, (enum option_id)id, new, sizeof new);
        use[id] = strcmp(old, new) != 0;
        any |= use[id];
        t->given[id] |= use[id];
    }
    if (!any || is_of_chat)
        return;
    keep_for_model(t, use);
    if (t->ledger.n > 0)
        kept_save(t);
}

/* Was the chat held with this model? */
static bool is_of_this_model(const struct talk *t)
{
    return strcmp(store_model(t->saving.store)->name, t->info.name) == 0;
}

void kept_model(struct talk *t)
{
    if (!talk_has_server(t))
        saving_model(&t->saving, t->model_lasting, t->info.name);
}

void kept_system(struct talk *t)
{
    const char *system = t->changes.applied.system;

    /* A pending change may bring the one that the chat has. */
    if (t->changes.n_pending == 0)
        saving_system(&t->saving, system != NULL ? system : "");
}

bool kept_takes_system(const struct talk *t, const struct mw_chat_options *o, const char *system)
{
    if (t->o->options->on_line[OPT_SYSTEM] || o->system == NULL || system == NULL)
        return !t->o->options->on_line[OPT_SYSTEM] && o->system != system;
    return strcmp(o->system, system) != 0;
}

/* Use the settings of the chat, and say which. */
static bool take_settings(struct talk *t, struct options *o, char *what, size_t n)
{
    bool taken[N_OPTION];
    char why[320] = "", said[KEPT_BYTES];

    if (t->saving.store == NULL || talk_has_server(t) || !is_of_this_model(t) ||
        !kept_apply(o, store_settings(t->saving.store), t->o->options->on_line, taken))
        return false;
    if (taken[OPT_MEMORY])
        mw_budget_lower(&o->chat.engine.memory_bytes, why, sizeof why);
    memcpy(t->given, o->given, sizeof t->given);
    if (why[0] != '\0')
        talk_notice(t, "%s", why);
    kept_say(o, taken, said, sizeof said);
    snprintf(what, n, "%.47s", said);
    talk_notice(t, "%s, as in this chat before", said);
    return true;
}

void kept_of_chat(struct talk *t, const char *system)
{
    struct options o;
    char what[48] = "system message";
    bool takes_system, takes_settings;

    talk_values(t, &o);
    takes_system = kept_takes_system(t, &o.chat, system);
    takes_settings = take_settings(t, &o, what, sizeof what);
    if (takes_system)
        o.chat.system = system;
    if (takes_system || takes_settings)
        talk_change(t, &o.chat, takes_settings ? THEN_ANNOUNCE | THEN_OF_CHAT : THEN_OF_CHAT,
                    what);
}

/* Another model takes over the settings of the chat: a budget is that of the person, whatever
 * answers.  Those that its last chat had are named. */
void kept_say_switched(struct talk *t)
{
    const struct kept_model m = model_of(t);
    char with[KEPT_BYTES], text[KEPT_BYTES], before[KEPT_BYTES] = "";
    bool none[N_OPTION] = { false }, taken[N_OPTION];
    struct options o, last;

    if (talk_has_server(t)) {
        talk_notice(t, "%s answers from now on", t->info.name);
        return;
    }
    values(t, &o);
    kept_say(&o, t->given, with, sizeof with);
    talk_notice(t, "loading %s%s%s; the next message evaluates the conversation", t->info.name,
                with[0] != '\0' ? " with the settings of this chat, " : "", with);
    last = o;
    if (t->o->kept_file == NULL ||
        !kept_apply(&last, kept_read(t->o->kept_file, &m, text), none, taken))
        return;
    kept_say(&last, taken, before, sizeof before);
    if (strcmp(with, before) != 0)
        talk_notice(t, "the last chat with this model had %s", before);
}

int talk_forget_settings(struct talk *t, struct err *e)
{
    const struct kept_model m = model_of(t);

    for (int id = 0; id < N_OPTION; id++)
        if (kept_of((enum option_id)id) != N_OPTION)
            t->given[id] = false;
    if (t->ledger.n > 0)
        kept_save(t);
    return t->o->kept_file == NULL ? 0 : kept_write(t->o->kept_file, &m, "", e);
}
