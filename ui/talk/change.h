/*
 * change.h - other options for a chat that goes on: first what they would do, then, on
 * Enter, done.
 */
#ifndef MEMWALL_UI_TALK_CHANGE_H
#define MEMWALL_UI_TALK_CHANGE_H

#include "ui/talk/talk.h"

/* Show the plan that wanted would have beside the one in force; Enter applies it.  what
 * names the change: "context 8192".  What does not fit is said with what would. */
void change_propose(struct talk *t, const struct mw_chat_options *wanted, const char *what);

/* One line on what these options would cost: "8,192 tokens: pinned weights shrink by …",
 * or false when they do not fit.  buf holds the line. */
bool change_price(struct talk *t, const struct mw_chat_options *wanted, char *buf, size_t n);

#endif
