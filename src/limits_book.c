/* See limits_book.h. */
#include "config.h"

#include "src/limits_book.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/new_file.h"
#include "engine/base/small_file.h"

#define HOUR_S        3600
#define KEEP_S        (24 * HOUR_S)
#define KEEP_DOUBT_S  HOUR_S
#define COMPARE_S     (30 * 24 * HOUR_S)
#define N_FIELD       20
#define MOST_LOOKUP   10.0
#define MOST_READ_CPU 1e-6 /* seconds per byte */
#define FORM          "v4" /* ends each line; others have other fields */

static bool is_in(double x, double most)
{
    return x >= 0 && x <= most; /* false for NaN */
}

static bool is_possible(const struct limits_page *p)
{
    const struct mw_limits *l = &p->limits;

    return is_in(l->disk_bytes_s, BOOK_MOST_RATE) && is_in(l->memory_bytes_s, BOOK_MOST_RATE) &&
           l->memory_bytes_s > 0 && is_in(l->direct_bytes_s, BOOK_MOST_RATE) &&
           is_in(l->buffered_bytes_s, BOOK_MOST_RATE) &&
           is_in(l->disk.spread, BOOK_MOST_SPREAD) &&
           is_in(l->memory.spread, BOOK_MOST_SPREAD) && is_in(l->load, 1) &&
           is_in(l->lookup_s, MOST_LOOKUP) && is_in(l->read_cpu_s, MOST_READ_CPU) &&
           is_in(l->contention, 1) && l->disk.doubt <= MW_DOUBT_ALL &&
           l->memory.doubt <= MW_DOUBT_ALL && l->measured_s > 0 && l->disk.observed_s >= 0 &&
           l->memory.observed_s >= 0;
}

static bool read_page(const char *line, struct limits_page *p)
{
    struct limits_key *k = &p->key;
    struct mw_limits *l = &p->limits;

    int end = 0;

    *p = (struct limits_page){ 0 };
    return sscanf(line,
                  "%" SCNd64 " %" SCNu64 " %23s %d %63s %63s %lf %lf %lf %lf "
                  "%lf %" SCNu32 " %" SCNd64 " %lf %" SCNu32 " %" SCNd64
                  " %lf %lf %le %lf " FORM "%n",
                  &l->measured_s, &k->dev, k->io, &k->n_thread, k->cpu, k->arithmetic,
                  &l->disk_bytes_s, &l->memory_bytes_s, &l->direct_bytes_s,
                  &l->buffered_bytes_s, &l->disk.spread, &l->disk.doubt, &l->disk.observed_s,
                  &l->memory.spread, &l->memory.doubt, &l->memory.observed_s, &l->load,
                  &l->lookup_s, &l->read_cpu_s, &l->contention, &end) == N_FIELD &&
           end > 0 && is_possible(p);
}

static void write_page(FILE *f, const struct limits_page *p)
{
    const struct limits_key *k = &p->key;
    const struct mw_limits *l = &p->limits;

    fprintf(f,
            "%" PRId64 " %" PRIu64 " %s %d %s %s %.0f %.0f %.0f %.0f "
            "%.3f %" PRIu32 " %" PRId64 " %.3f %" PRIu32 " %" PRId64
            " %.2f %.7f %.4e %.3f " FORM "\n",
            l->measured_s, k->dev, k->io, k->n_thread, k->cpu, k->arithmetic, l->disk_bytes_s,
            l->memory_bytes_s, l->direct_bytes_s, l->buffered_bytes_s, l->disk.spread,
            l->disk.doubt, l->disk.observed_s, l->memory.spread, l->memory.doubt,
            l->memory.observed_s, l->load, l->lookup_s, l->read_cpu_s, l->contention);
}

char *limits_book_text(const char *path)
{
    struct err ignored = ERR_INIT;

    return small_file_read_own(path, BOOK_MAX_BYTES, NULL, &ignored);
}

void limits_book_read(struct limits_book *b, const char *path)
{
    char *text = limits_book_text(path), *at = text, *line;

    b->n = 0;
    while (b->n < BOOK_PAGES && (line = strsep(&at, "\n")) != NULL)
        b->n += read_page(line, &b->page[b->n]);
    free(text);
}

static bool is_doubtful(const struct mw_limits *l)
{
    return (l->disk.doubt | l->memory.doubt) != 0;
}

