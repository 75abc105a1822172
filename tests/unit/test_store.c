/* Chats on disk: the format, damaged files, and refusals. */
#include "config.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <errno.h>
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

#include "engine/base/folder.h"
#include "tests/lib/saved_chat.h"
#include "ui/store/store.h"

static struct store *begin(void)
{
    struct store *s;

    ok(store_new(&s, chats, "Gemma \x1b[31m", &e));
    return s;
}

static void expect(const struct store *s, uint32_t item, enum store_kind kind,
                   const char *thinking, const char *text)
{
    struct store_text t;

    assert_true(item < store_count(s));
    assert_int_equal(store_item(s, item)->kind, kind);
    ok(store_text(s, item, &t, &e));
    assert_string_equal(t.text, text);
    assert_int_equal(t.len, strlen(text));
    assert_int_equal(store_item(s, item)->text_bytes, strlen(text));
    if (thinking == NULL)
        assert_null(t.thinking);
    else
        assert_string_equal(t.thinking, thinking);
    store_text_free(&t);
}

static void a_chat_without_messages_leaves_no_file(void **state)
{
    struct store *s = begin();
    struct store_entry *all;
    struct stat st;
    size_t n;

    (void)state;
    ok(store_add(s, STORE_SYSTEM, "be brief", 8, NULL, &e));
    ok(store_add(s, STORE_NOTICE, "loaded", 6, NULL, &e));
    expect(s, 0, STORE_SYSTEM, NULL, "be brief");
    assert_string_equal(store_path(s), "");
    store_close(s);
    assert_int_equal(stat(chats, &st), -1);
    ok(store_list(chats, &all, &n, &e));
    assert_int_equal(n, 0);
}

static void saved_messages_are_read_again(void **state)
{
    struct store *s = begin();
    struct mw_receipt whole = receipt;
    char path[4096];
    struct stat st;
    uint32_t item;

    (void)state;
    whole.peak_resident = 1234567890;
    ok(store_add(s, STORE_SYSTEM, "be brief", 8, NULL, &e));
    user_says(s, "What\tis\n\"it\"?\\ \xf0\x9f\x98\x80");
    answer_says(s, "the user ", true);
    answer_says(s, "asks", true);
    ok(store_piece(s, "It ", 3, false, false, &item, &e));
    assert_int_equal(item, 2);
    expect(s, 2, STORE_ANSWER, "the user asks", "It "); /* while it is open */
    answer_says(s, "is.", false);
    ok(store_done(s, &whole, 46, NULL, &e));
    ok(store_add(s, STORE_NOTICE, "dropped 2 turns", 15, &item, &e));
    assert_int_equal(item, 3);
    strcpy(path, store_path(s));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    store_close(s);

    ok(store_open(&s, path, &e));
    assert_int_equal(store_count(s), 4);
    expect(s, 0, STORE_SYSTEM, NULL, "be brief");
    expect(s, 1, STORE_USER, NULL, "What\tis\n\"it\"?\\ \xf0\x9f\x98\x80");
    expect(s, 2, STORE_ANSWER, "the user asks", "It is.");
    expect(s, 3, STORE_NOTICE, NULL, "dropped 2 turns");
    assert_int_equal(store_item(s, 2)->done, MW_DONE_STOP);
    assert_true(store_item(s, 2)->has_receipt);
    assert_memory_equal(&store_item(s, 2)->receipt, &whole, sizeof whole);
    assert_int_equal(store_item(s, 2)->context, 46);
    assert_string_equal(store_head(s)->model, "Gemma \x1b[31m");
    store_close(s);
}

static void expect_system(const struct store *s, uint32_t item, const char *text)
{
    assert_int_equal(store_system(s), item);
    expect(s, item, STORE_SYSTEM, NULL, text);
}

static void the_last_system_message_is_in_force(void **state)
{
    struct store *s = begin();
    char path[4096];

    (void)state;
    assert_int_equal(store_system(s), STORE_NO_ITEM);
    user_says(s, "one");
    assert_int_equal(store_system(s), STORE_NO_ITEM);
    ok(store_add(s, STORE_SYSTEM, "be brief", 8, NULL, &e));
    user_says(s, "two");
    ok(store_add(s, STORE_SYSTEM, "be long", 7, NULL, &e));
    user_says(s, "three");
    expect_system(s, 3, "be long");
    ok(store_rewind(s, 2, &e));
    expect_system(s, 3, "be long");
    assert_int_equal(store_count(s), 4);
    ok(store_rewind(s, 1, &e)); /* it stays when the place where it was set is removed */
    expect_system(s, 2, "be long");
    assert_int_equal(store_count(s), 3);
    ok(store_rewind(s, 0, &e));
    expect_system(s, 0, "be long");
    user_says(s, "four");
    ok(store_add(s, STORE_SYSTEM, "", 0, NULL, &e)); /* none from here on */
    ok(store_rewind(s, 0, &e));
    expect_system(s, 1, "");
    strcpy(path, store_path(s));
    store_close(s);
    ok(store_open(&s, path, &e));
    expect_system(s, 1, "");
    store_close(s);
}

/* Replace times by T. */
static void blank_times(char *s)
{
    for (char *p = s; (p = strstr(p, "\":\"20")) != NULL;) {
        char *end = strchr(p + 3, '"');

        p[3] = 'T';
        memmove(p + 4, end, strlen(end) + 1);
    }
}

