/*
 * Cages in a tree of files that looks like control groups of version 2.  The kernel fills a new
 * group with files and empties one that is removed, so this program replaces mkdir() and
 * rmdir(); write() refuses what the kernel refuses.
 */
#include "config.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/units.h"
#include "engine/machine/cage.h"
#include "tests/lib/tree.h"

#define V2_MOUNT "41 31 0:38 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw\n"
#define TOP      "/sys/fs/cgroup"
#define OWN      TOP "/a/b"

/* How often a cage cannot be removed yet, because processes in it are just ending. */
static int n_ending;
/* The group that has processes, so that its controllers cannot be switched on; "": none. */
static char busy[64];

static const char *const files[] = { "memory.max",    "memory.swap.max", "memory.peak",
                                     "memory.current", "memory.stat",     "cgroup.procs",
                                     "cgroup.subtree_control" };

static bool is_cage(const char *path)
{
    return strstr(path, "/memwall-") != NULL;
}

/* A sanitizer that writes its report to a file makes the folder with this before it is ready. */
__attribute__((no_sanitize("address", "undefined", "thread")))
int mkdir(const char *path, mode_t mode)
{
    int r = (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);

    for (size_t i = 0; r == 0 && is_cage(path) && i < sizeof files / sizeof files[0]; i++) {
        char name[1024];
        int fd;

        snprintf(name, sizeof name, "%s/%s", path, files[i]);
        fd = open(name, O_CREAT | O_WRONLY, 0644);
        assert_true(fd >= 0);
        close(fd);
    }
    return r;
}

int rmdir(const char *path)
{
    if (strstr(path, "/memwall-cage.") != NULL && n_ending > 0) {
        n_ending--;
        errno = EBUSY;
        return -1;
    }
    for (size_t i = 0; is_cage(path) && i < sizeof files / sizeof files[0]; i++) {
        char name[1024];

        snprintf(name, sizeof name, "%s/%s", path, files[i]);
        unlink(name);
    }
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}

ssize_t write(int fd, const void *buf, size_t n)
{
    char name[64], path[600] = "";

    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    if (busy[0] != '\0' && readlink(name, path, sizeof path - 1) > 0 &&
        strstr(path, "/cgroup.subtree_control") != NULL && strstr(path, busy) != NULL) {
        errno = EBUSY;
        return -1;
    }
    if (strstr(path, "/memwall-self.") != NULL) /* our process has left the group */
        busy[0] = '\0';
    return syscall(SYS_write, fd, buf, n);
}

/* --- helpers --- */

/* Our process in /a/b, and the controllers of the groups below / and /a. */
static void put_groups(const char *procs, const char *top, const char *own)
{
    busy[0] = '\0';
    tree_put("/proc/self/cgroup", "0::/a/b\n");
    tree_put("/proc/self/mountinfo", V2_MOUNT);
    tree_put(TOP "/cgroup.subtree_control", top);
    tree_put(TOP "/a/cgroup.subtree_control", "");
    tree_put(OWN "/memory.max", "max\n");
    tree_put(OWN "/cgroup.procs", procs);
    tree_put(OWN "/cgroup.subtree_control", own);
}

static const char *mine(const char *before)
{
    static char text[64];

    snprintf(text, sizeof text, "%s%ld", before, (long)getpid());
    return text;
}

