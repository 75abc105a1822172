/*
 * clean.h - makes foreign text safe to show on a terminal.
 *
 * Text from a model, a file or a name is hostile until it is cleaned.  The result is valid
 * UTF-8 without control characters (except newlines) and without characters that reorder or
 * hide text, and wcwidth knows the width of every character.  The owner keeps the original
 * for copying and saving.
 *
 *     broken UTF-8                       U+FFFD, one for each maximal bad part
 *     \r\n, U+2028, U+2029               newline
 *     tab                                spaces up to the next multiple of 4
 *     other C0, DEL, C1, lone \r         ^X for C0 and DEL, U+FFFD for C1; CLEAN_ODD
 *     bidi controls, invisible marks     removed; in code a dim mark, since hidden text
 *                                        in code is an attack
 *     unassigned, noncharacters          U+FFFD
 *     more than 4 marks on a base        the rest is removed
 *
 * The cleaner is a stream: pieces may end anywhere, also inside a character.
 */
#ifndef MEMWALL_UI_WORDS_CLEAN_H
#define MEMWALL_UI_WORDS_CLEAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLEAN_TAB_WIDTH 4

enum clean_how {
    CLEAN_TEXT,
    CLEAN_CODE, /* show hidden characters as a mark instead of removing them */
    CLEAN_NAME, /* also remove joiners and selectors, which have no use in a name */
};

enum clean_kind {
    CLEAN_SAME, /* unchanged bytes of the source */
    CLEAN_GAP,  /* spaces for a tab, or a newline in another encoding */
    CLEAN_ODD,  /* replaces something that cannot be shown */
};

/*
 * Receives n bytes of clean text that represent src_n bytes from byte src on (counted since
 * clean_start).  For CLEAN_SAME, n equals src_n.  Source bytes between two calls were removed.
 */
typedef void clean_sink(void *ctx, const char *text, size_t n, size_t src, size_t src_n,
                        enum clean_kind kind);

/* Private to clean.c, except for its size. */
struct clean {
    enum clean_how how;
    size_t at;             /* source bytes before held[0] */
    unsigned char held[4]; /* an incomplete character, or \r that may be followed by \n */
    unsigned n_held;
    unsigned column;         /* in the text line, for tabs */
    int32_t before;          /* the last character, for clusters; 0: none */
    bool half_flag;          /* it was the first of a pair of regional indicators */
    unsigned n_mark, n_zero; /* on the last base */
};

void clean_start(struct clean *c, enum clean_how how);
void clean_feed(struct clean *c, const char *in, size_t n, clean_sink *sink, void *ctx);
/* Replace an incomplete character by U+FFFD; the line continues. */
void clean_cut(struct clean *c, clean_sink *sink, void *ctx);
/* End the text: clean_cut, then reset as by clean_start. */
void clean_end(struct clean *c, clean_sink *sink, void *ctx);

/*
 * Clean text into dst[0 .. size), always NUL-terminated and cut between characters if it
 * does not fit.  Returns the length.  clean_line also replaces newlines by blanks and removes
 * joiners, for names, titles, paths and one-line messages.
 */
size_t clean_text(char *dst, size_t size, const char *src, size_t n);
size_t clean_line(char *dst, size_t size, const char *src, size_t n);

/*
 * Copy text that a model gets to dst, which has 3 * n + 1 bytes.  Keeps tabs, line ends and every
 * character that prints or formats, also those of a newer Unicode.  Removes escape sequences and
 * the other controls; broken UTF-8 becomes U+FFFD.  The result is not safe to show.  Returns its
 * length.
 */
size_t clean_controls(char *dst, const char *src, size_t n);

/* Returns the length of the escape sequence that text[0 .. n), n > 0, begins with. */
size_t clean_sequence(const char *text, size_t n);

#endif
