/*
 * player.h - a recording that is played: which moment of it is shown.
 *
 * Time is that of the recording, from 0 at its first line.  Going on pushes all samples up
 * to the new moment into the dashboard; going back reads the file again from its start,
 * since a sample needs all that came before it.
 */
#ifndef MEMWALL_UI_DASH_PLAYER_H
#define MEMWALL_UI_DASH_PLAYER_H

#include "ui/dash/dash.h"

/* What --speed takes, too. */
#define PLAYER_SLOWEST 0.01
#define PLAYER_FASTEST 1000

struct player;

/* Reads all of it once, to know its length.  -1 with *e: not a recording.  One that breaks
 * off is played up to there; player_broken() says why. */
int player_open(struct player **out, const char *path, struct err *e);
void player_close(struct player *p);

double player_now_s(const struct player *p);
double player_length_s(const struct player *p);
bool player_is_at_end(const struct player *p);
const struct err *player_broken(const struct player *p); /* NULL: it is whole */

/* Go on by so many seconds of the recording, or to the next sample.  true: something new
 * was pushed. */
bool player_advance(struct player *p, struct dash *d, double seconds);
bool player_step(struct player *p, struct dash *d);
/* To a moment before or after. */
int player_seek(struct player *p, struct dash *d, double seconds, struct err *e);

/* The last sample that was pushed; all zero before the first. */
const struct mw_sample *player_sample(const struct player *p);

/* For `replay --once` and `--json`: the end of a recording, as text or as one line of JSON. */
int player_print(const char *path, int width, int height, bool ascii, FILE *f, struct err *e);
int player_print_json(const char *path, FILE *f, struct err *e);

#endif
