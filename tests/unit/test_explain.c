/* The equations of plan/explain.h are true, whatever has been measured. */
#include "config.h"

#include <ctype.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/units.h"
#include "engine/plan/explain.h"
#include "engine/plan/plan.h"
#include "tests/lib/chance.h"
#include "tests/lib/plan_example.h"
#include "tests/lib/sim_machine.h"

#define DRAWS 1500

/* ---- evaluating a formula ---- */

/* A value, and how much of it the digits that were printed leave open. */
struct number {
    double x, error;
};

/* Numbers are printed with at least nine digits. */
#define DIGITS 5e-9

static struct number expression(const char **at);

static void skip_blanks(const char **at)
{
    while (**at == ' ')
        (*at)++;
}

static bool takes(const char **at, const char *text)
{
    size_t n = strlen(text);

    skip_blanks(at);
    if (strncmp(*at, text, n) != 0)
        return false;
    *at += n;
    return true;
}

static struct number of_function(const char **at, const char *name)
{
    struct number a = expression(at), b;

    if (name[0] == 'c' || name[0] == 'e') {
        assert_true(takes(at, ")"));
        if (name[0] == 'c')
            return (struct number){ ceil(a.x), 0 };
        return (struct number){ exp(a.x), exp(a.x) * a.error };
    }
    while (takes(at, ",")) {
        b = expression(at);
        a.x = strcmp(name, "max(") == 0 ? fmax(a.x, b.x) : fmin(a.x, b.x);
        a.error = fmax(a.error, b.error);
    }
    assert_true(takes(at, ")"));
    return a;
}

static struct number operand(const char **at)
{
    static const char *const functions[] = { "max(", "min(", "ceil(", "exp(" };
    struct number a = { 0, 0 };
    const char *start;
    char *end;

    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (takes(at, functions[i]))
            return of_function(at, functions[i]);
    if (takes(at, "(")) {
        a = expression(at);
        assert_true(takes(at, ")"));
        return a;
    }
    start = *at;
    if (!isdigit((unsigned char)*start))
        fail_msg("no number at \"%.60s\"", start);
    a.x = strtod(start, &end);
    *at = end;
    if (strspn(start, "0123456789") < (size_t)(end - start)) /* integers are exact */
        a.error = DIGITS * a.x;
    return a;
}

static struct number power(const char **at)
{
    struct number a = operand(at), b;

    if (!takes(at, "**"))
        return a;
    b = operand(at);
    if (a.x > 0)
        a.error *= b.x * pow(a.x, b.x - 1);
    a.x = pow(a.x, b.x);
    return a;
}

static struct number product(const char **at)
{
    struct number a = power(at), b;

    for (;;) {
        skip_blanks(at);
        if (strncmp(*at, "**", 2) == 0 || (**at != '*' && **at != '/'))
            return a;
        if (takes(at, "*")) {
            b = power(at);
            a.error = fabs(a.x) * b.error + fabs(b.x) * a.error;
            a.x *= b.x;
        } else {
            *at += 1;
            b = power(at);
            a.error = (a.error + fabs(a.x / b.x) * b.error) / fabs(b.x);
            a.x /= b.x;
        }
    }
}

static struct number expression(const char **at)
{
    bool is_negative = takes(at, "-");
    struct number a = product(at), b;

    if (is_negative)
        a.x = -a.x;
    for (;;) {
        double sign = takes(at, "+") ? 1 : takes(at, "-") ? -1 : 0;

        if (sign > -1 && sign < 1)
            return a;
        b = product(at);
        a.x += sign * b.x;
        a.error += b.error;
    }
}

/* Evaluate the formula of "  NAME = FORMULA = VALUE UNIT", and compare. */
static void check_line(const char *line)
{
    const char *formula = strstr(line, " = ") + 3, *value = formula, *at = formula;
    struct number a = expression(&at);
    double printed, most;
    char *unit;

    while (strstr(value, " = ") != NULL)
        value = strstr(value, " = ") + 3;
    if (at + 2 != value)
        fail_msg("\"%s\" is not a formula at \"%.40s\"", line, at);
    printed = strtod(value, &unit);
    most = a.error + 1e-6 * fabs(printed) + 1e-13;
    if (strcmp(unit, " bytes") == 0 && strcspn(value, ".e") > (size_t)(unit - value))
        most = 0.5 + a.error; /* an integer */
    if (!(fabs(a.x - printed) <= most))
        fail_msg("%s\n  is %.10g, +-%.2g", line, a.x, most);
}

