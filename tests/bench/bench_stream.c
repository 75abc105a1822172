/*
 * bench_stream MODEL [SECONDS [NAME=VALUE]…]: compare the stream with a plain loop of reads.
 *
 * The stream reads the tensors of a model in the order of the file, with several slot sizes,
 * rings and depths.  A plain loop of large direct reads (four threads, 4 MiB each) takes turns
 * with it in slices of a few tenths of a second, so that a busy or unsteady disk slows both
 * alike.  Each goes on where it stopped, the loop half a file away, so that neither reads data
 * that a disk or a host has just cached for the other.  Prints GB/s of both and the ratio.
 * Nothing is computed: the consumer returns each block at once, or after `work` nanoseconds per
 * KiB.
 *
 * The probes of the program run first; predictions are based on them.
 *
 * Names: target (KiB), slots, depth, pread (1: no io_uring), pinned (MiB), work.
 * With any of them, only that configuration runs.
 */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/units.h"
#include "engine/format/catalogue.h"
#include "engine/machine/probe.h"
#include "engine/stream/area.h"
#include "engine/stream/source.h"
#include "engine/stream/stream.h"
#include "engine/telemetry/telemetry.h"

enum { LOOP_THREADS = 4 };
#define LOOP_BYTES ((size_t)4 << 20)
#define SLICE_NS   300000000u
#define MIN_BYTES  65536

struct setting {
    unsigned target_kib, slots, depth, pread, pinned_mib, work;
};

static const struct setting settings[] = {
    { 512, 8, 8, 0, 0, 0 },  { 512, 16, 8, 0, 0, 0 }, { 1024, 4, 4, 0, 0, 0 },
    { 1024, 8, 4, 0, 0, 0 }, { 1024, 8, 8, 0, 0, 0 }, { 1024, 16, 8, 0, 0, 0 },
    { 2048, 4, 4, 0, 0, 0 }, { 2048, 8, 4, 0, 0, 0 }, { 2048, 8, 8, 0, 0, 0 },
    { 4096, 2, 2, 0, 0, 0 }, { 4096, 4, 2, 0, 0, 0 }, { 4096, 4, 4, 0, 0, 0 },
    { 4096, 8, 4, 0, 0, 0 }, { 4096, 8, 8, 0, 0, 0 }, { 4096, 8, 4, 1, 0, 0 },
    { 2048, 8, 4, 1, 0, 0 },
};

struct loop {
    int fd;
    uint64_t size, at; /* next read, shared by the threads */
    pthread_mutex_t lock;
    uint64_t bytes, end_ns;
    struct area buffer;
};

struct loop_thread {
    struct loop *loop;
    int i;
    pthread_t thread;
};

static void die(const struct err *e)
{
    char text[600];

    err_text(e, text, sizeof text);
    fprintf(stderr, "bench_stream: %s\n", text);
    exit(1);
}

/* --- the plain loop --- */

static void *loop_main(void *arg)
{
    struct loop_thread *t = arg;
    struct loop *l = t->loop;

    while (clock_ns() < l->end_ns) {
        uint64_t at;
        ssize_t n;

        pthread_mutex_lock(&l->lock);
        at = l->at;
        l->at = at + 2 * LOOP_BYTES <= l->size ? at + LOOP_BYTES : 0;
        pthread_mutex_unlock(&l->lock);
        n = pread(l->fd, l->buffer.base + (size_t)t->i * LOOP_BYTES, LOOP_BYTES, (off_t)at);
        pthread_mutex_lock(&l->lock);
        l->bytes += n > 0 ? (uint64_t)n : 0;
        pthread_mutex_unlock(&l->lock);
    }
    return NULL;
}

/* Read for a slice of time.  Returns the seconds that it took. */
static double run_loop(struct loop *l)
{
    struct loop_thread t[LOOP_THREADS];
    uint64_t start = clock_ns();

    l->end_ns = start + SLICE_NS;
    for (int i = 0; i < LOOP_THREADS; i++) {
        t[i].loop = l;
        t[i].i = i;
        if (pthread_create(&t[i].thread, NULL, loop_main, &t[i]) != 0)
            abort();
    }
    for (int i = 0; i < LOOP_THREADS; i++)
        pthread_join(t[i].thread, NULL);
    return (double)(clock_ns() - start) / 1e9;
}

