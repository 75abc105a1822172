/* The cost of an answer, in words. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/numbers.h"
#include "engine/base/units.h"
#include "ui/words/budget.h"
#include "ui/words/receipt.h"

static const struct mw_receipt some = {
    .done = MW_DONE_STOP,
    .n_prompt = 34,
    .n_reused = 20,
    .n_decoded = 12,
    .first_ns = 1300000000,
    .prefill_ns = 1200000000,
    .decode_ns = 3400000000,
    .bytes_read = 41000000000,
    .stall_ns = 2414000000,
    .peak_charged = 1524713390,
};

static void a_receipt_is_one_line(void **state)
{
    char buf[200];

    (void)state;
    assert_string_equal(receipt_line(buf, sizeof buf, &some, false),
                        "12 tokens \xc2\xb7 3.4 s \xc2\xb7 3.2 tok/s \xc2\xb7 38.2 GiB read "
                        "\xc2\xb7 71 % disk wait \xc2\xb7 peak 1.42 GiB");
    assert_string_equal(receipt_short(buf, sizeof buf, &some), "3.2 tok/s, 71 % disk");
}

static void figures_that_were_not_measured_are_left_out(void **state)
{
    struct mw_receipt r = { .done = MW_DONE_CANCELLED, .n_decoded = 1 };
    char buf[200];

    (void)state;
    assert_string_equal(receipt_line(buf, sizeof buf, &r, true),
                        "1 token - 0 B read - stopped");
    assert_string_equal(receipt_short(buf, sizeof buf, &r), "1 token, stopped");
}

/* The kernel reads mapped weights: it counts their bytes, and nobody the stalls. */
static void stalls_of_mapped_weights_are_not_known(void **state)
{
    struct mw_receipt r = some;
    char buf[800];

    (void)state;
    r.is_mapped = true;
    r.stall_ns = r.peak_charged = 0;
    r.peak_resident = 1524713390;
    assert_string_equal(receipt_line(buf, sizeof buf, &r, true),
                        "12 tokens - 3.4 s - 3.2 tok/s - 38.2 GiB read by the kernel "
                        "- - disk wait - peak 1.42 GiB resident with mapped pages");
    assert_string_equal(receipt_short(buf, sizeof buf, &r), "3.2 tok/s");
    receipt_why(buf, sizeof buf, &r, 0, NULL);
    assert_non_null(strstr(buf, "is not known, because the kernel reads mapped weights"));
    assert_null(strstr(buf, "0 %"));
}

static void an_empty_answer_names_only_what_helps(void **state)
{
    struct mw_receipt r = { .done = MW_DONE_LENGTH,
                            .empty = MW_EMPTY_THINKING,
                            .can_think_less = true,
                            .n_decoded = 20 };
    char buf[200];

    (void)state;
    assert_string_equal(
        receipt_empty(buf, sizeof buf, &r, true),
        "the answer has no text yet: the limit of 20 tokens (/predict) was "
        "reached while the model was thinking; use a larger /predict, or /think "
        "off");
    r.can_think_less = false; /* it is off already */
    assert_string_equal(receipt_empty(buf, sizeof buf, &r, false),
                        "the answer has no text: the limit of 20 tokens (-n) was reached while "
                        "the model was thinking; use a larger -n");
    r.has_no_switch = true;
    r.done = MW_DONE_STOP;
    assert_string_equal(receipt_empty(buf, sizeof buf, &r, true),
                        "the answer has no text: the model ended it while the model was "
                        "thinking; the chat template has no switch for thinking");
}

