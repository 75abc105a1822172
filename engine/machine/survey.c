#include "config.h"

#include "engine/machine/survey.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/machine/cgroup.h"
#include "engine/machine/kernel_file.h"
#include "engine/machine/load.h"
#include "engine/machine/machine.h"
#include "engine/machine/proc.h"
#include "engine/machine/psi.h"

static const char no_file[] = "this system does not report it";

struct survey {
    const char *root;
    mw_fact_fn *fn;
    void *ctx;
};

static void put(const struct survey *s, const struct mw_fact *f)
{
    s->fn(s->ctx, f);
}

static void put_value(const struct survey *s, const char *key, const char *label,
                      enum mw_unit unit, struct mw_os_value v)
{
    struct mw_fact f = {
        .key = key, .label = label, .unit = unit, .value = (double)v.value, .why_not = v.why_not
    };

    put(s, &f);
}

static void put_number(const struct survey *s, const char *key, const char *label,
                       enum mw_unit unit, double value)
{
    struct mw_fact f = { .key = key, .label = label, .unit = unit, .value = value };

    put(s, &f);
}

/* text NULL: unknown. */
static void put_text(const struct survey *s, const char *key, const char *label,
                     const char *text)
{
    struct mw_fact f = { .key = key, .label = label, .why_not = text == NULL ? no_file : NULL };

    snprintf(f.text, sizeof f.text, "%s", text != NULL ? text : "");
    put(s, &f);
}

/* The first line of a file in buf; NULL if it cannot be read. */
static const char *read_line(const struct survey *s, const char *path, char *buf, size_t n)
{
    if (kernel_file_slurp(s->root, path, buf, n) < 0)
        return NULL;
    buf[strcspn(buf, "\n")] = '\0';
    return buf;
}

static void put_file(const struct survey *s, const char *key, const char *label,
                     const char *path)
{
    char text[MW_FACT_TEXT];

    put_text(s, key, label, read_line(s, path, text, sizeof text));
}

/* The choice in brackets: "always [madvise] never". */
static void put_choice(const struct survey *s, const char *key, const char *label,
                       const char *path)
{
    char text[MW_FACT_TEXT], *from = NULL;

    if (read_line(s, path, text, sizeof text) != NULL)
        from = strchr(text, '[');
    if (from != NULL)
        from[strcspn(from, "]")] = '\0';
    put_text(s, key, label, from != NULL ? from + 1 : NULL);
}

static void put_swap(const struct survey *s)
{
    char text[KERNEL_FILE_MAX], on[8];
    uint64_t total;

    if (kernel_file_slurp(s->root, "/proc/meminfo", text, sizeof text) >= 0 &&
        kernel_file_field(text, "SwapTotal", &total))
        put_number(s, "swap_total", "swap", MW_UNIT_BYTES, (double)total);
    else
        put_value(s, "swap_total", "swap", MW_UNIT_BYTES, os_unknown(no_file));
    if (kernel_file_slurp(s->root, "/proc/swaps", text, sizeof text) >= 0)
        put_text(s, "swap_kind", "swap is compressed",
                 strstr(text, "zram") != NULL ? "yes, in memory (zram)"
                 : read_line(s, "/sys/module/zswap/parameters/enabled", on, sizeof on) !=
                             NULL &&
                         on[0] == 'Y'
                     ? "yes, before it is written (zswap)"
                     : "no");
    put_file(s, "swappiness", "swappiness", "/proc/sys/vm/swappiness");
}

static void put_cgroup(const struct survey *s)
{
    struct cgroup_memory m;
    struct cgroup c;

    cgroup_open(&c, s->root);
    if (c.version == CGROUP_NONE) {
        put_text(s, "cgroup", "control group", NULL);
        return;
    }
    cgroup_read_memory(&c, &m);
    put_text(s, "cgroup", "control group", c.version == CGROUP_V1 ? "version 1" : "version 2");
    put_value(s, "cgroup_limit", "limit of the group", MW_UNIT_BYTES, m.limit);
    put_value(s, "cgroup_charged", "charged to the group", MW_UNIT_BYTES, m.charged);
    cgroup_close(&c);
}

static void put_overcommit(const struct survey *s)
{
    static const char *const modes[] = { "0: refuses only huge requests", "1: refuses nothing",
                                         "2: refuses requests above a limit" };
    char text[MW_FACT_TEXT];
    const char *mode = read_line(s, "/proc/sys/vm/overcommit_memory", text, sizeof text);

    put_text(s, "overcommit", "overcommit (vm.overcommit_memory)",
             mode == NULL                       ? NULL
             : mode[0] >= '0' && mode[0] <= '2' ? modes[mode[0] - '0']
                                                : mode);
}

