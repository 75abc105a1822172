/*
 * server.h - the dashboard of a server: what it reports, and what is measured here.
 */
#ifndef MEMWALL_UI_DASH_SERVER_H
#define MEMWALL_UI_DASH_SERVER_H

#include "ui/dash/state.h"
#include "ui/term/canvas.h"

/* Draw it into all of c.  d has a server. */
void server_draw(const struct dash *d, const struct canvas *c);

#endif