static void an_answer_without_text_says_why(void **state)
{
    static const struct {
        enum mw_empty empty;
        enum mw_done done;
        const char *text;
    } rows[] = {
        { MW_NOT_EMPTY, MW_DONE_LENGTH, "" },
        { MW_EMPTY_NOTHING, MW_DONE_STOP, "the model ended it at once" },
        { MW_EMPTY_NOTHING, MW_DONE_CANCELLED, "it was stopped before its first token" },
        { MW_EMPTY_NOTHING, MW_DONE_CONTEXT, "the context was full before its first token" },
        { MW_EMPTY_NOTHING, MW_DONE_ERROR, "an error ended it before its first token" },
        { MW_EMPTY_THINKING, MW_DONE_LENGTH,
          "the limit of 1 token (-n) was reached while the model was thinking; use a larger "
          "-n, "
          "or --no-think" },
        { MW_EMPTY_THINKING, MW_DONE_CONTEXT,
          "the context was full while the model was thinking; use a larger --ctx, or "
          "--no-think" },
        { MW_EMPTY_THINKING, MW_DONE_ERROR, "an error ended it while the model was thinking" },
        { MW_EMPTY_THOUGHT, MW_DONE_STOP,
          "the model ended it after the thinking; --no-think answers without thinking" },
        { MW_EMPTY_BLANK, MW_DONE_CANCELLED, "it was stopped, and its text is blank" },
        { MW_EMPTY_HIDDEN, MW_DONE_STOP, "the model ended it, and its tokens have no text" },
        { MW_EMPTY_STOP_TEXT, MW_DONE_STOP, "a stop text (--stop) came first" },
    };
    static const char begin[] = "the answer has no text: ";

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct mw_receipt r = {
            .done = rows[i].done, .empty = rows[i].empty, .can_think_less = true, .n_decoded = 1
        };
        char buf[200];

        receipt_empty(buf, sizeof buf, &r, false);
        if (rows[i].text[0] != '\0') {
            assert_memory_equal(buf, begin, strlen(begin));
            assert_string_equal(buf + strlen(begin), rows[i].text);
        } else {
            assert_string_equal(buf, "");
        }
    }
}

static void a_small_buffer_is_cut(void **state)
{
    char buf[8] = "xxxxxxx";

    (void)state;
    assert_string_equal(receipt_line(buf, sizeof buf, &some, true), "12 toke");
    assert_string_equal(receipt_why(buf, sizeof buf, &some, 0, NULL), "12 toke");
}

static void the_explanation_has_three_sentences(void **state)
{
    struct mw_sample *s = calloc(1, sizeof *s);
    char buf[600];

    (void)state;
    assert_non_null(s);
    s->pass.bytes_pass = 3400000000;
    s->run.budget_bytes = 2 * GIB;
    strcpy(s->verdict.advice, "more_budget");
    s->verdict.binds = MW_BINDS_DISK;
    s->verdict.share = 0.68;
    s->verdict.advice_amount = 0.8 * (double)GIB;
    s->verdict.advice_to = 3.1;
    receipt_why(buf, sizeof buf, &some, 0, s);
    free(s);
    assert_string_equal(
        buf, "12 tokens came in 3.4 s (3.2 tok/s), after 1.2 s for 34 tokens of the prompt; "
             "20 more were still in the KV cache. 71 % of that time was spent waiting for the "
             "disk: the last token read 3.17 GiB of weights that were not in memory, with a "
             "budget of 2.00 GiB. Now: disk-bound: 68 % of each token waits; /memory 2.8G for "
             "~3.1 tok/s.");
}

static void the_explanation_compares_with_what_was_predicted(void **state)
{
    struct mw_receipt r = { .n_decoded = 5, .decode_ns = 1000000000 };
    char buf[600], expected[200], rate[24];

    (void)state;
    receipt_why(buf, sizeof buf, &r, 3.2, NULL);
    snprintf(
        expected, sizeof expected,
        "5 tokens came in 1.0 s (4.0 tok/s; %s were predicted, +25 %%). Nothing had to be read "
        "while it answered.",
        numbers_predicted(rate, sizeof rate, 3.2, false));
    assert_string_equal(buf, expected);
}

static void the_explanation_says_what_drafts_gained_and_cost(void **state)
{
    struct mw_receipt r = { .n_decoded = 41,
                            .decode_ns = 1000000000u,
                            .drafts = { .passes = 22,
                                        .drafted = 28,
                                        .accepted = 18,
                                        .draft_ns = 13000000,
                                        .accepted_at = { 12, 4, 2 },
                                        .passes_over = { 10, 4, 0, 8 },
                                        .pass_ns = { 100000, 44000, 0, 96000 } } };
    char buf[600];

    (void)state;
    receipt_why(buf, sizeof buf, &r, 0, NULL);
    assert_string_equal(
        buf, "41 tokens came in 1.0 s (40 tok/s). 18 of its tokens were drafted, and needed no pass "
             "of their own: 1.82 tokens a pass. 100 % of the first drafts of a pass were accepted, "
             "and 25 % of those at place 3; a pass over 3 drafts took 1.20 times one over none; the "
             "drafter took 1.3 % of the time. Nothing had to be read while it answered.");
    /* One pass may be slow for another reason. */
    r.drafts.passes_over[0] = 1;
    receipt_why(buf, sizeof buf, &r, 0, NULL);
    assert_null(strstr(buf, "times one over none"));
}

