/* See routes.h. */
#include "config.h"

#include "src/serve/routes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct route routes[] = {
    { "/", "GET", true, PAGE_ROOT, 0, true },
    { "/health", "GET", true, PAGE_HEALTH, 0, true },
    { "/metrics", "GET", true, PAGE_METRICS, 0, false },
    { "/memwall/telemetry", "GET", true, PAGE_TELEMETRY, 0, false },
    { "/memwall/settings", "GET", true, PAGE_SETTINGS, 0, false },
    { "/memwall/settings", "POST", true, PAGE_CHANGES, 0, false },
    { "/v1/models", "GET", true, PAGE_MODELS, 0, false },
    { "/v1/models/", "GET", true, PAGE_MODEL, 0, false },
    { "/v1/chat/completions", "POST", false, 0, FORM_CHAT, false },
    { "/v1/completions", "POST", false, 0, FORM_COMPLETION, false },
    { "/v1/messages", "POST", false, 0, FORM_MESSAGES, false },
    { "/api/tags", "GET", true, PAGE_OLLAMA_TAGS, 0, false },
    { "/api/show", "POST", true, PAGE_OLLAMA_SHOW, 0, false },
    { "/api/ps", "GET", true, PAGE_OLLAMA_PS, 0, false },
    { "/api/version", "GET", true, PAGE_OLLAMA_VERSION, 0, false },
    { "/api/chat", "POST", false, 0, FORM_OLLAMA_CHAT, false },
    { "/api/generate", "POST", false, 0, FORM_OLLAMA_GENERATE, false },
};
#define N_ROUTE (sizeof routes / sizeof routes[0])

const char *route_name(const struct route *r, const char *path)
{
    size_t n = strlen(r->path);

    return n > 1 && r->path[n - 1] == '/' && strncmp(path, r->path, n) == 0 ? path + n : NULL;
}

const struct route *route_find(const char *path, const char *method, bool *is_other_method)
{
    const struct route *found = NULL;

    *is_other_method = false;
    if (strcmp(method, "HEAD") == 0)
        method = "GET";
    for (size_t i = 0; i < N_ROUTE; i++) {
        if (strcmp(routes[i].path, path) != 0 && route_name(&routes[i], path) == NULL)
            continue;
        found = &routes[i];
        *is_other_method = strcmp(routes[i].method, method) != 0;
        if (!*is_other_method)
            break;
    }
    return found;
}

static bool has_route(const char *path)
{
    bool is_other_method;

    return route_find(path, "GET", &is_other_method) != NULL;
}

/* Copy a path without the slashes that say nothing: after another one, or at the end. */
static void copy_path(char *out, const char *path)
{
    size_t n = 0;

    for (; *path != '\0'; path++)
        if (*path != '/' || n == 0 || out[n - 1] != '/')
            out[n++] = *path;
    while (n > 1 && out[n - 1] == '/')
        n--;
    out[n] = '\0';
}

char *route_path(const char *target)
{
    static const char version[] = "/v1";
    const size_t n_version = sizeof version - 1;
    const char *host = target[0] != '/' ? strstr(target, "://") : NULL;
    char *path = malloc(n_version + strlen(target) + 2), *at;

    if (path == NULL)
        return NULL;
    if (host != NULL) {
        target = strchr(host + 3, '/');
        target = target != NULL ? target : "/";
    }
    at = path + n_version;
    memcpy(path, version, n_version);
    copy_path(at, target);
    if (!has_route(at)) {
        if (strncmp(at, version, n_version) == 0 && has_route(at + n_version))
            at += n_version;
        else if (has_route(path))
            at = path;
    }
    memmove(path, at, strlen(at) + 1);
    return path;
}

void route_list(char *buf, size_t n)
{
    size_t len = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < N_ROUTE && len < n; i++)
        if (!routes[i].is_page)
            len += (size_t)snprintf(buf + len, n - len, "%s%s", len > 0 ? ", " : "",
                                    routes[i].path);
}

enum request_form route_protocol(const struct route *r, const char *path)
{
    static const char messages[] = "/v1/messages", ollama[] = "/api/";

    if (r != NULL && !r->is_page)
        return r->form;
    if (strncmp(path, messages, sizeof messages - 1) == 0)
        return FORM_MESSAGES;
    return strncmp(path, ollama, sizeof ollama - 1) == 0 ? FORM_OLLAMA_CHAT : FORM_CHAT;
}

const char *route_methods(const struct route *r)
{
    bool gets = false, posts = false;

    for (size_t i = 0; i < N_ROUTE; i++)
        if (strcmp(routes[i].path, r->path) == 0)
            *(routes[i].method[0] == 'G' ? &gets : &posts) = true;
    return gets && posts ? "GET, POST" : gets ? "GET" : "POST";
}
