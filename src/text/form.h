/*
 * form.h - the form that an answer must have: --schema or --grammar.
 */
#ifndef MEMWALL_SRC_TEXT_FORM_H
#define MEMWALL_SRC_TEXT_FORM_H

#include "engine/base/err.h"
#include "src/command.h"

/* Read the file of the option and check it.  *out is a grammar for mw_chat_options.grammar, which
 * the caller frees, or NULL if no option was given.  -1 with *e. */
int form_read(char **out, const struct options *o, struct err *e);

#endif
