/* Calls of tools: the work of finding them grows with the answer, not with its square, and their
 * arguments are what the model wrote. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/serve/tool_calls.h"

#define DEEPSEEK(name) "<\uff5c" name "\uff5c>"
#define DSML "\uff5cDSML\uff5c"
#define DSML_BEGIN                                                                              \
    "<" DSML "tool_calls>\n<" DSML "invoke name=\"f\">\n<" DSML "parameter name=\"a\""
#define DSML_END "</" DSML "parameter>\n</" DSML "invoke>\n</" DSML "tool_calls>"

static const char tools[] = "[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]";

static int take_text(void *ctx, const char *text, size_t len, struct err *e)
{
    (void)e;
    json_raw(ctx, text, len);
    return 0;
}

static int take_call(void *ctx, const char *name, const char *arguments, size_t len,
                     struct err *e)
{
    (void)e;
    json_raw(ctx, "(", 1);
    json_raw(ctx, name, strlen(name));
    json_raw(ctx, arguments, len);
    json_raw(ctx, ")", 1);
    return 0;
}

/* Push a text in pieces.  Returns the work; *out has texts and calls. */
static uint64_t push_with(const struct tool_reading *how, const char *text, size_t len,
                          size_t step, struct json *out)
{
    struct err e = ERR_INIT;
    struct tool_calls *t;
    uint64_t work;

    json_start(out);
    assert_int_equal(0, tool_calls_new(&t, how, take_text, take_call, out, &e));
    for (size_t i = 0; i < len; i += step)
        assert_int_equal(0, tool_calls_push(t, text + i, len - i < step ? len - i : step, &e));
    assert_int_equal(0, tool_calls_end(t, &e));
    work = tool_calls_work(t);
    tool_calls_free(t);
    return work;
}

static uint64_t push(const char *text, size_t len, size_t step, enum call_form form,
                     bool is_whole, struct json *out)
{
    const struct tool_reading how = { tools, sizeof tools - 1, form, is_whole };

    return push_with(&how, text, len, step, out);
}

/* first, many times repeated, last */
static char *make(const char *first, const char *again, const char *last, size_t n, size_t *len)
{
    struct json text;

    json_start(&text);
    json_raw(&text, first, strlen(first));
    for (size_t i = 0; i < n; i++)
        json_raw(&text, again, strlen(again));
    json_raw(&text, last, strlen(last));
    *len = text.used;
    return text.buf;
}

static const struct {
    const char *first, *again, *last;
} answers[] = {
    { "", "a", "" },
    { "", " ", "" },
    { "<tool_call>", "a", "" },                       /* is never closed */
    { "x<tool_call>", " ", "</tool_call>" },
    { "", "<tool_call>", "" },
    { "", "<tool_call>a", "</tool_call>" },           /* many open, one closes */
    { "", "<tool_call>", "</tool_call>" },
    { "", "[TOOL_CALLS]", "" },
    { "", "[TOOL_CALLS]f[ARGS]", "" },
    { "", "<|channel|>commentary to=functions.", "<|message|>{}" },
    { "", "<|python_tag|>[", "" },
    { "", "<|tool_call>call:f{", "<tool_call|>" },
    { "", "<|tool_call_start|>[f(a=", "<|tool_call_end|>" },
    { "", "<minimax:tool_call><invoke name=\"f\">", "</minimax:tool_call>" },
    { "", "<tool_call>{\"name\": \"f\"}</tool_call>", "" },
    { "", "<tool_call>{\"name\": \"g\"}</tool_call>", "" },
    { "", "<tool_", "" },
    { "", "</tool_call>", "" },
    { "{\"a\": \"", "{", "\"}" },
    { " <", " ", "<tool_call>{\"name\": \"f\"}</tool_call>" }, /* begins with text */
    { " [TOOL_CALL", "[", "[TOOL_CALLS]f[ARGS]{}" },
};

