/* The answer of a request of the server: its pieces, and the memory that they may take. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/serve/job.h"

static struct job *begin(struct room *room)
{
    struct request request = { .n_stop = 0 };
    struct err e = ERR_INIT;
    struct job *j = job_new(&request, room, &e);

    assert_non_null(j);
    return j;
}

static void a_call_without_memory_leaves_nothing(void **state)
{
    struct room room = { .most = 100000 };
    struct job *j = begin(&room);
    char arguments[2000];
    struct err e = ERR_INIT;
    struct piece part;
    uint64_t used;

    (void)state;
    memset(arguments, '1', sizeof arguments);
    assert_int_equal(job_add(j, PIECE_TEXT, "text", 4, &e), 0);
    used = room.used;
    for (uint64_t left = 0; left < sizeof arguments; left += 7) {
        room.most = used + left;
        assert_int_equal(job_add_call(j, "name", arguments, sizeof arguments, &e), -1);
        assert_int_equal(e.code, ERR_MEMORY);
        assert_int_equal(room.used, used);
        e = (struct err)ERR_INIT;
    }
    assert_int_equal(j->n_call, 0);
    assert_true(job_next(j, &part));
    assert_int_equal(part.kind, PIECE_TEXT);
    job_drop(j, &part);
    assert_false(job_next(j, &part));
    job_free(j);
    assert_int_equal(room.used, 0);
}

static void text_takes_all_memory_that_is_left(void **state)
{
    static const char text[] = "0123456789";
    struct room room = { .most = 100000 };
    struct job *j = begin(&room);
    struct err e = ERR_INIT;
    size_t n = 0;

    (void)state;
    room.most = room.used + 64 + 1000;
    while (job_add(j, PIECE_TEXT, text, 10, &e) == 0)
        n += 10;
    assert_int_equal(n, 1000);
    assert_int_equal(room.used, room.most);
    job_free(j);
}

static void the_place_of_text_that_was_read_is_used_again(void **state)
{
    static const char text[] = "0123456789";
    struct room room = { .most = 100000 };
    struct job *j = begin(&room);
    struct err e = ERR_INIT;
    struct piece part;
    size_t n_read = 0, n_added = 0;

    (void)state;
    room.most = room.used + 64 + 4 * JOB_PART;
    while (n_read < 100 * JOB_PART) {
        while (job_add(j, PIECE_TEXT, text, 10, &e) == 0)
            n_added += 10;
        assert_true(job_next(j, &part));
        for (size_t i = 0; i < part.len; i++)
            assert_int_equal(part.text[i], text[(n_read + i) % 10]);
        n_read += part.len;
        job_drop(j, &part);
        e = (struct err)ERR_INIT;
    }
    assert_true(n_added >= n_read);
    job_free(j);
    assert_int_equal(room.used, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_without_memory_leaves_nothing),
        cmocka_unit_test(text_takes_all_memory_that_is_left),
        cmocka_unit_test(the_place_of_text_that_was_read_is_used_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