static void the_file_can_be_read_by_a_person_and_harms_no_terminal(void **state)
{
    struct store *s = begin();
    char path[4096], *all;
    size_t n;

    (void)state;
    user_says(s, "a\x1b[2J\xc2\x9b\x7f\xe2\x80\xae\xff end");
    answer_says(s, "hm", true);
    answer_says(s, "Yes", false);
    ok(store_done(s, &receipt, 46, NULL, &e));
    ok(store_rewind(s, 0, &e));
    strcpy(path, store_path(s));
    store_close(s);
    all = slurp(path, &n);
    blank_times(all);
    assert_string_equal(
        all,
        "{\"memwall\":\"chat\",\"version\":1,\"created\":\"T\",\"model\":\"Gemma "
        "\\u001b[31m\"}\n"
        "{\"role\":\"user\",\"time\":\"T\",\"text\":\"a\\u001b[2J\\u009b\\u007f\\u202e\\ufffd "
        "end\"}\n"
        "{\"role\":\"assistant\",\"time\":\"T\",\"thinking\":\"hm\",\"text\":\"Yes\","
        "\"done\":\"stop\"}\n"
        "{\"receipt\":{\"n_prompt\":34,\"n_reused\":0,\"n_decoded\":12,\"first_ns\":5,"
        "\"prefill_ns\":4,\"decode_ns\":3400000000,\"bytes_read\":41000000000,"
        "\"stall_ns\":2400000000,\"peak_charged\":1524713390,\"context\":46}}\n"
        "{\"rewind\":0}\n");
    free(all);
}

/* Write one of each kind of line, and an answer that is still being written. */
static void talk(struct store *s)
{
    user_says(s, "first \xe4\xb8\xad \xf0\x9f\x98\x80 \x1b \"");
    answer_says(s, "think \\ \x01", true);
    answer_says(s, "one \xf0\x9f\x98\x80 ", false);
    answer_says(s, "two\n\x7f\xf3\xa0\x80\xa1", false);
    ok(store_done(s, &receipt, 46, NULL, &e));
    ok(store_add(s, STORE_NOTICE, "a notice", 8, NULL, &e));
    user_says(s, "second");
    answer_says(s, "an answer that ", false);
    answer_says(s, "is not over \xe4\xb8\xad\xf3\xa0\x80\xa1", false);
}

static bool is_beginning(const char *whole, const char *s)
{
    return strncmp(whole, s, strlen(s)) == 0;
}

static void a_killed_program_loses_only_text_that_was_not_written(void **state)
{
    static const char answer[] = "one \xf0\x9f\x98\x80 two\n\x7f\xf3\xa0\x80\xa1";
    static const char last[] = "an answer that is not over \xe4\xb8\xad\xf3\xa0\x80\xa1";
    struct store *s = begin();
    char path[128], *all;
    size_t n, head;

    (void)state;
    talk(s);
    all = slurp(store_path(s), &n); /* as it is while the program runs */
    store_close(s);
    head = (size_t)(strchr(all, '\n') - all) + 1;
    snprintf(path, sizeof path, "%s/cut.jsonl", dir);
    for (size_t cut = head; cut <= n; cut++) {
        struct store_text t;
        uint32_t count;

        spill(path, all, cut);
        ok(store_open(&s, path, &e));
        count = store_count(s);
        store_close(s);
        ok(store_open(&s, path, &e));
        assert_int_equal(store_count(s), count);
        assert_true(count <= 5);
        if (count > 1) {
            ok(store_text(s, 1, &t, &e));
            assert_true(is_beginning(answer, t.text));
            store_text_free(&t);
        }
        if (count > 4) {
            ok(store_text(s, 4, &t, &e));
            assert_true(is_beginning(last, t.text));
            if (cut == n)
                assert_string_equal(t.text, last);
            store_text_free(&t);
            assert_int_equal(store_item(s, 4)->done, MW_DONE_CANCELLED);
        }
        /* The next start continues it, and nothing is missing. */
        user_says(s, "more");
        store_close(s);
        ok(store_open(&s, path, &e));
        assert_int_equal(store_count(s), count + 1);
        expect(s, count, STORE_USER, NULL, "more");
        store_close(s);
    }
    free(all);
}

static void rubbish_at_the_end_is_ignored(void **state)
{
    struct store *s = begin();
    char path[4096];
    FILE *f;

    (void)state;
    user_says(s, "hello");
    strcpy(path, store_path(s));
    store_close(s);
    f = fopen(path, "a");
    assert_non_null(f);
    for (int i = 0; i < 5000; i++)
        fputc('\0', f); /* as a power failure can leave */
    fclose(f);
    ok(store_open(&s, path, &e));
    assert_int_equal(store_count(s), 1);
    user_says(s, "again");
    store_close(s);
    ok(store_open(&s, path, &e));
    expect(s, 1, STORE_USER, NULL, "again");
    store_close(s);
}

static void rewinding_keeps_the_lines_but_not_the_messages(void **state)
{
    struct store *s = begin();
    char path[4096];

    (void)state;
    user_says(s, "one");
    answer_says(s, "first", false);
    ok(store_done(s, &receipt, 10, NULL, &e));
    ok(store_add(s, STORE_NOTICE, "note", 4, NULL, &e));
    user_says(s, "two");
    answer_says(s, "second", false);
    ok(store_done(s, &receipt, 20, NULL, &e));
    ok(store_rewind(s, 2, &e));
    assert_int_equal(store_count(s), 3);
    user_says(s, "three");
    strcpy(path, store_path(s));
    store_close(s);
    ok(store_open(&s, path, &e));
    assert_int_equal(store_count(s), 4);
    expect(s, 1, STORE_ANSWER, NULL, "first");
    expect(s, 2, STORE_NOTICE, NULL, "note");
    expect(s, 3, STORE_USER, NULL, "three");
    assert_int_equal(store_item(s, 1)->context, 10);
    store_close(s);
}

/* The messages that came before a summary and were carried over: those that a rewind removes do
 * not come back, wherever the summary is. */