static void work_is_linear(void **state)
{
    static const size_t steps[] = { 1, 5, SIZE_MAX / 2 };

    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        uint64_t before = 0;

        for (size_t n = 2000; n <= 16000; n *= 2) {
            size_t len;
            char *text = make(answers[i].first, answers[i].again, answers[i].last, n, &len);

            for (size_t k = 0; k < 3; k++) {
                struct json out;
                uint64_t work = push(text, len, steps[k], CALLS_UNKNOWN, false, &out);

                json_release(&out);
                if (work > 400 * (uint64_t)len + 2000000)
                    fail_msg("\"%s\" %zu times by %zu: %llu for %zu bytes", answers[i].again, n,
                             steps[k], (unsigned long long)work, len);
                if (k == 0 && before > 1000000 && work > before * 9 / 4)
                    fail_msg("\"%s\" %zu times: %llu after %llu", answers[i].again, n,
                             (unsigned long long)work, (unsigned long long)before);
                before = k == 0 ? work : before;
            }
            free(text);
        }
    }
}

static void compare_pieces(const char *text, size_t len, enum call_form form, bool is_whole)
{
    struct json whole, pieces;

    push(text, len, SIZE_MAX / 2, form, is_whole, &whole);
    for (size_t step = 1; step < 30; step += 4) {
        push(text, len, step, form, is_whole, &pieces);
        assert_int_equal(whole.used, pieces.used);
        if (whole.used > 0)
            assert_memory_equal(whole.buf, pieces.buf, whole.used);
        json_release(&pieces);
    }
    json_release(&whole);
}

static void pieces_give_the_same_as_the_whole(void **state)
{
    static const enum call_form forms[] = { CALLS_UNKNOWN, CALLS_HERMES, CALLS_MISTRAL };

    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
        for (size_t n = 0; n < 400; n = n * 2 + 1) {
            size_t len;
            char *text = make(answers[i].first, answers[i].again, answers[i].last, n, &len);

            for (size_t k = 0; k < 6; k++)
                compare_pieces(text, len, forms[k / 2], k % 2 == 1);
            free(text);
        }
}

static void calls_after_marks_that_open_nothing_are_found(void **state)
{
    size_t len;
    char *text = make("", "<tool_call>", "<tool_call>{\"name\": \"f\"}</tool_call>", 50, &len);
    struct json out;

    (void)state;
    push(text, len, 3, CALLS_UNKNOWN, false, &out);
    json_raw(&out, "", 1);
    assert_non_null(strstr(out.buf, "<tool_call>(f{})"));
    assert_int_equal(50 * strlen("<tool_call>") + strlen("(f{})") + 1, out.used);
    json_release(&out);
    free(text);
}

/* Answers that call f, before and after the value of its argument "a". */
static const char *const tagged[][2] = {
    { "<tool_call>\n<function=f>\n<parameter=a>\n", "\n</parameter>\n</function>\n</tool_call>" },
    { "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>", "</arg_value>\n</tool_call>" },
    { "<seed:tool_call>\n<function=f>\n<parameter=a>",
      "</parameter>\n</function>\n</seed:tool_call>" },
    { "<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"a\">",
      "</parameter>\n</invoke>\n</minimax:tool_call>" },
    { DSML_BEGIN ">", DSML_END },
};
/* The same with a mark of the type. */
static const char *const as_text[] = { DSML_BEGIN " string=\"true\">", DSML_END };
static const char *const as_json[] = { DSML_BEGIN " string=\"false\">", DSML_END };

/* Compare the call of f that an answer is, with a definition of "a". */
static void assert_argument(const char *schema, const char *const *answer, const char *value,
                            const char *want)
{
    char definitions[1024], text[1024], expected[1024];
    struct tool_reading how = { .tools = definitions };
    struct json out;

    snprintf(definitions, sizeof definitions,
             "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"$defs\":{"
             "\"n\":{\"type\":\"integer\"},\"loop\":{\"anyOf\":[{\"$ref\":\"#/$defs/loop\"},"
             "{\"$ref\":\"#/$defs/loop\"},{\"$ref\":\"#/$defs/loop\"}]}},"
             "\"properties\":{\"a\":%s}}}}]",
             schema);
    how.len = strlen(definitions);
    snprintf(text, sizeof text, "%s%s%s", answer[0], value, answer[1]);
    snprintf(expected, sizeof expected, "(f{\"a\":%s})", want);
    push_with(&how, text, strlen(text), 7, &out);
    json_raw(&out, "", 1);
    if (strcmp(expected, out.buf) != 0)
        fail_msg("%s: %s: %s instead of %s", schema, text, out.buf, expected);
    json_release(&out);
}

