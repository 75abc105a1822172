/*
 * products_print.h - measure who multiplies faster, the kernels or OpenBLAS, and print it.
 */
#ifndef MEMWALL_SRC_MACHINE_PRODUCTS_PRINT_H
#define MEMWALL_SRC_MACHINE_PRODUCTS_PRINT_H

#include <stdbool.h>
#include <stdio.h>

#include "engine/memwall.h"

/* Print a table, or one JSON object and a newline: rates for each weight type of the model, by
 * the number of columns, and the choice that these options give. */
int products_print(FILE *to, const struct mw_model *m, const struct mw_options *o, bool as_json,
                   struct err *e);

#endif
