/*
 * transcript.h - the conversation on the screen: a list of items and a view of it.
 *
 *     item     user message (with attached files), answer (with thinking and receipt), notice,
 *              error
 *     segment  a part of an item that is rendered at once: a paragraph, a piece of a code
 *              block, a table
 *     row      one row of the pane at its current width
 *
 * The view is an anchor (item, segment, row) instead of a number of rows from the top.  Text
 * above it needs no layout: only visible segments are rendered, at the current width.  While
 * the view follows, the anchor is the end.  After scrolling up, the anchor stays in place
 * while text arrives below.
 *
 * Beyond the memory limit, rendered segments and texts of old items are dropped.  load brings
 * texts back from the saved chat.  Items without a saved copy stay in memory.
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

#define TRANSCRIPT_LABEL 128

/* Loaded text, from malloc; the transcript frees it. */
struct transcript_text {
    char *text, *thinking; /* thinking of a user message: the files that are attached to it */
    size_t len, thinking_len;
    char label[TRANSCRIPT_LABEL]; /* of the files, clean */
};
/* Load the text of the item saved under id.  Returns false if it is not available; a line in
 * its place reports that. */
typedef bool transcript_load_fn(void *ctx, uint32_t id, struct transcript_text *out);

struct transcript_options {
    size_t limit_bytes;       /* for texts and rendered rows; 0: 8 MiB */
    transcript_load_fn *load; /* NULL: texts are never dropped */
    void *load_ctx;
    bool show_receipts; /* unfolded */
    bool show_thinking; /* unfolded, and so are attached files */
};

/* Returns NULL if out of memory. */
struct transcript *transcript_new(const struct transcript_options *o);
void transcript_free(struct transcript *t);

/* Bytes held now for texts and rows, and the most that were held. */
size_t transcript_bytes(const struct transcript *t);
size_t transcript_peak_bytes(const struct transcript *t);

/* ---- adding text; false: out of memory, the item or the piece is missing ---- */

/* id: the number for load, or TRANSCRIPT_NO_ID. */
bool transcript_add(struct transcript *t, enum transcript_kind kind, const char *text, size_t n,
                    uint32_t id);
/* Add the files of the user message that was added last, which are folded under a clean label.
 */
bool transcript_attach(struct transcript *t, const char *label, const char *text, size_t n);
/* Add an item of a saved chat; its text is loaded when it becomes visible.  r may be NULL. */
bool transcript_add_saved(struct transcript *t, enum transcript_kind kind, uint32_t id,
                          const struct mw_receipt *r);
/* Begin an answer, which pieces follow.  resume: continue the last answer. */
bool transcript_begin(struct transcript *t, bool resume);
bool transcript_append(struct transcript *t, const char *text, size_t n, bool is_thinking);
/* Remove the last n bytes of the open answer. */
void transcript_take_back(struct transcript *t, size_t n, bool is_thinking);
/* Make the text of the open answer the end of its thinking. */
void transcript_thought(struct transcript *t);
void transcript_done(struct transcript *t, const struct mw_receipt *r);
/* Record that the open answer, or else the last item, is saved under id. */
void transcript_saved(struct transcript *t, uint32_t id);
/* Remove the last n items, unless one of them is a message or saved. */
void transcript_drop_last(struct transcript *t, size_t n);
/* Keep the first n messages (user and assistant) and all items before the next message. */
void transcript_rewind(struct transcript *t, size_t n);
void transcript_clear(struct transcript *t);

/* Set the number of messages before the first item; all counts include them. */
void transcript_set_older(struct transcript *t, size_t n);

/* Mark the first n messages as dropped from the context. */
void transcript_set_unseen(struct transcript *t, size_t n);

/* Returns the number of user and assistant messages. */
size_t transcript_messages(const struct transcript *t);

/*
 * Set a line below the last item that is not part of the chat, such as the progress of a
 * prompt.  NULL or "" removes it.  share 0 to 1 draws a bar before it, negative draws none.
 */
void transcript_set_status(struct transcript *t, const char *line, double share);

/* ---- the view ---- */

/* Set the size of the pane; call before drawing and scrolling when it has changed. */
void transcript_size(struct transcript *t, int height, int width);
/* Draw into c, which has the size set before. */
void transcript_draw(struct transcript *t, const struct canvas *c);

void transcript_scroll(struct transcript *t, int rows); /* negative: up */
void transcript_page(struct transcript *t, int pages);  /* keeps one row visible */
void transcript_home(struct transcript *t);
void transcript_end(struct transcript *t); /* go to the end and follow */
bool transcript_follows(const struct transcript *t);
bool transcript_more_below(struct transcript *t);

void transcript_set_raw(struct transcript *t,
                        bool raw); /* show plain text instead of Markdown */
bool transcript_is_raw(const struct transcript *t);
void transcript_set_thinking(struct transcript *t, bool show);
bool transcript_shows_thinking(const struct transcript *t);
void transcript_set_receipts(struct transcript *t, bool show);
bool transcript_shows_receipts(const struct transcript *t);

/* ---- search ---- */

/* Go to the last match in view or above it, else to the first one below.  Text is cleaned here;
 * upper case in it makes the search case-sensitive.  "" ends the search.  Returns false, with
 * the view unchanged, if nothing was found. */
bool transcript_search(struct transcript *t, const char *text);
/* Go to another match: +1 to the next older one (up), -1 to the next newer one. */
bool transcript_search_next(struct transcript *t, int direction);
/* Count the matches, from the oldest text on.  Returns false if there is no current match, or
 * if the text is too long to count them while keys wait. */
struct transcript_matches {
    size_t now, of; /* the current one, counted from 1; all */
};
bool transcript_count(struct transcript *t, struct transcript_matches *out);
bool transcript_is_searching(const struct transcript *t);

/* ---- selection, in rows and columns of the pane ---- */

enum transcript_unit { TRANSCRIPT_CLUSTER, TRANSCRIPT_WORD, TRANSCRIPT_PARAGRAPH };

/* Begin a selection at y, x.  Returns true if the press opened a folded line instead. */
bool transcript_press(struct transcript *t, int y, int x, enum transcript_unit unit);
void transcript_drag(struct transcript *t, int y, int x);
void transcript_unselect(struct transcript *t);
bool transcript_has_selection(struct transcript *t);

/* ---- copying: the source text, without wrapping, frames or marks; for free() ---- */

char *transcript_copy_selection(struct transcript *t, size_t *n);
/* Returns the topmost visible answer, or the last one while following. */
char *transcript_copy_answer(struct transcript *t, size_t *n);
/* Returns the nearest code block, without its fences; repeated calls return the one before.
 * *which becomes "block 2 of 3 (python)".  NULL: there is none. */
char *transcript_copy_code(struct transcript *t, size_t *n, char *which, size_t which_size);

/* ---- the turn cursor, for rewind and edit ---- */

/* Move to the previous (-1) or next (+1) user message; the first call goes to the last one.
 * Returns false if there is none. */
bool transcript_turn(struct transcript *t, int direction);
/* Remove the cursor, and show again what was shown before it came. */
void transcript_turn_end(struct transcript *t);
/* Returns the number of messages before the turn of the cursor, for mw_chat_rewind, or -1. */
long transcript_turn_keep(const struct transcript *t);
/* Returns the text of that turn, for free(). */
char *transcript_turn_text(struct transcript *t, size_t *n);

#endif
