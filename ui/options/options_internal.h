/*
 * options_internal.h - shared by the rows of options (options.c) and the parser of their values
 * (options_set.c).
 */
#ifndef MEMWALL_UI_OPTIONS_OPTIONS_INTERNAL_H
#define MEMWALL_UI_OPTIONS_OPTIONS_INTERNAL_H

#include <stddef.h>

#include "ui/options/options.h"

/* Turn "auto always never" into "auto, always, never". */
void options_list_words(const char *words, char *buf, size_t n);

/* The names of the chat formats.  The text is made by the first call. */
const char *options_format_names(void);

#endif
