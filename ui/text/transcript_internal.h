/*
 * transcript_internal.h - between the files of the transcript: items and memory
 * (transcript.c), places and scrolling (view.c), drawing (draw.c), search (find.c),
 * selection and copying (select.c).
 *
 * A part is what is rendered at once: the line above the thinking, a segment of the
 * thinking, a segment of the text, the receipt.  A place names a part; numbers stay right
 * when items below it grow.
 */
#ifndef MEMWALL_UI_TEXT_TRANSCRIPT_INTERNAL_H
#define MEMWALL_UI_TEXT_TRANSCRIPT_INTERNAL_H

#include "ui/text/body.h"
#include "ui/text/transcript.h"

enum area { AREA_HEAD, AREA_THINKING, AREA_TEXT, AREA_RECEIPT, AREAS };

struct place {
    uint32_t item;
    enum area area;
    uint32_t seg;
};

/* A row of the pane: of a part, with the blank row in front of it counted. */
struct spot {
    struct place at;
    uint32_t row;
};

/* A point in the text of a part. */
struct point {
    struct place at;
    uint32_t byte;
};

/* Text of an item as long as it is in memory. */
struct held {
    struct body text, thinking;
};

struct item {
    struct held *held; /* NULL: not loaded */
    uint32_t id;       /* for load, or TRANSCRIPT_NO_ID */
    uint8_t kind;      /* enum transcript_kind */
    bool is_open;      /* pieces may come */
    bool is_lost;      /* load failed; held says so */
    bool has_receipt;
    bool flip_thinking, flip_receipt; /* shown other than the others */
    struct mw_receipt receipt;
};

struct transcript {
    struct transcript_options o;
    struct item *item; /* [n_item] */
    uint32_t n_item, room_item;
    size_t n_older;     /* messages before the first item */
    uint32_t n_unseen;  /* items that the model sees no more */
    size_t bytes, peak; /* of all that is held */

    int height, width; /* of the pane */
    bool ascii, raw, dirty;
    char status[256];
    double status_share;

    bool follows;
    struct spot top; /* the uppermost row, while it does not follow */
    bool has_pin;
    struct point pin; /* the text that top was found by when the size changed ... */
    uint32_t pin_row; /* ... and its row then */

    char query[128]; /* "": no search */
    bool match_case;
    bool has_match;
    struct point match; /* where it begins ... */
    uint32_t match_end; /* ... and the byte behind it */

    bool has_selection;
    bool is_pressed; /* from is where the button went down, and still there */
    enum transcript_unit unit;
    struct point from, to; /* where it began, where the mouse is */

    bool has_turn;
    uint32_t turn; /* the item that the cursor is on */

    bool has_code; /* a code block was copied: ask again for the one before it */
    uint32_t code_item, code_block;

    struct spot *shown; /* [n_shown] what each row showed when it was drawn */
    int n_shown, room_shown;
    struct rich line; /* of parts of one line, made when asked for */
};

/* ---- items (transcript.c) ---- */

/* Bring the item's text into memory.  Never NULL but when memory is out. */
struct held *transcript_held(struct transcript *t, uint32_t item);
/* Its memory has changed from before. */
void transcript_counted(struct transcript *t, const struct held *h, size_t before);
size_t transcript_held_bytes(const struct held *h);
/* Drop what is not needed to show items first .. last, if there is too much. */
void transcript_keep(struct transcript *t, uint32_t first, uint32_t last);
/* Drop all rows: the width, or what is shown, has changed. */
void transcript_forget_rows(struct transcript *t);

/* ---- parts (view.c) ---- */

bool part_is_shown(struct transcript *t, uint32_t item, enum area area);
/* The first, last, next, previous part; false: there is none (*p is as it was). */
bool part_first(struct transcript *t, struct place *p);
bool part_last(struct transcript *t, struct place *p);
bool part_next(struct transcript *t, struct place *p);
bool part_before(struct transcript *t, struct place *p);
/* Blank rows in front of it: 0 or 1. */
uint32_t part_gap(struct transcript *t, struct place p);
/* Its rows, gap included. */
uint32_t part_rows(struct transcript *t, struct place p);
/* Valid until the next call. */
const struct rich *part_rich(struct transcript *t, struct place p);
/* The source of its text. */
const char *part_source(struct transcript *t, struct place p);
/* Columns in front of its text, and what stands there. */
int part_gutter(const struct transcript *t, struct place p);
int place_compare(struct place a, struct place b);
int point_compare(struct point a, struct point b);

/* Rows of the pane that show items. */
int view_height(const struct transcript *t);
/* Where the view begins now. */
struct spot view_top(struct transcript *t);
/* Move by at most n rows; returns how far it went. */
uint32_t spot_down(struct transcript *t, struct spot *s, uint32_t n);
uint32_t spot_up(struct transcript *t, struct spot *s, uint32_t n);
/* Put the view so that the row of a point is seen. */
void view_show(struct transcript *t, struct point p);

/* ---- search (find.c) ---- */

/* The next match in text[from .. n): where, and *end; n: none. */
size_t find_match(const struct transcript *t, const char *text, size_t n, size_t from,
                  size_t *end);

/* ---- selection (select.c) ---- */

/* The part of p's text that is selected; false: nothing of it. */
bool select_range(struct transcript *t, struct place p, uint32_t *from, uint32_t *to);

#endif
