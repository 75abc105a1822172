/*
 * pull_print.h - print the models of a repository as a table or as JSON.
 */
#ifndef MEMWALL_SRC_MODELS_PULL_PRINT_H
#define MEMWALL_SRC_MODELS_PULL_PRINT_H

#include <stdio.h>

#include "engine/memwall.h"

/* Print the repository and its free space, and a line for each model.  best is the model to
 * mark, or SIZE_MAX. */
void pull_print(FILE *to, const struct mw_pull *p, const char *cache, size_t best);

/* Print the line of one model: type, size, and what it would do here.  If the user named only the
 * repository, also print which of its files are left out. */
void pull_print_one(FILE *to, const struct mw_pull *p, size_t i);

/* Print one object.  path is that of the fetched model i; NULL: nothing was fetched, and all
 * models are listed. */
void pull_print_json(FILE *to, const struct mw_pull *p, const char *cache, size_t i,
                     const char *path);

/* Write what the model would do here: "fits, about 6 tok/s", "size only: why". */
void pull_outlook(const struct mw_pull_variant *c, char *buf, size_t n);

#endif
