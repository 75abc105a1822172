/*
 * edit.h - the input line: edited by readline, drawn by input.h.
 *
 * readline never reads or writes the terminal.  It gets whole keys; the caller reads the text
 * and the position of the cursor.  The user's inputrc and both editing modes work.  The
 * history commands of readline corrupt memory through this interface, so edit.c implements
 * history, history search, vi's f and t, and the external editor itself.
 *
 * readline has one state per process, and so has this module.
 */
#ifndef MEMWALL_UI_TERM_EDIT_H
#define MEMWALL_UI_TERM_EDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct history;

/* A key's request, which the caller carries out after edit_key returns. */
enum edit_wish {
    EDIT_NOTHING,
    EDIT_SUBMIT,  /* Enter: take the text with edit_text, then edit_clear */
    EDIT_EOF,     /* Ctrl-D on an empty line */
    EDIT_EDITOR,  /* Ctrl-X Ctrl-E: edit the text in $EDITOR */
    EDIT_UNKNOWN, /* the key has no meaning in the line */
};

/*
 * Offers completions of line[0 .. n): calls add with each complete replacement line.  Returns
 * the byte offset where the candidates start to differ, for display; sets *space if a blank
 * should follow a completed word.
 */
typedef void edit_add_fn(void *list, const char *line);
typedef size_t edit_complete_fn(void *ctx, const char *line, size_t n, edit_add_fn *add,
                                void *list, bool *space);

/* Call before newterm, so that errors in inputrc appear on the ordinary screen. */
void edit_open(FILE *tty_in, struct history *h, edit_complete_fn *complete, void *ctx);
void edit_close(void);

/* Process one whole key: a character or an escape sequence. */
enum edit_wish edit_key(const unsigned char *key, size_t n);
/* Does readline, or the user's inputrc, give a command to these bytes? */
bool edit_is_bound(const unsigned char *key, size_t n);
/* Insert text without controls other than tabs and newlines, as one undo step. */
void edit_insert(const char *text);
void edit_set(const char *text); /* cursor at its end */
void edit_clear(void);           /* also cancels a search and partly typed commands */

const char *edit_text(void);
const char *edit_sent(void); /* text of the last EDIT_SUBMIT */
size_t edit_cursor(void);    /* byte */
void edit_set_cursor(size_t byte);
bool edit_is_empty(void);

/* Returns text shown instead of the prompt: "(arg: 3) ", "history: needle", or "". */
const char *edit_prompt(void);
/* "", "vi insert", "vi command", "overwrite" */
const char *edit_mode(void);
/* Does the line use a lone Esc (vi insert mode, a search, an argument)? */
bool edit_wants_esc(void);
bool edit_is_searching(void);

/* Find completions for display, without changing the text. */
void edit_offer(void);
/* Matches of the last completion, for display; 0 if there are none or the text changed. */
size_t edit_match_count(void);
const char *edit_match(size_t i); /* only the differing part */
/* Highlight the next (+1) or previous (-1) match, from none to the first or the last one. */
void edit_match_move(int direction);
long edit_match_chosen(void); /* the highlighted match, or -1 */
/* Replace the text with the highlighted match. */
void edit_match_take(void);
void edit_match_close(void);

#endif
