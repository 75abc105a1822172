/* See cage.h. */
#include "config.h"

#include "engine/machine/cage.h"

#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/machine/cgroup.h"

#define NAME_CAGE "memwall-cage."
#define NAME_SELF "memwall-self."
#define WAIT_MS   1000          /* between two attempts to remove a group, at most */
#define PATIENCE  (600 * 1000) /* milliseconds: a process whose disk hangs cannot die */

struct mw_cage {
    enum cgroup_version version;
    char own[KERNEL_PATH_MAX];       /* our group */
    char self[KERNEL_PATH_MAX + 32]; /* the group that we moved to; "": we did not move */
    char folder[KERNEL_PATH_MAX + 32];
    bool has_switched; /* the memory controller was switched on for groups below ours */
    int procs;         /* of folder, for mw_cage_enter() */
};

/* Write text to a file of a group.  Returns 0 or an errno. */
static int put(const char *folder, const char *name, const char *text)
{
    char path[2 * KERNEL_PATH_MAX];
    int fd, failed = 0;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    if (write(fd, text, strlen(text)) < 0)
        failed = errno;
    close(fd);
    return failed;
}

static int put_number(const char *folder, const char *name, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, value);
    return put(folder, name, text);
}

static bool has_word(const char *folder, const char *name, const char *word)
{
    char path[2 * KERNEL_PATH_MAX], text[512], *rest;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (kernel_file_slurp("", path, text, sizeof text) <= 0)
        return false;
    for (char *w = strtok_r(text, " \n", &rest); w != NULL; w = strtok_r(NULL, " \n", &rest))
        if (strcmp(w, word) == 0)
            return true;
    return false;
}

/* Is our process the only one of a group? */
static bool is_alone_in(const char *folder)
{
    char path[2 * KERNEL_PATH_MAX], text[64], mine[24];

    snprintf(path, sizeof path, "%s/cgroup.procs", folder);
    snprintf(mine, sizeof mine, "%ld\n", (long)getpid());
    return kernel_file_slurp("", path, text, sizeof text) > 0 && strcmp(text, mine) == 0;
}

/* Remove groups of a memwall that was killed: rmdir() refuses those with processes. */
static void remove_leftovers(const char *folder)
{
    DIR *dir = opendir(folder);
    char path[2 * KERNEL_PATH_MAX];
    struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        long pid;

        if (strncmp(entry->d_name, NAME_CAGE, strlen(NAME_CAGE)) != 0 &&
            strncmp(entry->d_name, NAME_SELF, strlen(NAME_SELF)) != 0)
            continue;
        pid = strtol(strchr(entry->d_name, '.') + 1, NULL, 10);
        if (pid <= 0 || kill((pid_t)pid, 0) == 0 || errno != ESRCH)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        rmdir(path);
    }
    if (dir != NULL)
        closedir(dir);
}

static int make_in(struct mw_cage *c, const char *folder)
{
    remove_leftovers(folder);
    snprintf(c->folder, sizeof c->folder, "%s/" NAME_CAGE "%ld", folder, (long)getpid());
    if (mkdir(c->folder, 0755) == 0)
        return 0;
    c->folder[0] = '\0';
    return errno;
}

/* --- version 2 --- */

/* Give groups below ours the memory controller, for which this process leaves our group. */
static int switch_on(struct mw_cage *c, bool may_move, struct err *e)
{
    char pid[24];
    int failed = put(c->own, "cgroup.subtree_control", "+memory");

    if (failed == EBUSY && may_move && is_alone_in(c->own)) {
        snprintf(c->self, sizeof c->self, "%s/" NAME_SELF "%ld", c->own, (long)getpid());
        snprintf(pid, sizeof pid, "%ld", (long)getpid());
        if (mkdir(c->self, 0755) != 0) {
            c->self[0] = '\0';
            return err_sys(e, "cannot make a control group in %.100s", c->own);
        }
        failed = put(c->self, "cgroup.procs", pid);
        if (failed == 0)
            failed = put(c->own, "cgroup.subtree_control", "+memory");
    }
    if (failed == 0) {
        c->has_switched = true;
        return 0;
    }
    if (failed == EBUSY)
        return err_set(e, ERR_IO, "other processes are in the control group %.120s", c->own);
    errno = failed;
    return err_sys(e, "cannot switch the memory controller on below the control group %.100s",
                   c->own);
}

/* Find the nearest group above ours whose children have a memory controller, and in which we
 * may make one. */
static bool make_above(struct mw_cage *c, size_t mount_len)
{
    char folder[KERNEL_PATH_MAX];

    snprintf(folder, sizeof folder, "%s", c->own);
    while (strlen(folder) > mount_len) {
        *strrchr(folder, '/') = '\0';
        if (has_word(folder, "cgroup.subtree_control", "memory") && make_in(c, folder) == 0)
            return true;
    }
    return false;
}

static int make_v2(struct mw_cage *c, size_t mount_len, bool may_move, struct err *e)
{
    bool is_on = has_word(c->own, "cgroup.subtree_control", "memory");

    if (!is_on && may_move && make_above(c, mount_len))
        return 0;
    if (!is_on && switch_on(c, may_move, e) != 0)
        return -1;
    errno = make_in(c, c->own);
    return errno == 0 ? 0 : err_sys(e, "cannot make a control group in %.120s", c->own);
}

/* --- both versions --- */

