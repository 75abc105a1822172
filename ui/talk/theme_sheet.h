/*
 * theme_sheet.h - /theme: the themes to choose from.  The screen changes while the cursor
 * moves.
 */
#ifndef MEMWALL_UI_TALK_THEME_SHEET_H
#define MEMWALL_UI_TALK_THEME_SHEET_H

#include "ui/talk/talk.h"

/* keep writes a setting to the configuration file and applies it. */
void theme_sheet(struct talk *t,
                 void (*keep)(struct talk *t, enum option_id id, const char *value));

#endif
