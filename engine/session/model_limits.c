/*
 * model_limits.c - the rates that disk, memory and arithmetic reach for the model at hand, and how
 * its weights will be read.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/machine/load.h"
#include "engine/machine/machine.h"
#include "engine/machine/probe.h"
#include "engine/model/rates.h"
#include "engine/model/steps.h"
#include "engine/model/thread_rates.h"
#include "engine/model/way_rates.h"
#include "engine/session/model.h"
#include "engine/session/options.h"
#include "engine/session/packing.h"
#include "engine/session/product_choice.h"
#include "engine/session/tried.h"
#include "engine/stream/io_choice.h"
#include "engine/stream/shape.h"

/* Larger than most caches, for processors whose caches a program cannot drop. */
#define MOST_BUFFER (256 * MIB)
/* Fewer bytes of either kind of read compare nothing: 32 MiB take some 10 ms. */
#define COMPARE_BYTES (32 * MIB)
#define DISK_BUFFER   (64 * MIB) /* to read a file that is written to measure a disk */
#define LOOKUP_READ   4096
#define RATE_SECONDS  0.08  /* of each rate of a weight type */
#define WAY_SECONDS   0.016 /* of each way of products */
#define THREAD_SECONDS 0.048 /* of each number of threads, one column and many */
#define PRESSURE      0.25  /* share of the last ten seconds in which tasks waited */
#define OWN_SECONDS   1.0   /* of processor time, before pressure may be our own */
#define STEP_SECONDS  0.012 /* of each cost of struct mw_steps */
#define FRESH_SECONDS 0.02
#define FRESH_BUFFER  (16 * MIB)

int limits_file(const struct mw_model *m)
{
    const struct model_file *files = m->catalogue->files;
    uint32_t best = 0;

    for (uint32_t i = 1; i < m->catalogue->n_file; i++)
        if (files[i].size > files[best].size)
            best = i;
    return files[best].fd;
}

static void set_disk(struct mw_limits *out, const struct probe_rate *r)
{
    out->disk_bytes_s = r->bytes_s;
    out->read_cpu_s = r->cpu_s;
    out->is_doubtful |= probe_is_doubtful(r);
}

/* The reads with which a disk is measured. */
struct reads {
    uint32_t depth; /* in flight */
    size_t bytes;   /* of each */
};

/* Direct and buffered reads in turn, from block `first` on. */
struct both {
    struct probe_rate direct, buffered;
};

/* Do both rates say that buffered reads are faster here, in a measurement that one can trust? */
static bool is_buffered_faster(const struct both *b)
{
    return b->direct.bytes >= COMPARE_BYTES && b->buffered.bytes >= COMPARE_BYTES &&
           !probe_is_doubtful(&b->direct) && !probe_is_doubtful(&b->buffered) &&
           io_prefers_buffered(b->direct.bytes_s, b->buffered.bytes_s);
}

/*
 * Rates of the disk for `seconds`.  auto compares direct with buffered reads and then uses the
 * rate of the kind that it will choose, which is *is_direct or not.  Reads through the page cache
 * are chosen only if a second measurement also finds them faster: a busy moment must not change
 * how a model is read.  Buffered reads take page cache as well as buffers, which is why they get
 * half of what p allows.
 */
static int measure_disk(int fd, enum mw_io io, const struct reads *reads, double seconds,
                        const struct probe_options *p, struct mw_limits *out, bool *is_direct,
                        struct err *e)
{
    struct probe_options disk = { .seconds = seconds,
                                  .more_seconds = seconds,
                                  .buffer_bytes = p->buffer_bytes / 2 };
    struct probe_rate direct = { 0 };
    struct both both = { 0 }, again = { 0 };

    *is_direct = io == MW_IO_DIRECT;
    if (io != MW_IO_AUTO) {
        if (probe_disk(fd, io == MW_IO_DIRECT, reads->depth, reads->bytes, &disk, &direct, e) !=
            0)
            return -1;
        set_disk(out, &direct);
        return 0;
    }
    disk.seconds = seconds / 2;
    if (probe_disk_both(fd, reads->depth, reads->bytes, &disk, &both.direct, &both.buffered,
                        e) != 0)
        return -1;
    disk.first = (both.direct.bytes + both.buffered.bytes) / reads->bytes;
    if (is_buffered_faster(&both) &&
        probe_disk_both(fd, reads->depth, reads->bytes, &disk, &again.direct, &again.buffered,
                        e) != 0)
        return -1;
    *is_direct = both.direct.bytes > 0 && !is_buffered_faster(&again);
    if (both.direct.bytes >= COMPARE_BYTES && both.buffered.bytes >= COMPARE_BYTES) {
        out->direct_bytes_s = both.direct.bytes_s;
        /* Never so much faster that it would be chosen, unless it was measured twice. */
        out->buffered_bytes_s = *is_direct ? fmin(both.buffered.bytes_s, both.direct.bytes_s)
                                           : both.buffered.bytes_s;
    }
    set_disk(out, *is_direct ? &both.direct : &both.buffered);
    return 0;
}