static void put_pressure(const struct survey *s, const char *key, const char *label,
                         const char *path)
{
    struct mw_os_value v = os_unknown(no_file);
    struct mw_fact f = { .key = key, .label = label, .unit = MW_UNIT_SHARE };
    char text[512];

    if (kernel_file_slurp(s->root, path, text, sizeof text) >= 0)
        v = psi_parse(text);
    f.value = (double)v.value / 1e4;
    f.why_not = v.why_not;
    put(s, &f);
}

void survey_memory(const char *root, mw_fact_fn *fn, void *ctx)
{
    const struct survey s = { root, fn, ctx };
    struct proc_system system;
    struct proc proc;

    proc_open(&proc, root);
    proc_read_system(&proc, &system);
    put_value(&s, "total", "memory", MW_UNIT_BYTES, system.total);
    put_value(&s, "available", "available", MW_UNIT_BYTES, system.available);
    if (proc.zfs >= 0)
        put_value(&s, "zfs_cache", "of it in the cache of ZFS", MW_UNIT_BYTES,
                  system.zfs_cache);
    put_value(&s, "cached", "page cache", MW_UNIT_BYTES, system.cached);
    put_cgroup(&s);
    put_swap(&s);
    put_value(&s, "swap_used", "swap in use", MW_UNIT_BYTES, system.swap_used);
    put_overcommit(&s);
    put_choice(&s, "huge_pages", "huge pages", "/sys/kernel/mm/transparent_hugepage/enabled");
    put_file(&s, "numa_nodes", "NUMA nodes, by number", "/sys/devices/system/node/online");
    put_pressure(&s, "pressure", "tasks waiting for memory", "/proc/pressure/memory");
    proc_close(&proc);
}

/* --- disk --- */

#define WORD 64 /* maximum of a type and of a source, with the NUL */

/* Find the mount of a device number, and copy type and source of its file system. */
static bool find_mount(const struct survey *s, dev_t dev, char type[WORD], char source[WORD])
{
    char text[KERNEL_FILE_MAX], key[32];

    if (kernel_file_slurp(s->root, "/proc/self/mountinfo", text, sizeof text) < 0)
        return false;
    snprintf(key, sizeof key, "%u:%u", major(dev), minor(dev));
    for (char *line = text, *end; *line != '\0'; line = end) {
        char at[32], *dash;

        end = line + strcspn(line, "\n");
        if (*end != '\0')
            *end++ = '\0';
        dash = strstr(line, " - ");
        if (sscanf(line, "%*d %*d %31s", at) == 1 && strcmp(at, key) == 0 && dash != NULL &&
            sscanf(dash, " - %63s %63s", type, source) == 2)
            return true;
    }
    return false;
}

/* Read a file of the block device, or of the disk that the partition is on. */
static const char *read_block(const struct survey *s, dev_t dev, const char *name, char *buf,
                              size_t n)
{
    static const char *const folders[] = { "", "../" };
    char path[128];

    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "/sys/dev/block/%u:%u/%s%s", major(dev), minor(dev),
                 folders[i], name);
        if (read_line(s, path, buf, n) != NULL)
            return buf;
    }
    return NULL;
}

/* Block devices whose data is on another machine, by the beginning of their names. */
static bool is_network_block(const struct survey *s, dev_t dev)
{
    static const char *const names[] = { "nbd", "rbd", "drbd", "etherd" };
    char path[64], text[512], *name;

    snprintf(path, sizeof path, "/sys/dev/block/%u:%u/uevent", major(dev), minor(dev));
    if (kernel_file_slurp(s->root, path, text, sizeof text) < 0 ||
        (name = strstr(text, "DEVNAME=")) == NULL)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(name + strlen("DEVNAME="), names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* The alignment that direct reads need: what the file reports, or the sector of its disk. */
static void put_alignment(const struct survey *s, int fd, dev_t dev)
{
    char text[MW_FACT_TEXT];
    const char *sector;
#ifdef STATX_DIOALIGN
    struct statx x;

    if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &x) == 0 &&
        (x.stx_mask & STATX_DIOALIGN) != 0 && x.stx_dio_offset_align > 0) {
        put_number(s, "direct_align", "alignment of direct reads", MW_UNIT_BYTES,
                   x.stx_dio_offset_align);
        return;
    }
#else
    (void)fd;
#endif
    sector = read_block(s, dev, "queue/logical_block_size", text, sizeof text);
    if (sector != NULL)
        put_number(s, "direct_align", "alignment of direct reads", MW_UNIT_BYTES, atof(sector));
    else
        put_value(s, "direct_align", "alignment of direct reads", MW_UNIT_BYTES,
                  os_unknown(no_file));
}

