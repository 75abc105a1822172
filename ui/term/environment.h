/*
 * environment.h - changes of the process's environment while other threads read it.
 *
 * setenv() of glibc before 2.41 can move the environment while another thread calls getenv(), as
 * libcurl does for each connection, to find proxies.  ncurses takes some settings only from the
 * environment.
 */
#ifndef MEMWALL_UI_TERM_ENVIRONMENT_H
#define MEMWALL_UI_TERM_ENVIRONMENT_H

#include <stdbool.h>

/* Set a variable; value NULL: remove it.  Strings and arrays that another thread may still read
 * are never freed, so equal ones are used again.  To be called from one thread.  Returns false if
 * there is no memory. */
bool environment_set(const char *name, const char *value);

#endif
