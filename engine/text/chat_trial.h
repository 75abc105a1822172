/*
 * chat_trial.h - conversations that show how a chat format writes messages.
 */
#ifndef MEMWALL_ENGINE_TEXT_CHAT_TRIAL_H
#define MEMWALL_ENGINE_TEXT_CHAT_TRIAL_H

#include "engine/text/chat_internal.h"

/* Texts that no template contains. */
#define TRIAL_QUESTION "qxqa"
#define TRIAL_ANSWER   "qxqb"
#define TRIAL_THOUGHT  "qxqc"
#define TRIAL_OTHER    "zjzj" /* no text above begins like this one */

struct chat_message chat_trial_message(enum chat_role role, const char *text);

/* Render messages.  Returns false if the format refuses them.  The caller frees *out. */
bool chat_trial(const struct chat_format *f, const struct tokenizer *t,
                const struct chat_message *m, size_t n, bool has_prompt,
                struct chat_prompt *out);

struct span chat_last_line(struct span s);
/* Whether a line cannot be the start of ordinary text: it has a name, and a sign like ':'. */
bool chat_is_distinctive(struct span line);

/* Store a mark of fewer than MARK_BYTES bytes. */
void chat_copy_mark(char *out, struct span s);

/* Whether a token is a control token or a user-defined one. */
bool chat_is_added(const struct tokenizer *t, uint32_t id);
/* Whether such a token has this text.  t: a tokenizer. */
bool chat_has_token(const void *t, const char *mark);

#endif
