/* See rates_book.h. */
#include "config.h"

#include "src/rates_book.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/new_file.h"
#include "src/limits_book.h"

#define BOOK_LINES    80
#define N_FIELD       15
#define LINE_MAX_CHAR 512
#define HOUR_S        3600
#define KEEP_S        (24 * HOUR_S)
#define KEEP_DOUBT_S  HOUR_S

struct line {
    struct rates_key key;
    struct mw_rate rate;
};

struct book {
    struct line line[BOOK_LINES];
    int n;
};

static bool is_sure(const struct mw_sure *s)
{
    return s->spread >= 0 && s->spread <= BOOK_MOST_SPREAD && s->doubt <= MW_DOUBT_ALL &&
           s->observed_s >= 0;
}

static bool read_line(const char *text, struct line *l)
{
    struct mw_rate *r = &l->rate;
    char form[8];

    *l = (struct line){ 0 };
    if (sscanf(text,
               "%" SCNd64 " %47s %63s %15s %7s %d %15s %lf %lf %" SCNu32 " %" SCNd64
               " %lf %lf %" SCNu32 " %" SCNd64,
               &r->measured_s, l->key.build, l->key.cpu, l->key.kernels, form, &l->key.n_thread,
               r->type, &r->column_bytes_s, &r->column.spread, &r->column.doubt,
               &r->column.observed_s, &r->chunk_flops_s, &r->chunk.spread, &r->chunk.doubt,
               &r->chunk.observed_s) != N_FIELD)
        return false;
    l->key.exact = strcmp(form, "exact") == 0;
    return r->measured_s > 0 && r->column_bytes_s > 0 && r->column_bytes_s <= BOOK_MOST_RATE &&
           r->chunk_flops_s > 0 && r->chunk_flops_s <= BOOK_MOST_RATE && is_sure(&r->column) &&
           is_sure(&r->chunk);
}

static void write_line(FILE *f, const struct line *l)
{
    const struct mw_rate *r = &l->rate;

    fprintf(f,
            "%" PRId64 " %s %s %s %s %d %s %.0f %.3f %" PRIu32 " %" PRId64 " %.0f %.3f %" PRIu32
            " %" PRId64 "\n",
            r->measured_s, l->key.build, l->key.cpu, l->key.kernels,
            l->key.exact ? "exact" : "usual", l->key.n_thread, r->type, r->column_bytes_s,
            r->column.spread, r->column.doubt, r->column.observed_s, r->chunk_flops_s,
            r->chunk.spread, r->chunk.doubt, r->chunk.observed_s);
}

static void read_book(struct book *b, const char *path)
{
    FILE *f = limits_book_open(path);
    char text[LINE_MAX_CHAR];

    b->n = 0;
    if (f == NULL)
        return;
    while (b->n < BOOK_LINES && fgets(text, sizeof text, f) != NULL)
        b->n += read_line(text, &b->line[b->n]);
    fclose(f);
}

static bool is_same_key(const struct rates_key *a, const struct rates_key *b)
{
    return strcmp(a->build, b->build) == 0 && strcmp(a->cpu, b->cpu) == 0 &&
           strcmp(a->kernels, b->kernels) == 0 && a->exact == b->exact &&
           a->n_thread == b->n_thread;
}

static bool is_doubtful(const struct mw_rate *r)
{
    return (r->column.doubt | r->chunk.doubt) != 0;
}

static bool is_valid(const struct mw_rate *r, int64_t now_s)
{
    int64_t most_s = is_doubtful(r) ? KEEP_DOUBT_S : KEEP_S;

    return r->measured_s <= now_s && now_s - r->measured_s <= most_s;
}

bool rates_book_find(const char *path, const struct rates_key *k, int64_t now_s,
                     struct mw_limits *l)
{
    static struct book b; /* static: it is large */
    bool has_all = true;

    read_book(&b, path);
    for (uint32_t i = 0; i < l->n_rate; i++) {
        for (int j = 0; j < b.n && l->rate[i].measured_s == 0; j++)
            if (is_same_key(&b.line[j].key, k) && is_valid(&b.line[j].rate, now_s) &&
                strcmp(b.line[j].rate.type, l->rate[i].type) == 0)
                l->rate[i] = b.line[j].rate;
        has_all &= l->rate[i].measured_s != 0;
    }
    return has_all;
}

/* Returns the measured rate of l that replaces this line, or NULL. */
static const struct mw_rate *replacement(const struct mw_limits *l, const char *type)
{
    for (uint32_t i = 0; i < l->n_rate; i++)
        if (l->rate[i].measured_s != 0 && strcmp(l->rate[i].type, type) == 0)
            return &l->rate[i];
    return NULL;
}

void rates_book_keep(const char *path, const struct rates_key *k, int64_t now_s,
                     const struct mw_limits *l)
{
    static struct book b;
    struct err ignored = ERR_INIT;
    struct new_file file;
    int n = 0;

    read_book(&b, path);
    if (new_file_begin(&file, path, true, &ignored) != 0)
        return;
    for (uint32_t i = 0; i < l->n_rate; i++) {
        bool is_better = false;

        for (int j = 0; j < b.n && is_doubtful(&l->rate[i]); j++)
            is_better |= is_same_key(&b.line[j].key, k) && !is_doubtful(&b.line[j].rate) &&
                         is_valid(&b.line[j].rate, now_s) &&
                         strcmp(b.line[j].rate.type, l->rate[i].type) == 0;
        if (l->rate[i].measured_s == 0 || is_better)
            continue;
        write_line(file.f, &(struct line){ *k, l->rate[i] });
        n++;
    }
    for (int j = 0; j < b.n && n < BOOK_LINES; j++) {
        const struct mw_rate *new = replacement(l, b.line[j].rate.type);
        bool is_kept = !is_same_key(&b.line[j].key, k) || new == NULL ||
                       (is_doubtful(new) && !is_doubtful(&b.line[j].rate) &&
                        is_valid(&b.line[j].rate, now_s));

        if (is_kept)
            write_line(file.f, &b.line[j]);
        n += is_kept;
    }
    new_file_end(&file, &ignored);
}
