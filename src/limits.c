/* See limits.h. */
#include "config.h"

#include "src/limits.h"

#include <sys/stat.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/folder.h"
#include "engine/base/new_file.h"
#include "src/choice_book.h"
#include "src/limits_book.h"
#include "src/paths.h"
#include "src/rates_book.h"

#define MEASURE_SECONDS 1.6
#define FRESH_S         60
#define SPREAD_KEPT     0.7       /* share of an earlier spread that remains */
#define LARGE_READ      (2 * MIB) /* larger ones are not faster */
#define FAR_OFF         4.0       /* a factor between two rates of one disk */
#define PRODUCT_LINES   40

/* The arithmetic of a line with the rates of disk and memory alone. */
#define NO_ARITHMETIC "none"

/* The processor as one word. */
static void make_cpu(char *cpu, size_t n)
{
    struct mw_machine machine;

    mw_machine_read(&machine);
    snprintf(cpu, n, "%s", machine.cpu[0] != '\0' ? machine.cpu : "?");
    for (char *c = cpu; *c != '\0'; c++)
        if (*c == ' ' || *c == '\t')
            *c = '_';
}

static void make_key(struct limits_key *k, const char *path, const char *type,
                     const struct mw_options *o)
{
    const char *isa = o->isa != NULL ? o->isa : mw_isa(0);
    struct stat st;

    memset(k, 0, sizeof *k);
    snprintf(k->arithmetic, sizeof k->arithmetic, "%s/%s%s", type, isa,
             o->exact ? "/exact" : "");
    snprintf(k->io, sizeof k->io, "%s", mw_io_name(o->io));
    k->n_thread = o->n_thread;
    if (stat(path, &st) == 0)
        k->dev = st.st_dev;
}

/* The part of a key that is the same for all models. */
static void complete_key(struct limits_key *k)
{
    struct mw_machine machine;

    make_cpu(k->cpu, sizeof k->cpu);
    if (k->n_thread > 0)
        return;
    mw_machine_read(&machine);
    k->n_thread = machine.n_cpu;
}

/* Write the new line and the PRODUCT_LINES newest old ones. */
static void keep_product(const char *path, const char *new_line)
{
    char *old = limits_book_text(path), *at = old, *line;
    struct err ignored = ERR_INIT;
    struct new_file file;

    if (new_file_begin(&file, path, true, &ignored) == 0) {
        fputs(new_line, file.f);
        for (int i = 0; i < PRODUCT_LINES && (line = strsep(&at, "\n")) != NULL; i++)
            if (line[0] != '\0')
                fprintf(file.f, "%.255s\n", line);
        new_file_end(&file, &ignored);
    }
    free(old);
}

/* A line of the other file: program, processor, kernels, "exact" or "usual", weight type,
 * operations a second of the kernels and of OpenBLAS, its name.  The last line for a type is
 * not needed: new ones come first. */
static bool find_product(const char *path, const char *cpu, struct mw_products *all,
                         struct mw_product *p)
{
    char *old = limits_book_text(path), *next = old, *line;
    bool is_found = false;

    while (!is_found && (line = strsep(&next, "\n")) != NULL) {
        char build[48], found[64], kernels[16], exact[8], type[16], blas[64];
        double a, b;

        if (sscanf(line, "%47s %63s %15s %7s %15s %lf %lf %63[^\n]", build, found, kernels,
                   exact, type, &a, &b, blas) != 8 ||
            strcmp(build, BUILD_NAME) != 0 || strcmp(found, cpu) != 0 ||
            strcmp(kernels, all->kernels) != 0 || strcmp(type, p->type) != 0 ||
            (strcmp(exact, "exact") == 0) != all->exact || !(a > 0) || !(b >= 0))
            continue;
        is_found = true;
        p->kernels_flops_s = a;
        p->blas_flops_s = b;
        snprintf(all->blas, sizeof all->blas, "%s", blas);
    }
    free(old);
    return is_found;
}

/* Are rates of all weight types kept, and of the OpenBLAS that is installed now if it is to be
 * used?  If the system refuses its buffers now, the choice stays the same and is reported. */
