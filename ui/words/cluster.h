/*
 * cluster.h - text split into grapheme clusters, as terminals show them.
 *
 * No width table is right on every terminal.  Therefore only the part of a cluster is drawn
 * that all terminals agree on: its first character with at most four combining marks.  Joined
 * emoji show their first part; variation selectors and skin tones are not drawn.  Letters of
 * Hangul are drawn as syllables.  The stored text keeps all, for copying and saving.  Widths come
 * from wcwidth of the C library, because ncurses uses it.
 *
 * Control characters and invalid UTF-8 are shown as U+FFFD, so a cluster is always safe to
 * draw.
 */
#ifndef MEMWALL_UI_WORDS_CLUSTER_H
#define MEMWALL_UI_WORDS_CLUSTER_H

#include <stddef.h>
#include <wchar.h>

#define CLUSTER_CHARS 5 /* ncurses keeps a base and four marks in a cell */

struct cluster {
    size_t bytes;                     /* of text, > 0 */
    int width;                        /* columns: 0, 1 or 2 */
    wchar_t shown[CLUSTER_CHARS + 1]; /* ends with 0; empty if nothing is drawn */
};

/* Read the cluster at the start of s[0 .. n); n > 0. */
void cluster_next(const char *s, size_t n, struct cluster *out);

/* Returns the columns that s[0 .. n) takes. */
int cluster_width(const char *s, size_t n);

/* Returns the length in bytes of the longest prefix of s[0 .. n) that fits width columns. */
size_t cluster_fit(const char *s, size_t n, int width);

#endif
