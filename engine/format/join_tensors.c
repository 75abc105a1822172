/*
 * Joins tensors that files keep in pieces.
 *
 * Snapshots, and the first GGUF files of Mixtral, have one tensor per expert; a model has one
 * for all experts of a layer.  Snapshots have the table of n-grams in pieces of as many rows.
 * Snapshots of gpt-oss keep the values of all MXFP4 blocks in one tensor and the scales in
 * another.  The catalogue gets the joined tensor instead of its pieces, and remembers where they
 * are.  join_scales.c has the scales of other weights.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/format/join_tensors.h"
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

int join_fail(const struct joining *j, const struct tensor_info *t)
{
    return err_at(j->e, j->c->files[t->file].path, t->offset, t->name);
}

static bool has_same_scales(const struct tensor_scales *a, const struct tensor_scales *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return a->type == b->type && a->is_divisor == b->is_divisor && a->n_row == b->n_row &&
           a->n_col == b->n_col && a->rows == b->rows && a->cols == b->cols;
}

static bool is_alike(const struct tensor_info *a, const struct tensor_info *b)
{
    return a->type == b->type && a->n_dims == 2 && b->n_dims == 2 && a->ne[0] == b->ne[0] &&
           a->ne[1] == b->ne[1] && a->layout == b->layout &&
           has_same_scales(a->scales, b->scales);
}

/* Where the scales of the pieces are: those of LAYOUT_SPLIT, and those that stay in memory. */
static void join_their_scales(struct joining *j, struct tensor_info *whole, int kind,
                              uint32_t layer)
{
    const uint32_t n = whole->n_piece;
    struct tensor_piece *groups = j->pieces + j->n_piece + n;
    struct tensor_piece *pieces = groups + (whole->layout == LAYOUT_SPLIT ? n : 0);

    for (uint32_t i = 0; i < n; i++) {
        const struct tensor_info *x;
        char name[96];

        tensor_piece_name(kind, layer, i, name, sizeof name);
        x = catalogue_find(j->c, name);
        if (whole->layout == LAYOUT_SPLIT)
            groups[i] = x->pieces[1];
        if (whole->scales != NULL)
            pieces[i] = x->scales->pieces[0];
    }
    if (whole->layout == LAYOUT_SPLIT)
        whole->n_piece += n;
    j->n_piece += whole->n_piece;
    if (whole->scales == NULL)
        return;
    j->scales[j->n_scales] = *whole->scales;
    j->scales[j->n_scales].n_piece = n;
    j->scales[j->n_scales].pieces = pieces;
    whole->scales = &j->scales[j->n_scales++];
    j->n_piece += n;
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
        return join_fail(j, t);
    }
    for (whole.n_piece = 0;; whole.n_piece++) {
        const struct tensor_info *x;

        tensor_piece_name(kind, layer, whole.n_piece, name, sizeof name);
        x = catalogue_find(j->c, name);
        if (x == NULL)
            break;
        if (!is_alike(x, t)) {
            err_set(j->e, ERR_UNSUPPORTED,
                    kind == PIECE_TABLE
                        ? "its type or shape is not that of the first piece of the table"
                        : "its type or shape is not that of expert 0 of the layer");
            return join_fail(j, x);
        }
        pieces[whole.n_piece] = (struct tensor_piece){ x->file, x->offset };
        j->is_piece[x - j->c->tensors] = true;
    }
    if (whole.layout == LAYOUT_ROWS)
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
    join_their_scales(j, &whole, kind, layer);
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
        return join_fail(j, t);
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
    if (join_scales(j) != 0)
        return -1;
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
            return join_fail(j, &c->tensors[i]);
        n++;
    }
    c->n_tensor = n;
    return 0;
}

/* Count the pieces that tensors may become, and in *n_scales the scales. */
static uint64_t count_pieces(const struct catalogue *c, uint32_t *n_scales)
{
    uint32_t layer, piece;
    uint64_t n = 0;

    *n_scales = 0;
    for (uint32_t i = 0; i < c->n_tensor; i++) {
        const char *name = c->tensors[i].name;

        if (join_is_scales(c, &c->tensors[i], &piece)) {
            n += piece;
            *n_scales += 2; /* of a matrix, and of the experts that it belongs to */
        }
        if (parse_piece(name, &layer, &piece) >= 0)
            n += 3; /* with those of its scales */
        n += is_mxfp4_piece(name, MXFP4_VALUES) || is_mxfp4_piece(name, MXFP4_SCALES);
    }
    return n;
}

int catalogue_join_tensors(struct catalogue *c, struct err *e)
{
    struct joining j = { .c = c, .e = e };
    uint32_t n_scales;
    uint64_t n = count_pieces(c, &n_scales);
    int rc;

    if (n == 0)
        return 0;
    if (n > UINT32_MAX)
        return err_set(e, ERR_FORMAT, "more than %u pieces of tensors", UINT32_MAX);
    if (header_room_take(c->index->room, n * sizeof *j.pieces, e) != 0)
        return -1;
    c->index->n_piece = (uint32_t)n;
    if (header_room_take(c->index->room, n_scales * sizeof *j.scales, e) != 0)
        return -1;
    c->index->n_scales = n_scales;
    c->index->pieces = j.pieces = calloc(n, sizeof *j.pieces);
    c->index->scales = j.scales = calloc(n_scales > 0 ? n_scales : 1, sizeof *j.scales);
    j.is_piece = calloc(c->n_tensor, sizeof *j.is_piece);
    if (j.pieces == NULL || j.scales == NULL || j.is_piece == NULL)
        rc = err_memory(e, "the places of %u tensors", (uint32_t)n);
    else
        rc = join_all(&j);
    if (rc == 0)
        rc = drop_pieces(&j);
    free(j.is_piece);
    return rc;
}
