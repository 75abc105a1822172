#include "config.h"

#include "engine/format/ngram_numbers.h"

#include <string.h>

#include "engine/format/reader.h"

static const char *const tails[] = { ".ple_embedding.layer_multipliers",
                                     ".ple_embedding.ngram_heads_vocab_sizes",
                                     ".ple_embedding.ngram_heads_offsets" };
#define N_TAIL (sizeof tails / sizeof tails[0])

/* --- by the rule --- */

#define STEP 0x9E3779B97F4A7C15u /* of the generator splitmix64 */

static uint64_t splitmix(uint64_t x)
{
    x += STEP;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static bool is_prime(uint64_t n)
{
    for (uint64_t i = 2; i * i <= n; i++)
        if (n % i == 0)
            return false;
    return n >= 2;
}

void ngram_numbers_derive(struct ngram_hparams *g, uint64_t seed, uint64_t n_vocab,
                          uint64_t base, uint64_t multiple)
{
    uint64_t half = INT64_MAX / n_vocab / 2, next = base, sum = 0;

    /* Odd numbers whose products with an id stay below 2^63. */
    for (uint32_t i = 0; i < g->n_token; i++)
        g->factor[i] = 2 * (splitmix(seed + (i + 1) * STEP) % (half > 0 ? half : 1)) + 1;
    for (uint32_t i = 0; i < ngram_rows(g); i++) {
        while (!is_prime(next))
            next++;
        g->first[i] = sum;
        g->n_row[i] = next;
        sum += next++;
    }
    sum = (sum + multiple - 1) / multiple * multiple;
    g->n_table = sum <= UINT32_MAX ? (uint32_t)sum : 0;
}

/* --- of a file --- */

static size_t tail_of(const char *name)
{
    size_t n = strlen(name), i = 0;

    for (; i < N_TAIL; i++)
        if (n > strlen(tails[i]) && strcmp(name + n - strlen(tails[i]), tails[i]) == 0)
            break;
    return i;
}

bool ngram_numbers_are(const char *name)
{
    return tail_of(name) < N_TAIL;
}

static int read_tensor(const struct catalogue *c, const struct tensor_info *t, uint64_t *out,
                       uint32_t n, struct err *e)
{
    const struct model_file *f = &c->files[t->file];
    struct reader r;
    int rc;

    if (t->type != TYPE_I64 || t->ne[0] != n || tensor_rows(t) != 1) {
        err_set(e, ERR_FORMAT, "has %llu values of type %s; expected %u of type I64",
                (unsigned long long)t->ne[0], tensor_type_info(t->type)->name, n);
        return err_at(e, f->path, t->offset, t->name);
    }
    if (reader_open(&r, f->fd, f->size, (size_t)t->bytes, e) != 0)
        return -1;
    reader_seek(&r, t->offset);
    rc = reader_copy(&r, out, n * sizeof *out, e);
    reader_close(&r);
    return rc == 0 ? 0 : err_at(e, f->path, t->offset, t->name);
}

int ngram_numbers_read(struct catalogue *c, struct err *e)
{
    struct ngram_hparams *g = &c->hparams.ngram;
    uint64_t *const to[N_TAIL] = { g->factor, g->n_row, g->first };
    const uint32_t n[N_TAIL] = { g->n_token, ngram_rows(g), ngram_rows(g) };

    for (uint32_t i = 0; i < c->n_tensor; i++) {
        size_t k = tail_of(c->tensors[i].name);

        if (k < N_TAIL && read_tensor(c, &c->tensors[i], to[k], n[k], e) != 0)
            return -1;
    }
    return 0;
}
