/* Mapped files that are cut: the fault is handled and becomes an error. */
#include "config.h"

#include <sys/mman.h>

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/memwall.h"
#include "engine/stream/mapping.h"

#define PAGES 16

static long page;
static char names[2][32];
static struct source_file files[2];
static struct source source = { .files = files, .n_file = 2 };
static volatile sig_atomic_t n_repaired;
static sigjmp_buf not_repaired;

static void on_bus(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)context;
    if (info->si_code != BUS_ADRERR || !mw_mapping_repair(info->si_addr))
        siglongjmp(not_repaired, 1);
    n_repaired++;
}

/* Called inside the test itself: cmocka installs its own handler around each test. */
static void catch_bus(void)
{
    struct sigaction action = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO };

    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}

static int make_files(void **state)
{
    (void)state;
    page = sysconf(_SC_PAGESIZE);
    for (int i = 0; i < 2; i++) {
        char *bytes = malloc((size_t)(PAGES * page));

        memset(bytes, 'a' + i, (size_t)(PAGES * page));
        snprintf(names[i], sizeof names[i], "file-%d", i);
        files[i].fd = memfd_create(names[i], MFD_CLOEXEC);
        files[i].path = names[i];
        /* The first file ends within a page. */
        files[i].size = (uint64_t)(PAGES * page - (i == 0 ? 100 : 0));
        assert_int_equal(write(files[i].fd, bytes, files[i].size), files[i].size);
        free(bytes);
    }
    n_repaired = 0;
    return 0;
}

static int close_files(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        close(files[i].fd);
    return 0;
}

static size_t count(const unsigned char *p, uint64_t n, unsigned char what)
{
    size_t found = 0;

    for (uint64_t i = 0; i < n; i++)
        found += ((const volatile unsigned char *)p)[i] == what;
    return found;
}

static void a_cut_after_the_check_is_an_error_and_not_a_signal(void **state)
{
    struct err e = ERR_INIT;
    struct mapping m, other;
    const unsigned char *p, *q;

    (void)state;
    catch_bus();
    assert_int_equal(mapping_open(&m, &source, &e), 0);
    assert_int_equal(mapping_open(&other, &source, &e), 0);
    p = mapping_at(&m, 1, 0, files[1].size, &e);
    q = mapping_at(&m, 0, 0, files[0].size, &e);
    assert_true(p != NULL && q != NULL);
    assert_int_equal(count(p, files[1].size, 'b'), files[1].size);
    assert_int_equal(mapping_check(&m, &e), 0);
    /* Cut the file after its size is checked and before its bytes are used. */
    assert_int_equal(ftruncate(files[1].fd, 2 * page), 0);
    assert_int_equal(count(p, files[1].size, 'b'), 2 * page);
    assert_int_equal(n_repaired, PAGES - 2);
    assert_int_equal(count(q, files[0].size, 'a'), files[0].size);
    assert_int_equal(mapping_check(&m, &e), -1);
    assert_int_equal(e.code, ERR_IO);
    assert_string_equal(e.file, "file-1");
    assert_non_null(strstr(e.what, "it now ends at byte"));
    /* The mapping keeps its error, even if the file grows again. */
    assert_int_equal(ftruncate(files[1].fd, (off_t)files[1].size), 0);
    assert_null(mapping_at(&m, 1, 0, 1, &e));
    assert_null(mapping_at(&m, 0, 0, 1, &e));
    /* Another mapping of the same files is not affected. */
    assert_int_equal(mapping_check(&other, &e), 0);
    mapping_close(&m);
    mapping_close(&other);
}

static void a_signal_of_another_mapping_is_not_touched(void **state)
{
    struct err e = ERR_INIT;
    struct mapping m;
    unsigned char *p;
    volatile unsigned char got = 0;
    volatile int n_fault = 0;

    (void)state;
    catch_bus();
    assert_int_equal(mapping_open(&m, &source, &e), 0);
    p = mmap(NULL, (size_t)page, PROT_READ, MAP_SHARED, files[1].fd, 0);
    assert_true(p != MAP_FAILED);
    assert_int_equal(ftruncate(files[1].fd, 0), 0);
    if (sigsetjmp(not_repaired, 1) == 0)
        got = *(volatile unsigned char *)p;
    else
        n_fault++;
    assert_int_equal(n_fault, 1);
    assert_int_equal(got, 0);
    assert_int_equal(n_repaired, 0);
    assert_int_equal(mapping_check(&m, &e), 0);
    munmap(p, (size_t)page);
    mapping_close(&m);
    assert_false(mw_mapping_repair(p));
    assert_false(mw_mapping_repair(NULL));
}

static void ranges_are_given_back(void **state)
{
    struct err e = ERR_INIT;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct mapping m;

        assert_int_equal(mapping_open(&m, &source, &e), 0);
        mapping_close(&m);
    }
}

/* The kernel's figure is of the process since it began. */
static void reads_are_those_since_the_last_count(void **state)
{
    static const char *const text[] = { "rchar: 9\nread_bytes: 4096\n",
                                        "rchar: 9\nread_bytes: 20480\n", "rchar: 9\n" };
    struct mapping m = { .io = memfd_create("io", MFD_CLOEXEC), .counted = 1000 };

    (void)state;
    assert_true(m.io >= 0);
    assert_true(pwrite(m.io, text[0], strlen(text[0]), 0) > 0);
    assert_int_equal(mapping_count(&m), 3096);
    assert_int_equal(mapping_count(&m), 0);
    assert_true(pwrite(m.io, text[1], strlen(text[1]), 0) > 0);
    assert_int_equal(mapping_count(&m), 16384);
    assert_int_equal(ftruncate(m.io, 0), 0);
    assert_true(pwrite(m.io, text[2], strlen(text[2]), 0) > 0);
    assert_int_equal(mapping_count(&m), 0);
    close(m.io);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_are_those_since_the_last_count),
        cmocka_unit_test_setup_teardown(a_cut_after_the_check_is_an_error_and_not_a_signal,
                                        make_files, close_files),
        cmocka_unit_test_setup_teardown(a_signal_of_another_mapping_is_not_touched, make_files,
                                        close_files),
        cmocka_unit_test_setup_teardown(ranges_are_given_back, make_files, close_files),
    };

    return cmocka_run_group_tests_name("mapping", tests, NULL, NULL);
}
