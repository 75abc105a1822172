/* The screen if a chat template is not used, or is changed. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/talker.h"
#include "tests/terminal/program.h"

static char path[64];

static int end_template(void **state)
{
    (void)state;
    program_end(&run);
    remove(path);
    return 0;
}

/* Make a model that says "Fine." with this template. */
static const char *model_with(const char *template)
{
    struct talker t = {
        .text = "Fine. Thank you.", .n_layer = 2, .n_ff = 64, .template = template
    };

    snprintf(path, sizeof path, "/tmp/memwall-template-%d.gguf", (int)getpid());
    assert_int_equal(talker_write(path, &t), 0);
    return path;
}

static void begin(const char *template, const char *const *args)
{
    struct program_start start = { .rows = 30, .cols = 150, .args = args };

    start.model = model_with(template);
    program_begin(&run, &start);
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;

    for (; (text = strstr(text, what)) != NULL; text++)
        n++;
    return n;
}

static void a_template_that_cannot_be_used_is_reported_once(void **state)
{
    char *saved;

    (void)state;
    begin("<|im_start|>\n{% if %}", NULL);
    sees(&run, "cannot be used");
    sees(&run, "line 2");
    sees(&run, "chatml");
    program_say(&run, "how are you?");
    program_ask(&run, "/think on", "thinking: on");
    program_say(&run, "and now?");
    saved = program_file(&run, program_chat(&run));
    assert_non_null(saved);
    assert_int_equal(count(saved, "cannot be used"), 1);
    free(saved);
    program_quit(&run);
}

static void plain_mode_reports_it_too(void **state)
{
    static const char *const args[] = { "--plain", NULL };

    (void)state;
    begin("<|im_start|>\n{% if %}", args);
    sees(&run, "cannot be used");
    sees(&run, "chatml");
    program_ask(&run, "how are you?", "Fine. Thank you.");
    program_line(&run, "/quit");
    assert_int_equal(pty_end(run.s), 0);
}

static void a_template_that_works_is_not_mentioned(void **state)
{
    (void)state;
    begin(NULL, NULL);
    program_say(&run, "how are you?");
    sees(&run, "Fine. Thank you.");
    assert_false(pty_shows(run.s, "template"));
    program_quit(&run);
}

static void a_refused_message_is_an_error_in_the_templates_words(void **state)
{
    (void)state;
    begin(
        "{% for m in messages %}{% if m.content == 'bad' %}{{ raise_exception('say please') }}"
        "{% endif %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}"
        "{% endfor %}{{ '<|im_start|>assistant\n' }}",
        NULL);
    program_say(&run, "good");
    sees(&run, "Fine. Thank you.");
    program_ask(&run, "bad", "say please");
    assert_true(pty_sees_at(run.s, -2, "> bad")); /* the message is back in the line */
    pty_send(run.s, "\025");
    program_say(&run, "better");
    program_quit(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_template_that_cannot_be_used_is_reported_once, end_template),
        cmocka_unit_test_teardown(plain_mode_reports_it_too, end_template),
        cmocka_unit_test_teardown(a_template_that_works_is_not_mentioned, end_template),
        cmocka_unit_test_teardown(a_refused_message_is_an_error_in_the_templates_words,
                                  end_template),
    };

    return cmocka_run_group_tests_name("template", tests, program_group_setup,
                                       program_group_teardown);
}
