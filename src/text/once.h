/*
 * once.h - print the dashboard: as text with --once, its figures with --json.
 */
#ifndef MEMWALL_SRC_TEXT_ONCE_H
#define MEMWALL_SRC_TEXT_ONCE_H

#include <stdbool.h>

#include "ui/options/options.h"

/* The size of a printed dashboard: the terminal, COLUMNS and LINES, or 80 x 40. */
struct once_look {
    int width, height;
    bool ascii;
};
void once_look(const struct options *o, struct once_look *out);

/* Open the model, make the plan, and print the dashboard as it is before the first message.
 * Returns -1 with *e. */
int once_chat(const struct options *o, const struct mw_options *engine, struct err *e);

#endif
