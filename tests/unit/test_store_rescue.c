/* Saved chats whose files are changed by other programs, and queued messages. */
#include "config.h"

#include <sys/stat.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/saved_chat.h"
#include "ui/store/store.h"

static struct store *store;

static int set_up(void **state)
{
    e = (struct err)ERR_INIT;
    return saved_chat_set_up(state) != 0 ? -1 : store_new(&store, dir, "Gemma", &e);
}

static int tear_down(void **state)
{
    store_close(store);
    store = NULL;
    return saved_chat_tear_down(state);
}

/* Add a question, a complete answer, and the start of another. */
static void talk(void)
{
    ok(store_add(store, STORE_SYSTEM, "be brief", 8, NULL, &e));
    user_says(store, "first question");
    answer_says(store, "hm", true);
    answer_says(store, "first answer", false);
    ok(store_done(store, &receipt, 46, NULL, &e));
    user_says(store, "second question");
    answer_says(store, "second", false);
}

/* Assert that item number has this text; thinking may be NULL. */
static void expect(uint32_t number, const char *thinking, const char *text)
{
    struct store_text t;

    assert_true(number < store_count(store));
    ok(store_text(store, number, &t, &e));
    assert_string_equal(t.text, text);
    if (thinking != NULL)
        assert_string_equal(t.thinking, thinking);
    store_text_free(&t);
}

static void expect_talk(const char *second_answer)
{
    assert_int_equal(store_count(store), 5);
    expect(0, NULL, "be brief");
    expect(1, NULL, "first question");
    expect(2, "hm", "first answer");
    assert_int_equal(store_item(store, 2)->done, MW_DONE_STOP);
    assert_true(store_item(store, 2)->has_receipt);
    assert_int_equal(store_item(store, 2)->context, 46);
    expect(3, NULL, "second question");
    expect(4, NULL, second_answer);
}

/* Open the file again, as the next start does. */
static void reopen(void)
{
    char path[4096];

    strcpy(path, store_path(store));
    store_close(store);
    store = NULL;
    ok(store_open(&store, path, &e));
}

static void assert_moved(bool is_moved, uint32_t lost)
{
    uint32_t n_lost;

    assert_int_equal(store_take_moved(store, &n_lost), is_moved);
    assert_int_equal(n_lost, lost);
}

static bool has_nul(const char *path)
{
    FILE *f = fopen(path, "r");
    int c = 0;

    assert_non_null(f);
    while (c != EOF && (c = getc(f)) != EOF && c != '\0')
        ;
    fclose(f);
    return c == '\0';
}

static void a_removed_file_is_written_again_under_its_name(void **state)
{
    char path[4096];

    (void)state;
    talk();
    assert_moved(false, 0);
    strcpy(path, store_path(store));
    assert_int_equal(unlink(path), 0);
    answer_says(store, " answer", false);
    assert_moved(true, 0);
    assert_moved(false, 0);
    assert_string_equal(store_path(store), path);
    expect_talk("second answer");
    answer_says(store, ", long", false);
    ok(store_done(store, &receipt, 60, NULL, &e));
    reopen();
    assert_string_equal(store_path(store), path);
    expect_talk("second answer, long");
}

static void text_that_was_thinking_stays_thinking(void **state)
{
    struct store_text t;

    (void)state;
    talk();
    ok(store_thought(store, &e));
    expect(4, "second", "");
    answer_says(store, " answer", false);
    expect(4, "second", " answer");
    for (int i = 0; i < 2; i++) {
        if (i == 0)
            assert_int_equal(unlink(store_path(store)), 0);
        ok(store_done(store, &receipt, 60, NULL, &e));
        assert_moved(i == 0, 0);
        reopen();
        expect(4, "second", " answer");
        ok(store_text_start(store, 4, 3, &t, &e));
        assert_string_equal(t.thinking, "sec");
        assert_int_equal(t.n_left, strlen("second answer") - 3);
        store_text_free(&t);
        /* The first thing that an answer brings when it goes on. */
        ok(store_thought(store, &e));
        answer_says(store, "!", false);
        expect(4, "second answer", "!");
        ok(store_rewind(store, 3, &e));
        answer_says(store, "second", false);
        ok(store_thought(store, &e));
        answer_says(store, " answer", false);
    }
}

static void expect_help(uint32_t number)
{
    expect(number, NULL, "From the help: it is a key.");
    assert_true(store_item(store, number)->is_help);
    assert_int_equal(store_item(store, number)->done, MW_DONE_STOP);
    assert_false(store_item(store, number)->has_receipt);
    assert_false(store_item(store, 2)->is_help);
}

