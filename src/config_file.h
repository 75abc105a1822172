/*
 * config_file.h - options from a file: memwall.conf(5).
 *
 *     # comment
 *     memory = 2G
 *     quiet = yes
 *     system = "You are brief."
 *
 * A key is the long name of an option of chat, run, plan or replay.  The table of options
 * checks its value as on the command line.  The command line overrides the file.
 */
#ifndef MEMWALL_SRC_CONFIG_FILE_H
#define MEMWALL_SRC_CONFIG_FILE_H

#include "engine/memwall.h"
#include "src/options.h"

struct command;

/*
 * Read the keys that the subcommand takes into *o.  A missing file is not an error.  *o points
 * into *text, which the caller frees after the last use of *o.  Returns -1 with *e naming
 * file, line and key.
 */
int config_file_read(struct options *o, const struct command *c, const char *path, char **text,
                     struct err *e);

/* Check that key can have this value in a file. */
int config_file_check(const char *key, const char *value, struct err *e);

/* All keys, ended by NULL. */
const char *const *config_file_keys(void);

#endif
