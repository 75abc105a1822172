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

static struct job *begin(struct rooms *rooms)
{
    struct request request = { .n_stop = 0 };
    struct err e = ERR_INIT;
    struct job *j = job_new(&request, rooms, &e);

    assert_non_null(j);
    return j;
}

static void a_call_without_memory_leaves_nothing(void **state)
{
    struct rooms rooms = { .requests.most = 10000, .answers.most = 100000 };
    struct room *room = &rooms.answers;
    struct job *j = begin(&rooms);
    char arguments[2000];
    struct err e = ERR_INIT;
    struct piece part;
    uint64_t used;

    (void)state;
    memset(arguments, '1', sizeof arguments);
    assert_int_equal(job_add(j, PIECE_TEXT, "text", 4, &e), 0);
    used = room->used;
    for (uint64_t left = 0; left < sizeof arguments; left += 7) {
        room->most = used + left;
        assert_int_equal(job_add_call(j, "name", arguments, sizeof arguments, &e), -1);
        assert_int_equal(e.code, ERR_MEMORY);
        assert_int_equal(room->used, used);
        e = (struct err)ERR_INIT;
    }
    assert_int_equal(j->n_call, 0);
    assert_true(job_next(j, &part));
    assert_int_equal(part.kind, PIECE_TEXT);
    job_drop(j, &part);
    assert_false(job_next(j, &part));
    job_free(j);
    assert_int_equal(room->used, 0);
    assert_int_equal(rooms.requests.used, 0);
}

static void text_takes_all_memory_that_is_left(void **state)
{
    static const char text[] = "0123456789";
    struct rooms rooms = { .requests.most = 10000, .answers.most = 96 + 1000 };
    struct job *j = begin(&rooms);
    struct err e = ERR_INIT;
    size_t n = 0;

    (void)state;
    while (job_add(j, PIECE_TEXT, text, 10, &e) == 0)
        n += 10;
    assert_int_equal(n, 1000);
    assert_int_equal(rooms.answers.used, rooms.answers.most);
    job_free(j);
}

static void the_place_of_text_that_was_read_is_used_again(void **state)
{
    static const char text[] = "0123456789";
    struct rooms rooms = { .requests.most = 10000, .answers.most = 64 + 4 * JOB_PART };
    struct job *j = begin(&rooms);
    struct err e = ERR_INIT;
    struct piece part;
    size_t n_read = 0, n_added = 0;

    (void)state;
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
    assert_int_equal(rooms.answers.used, 0);
}

static const struct rooms some = { .requests.most = 10000, .answers.most = 40000,
                                   .answer = 10000 };

/* Take all memory of answers that is free. */
static uint64_t fill(struct rooms *rooms)
{
    uint64_t left = rooms->answers.most - rooms->answers.used;

    assert_true(room_take(&rooms->answers, left));
    return left;
}

static void an_answer_has_its_memory_whatever_others_hold(void **state)
{
    static char text[10000];
    struct rooms rooms = some;
    struct job *j = begin(&rooms);
    struct err e = ERR_INIT;
    struct piece part;
    uint64_t others;

    (void)state;
    assert_true(job_begin(j));
    others = fill(&rooms);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(job_add(j, PIECE_TEXT, text, 8000, &e), 0);
        assert_true(job_hold(j, 500));
        while (job_next(j, &part))
            job_drop(j, &part);
        assert_true(job_hold(j, 0));
    }
    assert_int_equal(job_add(j, PIECE_TEXT, text, sizeof text, &e), -1);
    assert_int_equal(e.code, ERR_MEMORY);
    job_free(j);
    assert_int_equal(rooms.answers.used, others);
}

static void an_answer_begins_once_its_memory_is_free(void **state)
{
    struct rooms rooms = some;
    struct job *j = begin(&rooms);

    (void)state;
    assert_true(room_take(&rooms.answers, 30001));
    assert_false(job_begin(j));
    assert_int_equal(rooms.answers.used, 30001);
    room_give(&rooms.answers, 1);
    assert_true(job_begin(j));
    assert_int_equal(rooms.answers.used, 40000);
    job_free(j);
    assert_int_equal(rooms.answers.used, 30000);
}