static void an_answer_from_the_help_stays_one(void **state)
{
    static const char text[] = "From the help: it is a key.";
    char path[4096], *all;
    uint32_t item;
    size_t n;

    (void)state;
    talk();
    ok(store_done(store, &receipt, 50, NULL, &e));
    user_says(store, "what is F10");
    ok(store_add_help(store, text, strlen(text), &item, &e));
    assert_int_equal(store_messages(store), 6);
    expect_help(item);
    reopen();
    expect_help(item);
    strcpy(path, store_path(store));
    assert_int_equal(unlink(path), 0);
    user_says(store, "and F9?"); /* the file is written again */
    assert_moved(true, 0);
    reopen();
    expect_help(item);
    snprintf(path, sizeof path, "%s/out.json", dir);
    ok(store_export(store, path, STORE_JSON, false, &e));
    all = slurp(path, &n);
    assert_non_null(strstr(all, "\"help\": true"));
    free(all);
}

static void a_removed_folder_is_made_again(void **state)
{
    talk();
    assert_int_equal(saved_chat_tear_down(state), 0);
    ok(store_sync(store, &e));
    assert_moved(true, 0);
    reopen();
    expect_talk("second");
}

static void a_cut_file_is_left_alone_and_the_chat_goes_to_another(void **state)
{
    char path[4096];
    struct stat st;

    (void)state;
    talk();
    strcpy(path, store_path(store));
    assert_int_equal(truncate(path, 10), 0);
    answer_says(store, " answer", false);
    assert_moved(true, 0);
    assert_string_not_equal(store_path(store), path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 10); /* no hole, nothing after it */
    assert_false(has_nul(store_path(store)));
    ok(store_done(store, &receipt, 60, NULL, &e));
    reopen();
    expect_talk("second answer");
}

static void lines_of_other_programs_are_not_overwritten(void **state)
{
    char path[4096], line[64] = "";
    FILE *f;

    (void)state;
    talk();
    strcpy(path, store_path(store));
    f = fopen(path, "a");
    assert_non_null(f);
    fputs("a line of somebody else\n", f);
    fclose(f);
    user_says(store, "third question");
    assert_moved(true, 0);
    assert_string_not_equal(store_path(store), path);
    f = fopen(path, "r");
    assert_non_null(f);
    assert_int_equal(fseek(f, -8, SEEK_END), 0);
    assert_non_null(fgets(line, sizeof line, f));
    assert_string_equal(line, "dy else\n");
    fclose(f);
    reopen();
    assert_int_equal(store_count(store), 6);
    expect(4, NULL, "second");
    expect(5, NULL, "third question");
}

static void a_moved_file_stays_where_it_is(void **state)
{
    char path[4096], moved[80];

    (void)state;
    talk();
    strcpy(path, store_path(store));
    snprintf(moved, sizeof moved, "%s/elsewhere", dir);
    assert_int_equal(rename(path, moved), 0);
    user_says(store, "third question");
    assert_moved(true, 0);
    assert_string_equal(store_path(store), path);
    assert_int_equal(access(moved, F_OK), 0);
    reopen();
    expect(5, NULL, "third question");
}

/* Memory keeps only the end.  The text before it is lost with the file. */
static void a_long_chat_that_is_cut_keeps_its_end_and_its_numbers(void **state)
{
    static char text[100001];
    struct store_text t;

    (void)state;
    memset(text, 'x', sizeof text - 1);
    for (int i = 0; i < 30; i++) {
        text[0] = (char)('A' + i);
        user_says(store, text);
        answer_says(store, "yes", false);
        ok(store_done(store, &receipt, 46, NULL, &e));
    }
    assert_int_equal(truncate(store_path(store), 0), 0);
    user_says(store, "on we go");
    {
        uint32_t n_lost;

        assert_true(store_take_moved(store, &n_lost));
        assert_true(n_lost > 20 && n_lost < 56);
    }
    reopen();
    assert_int_equal(store_count(store), 61);
    for (uint32_t i = 0; i < 60; i++)
        assert_int_equal(store_item(store, i)->kind, i % 2 == 0 ? STORE_USER : STORE_ANSWER);
    expect(0, NULL, "");
    ok(store_text(store, 58, &t, &e));
    assert_int_equal(t.text[0], 'A' + 29);
    assert_int_equal(t.len, sizeof text - 1);
    store_text_free(&t);
    expect(59, NULL, "yes");
    expect(60, NULL, "on we go");
}

/* ---- queued messages ---- */

static void expect_queued(uint32_t i, const char *text)
{
    struct store_text t;

    assert_true(i < store_queue_count(store));
    ok(store_queue_text(store, i, &t, &e));
    assert_string_equal(t.text, text);
    store_text_free(&t);
}

static void a_queued_message_is_in_the_file_at_once(void **state)
{
    char copy[80], command[4400];

    (void)state;
    talk();
    ok(store_queue(store, "a \"quoted\" one", 14, NULL, &e));
    ok(store_queue(store, "another", 7, NULL, &e));
    answer_says(store, " answer", false); /* its line continues after them */
    /* As after kill -9: use a copy of the file as it is now. */
    snprintf(copy, sizeof copy, "%s/copy.jsonl", dir);
    snprintf(command, sizeof command, "cp %s %s", store_path(store), copy);
    assert_int_equal(system(command), 0);
    store_close(store);
    store = NULL;
    ok(store_open(&store, copy, &e));
    expect_talk("second answer");
    assert_int_equal(store_queue_count(store), 2);
    expect_queued(0, "a \"quoted\" one");
    expect_queued(1, "another");
}

