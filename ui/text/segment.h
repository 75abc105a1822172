/*
 * segment.h - splits a text into segments that are rendered separately.
 *
 * A streaming text is rendered many times.  It is split as it arrives, so that only the last
 * segment, the tail, is open and rendered again.  A segment is a paragraph, an item of a list,
 * a table, or some lines of a code block.  The places of the cuts depend on the text alone,
 * not on the pieces in which it arrived.  SEGMENT_MAX bounds the length of a segment and
 * therefore the cost of a piece.
 *
 * Markdown is cut where CommonMark cannot join the two sides: before a line that follows a
 * blank line and is not indented enough for an open list, before an item of a list, and around
 * headings and fences.  Code in fences is cut every SEGMENT_LINES lines, and the state of the
 * highlighter is carried over.
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
    SEGMENT_CODE, /* with its fences */
};

struct segment {
    uint32_t at, n; /* bytes of the text */
    uint8_t kind;
    uint8_t language, open; /* of code: for highlight_line at its start */
    uint8_t indent;         /* of the fence: blanks to remove from its lines */
    bool gap;               /* a blank row precedes it */
    bool joined;            /* its first line continues the last line of the previous segment */
    bool begins, ends;      /* code: it contains the opening, the closing fence */
};

struct segments {
    struct segment *seg; /* [n_seg], closed */
    uint32_t n_seg, room;
    bool markdown, failed;

    /* The tail, and the state at the start of its last line. */
    struct segment tail; /* n is not set */
    uint32_t line;       /* start of the first incomplete line */
    uint32_t n_line;     /* complete lines in the tail */
    bool has_text;       /* one of them is not blank */
    bool blank;          /* the previous line is blank */
    bool in_list;        /* the tail begins with an item of a list */
    uint32_t offset;     /* indentation of the text of that item */
    char mark;           /* mark of that item ('1' for a number) */
    char fence;          /* in code: the character of the fence, else 0 */
    uint32_t fence_n;
    char formula; /* the last line is in a formula of several lines: its mark, else 0 */
    uint8_t open; /* in code: state of the highlighter at line */
};

void segments_start(struct segments *s, bool markdown);
void segments_free(struct segments *s);

/* The text has grown to text[0 .. n), below 2 GiB. */
void segments_feed(struct segments *s, const char *text, size_t n);
/* End the text: the last line is complete even without a newline. */
void segments_finish(struct segments *s, const char *text, size_t n);
/* Get the tail as a segment; false if it is empty.  A last line whose meaning may still change
 * (a few dashes, the start of a fence) is left out. */
bool segments_tail(const struct segments *s, const char *text, size_t n, struct segment *out);

/* Returns the position of the label in the line of a fence, and its length in *len. */
size_t segment_label(const char *line, size_t n, size_t *len);

#endif
