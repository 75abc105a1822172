/*
 * transcript_pane.h - a transcript on a grid in memory, for its tests: what is said, and
 * what is then seen.
 */
#ifndef MEMWALL_TESTS_LIB_TRANSCRIPT_PANE_H
#define MEMWALL_TESTS_LIB_TRANSCRIPT_PANE_H

#include <stdbool.h>

#include "ui/text/transcript.h"

enum { HEIGHT = 10, WIDTH = 40 };

extern const struct mw_receipt pane_receipt;

/* An empty transcript of HEIGHT rows and WIDTH columns. */
struct transcript *begin(void);
void say(struct transcript *t, enum transcript_kind kind, const char *text);
/* More of the answer that runs. */
void piece(struct transcript *t, const char *text);
/* A whole answer. */
void answer(struct transcript *t, const char *text);
/* An answer that runs, of n lines. */
struct transcript *numbered(int n);

/* The pane as text, or as letters of roles; for free(). */
char *drawn(struct transcript *t, int height, int width, bool ascii, bool roles);
void expect(struct transcript *t, const char *want);
bool sees(struct transcript *t, const char *what);
/* Row y as letters of roles. */
void roles_of_row(struct transcript *t, int y, char *row);

#endif