static bool find_products(const char *path, const char *cpu, struct mw_model *m,
                          const struct mw_options *o)
{
    struct mw_products p;

    mw_products_list(m, o, &p);
    for (uint32_t i = 0; i < p.n; i++)
        if (!find_product(path, cpu, &p, &p.product[i]))
            return false;
    mw_model_set_products(m, &p);
    return !mw_products_use_blas(m, o) || strcmp(p.blas, mw_blas_name()) == 0 ||
           mw_blas_is_denied();
}

/*
 * These rates are kept for good: OpenBLAS and the kernels round differently, so that a choice
 * that changed from day to day would change answers.  Another version of the program has other
 * kernels and measures again.
 */
static void ensure_products(struct mw_model *m, const struct mw_options *o,
                            const struct paths *paths, bool may_measure)
{
    struct err ignored = ERR_INIT;
    struct mw_products p;
    char path[560], cpu[64];

    make_cpu(cpu, sizeof cpu);
    if (paths != NULL) {
        snprintf(path, sizeof path, "%s/products", paths->cache_dir);
        if (find_products(path, cpu, m, o))
            return;
    }
    if (!may_measure || mw_products_measure(m, o, MW_PRODUCT_COLS, &p, &ignored) != 0)
        return;
    mw_model_set_products(m, &p);
    if (paths == NULL || p.is_blas_denied)
        return;
    folder_make(paths->cache_dir);
    for (uint32_t i = 0; i < p.n; i++) {
        char line[256];

        snprintf(line, sizeof line, "%s %s %s %s %s %.0f %.0f %s\n", BUILD_NAME, cpu, p.kernels,
                 p.exact ? "exact" : "usual", p.product[i].type, p.product[i].kernels_flops_s,
                 p.product[i].blas_flops_s, p.blas[0] != '\0' ? p.blas : "none");
        keep_product(path, line);
    }
}

/* --- limits --- */

/* Where limits are kept, and for what. */
struct place {
    char path[560]; /* ""; nothing is kept */
    struct limits_key key;
    char rates_path[560]; /* the same for rates of weight types */
    struct rates_key rates_key;
    char choice_path[560]; /* the same for choices of experts */
    struct choice_key choice_key;
};

static void make_rates_key(struct place *p, const struct mw_options *o)
{
    struct rates_key *k = &p->rates_key;

    memset(k, 0, sizeof *k);
    snprintf(k->build, sizeof k->build, "%s", BUILD_NAME);
    snprintf(k->cpu, sizeof k->cpu, "%s", p->key.cpu);
    snprintf(k->kernels, sizeof k->kernels, "%s", o->isa != NULL ? o->isa : mw_isa(0));
    k->exact = o->exact;
    k->n_thread = p->key.n_thread;
}

static void make_place(struct place *p, const char *model_path, const char *type,
                       const struct mw_options *o)
{
    struct err ignored = ERR_INIT;
    struct paths paths;

    p->path[0] = p->rates_path[0] = p->choice_path[0] = '\0';
    choice_key_of(&p->choice_key, model_path);
    make_key(&p->key, model_path, type, o);
    complete_key(&p->key);
    make_rates_key(p, o);
    if (paths_find(&paths, &ignored) != 0)
        return;
    snprintf(p->path, sizeof p->path, "%s/limits", paths.cache_dir);
    snprintf(p->rates_path, sizeof p->rates_path, "%s/rates", paths.cache_dir);
    snprintf(p->choice_path, sizeof p->choice_path, "%s/choices", paths.cache_dir);
}

static void keep_limits(const struct place *p, const struct mw_limits *l)
{
    struct limits_book book;

    if (p->path[0] == '\0' || folder_make_parent(p->path) != 0)
        return;
    limits_book_read(&book, p->path);
    limits_book_add(&book, &p->key, l);
    limits_book_write(&book, p->path);
    rates_book_keep(p->rates_path, &p->rates_key, (int64_t)time(NULL), l);
    choice_book_keep(p->choice_path, &p->choice_key, &l->choice);
}

/* A mw_limits_keep_fn; ctx is a struct place. */
static void keep_corrected(void *ctx, const struct mw_limits *corrected)
{
    if (corrected != NULL)
        keep_limits(ctx, corrected);
    free(ctx);
}

static void use_limits(struct mw_model *m, const struct place *p, const struct mw_limits *l)
{
    struct place *copy = malloc(sizeof *copy);

    mw_model_set_limits(m, l);
    if (copy == NULL)
        return;
    *copy = *p;
    mw_model_keep_limits(m, keep_corrected, copy);
}