static void a_summary_counts_the_carried_messages_that_are_left(void **state)
{
    enum { MOST = 3000 };
    static uint32_t carried[MOST]; /* of the message with this number; UINT32_MAX: no summary */
    struct store *s = begin();
    uint32_t n = 0, random = 1, n_summary = 0;
    char path[4096];

    (void)state;
    for (int step = 0; step < 4000 && n + 2 <= MOST; step++) {
        random = random * 1664525 + 1013904223;
        if (random >> 24 < 6 && n > 0) {
            uint32_t back = (random >> 16) % 8 == 0 ? 600 : (random >> 8) % 12, left;

            n = n > back ? n - back : 0;
            ok(store_rewind(s, n, &e));
            for (uint32_t i = 0; i < n; i++) {
                left = n > i + 2 ? n - i - 2 : 0;
                if (carried[i] != UINT32_MAX && carried[i] > left)
                    carried[i] = left;
            }
            continue;
        }
        carried[n] = carried[n + 1] = UINT32_MAX;
        if (random >> 24 > 240) {
            carried[n] = (random >> 8) % 700;
            ok(store_add_summary(s, "sum", 3, NULL, carried[n], &e));
        } else {
            user_says(s, "one");
        }
        answer_says(s, "two", false);
        ok(store_done(s, &receipt, 10, NULL, &e));
        n += 2;
    }
    strcpy(path, store_path(s));
    for (int opened = 0; opened < 2; opened++) {
        assert_int_equal(store_count(s), n);
        for (uint32_t i = 0; i < n; i++) {
            const struct store_item *item = store_item(s, i);

            assert_int_equal(item->is_summary, carried[i] != UINT32_MAX);
            if (item->is_summary)
                assert_int_equal(item->n_carried, carried[i]);
            n_summary += item->is_summary;
        }
        store_close(s);
        if (opened == 0)
            ok(store_open(&s, path, &e));
    }
    assert_true(n > STORE_KEPT_ITEMS && n_summary > 20);
}

/* They may change while an answer is made, and the file may have to be written again. */
static void settings_are_kept(void **state)
{
    char path[4096];
    struct store *s = begin();
    struct store_facts found;

    (void)state;
    assert_string_equal(store_model(s)->name, "Gemma \x1b[31m");
    assert_string_equal(store_model(s)->file, "");
    ok(store_set_settings(s, "memory 1G", &e));
    ok(store_set_model(s, "/a/one.gguf", "one", &e));
    user_says(s, "one");
    answer_says(s, "fir", false);
    ok(store_set_settings(s, "memory 600M, kv q8_0", &e));
    ok(store_set_model(s, "org/two:Q4_K_M", "two \"\\\x1b", &e));
    answer_says(s, "st", false);
    ok(store_done(s, &receipt, 10, NULL, &e));
    strcpy(path, store_path(s));
    assert_int_equal(unlink(path), 0);
    user_says(s, "two");
    strcpy(path, store_path(s));
    store_close(s);
    store_facts_of(path, &found);
    assert_string_equal(found.settings, "memory 600M, kv q8_0");
    assert_string_equal(found.model.file, "org/two:Q4_K_M");
    assert_string_equal(found.model.name, "two \"\\\x1b");
    ok(store_open(&s, path, &e));
    assert_string_equal(store_settings(s), "memory 600M, kv q8_0");
    assert_memory_equal(store_model(s)->file, found.model.file, strlen(found.model.file) + 1);
    assert_string_equal(store_model(s)->name, found.model.name);
    assert_string_equal(store_head(s)->model, "Gemma \x1b[31m");
    assert_int_equal(store_count(s), 3);
    expect(s, 1, STORE_ANSWER, NULL, "first");
    store_close(s);
    store_facts_of("/dev/null", &found);
    assert_string_equal(found.settings, "");
    store_facts_of("/nowhere", &found);
    assert_string_equal(found.model.name, "");
}

/* Older chats name their model in the first line only. */
static void models_of_other_chats(void **state)
{
    static const char head[] = "{\"memwall\":\"chat\",\"version\":1,\"model\":\"old\"}\n"
                               "{\"role\":\"user\",\"text\":\"a\"}\n";
    static const char *const lines[] = { "", "{\"model_file\":7}\n", "{\"model_name\":\"x\"}\n",
                                         "{\"model_file\":[\"/a\"],\"model_name\":\"x\"}\n",
                                         NULL };
    char text[PATH_MAX + 500], path[PATH_MAX];

    (void)state;
    ok(folder_make(chats) == 0 ? 0 : -1);
    snprintf(path, sizeof path, "%s/old" STORE_SUFFIX, chats);
    for (int i = 0; i < 5; i++) {
        char more[PATH_MAX + 100], line[PATH_MAX + 200];
        struct store_facts found;
        struct store *s;
        FILE *f = fopen(path, "w");

        memset(more, 'x', sizeof more - 1);
        more[sizeof more - 1] = '\0';
        snprintf(line, sizeof line, "{\"model_file\":\"%s\"}\n", more);
        snprintf(text, sizeof text, "%s%s", head, lines[i] != NULL ? lines[i] : line);
        assert_non_null(f);
        fputs(text, f);
        fclose(f);
        store_facts_of(path, &found);
        assert_string_equal(found.model.name, "old");
        assert_string_equal(found.model.file, "");
        ok(store_open(&s, path, &e));
        assert_string_equal(store_model(s)->name, "old");
        assert_string_equal(store_model(s)->file, "");
        assert_int_equal(store_messages(s), 1);
        store_close(s);
    }
}

