/* See variables.h. */
#include "config.h"

#include "src/base/variables.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/lookalike.h"
#include "engine/base/utf8.h"
#include "engine/base/visible.h"

/* Variables with the path of a file or folder. */
static const char *const paths[] = {
    "HOME",          "TMPDIR",        "XDG_CONFIG_HOME",       "XDG_STATE_HOME",
    "XDG_DATA_HOME", "HF_TOKEN_PATH", "XDG_CACHE_HOME",        "HF_HOME",
    "HF_HUB_CACHE",  "OLLAMA_MODELS", "HUGGINGFACE_HUB_CACHE", "LLAMA_CACHE",
    "SSL_CERT_FILE", "SSL_CERT_DIR",  "REQUESTS_CA_BUNDLE",    "CURL_CA_BUNDLE",
};
static const char *const others[] = {
    "HF_ENDPOINT", "HF_TOKEN",  "MEMWALL_API_KEY", "http_proxy", "https_proxy", "HTTPS_PROXY",
    "all_proxy",   "ALL_PROXY", "no_proxy",   "NO_PROXY",    "TERM",
    "COLORTERM",   "EDITOR",    "VISUAL",
};

/* Copy "$NAME" or "${NAME}" to name.  Returns its length in text; 0: it is not one. */
static size_t read_name(const char *text, char *name, size_t size)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_";
    bool has_brace = text[0] == '$' && text[1] == '{';
    size_t begin = has_brace ? 2 : 1, n = text[0] == '$' ? strspn(text + begin, letters) : 0;

    if (n == 0 || n >= size || (has_brace && text[begin + n] != '}'))
        return 0;
    snprintf(name, size, "%.*s", (int)n, text + begin);
    return begin + n + has_brace;
}

/* Expand "~/" and variables, as huggingface_hub does: a shell expands neither in quotes, and
 * files with variables have no shell.  A variable that is not set stays. */
static void expand(char *to, size_t size, const char *text)
{
    const char *home = getenv("HOME");
    size_t at = 0;

    if (text[0] == '~' && (text[1] == '/' || text[1] == '\0') && home != NULL) {
        at = (size_t)snprintf(to, size, "%s", home);
        text++;
    }
    while (*text != '\0' && at + 1 < size) {
        char name[64];
        size_t n = read_name(text, name, sizeof name);
        const char *value = n > 0 ? getenv(name) : NULL;

        if (value != NULL) {
            at += (size_t)snprintf(to + at, size - at, "%s", value);
            text += n;
        } else {
            to[at++] = *text++;
        }
    }
    to[at < size ? at : size - 1] = '\0';
}

/* Skip white space and characters that look like nothing at both ends.  Returns the length. */
static size_t trim(const char **text)
{
    size_t n = strlen(*text), at = 0, end;

    for (end = 0; at < n;) {
        uint32_t cp;

        at += utf8_decode(*text + at, n - at, &cp);
        if (!visible_hides(cp) && !(cp < UTF8_SHORT && utf8_is_white(cp)))
            end = at;
        else if (end == 0)
            *text += at, n -= at, at = 0;
    }
    return end;
}

/* Names of files may have such characters inside; other values never do. */
static void clean(const char *name, bool is_path)
{
    const char *value = getenv(name), *text = value;
    char expanded[PATH_MAX], *copy;
    size_t n;

    if (value == NULL)
        return;
    n = trim(&text);
    copy = strndup(text, n);
    if (copy != NULL && is_path && n < sizeof expanded) {
        expand(expanded, sizeof expanded, copy);
        setenv(name, expanded, 1);
    } else if (copy != NULL) {
        (void)lookalike_plain(copy, n);
        setenv(name, copy, 1);
    }
    free(copy);
}

void variables_clean(void)
{
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        clean(others[i], false);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        clean(paths[i], true);
}

const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}
