/*
 * token.h - the time of a token as one bar, averaged over the newest tokens.
 *
 *      490 ms  d████████████████████m█████a██o█
 *     d disk wait  335  m memory  110  a arithmetic   30  o others   15
 *
 * Before the first answer it is the prediction of the plan, and the time begins with "~".  Its
 * parts are those that the verdict compares, so the longest one is the bound.  Each
 * begins with its letter, so it is recognisable without colour.
 */
#ifndef MEMWALL_UI_DASH_TOKEN_H
#define MEMWALL_UI_DASH_TOKEN_H

#include "ui/dash/state.h"
#include "ui/term/canvas.h"

/* Is the time of a token known? */
bool token_is_known(const struct dash *d);
/* Draw the time and the bar across row y. */
void token_bar(const struct dash *d, const struct canvas *c, int y);
/* Returns the lines of the names and times of all parts. */
int token_key_lines(int width);
/* Draw the parts that take time.  If they need more than n lines, draw only the largest. */
void token_key(const struct dash *d, const struct canvas *c, int y, int n);

#endif
