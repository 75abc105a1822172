/*
 * body.h - one text of the chat pane: its source, its segments, and the rendered form of
 * segments that were visible.
 *
 * Segments are rendered on demand.  The open segment at the end, the tail, is rendered again
 * whenever the text has grown.  Renderings can be dropped at any time and are made again.
 */
#ifndef MEMWALL_UI_TEXT_BODY_H
#define MEMWALL_UI_TEXT_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/look/role.h"
#include "ui/text/rich.h"
#include "ui/text/segment.h"

/* Rendering options shared by all texts of a pane. */
struct body_look {
    int width;
    bool ascii;
    enum ui_role role; /* role of plain text */
};

struct body {
    char *text;
    uint32_t n, room;
    bool markdown, finished;
    struct segments segs;
    struct rich **rich; /* [room_rich], of closed segments; NULL: not rendered */
    uint32_t room_rich;
    struct rich tail, spare; /* the open segment now, and its previous rendering */
    struct segment tail_seg;
    uint32_t tail_n; /* length of the text when tail was rendered */
    bool tail_valid;
    size_t bytes; /* memory of everything here */
};

/* *b must be all zero. */
void body_start(struct body *b, bool markdown);
void body_free(struct body *b); /* leaves *b all zero */

/* Append text.  Returns false, with nothing added, if out of memory or beyond 2 GiB. */
bool body_append(struct body *b, const char *text, size_t n);
/* Take ownership of the complete text (from malloc, n bytes and a NUL). */
bool body_take(struct body *b, char *text, size_t n);
/* Remove the last n bytes, and split the text again. */
void body_shorten(struct body *b, size_t n);
/* End the text: its last line is complete. */
void body_finish(struct body *b);
/* Allow more text after body_finish. */
void body_reopen(struct body *b);
/* Split and render again, as Markdown or as plain text. */
void body_set_markdown(struct body *b, bool markdown);

/* Returns the number of segments, including the open one. */
uint32_t body_count(struct body *b);
const struct segment *body_segment(struct body *b, uint32_t seg);
/* Returns the segment that contains byte src of the text. */
uint32_t body_find(struct body *b, uint32_t src);

/* Returns a segment with its rows, valid until the next call for this body.  Never NULL; empty
 * if out of memory. */
const struct rich *body_rich(struct body *b, uint32_t seg, const struct body_look *look);
/* Drop the renderings of all segments except from .. to. */
void body_forget(struct body *b, uint32_t from, uint32_t to);

#endif
