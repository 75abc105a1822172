/*
 * clean.h - foreign text to a form that a terminal cannot be commanded by.
 *
 * Text of a model, of files, of names is hostile until it has been through here.  The
 * result is valid UTF-8 without controls (but newlines), without characters that reorder
 * or hide text, and every character of it has a width that the C library knows; the
 * original stays with its owner for copying and saving.
 *
 *     broken UTF-8                       U+FFFD, one for each maximal bad part
 *     \r\n, U+2028, U+2029               newline
 *     tab                                spaces up to the next multiple of 4
 *     other C0, DEL, C1, lone \r         ^X for C0 and DEL, U+FFFD for C1; CLEAN_ODD
 *     bidi controls, invisible marks     left out; in code a dim mark, since hidden text
 *                                        in code is an attack
 *     unassigned, noncharacters          U+FFFD
 *     more than 4 marks on a base        the rest is left out
 *
 * The cleaner is a stream: it may be fed in any pieces, also pieces that cut a character.
 */
#ifndef MEMWALL_UI_TEXT_CLEAN_H
#define MEMWALL_UI_TEXT_CLEAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLEAN_TAB_WIDTH 4

enum clean_how {
    CLEAN_TEXT,
    CLEAN_CODE, /* hidden characters are shown as a mark instead of left out */
};

enum clean_kind {
    CLEAN_SAME, /* the bytes of the source, as they are */
    CLEAN_GAP,  /* a tab's spaces, a newline that was written otherwise */
    CLEAN_ODD,  /* stands for something that is not shown as it is */
};

/*
 * Takes n bytes of clean text that stand for src_n bytes from byte src on (counted since
 * clean_start).  For CLEAN_SAME n is src_n.  Source bytes between two calls were left out.
 */
typedef void clean_sink(void *ctx, const char *text, size_t n, size_t src, size_t src_n,
                        enum clean_kind kind);

/* Plain data; private to clean.c but for its size. */
struct clean {
    enum clean_how how;
    size_t at;             /* source bytes before held[0] */
    unsigned char held[4]; /* the beginning of a character, or \r that waits for \n */
    unsigned n_held;
    unsigned column;         /* of the text line; for tabs */
    int32_t before;          /* the last character, for clusters; 0: none */
    bool half_flag;          /* it was the first of two regional indicators */
    unsigned n_mark, n_zero; /* on the last base */
};

void clean_start(struct clean *c, enum clean_how how);
void clean_feed(struct clean *c, const char *in, size_t n, clean_sink *sink, void *ctx);
/* What is held back will not be completed: it becomes U+FFFD.  The line goes on. */
void clean_cut(struct clean *c, clean_sink *sink, void *ctx);
/* The text ends here: clean_cut, then c is as after clean_start. */
void clean_end(struct clean *c, clean_sink *sink, void *ctx);

/*
 * At once, into dst[0 .. size), which always ends in NUL; what does not fit is cut
 * between characters.  Returns the length.  clean_line also makes newlines blanks: for
 * names, titles, paths, one-line messages.
 */
size_t clean_text(char *dst, size_t size, const char *src, size_t n);
size_t clean_line(char *dst, size_t size, const char *src, size_t n);

#endif
