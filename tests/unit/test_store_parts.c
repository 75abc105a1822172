/* Chats with more items than memory keeps: all of them can be read in their order and with
 * their numbers, after any number of rewinds. */
#include "config.h"

#include <sys/stat.h>

#include <locale.h>
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

#define MOST 40000
#define HELD " held"

static struct store *store;

/* The text of each item has its number. */
static struct {
    enum store_kind kind;
    uint32_t text;
    bool is_longer; /* it was continued */
    bool is_cut;    /* it ends with text that was held back, and has an id */
} said[MOST];
static uint32_t n_said, next_text, seed = 1;

static uint32_t chance(uint32_t n)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % n;
}

static bool is_message(enum store_kind kind)
{
    return kind == STORE_USER || kind == STORE_ANSWER;
}

static void text_of(char text[32], uint32_t i)
{
    snprintf(text, 32, "text %u%s%s", said[i].text, said[i].is_longer ? " more" : "",
             said[i].is_cut ? HELD : "");
}

/* End the answer that is item i. */
static void done(uint32_t i)
{
    const struct store_end end = {
        .cut = { .ids = &said[i].text, .n_ids = 1, .n_held = strlen(HELD) }, .held = HELD
    };

    said[i].is_cut = chance(3) == 0;
    ok(store_done(store, &receipt, 7, said[i].is_cut ? &end : NULL, &e));
}

static void add(enum store_kind kind)
{
    char text[32];
    uint32_t item;

    assert_true(n_said < MOST);
    said[n_said].kind = kind;
    said[n_said].text = next_text++;
    said[n_said].is_longer = said[n_said].is_cut = false;
    text_of(text, n_said);
    if (kind == STORE_ANSWER) {
        ok(store_piece(store, text, strlen(text), false, false, &item, &e));
        done(n_said);
    } else {
        ok(store_add(store, kind, text, strlen(text), &item, &e));
    }
    assert_int_equal(item, n_said);
    n_said++;
}

/* Returns the last system message; n_said: there is none. */
static uint32_t last_system(void)
{
    for (uint32_t i = n_said; i > 0; i--)
        if (said[i - 1].kind == STORE_SYSTEM)
            return i - 1;
    return n_said;
}

static void exchange(void)
{
    if (chance(300) == 0)
        add(STORE_SYSTEM);
    add(STORE_USER);
    if (chance(20) == 0)
        add(STORE_NOTICE);
    add(STORE_ANSWER);
    if (chance(20) == 0)
        add(STORE_NOTICE);
}

static void go_on(void)
{
    uint32_t i = n_said;

    while (i > 0 && said[i - 1].kind == STORE_NOTICE)
        i--;
    if (i == 0 || said[i - 1].kind != STORE_ANSWER || said[i - 1].is_longer)
        return;
    ok(store_piece(store, " more", 5, false, true, NULL, &e));
    said[i - 1].is_longer = true;
    done(i - 1);
}

static void rewind_to(uint32_t message)
{
    uint32_t m = 0, system = last_system();

    ok(store_rewind(store, message, &e));
    for (uint32_t i = 0; i < n_said; i++)
        if (is_message(said[i].kind) && m++ == message)
            n_said = i;
    if (system >= n_said) /* it is written again */
        said[n_said++] = said[system];
}

static void check_item(uint32_t i)
{
    struct store_text t;
    char text[32];
    uint32_t *ids;
    size_t n_id;

    text_of(text, i);
    ok(store_ids(store, i, &ids, &n_id, &e));
    assert_int_equal(n_id, said[i].is_cut);
    if (n_id > 0)
        assert_int_equal(ids[0], said[i].text);
    free(ids);
    ok(store_text(store, i, &t, &e));
    assert_string_equal(t.text, text);
    store_text_free(&t);
    assert_int_equal(store_item(store, i)->kind, said[i].kind);
    assert_int_equal(store_item(store, i)->text_bytes, strlen(text));
    assert_int_equal(store_item(store, i)->has_receipt, said[i].kind == STORE_ANSWER);
}

static void check(uint32_t step)
{
    uint32_t m = 0, item;

    assert_int_equal(store_count(store), n_said);
    for (uint32_t i = 0; i < n_said; i++) {
        if (i % step == 0)
            check_item(i);
        if (!is_message(said[i].kind))
            continue;
        assert_int_equal(store_is_user(store, m), said[i].kind == STORE_USER);
        if (i % step == 0) {
            ok(store_item_of(store, m, &item, &e));
            assert_int_equal(item, i);
        }
        m++;
    }
    assert_int_equal(store_messages(store), m);
    assert_int_equal(store_system(store), last_system());
}

static void reopen(void)
{
    char path[4096];

    strcpy(path, store_path(store));
    store_close(store);
    ok(store_open(&store, path, &e));
}

/* Random messages, rewinds and continued answers; then everything is checked. */
static void talk(void)
{
    for (int round = 0; round < 12; round++) {
        for (uint32_t i = 0, n = 200 + chance(2500); i < n; i++)
            exchange();
        check(97);
        if (round % 3 == 2)
            reopen();
        rewind_to(chance(store_messages(store) + 1));
        go_on();
        check(97);
    }
}

static void begin(void)
{
    n_said = next_text = 0;
    ok(store_new(&store, dir, "tiny", &e));
    add(STORE_SYSTEM);
}

static int end(void **state)
{
    (void)state;
    store_close(store);
    store = NULL;
    return 0;
}

static void every_item_can_be_read_after_rewinds(void **state)
{
    (void)state;
    begin();
    talk();
    check(1);
    reopen();
    check(1);
    ok(store_queue(store, "later", 5, NULL, &e));
    rewind_to(1); /* queued messages are not rewound */
    reopen();
    check(1);
    assert_int_equal(store_queue_count(store), 1);
    {
        struct store_text t;

        ok(store_queue_text(store, 0, &t, &e));
        assert_string_equal(t.text, "later");
        store_text_free(&t);
    }
}

