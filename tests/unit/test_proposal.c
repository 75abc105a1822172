/* Sheets of a change name what their predictions assume, and what the change does not give. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/units.h"
#include "ui/options/proposal.h"

static char lines[4000];

static void add_line(void *ctx, enum proposal_how how, enum ui_role role, const char *text)
{
    size_t used = strlen(lines);

    (void)ctx;
    (void)role;
    snprintf(lines + used, sizeof lines - used, "%s%s", how == PROPOSAL_MORE ? "" : "\n", text);
}

/* A sheet whose predictions assume these shares of right drafts. */
static const char *sheet(double now, double then, bool is_measured)
{
    const struct mw_options o = { .memory_bytes = 700 * MIB };
    const struct proposal_out to = { add_line, NULL };
    struct plan a = { .budget_bytes = 700 * MIB, .n_ctx = 4096, .assumed = now,
                      .streamed_bytes = 700 * MIB, .prefill_tps = 18 };
    struct plan b = a;
    struct proposal_facts f = { .a = &o, .b = &o, .now = &a, .then = &b };

    b.assumed = then;
    f.answers_now = (struct mw_diagnosis){ .tps = 2, .assumed = now, .is_measured = is_measured };
    f.answers_then = (struct mw_diagnosis){ .tps = 3, .assumed = then };
    lines[0] = '\0';
    proposal_settings(&f, &to);
    proposal_memory(&f, &to);
    return lines;
}

static void shows(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("no \"%s\" in:%s", part, text);
}

static void each_column_names_the_share_that_it_assumes(void **state)
{
    (void)state;
    shows(sheet(0.5, 0.5, false), "\nAssumed: 50 % of the drafts are right.");
    shows(sheet(0.5, 0.7, false),
          "\nAssumed: 50 % of the drafts are right for \"now\", and 70 % for \"then\".");
    shows(sheet(0.5, 0, false), "\nAssumed for \"now\": 50 % of the drafts are right.");
    shows(sheet(0, 0.7, false), "\nAssumed for \"then\": 70 % of the drafts are right.");
    shows(sheet(0.5, 0.7, true), "\nAssumed for \"then\": 70 % of the drafts are right.");
    assert_null(strstr(sheet(0, 0, false), "drafts"));
    assert_null(strstr(sheet(0.5, 0, true), "drafts are right"));
}

static void remarks_are_below_the_speeds(void **state)
{
    const char *text = sheet(0.5, 0.5, false);

    (void)state;
    assert_true(strstr(text, "Assumed") > strstr(text, "prompt (512)"));
}

static void a_pass_with_drafts_is_not_a_token(void **state)
{
    (void)state;
    shows(sheet(0, 0, false), "read per token");
    shows(sheet(0.5, 0, false), "read per pass");
    shows(sheet(0, 0.5, false), "read per pass");
}

static void a_change_says_why_nothing_drafts(void **state)
{
    struct mw_options a = { .draft = MW_DRAFT_AUTO }, b = { .draft = MW_DRAFT_SELF };
    const struct proposal_out to = { add_line, NULL };
    struct plan now = { .n_draft = 15 }, then = { .no_drafter = MW_DRAFTER_ALL_PINNED };
    const struct proposal_facts f = { .a = &a, .b = &b, .now = &now, .then = &then };

    (void)state;
    lines[0] = '\0';
    proposal_warnings(&f, 0, &to);
    shows(lines, "\nThe model does not draft for itself: all weights are in memory, so a draft "
                 "would take as long as a token.");
    lines[0] = '\0';
    a.draft = MW_DRAFT_SELF; /* which is known */
    now = then;
    proposal_warnings(&f, 0, &to);
    assert_string_equal(lines, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_column_names_the_share_that_it_assumes),
        cmocka_unit_test(remarks_are_below_the_speeds),
        cmocka_unit_test(a_pass_with_drafts_is_not_a_token),
        cmocka_unit_test(a_change_says_why_nothing_drafts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
