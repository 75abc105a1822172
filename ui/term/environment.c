#include "config.h"

#include "ui/term/environment.h"

#include <stdlib.h>
#include <string.h>

#define SPARE 16 /* variables that can be added before the next array */

extern char **environ;

static char **own; /* the array that was made here: [room + 1], NULL at the end */
static size_t room;
static char **made; /* "NAME=VALUE" [n_made] */
static size_t n_made;

static void store(char **at, char *entry)
{
    __atomic_store_n(at, entry, __ATOMIC_RELEASE);
}

static size_t count(void)
{
    size_t n = 0;

    while (environ != NULL && environ[n] != NULL)
        n++;
    return n;
}

/* Make an array with room for one variable more.  The one before stays for its readers. */
static bool make_room(size_t n)
{
    char **more;

    if (environ == own && n < room)
        return true;
    more = calloc(n + SPARE + 1, sizeof *more);
    if (more == NULL)
        return false;
    if (n > 0)
        memcpy(more, environ, n * sizeof *more);
    own = more;
    room = n + SPARE;
    __atomic_store_n(&environ, more, __ATOMIC_RELEASE);
    return true;
}

/* Returns "NAME=VALUE", made before or now; NULL: there is no memory. */
static char *entry_of(const char *name, const char *value)
{
    size_t n_name = strlen(name), n = n_name + 1 + strlen(value);
    char *entry, **more;

    for (size_t i = 0; i < n_made; i++)
        if (strncmp(made[i], name, n_name) == 0 && made[i][n_name] == '=' &&
            strcmp(made[i] + n_name + 1, value) == 0)
            return made[i];
    more = realloc(made, (n_made + 1) * sizeof *made);
    entry = malloc(n + 1);
    if (more != NULL)
        made = more;
    if (more == NULL || entry == NULL) {
        free(entry);
        return NULL;
    }
    memcpy(entry, name, n_name);
    entry[n_name] = '=';
    strcpy(entry + n_name + 1, value);
    return made[n_made++] = entry;
}

bool environment_set(const char *name, const char *value)
{
    char *entry = value != NULL ? entry_of(name, value) : NULL;
    size_t n = count(), n_name = strlen(name), at = 0;

    if ((value != NULL && entry == NULL) || !make_room(n))
        return false;
    while (at < n && (strncmp(own[at], name, n_name) != 0 || own[at][n_name] != '='))
        at++;
    if (value != NULL) {
        store(&own[at], entry); /* at the end, if it is new */
    } else if (at < n) {
        store(&own[at], own[n - 1]);
        store(&own[n - 1], NULL);
    }
    return true;
}