/* --- the stream --- */

/* Start at the tensor that holds byte `from`, and go round once. */
static struct stream_span *make_spans(const struct catalogue *c, uint64_t from,
                                      uint32_t *n_span)
{
    struct stream_span *spans = calloc(c->n_tensor + 1, sizeof *spans);
    uint32_t first = 0;

    while (first < c->n_tensor && c->tensors[first].offset + c->tensors[first].bytes <= from)
        first++;
    *n_span = 0;
    for (uint32_t i = 0; i < c->n_tensor; i++) {
        const struct tensor_info *t = &c->tensors[(first + i) % c->n_tensor];
        struct stream_span *p = &spans[*n_span];

        if (t->bytes < MIN_BYTES)
            continue;
        p->file = t->file;
        p->offset = t->offset;
        p->n_row = tensor_rows(t);
        p->row_bytes = t->bytes / p->n_row;
        if (t->offset < from && t->offset + t->bytes > from) {
            uint64_t rows = (from - t->offset) / p->row_bytes;

            p->offset += rows * p->row_bytes;
            p->n_row -= rows;
        }
        if (sscanf(t->name, "blk.%u.", &p->layer) != 1)
            p->layer = MW_MAX_LAYER;
        p->in_prompt = true;
        ++*n_span;
    }
    return spans;
}

static void work_for(uint64_t ns)
{
    uint64_t end = clock_ns() + ns;

    while (ns > 0 && clock_ns() < end)
        ;
}

struct walk {
    struct stream *s;
    const struct stream_span *spans;
    uint32_t n_block, n_left;      /* of a pass */
    uint64_t stall_ns, passes, at; /* position in the file */
};

static void run_stream(struct walk *w, unsigned work, uint64_t slice_ns)
{
    uint64_t end = clock_ns() + slice_ns;
    struct err e = ERR_INIT;

    while (clock_ns() < end) {
        struct stream_block b;

        if (w->n_left == 0) {
            stream_pass_begin(w->s, false);
            w->n_left = w->n_block;
        }
        if (stream_next(w->s, &b, &w->stall_ns, &e) != 0)
            die(&e);
        work_for(work * (b.n_row * w->spans[b.span].row_bytes / 1024));
        w->at = w->spans[b.span].offset + b.row * w->spans[b.span].row_bytes;
        stream_give(w->s, &b);
        if (--w->n_left > 0)
            continue;
        if (stream_pass_end(w->s, &e) != 0)
            die(&e);
        w->passes++;
    }
}

static struct telemetry telemetry;

static void run_setting(const struct catalogue *c, struct loop *l, uint64_t *at,
                        const struct setting *set, double seconds)
{
    uint32_t n_span;
    struct stream_span *spans = make_spans(c, *at, &n_span);
    struct stream_options o = { .io = STREAM_DIRECT,
                                .no_uring = set->pread != 0,
                                .n_slot = set->slots,
                                .pinned_bytes = (uint64_t)set->pinned_mib * MIB };
    struct walk w = { .spans = spans, .at = *at };
    double stream_s = 0, loop_s = 0;
    uint64_t bytes = 0, reads = 0;
    struct err e = ERR_INIT;
    struct stream_shape shape;
    double ratio;

    shape_make(&shape, spans, n_span, set->target_kib * KIB);
    shape.depth = set->depth;
    w.n_block = shape.n_block;
    l->bytes = 0;
    if (stream_open(&w.s, c, spans, n_span, &shape, &o, &telemetry, &e) != 0)
        die(&e);
    if (set->pinned_mib > 0)
        while (w.passes == 0)
            run_stream(&w, 0, SLICE_NS);
    while (stream_s + loop_s < seconds) {
        uint64_t start, before, n;

        l->at = (w.at + l->size / 2) % l->size / LOOP_BYTES * LOOP_BYTES;
        loop_s += run_loop(l);
        before = counter_get(&telemetry.bytes_read);
        n = counter_get(&telemetry.reads);
        start = clock_ns();
        run_stream(&w, set->work, SLICE_NS);
        stream_s += (double)(clock_ns() - start) / 1e9;
        bytes += counter_get(&telemetry.bytes_read) - before;
        reads += counter_get(&telemetry.reads) - n;
    }
    ratio = ((double)bytes / stream_s) / ((double)l->bytes / loop_s);
    printf("%5u KiB %3u slots %6.1f MiB depth %2u %-16s %5u blocks %6.0f KiB a read: "
           "%.3f GB/s, loop %.3f, ratio %.2f\n",
           set->target_kib, set->slots, (double)(shape.slot_bytes * o.n_slot) / (double)MIB,
           set->depth, stream_io_name(w.s), shape.n_block, (double)bytes / (double)reads / 1024,
           (double)bytes / stream_s / 1e9, (double)l->bytes / loop_s / 1e9, ratio);
    fflush(stdout);
    stream_close(w.s);
    *at = w.at;
    free(spans);
}

