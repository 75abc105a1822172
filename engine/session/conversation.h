/*
 * conversation.h - the messages of a chat, and their ids as the model sees them.
 */
#ifndef MEMWALL_ENGINE_SESSION_CONVERSATION_H
#define MEMWALL_ENGINE_SESSION_CONVERSATION_H

#include "engine/format/json.h"
#include "engine/memwall.h"
#include "engine/text/chat_format.h"

struct turn {
    enum chat_role role;
    char *text, *thinking; /* owned; thinking may be NULL */
    size_t len, thinking_len;
    size_t room, thinking_room; /* allocated */
    struct ids ids;             /* of an answer: as it was generated */
    bool has_saved_ids;         /* they come from a saved chat and were not checked yet */
    size_t n_held;              /* bytes at the end of the text that struct mw_cut describes */
    bool holds_thinking;        /* they are at the end of the thinking */
    bool is_aside;              /* see mw_chat_aside(); so is the question before it */
    uint32_t attempt; /* answers to its question before it; of a question: all of them */
};

/* Messages that are given whole, and definitions of tools; or the ids of a prompt.  All owned. */
struct asked {
    struct json_doc *messages, *tools; /* NULL: none */
    struct ids ids;                    /* n 0: none */
};
void asked_free(struct asked *a);

struct conversation {
    const char *system; /* NULL: none; not owned */
    /* The messages before the turns, in their place: there is no system message then, and
     * nothing is dropped.  NULL: there are only turns.  Not owned. */
    const struct asked *asked;
    struct turn *turns;
    size_t n_turn, cap;
    size_t n_dropped; /* the oldest of these turns, which no longer fit the context */
    size_t kept;      /* 1 + a dropped question that the template needs; 0: none */
    size_t n_before;  /* older messages of the chat, which are not in memory */
    bool is_partial;  /* the model would need those, too: without them there is no answer */
    /* Turns that were stashed, and the conversation until then. */
    struct turn *stash; /* [n_stash] */
    size_t n_stash, stash_at, stash_dropped, stash_kept;
    bool stash_partial;
};

void conversation_free(struct conversation *c);
/* Add a turn with a copy of text.  Returns it, or NULL with *e. */
struct turn *conversation_add(struct conversation *c, enum chat_role role, const char *text,
                              size_t len, struct err *e);
void conversation_cut(struct conversation *c, size_t n_turn); /* keep the first n */
/* Remove the last turn, an answer; its question remembers that it had one. */
void conversation_cut_answer(struct conversation *c);
/* Keep the first n messages of the chat, counting those that are not in memory. */
void conversation_rewind(struct conversation *c, size_t n);
/* Move all messages of the chat from the n-th on to turns[room], from malloc, which then belongs
 * to c; those beyond room are freed.  Messages that were stashed before are freed, too. */
void conversation_stash(struct conversation *c, size_t n, struct turn *turns, size_t room);
/* Replace the messages since the stash by the stashed ones, which still have their ids.  Does
 * nothing if there is no stash. */
void conversation_unstash(struct conversation *c);
/* Free dropped turns while all turns together have more than max_bytes of text.  Returns their
 * number.  To go back to one of them, the caller must restore its text. */
size_t conversation_forget(struct conversation *c, uint64_t max_bytes);
/* Allocate space for len more bytes and a NUL. */
int turn_reserve(struct turn *t, bool is_thinking, size_t len, struct err *e);
void turn_trim(struct turn *t); /* free space that is not used */
int turn_append(struct turn *t, bool is_thinking, const char *text, size_t len, struct err *e);
/* Make all text of an answer the end of its thinking. */
int turn_take_for_thinking(struct turn *t, struct err *e);
#define TURN_HELD_MAX 512
/* Remove the text that was held back, and store its n_held bytes in held. */
void turn_take_back(struct turn *t, char held[TURN_HELD_MAX]);
/* Let a saved answer go on as cut describes, as far as it is valid. */
int turn_restore_cut(struct turn *t, const struct mw_cut *cut, struct err *e);

/* Add the turns of mw_chat_aside().  They keep the places of their messages, without texts. */
int conversation_add_aside(struct conversation *c, struct err *e);
/* Is turn i an answer that did not come from the model, or the question of one? */
bool conversation_is_aside(const struct conversation *c, size_t i);
/* Is the last turn such an answer? */
bool conversation_ends_aside(const struct conversation *c);

/* The way in which ids are made. */
struct rendering {
    const struct chat_format *format; /* NULL: raw, the texts joined */
    const struct tokenizer *tokenizer;
    enum mw_think think;
};

/*
 * Append the ids of the first n_turn turns, without dropped ones and asides, and of the tokens
 * after them that make the model answer.
 */
int conversation_render(const struct conversation *c, const struct rendering *r, size_t n_turn,
                        struct ids *out, struct err *e);

/*
 * The same for another question after the system message, or after the definitions of tools and
 * the messages before the first one of the user: the ids that both prompts begin with do not
 * depend on the question.  Returns 0 without ids if there is nothing before the question.
 */
int conversation_render_other(const struct conversation *c, const struct rendering *r,
                              struct ids *out, struct err *e);
/* Whether the first question is the last message. */
bool conversation_asks_first(const struct conversation *c, size_t n_turn);

/* Drop the oldest turns up to the next one of the user.  Returns false if only the last
 * question is left. */
bool conversation_drop_oldest(struct conversation *c);
/* Drop all turns before the last question. */
void conversation_drop_all(struct conversation *c);

#endif
