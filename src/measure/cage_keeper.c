/* See cage_keeper.h. */
#include "config.h"

#include "src/measure/cage_keeper.h"

#include <sys/prctl.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <unistd.h>

#include "engine/memwall.h"

/* Also the name says "memwall" nowhere: "pkill -9 memwall" must not end it, too. */
#define NAME "cage-keeper"

/* In the new process.  Signals to the group of processes or from the terminal do not reach it,
 * and it keeps no file of its parent open: that would keep a pipe or a terminal busy. */
static void keep(const struct mw_cage *cage, int parent)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setsid();
    prctl(PR_SET_NAME, NAME);
    if (dup2(parent, 0) == 0 && close_range(1, UINT_MAX, 0) == 0)
        mw_cage_outlive(cage, 0);
    _exit(0);
}

void cage_keeper_start(struct cage_keeper *k, const struct mw_cage *cage)
{
    int ends[2];

    *k = (struct cage_keeper){ 0, -1 };
    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
    k->pid = fork();
    if (k->pid == 0)
        keep(cage, ends[0]);
    close(ends[0]);
    k->end = ends[1];
    if (k->pid < 0)
        cage_keeper_stop(k);
}

void cage_keeper_stop(struct cage_keeper *k)
{
    if (k->pid > 0) {
        kill(k->pid, SIGKILL);
        while (waitpid(k->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (k->end >= 0)
        close(k->end);
    *k = (struct cage_keeper){ 0, -1 };
}
