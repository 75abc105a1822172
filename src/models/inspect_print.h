/*
 * inspect_print.h - print the contents of a model as tables or as JSON.
 */
#ifndef MEMWALL_SRC_MODELS_INSPECT_PRINT_H
#define MEMWALL_SRC_MODELS_INSPECT_PRINT_H

#include <stdio.h>

#include "engine/memwall.h"

/* The draft head of a model, or why that in its files cannot be used. */
struct inspect_head {
    bool has_head;
    struct mw_head_info info;
    char why_not[400]; /* "": there is none */
};

/* text is NULL if the model has no readable vocabulary; *no_text has the reason then. */
void inspect_print(FILE *to, const struct summary *s, const struct mw_text_info *text,
                   const struct err *no_text, const struct inspect_head *head);

/* Print one line per tensor: name, type, shape, bytes, offset, use. */
void inspect_print_tensors(FILE *to, const struct mw_inspect *i);

/* Print one JSON object and a newline; tensors adds the list of tensors. */
void inspect_print_json(FILE *to, const struct mw_inspect *i, const struct mw_text_info *text,
                        const struct inspect_head *head, bool tensors);

#endif
