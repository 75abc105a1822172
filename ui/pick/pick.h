/*
 * pick.h - the list of models on this machine, to choose one.
 *
 * A picker fills the canvas that it is given.  The screen before the chat (ui/app/picker.c) and
 * /model in the chat show the same one.  Models are described one after the other with
 * pick_work() while the user looks at the list, the highlighted one first.
 *
 *     ┌─ models ──────────────── 3 of 12, last used first ─┐
 *     │ filter: gem                                        │
 *     │ gemma-3-1b-it:Q4_K_M     762 MiB  fits      │ plan │
 *     │ gemma-4-E2B-it:BF16     8.67 GiB  streams   │  of  │
 *     │                                             │ one  │
 *     └─ keys ─────────────────────────────────────────────┘
 *
 * On a narrow screen the details are below the list; on a small one only the outlook of the
 * highlighted model is.
 */
#ifndef MEMWALL_UI_PICK_PICK_H
#define MEMWALL_UI_PICK_PICK_H

#include <stdbool.h>

#include "engine/memwall.h"
#include "ui/options/options.h"
#include "ui/term/canvas.h"
#include "ui/term/keys.h"
#include "ui/ui.h"

struct pick;

/*
 * Find the models and make a picker of them, which predicts their plans with the options *o.
 * current is the path of the model that is open, and name the one that it was opened by
 * (mw_models_lasting()); both are NULL if none is.  Returns NULL with *e.
 */
struct pick *pick_new(const struct ui_models *models, const struct mw_options *o,
                      const char *current, const char *name, struct err *e);
/* Let budget, context and types of keys and values be chosen, beginning with these. */
void pick_set_wish(struct pick *p, const struct options *o, const char *kept_file);
/* Set those that were chosen in *o; they count as given on the command line. */
void pick_take_wish(const struct pick *p, struct options *o);
void pick_free(struct pick *p); /* p may be NULL */

enum pick_result {
    PICK_IGNORES, /* the key has no meaning here */
    PICK_STAYS,
    PICK_LEAVES,
    PICK_OPENS, /* pick_chosen() is the model */
};
/* y and x of a mouse report count from the corner of the canvas. */
enum pick_result pick_key(struct pick *p, const struct key *key);

/* The highlighted model; NULL if the filter matches none. */
const struct mw_found *pick_chosen(const struct pick *p);
/* The same as a text for mw_models_resolve(): the name if it stands for more than a file. */
const char *pick_target(const struct pick *p);

/* Whether models are still to be described. */
bool pick_has_work(const struct pick *p);
/* Describe models for some milliseconds.  Returns whether there was one. */
bool pick_work(struct pick *p);

/* *y, *x: the cursor in the filter. */
void pick_draw(struct pick *p, const struct canvas *c, int *y, int *x);

#endif
