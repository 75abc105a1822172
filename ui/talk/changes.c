#include "config.h"

#include "ui/talk/changes.h"

#include <stdio.h>
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
    free(c->pending);
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

/* Allocate space for one more pending change. */
static int make_room(struct changes *c, struct err *e)
{
    size_t room = c->room * 2 + 4;
    struct change *more;

    if (c->n_pending < c->room)
        return 0;
    more = realloc(c->pending, room * sizeof *more);
    if (more == NULL)
        return err_memory(e, "a change of options");
    c->pending = more;
    c->room = room;
    return 0;
}

int changes_ask(struct changes *c, struct engine *g, const struct change *change, struct err *e)
{
    struct change new = *change;

    if (keep_new(c, &new.o.system, c->asked.system, e) != 0 ||
        keep_new(c, &new.o.format, c->asked.format, e) != 0)
        return -1;
    if (g == NULL) {
        c->asked = c->applied = new.o;
        return 0;
    }
    if (make_room(c, e) != 0 || g->calls->set(g, &new.o, e) != 0)
        return -1;
    c->asked = new.o;
    c->pending[c->n_pending++] = new;
    return 0;
}

static void drop_first(struct changes *c)
{
    memmove(c->pending, c->pending + 1, --c->n_pending * sizeof c->pending[0]);
}

unsigned changes_done(struct changes *c)
{
    unsigned then;

    if (c->n_pending == 0)
        return THEN_NOTHING;
    then = c->pending[0].then;
    c->applied = c->pending[0].o;
    drop_first(c);
    return then;
}

void changes_failed(struct changes *c)
{
    struct mw_chat_options refused;

    if (c->n_pending == 0)
        return;
    refused = c->pending[0].o;
    drop_first(c);
    for (size_t i = 0; i < c->n_pending; i++)
        mw_options_without(&c->applied, &refused, &c->pending[i].o);
    c->asked = c->n_pending > 0 ? c->pending[c->n_pending - 1].o : c->applied;
}

void changes_forget(struct changes *c)
{
    c->applied = c->asked;
    c->n_pending = 0;
}

bool changes_wait(const struct changes *c)
{
    return c->n_pending > 0 && c->pending[c->n_pending - 1].waits;
}

char *changes_text(const struct changes *c, bool is_answering, char *buf, size_t n)
{
    buf[0] = '\0';
    for (size_t i = 0; i < c->n_pending; i++) {
        const struct change *change = &c->pending[i];
        bool is_first = i == 0 || (is_answering && change->waits != change[-1].waits);
        const char *when = !is_answering   ? "applying "
                           : change->waits ? "after the answer: "
                                           : "next token: ";
        size_t len = strlen(buf);

        snprintf(buf + len, n - len, "%s%s%s",
                 i == 0     ? ""
                 : is_first ? "; "
                            : ", ",
                 is_first ? when : "", change->what);
    }
    return buf;
}
