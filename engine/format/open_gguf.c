/*
 * Reads a GGUF file, or a set of split ones, into a catalogue.  The first file of a set has all
 * metadata, and users name this one.  The others must state that they belong to it.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/format/arch.h"
#include "engine/format/catalogue_build.h"
#include "engine/format/file_open.h"
#include "engine/format/foreign_files.h"
#include "engine/format/gguf.h"
#include "engine/format/gguf_lookup.h"
#include "engine/format/split_name.h"
#include "engine/format/tensor_table.h"

/* Returns the kind that files of this name have, or NULL. */
static const struct foreign_kind *kind_of_name(const char *path)
{
    const struct foreign_kind *kind = NULL;

    for (uint32_t i = 0; (kind = foreign_file_kind(i)) != NULL; i++)
        if (foreign_file_is(kind, path))
            break;
    return kind;
}

/* Is it a damaged file of a split set?  Such names are also given to pieces that were cut by bytes,
 * but only the first of these begins as a GGUF file, and its keys do not mention a set. */
static bool is_of_set(const struct model_file *f, struct header_room *room)
{
    struct err ignored = ERR_INIT;
    struct split_name name;
    struct gguf *g;
    bool is;

    if (!split_name_parse(f->path, &name))
        return false;
    if (name.number != 1 || gguf_read_keys(&g, f->fd, f->size, room, &ignored) != 0)
        return true;
    is = gguf_find(g, "split.count") != NULL;
    gguf_free(g);
    return is;
}

/* Reads a header.  If the file is not GGUF, or ends too early, its name and its first bytes may
 * show what it is. */
static int open_header(struct gguf **g, struct model_file *f, struct header_room *room,
                       struct err *e)
{
    const struct foreign_kind *kind;
    const char *says;
    char piece[240];

    if (file_check_ended(f, e) != 0)
        return -1;
    if (gguf_read(g, f->fd, f->size, room, e) == 0)
        return 0;
    says = strcmp(e->field, "magic") == 0 ? file_says(f) : NULL;
    if (says != NULL && strncmp(says, "a GGUF", 6) == 0)
        says = NULL;
    if (e->code == ERR_FORMAT && says == NULL &&
        foreign_piece_is(f->path, piece, sizeof piece) &&
        (strcmp(e->field, "magic") == 0 || !is_of_set(f, room))) {
        *e = (struct err)ERR_INIT;
        err_set(e, ERR_FORMAT, "%s", piece);
    } else if (says != NULL) {
        *e = (struct err)ERR_INIT;
        err_set(e, ERR_FORMAT, "not a GGUF file but %s", says);
    } else if (strcmp(e->field, "magic") == 0 && (kind = kind_of_name(f->path)) != NULL) {
        *e = (struct err)ERR_INIT;
        err_set(e, ERR_FORMAT, "this is not a GGUF file; its name is that of %s: %s", kind->is,
                kind->hint);
    } else if (e->code == ERR_FORMAT && strcmp(e->field, "magic") == 0) {
        *e = (struct err)ERR_INIT; /* the place in the file helps nobody */
        err_set(e, ERR_FORMAT, "this is not a GGUF file");
    }
    return err_at(e, f->path, ERR_NO_OFFSET, NULL);
}

static int add_tensors(struct catalogue *c, const struct gguf *g, uint32_t file, struct err *e)
{
    const struct arch *arch = arch_by_name(gguf_prefix(c->gguf));

    for (uint32_t i = 0; i < g->n_tensor; i++) {
        const struct gguf_tensor *t = &g->tensors[i];
        char usual[96];
        struct tensor_info info = { .name =
                                        tensor_usual_name(arch, t->name, usual, sizeof usual),
                                    .type = t->type,
                                    .n_dims = t->n_dims,
                                    .file = file,
                                    .offset = t->offset,
                                    .bytes = t->bytes,
                                    .is_text = true };

        memcpy(info.ne, t->ne, sizeof info.ne);
        if (catalogue_add_tensor(c, &info, e) != 0)
            return err_at(e, c->files[file].path, t->offset, t->name);
    }
    return 0;
}