static void a_chat_that_is_written_again_has_every_item(void **state)
{
    uint32_t n_lost;
    char path[4096];

    (void)state;
    begin();
    talk();
    for (int i = 0; i < 4000; i++)
        exchange();
    strcpy(path, store_path(store));
    assert_int_equal(unlink(path), 0);
    exchange();
    assert_true(store_take_moved(store, &n_lost));
    assert_int_equal(n_lost, 0);
    check(1);
    rewind_to(3000);
    go_on();
    exchange();
    reopen();
    check(1);
}

static void items_keep_their_numbers_if_lines_are_lost(void **state)
{
    uint32_t n_lost, count, item;

    (void)state;
    begin();
    for (int i = 0; i < 20000; i++)
        add(i % 2 == 0 ? STORE_USER : STORE_ANSWER);
    count = store_count(store);
    assert_int_equal(truncate(store_path(store), 0), 0);
    exchange();
    assert_true(store_take_moved(store, &n_lost));
    assert_true(n_lost > 8000 && n_lost < 20000);
    reopen();
    assert_int_equal(store_count(store), n_said);
    check_item(n_said - 1);
    check_item(count - 1);
    assert_true(store_is_user(store, 0));
    assert_false(store_is_user(store, 1));
    ok(store_item_of(store, 20000, &item, &e));
    assert_int_equal(item, count);
}

/* Returns whether line n (from 1) of a file contains text. */
static bool file_has_in_line(const char *path, int n, const char *text)
{
    char line[256] = "";
    FILE *f = fopen(path, "r");

    assert_non_null(f);
    while (n-- > 0)
        assert_non_null(fgets(line, sizeof line, f));
    fclose(f);
    return strstr(line, text) != NULL;
}

static void a_chat_that_is_not_saved_keeps_its_newest_text(void **state)
{
    static char text[20001], out[80];
    struct stat st;
    uint32_t oldest;
    struct store_text t;

    (void)state;
    memset(text, 'x', sizeof text - 1);
    ok(store_new(&store, NULL, "tiny", &e));
    for (uint32_t i = 0; i < 5000; i++) { /* 100 MB */
        snprintf(text, sizeof text, "%u", i);
        text[strlen(text)] = ' ';
        ok(store_add(store, STORE_USER, text, sizeof text - 1, NULL, &e));
        ok(store_text(store, i, &t, &e));
        assert_int_equal(strtoul(t.text, NULL, 10), i);
        store_text_free(&t);
    }
    oldest = store_oldest(store);
    assert_in_range(5000 - oldest, 25, 52); /* from half of STORE_MEMORY_BYTES to all of it */
    assert_int_equal(store_text(store, oldest - 1, &t, &e), -1);
    ok(store_text(store, oldest, &t, &e));
    assert_int_equal(strtoul(t.text, NULL, 10), oldest);
    store_text_free(&t);
    assert_int_equal(store_text(store, 3, &t, &e), -1);
    snprintf(out, sizeof out, "%s/out.md", dir);
    ok(store_export(store, out, STORE_MARKDOWN, true, &e));
    assert_int_equal(stat(out, &st), 0);
    assert_true(st.st_size > (5000 - oldest) * 20000);
    assert_int_equal(store_missing(store), oldest);
    snprintf(text, sizeof text, "The oldest %u messages are missing", oldest);
    assert_true(file_has_in_line(out, 3, text));
}

static void only_the_beginning_of_a_long_text_is_read(void **state)
{
    static char text[3000001];
    struct store_text t;

    (void)state;
    for (size_t i = 0; i + 2 < sizeof text; i += 2)
        memcpy(text + i, "\xc3\xa9", 2);
    ok(store_new(&store, dir, "tiny", &e));
    ok(store_piece(store, "hm", 2, true, false, NULL, &e));
    ok(store_piece(store, text, sizeof text - 1, false, false, NULL, &e));
    ok(store_done(store, &receipt, 7, NULL, &e));
    for (size_t max = 1; max < 5; max++) {
        ok(store_text_start(store, 0, max, &t, &e));
        assert_int_equal(t.thinking_len, max < 2 ? max : 2);
        assert_int_equal(t.len, max < 4 ? 0 : 2);
        assert_int_equal(t.n_left, 2 + sizeof text - 1 - t.len - t.thinking_len);
        store_text_free(&t);
    }
    ok(store_text_start(store, 0, sizeof text + 1, &t, &e));
    assert_int_equal(t.n_left, 0);
    assert_string_equal(t.text, text);
    store_text_free(&t);
}

static int make_dir(void **state)
{
    (void)state;
    setlocale(LC_CTYPE, "C.UTF-8");
    /* Every message is synced, so use a file system in memory. */
    strcpy(dir, "/dev/shm/memwall-parts.XXXXXX");
    if (mkdtemp(dir) != NULL)
        return 0;
    strcpy(dir, "/tmp/memwall-parts.XXXXXX");
    return mkdtemp(dir) == NULL ? -1 : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(every_item_can_be_read_after_rewinds, end),
        cmocka_unit_test_teardown(a_chat_that_is_written_again_has_every_item, end),
        cmocka_unit_test_teardown(a_chat_that_is_not_saved_keeps_its_newest_text, end),
        cmocka_unit_test_teardown(only_the_beginning_of_a_long_text_is_read, end),
        cmocka_unit_test_teardown(items_keep_their_numbers_if_lines_are_lost, end),
    };

    return cmocka_run_group_tests(tests, make_dir, saved_chat_tear_down);
}
