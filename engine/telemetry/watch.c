#include "config.h"

#include "engine/telemetry/watch.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/thread.h"
#include "engine/machine/cgroup.h"
#include "engine/machine/load.h"
#include "engine/machine/pagecache.h"
#include "engine/machine/proc.h"
#include "engine/machine/psi.h"
#include "engine/machine/thread_use.h"
#include "engine/telemetry/telemetry.h"
#include "engine/telemetry/verdict.h"

#define PERIOD_NS   500000000u
#define STACK_BYTES ((size_t)1 << 20)

/*
 * The peak since some moment.  The kernel's own peak includes all that was before, also earlier
 * processes of a group.  It is ours if it has grown since; else ours is the largest value read.
 */
struct peak {
    uint64_t start; /* the kernel's peak at that moment */
    uint64_t seen;  /* largest value read since */
};

struct mw_watch {
    struct proc proc;
    struct thread_use threads; /* of the thread that calls watch_read() */
    struct load load;          /* at the last reading */
    char root[KERNEL_PATH_MAX];
    struct cgroup group;
    int psi_memory, psi_io; /* of the system */
    struct watch_file *files;
    size_t n_file;
    uint64_t majflt_start, refaults_start; /* counts at the start */
    uint64_t file_start; /* bytes of files in rss at the start: program and libraries */
    uint64_t heap_start; /* bytes used by malloc at the start */
    /* All under lock. */
    struct peak charged;                         /* since the start */
    struct peak answer_charged, answer_resident; /* since mw_watch_begin_answer */

    void (*diagnose)(void *ctx, struct mw_sample *s); /* or NULL */
    void (*drop)(void *ctx);
    void *diagnose_ctx;

    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool closing;    /* under lock */
    struct mw_os os; /* under lock */
};

/* Returns the memory that malloc has in all its arenas. */
static uint64_t heap_bytes(void)
{
#ifdef HAVE_MALLINFO2
    struct mallinfo2 m = mallinfo2();

    return (uint64_t)m.arena + (uint64_t)m.hblkhd;
#else
    return 0;
#endif
}

static struct mw_os_value sum(struct mw_os_value a, struct mw_os_value b)
{
    if (a.why_not != NULL)
        return a;
    if (b.why_not == NULL)
        a.value += b.value;
    return a;
}

static struct mw_os_value since(struct mw_os_value v, uint64_t start)
{
    if (v.why_not == NULL)
        v.value -= start < v.value ? start : v.value;
    return v;
}

static struct mw_os_value model_cached(const struct mw_watch *w)
{
    struct mw_os_value total = os_value(0);

    for (size_t i = 0; i < w->n_file; i++) {
        struct mw_os_value one = pagecache_bytes(w->files[i].fd, w->files[i].size);

        if (one.why_not != NULL)
            return one;
        total.value += one.value;
    }
    return total;
}

/* The charge of a group with other processes is not ours. */
static struct mw_os_value if_alone(struct mw_os_value v, bool is_alone)
{
    return v.why_not != NULL || is_alone
               ? v
               : os_unknown("other processes share the control group");
}

static struct mw_os_value own_peak(const struct peak *p, struct mw_os_value kernel)
{
    if (kernel.why_not == NULL && kernel.value <= p->start)
        kernel.value = p->seen;
    return kernel;
}

/* charged_peak is the kernel's: own_peak() makes it ours, under the lock. */
static void read_group(const struct mw_watch *w, struct mw_os *out, struct cgroup_memory *m)
{
    cgroup_read_memory(&w->group, m);
    out->charged = if_alone(m->charged, m->is_alone);
    out->charged_peak = if_alone(m->peak, m->is_alone);
    out->charged_kernel = if_alone(m->kernel, m->is_alone);
    out->charged_file = if_alone(m->file, m->is_alone);
    out->limit = m->limit;
    if (m->refaults.why_not == NULL && m->is_alone)
        out->refaults = m->refaults;
}

static void read_pressure(const struct mw_watch *w, struct mw_os *out)
{
    out->psi_memory_some10 = psi_some10(w->group.pressure_memory);
    out->psi_io_some10 = psi_some10(w->group.pressure_io);
    if (out->psi_memory_some10.why_not != NULL)
        out->psi_memory_some10 = psi_some10(w->psi_memory);
    if (out->psi_io_some10.why_not != NULL)
        out->psi_io_some10 = psi_some10(w->psi_io);
}

/* The share of the processors' time that the host took since the last reading. */
static struct mw_os_value stolen(struct mw_watch *w)
{
    struct load before = w->load;

    load_begin(&w->load, w->root);
    if (w->load.all <= before.all || before.all == 0 || w->load.stolen < before.stolen)
        return os_unknown("not reported");
    return os_value((w->load.stolen - before.stolen) * 10000 / (w->load.all - before.all));
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Returns how much of the memory that is shown is page cache of the model.  The charge of a control
 * group includes the cached pages that are charged to it.  If the group is unknown, only pages that
 * the process has mapped count. */
static struct mw_os_value model_charged(const struct mw_watch *w, const struct mw_os *os)
{
    struct mw_os_value v = os->model_cached;

