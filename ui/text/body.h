/*
 * body.h - one text of the chat as the pane needs it: its source, the segments it is cut
 * into, and the rendered form of those that were looked at.
 *
 * Segments are rendered when they are asked for; the open one at the end, the tail, again
 * whenever the text has grown.  Renderings can be dropped at any time, they come back.
 */
#ifndef MEMWALL_UI_TEXT_BODY_H
#define MEMWALL_UI_TEXT_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/term/role.h"
#include "ui/text/rich.h"
#include "ui/text/segment.h"

/* How texts are rendered: all of a pane share it. */
struct body_look {
    int width;
    bool ascii;
    enum ui_role role; /* of plain text */
};

struct body {
    char *text;
    uint32_t n, room;
    bool markdown, finished;
    struct segments segs;
    struct rich **rich; /* [room_rich], of closed segments; NULL: not rendered now */
    uint32_t room_rich;
    struct rich tail, spare; /* of the open segment, and how it was before */
    struct segment tail_seg;
    uint32_t tail_n; /* length of the text when tail was made */
    bool tail_valid;
    size_t bytes; /* that all of it takes, kept up to date */
};

/* *b is all zero. */
void body_start(struct body *b, bool markdown);
void body_free(struct body *b); /* back to all zero */

/* More text.  false: no memory, or 2 GiB are reached; nothing was added. */
bool body_append(struct body *b, const char *text, size_t n);
/* Take over text (of malloc, n bytes and a NUL), which is all there will be. */
bool body_take(struct body *b, char *text, size_t n);
/* No more text: the last line is complete. */
void body_finish(struct body *b);
/* Text may come again. */
void body_reopen(struct body *b);
/* Cut and rendered anew from here on, as Markdown or as it came. */
void body_set_markdown(struct body *b, bool markdown);

/* Segments, the open one included. */
uint32_t body_count(struct body *b);
const struct segment *body_segment(struct body *b, uint32_t seg);
/* The segment that holds byte src of the text. */
uint32_t body_find(struct body *b, uint32_t src);

/* The segment with its rows.  Valid until the next call for this body; never NULL (empty
 * when memory is out). */
const struct rich *body_rich(struct body *b, uint32_t seg, const struct body_look *look);
/* Forget renderings of segments but from .. to. */
void body_forget(struct body *b, uint32_t from, uint32_t to);

#endif