static void set_memory(struct mw_limits *out, const struct probe_rate *r)
{
    out->memory_bytes_s = r->bytes_s;
    out->is_doubtful |= probe_is_doubtful(r);
    out->measured_s = (int64_t)time(NULL);
}

/* Before other buffers are freed: the host of a virtual machine still has their memory. */
static int measure_fresh(uint64_t most_bytes, struct mw_limits *out, struct err *e)
{
    const struct probe_options p = { .seconds = FRESH_SECONDS,
                                     .buffer_bytes =
                                         most_bytes < FRESH_BUFFER ? most_bytes : FRESH_BUFFER };

    return probe_fresh(&p, &out->fresh_bytes_s, e);
}

/* Whether other programs made tasks wait just now.  The pressure of a program that has worked
 * itself may be its own. */
static bool was_busy(void)
{
    struct load own;

    load_begin(&own, "");
    return own.own_s < OWN_SECONDS && load_pressure("") > PRESSURE;
}

/* The time of one small read, as of a lookup row.  It is small, so it is measured shortly. */
static double measure_lookup(int fd, bool is_direct)
{
    const struct probe_options p = { .seconds = 0.04, .buffer_bytes = LOOKUP_READ };
    struct err ignored = ERR_INIT;
    struct probe_rate r;

    if (probe_disk(fd, is_direct, 1, LOOKUP_READ, &p, &r, &ignored) != 0 || !(r.bytes_s > 0))
        return 0;
    return LOOKUP_READ / r.bytes_s;
}

/*
 * Read as the stream of these options does: a mean block, and as many in flight.  Reads of 1/2
 * MiB are up to a tenth slower than those of 2 MiB.
 */
static struct reads reads_of(const struct mw_model *m, const struct mw_options *o)
{
    struct reads r = { SHAPE_PROBE_DEPTH, SHAPE_PROBE_BYTES };
    struct stream_shape shape;

    if (m->n_span == 0)
        return r;
    shape_make(&shape, m->spans, m->n_span, options_block(o));
    r.depth = shape.depth;
    if (shape.n_block > 0)
        r.bytes = (size_t)(m->hot_bytes / shape.n_block);
    return r;
}

size_t mw_read_bytes(struct mw_model *m, const struct mw_options *o)
{
    struct mw_options resolved = *o;
    struct err ignored = ERR_INIT;

    if (m->n_span == 0 || options_resolve(m, &resolved, &ignored) != 0)
        return 0;
    return reads_of(m, &resolved).bytes;
}

int mw_limits_measure(struct mw_model *m, const struct mw_options *o, double seconds,
                      struct mw_limits *out, struct err *e)
{
    struct mw_options resolved = *o;
    struct probe_options p = { .seconds = seconds / 3,
                               .more_seconds = seconds / 6,
                               .buffer_bytes = MOST_BUFFER };
    struct probe_rate memory = { 0 };
    struct reads reads;
    bool is_direct = false;

    *out = (struct mw_limits){ .is_doubtful = was_busy() };
    if (options_resolve(m, &resolved, e) != 0)
        return -1;
    out->n_thread = resolved.n_thread;
    reads = reads_of(m, &resolved);
    if (p.buffer_bytes > resolved.memory_bytes / 2)
        p.buffer_bytes = resolved.memory_bytes / 2;
    if (measure_fresh(p.buffer_bytes, out, e) != 0 ||
        (mw_model_has_file(m) && measure_disk(limits_file(m), o->io, &reads, seconds * 2 / 3,
                                              &p, out, &is_direct, e) != 0) ||
        probe_memory(resolved.n_thread, &p, &memory, e) != 0 ||
        (out->disk_bytes_s > 0 &&
         probe_contention(limits_file(m), is_direct, reads.depth, reads.bytes,
                          resolved.n_thread, &p, &out->contention, e) != 0))
        return -1;
    set_memory(out, &memory);
    if (mw_model_has_file(m))
        out->lookup_s = measure_lookup(limits_file(m), o->io != MW_IO_BUFFERED);
    return 0;
}

