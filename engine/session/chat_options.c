/*
 * The options of a chat on the engine thread: made into an answerer, applied to the session,
 * and changed during an answer.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "engine/session/chat_internal.h"
#include "engine/session/constraint.h"
#include "engine/session/logprobs.h"
#include "engine/session/model.h"
#include "engine/session/sampler.h"

static void post_refused(struct mw_chat *c, const struct err *e)
{
    events_post(c->events, &(struct mw_event){ .kind = MW_EVENT_REFUSED, .err = *e });
}

/* A change was refused.  Those that were queued after it were requested with it: only what they
 * change themselves stays of them. */
static void refuse(struct mw_chat *c, const struct chat_command *refused, const struct err *e)
{
    pthread_mutex_lock(&c->lock);
    for (struct chat_command *later = c->first; later != NULL; later = later->next)
        if (later->kind == DO_SET)
            settings_without(&c->settings.o, &refused->settings.o, &later->settings);
    pthread_mutex_unlock(&c->lock);
    post_refused(c, e);
}

void chat_keep_plan(struct mw_chat *c)
{
    pthread_mutex_lock(&c->lock);
    mw_session_plan(c->session, &c->plan);
    c->settled = *session_settled(c->session);
    pthread_mutex_unlock(&c->lock);
}

void chat_post_plan(struct mw_chat *c, enum mw_event_kind kind)
{
    struct mw_event event = { .kind = kind };

    chat_keep_plan(c);
    mw_session_plan(c->session, &event.plan);
    events_post(c->events, &event);
}

/*
 * Return the chat format in force, or a new one if another is requested.  Parsing the model's
 * template only once also keeps the date that it prints.  With another date all of the prompt
 * would be evaluated again.
 */
static struct chat_choice *choose_format(const struct mw_chat *c, const char *name,
                                         const struct tokenizer *t, struct err *e)
{
    const struct chat_wish wish = { .format = name };
    struct chat_choice *choice = c->answerer.choice;

    if (choice != NULL && chat_choice_is_named(choice, name))
        return choice;
    return chat_choose(&choice, c->m->catalogue, t, &wish, e) == 0 ? choice : NULL;
}

void chat_post_notice(struct mw_chat *c, const char *text)
{
    if (text[0] != '\0')
        events_post(
            c->events,
            &(struct mw_event){ .kind = MW_EVENT_NOTICE, .text = text, .len = strlen(text) });
}

/* One that nobody named is left out without a word, and so is a notice of closing, which the front
 * has. */
void chat_post_no_drafter(struct mw_chat *c)
{
    const struct mw_options *o = &c->settings.o.engine;
    char text[MW_NO_DRAFTER_TEXT], why[300];
    struct err lost = ERR_INIT;
    struct plan p;

    mw_session_plan(c->session, &p);
    if (session_lost_drafter(c->session, &lost)) {
        err_text(&lost, why, sizeof why);
        snprintf(text, sizeof text, "there are no such drafts: %.280s", why);
        chat_post_notice(c, text);
    }
    if (o->draft == MW_DRAFT_AUTO || p.no_drafter == MW_DRAFTER_CLOSED ||
        (o->draft == c->said_drafts.draft && p.no_drafter == c->said_drafts.why))
        return;
    c->said_drafts.draft = o->draft;
    c->said_drafts.why = p.no_drafter;
    chat_post_notice(c, mw_plan_no_drafter(c->m, o, &p, text, sizeof text));
}

void chat_post_format_notice(struct mw_chat *c)
{
    char text[512];
    bool has_system = c->conversation.system != NULL;

    if (!chat_choice_notice(c->answerer.choice, has_system, text, sizeof text) ||
        strcmp(text, c->said) == 0)
        return;
    chat_post_notice(c, text);
    strcpy(c->said, text);
}

void chat_answerer_free(struct answerer *a, const struct answerer *stays)
{
    mw_sampler_free(a->sampler);
    constraint_free(a->constraint);
    logprobs_free(a->logprobs);
    if (a->choice != stays->choice)
        chat_choice_free(a->choice);
}

/* The order of the vocabulary is made for the first grammar, and stays. */
static int add_constraint(struct mw_chat *c, const struct mw_chat_options *o, struct answerer *a,
                          struct err *e)
{
    struct constraint_options x = { .grammar = o->grammar,
                                    .tree = &c->tokens,
                                    .tokenizer = a->rendering.tokenizer,
                                    .format = a->parser_format,
                                    .stop_ids = a->stop_ids,
                                    .n_stop_id = a->n_stop_id,
                                    .may_think = o->think != MW_THINK_OFF };

    if (o->schema != NULL)
        return err_set(e, ERR_UNSUPPORTED, "a schema needs to be made a grammar");
    if (o->grammar == NULL)
        return 0;
    if (c->tokens.n == 0 && constraint_tree(&c->tokens, x.tokenizer, e) != 0)
        return -1;
    if (constraint_new(&a->constraint, &x, e) != 0)
        return -1;
    sampler_constrain(a->sampler, a->constraint);
    return 0;
}

static int add_bias(struct mw_chat *c, const struct mw_chat_options *o, struct answerer *a,
                    struct err *e)
{
    for (uint32_t i = 0; i < o->n_logit_bias; i++)
        if (o->logit_bias[i].id >= c->m->desc->n_vocab) {
            err_set(e, ERR_ARGUMENT, "the vocabulary has no token %u", o->logit_bias[i].id);
            return err_at(e, NULL, ERR_NO_OFFSET, "logit_bias");
        }
    sampler_bias(a->sampler, o->logit_bias, o->n_logit_bias);
    return 0;
}

