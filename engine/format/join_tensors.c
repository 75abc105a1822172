/*
 * Joins tensors that files keep in pieces.
 *
 * Snapshots, and the first GGUF files of Mixtral, have one tensor per expert; a model has one
 * for all experts of a layer.  Snapshots have the table of n-grams in pieces of as many rows.
 * Snapshots with MXFP4 weights keep the values of all blocks in
 * one tensor and the scales in another.  The catalogue gets the joined tensor instead of its
 * pieces, and remembers where they are.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/format/catalogue_build.h"
#include "engine/format/tensor_table.h"

#define MAX_PIECE 65535

static const enum tensor_id kinds[] = { T_EXPERTS_GATE, T_EXPERTS_UP, T_EXPERTS_DOWN };
static const char *const words[] = { "ffn_gate.", "ffn_up.", "ffn_down." };
#define N_KIND (sizeof kinds / sizeof kinds[0])

static const char table[] = "per_layer_token_embd.";

void tensor_piece_name(int kind, uint32_t layer, uint32_t expert, char *buf, size_t n)
{
    if (kind == PIECE_TABLE)
        snprintf(buf, n, "%s%u.weight", table, expert);
    else
        snprintf(buf, n, "blk.%u.%s%u.weight", layer, words[kind], expert);
}

/* Reads the number of a piece and ".weight". */
static bool parse_number(const char *text, uint32_t *out)
{
    unsigned long number;
    char *end;

    if (text[0] < '0' || text[0] > '9')
        return false;
    number = strtoul(text, &end, 10);
    *out = (uint32_t)number;
    return strcmp(end, ".weight") == 0 && number <= MAX_PIECE;
}

/* Parses "blk.7.ffn_gate.12.weight" and pieces of the table.  Returns the kind, or -1. */
static int parse_piece(const char *name, uint32_t *layer, uint32_t *piece)
{
    const char *rest = layer_suffix(name, 0, layer);

    if (strncmp(name, table, strlen(table)) == 0)
        return parse_number(name + strlen(table), piece) ? PIECE_TABLE : -1;
    for (int kind = 0; rest != NULL && kind < (int)N_KIND; kind++) {
        size_t n = strlen(words[kind]);

        if (strncmp(rest, words[kind], n) == 0 && rest[n] >= '0' && rest[n] <= '9')
            return parse_number(rest + n, piece) ? kind : -1;
    }
    return -1;
}

static bool is_mxfp4_piece(const char *name, const char *tail)
{
    size_t n = strlen(name), m = strlen(tail);

    return layer_suffix(name, 0, NULL) != NULL && n > m && strcmp(name + n - m, tail) == 0;
}

struct joining {
    struct catalogue *c;
    struct tensor_piece *pieces; /* of all joined tensors */
    uint32_t n_piece;
    bool *is_piece; /* [n_tensor] becomes part of another one */
    struct err *e;
};

static int fail(const struct joining *j, const struct tensor_info *t)
{
    return err_at(j->e, j->c->files[t->file].path, t->offset, t->name);
}

/* Join the experts of one layer and kind, or the table.  t is piece 0, which becomes the joined
 * tensor. */
static int join_pieces(struct joining *j, struct tensor_info *t, int kind, uint32_t layer)
{
    struct tensor_piece *pieces = j->pieces + j->n_piece;
    struct tensor_info whole = *t;
    char name[96];

    if (t->n_dims != 2) {
        err_set(j->e, ERR_FORMAT, "a piece has %u dimensions, expected 2", t->n_dims);
        return fail(j, t);
    }
    for (whole.n_piece = 0;; whole.n_piece++) {
        const struct tensor_info *x;

        tensor_piece_name(kind, layer, whole.n_piece, name, sizeof name);
        x = catalogue_find(j->c, name);
        if (x == NULL)
            break;
        if (x->type != t->type || x->n_dims != 2 || x->ne[0] != t->ne[0] ||
            x->ne[1] != t->ne[1]) {
            err_set(j->e, ERR_UNSUPPORTED,
                    kind == PIECE_TABLE
                        ? "its type or shape is not that of the first piece of the table"
                        : "its type or shape is not that of expert 0 of the layer");
            return fail(j, x);
        }
        pieces[whole.n_piece] = (struct tensor_piece){ x->file, x->offset };
        j->is_piece[x - j->c->tensors] = true;
    }
    whole.layout = LAYOUT_PIECES;
    whole.pieces = pieces;
    whole.bytes = t->bytes * whole.n_piece;
    if (kind == PIECE_TABLE) {
        whole.ne[1] *= whole.n_piece;
    } else {
        whole.n_dims = 3;
        whole.ne[2] = whole.n_piece;
    }
    tensor_name(j->c->hparams.arch, kind == PIECE_TABLE ? T_NGRAM_EMBD : kinds[kind], layer,
                name, sizeof name);
    whole.name = name_pool_copy(&j->c->index->pool, name, strlen(name), j->e);
    if (whole.name == NULL)
        return -1;
    j->is_piece[t - j->c->tensors] = false;
    j->n_piece += whole.n_piece;
    *t = whole;
    return 0;
}

