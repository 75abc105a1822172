/*
 * run_server.h - memwall run with a model of a server.
 */
#ifndef MEMWALL_SRC_COMMANDS_RUN_SERVER_H
#define MEMWALL_SRC_COMMANDS_RUN_SERVER_H

#include "ui/options/options.h"

/* Answer the prompt of the options.  Returns enum exit_code. */
int run_server(const struct options *o);

#endif
