/* See stores.h.  The files belong to other programs and may hold anything. */
#include "config.h"

#include "src/models/stores.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/small_file.h"
#include "ui/words/path.h"

#define MAX_FILE (256 * KIB)

/* Read HOME/NAME.  Returns NULL if there is no such file, else a text for free(). */
static char *read_file(const char *folder, const char *name, size_t *len)
{
    struct err ignored = ERR_INIT;
    char path[PATH_MAX];

    return snprintf(path, sizeof path, "%s/%s", folder, name) < PATH_MAX
               ? small_file_read(path, MAX_FILE, len, &ignored)
               : NULL;
}

/* Copy a path that another program wrote, with "~/" expanded.  Returns false if it is not
 * absolute, or too long. */
static bool take_path(char to[PATH_MAX], const char *text)
{
    return strlen(text) < PATH_MAX && path_expand(to, PATH_MAX, text)[0] == '/';
}

static void add_folder(enum mw_store store, const char *text, stores_add *add)
{
    char path[PATH_MAX];

    if (text != NULL && take_path(path, text))
        add(store, path);
}

/* ---- LM Studio ---- */

static void add_lm_studio(const char *home, stores_add *add)
{
    struct err ignored = ERR_INIT;
    struct json_doc *doc = NULL;
    char folder[PATH_MAX];
    size_t len = 0;
    char *text = read_file(home, "settings.json", &len);

    if (snprintf(folder, sizeof folder, "%s/models", home) < PATH_MAX)
        add(MW_STORE_LM_STUDIO, folder);
    if (text != NULL && json_parse(&doc, text, len, &ignored) == 0)
        add_folder(MW_STORE_LM_STUDIO,
                   json_as_string(json_get(json_root(doc), "downloadsFolder")), add);
    json_free(doc);
    free(text);
}

void stores_lm_studio(const char *home, stores_add *add)
{
    static const char *const names[] = { ".lmstudio", ".cache/lm-studio" };
    char *pointer = read_file(home, ".lmstudio-home-pointer", NULL);
    char folder[PATH_MAX];

    if (pointer != NULL) {
        pointer[strcspn(pointer, "\r\n")] = '\0';
        if (take_path(folder, pointer))
            add_lm_studio(folder, add);
    }
    free(pointer);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (snprintf(folder, sizeof folder, "%s/%s", home, names[i]) < PATH_MAX)
            add_lm_studio(folder, add);
}

/* ---- Ollama ---- */

/* Add the value of OLLAMA_MODELS in a line such as
 *     Environment="OLLAMA_HOST=0.0.0.0" "OLLAMA_MODELS=/big disk/models"
 * A quote may come before the name or before the value. */
static void add_line(char *line, stores_add *add)
{
    static const char name[] = "OLLAMA_MODELS=";
    char *found, *value, quote = '\0';

    line += strspn(line, " \t");
    if (strncmp(line, "Environment=", 12) != 0 || (found = strstr(line, name)) == NULL)
        return;
    value = found + sizeof name - 1;
    if (found[-1] == '"' || found[-1] == '\'')
        quote = found[-1];
    else if (value[0] == '"' || value[0] == '\'')
        quote = *value++;
    value[strcspn(value, quote == '"' ? "\"" : quote == '\'' ? "'" : " \t\r")] = '\0';
    add_folder(MW_STORE_OLLAMA, value, add);
}

static void add_unit(const char *folder, const char *name, stores_add *add)
{
    char *text = read_file(folder, name, NULL), *next;

    for (char *line = text; line != NULL; line = next) {
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        add_line(line, add);
    }
    free(text);
}

void stores_ollama(const char *config, stores_add *add)
{
    static const char *const folders[] = { "/etc/systemd/system", "/lib/systemd/system", NULL };
    static const char *const files[] = { "ollama.service.d/override.conf", "ollama.service" };
    char own[PATH_MAX];

    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        for (size_t k = 0; k < sizeof files / sizeof files[0]; k++) {
            if (folders[i] != NULL)
                add_unit(folders[i], files[k], add);
            else if (snprintf(own, sizeof own, "%s/systemd/user", config) < PATH_MAX)
                add_unit(own, files[k], add);
        }
}