void limits_add_rate(struct mw_limits *l, const char *type)
{
    struct mw_rate *r = &l->rate[l->n_rate++];

    *r = (struct mw_rate){ 0 };
    snprintf(r->type, sizeof r->type, "%s", type);
}

void mw_rates_list(const struct mw_model *m, const struct mw_options *o, struct mw_limits *out)
{
    struct type_rate types[MW_RATE_TYPES], others;
    uint32_t n = rates_list(m->desc, types, MW_RATE_TYPES, &others);
    struct packing packing;

    out->n_rate = 0;
    for (uint32_t i = 0; i < n; i++)
        limits_add_rate(out, tensor_type_info(types[i].type)->name);
    packing_choose(m, o, &packing);
    for (uint32_t i = 0; i < n; i++) {
        char laid[sizeof out->rate[0].type];

        limits_laid_type(tensor_type_info(types[i].type)->name, &packing, laid);
        if (laid[0] != '\0')
            limits_add_rate(out, laid);
    }
}

/* The type and form of a name; a type of TYPE_COUNT if nothing is measured for it. */
static struct type_rate rate_of_name(const char *name)
{
    const char *form = strstr(name, MW_RATE_INTERLEAVED);
    size_t length = form != NULL ? (size_t)(form - name) : strlen(name);
    struct type_rate r = { .form = form != NULL ? FORM_INTERLEAVED : FORM_FILE };
    uint32_t type = 0;

    if (strcmp(name, MW_RATE_PACKED) == 0)
        return (struct type_rate){ .type = TYPE_BF16, .form = FORM_PACKED };
    while (type < TYPE_COUNT && !(tensor_type_info(type)->is_computed &&
                                  strlen(tensor_type_info(type)->name) == length &&
                                  memcmp(tensor_type_info(type)->name, name, length) == 0))
        type++;
    r.type = (enum tensor_type)type;
    return r;
}

static bool has_interleaved(const struct packing *p, enum tensor_type type)
{
    return type != TYPE_COUNT && packing_interleaves(p, type);
}

void limits_laid_type(const char *type, const struct packing *p, char laid[16])
{
    laid[0] = '\0';
    if (p->packs && strcmp(type, tensor_type_info(TYPE_BF16)->name) == 0)
        snprintf(laid, 16, "%s", MW_RATE_PACKED);
    else if (has_interleaved(p, rate_of_name(type).type))
        snprintf(laid, 16, "%.11s%s", type, MW_RATE_INTERLEAVED);
}

/* List the types that were not measured.  Returns their number; index[i] is the rate of type i.
 */
static uint32_t list_unmeasured(const struct mw_limits *l, const struct kernels *kernels,
                                struct type_rate *types, uint32_t *index)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < l->n_rate; i++) {
        struct type_rate r = rate_of_name(l->rate[i].type);

        if (l->rate[i].measured_s != 0 || r.type == TYPE_COUNT ||
            (r.form == FORM_INTERLEAVED && kernels->mul_interleaved == NULL))
            continue;
        index[n] = i;
        types[n++] = r;
    }
    return n;
}

static struct rates_options rates_options_of(const struct mw_options *o,
                                             const struct kernels *kernels)
{
    struct rates_options how = { .kernels = kernels,
                                 .exact = o->exact,
                                 .n_thread = o->n_thread,
                                 .seconds = RATE_SECONDS,
                                 .more_seconds = RATE_SECONDS,
                                 .buffer_bytes = MOST_BUFFER };
    struct mw_machine machine;

    if (o->memory_bytes > 0 && how.buffer_bytes > o->memory_bytes / 2)
        how.buffer_bytes = o->memory_bytes / 2;
    if (how.n_thread <= 0) {
        mw_machine_read(&machine);
        how.n_thread = machine.n_thread;
    }
    return how;
}

_Static_assert(LIMITS_FEW == RATES_FEW, "the rate of few columns is that of a form");
_Static_assert(MW_WAYS_MAX == WAYS_MOST, "all ways of a choice are shown");

static int compare_ways(const struct rates_options *how, struct way_rates *out, struct err *e)
{
    struct rates_options o = *how;

    o.seconds = WAY_SECONDS;
    *out = (struct way_rates){ .is_doubtful = was_busy() };
    return out->is_doubtful ? 0 : way_rates_measure(&o, out, e);
}

