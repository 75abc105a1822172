#include "config.h"

#include "engine/machine/machine.h"

#include <sys/utsname.h>

#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/machine/cgroup.h"
#include "engine/machine/proc.h"

/* CPUs that the scheduler may give us: affinity mask, then quota rounded up. */
static int usable_cpus(const char *root)
{
    double quota = cgroup_cpu_quota(root);
    cpu_set_t set;
    int n = 0, whole;

    if (sched_getaffinity(0, sizeof set, &set) == 0)
        n = CPU_COUNT(&set);
    else
        n = (int)sysconf(_SC_NPROCESSORS_ONLN); /* more CPUs than the mask holds */
    whole = quota > 0 && quota < 65536 ? (int)quota + (quota > (int)quota) : n;
    n = whole < n ? whole : n;
    return n > 0 ? n : 1;
}

/* "model name : AMD EPYC" of x86; other architectures have no such line. */
static void cpu_name(const char *root, char *name, size_t n)
{
    static const char key[] = "model name";
    char text[4096];
    struct utsname system;
    const char *at;

    name[0] = '\0';
    if (kernel_file_slurp(root, "/proc/cpuinfo", text, sizeof text) > 0 &&
        (at = strstr(text, key)) != NULL) {
        at += sizeof key - 1;
        at += strspn(at, " \t:");
        snprintf(name, n, "%.*s", (int)strcspn(at, "\n"), at);
    }
    if (name[0] == '\0' && uname(&system) == 0)
        snprintf(name, n, "%.*s", (int)(n - 1), system.machine);
    for (char *c = name; *c != '\0'; c++)
        if (!isprint((unsigned char)*c))
            *c = '?';
}

static uint64_t or_zero(struct mw_os_value v)
{
    return v.why_not == NULL ? v.value : 0;
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
    cgroup_read_memory(&group, &memory);
    cgroup_close(&group);
    proc_close(&proc);

    out->memory_bytes = or_zero(system.total);
    if (memory.limit.why_not == NULL && memory.limit.value < out->memory_bytes)
        out->memory_bytes = memory.limit.value;
    out->available_bytes = or_zero(system.available);
    if (memory.room.why_not == NULL && memory.room.value < out->available_bytes)
        out->available_bytes = memory.room.value;
    out->n_cpu = usable_cpus(root);
    cpu_name(root, out->cpu, sizeof out->cpu);
}

void mw_machine_read(struct mw_machine *out)
{
    machine_read("", out);
}
