/*
 * path.h - paths as users type them.
 */
#ifndef MEMWALL_UI_WORDS_PATH_H
#define MEMWALL_UI_WORDS_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/memwall.h"

/* Copy path to buf, with "~/", "$HOME/" or "${HOME}/" at its start replaced by the home folder:
 * the shell leaves them in quotes, in files and after "=".  "file:///a%20b", as file managers and
 * browsers copy it, becomes a path, too.  Returns buf. */
char *path_expand(char *buf, size_t n, const char *path);

/* The same where the result is kept: returns path itself if it has no such start, or else a text
 * that is never freed. */
const char *path_expanded(const char *path);
/* The same, and a copy in any case. */
const char *path_kept(const char *path);

/* The path that the argument of a command means: path_expand(), and without the quotes around it
 * or the backslashes before blanks and other signs, which terminals write into the name of a file
 * that is dropped on them.  If exists, a file that has exactly this name comes first.
 * Returns buf. */
char *path_typed(char *buf, size_t n, const char *text, bool exists);

/* Calls add(list, whole path) for each file whose path begins with path, with a slash after
 * folders.  Names with characters that cannot be seen are left out.  Hidden files are included
 * only if the last part of path begins with a dot. */
typedef void path_add_fn(void *list, const char *path);
void path_complete(const char *path, path_add_fn *add, void *list);

#endif
