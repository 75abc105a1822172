/*
 * beside.h - what a program keeps beside the weights of a model, as defaults of the options.
 *
 * Ollama keeps a system message and parameters.  They apply where the user gave no value, on the
 * command line or in the configuration, and are checked like values that a user types.
 */
#ifndef MEMWALL_SRC_BASE_BESIDE_H
#define MEMWALL_SRC_BASE_BESIDE_H

#include "engine/memwall.h"
#include "ui/options/options.h"

/* Store the values for a command (enum command_bit) in o, which refers to b from now on, and
 * begin the notice. */
void beside_apply(struct options *o, const struct mw_beside *b, unsigned command);

/* The option has another value after all, such as that of a chat that is resumed. */
void beside_replaced(enum option_id id);

/* Returns what was applied and what was not, in sentences, or "". */
const char *beside_notice(void);

/* Print the notice, unless it was printed, or o->quiet is set. */
void beside_report(const struct options *o);

#endif
