#include "config.h"

#include "ui/talk/shell.h"

#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/utf8.h"
#include "ui/words/clean.h"

#define SECOND_NS ((uint64_t)1000 * 1000 * 1000)
#define GRACE_NS  (2 * SECOND_NS)  /* between asking to stop and killing */
#define LAST_NS   (SECOND_NS / 10) /* between killing and the end of the output */

extern char **environ;

/* ---- starting ---- */

/* The environment, with a terminal that has no colours and no pager.  The array is to be freed.
 */
static char **environment(void)
{
    static char own[][24] = { "TERM=dumb",     "NO_COLOR=1", "PAGER=cat",
                              "GIT_PAGER=cat", "COLUMNS=80", "GIT_TERMINAL_PROMPT=0" };
    size_t n = 0, n_own = sizeof own / sizeof own[0], to = 0;
    char **all;

    while (environ[n] != NULL)
        n++;
    all = calloc(n + n_own + 1, sizeof *all);
    if (all == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        bool is_own = false;

        for (size_t k = 0; k < n_own; k++)
            is_own = is_own || strncmp(environ[i], own[k], strcspn(own[k], "=") + 1) == 0;
        if (!is_own)
            all[to++] = environ[i];
    }
    for (size_t k = 0; k < n_own; k++)
        all[to++] = own[k];
    return all;
}

/* The command gets no terminal, which it could disturb, and the signals as a shell leaves them.
 */
static int spawn(struct shell *s, const char *command, int out, char **env)
{
    char name[] = "sh", option[] = "-c", *text = strdup(command);
    char *argv[] = { name, option, text, NULL };
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, some;
    int rc;

    if (text == NULL)
        return ENOMEM;
    sigemptyset(&none);
    sigemptyset(&some);
    for (int sig = 1; sig < 32; sig++)
        sigaddset(&some, sig);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &some);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, out, STDERR_FILENO);
    rc = posix_spawn(&s->pid, "/bin/sh", &files, &attributes, argv, env);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    free(text);
    return rc;
}

int shell_start(struct shell *s, const char *command, size_t room, struct err *e)
{
    int ends[2];
    char **env;

    *s = (struct shell){ .fd = -1, .room = room < SHELL_MAX_TEXT ? room : SHELL_MAX_TEXT };
    s->text = malloc(s->room + 1);
    env = environment();
    if (s->text == NULL || env == NULL) {
        free(env);
        shell_free(s);
        return err_memory(e, "the output of a command");
    }
    if (pipe2(ends, O_CLOEXEC) != 0) {
        free(env);
        shell_free(s);
        return err_sys(e, "cannot run a command");
    }
    errno = spawn(s, command, ends[1], env);
    close(ends[1]);
    free(env);
    if (errno != 0) {
        s->pid = 0;
        close(ends[0]);
        err_sys(e, "cannot run /bin/sh");
        shell_free(s);
        return -1;
    }
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    s->fd = ends[0];
    s->end_ns = clock_ns() + SHELL_SECONDS * SECOND_NS;
    clean_line(s->command, sizeof s->command, command, strlen(command));
    return 0;
}

/* ---- running ---- */

bool shell_runs(const struct shell *s)
{
    return s->pid != 0;
}

bool shell_read(struct shell *s)
{
    char rest[4096];

    /* Bounded, so that endless output does not keep the screen from being drawn. */
    for (int i = 0; i < 16; i++) {
        size_t room = s->room - s->n;
        ssize_t n =
            read(s->fd, room > 0 ? s->text + s->n : rest, room > 0 ? room : sizeof rest);

        if (n > 0 && room > 0)
            s->n += (size_t)n;
        else if (n > 0)
            s->n_left += (uint64_t)n;
        else
            return n == 0 || (errno != EAGAIN && errno != EINTR) || s->is_over;
    }
    return s->is_over;
}

/* Processes that left the group live on, and may keep the pipe open: none is waited for. */
static void kill_all(struct shell *s)
{
    (void)kill(-s->pid, SIGKILL);
    s->kill_ns = 0;
    s->over_ns = clock_ns() + LAST_NS;
}

void shell_stop(struct shell *s)
{
    if (!shell_runs(s))
        return;
    if (s->is_stopped) {
        kill_all(s);
        return;
    }
    (void)kill(-s->pid, SIGINT);
    s->is_stopped = true;
    s->kill_ns = clock_ns() + GRACE_NS;
}

void shell_tick(struct shell *s)
{
    uint64_t now = clock_ns();

    if (!shell_runs(s))
        return;
    if (s->over_ns != 0) {
        s->is_over = now >= s->over_ns;
    } else if (s->is_stopped && now >= s->kill_ns) {
        kill_all(s);
    } else if (!s->is_stopped && now >= s->end_ns) {
        s->is_late = true;
        shell_stop(s);
    }
}

uint64_t shell_wait(const struct shell *s)
{
    uint64_t now = clock_ns(), due = s->is_stopped ? s->kill_ns : s->end_ns;

    if (s->over_ns != 0)
        due = s->over_ns;
    if (!shell_runs(s))
        return UINT64_MAX;
    return due > now ? due - now : 0;
}

/* ---- the output ---- */

size_t shell_plain(char *text, size_t n)
{
    size_t to = 0, line = 0; /* where the line begins */

    for (size_t i = 0; i < n;) {
        unsigned char c = (unsigned char)text[i];

        if (c == '\033') {
            i += clean_sequence(text + i, n - i);
            continue;
        }
        i++;
        if (c == '\r' && i < n && text[i] != '\n' && text[i] != '\r') {
            to = line; /* a bar of progress is drawn again */
        } else if (c == '\b') {
            while (to > line && utf8_is_inside(text[--to]))
                ;
        } else {
            text[to++] = (char)c;
        }
        if (c == '\n')
            line = to;
    }
    return to;
}

/* The output ends a moment before the process, whose exit status is shown.  Wait for it. */
static void let_it_exit(pid_t pid)
{
    struct timespec pause = { 0, 2 * 1000 * 1000 };
    siginfo_t info = { 0 };

    for (int i = 0; i < 50; i++) {
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            info.si_pid != 0)
            return;
        nanosleep(&pause, NULL);
    }
}

char *shell_take(struct shell *s, size_t *n, int *status)
{
    size_t plain = shell_plain(s->text, s->n), room = plain * 3 + 1;
    char *text = malloc(room);
    int how = 0;

    if (s->pid != 0) {
        let_it_exit(s->pid);
        (void)kill(-s->pid, SIGKILL); /* also what it left in the background */
        while (waitpid(s->pid, &how, 0) < 0 && errno == EINTR)
            ;
    }
    *status = WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
    s->pid = 0;
    *n = text == NULL ? 0 : clean_controls(text, s->text, plain);
    shell_free(s);
    return text;
}

void shell_free(struct shell *s)
{
    if (s->pid != 0) {
        (void)kill(-s->pid, SIGKILL);
        while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (s->fd >= 0)
        close(s->fd);
    free(s->text);
    s->text = NULL;
    s->pid = 0;
    s->fd = -1;
}
