/*
 * exponents_print.h - print the exponents of a model's weights, as a histogram or as JSON.
 */
#ifndef MEMWALL_SRC_MODELS_EXPONENTS_PRINT_H
#define MEMWALL_SRC_MODELS_EXPONENTS_PRINT_H

#include <stdio.h>

#include "engine/memwall.h"

/* counts: of BF16 and F16 weights. */
void exponents_print(FILE *to, const struct mw_exponents counts[2]);
void exponents_print_json(FILE *to, const struct mw_exponents counts[2]);

#endif
