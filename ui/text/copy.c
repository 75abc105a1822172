#include "config.h"

#include "ui/text/copy.h"

#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/new_file.h"

#define PATIENCE_MS 2000 /* for each step of tmux */

extern char **environ;

static const char head[] = "\033]52;c;";

static size_t base64_size(size_t n)
{
    return (n + 2) / 3 * 4;
}

enum copy_way copy_choose(size_t n, bool in_tmux, bool dumb)
{
    if (in_tmux)
        return COPY_TMUX;
    if (dumb || n > COPY_MAX_OSC52 || base64_size(n) + sizeof head > COPY_MAX_OSC52)
        return COPY_FILE;
    return COPY_OSC52;
}

char *copy_osc52(const char *text, size_t n, size_t *len)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *in = (const unsigned char *)text;
    char *out, *p;

    if (n > SIZE_MAX / 2 || (out = malloc(base64_size(n) + sizeof head + 1)) == NULL)
        return NULL;
    memcpy(out, head, sizeof head - 1);
    p = out + sizeof head - 1;
    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i;
        uint32_t bits = (uint32_t)in[i] << 16 | (left > 1 ? (uint32_t)in[i + 1] << 8 : 0) |
                        (left > 2 ? (uint32_t)in[i + 2] : 0);

        *p++ = digits[bits >> 18];
        *p++ = digits[bits >> 12 & 63];
        *p++ = left > 1 ? digits[bits >> 6 & 63] : '=';
        *p++ = left > 2 ? digits[bits & 63] : '=';
    }
    *p++ = '\a';
    *p = '\0';
    *len = (size_t)(p - out);
    return out;
}

/* Start tmux with standard input from in, other descriptors on /dev/null, and default
 * signals. */
static int start(int in, pid_t *pid)
{
    static const char *const argv[] = { "tmux", "load-buffer", "-w", "-", NULL };
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, all;
    int failed;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attr);
    posix_spawn_file_actions_adddup2(&files, in, 0);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    /* posix_spawnp does not modify the words; its prototype only lacks the const. */
    failed = posix_spawnp(pid, argv[0], &files, &attr, (char *const *)(uintptr_t)argv, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    errno = failed;
    return failed == 0 ? 0 : -1;
}

/* A socket instead of a pipe: a child that ends early must not raise SIGPIPE here. */
static int feed(int fd, const char *text, size_t n)
{
    while (n > 0) {
        struct pollfd p = { .fd = fd, .events = POLLOUT };
        ssize_t sent;

        if (poll(&p, 1, PATIENCE_MS) <= 0)
            return -1;
        sent = send(fd, text, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (sent < 0)
            return -1;
        text += sent;
        n -= (size_t)sent;
    }
    return 0;
}

/* Wait for pid to exit, and kill it if it does not. */
static int finish(pid_t pid, bool patient)
{
    int fd = pidfd_open(pid, 0), status = -1;

    if (fd >= 0) {
        struct pollfd p = { .fd = fd, .events = POLLIN };

        if (!patient || poll(&p, 1, PATIENCE_MS) <= 0)
            kill(pid, SIGKILL);
        close(fd);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

int copy_tmux(const char *text, size_t n, struct err *e)
{
    int pair[2];
    pid_t pid;
    bool fed;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return err_sys(e, "cannot reach tmux");
    if (start(pair[0], &pid) != 0) {
        err_sys(e, "cannot start tmux");
        close(pair[0]);
        close(pair[1]);
        return -1;
    }
    close(pair[0]);
    fed = feed(pair[1], text, n) == 0;
    close(pair[1]);
    if (finish(pid, fed) != 0 || !fed)
        return err_set(e, ERR_IO, "tmux refused the text");
    return 0;
}

int copy_file(const char *path, const char *text, size_t n, struct err *e)
{
    struct new_file file;

    if (new_file_begin(&file, path, true, e) != 0)
        return -1;
    fwrite(text, 1, n, file.f); /* new_file_end asks whether it went well */
    return new_file_end(&file, e);
}
