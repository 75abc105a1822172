/*
 * conversation.h - the messages of a chat, and the ids that the model sees of them.
 */
#ifndef MEMWALL_ENGINE_SESSION_CONVERSATION_H
#define MEMWALL_ENGINE_SESSION_CONVERSATION_H

#include "engine/memwall.h"
#include "engine/text/chat_format.h"

struct turn {
    enum chat_role role;
    char *text, *thinking; /* owned; thinking may be NULL */
    size_t len, thinking_len;
    size_t room, thinking_room; /* allocated */
    struct ids ids;             /* of an answer: as it was generated */
    bool is_cut;                /* an answer that was stopped: may be continued */
};

struct conversation {
    const char *system; /* NULL: none; not owned */
    struct turn *turns;
    size_t n_turn, cap;
    size_t n_dropped; /* oldest of these turns that the context no longer holds */
    size_t n_before;  /* older messages of the chat, which are not held */
    bool is_partial;  /* the model is to see those, too: there is no answer without them */
};

void conversation_free(struct conversation *c);
/* Add a turn with a copy of text; returns it, or NULL with *e. */
struct turn *conversation_add(struct conversation *c, enum chat_role role, const char *text,
                              size_t len, struct err *e);
void conversation_cut(struct conversation *c, size_t n_turn); /* keep the first n */
/* Keep the first n messages of the chat, those that are not held included. */
void conversation_rewind(struct conversation *c, size_t n);
/* Forget dropped turns as long as all turns have more than max_bytes of text; returns how
 * many it forgot.  Going back to one of them needs its text from outside. */
size_t conversation_forget(struct conversation *c, uint64_t max_bytes);
/* Room for len bytes more.  A NUL stands behind the text, room grows ahead of need. */
int turn_reserve(struct turn *t, bool is_thinking, size_t len, struct err *e);
void turn_trim(struct turn *t); /* give room back that is not used */
int turn_append(struct turn *t, bool is_thinking, const char *text, size_t len, struct err *e);

/* How the ids are made. */
struct rendering {
    const struct chat_format *format; /* NULL: raw, texts one behind the other */
    const struct tokenizer *tokenizer;
    enum mw_think think;
};

/*
 * Ids of the first n_turn turns (without those dropped), with what makes the model answer
 * behind them.
 */
int conversation_render(const struct conversation *c, const struct rendering *r, size_t n_turn,
                        struct ids *out, struct err *e);

/* Drop the oldest exchange: a user's turn and the answer to it.  False: none is left but the
 * last question. */
bool conversation_drop_oldest(struct conversation *c);

#endif
