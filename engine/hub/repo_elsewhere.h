/*
 * repo_elsewhere.h - names and addresses of models that are not on a hub: what to do instead.
 */
#ifndef MEMWALL_ENGINE_HUB_REPO_ELSEWHERE_H
#define MEMWALL_ENGINE_HUB_REPO_ELSEWHERE_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"

/* Write the name in Ollama's library, "gemma3:4b" or "USER/NAME", of an address of its site or
 * of a name without an organization.  Returns false for any other text. */
bool repo_ollama_name(const char *text, char *buf, size_t n);

/* Refuse a name of Ollama's library. */
int repo_refuse_ollama(const char *name, struct err *e);

/* Refuse the address or name of something that is known to be elsewhere: a file of this
 * machine, Ollama's library, a site with programs.  Returns 0 for any other text. */
int repo_check_elsewhere(const char *text, struct err *e);

#endif