static int set_limit(const struct mw_cage *c, uint64_t bytes, struct err *e)
{
    int failed;

    if (c->version == CGROUP_V2) {
        failed = put_number(c->folder, "memory.max", bytes);
        (void)put(c->folder, "memory.swap.max", "0");
    } else {
        failed = put_number(c->folder, "memory.limit_in_bytes", bytes);
        if (put_number(c->folder, "memory.memsw.limit_in_bytes", bytes) != 0)
            (void)put(c->folder, "memory.swappiness", "0");
    }
    errno = failed;
    return failed == 0 ? 0 : err_sys(e, "cannot limit the control group %.120s", c->folder);
}

static int make(struct mw_cage *c, const char *root, uint64_t limit_bytes, struct err *e)
{
    char path[2 * KERNEL_PATH_MAX];
    struct cgroup group;
    size_t mount_len;

    cgroup_open(&group, root);
    c->version = group.version;
    snprintf(c->own, sizeof c->own, "%s%s", root, group.folder);
    mount_len = strlen(root) + group.mount_len;
    cgroup_close(&group);
    if (c->version == CGROUP_NONE)
        return err_set(e, ERR_UNSUPPORTED, "this system has no memory control groups");
    if (c->version == CGROUP_V2) {
        if (make_v2(c, mount_len, limit_bytes > 0, e) != 0)
            return -1;
    } else {
        errno = make_in(c, c->own);
        if (errno != 0)
            return err_sys(e, "cannot make a control group in %.120s", c->own);
    }
    if (limit_bytes > 0 && set_limit(c, limit_bytes, e) != 0)
        return -1;
    snprintf(path, sizeof path, "%s/cgroup.procs", c->folder);
    c->procs = open(path, O_WRONLY | O_CLOEXEC);
    return c->procs >= 0 ? 0 : err_sys(e, "cannot use the control group %.120s", c->folder);
}

int mw_cage_open(struct mw_cage **out, uint64_t limit_bytes, struct err *e)
{
    return cage_open(out, "", limit_bytes, e);
}

int cage_open(struct mw_cage **out, const char *root, uint64_t limit_bytes, struct err *e)
{
    struct mw_cage *c = calloc(1, sizeof *c);

    *out = NULL;
    if (c == NULL)
        return err_memory(e, "a control group");
    c->procs = -1;
    if (make(c, root, limit_bytes, e) != 0) {
        mw_cage_close(c);
        return -1;
    }
    *out = c;
    return 0;
}

int mw_cage_enter(const struct mw_cage *c)
{
    return write(c->procs, "0", 1) == 1 ? 0 : -1; /* 0 is the process that writes */
}

uint64_t mw_cage_peak(const struct mw_cage *c)
{
    char path[2 * KERNEL_PATH_MAX];
    uint64_t peak;
    int fd;

    snprintf(path, sizeof path, "%s/%s", c->folder,
             c->version == CGROUP_V2 ? "memory.peak" : "memory.max_usage_in_bytes");
    fd = kernel_file_open("", path);
    if (!kernel_file_number(fd, &peak))
        peak = 0;
    kernel_file_close(fd);
    return peak;
}

/* Read a file of the group: a number, or the line of a table that starts with field. */
static struct mw_os_value read_value(const struct mw_cage *c, const char *name,
                                     const char *field)
{
    char path[2 * KERNEL_PATH_MAX], text[KERNEL_FILE_MAX];
    uint64_t value;

    snprintf(path, sizeof path, "%s/%s", c->folder, name);
    if (kernel_file_slurp("", path, text, sizeof text) <= 0)
        return os_unknown("the control group cannot be read");
    if (field == NULL) {
        errno = 0;
        value = strtoull(text, NULL, 10);
        return errno == 0 && text[0] >= '0' && text[0] <= '9'
                   ? os_value(value)
                   : os_unknown("the control group has no such number");
    }
    return kernel_file_field(text, field, &value)
               ? os_value(value)
               : os_unknown("the control group has no such number");
}

void mw_cage_use(const struct mw_cage *c, struct mw_cage_use *out)
{
    bool is_v2 = c->version == CGROUP_V2;

    out->charged = read_value(c, is_v2 ? "memory.current" : "memory.usage_in_bytes", NULL);
    out->cached = read_value(c, "memory.stat", is_v2 ? "file" : "cache");
    out->reread = read_value(c, "memory.stat", "workingset_refault_file");
    out->reread.value *= (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Remove what make() did beside the folder of the cage. */
static void leave(const struct mw_cage *c)
{
    char pid[24];

    if (c->has_switched)
        (void)put(c->own, "cgroup.subtree_control", "-memory");
    if (c->self[0] != '\0') {
        snprintf(pid, sizeof pid, "%ld", (long)getpid());
        (void)put(c->own, "cgroup.procs", pid);
        rmdir(c->self);
    }
}

void mw_cage_outlive(const struct mw_cage *c, int parent)
{
    int ms = 1;
    ssize_t n;
    char ignored;

    do
        n = read(parent, &ignored, 1);
    while (n > 0 || (n < 0 && errno == EINTR));
    /* The processes of the group die with their parent, but not at the same moment. */
    for (int waited = 0; rmdir(c->folder) != 0 && errno == EBUSY && waited < PATIENCE;
         waited += ms) {
        ms = 2 * ms < WAIT_MS ? 2 * ms : WAIT_MS;
        (void)poll(NULL, 0, ms);
    }
    leave(c);
}

void mw_cage_close(struct mw_cage *c)
{
    if (c == NULL)
        return;
    if (c->procs >= 0)
        close(c->procs);
    if (c->folder[0] != '\0')
        rmdir(c->folder);
    leave(c);
    free(c);
}
