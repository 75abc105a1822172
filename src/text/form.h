/*
 * form.h - the form that an answer must have: --schema or --grammar.
 */
#ifndef MEMWALL_SRC_TEXT_FORM_H
#define MEMWALL_SRC_TEXT_FORM_H

#include "engine/base/err.h"
#include "src/command.h"

/* Texts for mw_chat_options, which form_free() frees; NULL without the option. */
struct form {
    char *grammar, *schema;
};

/* Read the file of the option and check it.  A schema becomes a grammar, or stays one for a
 * server.  -1 with *e. */
int form_read(struct form *out, const struct options *o, bool is_for_server, struct err *e);
void form_free(struct form *f);

#endif
