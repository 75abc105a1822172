/*
 * A built tokenizer in a file, so that the next start does not build it again.
 *
 * Gemma's takes 0.2 s to build and 25 ms to read.  The file has a head and the tables as they
 * are in memory; their sizes follow from the counts of the vocabulary, which come from the
 * model.  Checksums find damage.  A forged file may give wrong ids, but nothing outside the
 * tables is touched: all ids and offsets in them are checked.
 */
#include "config.h"

#include "engine/text/tokenizer_kept.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/build_name.h"
#include "engine/base/new_file.h"
#include "engine/format/file_open.h"
#include "engine/format/reader.h"
#include "engine/text/tokenizer_internal.h"

/* The number of files in a folder, up to 14 MB each.  A model whose vocabulary has the place of
 * another one replaces it. */
#define N_PLACE 16

/* Change the number with the tables or with their meaning. */
#define MAGIC "memwall tokenizer 6"

struct head {
    char magic[24];
    char build[BUILD_NAME_BYTES];
    struct vocab_source from;
    uint32_t n_merge, n_all, n_plain, longest;
    uint32_t byte_id[256];
    struct hash_key pairs_key, chars_key, token_key; /* of the tables */
    uint64_t sum;                                    /* of the tables */
    uint64_t head_sum;                               /* of all before it */
};

struct table {
    void *at;
    size_t bytes;
};

enum { N_TABLE = 12 };

/* The tables that a tokenizer with this vocabulary has. */
static int tables_of(const struct tokenizer *t, struct table out[N_TABLE])
{
    const struct vocab_info *info = &t->info;
    size_t n_token = info->n_token, added = ((size_t)info->n_added + N_REPAIRED) * 4;
    const struct table all[N_TABLE] = {
        { t->text, (size_t)info->text_bytes },
        { t->start, (n_token + 1) * 4 },
        { t->flag, n_token },
        { t->pairs.slot, (size_t)t->pairs.n_slot * 8 },
        { t->pairs.merged, (size_t)t->pairs.n_merge * 4 },
        { t->seams, seam_bytes(info) },
        { t->all.id, added },
        { t->all.starts, ADDED_START_BYTES },
        { t->plain.id, added },
        { t->plain.starts, ADDED_START_BYTES },
        { t->chars.slot, (size_t)t->chars.n_slot * 8 },
        { t->hash.slot, (size_t)t->hash.n_slot * 4 },
    };
    int n = 0;

    for (int i = 0; i < N_TABLE; i++)
        if (all[i].at != NULL && all[i].bytes > 0)
            out[n++] = all[i];
    return n;
}

static uint64_t sum_of(const void *bytes, size_t n)
{
    static const struct hash_key key = { 0x6d656d77616c6c21u, 0x746f6b656e697a65u };

    return keyed_hash(&key, bytes, n);
}

static uint64_t sum_tables(const struct table *table, int n)
{
    uint64_t sum = 0;

    for (int i = 0; i < n; i++)
        sum = sum * 31 + sum_of(table[i].at, table[i].bytes);
    return sum;
}

static uint64_t sum_head(const struct head *h)
{
    return sum_of(h, offsetof(struct head, head_sum));
}

/* Returns the path of the file, malloc'ed, or NULL: no memory, or no source to recognise. */
static char *path_of(const char *folder, const struct vocab_source *from)
{
    size_t n = strlen(folder) + 32;
    char *path = from->file[0].ino != 0 ? malloc(n) : NULL;

    if (path != NULL)
        snprintf(path, n, "%s/tokenizer.%u", folder,
                 (unsigned)(sum_of(from, sizeof *from) % N_PLACE));
    return path;
}

/* --- read --- */

static bool fits(const struct head *h, const struct vocab_source *from,
                 const struct vocab_info *info)
{
    char build[BUILD_NAME_BYTES];

    build_name(build);
    return h->head_sum == sum_head(h) && memcmp(h->magic, MAGIC, sizeof MAGIC) == 0 &&
           strncmp(h->build, build, sizeof h->build) == 0 &&
           memcmp(&h->from, from, sizeof *from) == 0 &&
           h->n_merge <= tokenizer_most_merges(info) &&
           h->n_all <= info->n_added + N_REPAIRED && h->n_plain <= info->n_added + N_REPAIRED;
}

static bool ids_are_below(const uint32_t *id, size_t n, uint32_t n_token)
{
    uint32_t most = 0;

    for (size_t i = 0; i < n; i++)
        most = id[i] > most ? id[i] : most;
    return n == 0 || most < n_token;
}

static bool bytes_are_sound(const struct tokenizer *t)
{
    for (int c = 0; c < 256; c++)
        if (t->byte_id[c] >= t->info.n_token && t->byte_id[c] != NO_ID)
            return false;
    return true;
}

/* A search for added tokens does not end if one of them has no text. */
static bool added_is_sound(const struct tokenizer *t, const struct added *x)
{
    if (!ids_are_below(x->id, x->n, t->info.n_token))
        return false;
    for (uint32_t i = 0; i < x->n; i++)
        if (t->start[x->id[i]] == t->start[x->id[i] + 1])
            return false;
    return true;
}

/* Whether each used slot has a value below `most` in the bits of mask.  A search ends at a free
 * slot, so there must be one. */