/* Join the values of MXFP4 blocks with their scales.  t has the values: [experts][rows][blocks
 * in a row][16 bytes]. */
static int join_mxfp4(struct joining *j, struct tensor_info *t)
{
    struct tensor_piece *pieces = j->pieces + j->n_piece;
    const struct tensor_info *scales;
    size_t n = strlen(t->name) - strlen(MXFP4_VALUES);
    char name[96];

    snprintf(name, sizeof name, "%.*s" MXFP4_SCALES, (int)n, t->name);
    scales = catalogue_find(j->c, name);
    if (scales == NULL || t->type != TYPE_I8 || scales->type != TYPE_I8 || t->ne[0] != 16 ||
        scales->ne[0] != t->ne[1] || scales->ne[1] != t->ne[2] || scales->ne[2] != t->ne[3]) {
        err_set(j->e, ERR_FORMAT,
                scales == NULL ? "the scales of these blocks are missing"
                               : "its shape does not fit that of the scales of its blocks");
        return fail(j, t);
    }
    pieces[0] = (struct tensor_piece){ t->file, t->offset };
    pieces[1] = (struct tensor_piece){ scales->file, scales->offset };
    j->is_piece[scales - j->c->tensors] = true;
    j->n_piece += 2;
    snprintf(name, sizeof name, "%.*s.weight", (int)n, t->name);
    t->name = name_pool_copy(&j->c->index->pool, name, strlen(name), j->e);
    t->type = TYPE_MXFP4;
    t->layout = LAYOUT_SPLIT;
    t->pieces = pieces;
    t->n_piece = 2;
    t->n_dims = 3;
    t->ne[0] = 32 * t->ne[1];
    t->ne[1] = t->ne[2];
    t->ne[2] = t->ne[3];
    t->ne[3] = 1;
    t->bytes += scales->bytes;
    return t->name != NULL ? 0 : -1;
}

static int join_all(struct joining *j)
{
    for (uint32_t i = 0; i < j->c->n_tensor; i++) {
        struct tensor_info *t = &j->c->tensors[i];
        uint32_t layer, piece;
        int kind = parse_piece(t->name, &layer, &piece);

        if (kind >= 0 && piece == 0 && join_pieces(j, t, kind, layer) != 0)
            return -1;
        if (is_mxfp4_piece(t->name, MXFP4_VALUES) && join_mxfp4(j, t) != 0)
            return -1;
    }
    return 0;
}

/* Remove the pieces from the table, and enter the rest under their names again. */
static int drop_pieces(struct joining *j)
{
    struct catalogue *c = j->c;
    struct name_index *names = &c->index->names;
    uint32_t n = 0;

    name_index_free(names);
    for (uint32_t i = 0; i < c->n_tensor; i++) {
        int entered;

        if (j->is_piece[i])
            continue;
        c->tensors[n] = c->tensors[i];
        entered = name_index_add(names, c->tensors[n].name, n, j->e);
        if (entered > 0)
            err_set(j->e, ERR_FORMAT, "the tensor exists whole and in pieces");
        if (entered != 0)
            return fail(j, &c->tensors[i]);
        n++;
    }
    c->n_tensor = n;
    return 0;
}

static uint32_t count_pieces(const struct catalogue *c)
{
    uint32_t layer, piece, n = 0;

    for (uint32_t i = 0; i < c->n_tensor; i++)
        n += parse_piece(c->tensors[i].name, &layer, &piece) >= 0 ||
             is_mxfp4_piece(c->tensors[i].name, MXFP4_VALUES) ||
             is_mxfp4_piece(c->tensors[i].name, MXFP4_SCALES);
    return n;
}

int catalogue_join_tensors(struct catalogue *c, struct err *e)
{
    struct joining j = { .c = c, .e = e };
    uint32_t n = count_pieces(c);
    int rc;

    if (n == 0)
        return 0;
    if (header_room_take(c->index->room, n * sizeof *j.pieces, e) != 0)
        return -1;
    c->index->n_piece = n;
    c->index->pieces = j.pieces = calloc(n, sizeof *j.pieces);
    j.is_piece = calloc(c->n_tensor, sizeof *j.is_piece);
    if (j.pieces == NULL || j.is_piece == NULL)
        rc = err_memory(e, "the places of %u tensors", n);
    else
        rc = join_all(&j);
    if (rc == 0)
        rc = drop_pieces(&j);
    free(j.is_piece);
    return rc;
}
