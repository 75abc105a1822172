/* Saved chats that were damaged by a loss of power, a failing disk or another program. */
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

#define HEAD         "{\"memwall\":\"chat\",\"version\":1}\n"
#define USER(text)   "{\"role\":\"user\",\"time\":\"t\",\"text\":\"" text "\"}\n"
#define ANSWER(text) "{\"role\":\"assistant\",\"text\":\"" text "\",\"done\":\"stop\"}\n"
#define MORE(text)   "{\"role\":\"assistant\",\"continues\":true,\"text\":\"" text "\"}\n"
#define WHOLE        USER("a") ANSWER("b")

/* Files with damaged lines.  NUL is written as '@'.  want: the kind of each item (u, a, n) and
 * its text. */
static struct damaged {
    const char *name, *file;
    uint32_t n;
    uint64_t line;
    const char *want;
} damaged_files[] = {
    { "a message that is cut", HEAD WHOLE "{\"role\":\n" USER("c"), 1, 4, "ua ab uc" },
    { "bad UTF-8 in a text", HEAD USER("\xff") ANSWER("b"), 1, 2, "u ab" },
    { "bad UTF-8 in a notice", HEAD USER("a") "{\"notice\":\"\xff\"}\n" ANSWER("b"), 1, 3,
      "ua ab" },
    { "an array", HEAD "[1]\n" WHOLE, 1, 2, "ua ab" },
    { "deep nesting",
      HEAD WHOLE "{\"x\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}\n", 1,
      4, "ua ab" },
    { "two objects in a line", HEAD "{\"rewind\":0}{\"rewind\":0}\n" WHOLE, 1, 2, "ua ab" },
    { "NULs over the end of one line and the start of another",
      HEAD USER("a") "{\"role\":\"assistant\",\"text\":\"b@@@@@ext\":\"x\"}\n" USER("c"), 1, 3,
      "ua a uc" },
    { "NULs over whole lines", HEAD WHOLE "@@@@@@@@@@\n" USER("c"), 1, 4, "ua ab uc" },
    { "no head", USER("a") ANSWER("b"), 1, 1, "ua ab" },
    { "an empty line before the head", "\n" HEAD WHOLE, 1, 1, "ua ab" },
    { "an empty line in place of the head", "\n" WHOLE, 1, 1, "ua ab" },
    { "blanks in place of the head", " \t\r\n" WHOLE, 1, 1, "ua ab" },
    { "no head, and one message", USER("a"), 1, 1, "ua" },
    { "a head without its mark", "{\"version\":1,\"model\":\"m\"}\n" WHOLE, 1, 1, "ua ab" },
    { "blank lines with returns", HEAD USER("a") "\r\n" ANSWER("b"), 0, 0, "ua ab" },
    { "a number", HEAD "7\n" WHOLE, 1, 2, "ua ab" },
    { "a message without a role", HEAD "{\"time\":\"t\",\"text\":\"x\"}\n" WHOLE, 1, 2,
      "nx ua ab" },
    { "NULs over the head", "@@@@@@@@@@\n" WHOLE, 1, 1, "ua ab" },
    { "a torn head", "{\"memwall\":\"chat\",\"ver\n" WHOLE, 1, 1, "ua ab" },
    { "the first piece of an answer", HEAD USER("a") ANSWER("b") USER("c") "@\n" MORE("d"), 1,
      5, "ua ab uc ad" },
    { "the first piece of an answer, with a role that can be read",
      HEAD WHOLE USER("c") "{\"role\":\"assistant\",\"text\":\"\xff\"}\n" MORE("d"), 1, 5,
      "ua ab uc ad" },
    { "a later piece of an answer",
      HEAD WHOLE "{\"role\":\"assistant\",\"continues\":true,\"te@\n" MORE("d"), 1, 4,
      "ua abd" },
    { "a rewind that counts a damaged message",
      HEAD USER("\xff") ANSWER("b") USER("c") "{\"rewind\":2}\n", 1, 2, "u ab" },
    { "a damaged rewind", HEAD WHOLE USER("c") "{\"rewind\":@}\n", 1, 5, "ua ab uc" },
    { "several lines", HEAD "x\ny\n" WHOLE "z\n", 3, 2, "ua ab" },
    { "a damaged last line without a newline",
      HEAD WHOLE "{\"role\":\"user\",\"text\":\"\xff xx", 1, 4, "ua ab u" },
    { "garbage at the end", HEAD WHOLE "garbage", 1, 4, "ua ab" },
    { "garbage and NULs at the end", HEAD WHOLE "garbage@@@@", 1, 4, "ua ab" },
    { "an incomplete last line", HEAD WHOLE "{\"role\":\"us", 0, 0, "ua ab" },
    { "an incomplete last line and NULs", HEAD WHOLE "{\"role\":\"user\",\"text\":\"c@@@", 0, 0,
      "ua ab uc" },
};

