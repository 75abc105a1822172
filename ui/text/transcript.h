/*
 * transcript.h - what was said, on the screen: a list of items, drawn from a place in it.
 *
 *     item     user message, answer (with thinking and receipt), notice, error
 *     segment  a part of an item that is rendered at once: a paragraph, a piece of a code
 *              block, a table
 *     row      what takes one row of the pane at the width it has
 *
 * The view is an anchor (item, segment, row) and not a number of rows from the top, so
 * nothing above it needs to be laid out: only what is visible is rendered, at the width of
 * now.  While it follows, the anchor is the end.  When the person scrolls up it stays where
 * it was put, whatever arrives below.
 *
 * Memory: rendered segments and texts of old items are dropped beyond the limit given;
 * texts come back through load (from the saved chat).  Items that were never saved stay.
 */
#ifndef MEMWALL_UI_TEXT_TRANSCRIPT_H
#define MEMWALL_UI_TEXT_TRANSCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/memwall.h"

struct canvas;
struct transcript;

#define TRANSCRIPT_NO_ID UINT32_MAX

enum transcript_kind {
    TRANSCRIPT_SYSTEM,
    TRANSCRIPT_USER,
    TRANSCRIPT_ANSWER,
    TRANSCRIPT_NOTICE,
    TRANSCRIPT_ERROR,
};

/* Text that was loaded; for malloc, the transcript frees it. */
struct transcript_text {
    char *text, *thinking;
    size_t len, thinking_len;
};
/* Bring back the text of the item that was saved under id.  false: it cannot be had; a
 * line says so in its place. */
typedef bool transcript_load_fn(void *ctx, uint32_t id, struct transcript_text *out);

struct transcript_options {
    size_t limit_bytes;       /* of texts and rendered rows; 0: 8 MiB */
    transcript_load_fn *load; /* NULL: nothing can be dropped */
    void *load_ctx;
    bool show_receipts; /* unfolded */
    bool show_thinking; /* unfolded */
};

/* NULL: no memory. */
struct transcript *transcript_new(const struct transcript_options *o);
void transcript_free(struct transcript *t);

/* Bytes held now for texts and rows, and the most that were held. */
size_t transcript_bytes(const struct transcript *t);
size_t transcript_peak_bytes(const struct transcript *t);

/* ---- what is said; false: no memory (the item is not there, or lacks the piece) ---- */

/* id: the number under which load finds it, or TRANSCRIPT_NO_ID. */
bool transcript_add(struct transcript *t, enum transcript_kind kind, const char *text, size_t n,
                    uint32_t id);
/* An item of a saved chat whose text is loaded when it is looked at.  r may be NULL. */
bool transcript_add_saved(struct transcript *t, enum transcript_kind kind, uint32_t id,
                          const struct mw_receipt *r);
/* An answer begins; pieces follow.  resume: they belong to the last answer. */
bool transcript_begin(struct transcript *t, bool resume);
bool transcript_append(struct transcript *t, const char *text, size_t n, bool is_thinking);
void transcript_done(struct transcript *t, const struct mw_receipt *r);
/* The answer that is open, else the last item, is saved under id. */
void transcript_saved(struct transcript *t, uint32_t id);
/* Keep the first n messages (user and assistant) and what stands before the next. */
void transcript_rewind(struct transcript *t, size_t n);
void transcript_clear(struct transcript *t);

/* The first item comes after n messages that are not in the list; all counts include them. */
void transcript_set_older(struct transcript *t, size_t n);

/* Mark the first n messages: the model sees them no more. */
void transcript_set_unseen(struct transcript *t, size_t n);

/* User and assistant messages in the list. */
size_t transcript_messages(const struct transcript *t);

/*
 * A line below the last item that is not part of the chat: a prompt's progress, "thinking".
 * NULL or "": none.  share 0 to 1 draws a bar before it, negative: no bar.
 */
void transcript_set_status(struct transcript *t, const char *line, double share);

/* ---- the view ---- */

/* How large the pane is; call before drawing and scrolling when it has changed. */
void transcript_size(struct transcript *t, int height, int width);
/* Draw into all of c, which has the size given before. */
void transcript_draw(struct transcript *t, const struct canvas *c);
/* Something changed since the last draw. */
bool transcript_is_dirty(const struct transcript *t);

void transcript_scroll(struct transcript *t, int rows); /* negative: up */
void transcript_page(struct transcript *t, int pages);  /* leaves one row to read on from */
void transcript_home(struct transcript *t);
void transcript_end(struct transcript *t); /* and follow */
bool transcript_follows(const struct transcript *t);
bool transcript_more_below(struct transcript *t);

void transcript_set_raw(struct transcript *t, bool raw); /* text as it came, no Markdown */
bool transcript_is_raw(const struct transcript *t);
void transcript_set_thinking(struct transcript *t, bool show);
bool transcript_shows_thinking(const struct transcript *t);
void transcript_set_receipts(struct transcript *t, bool show);
bool transcript_shows_receipts(const struct transcript *t);

/* ---- search ---- */

/* Go to the next match in view or above it, else to the first one below (text is cleaned
 * here; upper case in it makes case matter); "" ends the search.  false: nothing found, the
 * view stays. */
bool transcript_search(struct transcript *t, const char *text);
/* n and N: +1 the older match (up), -1 the newer one. */
bool transcript_search_next(struct transcript *t, int direction);
bool transcript_is_searching(const struct transcript *t);

/* ---- selection, in rows and columns of the pane ---- */

enum transcript_unit { TRANSCRIPT_CLUSTER, TRANSCRIPT_WORD, TRANSCRIPT_PARAGRAPH };

/* Press: begin at y, x.  Folded lines open instead (true is returned: nothing to select). */
bool transcript_press(struct transcript *t, int y, int x, enum transcript_unit unit);
void transcript_drag(struct transcript *t, int y, int x);
void transcript_unselect(struct transcript *t);
bool transcript_has_selection(struct transcript *t);

/* ---- copying: what was written, without wrapping, frames or marks; for free() ---- */

char *transcript_copy_selection(struct transcript *t, size_t *n);
/* The answer that is uppermost in view, the last one while following. */
char *transcript_copy_answer(struct transcript *t, size_t *n);
/* The code block likewise, without its fences; asked again at once: the one before it.
 * *which: "block 2 of 3 (python)". NULL: there is none. */
char *transcript_copy_code(struct transcript *t, size_t *n, char *which, size_t which_size);

/* ---- the turn cursor, for rewind and edit ---- */

/* Move to the user message before (-1) or after (+1); the first call goes to the last
 * one.  Returns false when there is none (further). */
bool transcript_turn(struct transcript *t, int direction);
void transcript_turn_end(struct transcript *t);
/* Messages before the turn that the cursor is on (what mw_chat_rewind keeps), or -1. */
long transcript_turn_keep(const struct transcript *t);
/* Its text, for free(). */
char *transcript_turn_text(struct transcript *t, size_t *n);

#endif