/* ---- drawing a plan ---- */

static const char *const terms[] = {
    "products", "small weights", "rounds",   "steps",          "attention",      "reading",
    "lookups",  "experts",       "disk",     "missed experts", "missing layers", "overlap",
    "held",     "ring",          "memory",   "processors",     "answers",        "passes",
    "draft",    "pass of drafts", "chunk",   "prompts",        "full KV",        "packing",
    "drafts",   "recurrent KV",  "index keys", "streamed share", "expert share",
};
#define TERMS (sizeof terms / sizeof terms[0])

static void draw_weights(struct chance *c, struct plan_input *in)
{
    in->n_weights = 1 + chance_below(c, PLAN_WEIGHTS);
    for (uint32_t i = 0; i < in->n_weights; i++) {
        struct plan_weights *w = &in->weights[i];

        *w = (struct plan_weights){
            .token_bytes = { sim_between(c, 1e6, 1e9), sim_between(c, 1e6, 1e9) },
            .token_flops = sim_between(c, 1e8, 1e10),
            .column_bytes_s = chance_below(c, 5) ? sim_between(c, 1e9, 3e10) : 0,
            .chunk_flops_s = sim_between(c, 1e9, 1e12),
            .speedup = chance_below(c, 2) ? sim_between(c, 1, 5) : 0,
        };
        if (i == 0 || chance_below(c, 3) > 0)
            snprintf(w->type, sizeof w->type, "Q%u_K", i);
        if (chance_below(c, 2) > 0 && w->type[0] != '\0') {
            snprintf(w->laid_type, sizeof w->laid_type, "Q%u_K-x16", i);
            w->laid_column_bytes_s = sim_between(c, 1e9, 3e10);
            w->laid_chunk_flops_s = sim_between(c, 1e9, 1e12);
            w->saved_share = chance_below(c, 2) * 0.25;
        }
    }
}

static void draw_experts(struct chance *c, struct plan_input *in)
{
    double left = 1;

    in->n_expert_layer = 16u << chance_below(c, 4);
    in->n_expert_used = 1 + chance_below(c, 8);
    in->n_moe_layer = 1 + chance_below(c, 48);
    in->n_expert_all = in->n_expert_layer * in->n_moe_layer;
    in->n_expert_min = in->n_expert_used;
    in->n_expert_read = in->n_expert_used;
    in->expert_slot_bytes = 1 * MIB;
    in->experts_token_bytes = in->expert_slot_bytes * in->n_expert_used * in->n_moe_layer;
    in->weights[0].expert_bytes[PLAN_PROMPT] = 0.9 * (double)in->experts_token_bytes;
    in->weights[0].expert_bytes[PLAN_REST] = 0.1 * (double)in->experts_token_bytes;
    in->weights[0].expert_flops = 2e9;
    if (chance_below(c, 2) > 0)
        return;
    in->expert_use.observed_s = 1;
    in->expert_use.n_token = 1000;
    for (int i = 0; i < MW_USE_PARTS; i++) {
        in->expert_use.share[i] = i + 1 < MW_USE_PARTS ? left * 0.2 : left;
        left -= in->expert_use.share[i];
    }
}

static void draw_drafts(struct chance *c, struct plan_input *in)
{
    uint32_t kind = chance_below(c, 5);

    if (kind == 0)
        return;
    in->n_draft = 1 + chance_below(c, 15);
    in->draft_bytes = 1 * MIB;
    in->drafter_bytes = 4 * KIB;
    in->drafter_token_bytes = 12;
    in->replay_col_bytes = 100 * KIB;
    for (int i = 0; i < PLAN_PARTS; i++)
        in->draft_steps[i] = (struct plan_steps){ .n_round = 20, .n_value = 1e6, .n_curve = 1e5 };
    if (kind == 2)
        in->drafter_hot_bytes = 100 * MIB;
    if (kind == 3) {
        in->low[0] = (struct plan_low){ 2, "Q4_0", in->hot_bytes / 32 * 9, 0.8 };
        in->low[1] = (struct plan_low){ 10, "Q2_K", in->hot_bytes / 512 * 84, 0.5 };
        in->n_low = 2;
    }
    if (kind == 4)
        in->head = (struct plan_head){ .fixed_bytes = 4 * MIB,
                                       .col_bytes = 16 * KIB,
                                       .kv_token_bytes = 1 * KIB,
                                       .ring_bytes = 8 * MIB,
                                       .hot_bytes = 100 * MIB,
                                       .pinned_most = 101 * MIB };
}

