#include "config.h"

#include "engine/hub/repo_elsewhere.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/base/visible.h"
#include "engine/hub/cache_layout.h"
#include "engine/hub/find.h"

/* Sites whose addresses people paste as if they were hubs. */
static const struct {
    const char *host;
    bool is_ollama;
} sites[] = {
    { "ollama.com", true },         { "www.ollama.com", true },
    { "registry.ollama.ai", true }, { "github.com", false },
    { "www.github.com", false },    { "raw.githubusercontent.com", false },
    { "gitlab.com", false },
};

#define OLLAMA "ollama://"

static bool is_ollama_scheme(const char *text)
{
    return strncasecmp(text, OLLAMA, strlen(OLLAMA)) == 0;
}

/* Return what follows the scheme. */
static const char *after_scheme(const char *text)
{
    const char *colon = strstr(text, "://"), *slash = strchr(text, '/');

    return colon != NULL && colon < slash ? colon + 3 : text;
}

/* Return the index of the site of an address, or -1, and what follows its host. */
static int site_of(const char *text, const char **path)
{
    const char *host = after_scheme(text);

    for (size_t i = 0; i < sizeof sites / sizeof sites[0]; i++) {
        size_t n = strlen(sites[i].host);

        if (strncasecmp(host, sites[i].host, n) == 0 && (host[n] == '/' || host[n] == '\0')) {
            *path = host + n + (host[n] == '/');
            return (int)i;
        }
    }
    return -1;
}

/* Copy "NAME[:TAG]", or "USER/NAME[:TAG]" if two parts are allowed, from the start of a path.
 * Returns false if it has no such name. */
static bool copy_name(const char *path, bool has_user, char *buf, size_t n)
{
    size_t len = strcspn(path, "/?# ");
    char name[CACHE_MAX_REPO + 1];

    if (path[len] == '/' && has_user)
        len += 1 + strcspn(path + len + 1, "/?# ");
    if (len == 0 || len >= n || len >= sizeof name)
        return false;
    snprintf(buf, n, "%.*s", (int)len, path);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(buf, ":"), buf);
    return cache_is_repo(name) && visible_all(buf, len);
}

bool repo_ollama_name(const char *text, char *buf, size_t n)
{
    const char *path = text;
    int site = site_of(text, &path);

    if (is_ollama_scheme(text))
        return copy_name(text + strlen(OLLAMA), true, buf, n);
    if (site < 0)
        return strchr(text, '/') == NULL && !find_ends_in(text, ".gguf") &&
               text[strcspn(text, "?# ")] == '\0' && copy_name(text, false, buf, n);
    if (strncmp(path, "library/", 8) == 0)
        return copy_name(path + 8, false, buf, n);
    return sites[site].is_ollama && strchr(path, '/') != NULL && copy_name(path, true, buf, n);
}

int repo_refuse_ollama(const char *name, struct err *e)
{
    return err_set(e, ERR_ARGUMENT,
                   "\"%.70s\" is in Ollama's library, not on a hub; \"ollama pull %.70s\" "
                   "fetches it, and -m opens it by that name; or give ORG/NAME of a hub",
                   name, name);
}

static bool is_path(const char *text)
{
    return (text[0] == '/' && text[1] != '\0') || text[0] == '~' ||
           strncmp(text, "./", 2) == 0 || strncmp(text, "../", 3) == 0 ||
           strncasecmp(text, "file:", 5) == 0;
}

int repo_check_elsewhere(const char *text, struct err *e)
{
    char name[CACHE_MAX_REPO + 1];
    const char *path;
    int site = site_of(text, &path);

    if (is_path(text))
        return err_set(
            e, ERR_ARGUMENT,
            "\"%.100s\" is a file on this machine; open it with -m, or give ORG/NAME "
            "of a model on the hub",
            text);
    if (find_ends_in(text, ".gguf") && cache_is_repo(text)) /* "x.gguf", "models/x.gguf" */
        return err_set(e, ERR_ARGUMENT,
                       "\"%.100s\" is the name of a file; open one of this machine with -m, or "
                       "give ORG/NAME:FILE of a model on the hub",
                       text);
    if (site < 0 && !is_ollama_scheme(text))
        return 0;
    if (repo_ollama_name(text, name, sizeof name))
        return repo_refuse_ollama(name, e);
    return err_set(
        e, ERR_ARGUMENT,
        "\"%.100s\" is not a model on a hub; give ORG/NAME of one, or download a model "
        "file with a browser and open it with -m",
        text);
}
