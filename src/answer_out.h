/*
 * answer_out.h - where the answer of `memwall run` goes: standard output.
 *
 * To a terminal: cleaned, so that nothing a model writes can command it, and ended by a
 * newline.  To a pipe or file: the bytes as they are, with a last newline unless --raw.
 * With --json: one object a line, {"event":"text",…} as pieces come and {"event":"done",…}
 * with the whole answer and its figures at the end.  Thinking appears only there.
 */
#ifndef MEMWALL_SRC_ANSWER_OUT_H
#define MEMWALL_SRC_ANSWER_OUT_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/memwall.h"
#include "ui/text/clean.h"

struct answer_text {
    char *bytes;
    size_t n, room;
    bool is_cut; /* memory ran out: the rest is missing */
};

struct answer_out {
    bool is_terminal, json, raw;
    bool any;  /* something was written */
    char last; /* the last byte of it */
    struct clean clean;
    struct answer_text text, thinking; /* kept for the last line of JSON */
};

void answer_out_open(struct answer_out *a, bool json, bool raw);
void answer_out_text(struct answer_out *a, const char *text, size_t n, bool is_thinking);
void answer_out_done(struct answer_out *a, const struct mw_receipt *r,
                     const struct mw_sample *s);
void answer_out_close(struct answer_out *a);

#endif
