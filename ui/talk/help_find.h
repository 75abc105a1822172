/*
 * help_find.h - find the entries of the help that a question is about.
 */
#ifndef MEMWALL_UI_TALK_HELP_FIND_H
#define MEMWALL_UI_TALK_HELP_FIND_H

#include "ui/talk/help_question.h"

struct found {
    const struct help_entry *entry; /* NULL: it is about something else */
    const struct help_entry *other; /* of a question about two, or NULL */
    enum aspect aspect;
};

/* Find the subject of the last of n questions.  "it" is the subject of the one before. */
struct found help_find(const struct help_list *l, const char *const question[], size_t n);

#endif