/* The end of the program between two of them would lose messages. */
static void changes_that_belong_together_are_written_at_once(void **state)
{
    struct store *s = begin();
    char path[4096];
    struct stat before, now;

    (void)state;
    user_says(s, "one");
    answer_says(s, "first", false);
    ok(store_done(s, &receipt, 10, NULL, &e));
    strcpy(path, store_path(s));
    assert_int_equal(stat(path, &before), 0);
    store_begin_together(s);
    ok(store_rewind(s, 1, &e));
    answer_says(s, "second", false);
    ok(store_done(s, &receipt, 10, NULL, &e));
    user_says(s, "two");
    assert_int_equal(stat(path, &now), 0);
    assert_int_equal(now.st_size, before.st_size);
    expect(s, 1, STORE_ANSWER, NULL, "second"); /* it can be read meanwhile */
    ok(store_end_together(s, &e));
    assert_int_equal(stat(path, &now), 0);
    assert_true(now.st_size > before.st_size);
    store_close(s);
    ok(store_open(&s, path, &e));
    assert_int_equal(store_count(s), 3);
    expect(s, 1, STORE_ANSWER, NULL, "second");
    store_close(s);
}

/* As an answer that is shown: with the ids and the text that was held back. */
static void other_answers_go_on_where_they_were_cut(void **state)
{
    const struct mw_cut cut = { .ids = (const uint32_t[]){ 7, 0, 4000000000u }, .n_ids = 3 };
    struct store_item item = { .kind = STORE_ANSWER, .done = MW_DONE_CANCELLED };
    struct store_text text, said = { .text = (char *)(uintptr_t)"text<en", .len = 7,
                                     .thinking = (char *)(uintptr_t)"hm", .thinking_len = 2 };
    struct store *s = begin();
    uint32_t *ids;
    size_t n_ids;

    (void)state;
    user_says(s, "one");
    for (int i = 0; i < 2; i++) {
        item.holds_thinking = i == 1;
        item.n_held = i == 1 ? 1 : 3;
        ok(store_add_other(s, (uint32_t)i + 1, &said, &item, &cut, &e));
    }
    for (int i = 0; i < 2; i++) {
        ok(store_other(s, (uint32_t)i, &text, &item, &ids, &n_ids, &e));
        assert_string_equal(text.text, "text<en");
        assert_string_equal(text.thinking, "hm");
        assert_int_equal(item.n_held, i == 1 ? 1 : 3);
        assert_true(item.holds_thinking == (i == 1));
        assert_int_equal(n_ids, 3);
        assert_memory_equal(ids, cut.ids, 3 * sizeof *ids);
        free(ids);
        store_text_free(&text);
    }
    store_close(s);
}

/* Only what does not fit a line that can be read again is too long. */
static void long_answers_are_kept_beside_others(void **state)
{
    struct store_item item = { .kind = STORE_ANSWER, .done = MW_DONE_STOP };
    struct store_text text, said = { .len = 1500000 };
    const struct mw_cut whole = { 0 };
    struct store *s = begin();
    char path[4096];
    uint32_t *ids;
    size_t n_ids;

    (void)state;
    said.text = malloc(said.len + 1);
    assert_non_null(said.text);
    memset(said.text, 'a', said.len);
    said.text[said.len] = '\0';
    user_says(s, "one");
    assert_true(store_can_be_other(&said));
    ok(store_add_other(s, 1, &said, &item, &whole, &e));
    memset(said.text, '\n', said.len / 2);
    assert_false(store_can_be_other(&said));
    answer_says(s, "shown", false);
    ok(store_done(s, &receipt, 10, NULL, &e));
    strcpy(path, store_path(s));
    store_close(s);
    ok(store_open(&s, path, &e));
    ok(store_other(s, 0, &text, &item, &ids, &n_ids, &e));
    assert_int_equal(text.len, said.len);
    assert_int_equal(n_ids, 0);
    store_text_free(&text);
    store_close(s);
    free(said.text);
}

static void other_answers_are_read_again(void **state)
{
    const struct mw_cut whole = { 0 };
    uint32_t *ids;
    size_t n_ids;
    struct store_item item = { .kind = STORE_ANSWER, .done = MW_DONE_LENGTH };
    struct store_text first = { .text = (char *)(uintptr_t)"first", .len = 5 }, text;
    struct store *s = begin();
    char path[4096];

    (void)state;
    item.has_receipt = true;
    item.receipt = receipt;
    user_says(s, "one");
    assert_int_equal(store_attempts(s), 0);
    for (uint32_t i = 1; i <= STORE_MAX_OTHERS + 2; i++) {
        item.receipt.attempt = i;
        ok(store_add_other(s, i, &first, &item, &whole, &e));
    }
    assert_int_equal(store_attempts(s), STORE_MAX_OTHERS + 3);
    answer_says(s, "shown", false);
    item.receipt.attempt = 12;
    ok(store_done(s, &item.receipt, 10, NULL, &e));
    strcpy(path, store_path(s));
    store_close(s);
    ok(store_open(&s, path, &e));
    assert_int_equal(store_attempts(s), STORE_MAX_OTHERS + 3);
    assert_int_equal(store_item(s, store_count(s) - 1)->receipt.attempt, 12);
    assert_int_equal(store_others(s), STORE_MAX_OTHERS); /* without the oldest */
    assert_int_equal(store_other_number(s, 0), 3);
    ok(store_other(s, 0, &text, &item, &ids, &n_ids, &e));
    assert_null(ids);
    assert_string_equal(text.text, "first");
    assert_int_equal(item.done, MW_DONE_LENGTH);
    assert_int_equal(item.receipt.n_decoded, receipt.n_decoded);
    store_text_free(&text);
    ok(store_rewind(s, 1, &e));
    ok(store_choose_other(s, 3, &e));
    assert_int_equal(store_other_number(s, 0), 4);
    ok(store_choose_other(s, 99, &e)); /* there is none */
    assert_int_equal(store_others(s), STORE_MAX_OTHERS - 1); /* of the question */
    answer_says(s, "again", false);
    ok(store_done(s, &receipt, 10, NULL, &e));
    assert_int_equal(store_others(s), STORE_MAX_OTHERS - 1);
    user_says(s, "two");
    answer_says(s, "other", false);
    assert_int_equal(store_others(s), 0);
    store_close(s);
}

