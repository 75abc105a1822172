/*
 * segment.h - where a text may be cut into parts that are rendered each for itself.
 *
 * A text that streams is rendered again and again; so it is cut into segments as it
 * comes, and only the last one, the tail, is still open.  A segment is a paragraph, an item
 * of a list, a table, some lines of a code block.  Where cuts are depends on the text
 * alone, never on the pieces in which it came.  No segment is longer than SEGMENT_MAX, so
 * that what a piece costs has a bound.
 *
 * Cuts in Markdown are at places where CommonMark cannot join what it parts: before a line
 * that follows a blank line and is not indented enough for an open list, before an item of
 * a list, around headings and fences.  Code between fences is cut every SEGMENT_LINES
 * lines; what its highlighting must know is carried over.
 */
#ifndef MEMWALL_UI_TEXT_SEGMENT_H
#define MEMWALL_UI_TEXT_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEGMENT_MAX   32768
#define SEGMENT_LINES 64

enum segment_kind {
    SEGMENT_PLAIN,
    SEGMENT_MARKDOWN,
    SEGMENT_CODE, /* between fences that belong to it */
};

struct segment {
    uint32_t at, n; /* bytes of the text */
    uint8_t kind;
    uint8_t language, open; /* of code: for highlight_line at its beginning */
    uint8_t indent;         /* of the fence: blanks that its lines may have in front */
    bool gap;               /* a blank row stands before it */
    bool joined;            /* its first line continues the last one of the segment before */
    bool begins, ends;      /* code: the opening, the closing fence is in it */
};

struct segments {
    struct segment *seg; /* [n_seg] closed ones */
    uint32_t n_seg, room;
    bool markdown, failed;

    /* The tail, and what is known at the beginning of its last line. */
    struct segment tail; /* n is not set */
    uint32_t line;       /* where the first line begins that is not complete */
    uint32_t n_line;     /* complete lines in the tail */
    bool has_text;       /* one of them is not blank */
    bool blank;          /* the line before is blank */
    bool in_list;        /* the tail begins with an item ... */
    uint32_t offset;     /* ... whose text is indented so far */
    char mark;           /* ... and whose mark is this ('1' for a number) */
    char fence;          /* in code: the fence's character, else 0 */
    uint32_t fence_n;
    uint8_t open; /* in code: what highlighting needs at line */
};

void segments_start(struct segments *s, bool markdown);
void segments_free(struct segments *s);

/* The text is now text[0 .. n), the beginning as it was.  n is below 2 GiB. */
void segments_feed(struct segments *s, const char *text, size_t n);
/* The text ends here: the last line is complete even without its newline. */
void segments_finish(struct segments *s, const char *text, size_t n);
/* The open part as a segment; false: there is none.  A last line that may yet mean
 * something else (a few dashes, the beginning of a fence) is left out. */
bool segments_tail(const struct segments *s, const char *text, size_t n, struct segment *out);

/* The label of a fence's line: where it begins and how long it is. */
size_t segment_label(const char *line, size_t n, size_t *len);

#endif
