/*
 * Joins weights with the scales that files keep beside them.
 *
 *     F8_E4M3          a scale for the matrix, for each row, or for each 128 x 128 weights
 *     NVFP4, MXFP4     of snapshots: two values in a byte, and a scale for each 16 or 32 of a row
 *     NVFP4            of any file: a factor or a divisor for the matrix as well
 *
 * The first and the last are floats that stay in memory.  A scale for each few values is read
 * with the weights: the two tensors become one of LAYOUT_SPLIT.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "engine/format/join_tensors.h"
#include "engine/format/tensor_table.h"

#define BLOCK      128
#define MAX_MATRIX 65535 /* with a factor each */

static const char *const tails[] = { SCALES_TAIL, SCALE_TAIL, DIVISOR_TAIL };
#define N_TAIL (sizeof tails / sizeof tails[0])

static const char weight[] = ".weight";

/* Returns the length of a name before this end, or 0. */
static size_t before(const char *name, const char *tail)
{
    size_t n = strlen(name), m = strlen(tail);

    return n > m && strcmp(name + n - m, tail) == 0 ? n - m : 0;
}

/* Some models read a factor of such a name as a tensor of its own. */
static bool is_read_itself(const struct catalogue *c, const char *name)
{
    uint32_t layer;
    enum tensor_id id = tensor_id_of(c->hparams.arch, name, c->hparams.n_layer, &layer);

    return id != T_COUNT && tensor_role(c, id, layer) != ROLE_NONE;
}

bool join_is_scales(const struct catalogue *c, const struct tensor_info *t, uint32_t *n_piece)
{
    size_t n = 0;

    for (size_t i = 0; n == 0 && i < N_TAIL; i++)
        n = before(t->name, tails[i]);
    if (n == 0 || is_read_itself(c, t->name))
        return false;
    /* Weights and scales of a matrix, or one factor of each expert. */
    *n_piece = c->kind == CATALOGUE_GGUF && tensor_rows(t) == 1 && t->ne[0] <= MAX_MATRIX
                   ? (uint32_t)t->ne[0]
                   : 3;
    return true;
}

/* Returns the tensor with the first n bytes of the name and this end, or NULL. */
static const struct tensor_info *beside(const struct joining *j, const char *name, size_t n,
                                        const char *tail)
{
    char full[160];
    const struct tensor_info *t;
    uint32_t n_piece;

    snprintf(full, sizeof full, "%.*s%s", (int)n, name, tail);
    t = catalogue_find(j->c, full);
    return t != NULL && join_is_scales(j->c, t, &n_piece) ? t : NULL;
}

static bool has_type_of_scales(const struct tensor_info *s)
{
    return s->type == TYPE_F32 || s->type == TYPE_F16 || s->type == TYPE_BF16 ||
           s->type == TYPE_F8_E8M0;
}

/* Find out what each scale is for.  Returns false if the shape is none of the known ones. */
static bool measure(const struct tensor_info *t, const struct tensor_info *s,
                    struct tensor_scales *out)
{
    uint64_t n = s->ne[0] * tensor_rows(s), n_row = t->ne[1];

    out->n_row = out->n_col = 1;
    out->rows = (uint32_t)n_row;
    out->cols = (uint32_t)t->ne[0];
    if (n == t->ne[2] && t->ne[3] == 1) /* one for each matrix */
        return true;
    if (t->ne[2] != 1 || t->ne[3] != 1)
        return false;
    if (n == n_row && (s->ne[0] == 1 || s->n_dims == 1)) {
        out->n_row = (uint32_t)n_row;
        out->rows = 1;
        return true;
    }
    if (s->ne[0] != (t->ne[0] + BLOCK - 1) / BLOCK || s->ne[1] != (n_row + BLOCK - 1) / BLOCK ||
        s->ne[2] != 1 || s->ne[3] != 1)
        return false;
    out->n_col = (uint32_t)s->ne[0];
    out->n_row = (uint32_t)s->ne[1];
    out->rows = BLOCK;
    out->cols = s->ne[0] > 1 ? BLOCK : (uint32_t)t->ne[0];
    return true;
}

