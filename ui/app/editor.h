/*
 * editor.h - text is edited by a program that the person chose ($VISUAL or $EDITOR).
 */
#ifndef MEMWALL_UI_APP_EDITOR_H
#define MEMWALL_UI_APP_EDITOR_H

#include "engine/memwall.h"
#include "ui/term/term.h"

/*
 * Let the person edit text; the terminal belongs to the editor until it ends.  The text goes
 * through a file in $TMPDIR that only the person can read, and that is removed again.
 * Returns the new text without newlines at its end, to be freed, or NULL with *e.
 */
char *editor_run(struct term *term, const char *text, struct err *e);

#endif
