/*
 * changes.h - the options of a conversation: those requested and those in force.
 *
 * Every change goes through changes_ask().  The engine applies changes one after the other
 * and answers each; until the last answer, requested and in force may differ.
 *
 *     changes_ask ──> engine ──> MW_EVENT_PLAN    ──> changes_done    applied = asked
 *                           └──> MW_EVENT_REFUSED ──> changes_failed  asked = applied
 */
#ifndef MEMWALL_UI_TALK_CHANGES_H
#define MEMWALL_UI_TALK_CHANGES_H

#include "engine/memwall.h"

/* Actions after the engine has applied a change. */
enum changes_then {
    THEN_NOTHING = 0,
    THEN_ANNOUNCE = 1, /* show the new plan */
    THEN_CONTINUE = 2, /* continue the answer that was cut */
};

struct changes {
    struct mw_chat_options asked, applied;
    unsigned n_pending; /* changes without an answer */
    unsigned then;      /* enum changes_then, after the last of them */
    char **text;        /* texts that options point to; kept until the end */
    size_t n_text;
};

void changes_begin(struct changes *c, const struct mw_chat_options *o);
void changes_free(struct changes *c);

/*
 * Request o of chat; NULL: no engine runs, and o is in force at once.  Texts are copied.
 * -1 with *e: nothing has changed.
 */
int changes_ask(struct changes *c, struct mw_chat *chat, const struct mw_chat_options *o,
                unsigned then, struct err *e);
/* The engine has applied a change.  Returns what to do now (enum changes_then); THEN_NOTHING
 * while others are pending. */
unsigned changes_done(struct changes *c);
/* The engine has refused a change.  Returns false if none was pending. */
bool changes_failed(struct changes *c);
/* Another engine begins with what was requested; there will be no answer to that. */
void changes_forget(struct changes *c);

#endif