static void an_answer_that_is_interrupted_or_continued_is_one(void **state)
{
    struct mw_receipt stopped = { .done = MW_DONE_CANCELLED };
    struct store *s = begin();
    char path[4096];
    uint32_t item;

    (void)state;
    user_says(s, "q");
    answer_says(s, "a", true);
    answer_says(s, "b", false);
    answer_says(s, "c", true); /* thinking again, after text */
    ok(store_add(s, STORE_NOTICE, "n", 1, NULL, &e));
    user_says(s, "queued");
    answer_says(s, "d", false);
    ok(store_add(s, STORE_NOTICE, "m", 1, NULL, &e));
    ok(store_done(s, &stopped, 5, NULL, &e));
    ok(store_piece(s, "e", 1, false, true, &item, &e));
    assert_int_equal(item, 1);
    ok(store_done(s, &receipt, 6, NULL, &e));
    strcpy(path, store_path(s));
    store_close(s);
    for (int i = 0; i < 2; i++) {
        ok(store_open(&s, path, &e));
        assert_int_equal(store_count(s), 5);
        expect(s, 1, STORE_ANSWER, "ac", "bde");
        expect(s, 3, STORE_USER, NULL, "queued");
        assert_int_equal(store_item(s, 1)->done, MW_DONE_STOP);
        assert_int_equal(store_item(s, 1)->context, 6);
        store_close(s);
    }
}

static void attached_files_are_read_again(void **state)
{
    static const char lines[] =
        "{\"role\":\"user\",\"attached\":\"x\",\"attached_bytes\":99,\"text\":\"short\"}\n"
        "{\"role\":\"user\",\"attached\":\"x\",\"attached_bytes\":2,\"text\":\"a\u00e9b\"}\n"
        "{\"role\":\"user\",\"attached\":7,\"attached_bytes\":-5,\"text\":\"none\"}\n";
    static const uint32_t bytes[] = { 6, 0, 6, 0, 1, 0 };
    const struct attached files = { 6, "notes.txt, \"6 B\"" };
    struct store *s = begin();
    struct store_text t;
    char path[4096];
    FILE *f;

    (void)state;
    ok(store_add_user(s, "file: text", 10, &files, NULL, &e));
    ok(store_queue(s, "file: later", 11, &files, &e));
    strcpy(path, store_path(s));
    store_close(s);
    ok(store_open(&s, path, &e));
    ok(store_queue_text(s, 0, &t, &e));
    assert_int_equal(t.attached.bytes, 6);
    assert_string_equal(t.attached.label, "notes.txt, \"6 B\"");
    store_text_free(&t);
    user_says(s, "without");
    ok(store_add_queued(s, "file: later", 11, &files, NULL, &e));
    store_close(s);
    /* Bytes that are not in the text, or within a character, harm nothing. */
    f = fopen(path, "a");
    assert_non_null(f);
    assert_true(fputs(lines, f) >= 0);
    assert_int_equal(fclose(f), 0);
    ok(store_open(&s, path, &e));
    assert_int_equal(store_count(s), 6);
    for (uint32_t i = 0; i < 6; i++) {
        ok(store_text(s, i, &t, &e));
        assert_int_equal(t.attached.bytes, i == 3 ? 0 : bytes[i]);
        store_text_free(&t);
    }
    store_close(s);
}

static void a_long_message_is_split_into_lines(void **state)
{
    enum { LONG = 3000000 };
    struct store *s = begin();
    char path[4096], *text = malloc(LONG + 1);

    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < LONG; i++)
        text[i] = i % 3 == 0 ? '\x01' : 'x';
    text[LONG] = '\0';
    user_says(s, text);
    answer_says(s, text, false);
    answer_says(s, text, false);
    ok(store_done(s, &receipt, 1, NULL, &e));
    strcpy(path, store_path(s));
    store_close(s);
    ok(store_open(&s, path, &e));
    assert_int_equal(store_count(s), 2);
    expect(s, 0, STORE_USER, NULL, text);
    assert_int_equal(store_item(s, 1)->text_bytes, 2 * LONG);
    store_close(s);
    free(text);
}

static void a_chat_can_be_open_only_once(void **state)
{
    struct store *s = begin(), *other;

    (void)state;
    user_says(s, "x");
    assert_int_equal(store_open(&other, store_path(s), &e), -1);
    assert_null(other);
    assert_string_equal(e.what, "is open in another memwall");
    assert_non_null(strstr(store_path(s), e.file)); /* which messages begin with */
    store_close(s);
}

static void text_that_does_not_fit_the_disk_is_written_later(void **state)
{
    struct store *s = begin();
    struct rlimit was, small;
    char path[4096];
    int failed = 0;

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    user_says(s, "q");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    small = was;
    small.rlim_cur = 300;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (int i = 0; i < 100; i++)
        failed += store_piece(s, "0123456789", 10, false, false, NULL, &e) != 0;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    assert_true(failed > 50);
    assert_int_equal(e.code, ERR_IO);
    answer_says(s, "end", false);
    ok(store_done(s, &receipt, 1, NULL, &e));
    strcpy(path, store_path(s));
    store_close(s);
    ok(store_open(&s, path, &e));
    assert_int_equal(store_item(s, 1)->text_bytes, 1003);
    store_close(s);
}