/* How far the size of reads of two keys has to be the same. */
enum reads { READS_EQUAL, READS_ANY };

static bool is_same_io(const char *a, const char *b, enum reads reads)
{
    size_t n = strcspn(a, "/");

    return reads == READS_EQUAL ? strcmp(a, b) == 0
                                : n == strcspn(b, "/") && memcmp(a, b, n) == 0;
}

/* The same machine and disk. */
static bool is_same_place(const struct limits_key *a, const struct limits_key *b,
                          enum reads reads)
{
    return a->dev == b->dev && a->n_thread == b->n_thread && is_same_io(a->io, b->io, reads) &&
           strcmp(a->cpu, b->cpu) == 0;
}

static bool is_same_key(const struct limits_key *a, const struct limits_key *b,
                        enum reads reads)
{
    return is_same_place(a, b, reads) && strcmp(a->arithmetic, b->arithmetic) == 0;
}

void limits_book_add(struct limits_book *b, const struct limits_key *k,
                     const struct mw_limits *l)
{
    int kept = 0;

    for (int i = 0; i < b->n; i++)
        if (!is_same_key(&b->page[i].key, k, READS_EQUAL) ||
            (is_doubtful(l) && !is_doubtful(&b->page[i].limits)))
            b->page[kept++] = b->page[i];
    b->n = kept < BOOK_PAGES ? kept + 1 : BOOK_PAGES;
    memmove(&b->page[1], &b->page[0], (size_t)(b->n - 1) * sizeof b->page[0]);
    b->page[0] = (struct limits_page){ *k, *l };
}

void limits_book_write(const struct limits_book *b, const char *path)
{
    struct err ignored = ERR_INIT;
    struct new_file file;

    if (new_file_begin(&file, path, true, &ignored) != 0)
        return;
    for (int i = 0; i < b->n; i++)
        write_page(file.f, &b->page[i]);
    new_file_end(&file, &ignored);
}

static bool is_valid(const struct mw_limits *l, int64_t now_s)
{
    int64_t most_s = is_doubtful(l) ? KEEP_DOUBT_S : KEEP_S;

    return l->measured_s <= now_s && now_s - l->measured_s <= most_s;
}

static const struct mw_limits *find(const struct limits_book *b, const struct limits_key *k,
                                    enum reads reads, int64_t now_s)
{
    for (int i = 0; i < b->n; i++) {
        const struct limits_page *p = &b->page[i];

        if (is_valid(&p->limits, now_s) &&
            (k->arithmetic[0] == '\0'
                 ? is_same_place(&p->key, k, reads) && p->limits.disk_bytes_s > 0
                 : is_same_key(&p->key, k, reads)))
            return &p->limits;
    }
    return NULL;
}

const struct mw_limits *limits_book_find(const struct limits_book *b,
                                         const struct limits_key *k, int64_t now_s)
{
    return find(b, k, READS_EQUAL, now_s);
}

const struct mw_limits *limits_book_find_near(const struct limits_book *b,
                                              const struct limits_key *k, int64_t now_s)
{
    const struct mw_limits *l = find(b, k, READS_EQUAL, now_s);

    return l != NULL ? l : find(b, k, READS_ANY, now_s);
}

static double find_disk(const struct limits_book *b, const struct limits_key *k,
                        enum reads reads, int64_t now_s)
{
    for (int i = 0; i < b->n; i++) {
        const struct limits_page *p = &b->page[i];

        if (p->key.dev == k->dev && is_same_io(p->key.io, k->io, reads) &&
            p->limits.disk_bytes_s > 0 && p->limits.disk.doubt == 0 &&
            p->limits.measured_s <= now_s && now_s - p->limits.measured_s <= COMPARE_S)
            return p->limits.disk_bytes_s;
    }
    return 0;
}

double limits_book_disk(const struct limits_book *b, const struct limits_key *k, int64_t now_s)
{
    return find_disk(b, k, READS_EQUAL, now_s);
}

double limits_book_disk_near(const struct limits_book *b, const struct limits_key *k,
                             int64_t now_s)
{
    double rate = find_disk(b, k, READS_EQUAL, now_s);

    return rate > 0 ? rate : find_disk(b, k, READS_ANY, now_s);
}
