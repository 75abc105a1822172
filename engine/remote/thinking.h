/*
 * thinking.h - thinking that a server leaves in the text of an answer.
 *
 * Most servers send thinking in a field of its own.  One that does not know the marks of its
 * model leaves thinking in the text, between marks or, if the prompt has opened it, before the
 * closing mark.  A mark in the middle of a text is text: an answer may be about marks.  memwall's
 * own server knows better, and says which mark closes thinking.
 */
#ifndef MEMWALL_ENGINE_REMOTE_THINKING_H
#define MEMWALL_ENGINE_REMOTE_THINKING_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"

struct thinking_calls {
    /* A run of text, len > 0 bytes.  -1 stops with *e. */
    int (*text)(void *ctx, const char *text, size_t len, bool is_thinking, struct err *e);
    /* All text until now was thinking. */
    int (*thought)(void *ctx, struct err *e);
};

#define THINKING_HELD 40

struct thinking {
    const struct thinking_calls *calls;
    void *ctx;
    enum {
        THINKING_BEGIN,  /* the answer may begin with an opening mark */
        THINKING_INSIDE, /* up to its closing mark */
        THINKING_TEXT,   /* a line that is a closing mark ends thinking that the prompt opened */
        THINKING_BLANKS, /* between the closing mark and the answer */
        THINKING_OVER,   /* the rest is text */
    } state;
    size_t pair;         /* the marks of this answer */
    bool is_line_start;  /* the next byte of the text begins a line */
    char held[THINKING_HELD]; /* bytes that may be a part of a mark */
    size_t n_held;
};

/* Begin an answer; it has no marks if is_over. */
void thinking_begin(struct thinking *t, const struct thinking_calls *calls, void *ctx,
                    bool is_over);
/* Take the next piece, whose characters are complete.  Returns 0, or -1 with *e. */
int thinking_push(struct thinking *t, const char *text, size_t len, struct err *e);
/* Take a mark that closes thinking, as the server says: all text before it was thinking.  It may
 * stand within a line.  Once the thinking of this answer has ended, the mark is text. */
int thinking_close(struct thinking *t, const char *mark, size_t len, struct err *e);
/* Nothing follows, or the server sends thinking in its own field: the held bytes are text. */
int thinking_end(struct thinking *t, struct err *e);

#endif