static void read_file(const char *folder, const char *name, char *buf, size_t n)
{
    char path[1024];
    ssize_t got;
    int fd;

    snprintf(path, sizeof path, "%s%s/%s", tree_root, folder, name);
    fd = open(path, O_RDONLY);
    got = fd >= 0 ? read(fd, buf, n - 1) : -1;
    buf[got > 0 ? got : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

static void assert_file(const char *folder, const char *name, const char *want)
{
    char text[128];

    read_file(folder, name, text, sizeof text);
    assert_string_equal(text, want);
}

static bool exists(const char *folder, const char *name)
{
    char path[1024];

    snprintf(path, sizeof path, "%s%s/%s", tree_root, folder, name);
    return access(path, F_OK) == 0;
}

static struct mw_cage *opened(uint64_t limit)
{
    struct mw_cage *c;
    struct err e = ERR_INIT;

    if (cage_open(&c, tree_root, limit, &e) != 0)
        fail_msg("%s", e.what);
    return c;
}

/* --- tests --- */

static void a_cage_below_our_group_has_the_limit(void **state)
{
    char folder[128], path[160];
    struct mw_cage *c;

    (void)state;
    put_groups("", "memory\n", "cpu memory\n");
    c = opened(64 * MIB);
    snprintf(folder, sizeof folder, OWN "/%s", mine("memwall-cage."));
    assert_file(folder, "memory.max", "67108864");
    assert_file(folder, "memory.swap.max", "0");
    assert_int_equal(mw_cage_enter(c), 0);
    assert_file(folder, "cgroup.procs", "0");
    assert_int_equal(mw_cage_peak(c), 0); /* an empty file: unknown */
    snprintf(path, sizeof path, "%s/memory.peak", folder);
    tree_put(path, "12345\n");
    assert_int_equal(mw_cage_peak(c), 12345);
    mw_cage_close(c);
    assert_false(exists(folder, ""));
    assert_file(OWN, "cgroup.subtree_control", "cpu memory\n");
}

static void its_memory_is_read_while_it_works(void **state)
{
    struct mw_cage_use use;
    struct mw_cage *c;
    char path[160];

    (void)state;
    put_groups("", "memory\n", "memory\n");
    c = opened(64 * MIB);
    mw_cage_use(c, &use);
    assert_non_null(use.charged.why_not); /* the files are empty */
    assert_non_null(use.cached.why_not);
    assert_non_null(use.reread.why_not);
    snprintf(path, sizeof path, OWN "/%s/memory.current", mine("memwall-cage."));
    tree_put(path, "67108864\n");
    snprintf(path, sizeof path, OWN "/%s/memory.stat", mine("memwall-cage."));
    tree_put(path, "anon 4096\nfile 60000000\nworkingset_refault_file 3\n");
    mw_cage_use(c, &use);
    assert_int_equal(use.charged.value, 67108864);
    assert_int_equal(use.cached.value, 60000000);
    assert_int_equal(use.reread.value, 3 * sysconf(_SC_PAGESIZE));
    assert_null(use.reread.why_not);
    mw_cage_close(c);
}

static void a_process_that_is_alone_moves_and_returns(void **state)
{
    char folder[128], self[128], procs[80];
    struct mw_cage *c;

    (void)state;
    snprintf(procs, sizeof procs, "%s\n", mine(""));
    put_groups(procs, "", "");
    snprintf(busy, sizeof busy, "/a/b/");
    c = opened(64 * MIB);
    snprintf(folder, sizeof folder, OWN "/%s", mine("memwall-cage."));
    snprintf(self, sizeof self, OWN "/%s", mine("memwall-self."));
    assert_file(self, "cgroup.procs", mine(""));
    assert_file(OWN, "cgroup.subtree_control", "+memory");
    assert_file(folder, "memory.max", "67108864");
    tree_put(OWN "/cgroup.procs", ""); /* as the kernel does after the move */
    mw_cage_close(c);
    assert_false(exists(self, ""));
    assert_false(exists(folder, ""));
    assert_file(OWN, "cgroup.subtree_control", "-memory");
    assert_file(OWN, "cgroup.procs", mine(""));
}

/* The process that made the cage is killed when the pipe closes without a word. */
static void a_cage_is_removed_after_its_process(void **state)
{
    char self[128], procs[80];
    struct mw_cage *c;
    int ends[2], status;
    pid_t keeper;

    (void)state;
    snprintf(procs, sizeof procs, "%s\n", mine(""));
    put_groups(procs, "", "");
    snprintf(busy, sizeof busy, "/a/b/");
    c = opened(64 * MIB);
    assert_int_equal(pipe(ends), 0);
    keeper = fork();
    if (keeper == 0) {
        close(ends[1]);
        n_ending = 3;
        mw_cage_outlive(c, ends[0]);
        _exit(n_ending);
    }
    close(ends[0]);
    snprintf(self, sizeof self, OWN "/%s", mine("memwall-self."));
    assert_true(exists(OWN, mine("memwall-cage.")));
    tree_put(OWN "/cgroup.procs", ""); /* as the kernel does after the move */
    close(ends[1]);
    assert_int_equal(waitpid(keeper, &status, 0), keeper);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0); /* it waited for the others */
    assert_false(exists(OWN, mine("memwall-cage.")));
    assert_false(exists(self, ""));
    assert_file(OWN, "cgroup.subtree_control", "-memory");
    snprintf(procs, sizeof procs, "%ld", (long)keeper); /* it has left the group as well */
    assert_file(OWN, "cgroup.procs", procs);
    mw_cage_close(c);
}

static void a_group_above_is_used_if_others_are_in_ours(void **state)
{
    struct mw_cage *c;

    (void)state;
    put_groups("1\n2\n", "memory\n", "");
    snprintf(busy, sizeof busy, "/a/b/");
    c = opened(64 * MIB);
    assert_true(exists(TOP, mine("memwall-cage.")));
    assert_false(exists(OWN, mine("memwall-cage.")));
    mw_cage_close(c);
    assert_false(exists(TOP, mine("memwall-cage.")));
    assert_file(OWN, "cgroup.subtree_control", "");
}

static void processes_of_others_are_a_reason(void **state)
{
    struct mw_cage *c;
    struct err e = ERR_INIT;

    (void)state;
    put_groups("1\n2\n", "", "");
    snprintf(busy, sizeof busy, "/a/b/");
    assert_int_equal(cage_open(&c, tree_root, 64 * MIB, &e), -1);
    assert_null(c);
    assert_non_null(strstr(e.what, "other processes are in the control group"));
    assert_non_null(strstr(e.what, "/a/b"));
}

/* To measure, without a limit, a process does not move. */
static void nobody_moves_without_a_limit(void **state)
{
    struct mw_cage *c;
    struct err e = ERR_INIT;
    char procs[80];

    (void)state;
    snprintf(procs, sizeof procs, "%s\n", mine(""));
    put_groups(procs, "memory\n", "");
    snprintf(busy, sizeof busy, "/a/b/");
    assert_int_equal(cage_open(&c, tree_root, 0, &e), -1);
    assert_file(OWN, "cgroup.procs", procs);
    assert_false(exists(TOP, mine("memwall-cage.")));

    put_groups(procs, "memory\n", "memory\n");
    c = opened(0);
    assert_true(exists(OWN, mine("memwall-cage.")));
    mw_cage_close(c);
}

static void cages_of_dead_processes_are_removed(void **state)
{
    pid_t dead = fork();
    char name[1024];

    (void)state;
    if (dead == 0)
        _exit(0);
    assert_int_equal(waitpid(dead, NULL, 0), dead);
    put_groups("", "memory\n", "memory\n");
    snprintf(name, sizeof name, "%s" OWN "/memwall-cage.%ld", tree_root, (long)dead);
    assert_int_equal(mkdir(name, 0755), 0);
    mw_cage_close(opened(64 * MIB));
    assert_int_not_equal(access(name, F_OK), 0);
}

static void no_control_groups_are_a_reason(void **state)
{
    struct mw_cage *c;
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(cage_open(&c, tree_root, 64 * MIB, &e), -1);
    assert_int_equal(e.code, ERR_UNSUPPORTED);
    mw_cage_close(NULL);
}

int main(void)
{
#define in_a_tree(test) cmocka_unit_test_setup_teardown(test, tree_make, tree_drop)
    const struct CMUnitTest tests[] = {
        in_a_tree(a_cage_below_our_group_has_the_limit),
        in_a_tree(its_memory_is_read_while_it_works),
        in_a_tree(a_process_that_is_alone_moves_and_returns),
        in_a_tree(a_cage_is_removed_after_its_process),
        in_a_tree(a_group_above_is_used_if_others_are_in_ours),
        in_a_tree(processes_of_others_are_a_reason),
        in_a_tree(nobody_moves_without_a_limit),
        in_a_tree(cages_of_dead_processes_are_removed),
        in_a_tree(no_control_groups_are_a_reason),
    };

    return cmocka_run_group_tests_name("cage", tests, NULL, NULL);
}
