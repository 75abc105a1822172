/*
 * help_question.h - a question as its words, and how well an entry of the help explains each.
 *
 * A word counts the more, the fewer texts have it.  A word that no text has counts most: the
 * question is then about something else.  A mistyped word becomes the nearest one of the help.
 */
#ifndef MEMWALL_UI_TALK_HELP_QUESTION_H
#define MEMWALL_UI_TALK_HELP_QUESTION_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/talk/help_entry.h"
#include "ui/talk/help_words.h"

struct question {
    struct word word[WORD_MAX];
    double weight[WORD_MAX]; /* 0: it does not count */
    size_t n;
    double sum;    /* of all weights */
    bool is_asked; /* it asks something, and does not only say it */
    bool follows;  /* it has words of the question before */
};

/* Returns false if it is too long for a question about a word. */
bool question_read(struct question *q, const struct help_list *l, const char *text);

/* Has it one of these words? */
bool question_has(const struct question *q, const char *words);
/* Does it begin with one of these words? */
bool question_begins(const struct question *q, const char *words);

/* Does it ask what something is, or how something is done? */
bool question_of_meaning(const struct question *q);
bool question_of_way(const struct question *q);

/* Parts of the text of an entry that a question can be about. */
enum aspect {
    ASPECT_ALL,
    ASPECT_APPLIES,
    ASPECT_DEFAULT,
    ASPECT_VALUES,
    ASPECT_KEEP,
    N_ASPECT
};
enum aspect question_aspect(const struct question *q);

#define BY_NAME  1.0 /* it is the name, or another word for it that the text has, too; */
#define BY_ASKS  0.9 /* another word for it; */
#define BY_PLACE 0.7 /* a part of the name, or the panel where it is; */
#define BY_TEXT  0.6 /* its text has the word; */
#define BY_MORE  0.3 /* more text has it */

/* How well does an entry explain a word of the question?  0: not at all. */
double question_match(const struct question *q, const struct help_entry *e, const char *word);
/* Is the word one of the names of an entry, as a verdict is written, too? */
bool question_is_name(const struct question *q, const struct help_entry *e, const char *word);

#endif
