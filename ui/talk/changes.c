#include "config.h"

#include "ui/talk/changes.h"

#include <stdlib.h>
#include <string.h>

void changes_begin(struct changes *c, const struct mw_chat_options *o)
{
    *c = (struct changes){ .asked = *o, .applied = *o };
}

void changes_free(struct changes *c)
{
    while (c->n_text > 0)
        free(c->text[--c->n_text]);
    free(c->text);
    *c = (struct changes){ 0 };
}

/* A copy of text that lives as long as c. */
static const char *keep_text(struct changes *c, const char *text, struct err *e)
{
    char **more = realloc(c->text, (c->n_text + 1) * sizeof *more);

    if (more != NULL) {
        c->text = more;
        more[c->n_text] = strdup(text);
        if (more[c->n_text] != NULL)
            return more[c->n_text++];
    }
    err_memory(e, "an option");
    return NULL;
}

/* Make *to a copy of itself unless it is the text that is in force, or none. */
static int keep_new(struct changes *c, const char **to, const char *now, struct err *e)
{
    if (*to == NULL || *to == now)
        return 0;
    *to = keep_text(c, *to, e);
    return *to != NULL ? 0 : -1;
}

int changes_ask(struct changes *c, struct mw_chat *chat, const struct mw_chat_options *o,
                unsigned then, struct err *e)
{
    struct mw_chat_options asked = *o;

    if (keep_new(c, &asked.system, c->asked.system, e) != 0 ||
        keep_new(c, &asked.format, c->asked.format, e) != 0)
        return -1;
    if (chat == NULL) {
        c->asked = c->applied = asked;
        return 0;
    }
    if (mw_chat_set(chat, &asked, e) != 0)
        return -1;
    c->asked = asked;
    c->n_pending++;
    c->then = then | (c->then & THEN_CONTINUE);
    return 0;
}

unsigned changes_done(struct changes *c)
{
    unsigned then = c->then;

    if (c->n_pending == 0 || --c->n_pending > 0)
        return THEN_NOTHING;
    c->applied = c->asked;
    c->then = THEN_NOTHING;
    return then;
}

bool changes_failed(struct changes *c)
{
    if (c->n_pending == 0)
        return false;
    if (--c->n_pending == 0)
        c->asked = c->applied;
    c->then = THEN_NOTHING;
    return true;
}

void changes_forget(struct changes *c)
{
    c->applied = c->asked;
    c->n_pending = 0;
    c->then = THEN_NOTHING;
}
