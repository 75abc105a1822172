#include "config.h"

#include "engine/format/vocab.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/format/catalogue_build.h"
#include "engine/format/file_open.h"
#include "engine/format/gguf.h"
#include "engine/format/vocab_rules.h"

/* Returns the folder of a snapshot that has a tokenizer.json, malloc'ed, or NULL. */
static char *vocab_folder(const char *path)
{
    const char *name = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
    char *folder = strdup(path), *file;
    struct stat st;

    if (folder == NULL || stat(path, &st) != 0) {
        free(folder);
        return NULL;
    }
    if (S_ISDIR(st.st_mode)) {
        file = malloc(strlen(path) + sizeof "/tokenizer.json");
        if (file != NULL && stat(strcat(strcpy(file, path), "/tokenizer.json"), &st) == 0) {
            free(file);
            return folder;
        }
        free(file);
    } else if (strcmp(name, "tokenizer.json") == 0) {
        if (name == path)
            strcpy(folder, ".");
        else
            folder[name - path - (name - path > 1)] = '\0';
        return folder;
    }
    free(folder);
    return NULL;
}

int vocab_open(struct catalogue **out, const char *path, struct err *e)
{
    char *folder = vocab_folder(path);
    struct catalogue *c;

    *out = NULL;
    if (folder == NULL)
        return catalogue_open_bare(out, path, e);
    c = calloc(1, sizeof *c);
    if (c == NULL || (c->index = calloc(1, sizeof *c->index)) == NULL) {
        free(folder);
        free(c);
        return err_memory(e, "a catalogue");
    }
    c->kind = CATALOGUE_SNAPSHOT;
    c->path = folder;
    c->dir_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (c->dir_fd < 0) {
        err_sys(e, "cannot open the folder");
        err_at(e, path, ERR_NO_OFFSET, NULL);
        catalogue_close(c);
        return -1;
    }
    *out = c;
    return 0;
}

static void add_source(const struct model_file *f, int i, struct vocab_source *out)
{
    out->file[i].dev = f->dev;
    out->file[i].ino = f->ino;
    out->file[i].size = f->size;
    out->file[i].mtime_ns = f->mtime_ns;
    out->file[i].ctime_ns = f->ctime_ns;
}

void vocab_source(const struct catalogue *c, struct vocab_source *out)
{
    static const char *const names[] = { "tokenizer.json", "tokenizer_config.json",
                                         "chat_template.jinja", "chat_template.json" };

    memset(out, 0, sizeof *out);
    if (c->kind == CATALOGUE_GGUF && c->n_file > 0 && c->files[0].fd >= 0)
        add_source(&c->files[0], 0, out);
    for (int i = 0; c->kind == CATALOGUE_SNAPSHOT && i < 4; i++) {
        struct err none = ERR_INIT;
        struct model_file f;

        if (model_file_open(&f, c->dir_fd, names[i], names[i], &none) != 0)
            continue;
        add_source(&f, i, out);
        model_file_close(&f);
    }
}

bool vocab_source_is(const struct catalogue *c, const struct vocab_source *from)
{
    struct vocab_source now;

    vocab_source(c, &now);
    if (c->kind == CATALOGUE_GGUF && now.file[0].ino != 0) {
        struct model_file f;

        if (!model_file_now(&c->files[0], &f))
            return false;
        add_source(&f, 0, &now);
    }
    return memcmp(&now, from, sizeof now) == 0;
}

int vocab_info(const struct catalogue *c, struct vocab_info *info, struct err *e)
{
    static const struct vocab_sink nothing = { 0 };
    int rc = c->kind == CATALOGUE_GGUF ? vocab_gguf_info(c, info, e)
                                       : vocab_json_read(c, info, &nothing, e);

    return rc == 0 ? 0 : err_at(e, c->path, ERR_NO_OFFSET, NULL);
}

int vocab_read(const struct catalogue *c, struct vocab_info *info,
               const struct vocab_sink *sink, struct err *e)
{
    int rc = c->kind == CATALOGUE_GGUF ? vocab_gguf_read(c, info, sink, e)
                                       : vocab_json_read(c, info, sink, e);

    return rc == 0 ? 0 : err_at(e, c->path, ERR_NO_OFFSET, NULL);
}

int vocab_chat_template(const struct catalogue *c, char **out, size_t *len, struct err *e)
{
    int rc;

    *out = NULL;
    *len = 0;
    rc = c->kind == CATALOGUE_GGUF ? gguf_long_string(c->gguf, "tokenizer.chat_template",
                                                      VOCAB_MAX_TEMPLATE, out, len, e)
                                   : vocab_config_template(c, out, len, e);
    return rc >= 0 ? 0 : err_at(e, c->path, ERR_NO_OFFSET, NULL);
}
