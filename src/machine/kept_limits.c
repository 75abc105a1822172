/* See kept_limits.h. */
#include "config.h"

#include "src/machine/kept_limits.h"

#include <sys/stat.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/base/paths.h"
#include "src/base/ticker.h"

#define MEASURE_SECONDS 1.6
#define MIRROR_SECONDS  0.4
#define FRESH_S         60
#define LARGE_READ_KIB  2048 /* larger ones are not faster */
#define SMALL_FILE      (32 * MIB) /* is read in some 10 ms, which measures no disk */

#define LIMITS_FILE "%s/limits" /* in the cache folder */

static int64_t now(void)
{
    return (int64_t)time(NULL);
}

/* The file of limits, and the machine, disk and model that they hold for. */
struct place {
    char path[560]; /* "": no limits are kept */
    struct limits_key key;
    double anchor_s; /* the time of the anchor that is kept */
};

/* The processor as one word: its kind, and as much of its name as there is space for. */
static void make_cpu(char *cpu, size_t n, const struct mw_machine *machine)
{
    snprintf(cpu, n, "%s%s%.*s", machine->cpu_kind, machine->cpu_kind[0] != '\0' ? "_" : "",
             (int)(n - sizeof machine->cpu_kind - 2),
             machine->cpu[0] != '\0' ? machine->cpu : "?");
    for (char *c = cpu; *c != '\0'; c++)
        if (*c == ' ' || *c == '\t')
            *c = '_';
}

/* model_path: a file, or the folder where it would be. */
static void make_place(struct place *p, const char *model_path, const struct mw_options *o)
{
    struct limits_key *k = &p->key;
    struct err ignored = ERR_INIT;
    struct mw_machine machine;
    struct paths paths;
    struct stat st;

    mw_machine_read(&machine);
    *p = (struct place){ .key = { .exact = o->exact } };
    make_cpu(k->cpu, sizeof k->cpu, &machine);
    snprintf(k->build, sizeof k->build, "%s", BUILD_NAME);
    snprintf(k->kernels, sizeof k->kernels, "%s", o->isa != NULL ? o->isa : mw_isa(0));
    snprintf(k->io, sizeof k->io, "%s", mw_io_name(o->io));
    k->n_thread = o->n_thread > 0 ? o->n_thread : machine.n_thread;
    k->n_core = machine.n_core;
    k->n_cpu = machine.n_cpu;
    limits_model_of(model_path, k->model, sizeof k->model);
    if (stat(model_path, &st) == 0) {
        k->dev = st.st_dev;
        k->is_small = S_ISREG(st.st_mode) && (uint64_t)st.st_size < SMALL_FILE;
    }
    if (paths_find(&paths, &ignored) == 0)
        snprintf(p->path, sizeof p->path, LIMITS_FILE, paths.cache_dir);
}

/* Small reads are slower, so the disk is measured with those of the plan, in classes of a power
 * of two.  Without a file, the disk of a folder was measured, in large reads. */
static void set_sizes(struct limits_key *k, const struct mw_read_sizes *sizes)
{
    k->is_small = sizes->file_bytes < SMALL_FILE;
    if (sizes->read_bytes == 0 || sizes->read_bytes >= LARGE_READ_KIB * KIB)
        return;
    for (k->read_kib = 1; 2 * k->read_kib * KIB <= sizes->read_bytes; k->read_kib *= 2)
        continue;
}

static void make_model_place(struct place *p, struct mw_model *m, const char *model_path,
                             const struct mw_options *o)
{
    struct mw_read_sizes sizes;
    struct mw_model_info info;

    make_place(p, model_path, o);
    p->key.is_small = false;
    if (!mw_model_has_file(m))
        return;
    mw_model_info(m, &info);
    sizes = (struct mw_read_sizes){ info.file_bytes, mw_read_bytes(m, o) };
    set_sizes(&p->key, &sizes);
}

static void read_store(struct limits_store *s, const struct place *p)
{
    *s = (struct limits_store){ 0 };
    if (p->path[0] != '\0')
        limits_store_read(s, p->path);
}

static void keep_lines(const struct place *p, const struct limits_line *lines, size_t n)
{
    if (p->path[0] != '\0')
        limits_store_keep(p->path, lines, n);
}