static void print_probes(const struct catalogue *c)
{
    const struct probe_options o = { .seconds = 1.5, .buffer_bytes = 64 * MIB };
    int n_thread = (int)sysconf(_SC_NPROCESSORS_ONLN);
    struct probe_rate direct, buffered, memory;
    struct err e = ERR_INIT;

    if (probe_disk(c->files[0].fd, true, SHAPE_PROBE_DEPTH, SHAPE_PROBE_BYTES, &o, &direct,
                   &e) != 0 ||
        probe_disk(c->files[0].fd, false, SHAPE_PROBE_DEPTH, SHAPE_PROBE_BYTES, &o, &buffered,
                   &e) != 0 ||
        probe_memory(n_thread, &o, &memory, &e) != 0)
        die(&e);
    printf("probes: direct %.3f GB/s, through the page cache %.3f, memory %.2f (%d threads)\n",
           direct.bytes_s / 1e9, buffered.bytes_s / 1e9, memory.bytes_s / 1e9, n_thread);
}

static void parse(struct setting *set, const char *text)
{
    static const char *const names[] = {
        "target", "slots", "depth", "pread", "pinned", "work"
    };
    unsigned *values[] = { &set->target_kib, &set->slots,      &set->depth,
                           &set->pread,      &set->pinned_mib, &set->work };
    const char *equal = strchr(text, '=');

    for (size_t i = 0; equal != NULL && i < sizeof names / sizeof names[0]; i++)
        if (strncmp(text, names[i], (size_t)(equal - text)) == 0)
            *values[i] = (unsigned)strtoul(equal + 1, NULL, 10);
}

int main(int argc, char **argv)
{
    struct setting one = { .target_kib = 2048, .slots = 8, .depth = 4 };
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 3;
    struct loop l = { .lock = PTHREAD_MUTEX_INITIALIZER };
    struct catalogue *c;
    struct err e = ERR_INIT;
    uint64_t at = 0;

    if (argc < 2) {
        fprintf(stderr, "use: bench_stream MODEL [SECONDS [NAME=VALUE]...]\n");
        return 2;
    }
    if (catalogue_open(&c, argv[1], &e) != 0)
        die(&e);
    l.fd = source_open_file(&c->files[0], true, &e);
    if (l.fd < 0)
        die(&e);
    l.size = c->files[0].size;
    /* Use huge pages, as the ring does: without them a request is cut into many segments. */
    if (area_reserve(&l.buffer, "loop", LOOP_THREADS * LOOP_BYTES, &e) != 0 ||
        area_hold(&l.buffer, LOOP_THREADS * LOOP_BYTES, true, &e) != 0)
        die(&e);
    print_probes(c);
    for (int i = 3; i < argc; i++)
        parse(&one, argv[i]);
    if (argc > 3)
        run_setting(c, &l, &at, &one, seconds);
    for (size_t i = 0; argc <= 3 && i < sizeof settings / sizeof settings[0]; i++)
        run_setting(c, &l, &at, &settings[i], seconds);
    catalogue_close(c);
    return 0;
}