    if (v.why_not != NULL)
        return v;
    if (os->charged_file.why_not == NULL)
        v.value = smaller(v.value, os->charged_file.value);
    else if (os->rss_file.why_not == NULL)
        v.value = smaller(v.value, os->rss_file.value > w->file_start
                                       ? os->rss_file.value - w->file_start
                                       : 0);
    return v;
}

/* Read the figures of the memory meter. */
static void read_process(const struct mw_watch *w, struct mw_os *out)
{
    struct proc_self self;

    proc_read_self(&w->proc, &self);
    out->rss = self.rss;
    out->rss_anon = self.rss_anon;
    out->rss_file = self.rss_file;
    out->rss_peak = self.rss_peak;
    out->own = sum(sum(self.rss, self.page_tables), self.swapped);
    out->swap_own = self.swapped;
    out->majflt = since(self.majflt, w->majflt_start);
    out->t_ns = clock_ns();
}

/* Read everything.  Other threads note peaks meanwhile, so this leaves the kernel's. */
static void read_all(struct mw_watch *w, struct mw_os *out)
{
    struct proc_system system;
    struct cgroup_memory m;

    proc_read_system(&w->proc, &system);
    out->system_cached = system.cached;
    out->system_total = system.total;
    out->available = system.available;
    out->swap_used = system.swap_used;
    out->refaults = system.refaults;
    read_process(w, out);
    read_group(w, out, &m);
    if (m.room.why_not == NULL && out->available.why_not == NULL &&
        m.room.value < out->available.value)
        out->available = m.room;
    read_pressure(w, out);
    out->cpu_stolen = stolen(w);
    out->refaults = since(out->refaults, w->refaults_start);
    out->n_thread = thread_use_read(&w->threads, out->thread);
    out->model_cached = model_cached(w);
    out->model_charged = model_charged(w, out);
}

void watch_read(struct mw_watch *w, struct mw_os *out)
{
    read_all(w, out);
    pthread_mutex_lock(&w->lock);
    out->charged_peak = own_peak(&w->charged, out->charged_peak);
    pthread_mutex_unlock(&w->lock);
}

/* Sleep for a period.  Returns false when the watch ends. */
static bool wait_for_next(struct mw_watch *w, uint64_t *until_ns)
{
    *until_ns += PERIOD_NS;
    while (!w->closing && clock_cond_wait(&w->wake, &w->lock, *until_ns))
        continue;
    return !w->closing;
}

static void note(struct peak *p, struct mw_os_value v)
{
    if (v.why_not == NULL && v.value > p->seen)
        p->seen = v.value;
}

static void note_peaks(struct mw_watch *w, const struct mw_os *os)
{
    note(&w->charged, os->charged);
    note(&w->answer_charged, os->charged);
    note(&w->answer_resident, os->rss);
}

static void *watch(void *arg)
{
    struct mw_watch *w = arg;
    uint64_t until_ns = clock_ns();

    pthread_mutex_lock(&w->lock);
    while (wait_for_next(w, &until_ns)) {
        struct mw_os os;

        pthread_mutex_unlock(&w->lock);
        read_all(w, &os);
        pthread_mutex_lock(&w->lock);
        os.charged_peak = own_peak(&w->charged, os.charged_peak);
        w->os = os;
        note_peaks(w, &os);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void open_all(struct mw_watch *w, const char *root)
{
    snprintf(w->root, sizeof w->root, "%s", root);
    pthread_mutex_init(&w->lock, NULL);
    clock_cond_init(&w->wake);
    proc_open(&w->proc, root);
    thread_use_open(&w->threads, root);
    cgroup_open(&w->group, root);
    w->psi_memory = kernel_file_open(root, "/proc/pressure/memory");
    w->psi_io = kernel_file_open(root, "/proc/pressure/io");
}

static void release(struct mw_watch *w)
{
    proc_close(&w->proc);
    thread_use_close(&w->threads);
    cgroup_close(&w->group);
    kernel_file_close(w->psi_memory);
    kernel_file_close(w->psi_io);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    free(w->files);
    free(w);
}

int watch_start(struct mw_watch **out, const char *root, const struct watch_file *files,
                size_t n_file, struct err *e)
{
    struct mw_watch *w = calloc(1, sizeof *w);

    *out = NULL;
    if (w == NULL || (w->files = calloc(n_file + 1, sizeof *files)) == NULL) {
        free(w);
        return err_memory(e, "watching the system");
    }
    if (n_file > 0)
        memcpy(w->files, files, n_file * sizeof *files);
    w->n_file = n_file;
    open_all(w, root);
    w->file_start = UINT64_MAX; /* the model is not mapped yet */
    watch_read(w, &w->os);
    w->file_start = w->os.rss_file.value;
    w->heap_start = heap_bytes();
    w->majflt_start = w->os.majflt.value;
    w->refaults_start = w->os.refaults.value;
    if (w->os.charged_peak.why_not == NULL)
        w->charged.start = w->os.charged_peak.value;
    watch_read(w, &w->os);
    note_peaks(w, &w->os);
    errno = thread_start(&w->thread, "watch", STACK_BYTES, watch, w);
    if (errno != 0) {
        err_sys(e, "cannot start the thread that watches the system");
        release(w);
        return -1;
    }
    *out = w;
    return 0;
}

void mw_watch_free(struct mw_watch *w)
{
    if (w == NULL)
        return;
    pthread_mutex_lock(&w->lock);
    w->closing = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    if (w->drop != NULL)
        w->drop(w->diagnose_ctx);
    release(w);
}

/* A group keeps the page cache of processes that ended in it.  Count it with the model's. */
static void add_foreign_cache(struct mw_os *os)
{
    uint64_t unmapped;

    if (os->charged_file.why_not != NULL || os->rss_file.why_not != NULL ||
        os->model_charged.why_not != NULL || os->charged_file.value <= os->rss_file.value)
        return;
    unmapped = os->charged_file.value - os->rss_file.value;
    if (os->model_charged.value < unmapped)
        os->model_charged.value = unmapped;
}

/*
 * Fill in the plan items that only Linux can measure.  `program` is the memory resident when
 * the model was opened, the memory malloc has added since, and the pages of files now.  The
 * group is charged only for file pages that it read first, and for their read-ahead.
 * `reserve` is kernel memory.
 */
static void complete_rows(const struct mw_watch *w, struct mw_sample *s)
{
    struct mw_os *os = &s->os;
    uint64_t *program = &s->mem.used[MW_ROW_PROGRAM], *reserve = &s->mem.used[MW_ROW_RESERVE];
    uint64_t heap = heap_bytes(), files = w->file_start;

    if (os->charged.why_not != NULL && !mw_run_is_mapped(&s->run) &&
        os->model_charged.why_not == NULL)
        os->model_charged.value = 0; /* cached by other processes, so not part of our figure */
    if (os->charged.why_not == NULL) {
        if (os->charged_file.why_not == NULL)
            files = os->charged_file.value - os->model_charged.value;
        if (os->charged_kernel.why_not == NULL)
            *reserve = os->charged_kernel.value;
    } else if (os->own.why_not == NULL) {
        files = os->rss_file.value - os->model_charged.value;
        *reserve = os->own.value - os->rss.value - os->swap_own.value;
    }
    if (*program == 0) { /* no session yet, so everything is used for loading */
        uint64_t all = os->charged.why_not == NULL ? os->charged.value : os->own.value;
        uint64_t rest = *reserve + os->model_charged.value;

        *program = all > rest ? all - rest : 0;
    } else if (*program > w->file_start)
        *program += files - w->file_start + (heap > w->heap_start ? heap - w->heap_start : 0);
}

void mw_watch_complete(struct mw_watch *w, struct mw_sample *sample)
{
    struct cgroup_memory m;

    pthread_mutex_lock(&w->lock);
    sample->os = w->os;
    read_process(w, &sample->os);
    if (sample->os.charged.why_not == NULL) {
        struct mw_os_value refaults = sample->os.refaults;

        read_group(w, &sample->os, &m);
        sample->os.charged_peak = own_peak(&w->charged, sample->os.charged_peak);
        sample->os.refaults = refaults;
    }
    note_peaks(w, &sample->os);
    pthread_mutex_unlock(&w->lock);
    sample->os.model_charged = model_charged(w, &sample->os);
    add_foreign_cache(&sample->os);
    complete_rows(w, sample);
    verdict_fill(sample);
    if (w->diagnose != NULL)
        w->diagnose(w->diagnose_ctx, sample);
}

void watch_diagnose(struct mw_watch *w, void (*fn)(void *ctx, struct mw_sample *s),
                    void (*drop)(void *ctx), void *ctx)
{
    w->diagnose = fn;
    w->drop = drop;
    w->diagnose_ctx = ctx;
}

void mw_watch_begin_answer(struct mw_watch *w)
{
    struct cgroup_memory m;
    struct mw_os os;

    pthread_mutex_lock(&w->lock);
    read_process(w, &os);
    cgroup_read_memory(&w->group, &m);
    os.charged = if_alone(m.charged, m.is_alone);
    w->answer_charged = (struct peak){ .start = m.peak.value };
    w->answer_resident = (struct peak){ .start = os.rss_peak.value };
    note_peaks(w, &os);
    pthread_mutex_unlock(&w->lock);
}

void mw_watch_end_answer(struct mw_watch *w, uint64_t *peak_charged, uint64_t *peak_resident)
{
    struct mw_os_value charged, resident;
    struct cgroup_memory m;
    struct mw_os os;

    pthread_mutex_lock(&w->lock);
    read_process(w, &os);
    cgroup_read_memory(&w->group, &m);
    os.charged = if_alone(m.charged, m.is_alone);
    note_peaks(w, &os);
    charged = own_peak(&w->answer_charged, if_alone(m.peak, m.is_alone));
    resident = own_peak(&w->answer_resident, os.rss_peak);
    pthread_mutex_unlock(&w->lock);
    *peak_charged = charged.why_not == NULL ? charged.value : 0;
    *peak_resident = charged.why_not != NULL && resident.why_not == NULL ? resident.value : 0;
}
