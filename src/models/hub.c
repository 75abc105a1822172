/* See hub.h. */
#include "config.h"

#include "src/models/hub.h"

#include <sys/stat.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/lookalike.h"
#include "engine/base/small_file.h"
#include "engine/base/utf8.h"
#include "src/base/paths.h"
#include "src/base/variables.h"
#include "src/models/models.h"

#define DEFAULT_ENDPOINT "https://huggingface.co"
#define TOKEN_MAX        1024
#define TOKEN_FILE_MAX   ((size_t)64 << 10)

/* Read the file with the token; "" if there is none.  Returns -1 with *e if it is not a text. */
static int read_token(char *token, size_t n, struct err *e)
{
    const char *named = variable("HF_TOKEN_PATH"), *home = variable("HF_HOME");
    const char *cache = variable("XDG_CACHE_HOME");
    struct err why = ERR_INIT;
    char path[PATH_MAX], *text;
    const char *begin;
    size_t len;

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
    text = small_file_read(path, TOKEN_FILE_MAX, NULL, &why);
    if (text == NULL && why.code == ERR_FORMAT) {
        *e = why;
        return -1;
    }
    if (text == NULL)
        return 0;
    begin = text;
    len = utf8_trim(&begin, strlen(text));
    snprintf(token, n, "%.*s", (int)len, begin);
    (void)lookalike_plain(token, strlen(token));
    free(text);
    return 0;
}

/* Add a file of certificates unless it is among them. */
static void add_authorities(struct mw_hub *out, const char *path)
{
    size_t n = 0;

    while (n < MW_CA_FILES && out->ca_files[n] != NULL && strcmp(out->ca_files[n], path) != 0)
        n++;
    if (n < MW_CA_FILES)
        out->ca_files[n] = path;
}

/* Find the certificates that the user's company trusts.  Programs read different variables.  If
 * several are set, one may name the certificates of the system only, so all of them are read. */
int hub_authorities(struct mw_hub *out, struct err *e)
{
    static const char *const names[] = { "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE",
                                         "CURL_CA_BUNDLE", "SSL_CERT_DIR" };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *path = variable(names[i]);
        bool is_list = path != NULL && strcmp(names[i], "SSL_CERT_DIR") == 0 &&
                       strchr(path, ':') != NULL;
        struct stat st;

        if (path == NULL)
            continue;
        if (!is_list && (access(path, R_OK) != 0 || stat(path, &st) != 0)) {
            err_sys(e, "%s: correct or unset it; \"%.120s\" cannot be read", names[i], path);
            return lookalike_explain(e, path);
        }
        if (!is_list && !S_ISDIR(st.st_mode))
            add_authorities(out, path);
        else if (out->ca_folder == NULL)
            out->ca_folder = path;
    }
    return 0;
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
    else if (read_token(token, sizeof token, e) != 0)
        return -1;
    out->temp = variable("TMPDIR") != NULL ? variable("TMPDIR") : "/tmp";
    for (size_t i = 0; i < places->n && out->cache == NULL; i++)
        if (places->place[i].store == MW_STORE_HUB)
            out->cache = places->place[i].folder;
    if (out->cache == NULL)
        return err_set(e, ERR_ARGUMENT, "neither HOME nor HF_HOME is set");
    if (strchr(out->cache, '$') != NULL && access(out->cache, F_OK) != 0)
        return err_set(e, ERR_ARGUMENT,
                       "the cache of the hub would be \"%.150s\", with a variable that is not "
                       "set; correct HF_HUB_CACHE or HF_HOME",
                       out->cache);
    return hub_authorities(out, e);
}
