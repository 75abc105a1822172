/*
 * repo.h - the repository, revision and file that a user names, and their addresses.
 *
 * A user types "ORG/NAME" or "ORG/NAME:TYPE", or pastes what a browser or the page of a model
 * shows: an address of the repository, a folder or a file, or a command of another program.
 *
 *     https://huggingface.co/ORG/NAME/blob/REVISION/FILE?download=true
 *     hf.co/ORG/NAME:TYPE          hf://ORG/NAME@REVISION/FILE
 *     hf download ORG/NAME FILE --revision REVISION
 *     ollama run hf.co/ORG/NAME:TYPE
 *     lmstudio://open_from_hf?model=ORG/NAME&file=FILE
 *
 * Names of models that are elsewhere are refused with what to do (repo_elsewhere.h).
 */
#ifndef MEMWALL_ENGINE_HUB_REPO_H
#define MEMWALL_ENGINE_HUB_REPO_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"
#include "engine/hub/cache_layout.h"

#define REPO_TEXT 4096 /* a longer text is refused */

struct repo {
    char name[CACHE_MAX_REPO + 1];   /* "ORG/NAME" or "NAME" */
    char revision[128];              /* a branch, tag or commit: "main" */
    char variant[CACHE_MAX_FILE + 1]; /* a file, a folder or a type; "": none */
    bool is_plain;                   /* not an address or a command */
};

/*
 * Parse what a user named.  An address must be of the endpoint or of huggingface.co; endpoint
 * NULL accepts any host.  revision, if not NULL, replaces that of an address; without both it is
 * "main".  Returns -1 with *e (ERR_ARGUMENT), which says what to type instead.
 */
int repo_parse(struct repo *out, const char *text, const char *revision, const char *endpoint,
               struct err *e);

/* Append text to the URL in buf[0 .. n), percent-encoded; slashes too unless keep_slash is set.
 * Returns false if it does not fit. */
bool repo_append_url(char *buf, size_t n, const char *text, bool keep_slash);

#endif
