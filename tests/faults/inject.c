#include "config.h"

#include "tests/faults/inject.h"

#include <sys/file.h>
#include <sys/mman.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef HAVE_LIBURING
#include <liburing.h>
#endif

#include "engine/stream/backend.h"

struct inject inject = { .resource_skip = -1, .enter_times = INT_MAX };

void inject_nothing(void)
{
    inject.read_error = inject.read_skip = inject.read_times = 0;
    inject.sync_error = inject.sync_skip = inject.sync_times = 0;
    inject.lock_error = 0;
    inject.locks_of_nfs = inject.is_other_user = false;
    inject.meanwhile = NULL;
    inject.short_one_in = 0;
    inject.of_copies = false;
    inject.reads_wait = false;
    inject.direct_us = 0;
    inject.init_error = inject.register_error = inject.enter_error = inject.enter_skip = 0;
    inject.enter_times = INT_MAX;
    inject.resource_skip = -1;
    inject.resource_lasts = inject.resource_gone = false;
}

/* Count down to 0 and then for `times` more calls.  Returns whether this call is one of
 * those. */
static bool is_due(atomic_int *skip, atomic_int *times)
{
    if (atomic_load(skip) > 0 && atomic_fetch_sub(skip, 1) > 0)
        return false;
    return atomic_load(times) > 0 && atomic_fetch_sub(times, 1) > 0;
}

static bool is_of_copy(int fd)
{
    char link[40], path[4096];
    ssize_t n;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    return strstr(path, "/copy/") != NULL;
}

/* Change the result of a read of n bytes. */
static int64_t spoil(int64_t n, bool is_copy)
{
    static atomic_uint count;
    unsigned one_in = inject.short_one_in;

    if (inject.of_copies && !is_copy)
        return n;
    if (inject.read_error != 0 && is_due(&inject.read_skip, &inject.read_times))
        return -inject.read_error;
    if (one_in != 0 && n > 8192 && atomic_fetch_add(&count, 1) % one_in == 0)
        return n / 2 / 4096 * 4096;
    return n;
}

ssize_t __real_pread(int fd, void *p, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *p, size_t n, off_t at);

ssize_t __wrap_pread(int fd, void *p, size_t n, off_t at)
{
    int64_t got;

    while (inject.reads_wait)
        sched_yield();
    if (inject.direct_us > 0 && (fcntl(fd, F_GETFL) & O_DIRECT) != 0)
        usleep((useconds_t)inject.direct_us);
    got = spoil(__real_pread(fd, p, n, at), inject.of_copies && is_of_copy(fd));
    if (got >= 0)
        return (ssize_t)got;
    if (inject.read_error != 0)
        errno = (int)-got;
    return -1;
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);

/* The bytes may be on the disk all the same. */
int __wrap_fsync(int fd)
{
    int result = __real_fsync(fd);

    if (inject.sync_error == 0 || !is_due(&inject.sync_skip, &inject.sync_times))
        return result;
    errno = inject.sync_error;
    return -1;
}

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);

/* A lock that changes is given up first, as the kernel does. */
int __wrap_flock(int fd, int operation)
{
    void (*meanwhile)(void) = inject.meanwhile;

    if (inject.lock_error != 0) {
        errno = inject.lock_error;
        return -1;
    }
    if ((operation & LOCK_EX) != 0 && inject.locks_of_nfs &&
        (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY) {
        errno = EBADF;
        return -1;
    }
    if ((operation & LOCK_EX) != 0 && meanwhile != NULL) {
        inject.meanwhile = NULL;
        (void)__real_flock(fd, LOCK_UN);
        meanwhile();
    }
    return __real_flock(fd, operation);
}

uid_t __real_geteuid(void);
uid_t __wrap_geteuid(void);

uid_t __wrap_geteuid(void)
{
    return inject.is_other_user ? __real_geteuid() + 1 : __real_geteuid();
}

/* --- memory and threads --- */

static bool refuses(void)
{
    int left = atomic_load(&inject.resource_skip);

    if (left >= 0 && atomic_fetch_sub(&inject.resource_skip, 1) == 0) {
        atomic_store(&inject.resource_gone, atomic_load(&inject.resource_lasts));
        return true;
    }
    return atomic_load(&inject.resource_gone);
}

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);
char *__real_strdup(const char *s);
char *__wrap_strdup(const char *s);
void __real_free(void *p);
void __wrap_free(void *p);
void *__real_mmap(void *p, size_t n, int prot, int flags, int fd, off_t at);
void *__wrap_mmap(void *p, size_t n, int prot, int flags, int fd, off_t at);
int __real_mprotect(void *p, size_t n, int prot);
int __wrap_mprotect(void *p, size_t n, int prot);
int __real_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg);

