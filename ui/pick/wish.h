/*
 * wish.h - budget, context and types of keys and values, chosen in the list before loading.
 *
 * A model begins with the settings that were kept for it (ui/options/kept.h).  A value that is
 * chosen in the list holds for every model.
 */
#ifndef MEMWALL_UI_PICK_WISH_H
#define MEMWALL_UI_PICK_WISH_H

#include "engine/memwall.h"
#include "ui/options/options.h"
#include "ui/term/canvas.h"

struct pick_wish {
    struct options o;
    bool chosen[N_OPTION];
    const char *kept_file; /* may be NULL */
    uint64_t most_bytes;   /* the largest budget of this machine; 0: unknown */
    int field;             /* the one that keys change */
};

void wish_begin(struct pick_wish *w, const struct options *o, const char *kept_file);
/* Write the settings that the model would have. */
void wish_of(const struct pick_wish *w, const struct mw_found *f, struct options *out);
/* Go to the next field. */
void wish_next(struct pick_wish *w);
/* Change it by one step, from the value of the model.  false: there is no other value. */
bool wish_step(struct pick_wish *w, const struct mw_found *f, int step);
/* Draw the fields at the right end of row y, from column x on; those that do not fit are left
 * out. */
void wish_draw(const struct pick_wish *w, const struct mw_found *f, const struct canvas *c, int y,
               int x);

#endif
