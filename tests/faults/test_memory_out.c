/*
 * Every allocation of opening a model, a session and two passes fails once.  Each time there is
 * an error message, nothing leaks (sanitizers check), and the next try gives the same result.
 *
 * The linker puts these wrappers before the allocator for all code that is linked statically,
 * which is the engine.
 */
#include "config.h"

#include <sys/mman.h>

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/memwall.h"
#include "tests/lib/model_path.h"

/* Calls until one fails; negative: none fails. */
static atomic_long countdown = -1;

static bool fails(void)
{
    return atomic_load(&countdown) >= 0 && atomic_fetch_sub(&countdown, 1) == 0;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *ctx);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *ctx);

void *__wrap_malloc(size_t n)
{
    if (!fails())
        return __real_malloc(n);
    errno = ENOMEM;
    return NULL;
}

void *__wrap_calloc(size_t n, size_t size)
{
    if (!fails())
        return __real_calloc(n, size);
    errno = ENOMEM;
    return NULL;
}

void *__wrap_realloc(void *p, size_t n)
{
    if (!fails())
        return __real_realloc(p, n);
    errno = ENOMEM;
    return NULL;
}

void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    if (!fails())
        return __real_mmap(at, n, prot, flags, fd, offset);
    errno = ENOMEM;
    return MAP_FAILED;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *ctx)
{
    return fails() ? EAGAIN : __real_pthread_create(thread, attr, fn, ctx);
}

/* Open a model and evaluate six tokens. *sum is a sum over the last row, to compare. */
static int use(double *sum, struct err *e)
{
    static const uint32_t ids[] = { 2, 7, 11, 13, 17 };
    struct mw_model *m = NULL;
    struct mw_session *s = NULL;
    struct mw_model_info info;
    struct mw_options o;
    uint32_t next = 5;
    int rc;

    mw_options_default(&o);
    o.memory_bytes = 128 * MIB;
    o.n_ctx = 64;
    o.n_thread = 2;
    rc = mw_model_open(&m, model_path("llama-tiny.gguf"), e);
    if (rc == 0)
        rc = mw_session_open(&s, m, &o, e);
    if (rc == 0)
        rc = mw_session_eval(s, ids, 5, NULL, NULL, e);
    if (rc == 0)
        rc = mw_session_eval(s, &next, 1, NULL, NULL, e);
    *sum = 0;
    if (rc == 0) {
        mw_model_info(m, &info);
        for (uint32_t i = 0; i < info.n_vocab; i++)
            *sum += (double)mw_session_logits(s)[i] * (i + 1);
    }
    mw_session_close(s);
    mw_model_close(m);
    return rc;
}

static void each_allocation_may_fail(void **state)
{
    struct err e = ERR_INIT;
    double want, got;
    long n = 0;
    int rc;

    (void)state;
    assert_int_equal(use(&want, &e), 0);
    for (;; n++) {
        e = (struct err)ERR_INIT;
        atomic_store(&countdown, n);
        rc = use(&got, &e);
        if (atomic_load(&countdown) >= 0)
            break; /* there are fewer calls */
        atomic_store(&countdown, -1);
        /* Some parts are optional (a ring of the kernel, a larger buffer).  Without them the
         * result is the same. */
        if (rc == 0)
            assert_true(got == want);
        else
            assert_true(e.code != ERR_NONE && e.what[0] != '\0');
    }
    atomic_store(&countdown, -1);
    assert_int_equal(rc, 0);
    assert_true(got == want);
    print_message("%ld allocations, each failed once\n", n);
    assert_true(n > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_allocation_may_fail),
    };

    return cmocka_run_group_tests_name("memory_out", tests, NULL, NULL);
}
