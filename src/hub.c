/* See hub.h. */
#include "config.h"

#include "src/hub.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/small_file.h"
#include "src/models.h"
#include "src/paths.h"

#define DEFAULT_ENDPOINT "https://huggingface.co"
#define TOKEN_MAX        1024
#define TOKEN_FILE_MAX   ((size_t)64 << 10)

static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Read the first line of the file with the token; "" if there is none. */
static void read_token(char *token, size_t n)
{
    const char *named = variable("HF_TOKEN_PATH"), *home = variable("HF_HOME");
    const char *cache = variable("XDG_CACHE_HOME");
    struct err ignored = ERR_INIT;
    char path[PATH_MAX];
    char *text;

    if (named != NULL)
        snprintf(path, sizeof path, "%s", named);
    else if (home != NULL)
        snprintf(path, sizeof path, "%s/token", home);
    else if (cache != NULL)
        snprintf(path, sizeof path, "%s/huggingface/token", cache);
    else
        snprintf(path, sizeof path, "%s/.cache/huggingface/token",
                 paths_home() != NULL ? paths_home() : "");
    token[0] = '\0';
    text = small_file_read(path, TOKEN_FILE_MAX, NULL, &ignored);
    if (text == NULL)
        return;
    snprintf(token, n, "%.*s", (int)strcspn(text, " \t\r\n"), text);
    free(text);
}

int hub_settings(struct mw_hub *out, struct err *e)
{
    static char endpoint[PATH_MAX], token[TOKEN_MAX];
    const struct mw_places *places = models_places();

    *out = (struct mw_hub){ .endpoint = endpoint, .token = token, .stop_fd = -1 };
    snprintf(endpoint, sizeof endpoint, "%s",
             variable("HF_ENDPOINT") != NULL ? variable("HF_ENDPOINT") : DEFAULT_ENDPOINT);
    for (size_t len = strlen(endpoint); len > 0 && endpoint[len - 1] == '/';)
        endpoint[--len] = '\0';
    if (variable("HF_TOKEN") != NULL)
        snprintf(token, sizeof token, "%s", variable("HF_TOKEN"));
    else
        read_token(token, sizeof token);
    out->temp = variable("TMPDIR") != NULL ? variable("TMPDIR") : "/tmp";
    for (size_t i = 0; i < places->n && out->cache == NULL; i++)
        if (places->place[i].store == MW_STORE_HUB)
            out->cache = places->place[i].folder;
    if (out->cache == NULL)
        return err_set(e, ERR_ARGUMENT, "neither HOME nor HF_HOME is set");
    return 0;
}