static void keep(const struct place *p, const struct mw_limits *l)
{
    struct limits_line lines[LIMITS_LINES];

    keep_lines(p, lines, limits_store_lines(&p->key, l, lines));
}

/* --- the number of threads --- */

/* Whether it is known for the machine of p, and not to be measured again now. */
static bool find_threads(const struct limits_store *s, const struct place *p)
{
    struct mw_threads t;

    if (!limits_store_threads(s, &p->key, now(), &t))
        return false;
    mw_threads_choose(&t);
    return true;
}

/* The first trusted comparison is kept for good: most limits hold for one number of threads, and
 * would have to be measured again. */
static void measure_threads(const struct place *p, const struct mw_options *o, bool keeps)
{
    struct err ignored = ERR_INIT;
    struct limits_store kept;
    struct limits_line line;
    struct mw_threads t;

    if (mw_threads_measure(o, &t, &ignored) != 0 || t.measured_s == 0)
        return;
    mw_threads_choose(&t);
    if (!keeps)
        return;
    line = limits_threads_line(&p->key, &t);
    keep_lines(p, &line, 1);
    read_store(&kept, p); /* another program may have been first */
    (void)find_threads(&kept, p);
    limits_store_free(&kept);
}

void limits_ensure_threads(const struct mw_options *o, enum limits_effort effort)
{
    struct limits_store kept;
    struct place place;

    if (o->n_thread > 0)
        return;
    make_place(&place, "", o);
    read_store(&kept, &place);
    if (!find_threads(&kept, &place) && effort != LIMITS_KEPT)
        measure_threads(&place, o, effort != LIMITS_NO_DISK);
    limits_store_free(&kept);
}

/* --- ways of products --- */

void limits_use_ways(const struct mw_options *o)
{
    struct mw_limits l = { 0 };
    struct limits_store kept;
    struct place place;

    make_place(&place, "", o);
    read_store(&kept, &place);
    (void)limits_store_get(&kept, &place.key, now(), &l);
    mw_ways_choose(&l.ways);
    limits_store_free(&kept);
}

/* --- OpenBLAS or the kernels --- */

static bool find_products(const struct limits_store *s, const struct place *p,
                          struct mw_model *m, const struct mw_options *o)
{
    struct mw_products all;

    mw_products_list(m, o, &all);
    for (uint32_t i = 0; i < all.n; i++) {
        const struct limits_line *l;
        char of[200];

        limits_name(&p->key, LIMITS_PRODUCT, all.product[i].type, of);
        l = limits_store_find(s, LIMITS_PRODUCT, of, now());
        if (l == NULL)
            return false;
        all.product[i].kernels_flops_s = l->value[0];
        all.product[i].blas_flops_s = l->value[1];
        snprintf(all.blas, sizeof all.blas, "%s", l->text);
    }
    mw_model_set_products(m, &all);
    /* Rates of another OpenBLAS than the one that is installed do not count if it is used.  If
     * the system refuses its buffers now, the choice stays the same and is reported. */
    return !mw_products_use_blas(m, o) || strcmp(all.blas, mw_blas_name()) == 0 ||
           mw_blas_is_denied();
}

static void keep_products(const struct place *p, const struct mw_products *all)
{
    struct limits_line lines[MW_PRODUCTS_MAX] = { 0 };

    for (uint32_t i = 0; i < all->n; i++) {
        struct limits_line *l = &lines[i];

        l->kind = LIMITS_PRODUCT;
        l->time_s = now();
        limits_name(&p->key, LIMITS_PRODUCT, all->product[i].type, l->of);
        snprintf(l->text, sizeof l->text, "%s", all->blas);
        l->value[0] = all->product[i].kernels_flops_s;
        l->value[1] = all->product[i].blas_flops_s;
    }
    keep_lines(p, lines, all->n);
}

/*
 * These rates are kept for good: OpenBLAS and the kernels round differently, so that a choice
 * that changed from day to day would change answers.  Another version of the program has other
 * kernels and measures again.
 */
static void ensure_products(const struct limits_store *s, const struct place *p,
                            struct mw_model *m, const struct mw_options *o, bool may_measure)
{
    struct err ignored = ERR_INIT;
    struct limits_store kept;
    struct mw_products all;

