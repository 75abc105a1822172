/*
 * help.h - the keys that /help lists.
 */
#ifndef MEMWALL_UI_TALK_HELP_H
#define MEMWALL_UI_TALK_HELP_H

struct help_key {
    const char *keys, *what;
};

/* All keys; a row without keys ends. */
const struct help_key *help_keys(void);

#endif