static void a_complete_reply_is_made_in_the_memory_of_its_answer(void **state)
{
    static char text[4000];
    struct rooms rooms = some;
    struct job *j = begin(&rooms);
    struct err e = ERR_INIT;
    struct piece part;
    uint64_t others;

    (void)state;
    assert_true(job_begin(j));
    assert_int_equal(job_add(j, PIECE_TEXT, text, sizeof text, &e), 0);
    others = fill(&rooms);
    job_end(j);
    assert_int_equal(rooms.answers.used, rooms.answers.most);
    assert_int_equal(job_left(j), rooms.answer);
    assert_true(job_replied(j, 6000));
    assert_false(job_next(j, &part));
    assert_int_equal(rooms.answers.used, others + 6000);
    job_free(j);
    assert_int_equal(rooms.answers.used, others);
}

static void a_stream_that_is_over_holds_what_it_did_not_send(void **state)
{
    static char text[2000];
    struct rooms rooms = some;
    struct job *j = begin(&rooms);
    struct err e = ERR_INIT;

    (void)state;
    j->request.stream = true;
    assert_true(job_begin(j));
    assert_int_equal(job_add(j, PIECE_TEXT, text, sizeof text, &e), 0);
    job_end(j);
    assert_in_range(rooms.answers.used, sizeof text, sizeof text + 100);
    job_free(j);
    assert_int_equal(rooms.answers.used, 0);
}

/* A call is sent in one part: its JSON takes more than the call. */
static void a_stream_that_is_over_has_the_memory_to_send_a_call(void **state)
{
    static char text[500];
    struct rooms rooms = some;
    struct job *j = begin(&rooms);
    struct err e = ERR_INIT;
    struct piece part;

    (void)state;
    j->request.stream = true;
    assert_true(job_begin(j));
    assert_int_equal(job_add(j, PIECE_TEXT, text, sizeof text, &e), 0);
    assert_int_equal(job_add_call(j, "name", text, sizeof text, &e), 0);
    fill(&rooms);
    job_end(j);
    assert_true(fill(&rooms) > 0);
    assert_true(job_next(j, &part));
    job_drop(j, &part);
    assert_true(job_next(j, &part));
    assert_int_equal(part.kind, PIECE_CALL);
    assert_true(job_hold(j, 6 * part.len));
    job_drop(j, &part);
    assert_false(job_next(j, &part));
    job_free(j);
}

static void an_answer_that_nobody_reads_holds_nothing(void **state)
{
    static char text[2000];
    struct request request = { .n_stop = 0 };
    struct rooms rooms = some;
    struct err e = ERR_INIT;
    struct job *j;

    (void)state;
    request.text = strdup("a request");
    request.text_len = strlen(request.text);
    j = job_new(&request, &rooms, &e);
    assert_non_null(j);
    assert_int_equal(rooms.requests.used, sizeof *j + strlen("a request"));
    assert_true(job_begin(j));
    job_taken(j);
    assert_null(j->request.text);
    assert_int_equal(rooms.requests.used, sizeof *j);
    assert_int_equal(job_add(j, PIECE_TEXT, text, sizeof text, &e), 0);
    assert_true(job_hold(j, 5000));
    job_forget(j);
    assert_int_equal(rooms.answers.used, 0);
    job_end(j);
    assert_int_equal(rooms.answers.used, 0);
    job_free(j);
    assert_int_equal(rooms.requests.used, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_without_memory_leaves_nothing),
        cmocka_unit_test(text_takes_all_memory_that_is_left),
        cmocka_unit_test(the_place_of_text_that_was_read_is_used_again),
        cmocka_unit_test(an_answer_has_its_memory_whatever_others_hold),
        cmocka_unit_test(an_answer_begins_once_its_memory_is_free),
        cmocka_unit_test(a_complete_reply_is_made_in_the_memory_of_its_answer),
        cmocka_unit_test(a_stream_that_is_over_holds_what_it_did_not_send),
        cmocka_unit_test(a_stream_that_is_over_has_the_memory_to_send_a_call),
        cmocka_unit_test(an_answer_that_nobody_reads_holds_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