static bool slots_are_sound(const uint64_t *slot, size_t n, uint64_t mask, uint64_t most)
{
    size_t n_free = 0, n_wrong = 0;

    for (size_t i = 0; i < n; i++) {
        n_free += slot[i] == UINT64_MAX;
        n_wrong += slot[i] != UINT64_MAX && (slot[i] & mask) >= most;
    }
    return n == 0 || (n_free > 0 && n_wrong == 0);
}

/* Whether no table leads out of another one. */
static bool tables_are_sound(const struct tokenizer *t)
{
    uint32_t n_token = t->info.n_token, n_wrong = 0;

    for (uint32_t i = 0; i < n_token; i++)
        n_wrong +=
            t->start[i] > t->start[i + 1] || t->start[i + 1] - t->start[i] > VOCAB_MAX_TEXT;
    return n_wrong == 0 && t->start[n_token] <= t->info.text_bytes && bytes_are_sound(t) &&
           added_is_sound(t, &t->all) && added_is_sound(t, &t->plain) &&
           ids_are_below(t->pairs.merged, t->pairs.n_merge, n_token) &&
           slots_are_sound(t->pairs.slot, t->pairs.n_slot,
                           ((uint64_t)1 << t->pairs.rank_bits) - 1, t->pairs.n_merge) &&
           slots_are_sound(t->chars.slot, t->chars.n_slot, UINT32_MAX, n_token) &&
           token_hash_is_sound(&t->hash, n_token);
}

static int read_tables(struct tokenizer *t, const struct head *h, struct reader *r,
                       struct err *e)
{
    struct table table[N_TABLE];
    int n;

    if (tokenizer_map_tokens(t, e) != 0 || tokenizer_map_tables(t, h->n_merge, e) != 0)
        return -1;
    t->all.n = h->n_all;
    t->plain.n = h->n_plain;
    t->longest = h->longest;
    memcpy(t->byte_id, h->byte_id, sizeof t->byte_id);
    tokenizer_count_bytes(t);
    t->pairs.key = h->pairs_key;
    t->chars.key = h->chars_key;
    t->hash.key = h->token_key;
    n = tables_of(t, table);
    for (int i = 0; i < n; i++)
        if (reader_copy(r, table[i].at, table[i].bytes, e) != 0)
            return -1;
    if (reader_left(r) > 0 || sum_tables(table, n) != h->sum || !tables_are_sound(t))
        return err_set(e, ERR_FORMAT, "is damaged");
    tokenizer_name_repaired(t);
    return 0;
}

int tokenizer_kept_open(struct tokenizer **out, const struct vocab_source *from,
                        const struct vocab_info *info, const char *folder, struct err *e)
{
    struct tokenizer *t = calloc(1, sizeof *t);
    struct reader r = { 0 };
    struct model_file f = { .fd = -1 };
    struct head h;
    char *path;
    int rc = -1;

    *out = NULL;
    path = path_of(folder, from);
    if (t == NULL || path == NULL)
        err_memory(e, "a tokenizer");
    else if (model_file_open_own(&f, path, e) == 0 &&
             reader_open(&r, f.fd, f.size, 0, e) == 0 &&
             reader_copy(&r, &h, sizeof h, e) == 0) {
        t->info = *info;
        rc = fits(&h, from, info) ? read_tables(t, &h, &r, e)
                                  : err_set(e, ERR_FORMAT, "is of another vocabulary");
    }
    reader_close(&r);
    model_file_close(&f);
    free(path);
    if (rc != 0) {
        tokenizer_close(t);
        return -1;
    }
    *out = t;
    return 0;
}

/* --- write --- */

/* Write a table and give its pages back, so that they add nothing to the charge. */
static int put(FILE *f, const void *bytes, size_t n)
{
    enum { PIECE = 1 << 20 };

    for (size_t done = 0; done < n;) {
        size_t part = n - done < PIECE ? n - done : PIECE;

        if (fwrite((const char *)bytes + done, 1, part, f) != part || fflush(f) != 0 ||
            fdatasync(fileno(f)) != 0)
            return -1;
        done += part;
        reader_drop(fileno(f), 0, (uint64_t)ftello(f));
    }
    return 0;
}

int tokenizer_keep(const struct tokenizer *t, const struct vocab_source *from,
                   const char *folder, struct err *e)
{
    struct table table[N_TABLE];
    int n = tables_of(t, table), rc;
    struct new_file file;
    struct head h;
    char *path;

    memset(&h, 0, sizeof h);
    memcpy(&h.from, from, sizeof h.from);
    path = path_of(folder, from);
    if (path == NULL)
        return err_memory(e, "a file's name");
    memcpy(h.magic, MAGIC, sizeof MAGIC);
    build_name(h.build);
    h.n_merge = t->pairs.n_merge;
    h.n_all = t->all.n;
    h.n_plain = t->plain.n;
    h.longest = t->longest;
    memcpy(h.byte_id, t->byte_id, sizeof h.byte_id);
    h.pairs_key = t->pairs.key;
    h.chars_key = t->chars.key;
    h.token_key = t->hash.key;
    h.sum = sum_tables(table, n);
    h.head_sum = sum_head(&h);
    rc = new_file_begin(&file, path, true, e);
    free(path);
    if (rc != 0)
        return -1;
    rc = put(file.f, &h, sizeof h);
    for (int i = 0; rc == 0 && i < n; i++)
        rc = put(file.f, table[i].at, table[i].bytes);
    if (rc != 0) {
        new_file_drop(&file);
        return err_sys(e, "cannot write the tokenizer");
    }
    return new_file_end(&file, e);
}
