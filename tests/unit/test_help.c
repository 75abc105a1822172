/* Every row of the help is found by a question with its name. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/memwall.h"
#include "ui/talk/help_answer.h"
#include "ui/talk/help_entry.h"
#include "ui/ui.h"

static const struct ui_subcommand subcommands[] = {
    { "plan", NULL, "show what fits", "Print the plan\nas a table.\n\nMore of it.",
      "smallest budget" },
    { "doctor", NULL, "measure this machine", "Measure it.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static char answer[HELP_ANSWER_BYTES];

/* Ask up to three questions, the last one NULL-terminated.  Returns the answer, "" if it is for
 * the model. */
static const char *ask(const char *first, const char *second, const char *third)
{
    const char *question[] = { first, second, third };
    size_t n = third != NULL ? 3 : second != NULL ? 2 : 1;

    answer[0] = '\0';
    if (!help_answer(subcommands, question, n, answer))
        answer[0] = '\0';
    return answer;
}

static int expect(const char *question, const char *text)
{
    if (strstr(ask(question, NULL, NULL), text) != NULL)
        return 0;
    print_error("%s\n    %.120s\n", question, answer[0] != '\0' ? answer : "(the model)");
    return 1;
}

/* The question that a person has about an entry. */
static void question_about(char *buf, size_t n, const struct help_entry *e)
{
    switch (e->kind) {
    case HELP_SLASH: snprintf(buf, n, "what does /%s do?", e->name); break;
    case HELP_OPTION: snprintf(buf, n, "what is --%s for", e->name); break;
    case HELP_KEY:
        snprintf(buf, n, "what does the key %.*s do", (int)strcspn(e->name, ","), e->name);
        break;
    case HELP_NOTE:
        snprintf(buf, n, "what does \"%.*s\" mean in the %s panel", (int)strcspn(e->name, ","),
                 e->name, e->panel);
        break;
    case HELP_SUBCOMMAND: snprintf(buf, n, "what does memwall %s do", e->name); break;
    }
}

static void every_row_is_found_by_its_name(void **state)
{
    struct help_list l;
    char question[200];
    int wrong = 0;

    (void)state;
    assert_true(help_list_make(&l, subcommands));
    for (size_t i = 0; i < l.n; i++) {
        question_about(question, sizeof question, &l.entry[i]);
        wrong += expect(question, l.entry[i].text);
    }
    help_list_free(&l);
    assert_int_equal(wrong, 0);
}

static void typing_errors_are_understood(void **state)
{
    (void)state;
    assert_int_equal(expect("how do i cahnge the contxt size", "`/ctx"), 0);
    assert_int_equal(expect("what is /rewnd for", "`/rewind"), 0);
    assert_int_equal(expect("what is --memroy", "`/memory"), 0);
    assert_int_equal(expect("wht does activatons mean", "activations"), 0);
    assert_int_equal(expect("what is top p", "`/top-p"), 0);
    assert_int_equal(expect("what does ctrl + l do", "redraw"), 0);
    assert_int_equal(expect("what is ^L", "redraw"), 0);
}

static void a_question_can_be_about_the_one_before(void **state)
{
    (void)state;
    ask("what is /ctx", "does that need a restart?", NULL);
    assert_non_null(strstr(answer, "`/ctx"));
    assert_non_null(strstr(answer, "without a restart"));
    assert_null(strstr(answer, "4096"));
    ask("what is /ctx", "does that need a restart?", "and the default?");
    assert_non_null(strstr(answer, "Default: 4096"));
    ask("what is /theme", "how do I keep it for next time?", NULL);
    assert_non_null(strstr(answer, "/set theme"));
    ask("what does -b do", "and -c?", NULL);
    assert_non_null(strstr(answer, "`/ctx"));
    ask("what is the smallest budget for E2B", "and for the 12B?", NULL);
    assert_non_null(strstr(answer, "memwall plan"));
    assert_string_equal(ask("who was Napoleon", "and the default?", NULL), "");
    assert_string_equal(ask("what is /ctx", "and who was Napoleon?", NULL), "");
}

static void two_things_are_compared(void **state)
{
    (void)state;
    ask("what is the difference between /undo and /rewind", NULL, NULL);
    assert_non_null(strstr(answer, "`/undo`"));
    assert_non_null(strstr(answer, "`/rewind"));
    ask("memwall plan or doctor?", NULL, NULL);
    assert_non_null(strstr(answer, "show what fits"));
    assert_non_null(strstr(answer, "measure this machine"));
}

static void paragraphs_of_subcommands_lose_their_line_breaks(void **state)
{
    (void)state;
    ask("what does memwall plan do", NULL, NULL);
    assert_string_equal(answer, "From the help: `memwall plan` - show what fits.\n\n"
                                "Print the plan as a table.\n\nMore of it.");
}

static void a_name_alone_makes_no_guide(void **state)
{
    struct mw_model_info info = { .name = "memwall guide", .arch = "gemma4", .n_param = 6170000 };

    (void)state;
    assert_true(help_is_guide(&info));
    info.n_param = 4600000000;
    assert_false(help_is_guide(&info));
    info.n_param = 6170000;
    snprintf(info.arch, sizeof info.arch, "llama");
    assert_false(help_is_guide(&info));
    snprintf(info.arch, sizeof info.arch, "gemma4");
    snprintf(info.name, sizeof info.name, "memwall guide 2");
    assert_false(help_is_guide(&info));
}

static void other_texts_are_for_the_model(void **state)
{
    static const char *const texts[] = {
        "",
        " ",
        "?",
        "- - -",
        "8 - 3",
        "hello",
        "thanks",
        "what is the speed of light",
        "how do I open a bank account",
        "what is F10\nand F9",
        "\xff\xfe what \x80",
        ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
         "aaa"),
        "a b c d e f g h i j k l m n o p q r s t u v w x y z what is F10",
        "/etc/passwd what is this",
    };
    char text[600];

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (ask(texts[i], NULL, NULL)[0] != '\0')
            fail_msg("%s: %s", texts[i], answer);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    memcpy(text, "what is F10 ", 12);
    assert_string_equal(ask(text, NULL, NULL), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_found_by_its_name),
        cmocka_unit_test(typing_errors_are_understood),
        cmocka_unit_test(a_question_can_be_about_the_one_before),
        cmocka_unit_test(two_things_are_compared),
        cmocka_unit_test(paragraphs_of_subcommands_lose_their_line_breaks),
        cmocka_unit_test(a_name_alone_makes_no_guide),
        cmocka_unit_test(other_texts_are_for_the_model),
    };

    return cmocka_run_group_tests_name("help", tests, NULL, NULL);
}