    if (o->blas != MW_BLAS_AUTO || find_products(s, p, m, o) || !may_measure ||
        mw_products_measure(m, o, MW_PRODUCT_COLS, &all, &ignored) != 0)
        return;
    mw_model_set_products(m, &all);
    if (all.is_blas_denied)
        return;
    keep_products(p, &all);
    read_store(&kept, p); /* another program may have been first */
    (void)find_products(&kept, p, m, o);
    limits_store_free(&kept);
}

/* --- the form of pinned weights --- */

/* Whether pinned weights of this type stay as in the file. */
static bool keeps_rows(const struct limits_store *s, const struct place *p, const char *type)
{
    const struct limits_line *found;
    char of[200];

    limits_name(&p->key, LIMITS_FORM, type, of);
    found = limits_store_find(s, LIMITS_FORM, of, now());
    return found != NULL && LIMITS_FORM_MARGIN * found->value[0] < found->value[1];
}

static void find_forms(const struct limits_store *s, const struct place *p, struct mw_model *m,
                       const struct mw_limits *l)
{
    for (uint32_t i = 0; i < l->n_rate; i++)
        mw_model_keep_rows(m, l->rate[i].type, keeps_rows(s, p, l->rate[i].type));
}

/* A description of a model has all forms that there may be.  Those that are not used get the rates
 * of the file. */
static void copy_rates(const struct limits_store *s, const struct place *p, struct mw_limits *l)
{
    for (const struct mw_rate *from = l->rate; from < l->rate + l->n_rate; from++)
        for (struct mw_rate *to = l->rate; to < l->rate + l->n_rate; to++) {
            const size_t n = strlen(from->type);

            if (strncmp(to->type, from->type, n) != 0 ||
                strcmp(to->type + n, MW_RATE_INTERLEAVED) != 0 || !keeps_rows(s, p, from->type))
                continue;
            to->column_bytes_s = from->column_bytes_s;
            to->few_bytes_s = from->few_bytes_s;
            to->chunk_flops_s = from->chunk_flops_s;
        }
}

/* The first trusted rates of both forms decide, for good: a choice that changed from day to day
 * would make every comparison between days worthless. */
static void settle_forms(const struct place *p, struct mw_model *m, const struct mw_limits *l)
{
    struct limits_line lines[MW_RATES_MAX] = { 0 };
    struct limits_store kept;
    size_t n = 0;

    for (uint32_t i = 0; i < l->n_rate; i++) {
        struct limits_line *line = &lines[n];

        if (!limits_forms(l, l->rate[i].type, &line->value[0], &line->value[1]))
            continue;
        line->kind = LIMITS_FORM;
        line->time_s = now();
        limits_name(&p->key, LIMITS_FORM, l->rate[i].type, line->of);
        n++;
    }
    if (n == 0)
        return;
    keep_lines(p, lines, n);
    read_store(&kept, p); /* another program may have been first */
    find_forms(&kept, p, m, l);
    limits_store_free(&kept);
}

/* --- limits --- */

_Static_assert(sizeof(struct plan_anchor) == LIMITS_VALUES * sizeof(double),
               "a line holds the numbers of an anchor");

static void keep_anchor(const struct place *p, const struct plan_anchor *a)
{
    struct limits_line l = { .kind = LIMITS_ANCHOR,
                             .time_s = (int64_t)a->measured_s,
                             .is_doubtful = plan_anchor_is_doubtful(a) };

    if (p->key.model[0] == '\0')
        return;
    limits_name(&p->key, LIMITS_ANCHOR, "", l.of);
    memcpy(l.value, a, sizeof l.value);
    keep_lines(p, &l, 1);
}

static void find_anchor(const struct limits_store *s, const struct place *p,
                        struct plan_anchor *a)
{
    const struct limits_line *l;
    char of[200];

    *a = (struct plan_anchor){ 0 };
    limits_name(&p->key, LIMITS_ANCHOR, "", of);
    l = p->key.model[0] != '\0' ? limits_store_find(s, LIMITS_ANCHOR, of, now()) : NULL;
    if (l != NULL)
        memcpy(a, l->value, sizeof *a);
}

/* The settings with which answers were measured since the program started; of n, the newest is
 * the first, and becomes the first of the file. */
