#include "config.h"

#include "ui/talk/server_setting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/numbers.h"
#include "ui/talk/talk_internal.h"
#include "ui/text/sheet.h"

int server_setting_refuse(struct talk *t, struct err *e)
{
    struct mw_server_figures f = { .address = "the server" };

    talk_server(t, &f);
    return err_set(e, ERR_UNSUPPORTED,
                   "this is a setting of a model in this process; %s has its own", f.address);
}

static int ask(struct talk *t, enum mw_setting_step step, enum option_id id, const char *value,
               struct err *e)
{
    const struct engine_calls *calls = t->engine != NULL ? t->engine->calls : NULL;

    if (calls == NULL || calls->setting == NULL)
        return server_setting_refuse(t, e);
    if (calls->setting(t->engine, step, options_table[id].name, value, (uint64_t)id, e) != 0)
        return e->code == ERR_UNSUPPORTED ? server_setting_refuse(t, e) : -1;
    t->n_asked++;
    if (talk_is_answering(t))
        talk_notice(t, "the server is asked about %s after this answer",
                    options_table[id].name);
    return 0;
}

int server_setting_show(struct talk *t, enum option_id id, struct err *e)
{
    return ask(t, MW_SETTING_SHOW, id, "", e);
}

int server_setting_change(struct talk *t, enum option_id id, const char *value, struct err *e)
{
    bool has_plan = options_table[id].reach == REACH_PLAN;

    return ask(t, has_plan ? MW_SETTING_PROPOSE : MW_SETTING_APPLY, id, value, e);
}

/* ---- the proposal ---- */

struct offer {
    struct talk *t;
    enum option_id id;
    char *value;
};

static void offer_free(void *ctx)
{
    struct offer *o = ctx;

    if (o != NULL)
        free(o->value);
    free(o);
}

static void report(struct talk *t, enum option_id id, struct err *e)
{
    char name[40];

    snprintf(name, sizeof name, "/%s",
             options_table[id].slash != NULL ? options_table[id].slash : options_table[id].name);
    err_at(e, NULL, ERR_NO_OFFSET, name);
    talk_report(t, e);
}

static void apply(void *ctx, long row)
{
    const struct offer *o = ctx;
    struct err e = ERR_INIT;

    (void)row;
    if (ask(o->t, MW_SETTING_APPLY, o->id, o->value, &e) != 0)
        report(o->t, o->id, &e);
}

/* Cut the first line off.  Returns it, with a NUL in place of its end; NULL: there is none. */
static char *take_line(char **rest)
{
    return *rest[0] != '\0' ? strsep(rest, "\n") : NULL;
}

/* A line of the event: its kind, role, a tab and the text. */
static void add_line(struct sheet *s, char *line)
{
    char kind = line[0], *text = line + 1, *role_name = strsep(&text, "\t");
    int role = ui_role_parse(role_name);

    if (text == NULL)
        return;
    if (role < 0)
        role = ROLE_TEXT;
    if (kind == '+')
        sheet_more(s, (enum ui_role)role, "%s", text);
    else if (kind == '~')
        sheet_text(s, (enum ui_role)role, text);
    else
        sheet_line(s, (enum ui_role)role, "%s", text);
}

static void propose(struct talk *t, enum option_id id, const struct mw_event *ev)
{
    struct offer *o = calloc(1, sizeof *o);
    char *text = ev->len > 0 ? strndup(ev->text, ev->len) : strdup(""), *rest = text, *line;
    char title[90], count[24], ctx[24];
    struct sheet *s = NULL;

    line = text != NULL ? take_line(&rest) : NULL;
    if (o != NULL)
        o->value = line != NULL ? strdup(line) : NULL;
    if (o != NULL && o->value != NULL) {
        snprintf(title, sizeof title, "Change at the server: %s %.40s", options_table[id].name,
                 o->value);
        s = sheet_new(title, "Enter: apply   Esc: close");
    }
    if (s == NULL) {
        talk_error(t, "not enough memory to show the change");
        offer_free(o);
        free(text);
        return;
    }
    o->t = t;
    o->id = id;
    while (rest != NULL && (line = take_line(&rest)) != NULL)
        add_line(s, line);
    if (ev->plan.n_ctx > 0 && talk_tokens(t) > ev->plan.n_ctx) {
        snprintf(title, sizeof title, "This conversation has %s tokens; %s fit then.",
                 numbers_count(count, sizeof count, talk_tokens(t)),
                 numbers_count(ctx, sizeof ctx, ev->plan.n_ctx));
        sheet_text(s, ROLE_WARN, title);
    }
    sheet_on_enter(s, apply, offer_free, o);
    snprintf(title, sizeof title, "%s %.40s was not applied", options_table[id].name, o->value);
    sheet_on_drop(s, title);
    free(text);
    talk_show(t, s);
}

/* ---- replies ---- */

static void applied(struct talk *t, const struct mw_event *ev)
{
    struct plan plan = t->plan;

    plan.n_ctx = ev->plan.n_ctx;
    model_set_plan(t, &plan);
    t->engine->calls->info(t->engine, &t->info);
    talk_notice(t, "%.*s", (int)ev->len, ev->text);
}

bool server_setting_waits(const struct talk *t)
{
    return t->n_asked > 0;
}

void server_setting_replied(struct talk *t, const struct mw_event *ev)
{
    enum option_id id = ev->total < N_OPTION ? (enum option_id)ev->total : OPT_MEMORY;
    struct err e = ev->err;
    char value[200], text[400];

    t->n_asked -= t->n_asked > 0;
    if (e.code == ERR_UNSUPPORTED || e.code == ERR_ARGUMENT) {
        report(t, id, &e);
        return;
    }
    if (e.code != ERR_NONE) {
        talk_report(t, &e);
        return;
    }
    switch (ev->step) {
    case MW_SETTING_SHOW:
        snprintf(value, sizeof value, "%.*s", (int)ev->len, ev->text);
        talk_notice(t, "%s", option_sentence(&options_table[id], value, text, sizeof text));
        break;
    case MW_SETTING_PROPOSE: propose(t, id, ev); break;
    case MW_SETTING_APPLY: applied(t, ev); break;
    }
}
