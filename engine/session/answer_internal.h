/*
 * answer_internal.h - the state of one answer, between the files that make it.
 *
 *     answer.c           evaluate, sample, until something ends the answer
 *     answer_prompt.c    the prompt, with fewer turns if it does not fit
 *     answer_beginning.c a beginning of it that other chats share
 *     answer_resume.c    an answer that goes on where it was cut
 *     answer_text.c      from ids to text, up to a stop string
 *     answer_end.c       the turn and the receipt at the end
 */
#ifndef MEMWALL_ENGINE_SESSION_ANSWER_INTERNAL_H
#define MEMWALL_ENGINE_SESSION_ANSWER_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/session/answer.h"

/* The state of one answer. */
struct answer_state {
    struct answerer *a;
    struct ids prompt;           /* conversation, and the answer so far if it continues */
    struct ids answer;           /* generated so far, also before it was stopped */
    size_t turn;                 /* of the answer in the conversation */
    struct answer_parser parser; /* thinking or text; decodes in raw mode too */
    char held[MW_STOP_BYTES];    /* text that may be the beginning of a stop string */
    size_t n_held;
    size_t n_said[2];   /* bytes of text, and of thinking [true], that came out of the ids */
    bool is_inside;     /* the answer began inside its thinking, as a closing mark showed */
    bool is_ready;      /* the prompt is complete, and the parser is at its end */
    bool is_muted;      /* text is counted only */
    bool differs;       /* what came out of the ids is not the text of the turn */
    bool found_stop;    /* a stop string, or a word that opens a turn, ended the answer */
    bool is_own_stop;   /* it was a stop string */
    uint32_t n_predict; /* of the options at the start */
    struct mw_receipt receipt;
    uint64_t start_ns, bytes_before;
    uint64_t change_ns; /* spent on changes of options, in the prompt */
    uint64_t prefill_stall_ns;
    bool is_lost; /* memory ran out and a piece of text was lost: err */
    struct err err;
};

/* ---- answer.c ---- */

/* Returns the turn of the answer, until the conversation gets another one. */
struct turn *answer_turn(struct answer_state *r);

/* Whether the model ends its answer with this token. */
bool answer_is_stop_id(const struct answerer *a, uint32_t id);

/* ---- answer_prompt.c ---- */

/* Make a prompt that leaves room for a token.  With ctx_shift, drop the oldest turns for it. */
int answer_fit_prompt(struct answer_state *r, struct err *e);

/* ---- answer_beginning.c ---- */

/* Read a kept beginning of the prompt before the prompt is evaluated.  same: the tokens that the
 * session held of it.  *kept: those that it holds, before and after.  Returns 0, or -1 with
 * ERR_CANCELLED. */
int answer_use_beginning(struct answer_state *r, uint32_t same, uint32_t *kept, struct err *e);

/* ---- answer_resume.c ---- */

/* Make the prompt, and bring the parser to its end.  *is_over: the answer ends at once, at a
 * stop string that was set since it was cut. */
int answer_begin(struct answer_state *r, bool is_continued, bool *is_over, struct err *e);

/* ---- answer_text.c ---- */

/* Append text to the turn and post it.  The answer ends if one of the two fails, so that the
 * history always has what was shown. */
void answer_say(struct answer_state *r, const char *text, size_t len, bool is_thinking);

/* Say the text of one more id.  Returns whether it ends the answer. */
bool answer_say_id(struct answer_state *r, uint32_t id);

/* The model has ended the answer. */
void answer_say_end(struct answer_state *r);

/* Store the text that the parser and the search for stop strings hold back, without an
 * incomplete character. */
size_t answer_take_held(const struct answer_state *r, struct answer_parser *p, char *buf,
                        bool *is_thinking);

/* The answer was cut.  Text that was held back is added to the turn, but posted with the end of
 * the answer only: it may turn out to be the beginning of a mark or of a stop string. */
void answer_keep_held(struct answer_state *r);

/* ---- answer_end.c ---- */

/* Complete the turn.  Returns whether it stays: a new answer without text stays if it is one
 * that can go on. */
bool answer_end_turn(struct answer_state *r, bool is_continued);

/* Post the receipt, with the text and the ids of an answer that was cut. */
void answer_post_done(struct answer_state *r, bool has_answer);

#endif
