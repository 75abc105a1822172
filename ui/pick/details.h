/* details.h - one model of the picker in full: files, figures, the items of its plan. */
#ifndef MEMWALL_UI_PICK_DETAILS_H
#define MEMWALL_UI_PICK_DETAILS_H

#include "engine/memwall.h"
#include "ui/term/canvas.h"

/* The colour of an outlook; the text says the same. */
enum ui_role outlook_role(const struct mw_found *f);

/* Draw as much as fits, the most important lines first. */
void details_draw(const struct canvas *c, const struct mw_found *f);

#endif