static void keep_tried(const struct place *p, const struct mw_tried *tried, size_t n)
{
    struct limits_line lines[MW_TRIED_MOST] = { 0 };
    size_t n_line = 0;

    if (p->key.model[0] == '\0')
        return;
    for (size_t i = n; i-- > 0;) {
        if (!tried[i].is_session)
            continue;
        tried_to_line(&tried[i], &lines[n_line]);
        limits_name(&p->key, LIMITS_TRIED, "", lines[n_line++].of);
    }
    keep_lines(p, lines, n_line);
}

static size_t find_tried(const struct limits_store *s, const struct place *p,
                         struct mw_tried *tried)
{
    char of[200];

    limits_name(&p->key, LIMITS_TRIED, "", of);
    return p->key.model[0] != '\0' ? limits_store_tried(s, of, now(), tried) : 0;
}

/* A mw_limits_keep_fn; ctx is a struct place. */
static void keep_measured(void *ctx, const struct mw_limits *corrected,
                          const struct plan_anchor *anchor, const struct mw_tried *tried,
                          size_t n_tried)
{
    const struct place *p = ctx;

    if (corrected != NULL)
        keep(p, corrected);
    if (anchor->measured_s > p->anchor_s)
        keep_anchor(p, anchor);
    keep_tried(p, tried, n_tried);
    free(ctx);
}

static void use(struct mw_model *m, const struct limits_store *s, const struct place *p,
                const struct mw_limits *l)
{
    struct place *copy = malloc(sizeof *copy);
    struct mw_tried tried[MW_TRIED_MOST];
    struct plan_anchor anchor;

    find_anchor(s, p, &anchor);
    mw_model_set_limits(m, l);
    mw_model_set_anchor(m, &anchor);
    mw_model_set_tried(m, tried, find_tried(s, p, tried));
    if (copy == NULL)
        return;
    *copy = *p;
    copy->anchor_s = anchor.measured_s;
    mw_model_keep_limits(m, keep_measured, copy);
}

/* Measure the listed rates that are not known.  If they then contradict each other, measure all
 * of them in one go. */
static int measure_rates(const struct mw_options *o, struct mw_limits *l, struct err *e)
{
    if (mw_rates_measure(o, l, e) != 0)
        return -1;
    if (limits_agree(l))
        return 0;
    for (uint32_t i = 0; i < l->n_rate; i++)
        l->rate[i].measured_s = 0;
    return mw_rates_measure(o, l, e);
}

/* Measure what is not known in *l, of a model or, with m NULL, of a folder. */
static int measure_rest(struct mw_model *m, const char *folder, const struct mw_options *o,
                        struct mw_limits *l, struct err *e)
{
    struct mw_limits fresh;
    int rc = 0;

    if (l->memory_bytes_s > 0)
        return m != NULL ? measure_rates(o, l, e) : 0;
    rc = m != NULL ? mw_limits_measure(m, o, MEASURE_SECONDS, &fresh, e)
                   : mw_limits_measure_disk(folder, o, MEASURE_SECONDS / 2, &fresh, e);
    if (rc != 0)
        return -1;
    fresh.ways = l->ways;
    fresh.steps = l->steps;
    fresh.expert_use = l->expert_use;
    fresh.n_rate = l->n_rate;
    memcpy(fresh.rate, l->rate, sizeof fresh.rate);
    *l = fresh;
    return m != NULL ? measure_rates(o, l, e) : 0;
}

/* The limits of the disk of a folder, for a model without a file, of which only the rest can be
 * measured. */
static void take_disk(struct mw_limits *l, const struct mw_limits *folder)
{
    l->disk_bytes_s = folder->disk_bytes_s;
    l->direct_bytes_s = folder->direct_bytes_s;
    l->buffered_bytes_s = folder->buffered_bytes_s;
    l->lookup_s = folder->lookup_s;
    l->read_cpu_s = folder->read_cpu_s;
    l->contention = folder->contention;
}

/* Was everything measured just now, while nothing disturbed it? */
static bool is_fresh(const struct mw_limits *l)
{
    int64_t oldest_s =
        l->measured_s < l->steps.measured_s ? l->measured_s : l->steps.measured_s;

    for (uint32_t i = 0; i < l->n_rate; i++)
        if (l->rate[i].measured_s < oldest_s)
            oldest_s = l->rate[i].measured_s;
    return !mw_limits_doubtful(l) && now() - oldest_s <= FRESH_S;
}

