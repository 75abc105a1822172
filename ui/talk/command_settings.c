/* Settings of the running chat: their commands, and /set.  All facts about a setting are in its
 * row in ui/options; only values that the engine chooses itself are special here. */
#include "config.h"

#include "ui/talk/command_settings.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/lookalike.h"
#include "engine/base/numbers.h"
#include "engine/base/utf8.h"
#include "ui/look/theme.h"
#include "ui/options/config_file.h"
#include "ui/options/setting_check.h"
#include "ui/talk/change_sheet.h"
#include "ui/talk/command_list.h"
#include "ui/talk/server_setting.h"
#include "ui/talk/theme_sheet.h"
#include "ui/text/sheet.h"
#include "ui/words/clean.h"

/* Is it a setting that only a model in this process has? */
static bool is_of_process(const struct talk *t, enum option_id id)
{
    return talk_has_server(t) && (id == OPT_RAW || id == OPT_FORMAT || option_is_of_engine(id));
}

/* ---- showing ---- */

/* The values of the chat, with what the engine has chosen where it was free to choose. */
static void values_in_force(struct talk *t, struct options *o, struct mw_sample *s)
{
    const struct plan *plan = talk_plan(t);
    struct err ignored = ERR_INIT;

    talk_values(t, o);
    talk_sample(t, s);
    o->chat.engine.n_ctx = plan->n_ctx;
    o->chat.engine.memory_bytes = plan->budget_bytes;
    o->chat.engine.chunk = plan->chunk;
    o->chat.engine.n_thread = (int)s->run.threads;
    (void)options_set(o, OPT_IO, s->run.io, &ignored);
}

/* A list of names that grows in a buffer of n bytes. */
struct names {
    char *buf;
    size_t n;
};

static void add_name(void *list, const char *name)
{
    struct names *names = list;
    size_t len = strlen(names->buf);

    snprintf(names->buf + len, names->n - len, "%s%s", len == 0 ? "; there are " : ", ", name);
}

/* Write where drafts come from, or why there are none. */
static void drafts_note(struct talk *t, const struct mw_options *engine, char *buf, size_t n)
{
    const struct plan *plan = talk_plan(t);
    char why[MW_NO_DRAFTER_TEXT];

    mw_plan_no_drafter(talk_model(t), engine, plan, why, sizeof why);
    if (engine->draft == MW_DRAFT_AUTO && plan->n_draft > 0)
        snprintf(buf, n, " (%s)", plan->has_head ? "the draft head" : "earlier text");
    if (why[0] != '\0')
        snprintf(buf + strlen(buf), n - strlen(buf), "; %s", why);
}

/* Something to add to the sentence about a value; or "". */
static void note(struct talk *t, enum option_id id, const struct options *o,
                 const struct mw_sample *s, char *buf, size_t n)
{
    const struct mw_options *engine = &o->chat.engine;
    char trained[24];

    buf[0] = '\0';
    if (id == OPT_CTX)
        snprintf(buf, n, "; the model was trained for %s",
                 numbers_count(trained, sizeof trained, talk_info(t)->n_ctx_train));
    else if (id == OPT_IO)
        snprintf(buf, n, " (%s)", s->run.io_reason);
    else if (id == OPT_DRAFT)
        drafts_note(t, engine, buf, n);
    else if (id == OPT_KV && (mw_kv_is_rotated(engine->kv_k) || mw_kv_is_rotated(engine->kv_v)))
        snprintf(buf, n, " (rotated)");
    else if (id == OPT_THEME)
        theme_names(talk_settings(t)->paths.config_dir, add_name, &(struct names){ buf, n });
}

static void show(struct talk *t, enum option_id id)
{
    struct mw_sample *s = malloc(sizeof *s);
    char value[1800], text[2000], more[MW_NO_DRAFTER_TEXT + 24];
    struct options o;

    if (s == NULL)
        return;
    values_in_force(t, &o, s);
    options_say_value(&o, id, "chat", value, sizeof value);
    option_sentence(&options_table[id], value, text, sizeof text);
    note(t, id, &o, s, more, sizeof more);
    talk_notice(t, "%s%s", text, more);
    free(s);
}

