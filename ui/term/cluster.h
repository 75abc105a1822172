/*
 * cluster.h - text cut into what a terminal shows in one place.
 *
 * No table of widths is right everywhere, so what is drawn is only what all terminals
 * agree on: the first character of a cluster, with at most four combining marks.  Joined
 * emoji show their first part, variation selectors and skin tones are left out; the real
 * text stays where it was for copying and saving.  Widths are those of the C library's
 * wcwidth, because ncurses uses it.
 *
 * Whatever could be an instruction to a terminal (controls, invalid UTF-8) is shown as
 * U+FFFD, so that a cluster can always be drawn.
 */
#ifndef MEMWALL_UI_TERM_CLUSTER_H
#define MEMWALL_UI_TERM_CLUSTER_H

#include <stddef.h>
#include <wchar.h>

#define CLUSTER_CHARS 5 /* ncurses keeps a base and four marks in a cell */

struct cluster {
    size_t bytes;                     /* of the text that it covers, > 0 */
    int width;                        /* columns: 0, 1 or 2 */
    wchar_t shown[CLUSTER_CHARS + 1]; /* ends with 0; empty if nothing is to be drawn */
};

/* The cluster at the start of s[0 .. n); n > 0. */
void cluster_next(const char *s, size_t n, struct cluster *out);

/* Columns that s[0 .. n) takes. */
int cluster_width(const char *s, size_t n);

/* Bytes of the longest beginning of s[0 .. n) that takes at most width columns. */
size_t cluster_fit(const char *s, size_t n, int width);

#endif