void survey_disk(const char *root, int fd, mw_fact_fn *fn, void *ctx)
{
    static const char *const remote[] = { "nfs", "nfs4",     "cifs",       "smb3",
                                          "9p",  "virtiofs", "fuse.sshfs", "ceph" };
    const struct survey s = { root, fn, ctx };
    char type[WORD], source[WORD], text[MW_FACT_TEXT];
    const char *found;
    bool is_remote = false, has_mount;
    struct stat st;

    if (fstat(fd, &st) != 0)
        return;
    has_mount = find_mount(&s, st.st_dev, type, source);
    put_text(&s, "file_system", "file system", has_mount ? type : NULL);
    put_text(&s, "device", "device", has_mount ? source : NULL);
    for (size_t i = 0; has_mount && i < sizeof remote / sizeof remote[0]; i++)
        is_remote |= strcmp(type, remote[i]) == 0;
    if (has_mount && !is_remote && is_network_block(&s, st.st_dev))
        is_remote = true;
    put_text(&s, "network", "on another machine", has_mount ? is_remote ? "yes" : "no" : NULL);
    put_alignment(&s, fd, st.st_dev);
    found = read_block(&s, st.st_dev, "queue/rotational", text, sizeof text);
    put_text(&s, "rotational", "reported as rotating",
             found == NULL     ? NULL
             : found[0] == '1' ? "yes"
                               : "no");
    found = read_block(&s, st.st_dev, "dm/uuid", text, sizeof text);
    put_text(&s, "encrypted", "encrypted",
             found != NULL && strncmp(found, "CRYPT", 5) == 0 ? "yes" : "not seen");
    put_pressure(&s, "pressure", "tasks waiting for a disk", "/proc/pressure/io");
}

/* --- processors --- */

static void put_steal(const struct survey *s)
{
    struct load l;

    load_begin(&l, s->root);
    if (l.all > 0)
        put_number(s, "steal", "taken by the host", MW_UNIT_SHARE,
                   (double)l.stolen / (double)l.all);
    else
        put_value(s, "steal", "taken by the host", MW_UNIT_SHARE, os_unknown(no_file));
}

/* Times that processors were slowed down because they were too hot, since the start. */
static void put_throttle(const struct survey *s)
{
    double events = load_heat_events(s->root);

    if (events >= 0)
        put_number(s, "throttled", "times slowed down by heat", MW_UNIT_COUNT, events);
    else
        put_value(s, "throttled", "times slowed down by heat", MW_UNIT_COUNT,
                  os_unknown(no_file));
}

void survey_processor(const char *root, mw_fact_fn *fn, void *ctx)
{
    const struct survey s = { root, fn, ctx };
    double quota = cgroup_cpu_quota(root);
    struct mw_machine machine;

    machine_read(root, &machine);
    put_text(&s, "processor", "processor", machine.cpu[0] != '\0' ? machine.cpu : NULL);
    put_number(&s, "n_cpu", "processors to use", MW_UNIT_COUNT, machine.n_cpu);
    put_number(&s, "n_core", machine.n_efficient > 0 ? "performance cores to use" : "cores to use",
               MW_UNIT_COUNT, machine.n_core);
    if (machine.n_efficient > machine.n_low_power)
        put_number(&s, "n_efficient", "efficient cores", MW_UNIT_COUNT,
                   machine.n_efficient - machine.n_low_power);
    if (machine.n_low_power > 0)
        put_number(&s, "n_low_power", "cores of least power", MW_UNIT_COUNT, machine.n_low_power);
    put_number(&s, "n_thread", "threads by default", MW_UNIT_COUNT, machine.n_thread);
    put_text(&s, "threads_why", "why so many", machine.threads_why);
    if (quota > 0)
        put_number(&s, "quota", "quota of the group", MW_UNIT_COUNT, quota);
    else
        put_value(&s, "quota", "quota of the group", MW_UNIT_COUNT,
                  os_unknown(quota < 0 ? "no control group reports one" : "none is set"));
    put_file(&s, "governor", "governor",
             "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    put_throttle(&s);
    put_steal(&s);
    put_pressure(&s, "pressure", "tasks waiting for a processor", "/proc/pressure/cpu");
}