static bool is_far_off(double a, double b)
{
    return a > 0 && b > 0 && (a > FAR_OFF * b || b > FAR_OFF * a);
}

typedef int measure_fn(void *ctx, struct mw_limits *out, struct err *e);

/* Measure, and once more if the rate of the disk is far off the earlier one: of both, the
 * nearer counts. */
static int measure(measure_fn *fn, void *ctx, double earlier, struct mw_limits *out,
                   struct err *e)
{
    struct mw_limits again;

    if (fn(ctx, out, e) != 0)
        return -1;
    if (!is_far_off(out->disk_bytes_s, earlier))
        return 0;
    if (fn(ctx, &again, e) != 0)
        return -1;
    if (fabs(log(again.disk_bytes_s / earlier)) < fabs(log(out->disk_bytes_s / earlier)))
        *out = again;
    if (is_far_off(out->disk_bytes_s, earlier))
        out->disk.doubt |= MW_DOUBT_DIFFERS;
    return 0;
}

struct model_job {
    struct mw_model *m;
    const struct mw_options *o;
};

static int measure_model(void *ctx, struct mw_limits *out, struct err *e)
{
    const struct model_job *job = ctx;

    return mw_limits_measure(job->m, job->o, MEASURE_SECONDS, out, e);
}

/* Set the rates of the weight types of m: kept ones, or new ones. */
static int set_rates(const struct mw_model *m, const struct place *p,
                     const struct mw_options *o, bool uses_kept, bool may_measure,
                     struct mw_limits *l, struct err *e)
{
    int64_t now_s = (int64_t)time(NULL);

    mw_rates_list(m, o, l);
    if (uses_kept && rates_book_find(p->rates_path, &p->rates_key, now_s, l))
        return 0;
    if (!may_measure)
        return 0;
    if (mw_rates_measure(o, l, e) != 0)
        return -1;
    if (p->rates_path[0] != '\0' && folder_make_parent(p->rates_path) == 0)
        rates_book_keep(p->rates_path, &p->rates_key, now_s, l);
    return 0;
}

/* A file that is too small to measure: its disk is as fast as for others. */
static void borrow_disk(struct mw_limits *l, double earlier)
{
    if (l->disk_bytes_s <= 0)
        l->disk_bytes_s = earlier;
}

static double earlier_disk(const struct place *p)
{
    struct limits_book book;

    limits_book_read(&book, p->path);
    return limits_book_disk(&book, &p->key, (int64_t)time(NULL));
}

/* The limits of the last day; 0: not measured. */
static void find_earlier(const struct mw_model *m, const struct place *p,
                         const struct mw_options *o, struct mw_limits *l)
{
    int64_t now_s = (int64_t)time(NULL);
    const struct mw_limits *kept;
    struct limits_book book;

    limits_book_read(&book, p->path);
    kept = limits_book_find_near(&book, &p->key, now_s);
    *l = kept != NULL ? *kept : (struct mw_limits){ 0 };
    mw_rates_list(m, o, l);
    (void)rates_book_find(p->rates_path, &p->rates_key, now_s, l);
}

static int measure_and_keep(struct mw_model *m, const struct place *p,
                            const struct mw_options *o, bool uses_kept_rates, struct err *e)
{
    struct model_job job = { m, o };
    struct mw_limits l, earlier;
    struct limits_book book;

    find_earlier(m, p, o, &earlier);
    if (measure(measure_model, &job, earlier_disk(p), &l, e) != 0 ||
        set_rates(m, p, o, uses_kept_rates, true, &l, e) != 0)
        return -1;
    mw_limits_widen(&l, &earlier);
    choice_book_find(p->choice_path, &p->choice_key, l.measured_s, &l.choice);
    keep_limits(p, &l);
    limits_book_read(&book, p->path);
    borrow_disk(&l, limits_book_disk_near(&book, &p->key, (int64_t)time(NULL)));
    use_limits(m, p, &l);
    return 0;
}

/* Add the size of reads to a key, as a power of two, if they are small. */
static void add_reads(struct limits_key *k, size_t bytes)
{
    size_t len = strlen(k->io), kib = 1;

    if (bytes == 0 || bytes >= LARGE_READ)
        return;
    while (2 * kib * KIB <= bytes)
        kib *= 2;
    snprintf(k->io + len, sizeof k->io - len, "/%zuK", kib);
}