static size_t with_nuls(char *buf, size_t size, const char *file)
{
    size_t n = strlen(file);

    assert_true(n < size);
    memcpy(buf, file, n + 1);
    for (size_t i = 0; i < n; i++)
        if (buf[i] == '@')
            buf[i] = '\0';
    return n;
}

static void expect_items(const struct store *s, const char *want)
{
    static const char kinds[] = {
        [STORE_USER] = 'u', [STORE_ANSWER] = 'a', [STORE_NOTICE] = 'n', [STORE_SYSTEM] = 's'
    };
    char got[200] = "";

    for (uint32_t i = 0; i < store_count(s); i++) {
        size_t n = strlen(got);
        struct store_text t;

        ok(store_text(s, i, &t, &e));
        snprintf(got + n, sizeof got - n, "%s%c%s", i > 0 ? " " : "",
                 kinds[store_item(s, i)->kind], t.text);
        store_text_free(&t);
    }
    assert_string_equal(got, want);
}

/* Damaged lines are passed over, and the same messages are there each time, with what is added
 * between. */
static void whole_lines_around_damage_are_read(void **state)
{
    const struct damaged *d = *state;
    char path[128], export[128], file[1000], want[200], *after;
    size_t n = with_nuls(file, sizeof file, d->file), n_after, n_solid = n;
    struct store *s;
    const char *why;
    uint64_t line;

    snprintf(path, sizeof path, "%s/damaged.jsonl", dir);
    snprintf(export, sizeof export, "%s/damaged.md", dir);
    spill(path, file, n);
    ok(store_open(&s, path, &e));
    assert_int_equal(store_damage(s, &line, &why), d->n);
    assert_int_equal(line, d->line);
    expect_items(s, d->want);
    ok(store_export(s, export, STORE_MARKDOWN, true, &e));
    store_close(s);
    ok(store_open(&s, path, &e));
    assert_int_equal(store_damage(s, &line, &why), d->n);
    expect_items(s, d->want);
    answer_says(s, "x", false);
    ok(store_done(s, &receipt, 46, NULL, &e));
    user_says(s, "more");
    store_close(s);
    ok(store_open(&s, path, &e));
    snprintf(want, sizeof want, "%s ax umore", d->want);
    expect_items(s, want);
    store_close(s);
    /* Only an incomplete end may be cut off, and NULs. */
    after = slurp(path, &n_after);
    while (n_solid > 0 && file[n_solid - 1] == '\0')
        n_solid--;
    if (d->n > 0)
        assert_memory_equal(after, file, n_solid);
    free(after);
}

/* An answer that goes on after damage was found is one answer later, too. */
static void an_answer_goes_on_after_damage_at_the_end(void **state)
{
    static const char *const ends[] = { "garbage", "garbage\n" };
    char path[128], file[400];
    struct store *s;

    (void)state;
    snprintf(path, sizeof path, "%s/damaged.jsonl", dir);
    for (size_t i = 0; i < 2; i++) {
        snprintf(file, sizeof file, HEAD WHOLE "%s", ends[i]);
        spill(path, file, strlen(file));
        ok(store_open(&s, path, &e));
        ok(store_piece(s, "c", 1, false, true, NULL, &e));
        ok(store_done(s, &receipt, 46, NULL, &e));
        expect_items(s, "ua abc");
        store_close(s);
        ok(store_open(&s, path, &e));
        expect_items(s, "ua abc");
        assert_true(store_item(s, 1)->has_receipt);
        store_close(s);
    }
}

/* A damaged message keeps its place when another program removes the file. */
static void a_damaged_message_is_written_again_without_text(void **state)
{
    static const char file[] = HEAD USER("\xff") ANSWER("b") USER("c");
    char path[128];
    struct store *s;

    (void)state;
    snprintf(path, sizeof path, "%s/damaged.jsonl", dir);
    spill(path, file, sizeof file - 1);
    ok(store_open(&s, path, &e));
    assert_int_equal(unlink(path), 0);
    answer_says(s, "d", false);
    ok(store_done(s, &receipt, 46, NULL, &e));
    store_close(s);
    ok(store_open(&s, path, &e));
    expect_items(s, "u ab uc ad");
    store_close(s);
}

