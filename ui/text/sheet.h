/*
 * sheet.h - a box of lines over the chat: help, the list of chats, a plan.
 *
 *     ╭─ Change: ctx 8192 ──────────────────────╮
 *     │                    now       then       │   as large as its lines, in the middle
 *     │ context           4096       8192       │
 *     ╰─ Enter: apply   Esc: close ─ 9 more be…─╯
 *
 * A sheet scrolls.  Some of its lines may be choices that a cursor selects, with an action on
 * Enter.  The opener fills the sheet and passes it on.  Plain mode prints its lines.
 */
#ifndef MEMWALL_UI_TEXT_SHEET_H
#define MEMWALL_UI_TEXT_SHEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/term/canvas.h"
#include "ui/term/keys.h"

struct sheet;

/* row: number given to sheet_choice for the line of the cursor; -1 without a cursor. */
typedef void sheet_enter_fn(void *ctx, long row);

/* Returns NULL if out of memory.  title and hint are copied. */
struct sheet *sheet_new(const char *title, const char *hint);
void sheet_free(struct sheet *s);

/* Add a line.  Text must be clean. */
void sheet_line(struct sheet *s, enum ui_role role, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Append to the last line. */
void sheet_more(struct sheet *s, enum ui_role role, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Add an empty line, unless the sheet is empty or the last line is one. */
void sheet_gap(struct sheet *s);
/* Make the last line a choice; the Enter action receives number.  The cursor begins at the
 * first choice. */
void sheet_choice(struct sheet *s, long number);
/* The same for a choice that removes something: the cursor never begins at it. */
void sheet_choice_removes(struct sheet *s, long number);
/* Begin with the cursor at the choice with this number. */
void sheet_set_cursor(struct sheet *s, long number);
/* Call this after all lines for a sheet that the person did not ask for, so that an Enter that
 * was meant for the line chooses nothing.  No choice has the cursor until an arrow key or the
 * digit of a choice, which is its number plus 1 and is written before it. */
void sheet_set_unasked(struct sheet *s);
/* Add a paragraph of any length for each line of text; they are wrapped when drawn. */
void sheet_text(struct sheet *s, enum ui_role role, const char *text);

/* Let typing filter the lines.  A line stays if it, read with its heading, contains every word;
 * the heading (a line in ROLE_HEADING above it) stays with it.  Returns whether any line
 * matches. */
bool sheet_filter(struct sheet *s, const char *words);
/* Wrap the lines rather than cover the dashboard beside the chat. */
void sheet_set_narrow(struct sheet *s);

/* Set the action of Enter, which runs after the sheet closes.  Without one, Enter closes.
 * release(ctx), which may be NULL, is called when the sheet is freed. */
void sheet_on_enter(struct sheet *s, sheet_enter_fn *enter, void (*release)(void *ctx),
                    void *ctx);

/* Make letters run letter() with the line of the cursor, as Enter runs its action; ctx is that
 * of sheet_on_enter.  Such a letter must do nothing that cannot be undone: it may be the start
 * of a text that was meant for the line. */
typedef void sheet_letter_fn(void *ctx, uint32_t letter, long row);
void sheet_on_letters(struct sheet *s, const char *letters, sheet_letter_fn *letter);

/* Say this, which is copied, if the sheet closes and nobody chose, neither with Enter nor with
 * Esc: a text for the line or another sheet came instead. */
void sheet_on_drop(struct sheet *s, const char *says);
/* Returns that text, or "". */
const char *sheet_drop(const struct sheet *s);

/* Let F1 run this command, which is static, while the sheet is open. */
void sheet_on_help(struct sheet *s, const char *command);
/* Returns that command, or NULL. */
const char *sheet_help(const struct sheet *s);

/* Run moved(ctx, row) whenever the cursor comes to another choice; ctx is that of
 * sheet_on_enter. */
void sheet_on_move(struct sheet *s, sheet_enter_fn *moved);

enum sheet_result {
    SHEET_STAYS, /* also for keys without a meaning in a sheet */
    SHEET_CLOSES,
    SHEET_ENTERS,
    SHEET_TYPED, /* the key is text for the input line, and the sheet closes */
};
/* Process a key.  A sheet with an action takes only its own letters and digits, so it does not
 * act on text that was typed for the input line.  Other sheets scroll with the keys of a pager. */
enum sheet_result sheet_key(struct sheet *s, const struct key *key);
/* Run the action of Enter. */
void sheet_enter(const struct sheet *s);
/* The same for the choice with this number; nothing for a number without a choice. */
void sheet_enter_row(const struct sheet *s, long number);
bool sheet_can_enter(const struct sheet *s);
bool sheet_has_choice(const struct sheet *s);

/* Draw the box in the middle of chat, or of all if its lines need more room than chat has. */
void sheet_draw(struct sheet *s, const struct canvas *chat, const struct canvas *all);
/* Whether this cell of the screen is part of the box. */
bool sheet_holds(const struct sheet *s, int y, int x);
/* Get the rows of the screen that the box covers; none before the first draw. */
void sheet_rows(const struct sheet *s, int *y, int *n);
void sheet_scroll(struct sheet *s, int rows);

/* Calls put with the text of each line, for plain mode. */
void sheet_print(const struct sheet *s, void (*put)(void *ctx, const char *line), void *ctx);

#endif
