/*
 * help_words.h - the words of questions and of help texts, compared as people mean them.
 */
#ifndef MEMWALL_UI_TALK_HELP_WORDS_H
#define MEMWALL_UI_TALK_HELP_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#define WORD_BYTES 32
#define WORD_MAX   24 /* of a question; a longer text is not one about a word of the help */

struct word {
    char text[WORD_BYTES]; /* lower case; one letter alone stays as it is */
    bool is_quoted;
};

/* Take the next word from *s, without the punctuation around it.  Returns false at the end. */
bool word_next(const char **s, struct word *out);

/* Split a question.  "ctrl x" becomes "ctrl-x", and "disk bound" "disk-bound".  Returns the
 * number of words; 0: there are none, or more than WORD_MAX. */
size_t words_of(const char *text, struct word word[WORD_MAX]);

/* Whether both are forms of one word: "reads", "reading" and "read". */
bool word_same(const char *a, const char *b);

/* Is it an option, a command or a key, which means only one thing: -b, --ctx, /why, f10? */
bool word_is_sign(const char *w);

/* Is it one letter, or a mark such as "~" or "!"? */
bool word_is_mark(const char *w);

/* Is it a word of which every question has some: "what", "the", "please"? */
bool word_is_common(const char *w);

#endif
