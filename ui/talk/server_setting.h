/*
 * server_setting.h - settings of the model at a memwall server, which replies by events.
 */
#ifndef MEMWALL_UI_TALK_SERVER_SETTING_H
#define MEMWALL_UI_TALK_SERVER_SETTING_H

#include "ui/talk/talk.h"

/* Ask the server for the value in force; the reply shows it.  -1 with *e. */
int server_setting_show(struct talk *t, enum option_id id, struct err *e);
/* Ask what a value would change; the reply opens a sheet, and Enter applies it.  A value that
 * changes no plan is applied at once.  -1 with *e. */
int server_setting_change(struct talk *t, enum option_id id, const char *value, struct err *e);
/* Say that a setting is only of a model in this process.  Returns -1. */
int server_setting_refuse(struct talk *t, struct err *e);
/* Take the reply. */
void server_setting_replied(struct talk *t, const struct mw_event *ev);
/* Is a reply to come? */
bool server_setting_waits(const struct talk *t);

#endif