static void draw_kv_disk(struct chance *c, struct plan_input *in)
{
    in->n_kv_class = 1 + chance_below(c, 2);
    for (uint32_t i = 0; i < in->n_kv_class; i++) {
        uint64_t token = in->kv_global_token_bytes / in->n_kv_class;

        in->kv_class[i] = (struct plan_kv_class){ in->n_kv_class - i, token,
                                                  token * in->kv_page_tokens,
                                                  { token * in->kv_page_tokens, token * 10 } };
    }
    in->kv_slot_bytes = in->kv_class[0].page_bytes;
    in->kv_disk_free = 1ull << 50;
}

static void draw_factors(struct chance *c, struct plan_factors *f)
{
    *f = (struct plan_factors){ .is_set = chance_below(c, 8) > 0,
                                .is_doubtful = chance_below(c, 2) > 0,
                                .disk = sim_between(c, 0.1, 10),
                                .processors = sim_between(c, 0.1, 10),
                                .attention = sim_between(c, 0.1, 10),
                                .lookups = sim_between(c, 0.1, 10),
                                .others = sim_between(c, 0.01, 1),
                                .crowded = sim_between(c, 0.01, 1),
                                .whole = sim_between(c, 0.5, 2),
                                .fixed_s = sim_between(c, 1e-4, 1) };
}

static struct plan_input draw_input(struct chance *c)
{
    struct plan_input in = plan_example();

    in.n_ctx = 1 + chance_below(c, 100000);
    in.n_thread = 1 + (int)chance_below(c, 16);
    in.hot_bytes = (1 + chance_below(c, 4000)) * MIB;
    in.prompt_bytes = in.hot_bytes / 4;
    in.n_lookup = 1 + chance_below(c, 3);
    in.lookup_s = 1e-4;
    in.rows_fixed_bytes = 1 * MIB;
    in.tables_bytes = 200 * MIB;
    in.disk_bytes_s = sim_between(c, 1e8, 5e9);
    in.streams = chance_below(c, 6) > 0;
    in.costs = (struct plan_costs){ 1.6e-6, 2e-4, 2.2e-10, 4.3e-10, 4e-11, 1.9e-11, 1.56e-11,
                                    chance_below(c, 2) * 0.3 };
    if (chance_below(c, 4) == 0)
        in.costs.read_cpu_s = 1e-8; /* longer than the read itself */
    for (int i = 0; i < PLAN_PARTS; i++) {
        in.steps[i] = (struct plan_steps){ 14, 99, 600, 595456, 89600, 4096, 16384, 12288, 49152 };
        in.kv_far_bytes[i] = 4096;
        in.kv_near_bytes[i] = 12288;
    }
    if (chance_below(c, 3) == 0) {
        in.recurrent_bytes = 30 * MIB;
        in.recurrent_copy_bytes = 15 * MIB;
        in.kv_index_page_bytes = 512;
    }
    if (chance_below(c, 3) == 0) {
        in.saved_bytes = in.hot_bytes / 5;
        in.landing_bytes = 4 * in.slot_bytes;
    }
    draw_weights(c, &in);
    if (chance_below(c, 3) == 0)
        draw_experts(c, &in);
    draw_drafts(c, &in);
    if (chance_below(c, 2) > 0)
        draw_kv_disk(c, &in);
    draw_factors(c, &in.factors);
    in.budget_bytes = plan_smallest_budget(&in) + chance_below(c, 3000) * MIB;
    return in;
}

/* ---- the tests ---- */

static void check_text(char *text, uint32_t *n_seen)
{
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        const char *equals = strstr(line, " = ");

        if (strncmp(line, "  ", 2) != 0 || equals == NULL)
            continue;
        check_line(line);
        for (size_t i = 0; i < TERMS; i++) {
            size_t n = strlen(terms[i]);

            if (strncmp(line + 2, terms[i], n) == 0 && strspn(line + 2 + n, " ") > 0 &&
                line[2 + n + strspn(line + 2 + n, " ")] == '=')
                n_seen[i]++;
        }
    }
}

static char *explained(const struct plan_basis *b, int64_t now_s)
{
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);

    assert_non_null(to);
    plan_explain(to, b, now_s);
    fclose(to);
    return text;
}

