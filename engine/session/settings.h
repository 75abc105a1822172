/*
 * settings.h - the options of a chat with their strings and lists.
 */
#ifndef MEMWALL_ENGINE_SESSION_SETTINGS_H
#define MEMWALL_ENGINE_SESSION_SETTINGS_H

#include "engine/memwall.h"

/* Options and the block that their strings are in. */
struct settings {
    struct mw_chat_options o;
    void *block;
};

/* Copy options with their strings.  -1 with *e: *out is unchanged. */
int settings_copy(struct settings *out, const struct mw_chat_options *o, struct err *e);
void settings_free(struct settings *s);

/* mw_options_without() for settings.  Without memory *later is unchanged. */
void settings_without(const struct mw_chat_options *now, const struct mw_chat_options *refused,
                      struct settings *later);

#endif
