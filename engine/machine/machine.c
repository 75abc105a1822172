#include "config.h"

#include "engine/machine/machine.h"

#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include <ctype.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/units.h"
#include "engine/machine/cgroup.h"
#include "engine/machine/proc.h"

/* The core of each CPU, named by the lowest of its CPUs, and how fast it is: 1024 if the system
 * does not say. */
struct cores {
    int of[CPU_SETSIZE];
    int capacity[CPU_SETSIZE];
};

#define CAPACITY  1024
#define EFFICIENT (CAPACITY / 4) /* of Intel's lists */
#define LOW_POWER (CAPACITY / 16)

/* A CPU whose siblings the system does not report is a core of its own. */
static int core_of(const char *root, int cpu)
{
    char path[96], text[16], *end; /* "0,8" or "0-1", in ascending order */
    long first;

    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
             cpu);
    if (kernel_file_slurp(root, path, text, sizeof text) <= 0)
        return cpu;
    first = strtol(text, &end, 10);
    return end != text && first >= 0 && first < cpu ? (int)first : cpu;
}

/* Set the capacity of a list of CPUs: "0-3,8". */
static void set_capacity(const char *list, int capacity, struct cores *c)
{
    while (*list != '\0' && *list != '\n') {
        char *end;
        long first = strtol(list, &end, 10), last = first;

        if (end == list)
            return;
        if (*end == '-') {
            list = end + 1;
            last = strtol(list, &end, 10);
        }
        for (long i = first; i <= last && i >= 0 && i < CPU_SETSIZE; i++)
            c->capacity[i] = capacity;
        list = end + (*end == ',');
        if (list == end)
            return;
    }
}

/*
 * Linux reports capacities on ARM and on newer systems of Intel's, and lists on Intel's: of
 * efficient cores and, on processors with a third kind, of those that use the least power, which
 * have no share of the last-level cache.  A CPU has the lower of both: a capacity says how fast it
 * runs programs of all kinds, and the cores in the lists are slower than that with vectors, which
 * they compute in halves.
 */
static void read_capacities(const char *root, long n, struct cores *c)
{
    char text[1024], path[64];

    for (int i = 0; i < CPU_SETSIZE; i++)
        c->capacity[i] = CAPACITY;
    if (kernel_file_slurp(root, "/sys/devices/cpu_atom/cpus", text, sizeof text) > 0)
        set_capacity(text, EFFICIENT, c);
    if (kernel_file_slurp(root, "/sys/devices/cpu_lowpower/cpus", text, sizeof text) > 0)
        set_capacity(text, LOW_POWER, c);
    for (int i = 0; i < n && i < CPU_SETSIZE; i++) {
        int capacity;

        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpu_capacity", i);
        if (kernel_file_slurp(root, path, text, sizeof text) <= 0)
            continue;
        capacity = atoi(text);
        if (capacity > 0 && capacity < c->capacity[i])
            c->capacity[i] = capacity;
    }
}

static void read_cores(const char *root, struct cores *c)
{
    long n = root[0] == '\0' ? sysconf(_SC_NPROCESSORS_CONF) : CPU_SETSIZE;
    char text[8];

    read_capacities(root, n, c);
    if (kernel_file_slurp(root, "/sys/devices/system/cpu/smt/active", text, sizeof text) > 0 &&
        text[0] == '0')
        n = 0; /* one CPU per core */
    for (int i = 0; i < CPU_SETSIZE; i++)
        c->of[i] = i < n ? core_of(root, i) : i;
}

static struct cores own_cores;

static void read_own_cores(void)
{
    read_cores("", &own_cores);
}

/* The files of this machine are read once: there may be hundreds, and they do not change. */
static void count_cores(const char *root, const cpu_set_t *set, struct mw_machine *out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const struct cores *c = &own_cores;
    struct cores other;
    cpu_set_t fast, slow, low;
    int most = 0;

    CPU_ZERO(&fast);
    CPU_ZERO(&slow);
    CPU_ZERO(&low);
    if (root[0] == '\0') {
        pthread_once(&once, read_own_cores);
    } else {
        read_cores(root, &other);
        c = &other;
    }
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, set) && c->capacity[i] > most)
            most = c->capacity[i];
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, set))
            continue;
        CPU_SET(c->of[i], 2 * c->capacity[i] < most ? &slow : &fast);
        if (2 * c->capacity[i] < most && c->capacity[i] <= LOW_POWER)
            CPU_SET(c->of[i], &low);
    }
    out->n_core = CPU_COUNT(&fast);
    out->n_efficient = CPU_COUNT(&slow);
    out->n_low_power = CPU_COUNT(&low);
}

/*
 * Count the CPUs of the affinity mask and their cores; no more than the quota rounded up.
 *
 * Threads are one per core because two threads of a core share its vector units and its caches,
 * and the memory gives no more to two threads than to one.  A product waits for its slowest
 * thread, so a second thread on some of the cores costs more than it brings, and so does one on an
 * efficient core.
 */