/* A disk that stays full must not fill the memory. */
static void a_full_disk_lets_one_mebibyte_of_text_wait(void **state)
{
    struct store *s = begin();
    struct rlimit was, small;
    char text[10001];
    unsigned n = 0;

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    signal(SIGXFSZ, SIG_IGN);
    user_says(s, "q");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    small = was;
    small.rlim_cur = 300;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    while (n < 1000 && store_check_room(s, &e) == 0) {
        assert_int_equal(store_add(s, STORE_USER, text, sizeof text - 1, NULL, &e), -1);
        n++;
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    assert_in_range(n, 100, 110);
    e = (struct err)ERR_INIT;
    ok(store_sync(s, &e));
    ok(store_check_room(s, &e));
    assert_int_equal(store_count(s), n + 1);
    store_close(s);
}

struct bad {
    const char *name, *file, *want;
};

#define HEAD "{\"memwall\":\"chat\",\"version\":1}\n"

static struct bad bad_files[] = {
    { "an empty file", "", "line 1: is empty" },
    { "a file without text", "\n\n", "line 1: is empty" },
    { "another kind of file", "GGUF\x03\n", "line 1: is not valid JSON" },
    { "other JSON", "{\"role\":\"user\",\"text\":\"x\"}\n",
      "line 1: is not a memwall chat file" },
    { "a head that is cut", "{\"memwall\":\"chat\",\"vers",
      "line 1: is not a memwall chat file" },
    { "one line that is cut", "{\"role\":\"us", "line 1: is not a memwall chat file" },
    { "one line that is cut after its role", "{\"role\":\"user\",\"time\":\"2026",
      "line 1: is not a memwall chat file" },
    { "a later version", "{\"memwall\":\"chat\",\"version\":2}\n",
      "line 1: chat version 2 is not supported by this memwall" },
    { "a head that is damaged, and nothing else", "{\"memwall\":\"ch\n{\"rewind\":0}\n",
      "line 1: is not valid JSON" },
};

static void refuses(void **state)
{
    const struct bad *b = *state;
    char path[128], want[256], text[700], *after;
    struct store *s;
    size_t n;

    snprintf(path, sizeof path, "%s/bad.jsonl", dir);
    spill(path, b->file, strlen(b->file));
    e = (struct err)ERR_INIT;
    assert_int_equal(store_open(&s, path, &e), -1);
    assert_null(s);
    err_text(&e, text, sizeof text);
    snprintf(want, sizeof want, "%s: %s", path, b->want);
    assert_string_equal(text, want);
    after = slurp(path, &n);
    assert_string_equal(after, b->file); /* it belongs to somebody else */
    free(after);
}

static void unknown_lines_are_skipped(void **state)
{
    static const char file[] = HEAD
        "{\"future\":{\"text\":[1,2,{\"a\":null}]},\"role\":\"user\",\"text\":\"x\"}\n"
        "{\"role\":\"tool\",\"text\":\"y\"}\n{\"rewind\":-1}\n{\"receipt\":{\"n_decoded\":"
        "-5}}\n{\"role\":\"assistant\",\"continues\":true,\"text\":\"a\",\"text\":\"b\"}\n";
    char path[128];
    struct store *s;

    (void)state;
    snprintf(path, sizeof path, "%s/future.jsonl", dir);
    spill(path, file, sizeof file - 1);
    ok(store_open(&s, path, &e));
    assert_int_equal(store_count(s), 3);
    expect(s, 0, STORE_USER, NULL, "x");
    expect(s, 1, STORE_NOTICE, NULL, "y"); /* the role is unknown */
    expect(s, 2, STORE_ANSWER, NULL, "ab");
    store_close(s);
}

static void a_name_that_is_not_a_file_is_refused(void **state)
{
    struct store *s;
    char path[128];

    (void)state;
    assert_int_equal(store_open(&s, dir, &e), -1);
    snprintf(path, sizeof path, "%s/none", dir);
    assert_int_equal(store_open(&s, path, &e), -1);
    snprintf(path, sizeof path, "%s/fifo", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(store_open(&s, path, &e), -1); /* and does not wait for a writer */
    assert_non_null(strstr(e.what, "is not a file"));
}

static void a_complete_name_wins_over_longer_ones(void **state)
{
    static const char *const names[] = { "plan-b", "plan", "plan-c" };
    char path[4096], end[40];

    (void)state;
    assert_int_equal(folder_make(chats), 0);
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s.jsonl", chats, names[i]);
        spill(path, HEAD, strlen(HEAD));
    }
    for (size_t i = 0; i < 3; i++) {
        ok(store_find(chats, names[i], path, sizeof path, &e));
        snprintf(end, sizeof end, "/%s.jsonl", names[i]);
        assert_non_null(strstr(path, end));
    }
}

static void other_files_alone_make_no_list(void **state)
{
    struct store_entry *all;
    char junk[128];
    size_t n;

    (void)state;
    assert_int_equal(folder_make(chats), 0);
    snprintf(junk, sizeof junk, "%s/junk.jsonl", chats);
    spill(junk, "no chat", 7);
    ok(store_list(chats, &all, &n, &e));
    assert_int_equal(n, 0);
    assert_null(all);
}

static void chats_are_listed_newest_first(void **state)
{
    struct timespec times[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
    char older[4096], newer[4096], path[4096], junk[128];
    struct store_entry *all;
    struct store *s = begin();
    size_t n;

    (void)state;
    user_says(s, "the older\none \x1b[31m");
    answer_says(s, "x", false);
    ok(store_done(s, &receipt, 77, NULL, &e));
    strcpy(older, store_path(s));
    store_close(s);
    s = begin();
    user_says(s, "the newer");
    strcpy(newer, store_path(s));
    store_close(s);
    assert_string_not_equal(older, newer);
    assert_int_equal(utimensat(AT_FDCWD, older, times, 0), 0);
    snprintf(junk, sizeof junk, "%s/junk.jsonl", chats);
    spill(junk, "no chat", 7);
    ok(store_list(chats, &all, &n, &e));
    assert_int_equal(n, 2);
    assert_string_equal(all[0].title, "the newer");
    assert_string_equal(all[1].title, "the older one ^[[31m");
    assert_int_equal(all[1].context, 77);
    assert_int_equal(all[1].changed, 1000);

    ok(store_find(chats, NULL, path, sizeof path, &e));
    assert_string_equal(path, newer);
    ok(store_find(chats, all[1].name, path, sizeof path, &e));
    assert_string_equal(path, older);
    assert_int_equal(store_find(chats, "2", path, sizeof path, &e), -1);
    assert_non_null(strstr(e.what, "several saved chats"));
    assert_int_equal(store_find(chats, "zzz", path, sizeof path, &e), -1);
    assert_string_equal(e.what, "no saved chat \"zzz\"");
    assert_int_equal(store_find(dir, NULL, path, sizeof path, &e), -1);
    assert_string_equal(e.what, "no saved chat");
    free(all);
}

/* The name of the file of s, without the suffix. */
static const char *name_of(const struct store *s)
{
    static char name[64];
    const char *base = strrchr(store_path(s), '/');

    assert_non_null(base);
    snprintf(name, sizeof name, "%.*s", (int)(strlen(base) - 1 - strlen(STORE_SUFFIX)),
             base + 1);
    return name;
}

static void a_name_survives_a_program_that_is_killed(void **state)
{
    struct store *s = begin(), *open;
    char path[4096], first[4096];

    (void)state;
    user_says(s, "hello");
    strcpy(first, store_path(s));
    ok(store_rename(s, "my holiday", &e));
    assert_int_equal(access(first, F_OK), -1);
    /* Nothing is written after this: the file already has its name. */
    ok(store_find(chats, "my hol", path, sizeof path, &e));
    assert_string_equal(path, store_path(s));
    assert_string_equal(name_of(s), "my holiday");
    assert_non_null(strstr(path, "/my holiday.jsonl"));
    user_says(s, "more"); /* into the renamed file, not into a new one */
    store_close(s);
    ok(store_open(&open, path, &e));
    assert_int_equal(store_messages(open), 2);
    store_close(open);
}

static void a_chat_can_be_named_before_its_first_message(void **state)
{
    struct store *s = begin();

    (void)state;
    ok(store_rename(s, "plans", &e));
    assert_string_equal(store_path(s), "");
    user_says(s, "hello");
    assert_non_null(strstr(store_path(s), "/plans.jsonl"));
    store_close(s);
    s = begin();
    assert_int_equal(store_rename(s, "plans", &e), -1);
    assert_string_equal(e.what, "there is already a chat \"plans\"");
    store_close(s);
    ok(store_new(&s, NULL, "m", &e));
    assert_int_equal(store_rename(s, "plans", &e), -1);
    store_close(s);
}

static void hostile_names_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "../../etc/passwd",
        "a/b",
        ".hidden",
        "-m",
        " x",
        "x ",
        "a\nb",
        "a\033[31m",
        "a\xe2\x80\xaez",
        "\xff",
        "a -> b",
        "x.jsonl",
        "a name that is longer than the name of a file in the list can be",
    };
    struct store *s = begin();

    (void)state;
    user_says(s, "hello");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        e = (struct err)ERR_INIT;
        if (store_rename(s, bad[i], &e) != -1 || strstr(e.what, "the name of a chat") == NULL)
            fail_msg("\"%s\" became a name: %s", bad[i], e.what);
    }
    ok(store_rename(s, "Grüße & 漢字", &e));
    store_close(s);
}