/* Checks that one of the split.* keys exists and has the expected value. */
static int want_number(const struct gguf *g, const char *path, const char *key, int64_t want,
                       const char *why, struct err *e)
{
    int64_t v = -1;
    int found = gguf_int(g, key, &v, e);

    if (found < 0)
        return err_at(e, path, ERR_NO_OFFSET, key);
    if (found == 1 && v == want)
        return 0;
    if (found == 0)
        err_set(e, ERR_FORMAT, "the key is missing, but the file belongs to a split set");
    else
        err_set(e, ERR_FORMAT, "is %lld, but %s says %lld", (long long)v, why, (long long)want);
    return err_at(e, path, ERR_NO_OFFSET, key);
}

/* Opens the other files of the set. */
static int open_rest(struct catalogue *c, const struct split_name *s, struct err *e)
{
    size_t room = strlen(c->path) + 32;
    char *path = malloc(room);

    if (path == NULL)
        return err_memory(e, "a file's name");
    for (uint32_t i = 2; i <= s->count; i++) {
        struct model_file f;
        struct gguf *g = NULL;
        int64_t file = -1;
        int rc;

        split_name_write(path, room, c->path, s, i);
        rc = model_file_open(&f, AT_FDCWD, path, path, e);
        if (rc != 0 && e->sys == ENOENT) {
            err_set(e, ERR_FORMAT,
                    "file %u of %u is missing; fetch it into the folder of the others", i,
                    s->count);
            err_at(e, path, ERR_NO_OFFSET, NULL);
        }
        if (rc == 0)
            rc = open_header(&g, &f, c->index->room, e);
        if (rc == 0)
            rc = want_number(g, path, "split.no", i - 1, "its name", e);
        if (rc == 0)
            rc = want_number(g, path, "split.count", s->count, "its name", e);
        if (rc == 0)
            file = catalogue_add_file(c, &f, e);
        if (file >= 0)
            rc = add_tensors(c, g, (uint32_t)file, e);
        gguf_free(g);
        if (file < 0)
            model_file_close(&f);
        if (rc != 0 || file < 0) {
            free(path);
            return -1;
        }
    }
    free(path);
    return 0;
}

static int open_split_set(struct catalogue *c, const struct gguf *g, struct err *e)
{
    struct split_name s = { 0 };
    int64_t number = 0, count = 1, total;
    bool named = split_name_parse(c->path, &s);

    if (gguf_int(g, "split.count", &count, e) < 0 || gguf_int(g, "split.no", &number, e) < 0)
        return err_at(e, c->path, ERR_NO_OFFSET, NULL);
    if (count == 1 && number == 0 && (!named || s.count == 1))
        return 0;
    if (number != 0) {
        err_set(e, ERR_FORMAT,
                "this is file %lld of a split set; open the first one, whose name ends in "
                "-00001-of-%05lld.gguf",
                (long long)number + 1, (long long)count);
        return err_at(e, c->path, ERR_NO_OFFSET, "split.no");
    }
    if (count < 1 || count > 99999) {
        err_set(e, ERR_FORMAT, "is %lld; no split set has that many files", (long long)count);
        return err_at(e, c->path, ERR_NO_OFFSET, "split.count");
    }
    if (!named || s.number != 1 || s.count != count) {
        err_set(e, ERR_FORMAT,
                "is %lld, but the file's name does not end in -00001-of-%05lld.gguf; give the "
                "files of the set their names back",
                (long long)count, (long long)count);
        return err_at(e, c->path, ERR_NO_OFFSET, "split.count");
    }
    if (open_rest(c, &s, e) != 0)
        return -1;
    total = (int64_t)c->n_tensor;
    return want_number(g, c->path, "split.tensors.count", total, "the sum over the files", e);
}

int open_gguf_set(struct catalogue *c, struct err *e)
{
    struct model_file f;
    int64_t file;

    c->kind = CATALOGUE_GGUF;
    if (model_file_open(&f, AT_FDCWD, c->path, c->path, e) != 0)
        return -1;
    if (open_header(&c->gguf, &f, c->index->room, e) != 0 ||
        (file = catalogue_add_file(c, &f, e)) < 0) {
        model_file_close(&f);
        return -1;
    }
    if (add_tensors(c, c->gguf, (uint32_t)file, e) != 0)
        return -1;
    gguf_drop_tensors(c->gguf);
    return open_split_set(c, c->gguf, e);
}