static void count_cpus(const char *root, struct mw_machine *out)
{
    double quota = cgroup_cpu_quota(root);
    int whole = 65536;
    cpu_set_t set;

    if (quota > 0 && quota < whole)
        whole = (int)quota + (quota > (int)quota);
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        out->n_cpu = CPU_COUNT(&set);
        count_cores(root, &set, out);
    } else { /* more CPUs than the mask holds */
        out->n_cpu = out->n_core = (int)sysconf(_SC_NPROCESSORS_ONLN);
        out->n_efficient = out->n_low_power = 0;
    }
    out->n_cpu = whole < out->n_cpu ? whole : out->n_cpu;
    out->n_core = whole < out->n_core ? whole : out->n_core;
    if (out->n_cpu < 1)
        out->n_cpu = 1;
    if (out->n_core < 1)
        out->n_core = 1;
}

/* The number of threads that was chosen for some processors. */
static pthread_mutex_t chosen_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    int n_core, n_cpu, n_thread; /* 0: none */
    char why[MW_THREADS_WHY];
} chosen;

void machine_choose_threads(int n_core, int n_cpu, int n_thread, const char *why)
{
    pthread_mutex_lock(&chosen_lock);
    chosen.n_core = n_core;
    chosen.n_cpu = n_cpu;
    chosen.n_thread = n_thread;
    snprintf(chosen.why, sizeof chosen.why, "%s", why);
    pthread_mutex_unlock(&chosen_lock);
}

static const char *why_cores(const struct mw_machine *m)
{
    if (m->n_efficient > 0)
        return "one per performance core: a product waits for its slowest thread";
    if (m->n_core < m->n_cpu)
        return "one per core: two threads of a core share its vector units and caches";
    return "one per processor";
}

static void set_threads(struct mw_machine *m)
{
    bool is_chosen;

    pthread_mutex_lock(&chosen_lock);
    is_chosen = chosen.n_thread > 0 && chosen.n_core == m->n_core && chosen.n_cpu == m->n_cpu;
    m->n_thread = is_chosen                      ? chosen.n_thread
                  : m->n_core < MW_THREADS_MOST ? m->n_core
                                                 : MW_THREADS_MOST;
    snprintf(m->threads_why, sizeof m->threads_why, "%s",
             is_chosen ? chosen.why : why_cores(m));
    pthread_mutex_unlock(&chosen_lock);
}

/* The value in the first line "KEY : VALUE" of /proc/cpuinfo, up to the end of the line; NULL:
 * there is none. */