static void arguments_in_tags_have_the_types_of_their_schemas(void **state)
{
    static const char *const rows[][3] = {
        { "{\"type\":\"string\"}", "12", "\"12\"" },
        { "{\"type\":\"string\"}", "null", "\"null\"" },
        { "{\"type\":\"integer\"}", "12", "12" },
        { "{\"type\":\"integer\"}", "x", "\"x\"" },
        { "{\"type\":\"boolean\"}", "True", "true" },
        { "{\"type\":\"boolean\"}", "False", "false" },
        { "{\"type\":\"integer\"}", "True", "\"True\"" },
        { "{\"type\":[\"string\",\"null\"]}", "12", "\"12\"" },
        { "{\"type\":[\"string\",\"null\"]}", "null", "null" },
        { "{\"type\":[\"string\",\"null\"]}", "None", "\"None\"" },
        { "{\"type\":[\"integer\",\"string\"]}", "12", "\"12\"" },
        { "{\"type\":[\"integer\",\"null\"]}", "None", "null" },
        { "{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"null\"}]}", "3", "3" },
        { "{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"null\"}]}", "null", "null" },
        { "{\"oneOf\":[{\"type\":\"array\"},{\"type\":\"string\"}]}", "[1]", "\"[1]\"" },
        { "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}", "null", "null" },
        { "{\"allOf\":[{\"type\":\"object\"}]}", "{\"x\":1}", "{\"x\":1}" },
        { "{\"allOf\":[{\"type\":[\"object\",\"string\"]},{\"type\":[\"object\",\"null\"]}]}",
          "{}", "{}" },
        { "{\"enum\":[1,2,3]}", "3", "3" },
        { "{\"enum\":[\"1\",null]}", "1", "\"1\"" },
        { "{\"const\":true}", "true", "true" },
        { "{\"const\":null}", "null", "null" },
        { "{\"$ref\":\"#/$defs/n\"}", "3", "3" },
        { "{\"$ref\":\"#/$defs/m\"}", "3", "\"3\"" },
        { "{\"$ref\":\"#/$defs/loop\"}", "3", "\"3\"" },
        { "{\"type\":\"integer\",\"description\":\"d\"}", "3", "3" },
        { "{}", "3", "\"3\"" },
        { "true", "3", "\"3\"" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t k = 0; k < sizeof tagged / sizeof tagged[0]; k++)
            assert_argument(rows[i][0], tagged[k], rows[i][1], rows[i][2]);
    assert_argument("{\"type\":\"integer\"}", as_text, "3", "\"3\"");
    assert_argument("{\"type\":[\"string\",\"null\"]}", as_text, "null", "\"null\"");
    assert_argument("{\"type\":\"string\"}", as_json, "3", "3");
    assert_argument("{}", as_json, "[3]", "[3]");
    assert_argument("{}", as_json, "x", "\"x\"");
}

/* Only a form that gives values lines of their own takes line breaks off. */
static void line_breaks_of_arguments_in_tags_are_kept(void **state)
{
    static const char *const rows[][2] = { { "x = 1\n", "\"x = 1\\n\"" },
                                           { "\n\nx", "\"\\n\\nx\"" },
                                           { " \n", "\" \\n\"" },
                                           { "\n", "\"\\n\"" },
                                           { "", "\"\"" } };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t k = 0; k < sizeof tagged / sizeof tagged[0]; k++)
            assert_argument("{\"type\":\"string\"}", tagged[k], rows[i][0], rows[i][1]);
    assert_argument("{\"type\":\"string\"}", as_text, "x\n", "\"x\\n\"");
    for (size_t k = 0; k < sizeof tagged / sizeof tagged[0]; k++)
        assert_argument("{\"type\":\"integer\"}", tagged[k], "\n1\n", "1");
}