/* All settings, by group: name, value, help. */
static void show_all(struct talk *t)
{
    struct sheet *sheet = sheet_new("Settings", "/set NAME VALUE   Esc: close");
    struct mw_sample *s = malloc(sizeof *s);
    struct options o;

    if (sheet == NULL || s == NULL) {
        sheet_free(sheet);
        free(s);
        return;
    }
    values_in_force(t, &o, s);
    for (int g = 0; g < N_GROUP; g++) {
        bool any = false;

        for (int i = 0; i < N_OPTION; i++) {
            const struct option *row = &options_table[i];
            char value[1800], line[40];

            if ((int)row->group != g || row->reach == REACH_LINE ||
                is_of_process(t, (enum option_id)i))
                continue;
            if (!any)
                sheet_line(sheet, ROLE_HEADING, "%s", option_group_title(row->group));
            any = true;
            options_say_value(&o, (enum option_id)i, "chat", value, sizeof value);
            clean_line(line, sizeof line, value, strlen(value));
            sheet_line(sheet, ROLE_ACCENT, "  %-15s", row->name);
            sheet_more(sheet, ROLE_TEXT, "%-10s ", line);
            sheet_more(sheet, ROLE_DIM, "%s", row->help);
        }
    }
    free(s);
    talk_show(t, sheet);
}

/* ---- applying ---- */

/* Show the plan that a value makes; Enter applies it. */
static void propose(struct talk *t, enum option_id id, struct options *o)
{
    struct mw_options *engine = &o->chat.engine;
    char what[60], why[320] = "", note[330], value[40];

    if (id == OPT_MEMORY) {
        engine->memory_choice++; /* "/memory auto" looks at the free memory again */
        mw_budget_lower(&engine->memory_bytes, why, sizeof why);
    }
    snprintf(note, sizeof note, "%s%s", why, why[0] != '\0' ? "." : "");
    note[0] = (char)toupper((unsigned char)note[0]);
    options_say_value(o, id, "chat", value, sizeof value);
    snprintf(what, sizeof what, "%s %s", options_table[id].name, value);
    change_propose(t, &o->chat, what, note);
}

static void use(struct talk *t, enum option_id id, const struct options *o)
{
    const struct option *row = &options_table[id];
    bool waits = row->reach == REACH_TOKEN && talk_would_wait(t, &o->chat);
    char value[1800], text[2000], what[48];

    options_say(o, id, value, sizeof value);
    snprintf(what, sizeof what, "%s %.30s", row->name, value);
    talk_choose(t, id, o, what);
    option_sentence(row, value, text, sizeof text);
    if (row->reach == REACH_NOW)
        talk_notice(t, "%s", text);
    else
        talk_notice(t, "%s, %s", text,
                    waits ? "after this answer" : option_reach_text(row->reach));
}

/* Does the chat have this value already? */
static bool is_same(struct talk *t, enum option_id id, const struct options *then)
{
    char a[1800], b[1800];
    struct options now;

    talk_values(t, &now);
    options_say_value(&now, id, "chat", a, sizeof a);
    options_say_value(then, id, "chat", b, sizeof b);
    return strcmp(a, b) == 0;
}

/* An option of the screen, which shows what it does. */
static bool is_of_screen(const struct option *row)
{
    const size_t begin = offsetof(struct options, ui);

    return row->at >= begin && row->at < begin + sizeof(struct ui_options);
}

static int apply(struct talk *t, enum option_id id, const char *value, struct err *e)
{
    struct options o;

    if (talk_has_server(t) && option_is_served(id))
        return server_setting_change(t, id, value, e);
    if (is_of_process(t, id))
        return server_setting_refuse(t, e);
    talk_values(t, &o);
    /* A new kv replaces kv-k and kv-v, too. */
    memset(o.given, 0, sizeof o.given);
    if (options_set(&o, id, value, e) != 0)
        return -1;
    switch (options_table[id].reach) {
    case REACH_PLAN:
        if (id == OPT_DRAFT && is_same(t, id, &o)) /* a sheet would show no change */
            show(t, id);
        else
            propose(t, id, &o);
        break;
    case REACH_PROMPT:
    case REACH_ANSWER:
    case REACH_TOKEN: use(t, id, &o); break;
    case REACH_NOW:
        if (is_of_screen(&options_table[id]))
            return talk_set_look(t, id, &o.ui, e);
        use(t, id, &o);
        break;
    default: break; /* from the next start on */
    }
    return 0;
}

/* Change a setting of the model at the server.  The configuration is that of models of this
 * machine, so it stays as it is. */
