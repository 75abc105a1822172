/* See variables.h. */
#include "config.h"

#include "src/variables.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"

static const char *const names[] = {
    "HOME",           "TMPDIR",         "XDG_CONFIG_HOME",       "XDG_STATE_HOME",
    "XDG_DATA_HOME",  "XDG_CACHE_HOME", "HF_ENDPOINT",           "HF_TOKEN",
    "HF_TOKEN_PATH",  "HF_HOME",        "HF_HUB_CACHE",          "HUGGINGFACE_HUB_CACHE",
    "OLLAMA_MODELS",  "LLAMA_CACHE",    "http_proxy",            "https_proxy",
    "HTTPS_PROXY",    "all_proxy",      "ALL_PROXY",             "no_proxy",
    "NO_PROXY",       "SSL_CERT_FILE",  "SSL_CERT_DIR",          "CURL_CA_BUNDLE",
    "TERM",           "COLORTERM",      "REQUESTS_CA_BUNDLE",    "EDITOR",
    "VISUAL",
};

void variables_trim(void)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]), *text = value;
        size_t n = value != NULL ? utf8_trim(&text, strlen(value)) : 0;
        char *copy;

        if (value == NULL || n == strlen(value))
            continue;
        copy = strndup(text, n);
        if (copy != NULL)
            setenv(names[i], copy, 1);
        free(copy);
    }
}

const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}
