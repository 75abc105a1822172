/* See access.h. */
#include "config.h"

#include "src/serve/access.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/base/small_file.h"
#include "src/serve/listen.h"

#define KEYS_BYTES 65536 /* of a file of keys */

size_t access_value_length(const char *value)
{
    size_t n = strlen(value);

    while (n > 0 && (value[n - 1] == ' ' || value[n - 1] == '\t'))
        n--;
    return n;
}

/* Compare without showing by the time how much of a key was right. */
static bool same_key(const char *given, const char *key)
{
    size_t n = access_value_length(given);
    unsigned char differs = 0;

    if (n != strlen(key))
        return false;
    for (size_t i = 0; i < n; i++)
        differs |= (unsigned char)(given[i] ^ key[i]);
    return differs == 0;
}

static bool is_key(const char *given, const char *const *keys)
{
    for (size_t i = 0; given != NULL && keys[i] != NULL; i++)
        if (same_key(given, keys[i]))
            return true;
    return false;
}

/* A client may send both headers, such as one with a setting that is left from another server. */
static bool has_key(const struct access *a, const char *const *keys)
{
    static const char bearer[] = "Bearer ";
    const size_t n = sizeof bearer - 1;
    bool has_bearer = a->authorization != NULL && strncasecmp(a->authorization, bearer, n) == 0;

    return is_key(a->key, keys) || (has_bearer && is_key(a->authorization + n, keys));
}

/* Schemes of the windows of desktop applications, which come from this machine.  No page of the
 * web has one; one in a frame that its site has locked up has the origin "null". */
static bool is_application(const char *origin, size_t n)
{
    static const char *const scheme[] = { "app", "file", "tauri", "vscode-file",
                                          "vscode-webview" };

    for (size_t i = 0; i < sizeof scheme / sizeof scheme[0]; i++)
        if (strlen(scheme[i]) == n && strncasecmp(origin, scheme[i], n) == 0)
            return true;
    return false;
}

static bool is_local_origin(const char *origin)
{
    const char *host = strstr(origin, "://");

    return host != NULL && (is_application(origin, (size_t)(host - origin)) ||
                            listen_is_local_name(host + 3));
}

unsigned access_check(const struct access *a, bool is_loopback, const char *const *keys,
                      bool is_open, bool is_preflight, struct err *e)
{
    if (keys != NULL) {
        if (is_open || is_preflight || has_key(a, keys))
            return 0;
        err_set(e, ERR_ARGUMENT, "this server needs one of its keys: \"Authorization: Bearer "
                                 "KEY\"");
        return 401;
    }
    if (is_loopback && a->host != NULL && !listen_is_local_name(a->host)) {
        err_set(e, ERR_ARGUMENT, "the Host header names another machine; only a server "
                                 "with --api-key-file answers by other names");
        return 403;
    }
    if (a->origin != NULL && !is_local_origin(a->origin)) {
        err_set(e, ERR_ARGUMENT, "pages of other machines need a server with keys");
        return 403;
    }
    return 0;
}

static int read_keys(char ***out, const char *path, struct err *e)
{
    size_t n = 0;
    char *text = small_file_read(path, KEYS_BYTES, NULL, e), *rest = text, *line;

    *out = NULL;
    if (text == NULL)
        return -1;
    /* Each key takes two bytes of the text at least. */
    *out = calloc(strlen(text) / 2 + 3, sizeof **out);
    if (*out == NULL) {
        free(text);
        return err_memory(e, "keys");
    }
    while ((line = strsep(&rest, "\r\n")) != NULL) {
        line += strspn(line, " \t");
        line[strcspn(line, " \t")] = '\0';
        if (line[0] == '\0' || line[0] == '#')
            continue;
        (*out)[n] = strdup(line);
        if ((*out)[n++] == NULL) {
            free(text);
            access_keys_free(*out);
            *out = NULL;
            return err_memory(e, "keys");
        }
    }
    free(text);
    if (n > 0)
        return 0;
    free(*out);
    *out = NULL;
    err_set(e, ERR_FORMAT, "there is no key in this file");
    return err_at(e, path, ERR_NO_OFFSET, NULL);
}

int access_keys_read(char ***out, const char *path, struct err *e)
{
    return read_keys(out, path, e) == 0 ? 0 : err_at(e, NULL, ERR_NO_OFFSET, "--api-key-file");
}

void access_keys_free(char **keys)
{
    for (size_t i = 0; keys != NULL && keys[i] != NULL; i++)
        free(keys[i]);
    free(keys);
}
