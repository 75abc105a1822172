/*
 * config.h - one setting, written into the configuration file.
 *
 * The file is the person's: lines that are there stay as they are, the one that sets the
 * key is replaced, else one is added at the end.  Reading it is src/'s business.
 */
#ifndef MEMWALL_UI_TALK_CONFIG_H
#define MEMWALL_UI_TALK_CONFIG_H

#include "engine/memwall.h"

/* Whole or not at all; the folder is made if it is not there. */
int config_write(const char *path, const char *key, const char *value, struct err *e);

#endif
