/*
 * once.h - the dashboard printed instead of drawn: --once as text, --json its figures.
 */
#ifndef MEMWALL_SRC_ONCE_H
#define MEMWALL_SRC_ONCE_H

#include <stdbool.h>

#include "src/options.h"

/* How a dashboard is printed: the terminal's size, COLUMNS and LINES, or what a page has. */
struct once_look {
    int width, height;
    bool ascii;
};
void once_look(const struct options *o, struct once_look *out);

/* Open the model, make the plan, and print what the dashboard shows before anything is said.
 * -1 with *e. */
int once_chat(const struct options *o, const struct mw_options *engine, struct err *e);

#endif