static void make_model_place(struct place *p, struct mw_model *m, const char *model_path,
                             const struct mw_options *o)
{
    struct mw_model_info info;

    mw_model_info(m, &info);
    make_place(p, model_path, info.type, o);
    /* Without a file, the disk of a folder was measured, in large reads. */
    if (mw_model_has_file(m))
        add_reads(&p->key, mw_read_bytes(m, o));
}

int limits_measure_again(struct mw_model *m, const char *model_path, const struct mw_options *o,
                         struct err *e)
{
    struct place place;

    make_model_place(&place, m, model_path, o);
    return measure_and_keep(m, &place, o, false, e);
}

static bool use_kept(struct mw_model *m, const struct place *p, const struct mw_options *o,
                     bool may_measure)
{
    struct err ignored = ERR_INIT;
    int64_t now_s = (int64_t)time(NULL);
    const struct mw_limits *kept;
    struct limits_book book;
    struct mw_limits l;

    limits_book_read(&book, p->path);
    kept = may_measure ? limits_book_find(&book, &p->key, now_s)
                       : limits_book_find_near(&book, &p->key, now_s);
    if (kept == NULL)
        return false;
    l = *kept;
    borrow_disk(&l, limits_book_disk_near(&book, &p->key, now_s));
    (void)set_rates(m, p, o, true, may_measure, &l, &ignored);
    choice_book_find(p->choice_path, &p->choice_key, now_s, &l.choice);
    use_limits(m, p, &l);
    return true;
}

/* Was everything measured just now, while nothing disturbed it? */
static bool is_fresh(const struct mw_limits *l, int64_t now_s)
{
    uint32_t doubt = l->disk.doubt | l->memory.doubt;
    int64_t oldest_s =
        l->measured_s < l->steps.measured_s ? l->measured_s : l->steps.measured_s;

    for (uint32_t i = 0; i < l->n_rate; i++) {
        if (l->rate[i].measured_s < oldest_s)
            oldest_s = l->rate[i].measured_s;
        doubt |= l->rate[i].column.doubt | l->rate[i].chunk.doubt;
    }
    return doubt == 0 && now_s - oldest_s <= FRESH_S;
}

/* --- models without a file --- */

#define SEEN_RATES 16 /* weight types of published models */

/* Measure memory and the rates of m, or use those that this process measured before.  No file
 * is written. */
static void measure_for_now(struct mw_model *m, const struct place *p,
                            const struct mw_options *o, struct mw_limits *l)
{
    static struct mw_limits memory;
    static struct mw_rate seen[SEEN_RATES];
    static int n_seen;
    struct err ignored = ERR_INIT;

    if (l->memory_bytes_s == 0) {
        if (memory.memory_bytes_s == 0)
            (void)mw_limits_measure(m, o, MEASURE_SECONDS, &memory, &ignored);
        *l = memory;
    }
    mw_rates_list(m, o, l);
    if (rates_book_find(p->rates_path, &p->rates_key, (int64_t)time(NULL), l))
        return;
    for (uint32_t i = 0; i < l->n_rate; i++)
        for (int j = 0; j < n_seen && l->rate[i].measured_s == 0; j++)
            if (strcmp(l->rate[i].type, seen[j].type) == 0)
                l->rate[i] = seen[j];
    if (mw_rates_measure(o, l, &ignored) != 0)
        return;
    for (uint32_t i = 0; i < l->n_rate; i++) {
        int j = 0;

        while (j < n_seen && strcmp(l->rate[i].type, seen[j].type) != 0)
            j++;
        if (j == n_seen && n_seen < SEEN_RATES && l->rate[i].measured_s != 0)
            seen[n_seen++] = l->rate[i];
    }
}

/* Such a model has the disk of its folder, which was measured together with memory. */
static void use_folder(struct mw_model *m, const struct place *p, const struct mw_options *o,
                       enum limits_effort effort)
{
    struct limits_key any = p->key;
    struct err ignored = ERR_INIT;
    const struct mw_limits *kept;
    struct mw_limits l = { 0 };
    struct limits_book book;