static void assert_has(const char *text, const char *const *lines, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strstr(text, lines[i]) == NULL)
            fail_msg("\"%s\" is not in:\n%s", lines[i], text);
}

/* Among them: factors, lost time, packed and interleaved weights, drafts, experts, keys and values
 * on the disk, and mapped weights. */
static void every_equation_is_true(void **state)
{
    struct chance c = { 11 };
    uint32_t n_seen[TERMS] = { 0 };
    static struct plan_basis b;
    struct err e = ERR_INIT;

    (void)state;
    for (int i = 0; i < DRAWS; i++) {
        char *text;

        b.in = draw_input(&c);
        if (plan_make(&b.in, &b.plan, &e) != 0) /* rounding of the smallest budget */
            continue;
        text = explained(&b, 0);
        check_text(text, n_seen);
        free(text);
    }
    for (size_t i = 0; i < TERMS; i++)
        if (n_seen[i] < 5)
            fail_msg("only %u equations of %s", n_seen[i], terms[i]);
}

/* Each factor has a name, and the number that the formulas have. */
static void every_factor_is_named(void **state)
{
    static const char *const lines[] = {
        "Factors measured in answers of this model, 40 s ago:",
        "  disk factor        : 1.25,", "  processor factor   : 1.5,",
        "  attention factor   : 1.75,", "  lookup factor      : 2.25,",
        "  lost time, token   : 0.125 s", "  lost time, prompt  : 0.0625 s",
        "  pass factor        : 0.75,", "  between tokens     : 0.003 s",
        "* 1.5 * (1 + 0.125) = ", "* 1.75 * (1 + 0.125) = ", "* (1 + 0.0625) = ", "* 1.25 = ",
        "= 1 / (0.003 + 0.75 * (max(",
    };
    static struct plan_basis b;
    struct err e = ERR_INIT;
    char *text;

    (void)state;
    b.in = plan_example();
    b.in.lookup_s = 1e-4;
    b.in.n_lookup = 1;
    b.in.factors = (struct plan_factors){ .is_set = true, .disk = 1.25, .processors = 1.5,
                                          .attention = 1.75, .lookups = 2.25, .others = 0.0625,
                                          .crowded = 0.125, .whole = 0.75, .fixed_s = 0.003 };
    b.in.budget_bytes = plan_smallest_budget(&b.in) + 50 * MIB;
    b.answered_s = 2;
    assert_int_equal(plan_make(&b.in, &b.plan, &e), 0);
    text = explained(&b, 42);
    assert_has(text, lines, sizeof lines / sizeof lines[0]);
    free(text);
}

/* The formulas have other rates than the measured ones: each has its reason. */
static void every_changed_rate_is_named(void **state)
{
    static const char *const lines[] = {
        "  BF16        in use : column 1.875e+10 bytes/s, with 2 threads in place of 4, "
        "at most 1.25 times memory\n",
        "  BF16        in use : chunk 9e+10 operations/s, with 2 threads in place of 4, "
        "with OpenBLAS\n",
        "  BF16-packed in use : column 1.40625e+10 bytes/s, with 2 threads in place of 4, "
        "at least as fast as in the file\n",
    };
    static struct plan_basis b;
    struct plan_weights *w = &b.in.weights[0];
    struct err e = ERR_INIT;
    char *text;

    (void)state;
    b.in = plan_example();
    w->column_bytes_s = 20e9;
    w->speedup = 1.5;
    snprintf(w->laid_type, sizeof w->laid_type, MW_RATE_PACKED);
    w->saved_share = 0.25;
    w->laid_column_bytes_s = 5e9;
    w->laid_chunk_flops_s = 60e9;
    b.in.factors = (struct plan_factors){ .is_set = true, .disk = 1, .processors = 1,
                                          .attention = 1, .lookups = 1, .whole = 1 };
    b.limits.rate[0] = (struct mw_rate){ "BF16", 40e9, 0, 120e9, false, 1 };
    b.limits.rate[1] = (struct mw_rate){ MW_RATE_PACKED, 10e9, 0, 120e9, false, 1 };
    b.limits.n_rate = 2;
    b.limits.n_thread = 4;
    assert_int_equal(plan_make(&b.in, &b.plan, &e), 0);
    text = explained(&b, 0);
    assert_has(text, lines, sizeof lines / sizeof lines[0]);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_equation_is_true),
        cmocka_unit_test(every_factor_is_named),
        cmocka_unit_test(every_changed_rate_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