/* Give t the scales s, which stay in memory. */
static int attach(struct joining *j, struct tensor_info *t, const struct tensor_info *s,
                  bool is_divisor)
{
    struct tensor_scales *out = &j->scales[j->n_scales];
    struct tensor_piece *pieces = j->pieces + j->n_piece;

    if (!has_type_of_scales(s)) {
        err_set(j->e, ERR_UNSUPPORTED, "its type is %s, which scales of weights cannot have",
                tensor_type_info(s->type)->name);
        return join_fail(j, s);
    }
    if (t->ne[0] == 0 || t->ne[0] > UINT32_MAX || tensor_rows(t) > UINT32_MAX ||
        t->ne[2] > MAX_MATRIX || !measure(t, s, out)) {
        err_set(j->e, ERR_UNSUPPORTED,
                "its shape is %llu x %llu, but the weights have %llu rows of %llu; supported are "
                "a scale for all, for each row, and for each %d x %d weights",
                (unsigned long long)s->ne[0], (unsigned long long)tensor_rows(s),
                (unsigned long long)t->ne[1], (unsigned long long)t->ne[0], BLOCK, BLOCK);
        return join_fail(j, s);
    }
    out->type = s->type;
    out->is_divisor = is_divisor;
    out->n_piece = (uint32_t)t->ne[2];
    out->pieces = pieces;
    for (uint32_t i = 0; i < out->n_piece; i++)
        pieces[i] = (struct tensor_piece){
            s->file, s->offset + i * tensor_row_bytes(s->type, out->n_row * out->n_col)
        };
    j->n_piece += out->n_piece;
    j->n_scales++;
    j->is_piece[s - j->c->tensors] = true;
    t->scales = out;
    return 0;
}

/* Join two values in a byte with a scale for each few of them.  t becomes the tensor of both. */
static int join_groups(struct joining *j, struct tensor_info *t, const struct tensor_info *s)
{
    struct tensor_piece *pieces = j->pieces + j->n_piece;
    bool is_nvfp4 = s->type == TYPE_F8_E4M3;
    uint64_t values = 2 * t->ne[0], each = is_nvfp4 ? 16 : 32, block = is_nvfp4 ? 64 : 32;

    if ((!is_nvfp4 && s->type != TYPE_F8_E8M0) || t->n_dims != 2 || t->ne[0] > UINT32_MAX ||
        values % block != 0 || s->ne[0] * each != values || tensor_rows(s) != t->ne[1]) {
        err_set(j->e, ERR_UNSUPPORTED,
                "%llu x %llu scales of type %s for %llu rows of %llu bytes are not supported",
                (unsigned long long)s->ne[0], (unsigned long long)tensor_rows(s),
                tensor_type_info(s->type)->name, (unsigned long long)t->ne[1],
                (unsigned long long)t->ne[0]);
        return join_fail(j, s);
    }
    pieces[0] = (struct tensor_piece){ t->file, t->offset };
    pieces[1] = (struct tensor_piece){ s->file, s->offset };
    j->is_piece[s - j->c->tensors] = true;
    j->n_piece += 2;
    t->type = is_nvfp4 ? TYPE_NVFP4 : TYPE_MXFP4;
    t->layout = LAYOUT_SPLIT;
    t->pieces = pieces;
    t->n_piece = 2;
    t->ne[0] = values;
    t->bytes += s->bytes;
    return 0;
}

static int join_one(struct joining *j, struct tensor_info *t)
{
    size_t n = before(t->name, weight);
    const struct tensor_info *scales, *factor, *divisor;

    if (n == 0)
        return 0;
    scales = beside(j, t->name, n, SCALES_TAIL);
    factor = beside(j, t->name, n, SCALE_TAIL);
    divisor = beside(j, t->name, n, DIVISOR_TAIL);
    if (scales != NULL && t->type == TYPE_I8) {
        if (join_groups(j, t, scales) != 0)
            return -1;
        scales = NULL;
    }
    if ((scales != NULL) + (factor != NULL) + (divisor != NULL) > 1) {
        err_set(j->e, ERR_UNSUPPORTED, "these weights have scales of two kinds");
        return join_fail(j, t);
    }
    if (scales == NULL)
        scales = factor != NULL ? factor : divisor;
    return scales != NULL ? attach(j, t, scales, divisor != NULL) : 0;
}

int join_scales(struct joining *j)
{
    for (uint32_t i = 0; i < j->c->n_tensor; i++)
        if (join_one(j, &j->c->tensors[i]) != 0)
            return -1;
    return 0;
}
