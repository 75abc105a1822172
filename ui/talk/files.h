/*
 * files.h - files that a message names: "compare @notes.txt with @\"my plan.md\"".
 *
 * The text stays as it is, and each file that exists goes with it, as after /file.  An "@"
 * within a word is an address, and the name of a person is only a name.
 */
#ifndef MEMWALL_UI_TALK_FILES_H
#define MEMWALL_UI_TALK_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/talk/talk.h"

/* Attach the files that text names.  Returns false, and says why, if one of them cannot be. */
bool files_attach_named(struct talk *t, const char *text);

/* Returns where the path of an "@" that line[0 .. n) ends with begins; 0: there is none. */
size_t files_typed(const char *line, size_t n, bool *is_quoted);

#endif
