/*
 * answer_out.h - write the answer of `memwall run` to standard output.
 *
 * To a terminal: cleaned, so that the model cannot send control sequences, and ended by a
 * newline.  To a pipe or file: byte for byte, with a final newline unless --raw.  With --json:
 * one object per line, {"event":"text",…} for each piece and {"event":"done",…} at the end with
 * the whole answer and its figures.  Thinking is written only with --json.  With --ids: the
 * ids of the answer instead of its text, or with --json {"event":"ids",…} beside it.
 */
#ifndef MEMWALL_SRC_TEXT_ANSWER_OUT_H
#define MEMWALL_SRC_TEXT_ANSWER_OUT_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/memwall.h"
#include "ui/words/clean.h"

struct answer_text {
    char *bytes;
    size_t n, room;
    bool is_cut; /* out of memory: the rest is missing */
};

struct answer_out {
    bool is_terminal, json, raw;
    bool input_left; /* standard input was not read; for the last line of JSON */
    bool is_help;    /* no model made the answer: it is from the help texts */
    bool any;        /* text was written */
    char last;       /* last byte written */
    bool only_ids;   /* no text is written, but the ids of the answer */
    struct clean clean;
    struct answer_text text, thinking; /* for the last line of JSON */
};

void answer_out_open(struct answer_out *a, bool json, bool raw);
/* A message to standard error follows: on a terminal it begins on a line of its own. */
void answer_out_break(struct answer_out *a);
/* All text so far was thinking.  A notice says so, unless the output is JSON or is_quiet. */
void answer_out_thought(struct answer_out *a, bool is_quiet);
void answer_out_text(struct answer_out *a, const char *text, size_t n, bool is_thinking);
/* Ids of the prompt or of the answer: n bytes of uint32_t. */
void answer_out_ids(struct answer_out *a, bool is_prompt, const char *ids, size_t n);
/* predicted: the limits that the predictions in s used; NULL: none were. */
void answer_out_done(struct answer_out *a, const struct mw_receipt *r,
                     const struct mw_sample *s, const struct mw_limits *predicted);
void answer_out_close(struct answer_out *a);

#endif
