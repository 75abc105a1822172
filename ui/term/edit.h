/*
 * edit.h - the line that is being typed: readline, drawn by others.
 *
 * readline edits and never reads or writes the terminal.  Whole keys go in, the text and
 * the place of the cursor come out.  The user's inputrc and both editing modes work; what
 * readline does with its own history does not (it corrupts memory through this interface),
 * so history, its search, vi's f and t, and the editor are done here.
 *
 * readline is one a process, and so is this.
 */
#ifndef MEMWALL_UI_TERM_EDIT_H
#define MEMWALL_UI_TERM_EDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct history;

/* What the person asked for with a key; the caller does it after edit_key returns. */
enum edit_wish {
    EDIT_NOTHING,
    EDIT_SUBMIT,  /* Enter: take the text with edit_text, then edit_clear */
    EDIT_EOF,     /* Ctrl-D on an empty line */
    EDIT_EDITOR,  /* Ctrl-X Ctrl-E: the text in $EDITOR */
    EDIT_UNKNOWN, /* the key means nothing to the line */
};

/*
 * Whole lines that could stand where line[0 .. n) stands: call add for each.  Returns the
 * byte of the line where what differs begins (for showing them), and in *space whether a
 * blank follows a complete one.
 */
typedef void edit_add_fn(void *list, const char *line);
typedef size_t edit_complete_fn(void *ctx, const char *line, size_t n, edit_add_fn *add,
                                void *list, bool *space);

/* Before newterm, so that complaints about inputrc appear on the ordinary screen. */
void edit_open(FILE *tty_in, struct history *h, edit_complete_fn *complete, void *ctx);
void edit_close(void);

/* One whole key: a character or an escape sequence. */
enum edit_wish edit_key(const unsigned char *key, size_t n);
/* Insert text, which must be clean; one undo takes it back. */
void edit_insert(const char *text);
void edit_set(const char *text); /* cursor at its end */
void edit_clear(void);           /* also leaves a search and half-typed commands */

const char *edit_text(void);
const char *edit_sent(void); /* of the last EDIT_SUBMIT */
size_t edit_cursor(void);    /* byte */
void edit_set_cursor(size_t byte);
bool edit_is_empty(void);

/* "(arg: 3) ", "history: needle", or "" : what stands before the text instead of the prompt. */
const char *edit_prompt(void);
/* "", "vi insert", "vi command", "overwrite" */
const char *edit_mode(void);
/* A lone Esc belongs to the line (vi insert, a search, an argument). */
bool edit_wants_esc(void);
bool edit_is_searching(void);

/* Look for completions of the text without changing it, for showing them. */
void edit_offer(void);
/* What the last completion found, for showing; count 0: nothing (any more). */
size_t edit_match_count(void);
const char *edit_match(size_t i); /* the part that differs */

#endif
