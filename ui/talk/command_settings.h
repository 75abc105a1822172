/*
 * command_settings.h - the commands that the rows of ui/options make.
 */
#ifndef MEMWALL_UI_TALK_COMMAND_SETTINGS_H
#define MEMWALL_UI_TALK_COMMAND_SETTINGS_H

#include "ui/talk/talk.h"

/* The command of a setting: show its value, or apply another to the running chat. */
void setting_enter(struct talk *t, enum option_id id, const char *value);

#endif