void mw_ways_choose(const struct mw_ways *w)
{
    for (int c = 0; c < MW_WAY_CHOICES && w->is_known; c++)
        ways_choose((enum way_choice)c, (int)w->way[c]);
}

static int measure_ways(const struct rates_options *how, struct mw_ways *out, struct err *e)
{
    struct way_rates rates;

    if (compare_ways(how, &rates, e) != 0)
        return -1;
    way_rates_settle(&rates, (int64_t)time(NULL), out);
    mw_ways_choose(out);
    return 0;
}

int mw_threads_measure(const struct mw_options *o, struct mw_threads *out, struct err *e)
{
    const struct kernels *kernels = kernels_of(o, e);
    struct rates_options how;
    struct mw_machine machine;

    mw_machine_read(&machine);
    *out = (struct mw_threads){ .n_core = machine.n_core, .n_cpu = machine.n_cpu };
    if (kernels == NULL)
        return -1;
    how = rates_options_of(o, kernels);
    if (how.buffer_bytes < RATES_LEAST_BUFFER)
        return 0;
    how.seconds = THREAD_SECONDS;
    out->is_doubtful = was_busy();
    if (!out->is_doubtful && thread_rates_measure(&how, out, e) != 0)
        return -1;
    out->measured_s = (int64_t)time(NULL);
    return 0;
}

void mw_threads_choose(const struct mw_threads *t)
{
    char why[MW_THREADS_WHY];

    if (t->measured_s != 0 && !t->is_doubtful && t->core_s > 0)
        machine_choose_threads(t->n_core, t->n_cpu, limits_threads(t),
                               mw_threads_text(t, why, sizeof why));
}

int mw_ways_compare(const struct mw_options *o, struct mw_choice out[MW_WAY_CHOICES],
                    struct err *e)
{
    static const struct mw_choice choices[MW_WAY_CHOICES] = {
        [WAY_FILE_5] = { .key = "prefetch_file_5_bits",
                         .label = "prefetch, up to 5 bits, in the file", .type = "Q4_0" },
        [WAY_FILE_6] = { .key = "prefetch_file_6_bits",
                         .label = "prefetch, 6 bits, in the file", .type = "Q6_K" },
        [WAY_FILE_8] = { .key = "prefetch_file_8_bits",
                         .label = "prefetch, 8 bits, in the file", .type = "Q8_0" },
        [WAY_INTERLEAVED_5] = { .key = "prefetch_interleaved_5_bits",
                                .label = "prefetch, up to 5 bits, interleaved", .type = "Q4_0" },
        [WAY_INTERLEAVED_6] = { .key = "prefetch_interleaved_6_bits",
                                .label = "prefetch, 6 bits, interleaved", .type = "Q6_K" },
        [WAY_INTERLEAVED_8] = { .key = "prefetch_interleaved_8_bits",
                                .label = "prefetch, 8 bits, interleaved", .type = "Q8_0" },
        [WAY_FEW_COLS] = { .key = "few_columns",
                           .label = "four rows at a time up to", .type = "Q4_0, 3 and 6 columns" },
        [WAY_PANEL_COLS] = { .key = "panel_columns",
                             .label = "rows are unpacked once for", .type = "Q4_0, 256 columns" },
        [WAY_LANE_COLS] = { .key = "interleaved_columns",
                            .label = "interleaved rows are read once for",
                            .type = "Q4_0, 256 columns" },
        [WAY_AMX_COLS] = { .key = "amx_columns",
                           .label = "interleaved rows by AMX from",
                           .type = "Q4_0, 24 and 48 columns" },
    };
    const struct kernels *kernels = kernels_of(o, e);
    struct rates_options how;
    struct way_rates rates;

    if (kernels == NULL)
        return -1;
    how = rates_options_of(o, kernels);
    if (compare_ways(&how, &rates, e) != 0)
        return -1;
    for (int i = 0; i < MW_WAY_CHOICES; i++) {
        const enum way_choice c = (enum way_choice)i;
        const double *bytes_s = rates.bytes_s[c];

        out[c] = choices[c];
        if (!ways_matter(c, kernels))
            continue;
        out[c].n = (uint32_t)ways_count(c);
        out[c].chosen = out[c].better = (uint32_t)ways_chosen(c);
        for (uint32_t w = 0; w < out[c].n; w++) {
            ways_text(c, (int)w, out[c].way[w].text, sizeof out[c].way[w].text);
            out[c].way[w].bytes_s = rates.is_doubtful ? 0 : bytes_s[w];
        }
        if (!rates.is_doubtful && bytes_s[rates.best[c]] >= WAY_MARGIN * bytes_s[out[c].chosen])
            out[c].better = (uint32_t)rates.best[c];
    }
    return 0;
}

