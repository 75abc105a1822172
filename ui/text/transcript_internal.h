/*
 * transcript_internal.h - between the files of the transcript: items and memory
 * (transcript.c), places and scrolling (view.c), drawing (draw.c), search (find.c),
 * selection and copying (select.c).
 *
 * A part is rendered as a unit: the line above the thinking or the files, a segment of them, a
 * segment of the text, the receipt.  A place names a part and stays valid when later items
 * grow.
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

/* A row of a part, counting the blank row before the part. */
struct spot {
    struct place at;
    uint32_t row;
};

/* A point in the text of a part. */
struct point {
    struct place at;
    uint32_t byte;
};

/* The text of an item while it is in memory. */
struct held {
    struct body text, thinking;   /* thinking of a user message: its files */
    char label[TRANSCRIPT_LABEL]; /* of the files */
};

struct item {
    struct held *held; /* NULL: not loaded */
    uint32_t id;       /* for load, or TRANSCRIPT_NO_ID */
    uint8_t kind;      /* enum transcript_kind */
    bool is_open;      /* more pieces may arrive */
    bool is_lost;      /* load failed; held contains a message instead */
    bool has_receipt;
    bool flip_thinking, flip_receipt; /* folded differently from the default */
    struct mw_receipt receipt;
};

struct transcript {
    struct transcript_options o;
    struct item *item; /* [n_item] */
    uint32_t n_item, room_item;
    size_t n_older;     /* messages before the first item */
    uint32_t n_unseen;  /* items dropped from the context */
    size_t bytes, peak; /* of everything in memory */

    int height, width; /* of the pane */
    bool ascii, raw;
    char status[256];
    double status_share;

    bool follows;
    struct spot top; /* the top row, while the view does not follow */
    bool has_pin;
    struct point pin; /* the text at the top when the size changed */
    uint32_t pin_row; /* row of pin at that time */

    char query[128]; /* "": no search */
    bool match_case;
    bool has_match;
    struct point match; /* its start */
    uint32_t match_end; /* its end */

    bool has_selection;
    bool is_pressed; /* the button is down since from */
    enum transcript_unit unit;
    struct point from, to; /* start of the selection, position of the mouse */

    bool has_turn;
    uint32_t turn; /* the item of the cursor */
    bool followed; /* where the view was before the cursor came */
    struct spot top_before;

    bool has_code; /* a code block was copied: the next copy takes the one before it */
    uint32_t code_item, code_block;

    struct spot *shown; /* [n_shown] the row of each screen row at the last draw */
    int n_shown, room_shown;
    struct rich line; /* for parts of one line, made on demand */
};

/* ---- items (transcript.c) ---- */

/* Load the text of an item.  Returns NULL only if out of memory. */
struct held *transcript_held(struct transcript *t, uint32_t item);
/* Account for a change of its memory from before. */
void transcript_counted(struct transcript *t, const struct held *h, size_t before);
size_t transcript_held_bytes(const struct held *h);
/* If the limit is exceeded, drop the texts and rows of all items but first .. last. */
void transcript_keep(struct transcript *t, uint32_t first, uint32_t last);
/* Drop all rows, after a change of the width or of what is shown. */
void transcript_forget_rows(struct transcript *t);

/* ---- parts (view.c) ---- */

bool part_is_shown(struct transcript *t, uint32_t item, enum area area);
/* Find the first, last, next, previous part.  Returns false, with *p unchanged, if none. */
bool part_first(struct transcript *t, struct place *p);
bool part_last(struct transcript *t, struct place *p);
bool part_next(struct transcript *t, struct place *p);
bool part_before(struct transcript *t, struct place *p);
/* Returns the number of blank rows before it: 0 or 1. */
uint32_t part_gap(struct transcript *t, struct place p);
/* Returns its number of rows, including the gap. */
uint32_t part_rows(struct transcript *t, struct place p);
/* Valid until the next call. */
const struct rich *part_rich(struct transcript *t, struct place p);
/* Returns the source of its text. */
const char *part_source(struct transcript *t, struct place p);
/* Returns the columns before its text, and their content. */
int part_gutter(const struct transcript *t, struct place p);
int place_compare(struct place a, struct place b);
int point_compare(struct point a, struct point b);

/* Returns the rows of the pane that show items. */
int view_height(const struct transcript *t);
/* Returns the top of the view. */
struct spot view_top(struct transcript *t);
/* Move by at most n rows.  Returns the number of rows moved. */
uint32_t spot_down(struct transcript *t, struct spot *s, uint32_t n);
uint32_t spot_up(struct transcript *t, struct spot *s, uint32_t n);
/* Move the view so that the row of a point is visible. */
void view_show(struct transcript *t, struct point p);

/* ---- search (find.c) ---- */

/* Returns the start of the next match in text[from .. n) and sets *end; n: none. */
size_t find_match(const struct transcript *t, const char *text, size_t n, size_t from,
                  size_t *end);

/* ---- selection (select.c) ---- */

/* Find the selected range of the text of p.  Returns false if it is empty. */
bool select_range(struct transcript *t, struct place p, uint32_t *from, uint32_t *to);

#endif
