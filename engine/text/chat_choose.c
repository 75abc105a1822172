/* Choose the chat format of a model, and give the reason. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/text/chat_internal.h"

struct chat_choice {
    struct chat_format own; /* with the marks of this model */
    enum chat_source source;
    bool has_template; /* the model or the caller gave a template */
    bool is_given;     /* the caller gave the template */
    struct err why;    /* why the template is not evaluated */
};

/* ---- the choice ---- */

/* Choose a built-in format by the control tokens of the vocabulary. */
static int guess(struct chat_choice *x, const struct tokenizer *t, struct err *e)
{
    for (int i = 0; chat_format_at(i) != NULL; i++) {
        struct err ignored = ERR_INIT;

        if (chat_format_open(&x->own, chat_format_at(i), t, &ignored) == 0)
            break; /* the last is raw, which needs none */
        if (ignored.code == ERR_MEMORY) {
            *e = ignored;
            return -1;
        }
    }
    x->source = x->own.template != NULL ? CHAT_BY_TOKENS : CHAT_NO_FORMAT;
    return 0;
}

static int choose(struct chat_choice *x, const struct tokenizer *t, const char *text,
                  size_t len, struct err *e)
{
    x->has_template = text != NULL;
    if (text == NULL)
        return guess(x, t, e);
    if (chat_template_open(&x->own, CHAT_TEMPLATE_NAME, t, text, len, &x->why) == 0) {
        x->source = CHAT_EVALUATED;
        return 0;
    }
    if (x->why.code == ERR_MEMORY || x->is_given) {
        *e = x->why;
        return -1;
    }
    return guess(x, t, e);
}

int chat_choose(struct chat_choice **out, const struct catalogue *c, const struct tokenizer *t,
                const struct chat_wish *wish, struct err *e)
{
    static const struct chat_wish none = { 0 };
    const struct chat_wish *want = wish != NULL ? wish : &none;
    struct chat_choice *x = calloc(1, sizeof *x);
    char *text = NULL;
    size_t len = 0;
    int rc;

    *out = NULL;
    if (x == NULL)
        return err_memory(e, "a chat format");
    x->why = (struct err)ERR_INIT;
    x->source = CHAT_NAMED;
    x->is_given = want->template != NULL;
    if (want->format != NULL)
        rc = chat_format_open(&x->own, want->format, t, e);
    else if (want->template != NULL)
        rc = choose(x, t, want->template, want->len, e);
    else if ((rc = vocab_chat_template(c, &text, &len, e)) == 0)
        rc = choose(x, t, text, len, e);
    if (rc == 0 && strcmp(x->own.name, "raw") != 0)
        chat_find_marks(&x->own, t, want->template != NULL ? want->template : text,
                        want->template != NULL ? want->len : len);
    free(text);
    if (rc != 0) {
        chat_choice_free(x);
        return -1;
    }
    *out = x;
    return 0;
}

void chat_choice_free(struct chat_choice *x)
{
    if (x == NULL)
        return;
    chat_template_close(&x->own);
    free(x);
}

const struct chat_format *chat_choice_format(const struct chat_choice *x)
{
    return &x->own;
}

bool chat_choice_is_named(const struct chat_choice *x, const char *name)
{
    if (name == NULL || x->source != CHAT_NAMED)
        return name == NULL && x->source != CHAT_NAMED;
    return strcmp(x->own.name, name) == 0;
}

int64_t chat_choice_time(const struct chat_choice *choice)
{
    return choice->own.template != NULL ? chat_template_time(choice->own.template) : 0;
}

bool chat_choice_set_time(struct chat_choice *choice, int64_t time_s)
{
    return choice->own.template == NULL ||
           chat_template_set_time(choice->own.template, time_s);
}

enum chat_source chat_choice_source(const struct chat_choice *x)
{
    return x->source;
}

/* "line 3: unknown filter" */
static const char *reason(const struct chat_choice *x)
{
    return x->why.what;
}

const char *chat_choice_text(const struct chat_choice *x, char *buf, size_t n)
{
    const char *name = x->own.name;

    switch (x->source) {
    case CHAT_NAMED: snprintf(buf, n, "%s (built in, chosen by name)", name); break;
    case CHAT_EVALUATED:
        snprintf(buf, n, "%s template (evaluated)", x->is_given ? "the given" : "the model's");
        break;
    case CHAT_BY_TOKENS:
    case CHAT_NO_FORMAT:
        if (x->has_template)
            snprintf(buf, n, "%s (%s; the template cannot be used: %s)", name,
                     x->source == CHAT_BY_TOKENS ? "guessed from control tokens"
                                                 : "no built-in format fits",
                     reason(x));
        else if (x->source == CHAT_BY_TOKENS)
            snprintf(buf, n, "%s (guessed from control tokens; the file has no template)",
                     name);
        else
            snprintf(buf, n, "raw (the file has no template and no known control tokens)");
        break;
    }
    return buf;
}

bool chat_choice_notice(const struct chat_choice *x, bool has_system, char *buf, size_t n)
{
    const struct chat_template *own = x->own.template;

    if (x->source == CHAT_EVALUATED) {
        enum system_kind kind = chat_template_system(own);

        if (!has_system || kind == SYSTEM_PRINTED)
            return false;
        if (kind == SYSTEM_REFUSED)
            snprintf(buf, n,
                     "The model's chat template refuses a system message, so the system "
                     "text goes before the first message.");
        else
            snprintf(buf, n,
                     "The model's chat template leaves the system message out, so the "
                     "model does not see it.");
        return true;
    }
    if (x->has_template && x->why.code != ERR_NONE && x->source != CHAT_NO_FORMAT)
        snprintf(buf, n,
                 "The model's chat template cannot be used (%s). The built-in format %s "
                 "is used instead; choose another one with --format NAME.",
                 reason(x), x->own.name);
    else if (x->has_template && x->why.code != ERR_NONE)
        snprintf(buf, n,
                 "The model's chat template cannot be used (%s), and no built-in format fits "
                 "its vocabulary. Text is sent without a chat format; choose one with "
                 "--format NAME, or use another file of the model.",
                 reason(x));
    else if (x->source == CHAT_NO_FORMAT)
        snprintf(buf, n,
                 "The model has no chat template and no known control tokens. Text is "
                 "sent without a chat format; choose one with --format NAME.");
    else
        return false;
    return true;
}
