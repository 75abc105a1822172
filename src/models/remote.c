/* See remote.h. */
#include "config.h"

#include "src/models/remote.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/lookalike.h"
#include "engine/base/small_file.h"
#include "src/base/variables.h"
#include "src/models/hub.h"

#define KEY_FILE_MAX ((size_t)64 << 10)
#define KEY_MAX      1024

/* ---- options ---- */

/* Does only a model in this process have this option? */
static bool is_of_process(enum option_id id)
{
    const struct option *row = &options_table[id];
    const size_t begin = offsetof(struct options, chat.engine);

    return id == OPT_FORMAT || id == OPT_RAW || id == OPT_ONCE || id == OPT_IDS ||
           (row->at >= begin && row->at < begin + sizeof(struct mw_options));
}

static int check_options(const struct options *o, struct err *e)
{
    char name[40];

    for (int id = 0; id < N_OPTION; id++) {
        if (!o->on_line[id] || !is_of_process((enum option_id)id))
            continue;
        snprintf(name, sizeof name, "--%s", options_table[id].name);
        err_set(e, ERR_ARGUMENT,
                "this is an option of a model in this process; a server has its own");
        return err_at(e, NULL, ERR_NO_OFFSET, name);
    }
    return 0;
}

/* ---- the key ---- */

/* The first line of a file that is not empty and not a comment. */
static int read_key(const char *path, char key[KEY_MAX], struct err *e)
{
    char *text = small_file_read(path, KEY_FILE_MAX, NULL, e), *rest = text, *line;

    if (text == NULL)
        return -1;
    key[0] = '\0';
    while (key[0] == '\0' && (line = strsep(&rest, "\r\n")) != NULL) {
        size_t n;

        line += strspn(line, " \t");
        n = strcspn(line, " \t");
        if (n > 0 && n < KEY_MAX && line[0] != '#')
            snprintf(key, KEY_MAX, "%.*s", (int)n, line);
    }
    free(text);
    if (key[0] != '\0')
        return 0;
    err_set(e, ERR_FORMAT, "there is no key in this file");
    return err_at(e, path, ERR_NO_OFFSET, NULL);
}

/* A file of the configuration has the keys of `memwall serve`, which are not for other servers. */
static int find_key(const struct options *o, char key[KEY_MAX], struct err *e)
{
    const char *value = variable("MEMWALL_API_KEY");

    key[0] = '\0';
    if (o->on_line[OPT_API_KEY_FILE])
        return read_key(o->api_key_file, key, e) == 0
                   ? 0
                   : err_at(e, NULL, ERR_NO_OFFSET, "--api-key-file");
    if (value != NULL && snprintf(key, KEY_MAX, "%s", value) >= KEY_MAX)
        return err_set(e, ERR_FORMAT, "MEMWALL_API_KEY: a key has at most %d bytes", KEY_MAX - 1);
    return 0;
}

/* ---- all ---- */

int remote_settings(struct options *o, struct mw_server *out, struct err *e)
{
    static char key[KEY_MAX];
    struct mw_hub trust = { 0 };

    *out = (struct mw_server){ .url = o->server };
    if (check_options(o, e) != 0 || find_key(o, key, e) != 0)
        return -1;
    mw_options_default(&o->chat.engine);
    o->chat.format = NULL;
    o->chat.raw = false;
    for (int id = 0; id < N_OPTION; id++)
        o->given[id] = o->given[id] && !is_of_process((enum option_id)id);
    if (!o->on_line[OPT_MODEL])
        o->model = "";
    out->key = key[0] != '\0' ? key : NULL;
    if (o->ca_file != NULL) {
        out->ca_files[0] = o->ca_file;
        return 0;
    }
    if (hub_authorities(&trust, e) != 0)
        return -1;
    _Static_assert(MW_SERVER_CA_FILES == MW_CA_FILES, "the same files");
    memcpy(out->ca_files, trust.ca_files, sizeof out->ca_files);
    out->ca_folder = trust.ca_folder;
    return 0;
}