int mw_rates_measure(const struct mw_options *o, struct mw_limits *l, struct err *e)
{
    const struct kernels *kernels = kernels_of(o, e);
    struct type_rate types[MW_RATES_MAX];
    uint32_t index[MW_RATES_MAX], n;
    struct rates_options how;

    if (kernels == NULL)
        return -1;
    how = rates_options_of(o, kernels);
    n = list_unmeasured(l, how.kernels, types, index);
    if (how.buffer_bytes < RATES_LEAST_BUFFER) /* a budget that no model fits */
        return 0;
    if (l->ways.measured_s == 0 && measure_ways(&how, &l->ways, e) != 0)
        return -1;
    if (l->steps.measured_s == 0) {
        struct steps_options steps = { how.kernels, how.n_thread, STEP_SECONDS };

        if (steps_measure(&steps, &l->steps, e) != 0)
            return -1;
        l->steps.measured_s = (int64_t)time(NULL);
    }
    how.round_s = l->steps.round_s;
    if (rates_measure(&how, types, n, e) != 0)
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        struct mw_rate *r = &l->rate[index[i]];

        r->column_bytes_s = types[i].column.bytes_s;
        r->few_bytes_s = types[i].few.bytes_s;
        r->chunk_flops_s = types[i].chunk.bytes_s;
        r->is_doubtful = probe_is_doubtful(&types[i].column) ||
                         probe_is_doubtful(&types[i].few) ||
                         probe_is_doubtful(&types[i].chunk);
        r->measured_s = (int64_t)time(NULL);
    }
    return 0;
}

struct limits_box *limits_new(void)
{
    struct limits_box *b = calloc(1, sizeof *b);

    if (b != NULL)
        pthread_mutex_init(&b->lock, NULL);
    return b;
}

void limits_let_keep(struct mw_model *m)
{
    struct limits_box *b = m->limits;
    struct plan_anchor anchor;

    if (b == NULL || b->keep == NULL)
        return;
    mw_model_anchor(m, &anchor);
    b->keep(b->keep_ctx, b->is_corrected ? &b->now : NULL, &anchor, m->tried->list, m->tried->n);
    b->keep = NULL;
}

void limits_free(struct limits_box *b)
{
    if (b == NULL)
        return;
    pthread_mutex_destroy(&b->lock);
    free(b);
}

static void replace(struct limits_box *b, const struct mw_limits *limits, bool is_corrected)
{
    pthread_mutex_lock(&b->lock);
    b->now = *limits;
    b->is_corrected = is_corrected;
    pthread_mutex_unlock(&b->lock);
}

void mw_model_set_limits(struct mw_model *m, const struct mw_limits *limits)
{
    mw_ways_choose(&limits->ways);
    replace(m->limits, limits, false);
}

void limits_correct(const struct mw_model *m, const struct mw_limits *limits)
{
    replace(m->limits, limits, true);
}

void mw_model_keep_limits(struct mw_model *m, mw_limits_keep_fn *fn, void *ctx)
{
    limits_let_keep(m);
    m->limits->keep = fn;
    m->limits->keep_ctx = ctx;
}

struct mw_limits limits_of(const struct mw_model *m)
{
    struct mw_limits l;

    pthread_mutex_lock(&m->limits->lock);
    l = m->limits->now;
    pthread_mutex_unlock(&m->limits->lock);
    return l;
}

void mw_model_limits(const struct mw_model *m, struct mw_limits *out)
{
    *out = limits_of(m);
}

double limits_disk_within(double measured, const struct mw_options *o)
{
    double limit = (double)o->disk_rate;

    return limit > 0 && (measured <= 0 || limit < measured) ? limit : measured;
}

double limits_disk(const struct mw_model *m, const struct mw_options *o)
{
    struct mw_options mirror = { .disk_rate = o->mirror_rate > 0 ? o->mirror_rate : o->disk_rate };
    struct mw_limits l = limits_of(m);
    double disk = limits_disk_within(l.disk_bytes_s, o);

    if (o->mirror == NULL || !(disk > 0))
        return disk;
    return disk + limits_disk_within(l.mirror_bytes_s, &mirror);
}

