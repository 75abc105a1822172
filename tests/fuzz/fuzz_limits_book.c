/*
 * Any file of measured limits is read, and what was taken from it is written so that it is read
 * again.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/limits_book.h"
#include "tests/fuzz/fuzz_file.h"

static char out[] = "/dev/shm/memwall-fuzz-XXXXXX";

static void remove_out(void)
{
    (void)remove(out);
}

static void prepare(void)
{
    int fd = mkstemp(out);

    if (fd < 0)
        abort();
    close(fd);
    atexit(remove_out);
}

/* Everything but the numbers that are rounded. */
static bool is_same(const struct limits_page *a, const struct limits_page *b)
{
    return a->key.dev == b->key.dev && a->key.n_thread == b->key.n_thread &&
           strcmp(a->key.io, b->key.io) == 0 && strcmp(a->key.cpu, b->key.cpu) == 0 &&
           strcmp(a->key.arithmetic, b->key.arithmetic) == 0 &&
           a->limits.measured_s == b->limits.measured_s &&
           a->limits.disk.doubt == b->limits.disk.doubt &&
           a->limits.memory.observed_s == b->limits.memory.observed_s;
}

/* A rate below a half is written as 0, and a memory without a rate is refused. */
static int n_written(const struct limits_book *b)
{
    int n = 0;

    for (int i = 0; i < b->n; i++)
        n += b->page[i].limits.memory_bytes_s >= 1;
    return n;
}

static void write_and_read_again(const struct limits_book *b)
{
    static struct limits_book again;

    limits_book_write(b, out);
    limits_book_read(&again, out);
    if (n_written(b) < b->n)
        return;
    if (again.n != b->n)
        abort();
    for (int i = 0; i < b->n; i++)
        if (!is_same(&b->page[i], &again.page[i]))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct limits_book b;
    int fd = fuzz_file(data, size);
    char path[40];

    if (strchr(out, 'X') != NULL && strcmp(out + strlen(out) - 6, "XXXXXX") == 0)
        prepare();
    if (fd < 0)
        return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    limits_book_read(&b, path);
    for (int i = 0; i < b.n; i++) {
        const struct limits_key *k = &b.page[i].key;
        int64_t now_s = b.page[i].limits.measured_s;

        if (limits_book_find(&b, k, now_s) == NULL || limits_book_disk(&b, k, now_s) < 0)
            abort();
    }
    if (b.n > 0) {
        struct limits_page first = b.page[b.n - 1];

        write_and_read_again(&b);
        limits_book_add(&b, &first.key, &first.limits);
        if (b.n < 1 || b.n > BOOK_PAGES || !is_same(&b.page[0], &first))
            abort();
    }
    return 0;
}
