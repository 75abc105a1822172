/*
 * change_sheet.h - other options for a conversation: what they would change, before they do.
 */
#ifndef MEMWALL_UI_TALK_CHANGE_SHEET_H
#define MEMWALL_UI_TALK_CHANGE_SHEET_H

#include "ui/talk/talk.h"

/* Show the plan that `wanted` would have beside the plan in force; Enter applies it.  The
 * title calls the change `what` ("context 8192"), and `note` is a sentence below it, or "".  If
 * it does not fit, report sizes that do. */
void change_propose(struct talk *t, const struct mw_chat_options *wanted, const char *what,
                    const char *note);

/* Describe what these options would cost in one line: "8,192 tokens, -12 MiB of pinned
 * weights, about 3.1 tok/s".  Returns false if they do not fit. */
bool change_price(struct talk *t, const struct mw_chat_options *wanted, char *buf, size_t n);

/* Add the limits of the machine that predictions use, if they are known, and a limit that the
 * user set for the disk (bytes per second; 0: none). */
void limits_line(const struct talk *t, struct sheet *s, uint64_t disk_rate);

#endif
