/*
 * help.h - the keys that /help lists, and the help of the dashboard.
 */
#ifndef MEMWALL_UI_TALK_HELP_H
#define MEMWALL_UI_TALK_HELP_H

struct help_key {
    const char *keys, *what;
};

/* All keys; a row without keys ends. */
const struct help_key *help_keys(void);

struct sheet;

/* The meaning of each word of the dashboard, to be filtered.  NULL: no memory. */
struct sheet *help_dashboard_sheet(void);

#endif