/* Set the rate of a copy on another disk: the one that is kept for that disk, or measure it. */
static void add_mirror(const struct limits_store *s, const struct place *p, struct mw_model *m,
                       const struct mw_options *o, enum limits_effort effort,
                       struct mw_limits *l)
{
    struct mw_limits known = { 0 };
    struct err ignored = ERR_INIT;
    struct place mirror = *p;
    struct stat st;

    if (o->mirror == NULL || !mw_model_has_file(m) || stat(o->mirror, &st) != 0)
        return;
    mirror.key.dev = st.st_dev;
    if (effort != LIMITS_AGAIN)
        (void)limits_store_get(s, &mirror.key, now(), &known);
    l->mirror_bytes_s = known.disk_bytes_s;
    if (l->mirror_bytes_s > 0 || effort == LIMITS_KEPT || !(l->memory_bytes_s > 0) ||
        mw_mirror_measure(m, o, MIRROR_SECONDS, &l->mirror_bytes_s, &ignored) != 0 ||
        !(l->mirror_bytes_s > 0))
        return;
    known = (struct mw_limits){ .disk_bytes_s = l->mirror_bytes_s,
                                .memory_bytes_s = l->memory_bytes_s,
                                .fresh_bytes_s = l->fresh_bytes_s,
                                .lookup_s = l->lookup_s,
                                .read_cpu_s = l->read_cpu_s,
                                .contention = l->contention,
                                .is_doubtful = l->is_doubtful,
                                .measured_s = now() };
    if (mirror.key.dev != p->key.dev)
        keep(&mirror, &known);
}

/* Set the limits of m; s are the cached ones. */
static int ensure(struct limits_store *s, const struct place *p, struct mw_model *m,
                  const struct mw_options *o, enum limits_effort effort, struct err *e)
{
    struct mw_limits l = { 0 }, known;
    bool is_complete;
    int rc = 0;

    mw_rates_list(m, o, &l);
    find_forms(s, p, m, &l);
    mw_rates_list(m, o, &l);
    known = l;
    is_complete = limits_store_get(s, &p->key, now(), &known) &&
                  (limits_agree(&known) || limits_of_one_go(&known));
    if (effort == LIMITS_AGAIN || (effort == LIMITS_FRESH && !is_fresh(&known))) {
        is_complete = false;
        l.expert_use = known.expert_use; /* cannot be measured */
        l.ways = known.ways;
        if (effort != LIMITS_FRESH) /* which measures ways once a day */
            l.ways.measured_s = 0;
    } else {
        l = known;
    }
    /* One of both was measured in a bad moment.  Rates alone would be measured again by each
     * start, without an end if it was memory. */
    if (effort != LIMITS_KEPT && !limits_memory_allows(&l))
        l.memory_bytes_s = 0;
    if (effort != LIMITS_KEPT && !is_complete) {
        rc = measure_rest(m, NULL, o, &l, e);
        if (rc == 0 && !mw_model_has_file(m))
            take_disk(&l, &known);
        if (rc == 0) {
            keep(p, &l);
            settle_forms(p, m, &l);
        }
        /* A file that is too small to measure has the disk of others. */
        if (!(l.disk_bytes_s > 0) && mw_model_has_file(m))
            l.disk_bytes_s = known.disk_bytes_s;
    }
    if (rc == 0)
        add_mirror(s, p, m, o, effort, &l);
    if (rc == 0 || l.memory_bytes_s > 0)
        use(m, s, p, &l);
    return rc;
}

/*
 * Measure all but the disk of a model without a file.  Nothing is kept after this process, but
 * the next model of the list has the same memory and weight types.
 */
static void ensure_for_now(struct limits_store *kept, const struct place *p, struct mw_model *m,
                           const struct mw_options *o)
{
    static struct limits_store seen; /* of doctor, which has one thread */
    struct limits_line lines[LIMITS_LINES];
    struct err ignored = ERR_INIT;
    struct mw_limits l = { 0 };
    size_t n;

    mw_rates_list(m, o, &l);
    (void)limits_store_get(kept, &p->key, now(), &l);
    (void)limits_store_get(&seen, &p->key, now(), &l);
    if (measure_rest(m, NULL, o, &l, &ignored) != 0)
        return;
    n = limits_store_lines(&p->key, &l, lines);
    for (size_t i = 0; i < n; i++)
        (void)limits_store_add(&seen, &lines[i]);
    mw_model_set_limits(m, &l);
}

