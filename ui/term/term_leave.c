/* Leaving the screen for a while: a stop of the process, or another program on the terminal. */
#include "config.h"

#include <sys/wait.h>

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <unistd.h>

#include <curses.h>
#include <termios.h>

#include "ui/term/modes.h"
#include "ui/term/term_internal.h"

static void leave(struct term *t)
{
    term_modes_off(t);
    def_prog_mode();
    term_end_screen(t);
    tcsetattr(t->fd, TCSADRAIN, &t->modes);
}

/* Set up the screen again, also after the process was stopped by SIGSTOP. */
static void retake(struct term *t)
{
    reset_prog_mode();
    clearok(curscr, TRUE);
    term_send_text(t, modes_known(getenv("TERM")));
    term_show_screen(t);
    term_modes_on(t);
    term_resized(t);
}

void term_stop(struct term *t)
{
    sigset_t stop;

    leave(t);
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    kill(0, SIGTSTP);
    pthread_sigmask(SIG_UNBLOCK, &stop, NULL); /* here the program stops */
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
    retake(t);
}

bool term_obey(struct term *t, int sig)
{
    switch (sig) {
    case SIGWINCH: term_resized(t); return true;
    case SIGTSTP: term_stop(t); return true;
    case SIGCONT: retake(t); return true;
    default: return false;
    }
}

/* Our standard output and error are the log, so the child gets the terminal as descriptors
 * 0 to 2.  Its signal mask is empty. */
static int spawn(struct term *t, char *const argv[], pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, defaults;
    int rc;

    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    sigaddset(&defaults, SIGXFSZ);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attr);
    for (int i = 0; i < 3; i++)
        posix_spawn_file_actions_adddup2(&files, t->fd, i);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &defaults);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    rc = posix_spawnp(pid, argv[0], &files, &attr, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    return rc;
}

int term_run(struct term *t, char *const argv[], struct err *e)
{
    int rc, status = 0, sig;
    pid_t pid;

    leave(t);
    rc = spawn(t, argv, &pid);
    if (rc == 0)
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    retake(t);
    if (rc != 0) {
        errno = rc;
        return err_sys(e, "cannot start \"%s\"", argv[0]);
    }
    /* Ctrl-C was meant for the child; keep signals that end this program. */
    for (bool ends = false; !ends && (sig = term_signal(t)) != 0;)
        if (sig == SIGTERM || sig == SIGHUP) {
            ends = true;
            raise(sig);
        }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