static void change_at_server(struct talk *t, enum option_id id, const char *value)
{
    setting_enter(t, id, value);
    if (server_setting_waits(t))
        talk_notice(t, "%s is a setting of the server, so it is not written to the configuration",
                    options_table[id].name);
}

/* Write a setting to the configuration file and apply it. */
static void keep(struct talk *t, enum option_id id, const char *value)
{
    const struct ui_chat_options *o = talk_settings(t);
    const struct setting_folders in = { o->paths.config_dir, o->models.places };
    const char *file = o->paths.config_file;
    const struct option *row = &options_table[id];
    struct err e = ERR_INIT;

    if (is_of_process(t, id)) {
        change_at_server(t, id, value);
    } else if (file == NULL) {
        talk_error(t, "there is no configuration file");
    } else if (setting_check(id, value, &in, &e) != 0) {
        err_at(&e, NULL, ERR_NO_OFFSET, row->name);
        talk_report(t, &e);
    } else if (config_file_write(file, id, value, &e) != 0) {
        talk_report(t, &e);
    } else {
        talk_notice(t, "%s = %s is in %s%s%s", row->name, value, file,
                    row->reach == REACH_FILE ? "; it applies " : "",
                    row->reach == REACH_FILE ? option_reach_text(row->reach) : "");
        if (apply(t, id, value, &e) != 0)
            talk_report(t, &e);
    }
}

void setting_enter(struct talk *t, enum option_id id, const char *value)
{
    struct err e = ERR_INIT;
    char name[40];

    if (value[0] == '\0' && id == OPT_THEME && talk_has_screen(t)) {
        theme_sheet(t, keep);
    } else if (value[0] == '\0' && !is_of_process(t, id)) {
        show(t, id);
    } else if (value[0] == '\0' && option_is_served(id) &&
               server_setting_show(t, id, &e) == 0) {
        return; /* the reply shows it */
    } else if (e.code != ERR_NONE || apply(t, id, value, &e) != 0) {
        snprintf(name, sizeof name, "/%s",
                 options_table[id].slash != NULL ? options_table[id].slash
                                                 : options_table[id].name);
        err_at(&e, NULL, ERR_NO_OFFSET, name);
        talk_report(t, &e);
    }
}

/* Copy the name of a setting to name[n].  Returns the text after it. */
static const char *take_name(const char *args, char *name, size_t n)
{
    size_t word = lookalike_word(args, strlen(args)), equals = strcspn(args, "=");
    size_t used = word < equals ? word : equals;
    const char *rest = args + used;

    snprintf(name, n, "%.*s", (int)(used < n ? used : n - 1), args);
    (void)lookalike_plain(name, strlen(name));
    (void)utf8_trim(&rest, strlen(rest));
    if (*rest == '=')
        rest++;
    (void)utf8_trim(&rest, strlen(rest));
    return rest;
}

static void refuse_setting(struct talk *t, const char *name)
{
    struct err e = ERR_INIT;

    options_refuse_setting(name, &e);
    talk_error(t, "%s; /set lists them", e.what);
}

void run_set(struct talk *t, const char *args)
{
    char name[80];
    const char *value = take_name(args, name, sizeof name);
    int id = options_find_setting(name, strlen(name));
    char *plain;
    size_t n;

    if (args[0] == '\0')
        show_all(t);
    else if (id < 0)
        refuse_setting(t, name);
    else if (*value == '\0' && is_of_process(t, (enum option_id)id))
        setting_enter(t, (enum option_id)id, "");
    else if (*value == '\0')
        show(t, (enum option_id)id);
    else if (option_is_text(&options_table[id]))
        keep(t, (enum option_id)id, value);
    else if ((plain = strdup(value)) != NULL) {
        n = lookalike_plain(plain, strlen(plain));
        while (n > 0 && plain[n - 1] == ' ')
            plain[--n] = '\0';
        keep(t, (enum option_id)id, plain);
        free(plain);
    }
}

void run_mouse(struct talk *t, const char *args)
{
    if (args[0] == '\0')
        show(t, OPT_NO_MOUSE);
    else if (strcmp(args, "on") != 0 && strcmp(args, "off") != 0)
        talk_error(t, "/mouse on or /mouse off");
    else
        setting_enter(t, OPT_NO_MOUSE, strcmp(args, "on") == 0 ? "off" : "on");
}