/* ---- every key of every kind of line ---- */

/* Lines with all their keys.  Texts are unlike each other, so that a lost one is noticed. Type:
 * s text, e one of several texts, n number, b boolean, o object, l list; m and v decide
 * whether the file is a chat of this version. */
static const struct line_key {
    const char *line, *key, *good;
    char type;
    bool is_needed;
    const char *mark; /* the text that is shown */
} line_keys[] = {
    { "head", "memwall", "\"chat\"", 'm', true, NULL },
    { "head", "version", "1", 'v', true, NULL },
    { "head", "created", "\"c\"", 's', false, NULL },
    { "head", "model", "\"m\"", 's', false, NULL },
    { "system", "role", "\"system\"", 'e', true, NULL },
    { "system", "text", "\"<b>\"", 's', true, "<b>" },
    { "user", "role", "\"user\"", 'e', true, NULL },
    { "user", "time", "\"t\"", 's', false, NULL },
    { "user", "queued", "true", 'b', false, NULL },
    { "user", "attached", "\"notes.txt\"", 's', false, NULL },
    { "user", "attached_bytes", "1", 'n', false, NULL },
    { "user", "text", "\"<b>\"", 's', true, "<b>" },
    { "answer", "role", "\"assistant\"", 'e', true, NULL },
    { "answer", "time", "\"t\"", 's', false, NULL },
    { "answer", "thinking", "\"<t>\"", 's', false, "<t>" },
    { "answer", "text", "\"<b>\"", 's', false, "<b>" },
    { "answer", "done", "\"length\"", 'e', false, NULL },
    { "answer", "ids", "[1,2]", 'l', false, NULL },
    { "answer", "text_held", "\"x\"", 's', false, NULL },
    { "cut thinking", "role", "\"assistant\"", 'e', true, NULL },
    { "cut thinking", "thinking", "\"<t>\"", 's', false, "<t>" },
    { "cut thinking", "thinking_held", "\"x\"", 's', false, NULL },
    { "later piece", "role", "\"user\"", 'e', true, NULL },
    { "later piece", "continues", "true", 'b', false, NULL },
    { "later piece", "text", "\"<b>\"", 's', true, "<b>" },
    { "thought", "role", "\"assistant\"", 'e', true, NULL },
    { "thought", "continues", "true", 'b', false, NULL },
    { "thought", "was_thinking", "true", 'b', false, NULL },
    { "notice", "notice", "\"<b>\"", 's', false, "<b>" },
    { "rewind", "rewind", "9", 'n', false, NULL },
    { "receipt", "receipt", "{\"n_prompt\":1}", 'o', false, NULL },
    { "receipt", "context", "7", '*', false, NULL },
    { "queued", "queued", "\"<b>\"", 's', false, "<b>" },
    { "queued", "continues", "true", 'b', false, NULL },
    { "unqueued", "unqueued", "9", 'n', false, NULL },
};

/* Values, and the types of keys that they fit. */
static const struct {
    const char *value, *fits;
} values[] = {
    { NULL, "" }, /* the key is missing */
    { "\"<x>\"", "s*" },
    { "7", "n*" },
    { "-1", "*" },
    { "1.5", "*" },
    { "1e999", "*" },
    { "99999999999999999999", "*" },
    { "true", "b*" },
    { "false", "b*" },
    { "null", "*" },
    { "{}", "o*" },
    { "{\"n_prompt\":\"x\"}", "*" },
    { "{\"n_prompt\":-1}", "*" },
    { "{\"future\":null}", "o*" },
    { "[]", "l*" },
    { "[\"x\"]", "*" },
    { "[-1]", "*" },
};

enum {
    N_KEYS = sizeof line_keys / sizeof line_keys[0],
    N_VALUES = sizeof values / sizeof values[0]
};

/* Append the line of key i, in which this key has another value (NULL: it is missing). */
static void append_line(char *file, size_t size, size_t i, const char *value)
{
    const char *line = line_keys[i].line, *between = "";
    size_t n = strlen(file);

    n += (size_t)snprintf(file + n, size - n, "{");
    for (size_t k = 0; k < N_KEYS; k++) {
        const char *now = k == i ? value : line_keys[k].good;

        if (strcmp(line_keys[k].line, line) != 0 || now == NULL)
            continue;
        n +=
            (size_t)snprintf(file + n, size - n, "%s\"%s\":%s", between, line_keys[k].key, now);
        between = ",";
    }
    snprintf(file + n, size - n, "}\n");
}

