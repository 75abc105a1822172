/*
 * tour.h - the tour of `memwall demo`: budget and context change while the model answers.
 *
 * The tour asks and changes options as a person would, through talk.h, and watches the state of
 * the conversation.  The chat was opened with a short context, the smallest budget, and a disk
 * so slow that a token takes a third of a second.
 *
 * A chat reserves what the program may ever need.  The tour reserves what the program holds, as
 * measured before each step, and a little more, so that the memory of its budgets is used.
 *
 *     step  budget                 context  the person sees
 *     1     the smallest           short    nothing is pinned: the disk limits the speed
 *     2     for half the weights   short    twice the speed
 *     3     the same and drafts    short    several tokens for each pass, if there is a draft head
 *     4     for all the weights    short    only table rows are read: the disk hardly matters
 *     5     as before              long     KV cache instead of weights: the disk again
 *     end   for everything         long     an ordinary chat
 *
 *     LOAD ──ready──> ASK ──answered──> READ ──some seconds, or tour_next()──> ASK …, or OVER
 *
 * tour_next() stops the answer of ASK after its first text.
 */
#ifndef MEMWALL_UI_APP_TOUR_H
#define MEMWALL_UI_APP_TOUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/talk/talk.h"

struct tour;

/* Start the tour of a chat that was opened; pauses: somebody reads along.  NULL without memory.
 */
struct tour *tour_new(struct talk *t, bool pauses);
void tour_free(struct tour *t);

/* Do what is due; tour_wait: nanoseconds until then, UINT64_MAX if an event comes first. */
void tour_tick(struct tour *t);
uint64_t tour_wait(const struct tour *t);

/* Go on to the next step. */
void tour_next(struct tour *t);
/* End it early; the chat goes on with the budget and context of the step. */
void tour_end(struct tour *t);
bool tour_is_over(const struct tour *t);

/* Describe the step in one short line. */
void tour_line(const struct tour *t, char *buf, size_t n);

#endif