int limits_probe(struct mw_model *m, const struct mw_options *o, int fd,
                 const struct probe_options *p, struct probe_rate *out, struct err *e)
{
    struct probe_options q = *p;
    struct reads reads;
    struct mw_options resolved = *o;

    if (options_resolve(m, &resolved, e) != 0)
        return -1;
    reads = reads_of(m, &resolved);
    if (q.buffer_bytes < reads.depth * reads.bytes)
        q.buffer_bytes = reads.depth * reads.bytes;
    return probe_disk(fd, o->io != MW_IO_BUFFERED, reads.depth, reads.bytes, &q, out, e);
}

/* Some file systems have no files without a name.  There, the name is removed at once. */
static int open_unnamed(const char *folder)
{
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    char path[4096];

    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) ||
        snprintf(path, sizeof path, "%s/.memwall-XXXXXX", folder) >= (int)sizeof path)
        return fd;
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

int limits_open_noise(const char *folder, struct err *e)
{
    int fd = open_unnamed(folder);
    uint64_t *piece = fd >= 0 ? malloc(MIB) : NULL, x = 0x9e3779b97f4a7c15u;
    uint64_t left = piece != NULL ? DISK_FILE : 0;

    while (left > 0) {
        for (size_t i = 0; i < MIB / sizeof *piece; i++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            piece[i] = x;
        }
        if (write(fd, piece, MIB) != (ssize_t)MIB)
            break;
        left -= MIB;
    }
    if (piece == NULL || left > 0 || fsync(fd) != 0) {
        err_sys(e, "could not write a file to measure the disk of \"%.150s\"", folder);
        if (fd >= 0)
            close(fd);
        fd = -1;
    }
    free(piece);
    return fd;
}

int mw_limits_measure_disk(const char *folder, const struct mw_options *o, double seconds,
                           struct mw_limits *out, struct err *e)
{
    struct probe_options p = { .seconds = seconds / 2,
                               .more_seconds = seconds / 4,
                               .buffer_bytes = DISK_BUFFER };
    struct probe_rate memory = { 0 };
    const struct reads reads = { SHAPE_PROBE_DEPTH, SHAPE_PROBE_BYTES };
    struct mw_machine machine;
    int fd, rc, n_thread;
    bool is_direct;

    *out = (struct mw_limits){ .is_doubtful = was_busy() };
    mw_machine_read(&machine);
    n_thread = out->n_thread = o->n_thread > 0 ? o->n_thread : machine.n_thread;
    if (measure_fresh(p.buffer_bytes, out, e) != 0)
        return -1;
    fd = limits_open_noise(folder, e);
    if (fd < 0)
        return -1;
    rc = measure_disk(fd, o->io, &reads, seconds / 2, &p, out, &is_direct, e);
    out->lookup_s = measure_lookup(fd, o->io != MW_IO_BUFFERED);
    if (rc == 0)
        rc = probe_memory(n_thread, &p, &memory, e);
    if (rc == 0)
        rc = probe_contention(fd, is_direct, reads.depth, reads.bytes, n_thread, &p,
                              &out->contention, e);
    close(fd);
    set_memory(out, &memory);
    return rc;
}

int mw_io_choose(const struct mw_model *m, const struct mw_options *o, struct mw_io_choice *out,
                 struct err *e)
{
    struct mw_limits l = limits_of(m);
    const struct stream_options so = { .io = (enum stream_io)o->io,
                                       .bytes_s = o->disk_rate,
                                       .direct_bytes_s = l.direct_bytes_s,
                                       .buffered_bytes_s = l.buffered_bytes_s };
    struct io_choice choice;
    struct source source;

    if (!mw_model_has_file(m)) {
        out->name = mw_io_name(o->io != MW_IO_AUTO ? o->io
                               : io_prefers_buffered(l.direct_bytes_s, l.buffered_bytes_s)
                                   ? MW_IO_BUFFERED
                                   : MW_IO_DIRECT);
        snprintf(out->reason, sizeof out->reason, "assumed: there is no file");
        return 0;
    }
    if (io_choice_open(&choice, &source, m->catalogue, &so, e) != 0)
        return -1;
    source_close(&source);
    out->name = choice.name;
    snprintf(out->reason, sizeof out->reason, "%s", choice.reason);
    return 0;
}
