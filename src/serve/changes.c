/* See changes.h. */
#include "config.h"

#include "src/serve/changes.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/numbers.h"
#include "ui/options/options.h"
#include "ui/options/proposal.h"

/* ---- a request ---- */

/* The value as it would be written on the command line; NULL: it is none. */
static const char *value_text(const struct json_node *n)
{
    switch (n->kind) {
    case JSON_IS_BOOL: return n->truth ? "on" : "off";
    case JSON_IS_NUMBER: return n->text;
    default: return json_as_string(n);
    }
}

static int take_setting(struct changes_wish *w, struct options *o, const struct json_node *n,
                        struct err *e)
{
    int id = options_find_setting(n->key, strlen(n->key));
    const bool is_size = id == OPT_MEMORY || id == OPT_CTX;
    const char *text = value_text(n);

    if (id < 0 || !option_is_served((enum option_id)id))
        return err_set(e, ERR_ARGUMENT, "this is not a setting that a server changes");
    if (text == NULL || strlen(text) != n->len)
        if (n->kind != JSON_IS_BOOL)
            return err_set(e, ERR_ARGUMENT, "a text, a number or a truth value is expected");
    /* A new kv replaces kv-k and kv-v, too. */
    memset(o->given, 0, sizeof o->given);
    if (options_set(o, (enum option_id)id, text, e) != 0)
        return -1;
    if (id == OPT_DRAFT && o->chat.engine.draft == MW_DRAFT_FILE)
        return err_set(e, ERR_ARGUMENT, "a file can be given at the start of the server only");
    if (id == OPT_MEMORY) {
        o->chat.engine.memory_choice++; /* "auto" looks at the free memory again */
        mw_budget_lower(&o->chat.engine.memory_bytes, w->note, sizeof w->note);
    }
    /* A plan that does not fit is a matter of a size, if one was given. */
    if (w->first[0] == '\0' || (!w->has_size && is_size))
        snprintf(w->first, sizeof w->first, "%s", options_table[id].name);
    w->has_size |= is_size;
    return 0;
}

static int take_members(struct changes_wish *w, struct options *o, const struct json_node *root,
                        struct err *e)
{
    if (root == NULL || root->kind != JSON_IS_OBJECT)
        return err_set(e, ERR_ARGUMENT, "an object with settings is expected");
    for (const struct json_node *n = root->first; n != NULL; n = n->next) {
        int rc = 0;

        if (strcmp(n->key, "preview") != 0)
            rc = take_setting(w, o, n, e);
        else if (!json_as_bool(n, &w->is_preview))
            rc = err_set(e, ERR_ARGUMENT, "true or false is expected");
        if (rc != 0)
            return err_at(e, NULL, ERR_NO_OFFSET, n->key);
    }
    return w->first[0] != '\0' ? 0 : err_set(e, ERR_ARGUMENT, "there is no setting in it");
}

int changes_read(struct changes_wish *out, const struct mw_options *now, const char *body,
                 size_t len, struct err *e)
{
    struct options o;
    struct json_doc *doc = NULL;
    int rc;

    *out = (struct changes_wish){ 0 };
    options_default(&o);
    o.chat.engine = *now;
    if (json_parse(&doc, body, len, e) != 0)
        return -1;
    rc = take_members(out, &o, json_root(doc), e);
    json_free(doc); /* no option that is left has a text of it */
    out->engine = o.chat.engine;
    return rc;
}

/* ---- the plan ---- */

static bool fit(void *ctx, const struct mw_options *o, uint64_t *smallest_budget,
                uint32_t *largest_ctx)
{
    const struct changes_now *now = ctx;
    struct err ignored = ERR_INIT;

    return mw_plan_fit(now->m, o, smallest_budget, largest_ctx, &ignored) == 0;
}

static bool fits(void *ctx, const struct mw_options *o)
{
    const struct changes_now *now = ctx;
    struct err ignored = ERR_INIT;
    struct plan plan;

    return mw_chat_plan(now->chat, o, &plan, &ignored) == 0;
}

int changes_plan(const struct changes_wish *w, const struct changes_now *now, struct plan *then,
                 struct err *e)
{
    struct changes_now copy = *now;
    const struct proposal_fit ask = { fit, fits, &copy };
    uint64_t budget = w->engine.memory_bytes != 0 ? w->engine.memory_bytes
                                                  : now->plan->budget_bytes;
    char text[200];

    if (mw_chat_plan(now->chat, &w->engine, then, e) == 0)
        return 0;
    if (e->code == ERR_BUDGET && proposal_why_not(&w->engine, budget, &ask, text, sizeof text))
        err_set(e, ERR_BUDGET, "%s", text);
    return -1;
}

/* ---- replies ---- */

static void add_line(void *ctx, enum proposal_how how, enum ui_role role, const char *text)
{
    static const char *const hows[] = { [PROPOSAL_LINE] = "line", [PROPOSAL_MORE] = "more",
                                        [PROPOSAL_PARAGRAPH] = "paragraph" };
    struct json *out = ctx;

    json_object(out, NULL);
    json_string(out, "how", hows[how]);
    json_string(out, "role", ui_role_name(role));
    json_string(out, "text", text);
    json_end(out);
}

