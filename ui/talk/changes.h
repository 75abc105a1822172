/*
 * changes.h - the options of a conversation: those requested and those in force.
 *
 * Every change goes through changes_ask().  The engine applies changes one after the other
 * and replies to each.  Until the last reply, requested and in force may differ.
 *
 *     changes_ask ──> pending ──> engine ──> MW_EVENT_PLAN    ──> changes_done    applied
 *                                       └──> MW_EVENT_REFUSED ──> changes_failed
 *
 * An answer that is being made goes on with most changes from its next token on.  The others
 * wait for its end, and so do all changes after them.
 */
#ifndef MEMWALL_UI_TALK_CHANGES_H
#define MEMWALL_UI_TALK_CHANGES_H

#include "engine/memwall.h"
#include "ui/engine/engine.h"

/* Actions after the engine has applied a change. */
enum changes_then {
    THEN_NOTHING = 0,
    THEN_ANNOUNCE = 1, /* show the new plan */
    THEN_CONTINUE = 2, /* continue the answer that was cut */
    THEN_OF_CHAT = 4,  /* nothing: a saved chat was held with these options */
};

struct change {
    struct mw_chat_options o; /* all options, as they then are */
    char what[48];            /* its name: "memory 600 MiB" */
    unsigned then;            /* enum changes_then */
    bool waits;               /* for the end of the answer that is being made */
};

struct changes {
    struct mw_chat_options asked, applied;
    struct change *pending; /* without a reply, oldest first */
    size_t n_pending, room;
    char **text; /* texts that options point to; kept until the end */
    size_t n_text;
};

void changes_begin(struct changes *c, const struct mw_chat_options *o);
void changes_free(struct changes *c);

/*
 * Request a change of the engine g; NULL: none runs, and it is in force at once.  Texts are
 * copied. -1 with *e: nothing has changed.
 */
int changes_ask(struct changes *c, struct engine *g, const struct change *change,
                struct err *e);
/* The engine has applied the oldest pending change.  Returns what to do now (enum
 * changes_then). */
unsigned changes_done(struct changes *c);
/* The engine has refused the oldest pending change, and takes it out of the later ones. */
void changes_failed(struct changes *c);
/* Whether a pending change waits for the end of the answer. */
bool changes_wait(const struct changes *c);
/* Name the pending changes: "next token: memory 600 MiB, threads 2; after the answer: kv q8_0".
 * "" if there are none. */
char *changes_text(const struct changes *c, bool is_answering, char *buf, size_t n);
/* Another engine begins with what was requested; there will be no answer to that. */
void changes_forget(struct changes *c);

#endif