int chat_prepare_answerer(struct mw_chat *c, const struct mw_chat_options *o,
                          struct answerer *out, struct err *e)
{
    struct answerer a = { .m = c->m,
                          .conversation = &c->conversation,
                          .events = c->events,
                          .stop = o->stop,
                          .n_predict = o->n_predict,
                          .reports_ids = o->reports_ids,
                          .ctx_shift = o->engine.ctx_shift,
                          .cancel = &c->cancel };

    a.rendering.tokenizer = model_tokenizer(c->m, &c->quits, e);
    a.rendering.think = o->think;
    if (a.rendering.tokenizer == NULL)
        return -1;
    a.choice = choose_format(c, o->raw ? "raw" : o->format, a.rendering.tokenizer, e);
    if (a.choice == NULL)
        return -1;
    a.parser_format = chat_choice_format(a.choice);
    if (strcmp(chat_format_name(a.parser_format), "raw") != 0)
        a.rendering.format = a.parser_format;
    a.n_stop_id = chat_stop_ids(c->m->catalogue, a.rendering.tokenizer, a.rendering.format,
                                a.stop_ids, sizeof a.stop_ids / sizeof a.stop_ids[0]);
    if (mw_sampler_new(&a.sampler, c->m, &o->sampling, e) != 0 ||
        add_bias(c, o, &a, e) != 0 || add_constraint(c, o, &a, e) != 0 ||
        (o->n_logprob > 0 &&
         logprobs_new(&a.logprobs, c->m->desc->n_vocab, o->n_logprob, e) != 0)) {
        chat_answerer_free(&a, &c->answerer);
        return -1;
    }
    *out = a;
    return 0;
}

void chat_take_answerer(struct mw_chat *c, struct answerer *a)
{
    a->prompt_compute_s = c->answerer.prompt_compute_s;
    chat_answerer_free(&c->answerer, a);
    c->answerer = *a;
    c->conversation.system = c->settings.o.system;
}

/* Make the session fit a shorter context: drop tokens that are no longer part of the
 * conversation. If the conversation itself does not fit, drop everything. */
static int shorten(struct mw_chat *c, uint32_t n_ctx, struct err *e)
{
    size_t n, same;
    uint32_t kept;

    if (n_ctx == 0 || mw_session_tokens(c->session) <= n_ctx)
        return 0;
    same = chat_held(c, &n);
    return mw_session_rewind(c->session, same <= n_ctx ? (uint32_t)same : 0, &kept, e);
}

/* Apply options to the session, or open one if the model was not loaded. */
static int apply_engine(struct mw_chat *c, const struct mw_options *wanted, struct err *e)
{
    struct mw_session *s;

    if (c->session != NULL)
        return shorten(c, wanted->n_ctx, e) != 0 ? -1 : session_set(c->session, wanted, e);
    if (session_open(&s, c->m, wanted, &c->quits, &c->cancel, e) != 0)
        return -1;
    chat_set_session(c, s);
    return 0;
}

/* Make the settings of a command those in force.  The old ones are freed with the command, so the
 * options that others see must have the texts of the new ones. */
static void take_settings(struct mw_chat *c, struct chat_command *command)
{
    struct settings old = c->settings;

    pthread_mutex_lock(&c->lock);
    c->settings = command->settings;
    c->settled = *session_settled(c->session);
    pthread_mutex_unlock(&c->lock);
    command->settings = old;
}

int chat_apply_settings(struct mw_chat *c, struct chat_command *command, struct err *e)
{
    struct answerer answerer;

    if (chat_prepare_answerer(c, &command->settings.o, &answerer, e) != 0)
        return -1;
    if (apply_engine(c, &command->settings.o.engine, e) != 0) {
        chat_answerer_free(&answerer, &c->answerer);
        return -1;
    }
    take_settings(c, command);
    chat_take_answerer(c, &answerer);
    return 0;
}

void chat_do_set(struct mw_chat *c, struct chat_command *command)
{
    struct err e = ERR_INIT;
    bool was_loaded = c->session != NULL;

    if (chat_apply_settings(c, command, &e) != 0) {
        refuse(c, command, &e);
        return;
    }
    chat_post_plan(c, was_loaded ? MW_EVENT_PLAN : MW_EVENT_READY);
    chat_post_no_drafter(c);
    chat_post_format_notice(c);
}

/* The answerer keeps its chat format: an answer cannot go on with another one. */
static void change_answerer(struct mw_chat *c)
{
    const struct mw_chat_options *o = &c->settings.o;
    struct answerer *a = &c->answerer;

    a->stop = o->stop;
    a->n_predict = o->n_predict;
    a->ctx_shift = o->engine.ctx_shift;
    sampler_set(a->sampler, &o->sampling);
    sampler_bias(a->sampler, o->logit_bias, o->n_logit_bias);
    c->conversation.system = o->system;
}

void chat_change_now(void *ctx, size_t n_token)
{
    struct mw_chat *c = ctx;
    struct chat_command *command;

    while ((command = chat_take_change(c, n_token)) != NULL) {
        struct err e = ERR_INIT;

        if (session_set(c->session, &command->settings.o.engine, &e) == 0) {
            take_settings(c, command);
            change_answerer(c);
            chat_post_plan(c, MW_EVENT_PLAN);
            chat_post_no_drafter(c);
        } else {
            refuse(c, command, &e);
        }
        chat_command_free(command);
    }
}
