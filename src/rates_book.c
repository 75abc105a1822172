/* See rates_book.h. */
#include "config.h"

#include "src/rates_book.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/new_file.h"
#include "src/limits_book.h"

#define BOOK_LINES    80
#define N_FIELD       15
#define HOUR_S        3600
#define KEEP_S        (24 * HOUR_S)
#define KEEP_DOUBT_S  HOUR_S

#define STEPS       "steps" /* in place of a weight type */
#define MOST_COST_S 1.0
#define N_COST      (4 + 2 * MW_STEPS_KV)

/* A weight type, or the costs of steps; then the type of the rate is STEPS. */
struct line {
    struct rates_key key;
    struct mw_rate rate;
    struct mw_steps steps;
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

/* The costs in the order of the line. */
static void list_costs(struct mw_steps *s, double *cost[N_COST])
{
    int n = 0;

    cost[n++] = &s->round_s;
    cost[n++] = &s->wake_s;
    cost[n++] = &s->value_s;
    cost[n++] = &s->curve_s;
    for (int i = 0; i < MW_STEPS_KV; i++) {
        cost[n++] = &s->load_s[i];
        cost[n++] = &s->mac_s[i];
    }
}

/* text: what follows the type of a line with STEPS. */
static bool read_steps(const char *text, struct mw_steps *s)
{
    double *cost[N_COST];
    int used;

    list_costs(s, cost);
    for (int i = 0; i < N_COST; i++) {
        if (sscanf(text, "%le%n", cost[i], &used) != 1 || !(*cost[i] >= 0) ||
            *cost[i] > MOST_COST_S)
            return false;
        text += used;
    }
    return sscanf(text, "%lf %" SCNu32, &s->sure.spread, &s->sure.doubt) == 2 &&
           is_sure(&s->sure);
}

static bool read_line(const char *text, struct line *l)
{
    struct mw_rate *r = &l->rate;
    char form[8];
    int used = 0;

    *l = (struct line){ 0 };
    if (sscanf(text, "%" SCNd64 " %47s %63s %15s %7s %d %15s%n", &r->measured_s, l->key.build,
               l->key.cpu, l->key.kernels, form, &l->key.n_thread, r->type, &used) == 7 &&
        strcmp(r->type, STEPS) == 0) {
        l->key.exact = strcmp(form, "exact") == 0;
        l->steps.measured_s = r->measured_s;
        return r->measured_s > 0 && read_steps(text + used, &l->steps);
    }
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

static void write_steps(FILE *f, const struct rates_key *k, struct mw_steps s)
{
    double *cost[N_COST];

    list_costs(&s, cost);
    fprintf(f, "%" PRId64 " %s %s %s %s %d " STEPS, s.measured_s, k->build, k->cpu, k->kernels,
            k->exact ? "exact" : "usual", k->n_thread);
    for (int i = 0; i < N_COST; i++)
        fprintf(f, " %.6e", *cost[i]);
    fprintf(f, " %.3f %" PRIu32 "\n", s.sure.spread, s.sure.doubt);
}

static void write_line(FILE *f, const struct line *l)
{
    const struct mw_rate *r = &l->rate;

    if (strcmp(r->type, STEPS) == 0) {
        write_steps(f, &l->key, l->steps);
        return;
    }
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
    char *text = limits_book_text(path), *at = text, *line;

    b->n = 0;
    while (b->n < BOOK_LINES && (line = strsep(&at, "\n")) != NULL)
        b->n += read_line(line, &b->line[b->n]);
    free(text);
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

static bool is_recent(int64_t measured_s, bool is_doubtful, int64_t now_s)
{
    return measured_s <= now_s && now_s - measured_s <= (is_doubtful ? KEEP_DOUBT_S : KEEP_S);
}

static bool is_valid(const struct mw_rate *r, int64_t now_s)
{
    return is_recent(r->measured_s, is_doubtful(r), now_s);
}

/* Find the costs of steps in the book; NULL if there are none. */
static const struct mw_steps *find_steps(const struct book *b, const struct rates_key *k,
                                         int64_t now_s)
{
    for (int j = 0; j < b->n; j++) {
        const struct mw_steps *s = &b->line[j].steps;

        if (s->measured_s != 0 && is_same_key(&b->line[j].key, k) &&
            is_recent(s->measured_s, s->sure.doubt != 0, now_s))
            return s;
    }
    return NULL;
}

bool rates_book_find(const char *path, const struct rates_key *k, int64_t now_s,
                     struct mw_limits *l)
{
    static struct book b; /* static: it is large */
    const struct mw_steps *steps;
    bool has_all = true;

    read_book(&b, path);
    steps = find_steps(&b, k, now_s);
    if (l->steps.measured_s == 0 && steps != NULL)
        l->steps = *steps;
    has_all = l->steps.measured_s != 0;
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
    const struct mw_steps *old_steps;
    struct new_file file;
    bool keeps_old;
    int n = 0;

    read_book(&b, path);
    old_steps = find_steps(&b, k, now_s);
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
        write_line(file.f, &(struct line){ .key = *k, .rate = l->rate[i] });
        n++;
    }
    keeps_old = old_steps != NULL && l->steps.sure.doubt != 0 && old_steps->sure.doubt == 0;
    if (l->steps.measured_s != 0 && !keeps_old) {
        write_steps(file.f, k, l->steps);
        n++;
    }
    for (int j = 0; j < b.n && n < BOOK_LINES; j++) {
        const struct mw_rate *new = replacement(l, b.line[j].rate.type);
        bool is_replaced = b.line[j].steps.measured_s != 0
                               ? l->steps.measured_s != 0 && !keeps_old
                               : new != NULL;
        bool is_kept = !is_same_key(&b.line[j].key, k) || !is_replaced ||
                       (new != NULL &&is_doubtful(new) && !is_doubtful(&b.line[j].rate) &&
                        is_valid(&b.line[j].rate, now_s));

        if (is_kept)
            write_line(file.f, &b.line[j]);
        n += is_kept;
    }
    new_file_end(&file, &ignored);
}
