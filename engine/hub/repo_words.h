/*
 * repo_words.h - the words of a text that says which model to fetch, as people paste it.
 *
 * It is a name, an address, a sentence or a link with an address, or a command of another
 * program.
 */
#ifndef MEMWALL_ENGINE_HUB_REPO_WORDS_H
#define MEMWALL_ENGINE_HUB_REPO_WORDS_H

#include <stdbool.h>

struct repo_words {
    char *repo;            /* the name or the address; NULL: missing */
    char *file, *revision; /* options of a command; NULL: not given */
    bool is_address;       /* repo is one, not a name */
    bool is_command;       /* of another program */
    bool is_ollama;        /* of Ollama, and repo is a name of its library */
};

/* Read a text, which is changed and keeps the words.  Addresses of the endpoint need no scheme;
 * NULL: there is none. */
void repo_words_read(struct repo_words *out, char *text, const char *endpoint);

/* If text begins with this host, return what follows it, its port and a slash or colon. */
char *repo_after_host(char *text, const char *host);

#endif
