#include "config.h"

#include "engine/format/catalogue.h"

#include <sys/stat.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/format/arch.h"
#include "engine/format/catalogue_build.h"
#include "engine/format/file_open.h"
#include "engine/format/gguf_lookup.h"
#include "engine/format/hparams_fill.h"
#include "engine/format/ngram_numbers.h"
#include "engine/format/snapshot.h"
#include "engine/format/vocab_rules.h"

int64_t catalogue_add_file(struct catalogue *c, struct model_file *f, struct err *e)
{
    struct catalogue_index *x = c->index;

    if (c->n_file == x->room_file) {
        uint32_t room = x->room_file != 0 ? x->room_file * 2 : 4;
        struct model_file *files = realloc(c->files, room * sizeof *files);

        if (files == NULL)
            return err_memory(e, "%u files", room);
        c->files = files;
        x->room_file = room;
    }
    c->files[c->n_file] = *f;
    *f = (struct model_file){ .fd = -1 };
    return c->n_file++;
}

int catalogue_add_tensor(struct catalogue *c, const struct tensor_info *t, struct err *e)
{
    struct catalogue_index *x = c->index;
    char *name;
    int entered;

    if (c->n_tensor == x->room_tensor) {
        uint32_t room = x->room_tensor != 0 ? x->room_tensor * 2 : 512;
        struct tensor_info *tensors;

        if (c->n_tensor >= GGUF_MAX_TENSOR)
            return err_set(e, ERR_FORMAT, "more than %d tensors", GGUF_MAX_TENSOR);
        if (header_room_take(x->room, (room - x->room_tensor) * sizeof *tensors, e) != 0)
            return -1;
        tensors = realloc(c->tensors, room * sizeof *tensors);
        if (tensors == NULL) {
            header_room_give(x->room, (room - x->room_tensor) * sizeof *tensors);
            return err_memory(e, "%u tensors", room);
        }
        c->tensors = tensors;
        x->room_tensor = room;
    }
    name = name_pool_copy(&x->pool, t->name, strlen(t->name), e);
    if (name == NULL)
        return -1;
    entered = name_index_add(&x->names, name, c->n_tensor, e);
    if (entered > 0)
        err_set(e, ERR_FORMAT, "two tensors have the same name");
    if (entered != 0)
        return -1;
    c->tensors[c->n_tensor] = *t;
    c->tensors[c->n_tensor].name = name;
    c->n_tensor++;
    return 0;
}

