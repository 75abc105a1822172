/* How many reads of the queue of fetches are in flight at once. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/base/units.h"
#include "engine/stream/fetch.h"

#define N_FETCH 40

/* The reads that begin before one of them is done, and in *bytes what they read. */
static uint32_t begun(size_t range, size_t *bytes)
{
    static struct stream_fetch fetches[N_FETCH];
    struct fetch_queue q = { 0 };
    struct read_op *op, *first = NULL;
    uint32_t n = 0;

    *bytes = 0;
    for (uint32_t i = 0; i < N_FETCH; i++) {
        fetches[i] = (struct stream_fetch){ .range = { { .bytes = range, .need = range } },
                                            .n_range = 1 };
        fetch_add(&q, &fetches[i]);
    }
    while ((op = fetch_next(&q)) != NULL) {
        op->is_flying = true;
        first = first == NULL ? op : first;
        *bytes += op->bytes;
        n++;
    }
    assert_int_equal(q.n_flying, n);
    assert_int_equal(q.flying_bytes, *bytes);
    first->is_flying = false;
    fetch_finish(&q, first, true); /* another one begins in its place */
    assert_non_null(fetch_next(&q));
    return n;
}

/* Short ranges have more reads in flight, so that the disk has as many bytes to read. */
static void short_ranges_have_as_many_bytes_in_flight(void **state)
{
    size_t bytes;

    (void)state;
    assert_int_equal(begun(8 * MIB, &bytes), FETCH_LEAST);
    assert_int_equal(bytes, FETCH_BYTES);
    assert_int_equal(begun(MIB, &bytes), FETCH_LEAST);
    assert_int_equal(begun(512 * KIB, &bytes), 16);
    assert_int_equal(bytes, FETCH_BYTES);
    assert_int_equal(begun(64 * KIB, &bytes), FETCH_DEPTH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_ranges_have_as_many_bytes_in_flight),
    };

    return cmocka_run_group_tests_name("fetch", tests, NULL, NULL);
}