static void a_chat_that_is_open_is_not_renamed_or_deleted(void **state)
{
    struct store *s = begin();
    char old[64], path[4096];
    struct store_entry *all;
    uint32_t n_message;
    size_t n;

    (void)state;
    user_says(s, "hello");
    answer_says(s, "hi", false);
    ok(store_done(s, &receipt, 46, NULL, &e));
    strcpy(path, store_path(s));
    strcpy(old, name_of(s));
    assert_int_equal(store_delete(chats, old, &e), -1);
    assert_non_null(strstr(e.what, "is open in another memwall"));
    assert_int_equal(store_rename_saved(chats, old, "new", &e), -1);
    assert_int_equal(access(path, F_OK), 0);
    store_close(s);
    assert_int_equal(store_rename_saved(chats, old, "../new", &e), -1);
    ok(store_rename_saved(chats, old, "new", &e));
    ok(store_list(chats, &all, &n, &e));
    assert_int_equal(n, 1);
    assert_string_equal(all[0].name, "new");
    assert_true(all[0].is_named);
    assert_true(store_count_saved(chats, all[0].name, &n_message));
    assert_int_equal(n_message, 2);
    free(all);
    assert_int_equal(store_delete(chats, "ne", &e), -1);
    assert_int_equal(store_delete(chats, "../chats/new", &e), -1);
    ok(store_delete(chats, "new", &e));
    ok(store_list(chats, &all, &n, &e));
    assert_int_equal(n, 0);
    free(all);
}

