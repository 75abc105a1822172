/*
 * config.h - writes one setting into the configuration file.
 *
 * A person edits the file too.  The line that sets the key is replaced, or a line is added at
 * the end; all other lines stay as they are.  src/config_file.c reads the file.
 */
#ifndef MEMWALL_UI_TALK_CONFIG_H
#define MEMWALL_UI_TALK_CONFIG_H

#include "engine/memwall.h"

/* Replace the file with one that has the setting; creates its folder.  -1 with *e: the file is
 * unchanged. */
int config_write(const char *path, const char *key, const char *value, struct err *e);

#endif
