/*
 * remote.h - the server of --server: its address, key and certificates.
 */
#ifndef MEMWALL_SRC_MODELS_REMOTE_H
#define MEMWALL_SRC_MODELS_REMOTE_H

#include "engine/memwall.h"
#include "ui/options/options.h"

/*
 * Check the options of a command with --server, and take away those that only a model in this
 * process has and that come from the configuration file.  o->model becomes the name of a model
 * there, "" for the first one.  The key is that of --api-key-file on the command line, or of
 * MEMWALL_API_KEY.  Texts in *out stay for the life of the process.  -1 with *e.
 */
int remote_settings(struct options *o, struct mw_server *out, struct err *e);

#endif