/* All texts of a chat and of its queue, in order. */
static void all_texts(const struct store *s, char *buf, size_t size)
{
    uint32_t n_item = store_count(s);
    size_t n = 0;

    for (uint32_t i = 0; i < n_item + store_queue_count(s); i++) {
        struct store_text t;

        ok(i < n_item ? store_text(s, i, &t, &e) : store_queue_text(s, i - n_item, &t, &e));
        n += (size_t)snprintf(buf + n, size - n, "%s%s", t.thinking == NULL ? "" : t.thinking,
                              t.text);
        store_text_free(&t);
    }
}

static void check_value(const struct line_key *k, const char *value, const char *fits)
{
    bool is_head = strcmp(k->line, "head") == 0, is_refused;
    size_t i = (size_t)(k - line_keys);
    char path[128], file[1000] = "", texts[400] = "", *after;
    size_t n;
    struct store *s;
    const char *why;
    uint64_t line;
    uint32_t n_damaged = value == NULL ? k->is_needed : strchr(fits, k->type) == NULL;

    snprintf(path, sizeof path, "%s/keys.jsonl", dir);
    if (is_head)
        append_line(file, sizeof file, i, value);
    n = strlen(file);
    snprintf(file + n, sizeof file - n, "%s" USER("<a>"), is_head ? "" : HEAD);
    if (!is_head)
        append_line(file, sizeof file, i, value);
    n = strlen(file);
    snprintf(file + n, sizeof file - n, USER("<z>"));
    spill(path, file, strlen(file));
    is_refused = value != NULL && ((k->type == 'm' && value[0] == '"') ||
                                   (k->type == 'v' && strcmp(value, "7") == 0));
    if (is_refused) {
        assert_int_equal(store_open(&s, path, &e), -1);
        return;
    }
    for (int opened = 0; opened < 2; opened++) {
        ok(store_open(&s, path, &e));
        if (store_damage(s, &line, &why) != n_damaged)
            fail_msg("%u damaged lines, expected %u: %s", store_damage(s, &line, &why),
                     n_damaged, file);
        if (n_damaged > 0) {
            assert_int_equal(line, is_head ? 1 : 3);
            assert_true(strchr(why, '"') != NULL);
        }
        all_texts(s, texts, sizeof texts);
        for (size_t t = 0; t < N_KEYS; t++)
            if (t != i && strcmp(line_keys[t].line, k->line) == 0 &&
                line_keys[t].mark != NULL && strstr(texts, line_keys[t].mark) == NULL)
                fail_msg("a text is lost: %s", file);
        assert_non_null(strstr(texts, "<a>"));
        assert_non_null(strstr(texts, "<z>"));
        store_close(s);
        after = slurp(path, &n);
        assert_string_equal(after, file);
        free(after);
    }
}

static void a_damaged_key_damages_only_itself(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_KEYS; i++)
        for (size_t v = 0; v < N_VALUES; v++)
            check_value(&line_keys[i], values[v].value, values[v].fits);
}

static void put_long_line(FILE *f)
{
    fputs("{\"notice\":\"", f);
    for (size_t i = 0; i < STORE_MAX_LINE; i++)
        fputc('x', f);
    fputs("\"}\n", f);
}