static int by_place(const void *a, const void *b)
{
    const struct tensor_info *x = *(const struct tensor_info *const *)a;
    const struct tensor_info *y = *(const struct tensor_info *const *)b;

    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* No two tensors of a file share a byte. */
static int check_disjoint(const struct catalogue *c, struct err *e)
{
    const struct tensor_info **order, *wide = NULL;
    int rc = 0;

    if (c->n_tensor == 0)
        return 0;
    order = malloc(c->n_tensor * sizeof *order);
    if (order == NULL)
        return err_memory(e, "%u tensors", c->n_tensor);
    for (uint32_t i = 0; i < c->n_tensor; i++)
        order[i] = &c->tensors[i];
    qsort(order, c->n_tensor, sizeof *order, by_place);
    for (uint32_t i = 0; i < c->n_tensor && rc == 0; i++) {
        const struct tensor_info *t = order[i];

        if (wide != NULL && wide->file == t->file && t->bytes > 0 &&
            t->offset < wide->offset + wide->bytes) {
            const struct tensor_info *late = t > wide ? t : wide, *other = t > wide ? wide : t;
            char field[96];

            catalogue_spell(c, other->name, field, sizeof field);
            err_set(e, ERR_FORMAT, "shares bytes with %s", field);
            catalogue_spell(c, late->name, field, sizeof field);
            rc = err_at(e, c->files[t->file].path, late->offset, field);
        }
        if (wide == NULL || wide->file != t->file ||
            t->offset + t->bytes > wide->offset + wide->bytes)
            wide = t;
    }
    free(order);
    return rc;
}

void catalogue_close(struct catalogue *c)
{
    if (c == NULL)
        return;
    for (uint32_t i = 0; i < c->n_file; i++)
        model_file_close(&c->files[i]);
    if (c->dir_fd >= 0)
        close(c->dir_fd);
    if (c->trunk == NULL || c->gguf != c->trunk->gguf)
        gguf_free(c->gguf);
    free(c->head_arch);
    free(c->token_order);
    if (c->index != NULL) {
        header_room_give(c->index->room, c->index->room_tensor * sizeof *c->tensors);
        name_index_free(&c->index->names);
        name_pool_free(&c->index->pool);
        free(c->index->folder);
        header_room_give(c->index->room, c->index->n_piece * sizeof *c->index->pieces);
        free(c->index->pieces);
        header_room_give(c->index->room, c->index->n_scales * sizeof *c->index->scales);
        free(c->index->scales);
    }
    free(c->index);
    free(c->files);
    free(c->tensors);
    free(c->path);
    free(c);
}

/* Adds the files and tensors of any kind of model file. */
static int open_container(struct catalogue *c, bool bare, struct err *e)
{
    struct stat st;

    if (!snapshot_is(c->path))
        return open_gguf_set(c, e) == 0 ? check_disjoint(c, e) : -1;
    /* A file of a snapshot stands for its folder, unless it is only listed. */
    if (bare && stat(c->path, &st) == 0 && !S_ISDIR(st.st_mode))
        return open_safetensors(c, e);
    return open_snapshot(c, bare, e);
}

int catalogue_open_files(struct catalogue *c, struct err *e)
{
    return open_container(c, false, e);
}

int catalogue_finish(struct catalogue *c, struct err *e)
{
    const struct tensor_info *embd, *ngrams;

    catalogue_mark_text(c);
    ngrams =
        c->hparams.ngram.n_token > 0 ? catalogue_find(c, "per_layer_token_embd.weight") : NULL;
    if (ngrams != NULL && tensor_rows(ngrams) <= UINT32_MAX)
        c->hparams.ngram.n_table = (uint32_t)tensor_rows(ngrams);
    if (c->kind == CATALOGUE_SNAPSHOT && ngram_numbers_read(c, e) != 0)
        return -1;
    embd = catalogue_find(c, "token_embd.weight");
    c->hparams.n_vocab =
        embd != NULL && tensor_rows(embd) <= MAX_N_VOCAB ? (uint32_t)tensor_rows(embd) : 0;
    if (catalogue_check_tensors(c, e) != 0 ||
        (c->kind == CATALOGUE_GGUF && c->trunk == NULL && vocab_gguf_check(c, e) != 0))
        return -1;
    return hparams_finish(c, e);
}

/* Reads the hyper-parameters and checks that the tensors form a model. */
static int read_model(struct catalogue *c, struct err *e)
{
    bool is_gguf = c->kind == CATALOGUE_GGUF;

    if ((is_gguf ? hparams_from_gguf(c, e) : hparams_from_config(c, e)) != 0)
        return -1;
    return catalogue_join_tensors(c, e) == 0 ? catalogue_finish(c, e) : -1;
}

struct catalogue *catalogue_new(const char *path, struct header_room *room, struct err *e)
{
    struct catalogue *c = calloc(1, sizeof *c);

    if (c == NULL) {
        err_memory(e, "a catalogue");
        return NULL;
    }
    c->dir_fd = -1;
    c->path = strdup(path);
    c->index = calloc(1, sizeof *c->index);
    if (c->path == NULL || c->index == NULL) {
        catalogue_close(c);
        err_memory(e, "a catalogue");
        return NULL;
    }
    c->index->room = c->index->names.room = c->index->pool.room = room;
    return c;
}

static int open_any(struct catalogue **out, const char *path, bool bare,
                    struct header_room *room, struct err *e)
{
    struct catalogue *c = catalogue_new(path, room, e);

    *out = NULL;
    if (c != NULL && open_container(c, bare, e) == 0 && (bare || read_model(c, e) == 0)) {
        *out = c;
        return 0;
    }
    if (c != NULL)
        catalogue_note_form(c, e);
    catalogue_close(c);
    return err_at(e, path, ERR_NO_OFFSET, NULL);
}

void catalogue_note_form(const struct catalogue *c, struct err *e)
{
    if (c->gguf != NULL && (e->code == ERR_FORMAT || e->code == ERR_UNSUPPORTED))
        arch_note_form(gguf_prefix(c->gguf), e);
}

int catalogue_open(struct catalogue **out, const char *path, struct err *e)
{
    return open_any(out, path, false, NULL, e);
}

int catalogue_open_within(struct catalogue **out, const char *path, struct header_room *room,
                          struct err *e)
{
    return open_any(out, path, false, room, e);
}

int catalogue_open_bare(struct catalogue **out, const char *path, struct err *e)
{
    return open_any(out, path, true, NULL, e);
}

const struct tensor_info *catalogue_find(const struct catalogue *c, const char *name)
{
    int64_t i = name_index_find(&c->index->names, name);

    return i >= 0 ? &c->tensors[i] : NULL;
}

uint64_t tensor_rows(const struct tensor_info *t)
{
    return t->ne[1] * t->ne[2] * t->ne[3];
}

uint64_t tensor_n_scales(const struct tensor_info *t)
{
    const struct tensor_scales *s = t->scales;

    return s != NULL ? (uint64_t)s->n_piece * s->n_row * s->n_col : 0;
}

uint64_t tensor_scales_bytes(const struct tensor_info *t)
{
    return t->scales != NULL ? tensor_row_bytes(t->scales->type, tensor_n_scales(t)) : 0;
}

int catalogue_check_files(const struct catalogue *c, struct err *e)
{
    for (uint32_t i = 0; i < c->n_file; i++) {
        const struct model_file *f = &c->files[i];
        const char *change = NULL;
        struct stat st;
        int64_t mtime;

        if (fstat(f->fd, &st) != 0) {
            err_sys(e, "cannot check the file");
            return err_at(e, f->path, ERR_NO_OFFSET, NULL);
        }
        mtime = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
        if ((uint64_t)st.st_size != f->size)
            change = "its size is different";
        else if (mtime != f->mtime_ns)
            change = "its modification time is different";
        /* A path that no longer exists does no harm; the file is still open. */
        else if (stat(f->path, &st) == 0 &&
                 ((uint64_t)st.st_dev != f->dev || (uint64_t)st.st_ino != f->ino))
            change = "its path now names another file";
        if (change == NULL)
            continue;
        err_set(e, ERR_IO, "the model file changed while it was in use: %s", change);
        return err_at(e, f->path, ERR_NO_OFFSET, NULL);
    }
    return 0;
}

bool catalogue_has_file(const struct catalogue *c, uint64_t dev, uint64_t ino)
{
    struct dirent *entry;
    struct stat st;
    bool found = false;
    DIR *dir;
    int fd;

    for (uint32_t i = 0; i < c->n_file; i++)
        if (c->files[i].dev == dev && c->files[i].ino == ino)
            return true;
    if (c->dir_fd < 0)
        return false;
    fd = openat(c->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    while (!found && (entry = readdir(dir)) != NULL)
        found = fstatat(c->dir_fd, entry->d_name, &st, 0) == 0 && (uint64_t)st.st_dev == dev &&
                (uint64_t)st.st_ino == ino;
    closedir(dir);
    return found;
}

int catalogue_go_on(const struct catalogue *c, struct err *e)
{
    return cancel_check(c->cancel, e);
}