static void a_name_never_replaces_another_chat(void **state)
{
    struct store *a = begin(), *b;
    char name[64];

    (void)state;
    user_says(a, "the first");
    ok(store_rename(a, "taken", &e));
    b = begin();
    user_says(b, "the second");
    strcpy(name, name_of(b));
    assert_int_equal(store_rename(b, "taken", &e), -1);
    assert_string_equal(name_of(b), name);
    user_says(b, "goes on");
    store_close(b);
    assert_int_equal(store_rename_saved(chats, name, "taken", &e), -1);
    assert_string_equal(e.what, "there is already a chat \"taken\"");
    expect(a, 0, STORE_USER, NULL, "the first");
    store_close(a);
}

static void a_long_first_message_still_has_a_title(void **state)
{
    char *text = malloc(40001);
    struct store_entry *all;
    struct store *s = begin();
    size_t n;

    (void)state;
    assert_non_null(text);
    memset(text, 'y', 40000);
    text[40000] = '\0';
    user_says(s, text);
    store_close(s);
    free(text);
    ok(store_list(chats, &all, &n, &e));
    assert_int_equal(n, 1);
    assert_int_equal(strlen(all[0].title), sizeof all[0].title - 1);
    free(all);
}

static void a_chat_is_exported(void **state)
{
    struct store *s = begin();
    char path[128], *all;
    size_t n;

    (void)state;
    user_says(s, "# not a head\nq");
    answer_says(s, "hm", true);
    answer_says(s, "Yes *sir*", false);
    ok(store_done(s, &receipt, 46, NULL, &e));
    ok(store_add(s, STORE_NOTICE, "a\nb", 3, NULL, &e));
    ok(store_add(s, STORE_SYSTEM, "be brief", 8, NULL, &e));
    ok(store_add(s, STORE_SYSTEM, "", 0, NULL, &e));
    snprintf(path, sizeof path, "%s/out.md", dir);
    assert_int_equal(store_format_of(path), STORE_MARKDOWN);
    ok(store_export(s, path, STORE_MARKDOWN, false, &e));
    all = slurp(path, &n);
    assert_non_null(strstr(all, "\n## You\n\n# not a head\nq\n\n## Gemma"));
    assert_non_null(strstr(all, "<details><summary>thinking</summary>\n\nhm\n\n</details>\n\n"
                                "Yes *sir*\n\n*12 tokens"));
    assert_non_null(strstr(all, "\n> a\n> b\n\n## System\n\nbe brief\n\n> no system message"));
    free(all);
    snprintf(path, sizeof path, "%s/out.JSON", dir);
    assert_int_equal(store_format_of(path), STORE_JSON);
    ok(store_export(s, path, STORE_JSON, false, &e));
    /* An existing file keeps its content until replacing is allowed. */
    assert_int_equal(store_export(s, path, STORE_MARKDOWN, false, &e), -1);
    assert_int_equal(e.sys, EEXIST);
    e = (struct err)ERR_INIT;
    ok(store_export(s, path, STORE_JSON, true, &e));
    all = slurp(path, &n);
    assert_non_null(strstr(all, "\"messages\": [\n    {\"role\": \"user\",\n     \"content\": "
                                "\"# not a head\\nq\"},\n    {\"role\": \"assistant\",\n     "
                                "\"thinking\": \"hm\",\n     \"content\": \"Yes *sir*\",\n     "
                                "\"done\": \"stop\",\n     \"receipt\": {"));
    free(all);
    assert_int_equal(store_export(s, "/nonexistent/x.md", STORE_MARKDOWN, false, &e), -1);
    store_close(s);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, saved_chat_set_up, saved_chat_tear_down)

int main(void)
{
    const struct CMUnitTest fixed[] = {
        TEST(a_chat_without_messages_leaves_no_file),
        TEST(saved_messages_are_read_again),
        TEST(the_last_system_message_is_in_force),
        TEST(the_file_can_be_read_by_a_person_and_harms_no_terminal),
        TEST(a_killed_program_loses_only_text_that_was_not_written),
        TEST(rubbish_at_the_end_is_ignored),
        TEST(rewinding_keeps_the_lines_but_not_the_messages),
        TEST(a_summary_counts_the_carried_messages_that_are_left),
        TEST(settings_are_kept),
        TEST(models_of_other_chats),
        TEST(changes_that_belong_together_are_written_at_once),
        TEST(other_answers_go_on_where_they_were_cut),
        TEST(long_answers_are_kept_beside_others),
        TEST(other_answers_are_read_again),
        TEST(an_answer_that_is_interrupted_or_continued_is_one),
        TEST(attached_files_are_read_again),
        TEST(a_long_message_is_split_into_lines),
        TEST(a_chat_can_be_open_only_once),
        TEST(text_that_does_not_fit_the_disk_is_written_later),
        TEST(a_full_disk_lets_one_mebibyte_of_text_wait),
        TEST(unknown_lines_are_skipped),
        TEST(a_name_that_is_not_a_file_is_refused),
        TEST(a_complete_name_wins_over_longer_ones),
        TEST(other_files_alone_make_no_list),
        TEST(chats_are_listed_newest_first),
        TEST(a_name_survives_a_program_that_is_killed),
        TEST(a_chat_can_be_named_before_its_first_message),
        TEST(hostile_names_are_refused),
        TEST(a_chat_that_is_open_is_not_renamed_or_deleted),
        TEST(a_name_never_replaces_another_chat),
        TEST(a_long_first_message_still_has_a_title),
        TEST(a_chat_is_exported),
    };
    enum { N = sizeof bad_files / sizeof bad_files[0], FIXED = sizeof fixed / sizeof fixed[0] };
    struct CMUnitTest tests[N + FIXED];

    for (size_t i = 0; i < FIXED; i++)
        tests[i] = fixed[i];
    for (size_t i = 0; i < N; i++)
        tests[FIXED + i] = (struct CMUnitTest){ bad_files[i].name, refuses, saved_chat_set_up,
                                                saved_chat_tear_down, &bad_files[i] };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
