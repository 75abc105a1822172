/*
 * player.h - plays a recording.
 *
 * Times are seconds of the recording, from 0 at its first line.  Moving forward pushes all
 * samples up to the new time into the dashboard.  Moving back reads the file again from its
 * start, since a sample depends on all earlier lines.
 */
#ifndef MEMWALL_UI_DASH_PLAYER_H
#define MEMWALL_UI_DASH_PLAYER_H

#include "ui/dash/dash.h"

/* Also the limits of --speed. */
#define PLAYER_SLOWEST 0.01
#define PLAYER_FASTEST 1000

struct player;

/* Open a recording and read it once, to find its length.  Returns -1 with *e if it is not a
 * recording.  A damaged recording is played up to the damage; player_broken() has the reason.
 */
int player_open(struct player **out, const char *path, struct err *e);
void player_close(struct player *p);

double player_now_s(const struct player *p);
double player_length_s(const struct player *p);
bool player_is_at_end(const struct player *p);
const struct err *player_broken(const struct player *p); /* NULL: it is complete */

/* Advance by seconds of the recording, or to the next sample.  Returns true if a sample was
 * pushed. */
bool player_advance(struct player *p, struct dash *d, double seconds);
bool player_step(struct player *p, struct dash *d);
/* Go to an earlier or later time. */
int player_seek(struct player *p, struct dash *d, double seconds, struct err *e);

/* Returns the sample pushed last; all zero before the first one. */
const struct mw_sample *player_sample(const struct player *p);

/* Print the end of a recording as text or as one line of JSON. */
int player_print(const char *path, int width, int height, bool ascii, FILE *f, struct err *e);
int player_print_json(const char *path, FILE *f, struct err *e);

#endif
