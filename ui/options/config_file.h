/*
 * config_file.h - settings in a file: memwall.conf(5).
 *
 *     # comment
 *     memory = 2G
 *     quiet = yes
 *     system = "You are brief."
 *
 * A key is the name of a setting (options.h).  People edit the file, too: a line that memwall
 * writes replaces the one that sets the key, and all other lines stay as they are.
 */
#ifndef MEMWALL_UI_OPTIONS_CONFIG_FILE_H
#define MEMWALL_UI_OPTIONS_CONFIG_FILE_H

#include "engine/memwall.h"
#include "ui/options/options.h"
#include "ui/options/setting_check.h"

/* A sentence, ended by a newline, for each line that was skipped; "" at the beginning. */
struct config_skipped {
    char text[2000];
};

/*
 * Read the settings of a subcommand (enum command_bit) into *o.  Settings of other subcommands
 * are only checked.  A missing file is not an error.  *o points into *text, which the caller
 * frees after the last use of *o.  If skipped is NULL, a wrong line is an error: -1 with *e
 * naming file, line and key.  Otherwise it is added to *skipped, and the default stays.
 */
int config_file_read(struct options *o, unsigned command, const char *path, char **text,
                     struct config_skipped *skipped, struct err *e);

/* Check the theme and the model in *o that come from the file, after the command line was read,
 * which replaces them.  Wrong ones are an error, or skipped, as above. */
int config_file_check(struct options *o, const char *path, const struct setting_folders *in,
                      struct config_skipped *skipped, struct err *e);

/* Write a setting, in a new file that replaces the old one; creates its folder.  -1 with *e:
 * the value is not valid, or the file cannot be written and is unchanged. */
int config_file_write(const char *path, enum option_id id, const char *value, struct err *e);

#endif