/* sample: of the settings in force; NULL: they are only proposed. */
static void write_settings(const struct mw_options *engine, const struct plan *plan,
                           const struct mw_sample *sample, struct json *out)
{
    struct options o = { .chat.engine = *engine };
    const char *slash =
        engine->draft == MW_DRAFT_FILE ? strrchr(engine->draft_file, '/') : NULL;
    char value[200];

    if (slash != NULL) /* folders are not for clients */
        o.chat.engine.draft_file = slash + 1;
    o.chat.engine.memory_bytes = plan->budget_bytes;
    o.chat.engine.n_ctx = plan->n_ctx;
    o.chat.engine.chunk = plan->chunk;
    if (sample != NULL && sample->run.budget_bytes > 0) { /* a budget of auto changes */
        o.chat.engine.memory_bytes = sample->run.budget_bytes;
        o.chat.engine.n_thread = (int)sample->run.threads;
    }
    json_object(out, "settings");
    for (int i = 0; i < N_OPTION; i++) {
        if (!option_is_served((enum option_id)i))
            continue;
        options_say_value(&o, (enum option_id)i, "serve", value, sizeof value);
        json_string(out, options_table[i].name, value);
    }
    json_end(out);
}

static void end_reply(struct json *out)
{
    json_end(out);
    json_line(out);
}

void changes_write_values(const struct changes_now *now, bool is_allowed, struct json *out)
{
    json_object(out, NULL);
    json_bool(out, "allowed", is_allowed);
    json_u64(out, "ctx", now->plan->n_ctx);
    write_settings(now->engine, now->plan, now->sample, out);
    end_reply(out);
}

static void find_facts(const struct changes_wish *w, const struct changes_now *now,
                       const struct plan *then, struct proposal_facts *out)
{
    struct mw_options a = *now->engine, b = w->engine;
    struct err ignored = ERR_INIT;

    *out = (struct proposal_facts){ .m = now->m, .a = now->engine, .b = &w->engine,
                                    .now = now->plan, .then = then };
    a.memory_bytes = now->plan->budget_bytes;
    a.n_ctx = now->plan->n_ctx;
    b.memory_bytes = then->budget_bytes;
    mw_diagnose(now->m, &a, now->sample, &out->answers_now, &ignored);
    mw_diagnose(now->m, &b, now->sample, &out->answers_then, &ignored);
    mw_model_limits(now->m, &out->limits);
    mw_model_anchor(now->m, &out->anchor);
}

void changes_write_proposal(const struct changes_wish *w, const struct changes_now *now,
                            const struct plan *then, struct json *out)
{
    const struct proposal_out to = { add_line, out };
    struct proposal_facts facts;
    struct mw_model_info info;
    char note[sizeof w->note + 2];

    mw_model_info(now->m, &info);
    find_facts(w, now, then, &facts);
    json_object(out, NULL);
    json_bool(out, "applied", false);
    json_u64(out, "ctx", then->n_ctx);
    json_array(out, "lines");
    if (w->note[0] != '\0') {
        snprintf(note, sizeof note, "%s.", w->note);
        note[0] = (char)toupper((unsigned char)note[0]);
        add_line(out, PROPOSAL_PARAGRAPH, ROLE_WARN, note);
    }
    proposal_settings(&facts, &to);
    add_line(out, PROPOSAL_LINE, ROLE_TEXT, "");
    add_line(out, PROPOSAL_PARAGRAPH, ROLE_TEXT, "It applies to all clients, after the request "
                                                 "that is being answered.");
    if (!mw_keeps_kv(now->m, now->engine, &w->engine))
        add_line(out, PROPOSAL_PARAGRAPH, ROLE_WARN,
                 "Keys and values are computed again: the next request evaluates its whole "
                 "prompt.");
    proposal_warnings(&facts, info.n_ctx_train, &to);
    add_line(out, PROPOSAL_LINE, ROLE_TEXT, "");
    proposal_memory(&facts, &to);
    json_end(out);
    write_settings(&w->engine, then, NULL, out);
    end_reply(out);
}

void changes_write_applied(const struct mw_options *was, const struct changes_now *now,
                           struct json *out)
{
    char changed[150], text[300], ctx[24], budget[16];

    proposal_changed(changed, sizeof changed, was, now->engine);
    snprintf(text, sizeof text, "now: context %s, budget %s%s",
             numbers_count(ctx, sizeof ctx, now->plan->n_ctx),
             units_size(budget, sizeof budget, now->plan->budget_bytes), changed);
    json_object(out, NULL);
    json_bool(out, "applied", true);
    json_u64(out, "ctx", now->plan->n_ctx);
    json_string(out, "now", text);
    write_settings(now->engine, now->plan, now->sample, out);
    end_reply(out);
}