static int ensure_model(struct mw_model *m, const char *model_path, const struct mw_options *o,
                        enum limits_effort effort, struct err *e)
{
    struct limits_store kept;
    struct place place;
    int rc = 0;

    /* They are part of the place.  doctor without a disk has compared them before many models. */
    limits_ensure_threads(o, effort == LIMITS_NO_DISK ? LIMITS_KEPT : effort);
    make_model_place(&place, m, model_path, o);
    if (!mw_model_has_file(m) && effort != LIMITS_KEPT && effort != LIMITS_NO_DISK)
        limits_ensure_folder(model_path, o); /* such a model has the disk of its folder */
    read_store(&kept, &place);
    ensure_products(&kept, &place, m, o, effort != LIMITS_NO_DISK);
    if (effort == LIMITS_NO_DISK)
        ensure_for_now(&kept, &place, m, o);
    else
        rc = ensure(&kept, &place, m, o, effort, e);
    limits_store_free(&kept);
    return rc;
}

void limits_ensure(struct mw_model *m, const char *model_path, const struct mw_options *o,
                   enum limits_effort effort)
{
    struct err ignored = ERR_INIT;

    (void)ensure_model(m, model_path, o, effort, &ignored);
}

void limits_ensure_shown(struct mw_model *m, const char *model_path, const struct mw_options *o,
                         bool is_quiet)
{
    struct ticker line;

    ticker_begin(&line, is_quiet, "measuring disk, memory and processors of this machine");
    limits_ensure(m, model_path, o, LIMITS_MEASURE);
    ticker_end(&line);
}

int limits_measure_again(struct mw_model *m, const char *model_path, const struct mw_options *o,
                         struct err *e)
{
    return ensure_model(m, model_path, o, LIMITS_AGAIN, e);
}

/* --- folders, and models that are not opened --- */

static int ensure_folder(const char *folder, const struct mw_options *o, bool is_again,
                         struct err *e)
{
    struct mw_limits l = { 0 };
    struct limits_store kept;
    struct place place;
    int rc;

    limits_ensure_threads(o, LIMITS_KEPT);
    make_place(&place, folder, o);
    place.key.model[0] = '\0';
    read_store(&kept, &place);
    if (!is_again)
        (void)limits_store_get(&kept, &place.key, now(), &l);
    limits_store_free(&kept);
    if (l.memory_bytes_s > 0)
        return 0;
    rc = measure_rest(NULL, folder, o, &l, e);
    if (rc == 0)
        keep(&place, &l);
    return rc;
}

int limits_measure_folder(const char *folder, const struct mw_options *o, struct err *e)
{
    return ensure_folder(folder, o, true, e);
}

void limits_ensure_folder(const char *folder, const struct mw_options *o)
{
    struct err ignored = ERR_INIT;

    (void)ensure_folder(folder, o, false, &ignored);
}

void limits_read(struct limits_store *kept)
{
    const struct mw_options none = { 0 };
    struct place place;

    make_place(&place, "", &none);
    read_store(kept, &place);
    (void)find_threads(kept, &place);
}

bool limits_kept(void *ctx, const char *path, const struct mw_options *o,
                 const struct mw_read_sizes *sizes, struct mw_limits *out,
                 struct plan_anchor *anchor)
{
    const struct limits_store *kept = ctx;
    struct place place;

    make_place(&place, path, o);
    if (sizes != NULL)
        set_sizes(&place.key, sizes);
    (void)limits_store_get(kept, &place.key, now(), out);
    copy_rates(kept, &place, out);
    find_anchor(kept, &place, anchor);
    return out->memory_bytes_s > 0;
}

size_t limits_tried(const char *model_path, const struct mw_options *o, struct mw_tried *list)
{
    struct limits_store kept;
    struct place place;
    size_t n;

    make_place(&place, model_path, o);
    read_store(&kept, &place);
    n = find_tried(&kept, &place, list);
    limits_store_free(&kept);
    return n;
}