static void values_in_python_are_read(void **state)
{
    static const char *const call[] = { "<|tool_call_start|>[f(a=", ")]<|tool_call_end|>" };
    static const char *const rows[][2] = {
        { "'x'", "\"x\"" },
        { "\"A\\r\\nB \\u00e9 \\x41\"", "\"A\\r\\nB \u00e9 A\"" },
        { "'\\\\ \\' \\\" \\a\\b\\f\\n\\r\\t\\v'",
          "\"\\\\ ' \\\" \\u0007\\u0008\\u000c\\n\\r\\t\\u000b\"" },
        { "'\\101\\60\\0z\\18'", "\"A0\\u0000z\\u00018\"" },
        { "'\\U0001f600\\ud83d\\ude00'", "\"\U0001f600\U0001f600\"" },
        { "'\\ud83d\\ud83d\\ude00'", "\"\ufffd\U0001f600\"" },
        { "'a\\\nb\\\r\nc'", "\"abc\"" },
        { "'\\d \\x4 \\xzz \\u12 \\U00110000'", "\"\\\\d \\\\x4 \\\\xzz \\\\u12 \\\\U00110000\"" },
        { "''", "\"\"" },
        { "'''it's\n''here'''", "\"it's\\n''here\"" },
        { "{'it\\'s': [1, \"\\x41\"]}", "{\"it's\":[1,\"A\"]}" },
        { "1_000", "1000" },
        { "-.5", "-0.5" },
        { "5.", "5.0" },
        { "+1_0.2_5e-1_0", "10.25e-10" },
        { "1.e3", "1.0e3" },
        { "[0x1F, 0o17, -0b1_1, 0XfF]", "[31,15,-3,255]" },
        { "[True, False, None\t, true]", "[true,false,null,true]" },
    };
    /* These are not values of Python, or are larger than any number. */
    static const char *const broken[] = { "'x",  "1__0", "_1",  "1_",  ".",
                                          "1..2", "--1",  "0x", "0xg", "0b2",
                                          "0x1ffffffffffffffff", "'''x''" };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_argument("{}", call, rows[i][0], rows[i][1]);
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        char text[128];
        struct json out;

        snprintf(text, sizeof text, "%s%s%s", call[0], broken[i], call[1]);
        push(text, strlen(text), 7, CALLS_UNKNOWN, false, &out);
        json_raw(&out, "", 1);
        assert_string_equal(text, out.buf);
        json_release(&out);
    }
}

static void blocks_of_code_in_arguments_do_not_end_calls(void **state)
{
    static const char *const call[] = {
        DEEPSEEK("tool\u2581calls\u2581begin") DEEPSEEK("tool\u2581call\u2581begin")
        "function" DEEPSEEK("tool\u2581sep") "f\n```json\n{\"a\": ",
        "}\n```" DEEPSEEK("tool\u2581call\u2581end") DEEPSEEK("tool\u2581calls\u2581end"),
    };

    (void)state;
    assert_argument("{}", call, "\"x\"", "\"x\"");
    assert_argument("{}", call, "\"```py\\nx\\n```\"", "\"```py\\nx\\n```\"");
    assert_argument("{}", call, "\"\\n```\"", "\"\\n```\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_is_linear),
        cmocka_unit_test(pieces_give_the_same_as_the_whole),
        cmocka_unit_test(calls_after_marks_that_open_nothing_are_found),
        cmocka_unit_test(values_in_python_are_read),
        cmocka_unit_test(blocks_of_code_in_arguments_do_not_end_calls),
        cmocka_unit_test(line_breaks_of_arguments_in_tags_are_kept),
        cmocka_unit_test(arguments_in_tags_have_the_types_of_their_schemas),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
