/* See breathing.h. */
#include "config.h"

#include "engine/session/breathing.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "engine/base/clock.h"
#include "engine/base/thread.h"
#include "engine/machine/cgroup.h"
#include "engine/machine/proc.h"
#include "engine/machine/psi.h"
#include "engine/plan/breath.h"

#define STACK_BYTES ((size_t)128 << 10) /* the text of /proc/vmstat is on it */

struct breathing {
    struct proc proc;
    struct cgroup group;
    int pressure; /* of the system's memory; a group has its own */
    struct telemetry *telemetry;
    pthread_t thread;
    _Atomic uint64_t budget, decided_ns;

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t wake;
    struct breath breath;
    bool is_closing;
    void (*fn)(void *ctx);
    void *ctx;
};

static uint64_t or_zero(struct mw_os_value v)
{
    return v.why_not == NULL ? v.value : 0;
}

/* The pressure of the group, and of the machine if its memory is what is short. */
static void read_pressure(const struct breathing *b, struct breath_sample *s)
{
    int fd = s->is_of_group && b->group.pressure_memory >= 0 ? b->group.pressure_memory
                                                             : b->pressure;
    struct psi_total total;

    s->has_pressure = psi_read_total(fd, &total);
    s->some_us = total.some_us;
    s->full_us = total.full_us;
}

/* Returns false if the system does not report how much memory is available. */
static bool read_sample(const struct breathing *b, struct breath_sample *s)
{
    struct proc_system system;
    struct proc_self self;
    struct cgroup_memory group;
    bool has_group;

    proc_read_system(&b->proc, &system);
    proc_read_self(&b->proc, &self);
    cgroup_read_memory(&b->group, &group);
    has_group = group.room.why_not == NULL;
    if ((system.available.why_not != NULL && !has_group) || self.rss_anon.why_not != NULL)
        return false;
    *s = (struct breath_sample){ .available = or_zero(system.available),
                                 .own = self.rss_anon.value + or_zero(self.rss_shmem),
                                 .swapped = or_zero(self.swapped) };
    if (has_group && (system.available.why_not != NULL || group.room.value < s->available)) {
        s->available = group.room.value;
        s->is_of_group = true;
    }
    read_pressure(b, s);
    s->t_ns = clock_ns();
    return true;
}

static void publish(const struct breathing *b)
{
    struct telemetry *t = b->telemetry;
    const struct breath *x = &b->breath;

    counter_set(&t->budget_least, x->least);
    counter_set(&t->budget_most, x->most);
    counter_set(&t->budget_reserve, x->reserve);
    counter_set(&t->budget_spare, x->spare);
    counter_set(&t->budget_signal, x->signal);
    counter_set(&t->budget_step, x->step);
    counter_set(&t->budget_changed_ns, x->changed_ns);
}

/* With the lock. */
static void decide(struct breathing *b, uint64_t now_ns)
{
    atomic_store_explicit(&b->decided_ns, now_ns, memory_order_relaxed);
    atomic_store_explicit(&b->budget, b->breath.budget, memory_order_release);
    if (b->fn != NULL)
        b->fn(b->ctx);
}

static void *breathe(void *arg)
{
    struct breathing *b = arg;
    uint64_t until_ns = clock_ns();

    pthread_mutex_lock(&b->lock);
    while (!b->is_closing) {
        struct breath_sample sample;
        bool has_sample;

        pthread_mutex_unlock(&b->lock);
        has_sample = read_sample(b, &sample);
        pthread_mutex_lock(&b->lock);
        if (has_sample && breath_step(&b->breath, &sample))
            decide(b, sample.t_ns);
        publish(b);
        until_ns = clock_ns() + breath_next_ns(&b->breath);
        while (!b->is_closing && clock_cond_wait(&b->wake, &b->lock, until_ns))
            continue;
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

static void release(struct breathing *b)
{
    proc_close(&b->proc);
    cgroup_close(&b->group);
    kernel_file_close(b->pressure);
    pthread_cond_destroy(&b->wake);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

int breathing_start(struct breathing **out, const char *root, const struct breathing_bounds *to,
                    struct telemetry *t, struct err *e)
{
    struct breathing *b = calloc(1, sizeof *b);

    *out = NULL;
    if (b == NULL)
        return err_memory(e, "following the free memory");
    pthread_mutex_init(&b->lock, NULL);
    clock_cond_init(&b->wake);
    proc_open(&b->proc, root);
    cgroup_open(&b->group, root);
    b->pressure = kernel_file_open(root, "/proc/pressure/memory");
    b->telemetry = t;
    b->budget = to->budget;
    breath_begin(&b->breath, to->least, to->most, to->budget, to->free_bytes, clock_ns());
    publish(b);
    errno = thread_start(&b->thread, "breath", STACK_BYTES, breathe, b);
    if (errno != 0) {
        err_sys(e, "cannot start the thread that follows the free memory");
        release(b);
        return -1;
    }
    *out = b;
    return 0;
}

void breathing_stop(struct breathing *b)
{
    if (b == NULL)
        return;
    pthread_mutex_lock(&b->lock);
    b->is_closing = true;
    pthread_cond_signal(&b->wake);
    pthread_mutex_unlock(&b->lock);
    pthread_join(b->thread, NULL);
    counter_set(&b->telemetry->budget_most, 0); /* fixed from now on */
    release(b);
}

void breathing_rebound(struct breathing *b, const struct breathing_bounds *to)
{
    struct breath *x = &b->breath;

    pthread_mutex_lock(&b->lock);
    x->least = to->least < to->budget ? to->least : to->budget;
    x->most = to->most > to->budget ? to->most : to->budget;
    x->budget = to->budget;
    atomic_store_explicit(&b->budget, x->budget, memory_order_release);
    publish(b);
    pthread_mutex_unlock(&b->lock);
}

uint64_t breathing_budget(const struct breathing *b)
{
    return atomic_load_explicit(&b->budget, memory_order_acquire);
}

uint64_t breathing_decided_ns(const struct breathing *b)
{
    return atomic_load_explicit(&b->decided_ns, memory_order_relaxed);
}

void breathing_wakes(struct breathing *b, void (*fn)(void *ctx), void *ctx)
{
    pthread_mutex_lock(&b->lock);
    b->fn = fn;
    b->ctx = ctx;
    pthread_mutex_unlock(&b->lock);
}