static void queued_messages_are_sent_or_removed(void **state)
{
    uint32_t item;

    (void)state;
    talk();
    for (int i = 0; i < 4; i++) {
        char text[2] = { (char)('1' + i), '\0' };

        ok(store_queue(store, text, 1, NULL, &e));
    }
    ok(store_done(store, &receipt, 50, NULL, &e));
    ok(store_add_queued(store, "1", 1, NULL, &item, &e));
    assert_int_equal(item, 5);
    ok(store_unqueue(store, 1, &e));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(store_count(store), 6);
        expect(5, NULL, "1");
        assert_int_equal(store_queue_count(store), 2);
        expect_queued(0, "3");
        expect_queued(1, "4");
        reopen();
    }
    ok(store_unqueue(store, 7, &e));
    reopen();
    assert_int_equal(store_queue_count(store), 0);
}

static void a_long_queued_message_takes_several_lines(void **state)
{
    size_t n = STORE_MAX_LINE / 4;
    char *text = malloc(n + 1);

    (void)state;
    assert_non_null(text);
    memset(text, '\n', n);
    text[n] = '\0';
    ok(store_queue(store, text, n, NULL, &e));
    ok(store_queue(store, "short", 5, NULL, &e));
    reopen();
    assert_int_equal(store_queue_count(store), 2);
    expect_queued(0, text);
    expect_queued(1, "short");
    free(text);
}

static void queued_messages_survive_the_loss_of_the_file(void **state)
{
    (void)state;
    talk();
    ok(store_queue(store, "later", 5, NULL, &e));
    assert_int_equal(unlink(store_path(store)), 0);
    ok(store_queue(store, "even later", 10, NULL, &e));
    reopen();
    expect_talk("second");
    assert_int_equal(store_queue_count(store), 2);
    expect_queued(0, "later");
    expect_queued(1, "even later");
}

static void too_many_queued_messages_are_refused_and_skipped(void **state)
{
    char path[80];
    FILE *f;

    (void)state;
    for (int i = 0; i < STORE_MAX_QUEUE; i++)
        ok(store_queue(store, "m", 1, NULL, &e));
    assert_int_equal(store_queue(store, "m", 1, NULL, &e), -1);
    store_close(store);
    snprintf(path, sizeof path, "%s/many.jsonl", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs("{\"memwall\":\"chat\",\"version\":1}\n", f);
    for (int i = 0; i < 1000; i++)
        fputs("{\"queued\":\"m\"}\n", f);
    fputs("{\"unqueued\":-1}\n{\"unqueued\":99999999999}\n{\"continues\":true,\"queued\":\"x\"}"
          "\n",
          f);
    fclose(f);
    store = NULL;
    ok(store_open(&store, path, &e));
    assert_int_equal(store_queue_count(store), 1);
    expect_queued(0, "x");
}

/* ---- without a file ---- */

static void a_chat_in_memory_can_be_read_and_exported(void **state)
{
    char path[80];

    (void)state;
    store_close(store);
    ok(store_new(&store, NULL, "Gemma", &e));
    talk();
    ok(store_queue(store, "later", 5, NULL, &e));
    answer_says(store, " answer", false);
    ok(store_done(store, &receipt, 60, NULL, &e));
    expect_talk("second answer");
    expect_queued(0, "later");
    assert_string_equal(store_path(store), "");
    snprintf(path, sizeof path, "%s/out.md", dir);
    ok(store_export(store, path, STORE_MARKDOWN, false, &e));
    assert_int_equal(access(path, F_OK), 0);
    ok(store_finish(store, &e));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_removed_file_is_written_again_under_its_name),
        TEST(text_that_was_thinking_stays_thinking),
        TEST(an_answer_from_the_help_stays_one),
        TEST(a_removed_folder_is_made_again),
        TEST(a_cut_file_is_left_alone_and_the_chat_goes_to_another),
        TEST(lines_of_other_programs_are_not_overwritten),
        TEST(a_moved_file_stays_where_it_is),
        TEST(a_long_chat_that_is_cut_keeps_its_end_and_its_numbers),
        TEST(a_queued_message_is_in_the_file_at_once),
        TEST(queued_messages_are_sent_or_removed),
        TEST(a_long_queued_message_takes_several_lines),
        TEST(queued_messages_survive_the_loss_of_the_file),
        TEST(too_many_queued_messages_are_refused_and_skipped),
        TEST(a_chat_in_memory_can_be_read_and_exported),
    };

    return cmocka_run_group_tests_name("store rescue", tests, NULL, NULL);
}