/* Before the first token there is nothing that limits answers, and no advice. */
static void a_stopped_prompt_is_explained_as_a_prompt(void **state)
{
    struct mw_receipt r = { .n_prompt = 206,
                            .n_prompt_done = 64,
                            .prefill_ns = 1000000000u,
                            .done = MW_DONE_CANCELLED };
    struct mw_sample *s = calloc(1, sizeof *s);
    char buf[600];

    (void)state;
    assert_non_null(s);
    s->verdict.binds = MW_BINDS_OTHERS;
    s->verdict.share = 0.45;
    strcpy(s->verdict.advice, "other_programs");
    receipt_why(buf, sizeof buf, &r, 0, s);
    assert_string_equal(
        buf, "The answer ended while its prompt was read: 64 of 206 tokens in 1.0 s, "
             "64.0 tok/s. No token of an answer came, so nothing says what limits its "
             "speed.");
    free(s);
}

static void other_programs_are_named_as_the_cause(void **state)
{
    struct mw_receipt r = { .n_decoded = 5, .decode_ns = 1000000000u, .done = MW_DONE_STOP };
    struct mw_sample *s = calloc(1, sizeof *s);
    char buf[600];

    (void)state;
    assert_non_null(s);
    s->verdict.binds = MW_BINDS_OTHERS;
    s->verdict.share = 0.45;
    strcpy(s->verdict.advice, "other_programs");
    receipt_why(buf, sizeof buf, &r, 0, s);
    assert_string_equal(buf,
                        "5 tokens came in 1.0 s (4.0 tok/s). Nothing had to be read while it "
                        "answered. Now: others-bound: 45 % of each token waits for a processor "
                        "that others use; stop other programs.");
    free(s);
}

/* A budget of auto says what it gave back, why, and what is next; a fixed one says nothing. */
static void a_budget_that_follows_the_memory_explains_itself(void **state)
{
    struct mw_receipt r = { .n_decoded = 5, .decode_ns = 1000000000u, .done = MW_DONE_STOP };
    struct mw_sample *s = calloc(1, sizeof *s);
    char buf[600], other[600];

    (void)state;
    assert_non_null(s);
    s->t_ns = 20000000000u;
    s->run.budget_bytes = 6 * GIB;
    assert_string_equal(budget_last(buf, sizeof buf, s), "");
    assert_string_equal(budget_next(buf, sizeof buf, s), "");
    s->budget.chosen = 6 * GIB;
    s->budget.most = 9 * GIB;
    s->budget.least = GIB;
    s->budget.reserve = GIB;
    s->budget.spare = 3 * GIB;
    strcpy(s->budget.next, mw_plan_row_name(MW_ROW_PINNED));
    assert_string_equal(budget_last(buf, sizeof buf, s), "auto: nothing was given back");
    assert_string_equal(budget_next(buf, sizeof buf, s),
                        "next: pinned weights, below 1.00 GiB spare (now 3.00 GiB)");
    assert_string_equal(budget_sentence(buf, sizeof buf, s), "");
    s->run.budget_bytes = 4 * GIB + GIB / 2;
    s->budget.changed_ns = 8000000000u;
    strcpy(s->budget.signal, mw_signal_name(MW_SIGNAL_AVAILABLE));
    assert_int_equal(budget_given(s), GIB + GIB / 2);
    assert_string_equal(budget_last(buf, sizeof buf, s),
                        "given back 1.50 GiB, 12 s ago: little free memory");
    receipt_why(buf, sizeof buf, &r, 0, s);
    assert_non_null(strstr(buf, " The budget follows the free memory: given back 1.50 GiB, 12 s "
                                "ago: little free memory; next: pinned weights, below 1.00 GiB "
                                "spare (now 3.00 GiB)."));
    s->run.budget_bytes = s->budget.least;
    assert_string_equal(budget_next(buf, sizeof buf, s), "next: nothing is left to give back");
    s->run.budget_bytes = 6 * GIB;
    strcpy(s->budget.signal, mw_signal_name(MW_SIGNAL_FREE));
    assert_string_equal(budget_last(buf, sizeof buf, s),
                        "all taken again, 12 s ago: memory is free again");
    for (int i = 1; i < MW_SIGNALS; i++) {
        strcpy(s->budget.signal, mw_signal_name((enum mw_signal)i));
        assert_string_not_equal(strchr(budget_last(buf, sizeof buf, s), ':'), ": ");
        for (int given = 0; given < 2; given++) { /* a panel of 52 columns, and the narrowest */
            s->run.budget_bytes = given > 0 ? 4 * GIB + GIB / 2 : 6 * GIB;
            assert_true(strlen(budget_last_within(buf, sizeof buf, s, 50)) <= 50);
            assert_non_null(strstr(buf, "12 s ago: "));
            assert_true(strlen(budget_next_within(buf, sizeof buf, s, 50)) <= 50);
            assert_string_equal(buf, "next: pinned weights, below 1.00 GiB spare");
            assert_true(strlen(budget_last_within(buf, sizeof buf, s, 24)) <= 24);
            assert_string_equal(budget_next_within(buf, sizeof buf, s, 24),
                                "next: pinned weights");
        }
    }
    assert_string_equal(budget_last_within(buf, sizeof buf, s, 80),
                        budget_last(other, sizeof other, s));
    free(s);
}