void *__wrap_malloc(size_t n)
{
    atomic_fetch_add(&inject.n_alloc, 1);
    return refuses() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    atomic_fetch_add(&inject.n_alloc, 1);
    return refuses() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    atomic_fetch_add(&inject.n_alloc, 1);
    return refuses() ? NULL : __real_realloc(p, n);
}

/* The C library's own calls of malloc do not go through the wrapper. */
char *__wrap_strdup(const char *s)
{
    atomic_fetch_add(&inject.n_alloc, 1);
    return refuses() ? NULL : __real_strdup(s);
}

void __wrap_free(void *p)
{
    atomic_fetch_add(&inject.n_alloc, 1);
    __real_free(p);
}

void *__wrap_mmap(void *p, size_t n, int prot, int flags, int fd, off_t at)
{
    if (refuses()) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return __real_mmap(p, n, prot, flags, fd, at);
}

int __wrap_mprotect(void *p, size_t n, int prot)
{
    if (refuses()) {
        errno = ENOMEM;
        return -1;
    }
    return __real_mprotect(p, n, prot);
}

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg)
{
    return refuses() ? EAGAIN : __real_pthread_create(t, attr, fn, arg);
}

/* --- io_uring --- */

#ifdef HAVE_LIBURING

int __real_io_uring_queue_init_params(unsigned n, struct io_uring *ring,
                                      struct io_uring_params *p);
int __wrap_io_uring_queue_init_params(unsigned n, struct io_uring *ring,
                                      struct io_uring_params *p);
int __real_io_uring_register_files(struct io_uring *ring, const int *fds, unsigned n);
int __wrap_io_uring_register_files(struct io_uring *ring, const int *fds, unsigned n);
int __real_io_uring_register_buffers(struct io_uring *ring, const struct iovec *v, unsigned n);
int __wrap_io_uring_register_buffers(struct io_uring *ring, const struct iovec *v, unsigned n);
int __real_io_uring_submit(struct io_uring *ring);
int __wrap_io_uring_submit(struct io_uring *ring);
int __real_io_uring_submit_and_wait(struct io_uring *ring, unsigned n);
int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned n);
unsigned __real_io_uring_peek_batch_cqe(struct io_uring *ring, struct io_uring_cqe **cqes,
                                        unsigned count);
unsigned __wrap_io_uring_peek_batch_cqe(struct io_uring *ring, struct io_uring_cqe **cqes,
                                        unsigned count);

int __wrap_io_uring_queue_init_params(unsigned n, struct io_uring *ring,
                                      struct io_uring_params *p)
{
    if (inject.init_error != 0)
        return -inject.init_error;
    return __real_io_uring_queue_init_params(n, ring, p);
}

int __wrap_io_uring_register_files(struct io_uring *ring, const int *fds, unsigned n)
{
    if (inject.register_error != 0)
        return -inject.register_error;
    return __real_io_uring_register_files(ring, fds, n);
}

int __wrap_io_uring_register_buffers(struct io_uring *ring, const struct iovec *v, unsigned n)
{
    if (inject.register_error != 0)
        return -inject.register_error;
    return __real_io_uring_register_buffers(ring, v, n);
}

int __wrap_io_uring_submit(struct io_uring *ring)
{
    if (inject.enter_error != 0 && is_due(&inject.enter_skip, &inject.enter_times))
        return -inject.enter_error;
    return __real_io_uring_submit(ring);
}

int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned n)
{
    if (inject.enter_error != 0 && is_due(&inject.enter_skip, &inject.enter_times))
        return -inject.enter_error;
    return __real_io_uring_submit_and_wait(ring, n);
}

/* The engine takes all completions that it sees, so each is changed once. */
unsigned __wrap_io_uring_peek_batch_cqe(struct io_uring *ring, struct io_uring_cqe **cqes,
                                        unsigned count)
{
    unsigned n = __real_io_uring_peek_batch_cqe(ring, cqes, count);

    for (unsigned i = 0; i < n; i++) {
        const struct read_op *op = io_uring_cqe_get_data(cqes[i]);

        if (op != NULL)
            cqes[i]->res = (int)spoil(cqes[i]->res, op->disk == READ_MIRROR);
    }
    return n;
}

#endif
