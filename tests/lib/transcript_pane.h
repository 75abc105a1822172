/*
 * transcript_pane.h - a transcript on a grid in memory.
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
/* Append text to the answer in progress. */
void piece(struct transcript *t, const char *text);
/* Add a complete answer. */
void answer(struct transcript *t, const char *text);
/* Begin an answer of n lines, which stays in progress. */
struct transcript *numbered(int n);

/* Returns the pane as text, or as letters of roles; the caller frees it. */
char *drawn(struct transcript *t, int height, int width, bool ascii, bool roles);
void expect(struct transcript *t, const char *want);
bool sees(struct transcript *t, const char *what);
/* Returns row y as letters of roles. */
void roles_of_row(struct transcript *t, int y, char *row);

#endif