static void a_line_that_is_too_long_is_passed_over(void **state)
{
    char path[128];
    struct store *s;
    const char *why;
    uint64_t line;
    FILE *f;

    (void)state;
    snprintf(path, sizeof path, "%s/long.jsonl", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(HEAD USER("a"), f);
    put_long_line(f);
    fputs(ANSWER("b"), f);
    fclose(f);
    ok(store_open(&s, path, &e));
    expect_items(s, "ua ab");
    assert_int_equal(store_damage(s, &line, &why), 1);
    assert_int_equal(line, 3);
    store_close(s);
}

/* A file without end of which nothing can be read is not read to its end. */
static void a_file_with_too_much_damage_is_refused(void **state)
{
    char path[128], text[700];
    struct store *s;

    (void)state;
    snprintf(path, sizeof path, "%s/huge.jsonl", dir);
    spill(path, HEAD WHOLE, sizeof(HEAD WHOLE) - 1);
    assert_int_equal(truncate(path, (off_t)1 << 40), 0);
    assert_int_equal(store_open(&s, path, &e), -1);
    err_text(&e, text, sizeof text);
    assert_non_null(strstr(text, "line 4: more than 64 MiB of the file are damaged"));
}

static char passed[800];

static void on_passed(void *ctx, const char *name, const struct err *why)
{
    size_t n = strlen(passed);

    (void)ctx;
    snprintf(passed + n, sizeof passed - n, "%s: %s; ", name, why->what);
}

static void spill_chat(const char *name, const char *text, time_t changed)
{
    struct timespec times[2] = { { .tv_sec = changed }, { .tv_sec = changed } };
    char path[200];

    snprintf(path, sizeof path, "%s/%s.jsonl", chats, name);
    spill(path, text, strlen(text));
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static int unlink_chat(const char *name)
{
    char path[200];

    snprintf(path, sizeof path, "%s/%s.jsonl", chats, name);
    return unlink(path);
}

static void the_newest_chat_that_can_be_read_is_opened(void **state)
{
    struct store *s, *other;
    struct store_entry *all;
    size_t n;

    (void)state;
    assert_int_equal(folder_make(chats), 0);
    passed[0] = '\0';
    assert_int_equal(store_open_newest(&s, chats, on_passed, NULL, &e), -1);
    assert_string_equal(e.what, "no saved chat");
    spill_chat("later", "{\"memwall\":\"chat\",\"version\":2}\n" WHOLE, 5000);
    spill_chat("torn", "{\"memwall\":\"chat\",\"version\":1,\"created\":\"2026", 4000);
    spill_chat("20260101-000000", "garbage", 3000);
    spill_chat("20260101-000001", "", 2500);
    assert_int_equal(store_open_newest(&s, chats, on_passed, NULL, &e), -1);
    assert_string_equal(e.what, "no saved chat can be read");
    spill_chat("whole", HEAD WHOLE, 2000);
    spill_chat("older", HEAD WHOLE, 1000);
    passed[0] = '\0';
    e = (struct err)ERR_INIT;
    ok(store_open_newest(&s, chats, on_passed, NULL, &e));
    assert_non_null(strstr(store_path(s), "/whole.jsonl"));
    assert_string_equal(passed, "later: chat version 2 is not supported by this memwall; "
                                "torn: is not a memwall chat file; "
                                "20260101-000000: is not a memwall chat file; ");
    ok(store_list(chats, &all, &n, &e));
    assert_int_equal(n, 5);
    assert_string_equal(all[1].name, "torn");
    assert_true(all[1].is_damaged);
    assert_true(all[2].is_damaged);
    assert_false(all[3].is_damaged);
    free(all);
    /* One that another memwall has open is not passed over. */
    assert_int_equal(unlink_chat("later") + unlink_chat("torn"), 0);
    assert_int_equal(store_open_newest(&other, chats, on_passed, NULL, &e), -1);
    assert_non_null(strstr(e.what, "is open in another memwall"));
    store_close(s);
}

/* A list has the title of a chat whose first lines are damaged. */
static void a_damaged_chat_is_listed(void **state)
{
    struct store_entry *all;
    size_t n;

    (void)state;
    assert_int_equal(folder_make(chats), 0);
    spill_chat("a", HEAD "garbage\n" WHOLE, 3000);
    spill_chat("b", "garbage\n" WHOLE, 2000);
    spill_chat("c", "{\"other\":1}\n" WHOLE, 1000);
    ok(store_list(chats, &all, &n, &e));
    assert_int_equal(n, 2);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(all[i].title, "a");
        assert_false(all[i].is_damaged);
    }
    free(all);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, saved_chat_set_up, saved_chat_tear_down)
    const struct CMUnitTest fixed[] = {
        TEST(a_damaged_key_damages_only_itself),
        TEST(a_line_that_is_too_long_is_passed_over),
        TEST(a_file_with_too_much_damage_is_refused),
        TEST(an_answer_goes_on_after_damage_at_the_end),
        TEST(a_damaged_message_is_written_again_without_text),
        TEST(the_newest_chat_that_can_be_read_is_opened),
        TEST(a_damaged_chat_is_listed),
    };
    enum {
        N = sizeof damaged_files / sizeof damaged_files[0],
        FIXED = sizeof fixed / sizeof fixed[0]
    };
    struct CMUnitTest tests[N + FIXED];

    memcpy(tests, fixed, sizeof fixed);
    for (size_t i = 0; i < N; i++)
        tests[FIXED + i] =
            (struct CMUnitTest){ damaged_files[i].name, whole_lines_around_damage_are_read,
                                 saved_chat_set_up, saved_chat_tear_down, &damaged_files[i] };
    return cmocka_run_group_tests_name("damaged chats", tests, NULL, NULL);
}
