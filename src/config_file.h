/*
 * config_file.h - options from a file: memwall.conf(5).
 *
 *     # comment
 *     memory = 2G
 *     quiet = yes
 *     system = "You are brief."
 *
 * A key is the long name of an option of chat, run, plan or replay, checked by the same table
 * as the command line, which stands above the file.
 */
#ifndef MEMWALL_SRC_CONFIG_FILE_H
#define MEMWALL_SRC_CONFIG_FILE_H

#include "engine/memwall.h"
#include "src/options.h"

struct command;

/*
 * Read a file into *o as far as the subcommand takes its keys.  A file that is not there
 * is no error.  *text (free it when *o is no longer used) holds what *o points into.
 * -1 with *e naming file, line and key.
 */
int config_file_read(struct options *o, const struct command *c, const char *path, char **text,
                     struct err *e);

/* May key have this value in a file? */
int config_file_check(const char *key, const char *value, struct err *e);

/* The keys, NULL behind the last. */
const char *const *config_file_keys(void);

#endif