static void the_cost_is_predicted(void **state)
{
    struct mw_cost c = {
        .n_token = 2140, .n_ctx_left = 4000, .seconds = 55, .bytes = 9000000000
    };
    char buf[200];

    (void)state;
    assert_string_equal(receipt_cost(buf, sizeof buf, &c, 100),
                        "about 2,140 tokens: 55 s, 8.38 GiB of reads");
    c.n_again = 300;
    c.is_at_least = true;
    assert_string_equal(receipt_cost(buf, sizeof buf, &c, 100),
                        "about 2,140 tokens, and 300 of the conversation again: at least 55 s, "
                        "8.38 GiB of reads");
    c.n_again = 0;
    c.seconds = 0;
    assert_string_equal(receipt_cost(buf, sizeof buf, &c, 100),
                        "about 2,140 tokens: 8.38 GiB of reads");
    c.n_ctx_left = 512;
    assert_string_equal(receipt_cost(buf, sizeof buf, &c, 100),
                        "about 2,140 tokens do not fit: the context has 512 left");
    assert_string_equal(receipt_cost(buf, sizeof buf, &c, 50),
                        "about 2,140 tokens, but 512 fit");
}

/* Nothing is evaluated for a text that does not fit, not even the conversation. */
static void a_full_context_has_one_figure(void **state)
{
    struct mw_cost c = { .n_token = 11, .n_again = 64 };
    char buf[200];

    (void)state;
    assert_string_equal(receipt_cost(buf, sizeof buf, &c, 75),
                        "about 11 tokens do not fit: the context is full");
}

static void a_prompt_shows_its_progress_and_remaining_time(void **state)
{
    char buf[200];
    double share;

    (void)state;
    receipt_prefill(buf, sizeof buf, 512, 2140, 13473684210, true, &share);
    assert_string_equal(buf, "prompt 23 % - 43 s left - 512 of 2,140 tokens - 38 tok/s");
    assert_true(share > 0.23 && share < 0.24);
    receipt_prefill(buf, sizeof buf, 0, 0, 0, true, &share);
    assert_string_equal(buf, "prompt 0 % - 0 of 0 tokens");
    assert_true(share >= 0 && share <= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_receipt_is_one_line),
        cmocka_unit_test(figures_that_were_not_measured_are_left_out),
        cmocka_unit_test(stalls_of_mapped_weights_are_not_known),
        cmocka_unit_test(an_answer_without_text_says_why),
        cmocka_unit_test(the_explanation_says_what_drafts_gained_and_cost),
        cmocka_unit_test(an_empty_answer_names_only_what_helps),
        cmocka_unit_test(a_small_buffer_is_cut),
        cmocka_unit_test(the_explanation_has_three_sentences),
        cmocka_unit_test(the_explanation_compares_with_what_was_predicted),
        cmocka_unit_test(a_stopped_prompt_is_explained_as_a_prompt),
        cmocka_unit_test(other_programs_are_named_as_the_cause),
        cmocka_unit_test(a_budget_that_follows_the_memory_explains_itself),
        cmocka_unit_test(the_cost_is_predicted),
        cmocka_unit_test(a_full_context_has_one_figure),
        cmocka_unit_test(a_prompt_shows_its_progress_and_remaining_time),
    };

    return cmocka_run_group_tests_name("receipt", tests, NULL, NULL);
}
