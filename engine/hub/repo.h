/*
 * repo.h - the repository, revision and file that a user names, and their addresses.
 */
#ifndef MEMWALL_ENGINE_HUB_REPO_H
#define MEMWALL_ENGINE_HUB_REPO_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"
#include "engine/hub/cache_layout.h"

struct repo {
    char name[CACHE_MAX_REPO + 1];   /* "ORG/NAME" or "NAME" */
    char revision[128];              /* a branch, tag or commit: "main" */
    char choice[CACHE_MAX_FILE + 1]; /* after the colon, a file or a type; "": none */
};

/* Parse "ORG/NAME", "ORG/NAME:FILE" or "ORG/NAME:TYPE", with or without the endpoint and a
 * slash before it.  revision NULL is "main".  Returns -1 with *e (ERR_ARGUMENT). */
int repo_parse(struct repo *out, const char *text, const char *revision, const char *endpoint,
               struct err *e);

/* Append text to the URL in buf[0 .. n), percent-encoded; slashes too unless keep_slash is set.
 * Returns false if it does not fit. */
bool repo_append_url(char *buf, size_t n, const char *text, bool keep_slash);

#endif