static const char *cpu_value(const char *text, const char *key)
{
    size_t n = strlen(key);

    for (const char *line = text; line != NULL && *line != '\0';) {
        const char *after = line + n;

        if (strncmp(line, key, n) == 0) {
            after += strspn(after, " \t");
            if (*after == ':')
                return after + 1 + strspn(after + 1, " \t");
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return NULL;
}

static void printable(char *text)
{
    for (char *c = text; *c != '\0'; c++)
        if (!isprint((unsigned char)*c))
            *c = '?';
}

/* The name, as "AMD EPYC", and the kind.  Architectures other than x86 have no names. */
static void read_cpu(const char *root, struct mw_machine *out)
{
    static const char *const kind[] = { "cpu family", "model", "stepping",
                                        "CPU implementer", "CPU variant", "CPU part",
                                        "CPU revision" };
    char text[4096];
    struct utsname system;
    size_t n = 0;

    out->cpu[0] = out->cpu_kind[0] = '\0';
    if (kernel_file_slurp(root, "/proc/cpuinfo", text, sizeof text) > 0) {
        const char *at = cpu_value(text, "model name");

        if (at != NULL)
            snprintf(out->cpu, sizeof out->cpu, "%.*s", (int)strcspn(at, "\n"), at);
        for (size_t i = 0; i < sizeof kind / sizeof kind[0] && n < sizeof out->cpu_kind; i++) {
            at = cpu_value(text, kind[i]);
            if (at != NULL)
                n += (size_t)snprintf(out->cpu_kind + n, sizeof out->cpu_kind - n, "%s%.*s",
                                      n > 0 ? "-" : "", (int)strcspn(at, " \n"), at);
        }
    }
    if (out->cpu[0] == '\0' && uname(&system) == 0)
        snprintf(out->cpu, sizeof out->cpu, "%.*s", (int)(sizeof out->cpu - 1), system.machine);
    printable(out->cpu);
    printable(out->cpu_kind);
}

static uint64_t or_zero(struct mw_os_value v)
{
    return v.why_not == NULL ? v.value : 0;
}

/* Without /proc a system call still reports the memory of the machine, but not its page
 * cache, so the result is less than the available memory. */
static void ask_the_kernel(struct proc_system *system)
{
    struct sysinfo info;

    if (sysinfo(&info) != 0)
        return;
    if (system->total.why_not != NULL)
        system->total = os_value((uint64_t)info.totalram * info.mem_unit);
    if (system->available.why_not != NULL)
        system->available = os_value(((uint64_t)info.freeram + info.bufferram) * info.mem_unit);
}

/* Returns the memory that is not available before this process ends.  Pages of files do not
 * count, because they are page cache. */
static uint64_t own_bytes(const struct proc *proc)
{
    struct proc_self self;

    proc_read_self(proc, &self);
    return or_zero(self.rss_anon) + or_zero(self.rss_shmem);
}

/* Find the largest budget.  A process that is alone in its group can use its whole limit. */
static void find_budget(const struct cgroup *group, const struct cgroup_memory *memory,
                        const struct proc_system *system, struct mw_machine *out)
{
    const struct cgroup_tightest *tightest = &memory->tightest;
    uint64_t machine_bytes = or_zero(system->available), bytes;
    char folder[128], limit[16];

    if (machine_bytes != 0)
        machine_bytes += out->own_bytes;
    out->budget_bytes = machine_bytes;
    out->budget_of = or_zero(system->total);
    snprintf(out->budget_why, sizeof out->budget_why, "the memory of this machine");
    snprintf(out->budget_short, sizeof out->budget_short, "the memory of this machine");
    out->zfs_stays = system->zfs_stays;
    out->huge_free = system->huge_free;
    if (memory->room.why_not != NULL)
        return;
    bytes = memory->room.value + out->own_bytes;
    if (bytes > tightest->limit || (memory->is_alone && tightest->level == 0))
        bytes = tightest->limit;
    if (bytes == 0)
        bytes = 1; /* 0 means unknown */
    if (machine_bytes != 0 && bytes >= machine_bytes)
        return;
    out->budget_bytes = bytes;
    out->budget_of = tightest->limit;
    out->zfs_stays = out->huge_free = 0;
    cgroup_level_name(group, tightest->level, folder, sizeof folder);
    snprintf(out->budget_why, sizeof out->budget_why, "%s of the control group %s",
             group->version == CGROUP_V1 ? "memory.limit_in_bytes"
             : tightest->is_high         ? "memory.high"
                                         : "memory.max",
             folder);
    snprintf(out->budget_short, sizeof out->budget_short, "the control group's limit of %s",
             units_size(limit, sizeof limit, tightest->limit));
}

void machine_read(const char *root, struct mw_machine *out)
{
    struct proc proc;
    struct cgroup group;
    struct proc_system system;
    struct cgroup_memory memory;

    proc_open(&proc, root);
    cgroup_open(&group, root);
    proc_read_system(&proc, &system);
    if (root[0] == '\0')
        ask_the_kernel(&system);
    cgroup_read_memory(&group, &memory);
    out->own_bytes = own_bytes(&proc);
    find_budget(&group, &memory, &system, out);
    cgroup_close(&group);
    proc_close(&proc);

    out->memory_bytes = or_zero(system.total);
    if (memory.limit.why_not == NULL &&
        (out->memory_bytes == 0 || memory.limit.value < out->memory_bytes))
        out->memory_bytes = memory.limit.value;
    out->available_bytes = or_zero(system.available);
    if (memory.room.why_not == NULL &&
        (out->available_bytes == 0 || memory.room.value < out->available_bytes))
        out->available_bytes = memory.room.value;
    count_cpus(root, out);
    set_threads(out);
    read_cpu(root, out);
}

void mw_machine_read(struct mw_machine *out)
{
    machine_read("", out);
}

/* Name a part of what others use: ": 4.00 GiB are unused huge pages", ", 1.00 GiB are ...". */
static void add_part(char *buf, size_t n, uint64_t bytes, const char *what)
{
    size_t used = strlen(buf);
    char size[16];

    if (bytes > 0)
        snprintf(buf + used, n - used, "%s%s %s", used == 0 ? ": " : ", ",
                 units_size(size, sizeof size, bytes), what);
}

bool machine_budget_lower(const char *root, uint64_t *bytes, char *why, size_t n)
{
    struct mw_machine m;
    char before[16], after[16], limit[16], change[64], others[56] = "", parts[120] = "";

    machine_read(root, &m);
    if (m.budget_bytes == 0 || *bytes <= m.budget_bytes)
        return false;
    units_size(before, sizeof before, *bytes);
    units_size(after, sizeof after, m.budget_bytes);
    units_size(limit, sizeof limit, m.budget_of);
    if (m.budget_of > m.budget_bytes)
        snprintf(others, sizeof others, ", of which others use %s",
                 units_size((char[16]){ "" }, 16, m.budget_of - m.budget_bytes));
    add_part(parts, sizeof parts, m.huge_free, "are unused huge pages (HugePages_Free)");
    add_part(parts, sizeof parts, m.zfs_stays, "are the cache of ZFS");
    if (strcmp(before, after) != 0)
        snprintf(change, sizeof change, "is lowered from %s to %s", before, after);
    else
        snprintf(change, sizeof change, "of %s is lowered by %s", before,
                 units_size(after, sizeof after, *bytes - m.budget_bytes));
    snprintf(why, n, "the budget %s: %s is %s%s%s", change, m.budget_why, limit, others, parts);
    *bytes = m.budget_bytes;
    return true;
}

bool mw_budget_lower(uint64_t *bytes, char *why, size_t n)
{
    return machine_budget_lower("", bytes, why, n);
}
