/*
 * sheet.h - a page of lines that is shown over the chat: help, the chats, a plan.
 *
 * It scrolls; it may have a cursor on some of its lines, and something that Enter does.
 * Whoever opens it fills it and hands it over.  Plain mode prints its lines instead.
 */
#ifndef MEMWALL_UI_TEXT_SHEET_H
#define MEMWALL_UI_TEXT_SHEET_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/term/canvas.h"
#include "ui/term/keys.h"

struct sheet;

/* row: of the cursor, as numbered by sheet_choice; -1 without one. */
typedef void sheet_enter_fn(void *ctx, long row);

/* NULL: no memory.  title and hint are copied. */
struct sheet *sheet_new(const char *title, const char *hint);
void sheet_free(struct sheet *s);

/* A new line.  Text must be clean. */
void sheet_line(struct sheet *s, enum ui_role role, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* More on the last line. */
void sheet_more(struct sheet *s, enum ui_role role, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The last line can be chosen; number is what enter gets. */
void sheet_choice(struct sheet *s, long number);
/* Words between blanks, wrapped when drawn; one paragraph. */
void sheet_text(struct sheet *s, enum ui_role role, const char *text);

/* What Enter does; the sheet is closed first.  Without it Enter closes. */
void sheet_on_enter(struct sheet *s, sheet_enter_fn *enter, void *ctx);

enum sheet_result { SHEET_STAYS, SHEET_CLOSES, SHEET_ENTERS };
/* enum key_name or a character; SHEET_STAYS also for keys that mean nothing to it. */
enum sheet_result sheet_key(struct sheet *s, const struct key *key);
/* Do what Enter does. */
void sheet_enter(const struct sheet *s);
/* The same for the choice with this number; others do nothing. */
void sheet_enter_row(const struct sheet *s, long number);
bool sheet_can_enter(const struct sheet *s);

void sheet_draw(struct sheet *s, const struct canvas *c);
/* What its keys are, if it was drawn without room for that; else "". */
const char *sheet_hidden_hint(const struct sheet *s);
void sheet_scroll(struct sheet *s, int rows);

/* Its lines as text, one after the other, for plain mode; calls put for each. */
void sheet_print(const struct sheet *s, void (*put)(void *ctx, const char *line), void *ctx);

#endif