    any.arithmetic[0] = '\0';
    limits_book_read(&book, p->path);
    kept = limits_book_find(&book, &any, (int64_t)time(NULL));
    if (kept != NULL)
        l = *kept;
    if (effort == LIMITS_NO_DISK)
        measure_for_now(m, p, o, &l);
    else
        (void)set_rates(m, p, o, true, effort != LIMITS_KEPT, &l, &ignored);
    mw_model_set_limits(m, &l);
}

void limits_ensure(struct mw_model *m, const char *model_path, const struct mw_options *o,
                   enum limits_effort effort)
{
    struct err ignored = ERR_INIT;
    bool may_measure = effort == LIMITS_MEASURE || effort == LIMITS_FRESH;
    struct mw_limits now;
    struct paths paths;
    struct place place;
    bool has_folder = paths_find(&paths, &ignored) == 0;

    if (o->blas == MW_BLAS_AUTO)
        ensure_products(m, o, has_folder ? &paths : NULL, effort != LIMITS_NO_DISK);
    if (may_measure && !mw_model_has_file(m))
        limits_ensure_folder(model_path, o);
    make_model_place(&place, m, model_path, o);
    if (!mw_model_has_file(m))
        use_folder(m, &place, o, effort);
    else if (!use_kept(m, &place, o, may_measure) && may_measure)
        (void)measure_and_keep(m, &place, o, true, &ignored);
    if (effort != LIMITS_FRESH || !mw_model_has_file(m))
        return;
    mw_model_limits(m, &now);
    if (!is_fresh(&now, (int64_t)time(NULL)))
        (void)measure_and_keep(m, &place, o, false, &ignored);
}

bool limits_kept(void *ctx, const char *path, const char *type, const struct mw_options *o,
                 struct mw_limits *out)
{
    static struct limits_book book;
    static struct place any; /* the parts that are the same for all models */
    int64_t now_s = (int64_t)time(NULL);
    struct mw_limits types = *out;
    const struct mw_limits *found;
    struct choice_key of_model;
    struct limits_key k;

    (void)ctx;
    if (any.key.cpu[0] == '\0') {
        make_place(&any, path, type, o);
        limits_book_read(&book, any.path);
    }
    make_key(&k, path, type, o);
    memcpy(k.cpu, any.key.cpu, sizeof k.cpu);
    if (k.n_thread <= 0)
        k.n_thread = any.key.n_thread;
    found = limits_book_find_near(&book, &k, now_s);
    /* Disk and memory are as fast for other types. */
    k.arithmetic[0] = '\0';
    if (found == NULL)
        found = limits_book_find_near(&book, &k, now_s);
    if (found == NULL)
        return false;
    *out = *found;
    out->n_rate = types.n_rate;
    memcpy(out->rate, types.rate, sizeof types.rate);
    borrow_disk(out, limits_book_disk_near(&book, &k, now_s));
    (void)rates_book_find(any.rates_path, &any.rates_key, now_s, out);
    choice_key_of(&of_model, path);
    choice_book_find(any.choice_path, &of_model, now_s, &out->choice);
    return true;
}

struct folder_job {
    const char *folder;
    const struct mw_options *o;
};

static int measure_folder(void *ctx, struct mw_limits *out, struct err *e)
{
    const struct folder_job *job = ctx;

    return mw_limits_measure_disk(job->folder, job->o, MEASURE_SECONDS / 2, out, e);
}

int limits_measure_folder(const char *folder, const struct mw_options *o, struct err *e)
{
    struct folder_job job = { folder, o };
    struct mw_limits l;
    struct place place;

    make_place(&place, folder, "", o);
    if (measure(measure_folder, &job, earlier_disk(&place), &l, e) != 0)
        return -1;
    snprintf(place.key.arithmetic, sizeof place.key.arithmetic, NO_ARITHMETIC);
    keep_limits(&place, &l);
    return 0;
}

void limits_ensure_folder(const char *folder, const struct mw_options *o)
{
    struct err ignored = ERR_INIT;
    struct limits_book book;
    struct place place;

    make_place(&place, folder, "", o);
    if (place.path[0] == '\0')
        return;
    place.key.arithmetic[0] = '\0';
    limits_book_read(&book, place.path);
    if (limits_book_find(&book, &place.key, (int64_t)time(NULL)) == NULL)
        (void)limits_measure_folder(folder, o, &ignored);
}
