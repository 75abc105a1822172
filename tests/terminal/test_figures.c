/*
 * The figures on the screen equal those of --telemetry of the same run.  Figures of a finished
 * answer no longer change, so they must be equal up to the displayed digits.  The screen and
 * the file sample the kernel's figures of memory at different moments: a figure on the screen
 * must be between the smallest and the largest in the file, or near them.
 */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/terminal/program.h"

/* ---- reading the screen ---- */

/* Parse a number with its unit: "1.07 MiB", "4,096", "54 %", "12 ms".  Returns NAN if there is
 * none. */
static double read_figure(const char *text)
{
    static const struct {
        const char *name;
        double scale;
    } units[] = { { " KiB", 1024 },       { " MiB", 1048576 },
                  { " GiB", 1073741824 }, { " TiB", 1099511627776 },
                  { " %", 0.01 },         { "%", 0.01 },
                  { " ms", 1e-3 } };
    char digits[40];
    size_t n = 0;
    double value;

    text += strspn(text, " ~");
    for (; (*text >= '0' && *text <= '9') || *text == '.' || *text == ','; text++)
        if (*text != ',' && n + 1 < sizeof digits)
            digits[n++] = *text;
    digits[n] = '\0';
    value = n == 0 ? NAN : strtod(digits, NULL);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strncmp(text, units[i].name, strlen(units[i].name)) == 0)
            return value * units[i].scale;
    return value;
}

/* Returns the number after label in the only row that contains `row`, after that text if label
 * is there, too: two panels may share a row. */
static double shown(const char *row, const char *label)
{
    int y = pty_find(run.s, row);
    const char *text = y < 0 ? NULL : pty_row(run.s, y), *at;

    at = text == NULL ? NULL : strstr(strstr(text, row), label);
    if (at == NULL && text != NULL)
        at = strstr(text, label);
    if (at == NULL)
        fail_msg("\"%s\" is not shown in a row with \"%s\"", label, row);
    return read_figure(at + strlen(label));
}

/* ---- reading the file ---- */

/* Returns the number "key" of "group" in a line.  If group is NULL, of the line itself. */
static double recorded(const char *line, const char *group, const char *key)
{
    char text[80];
    const char *at = line;

    if (group != NULL) {
        snprintf(text, sizeof text, "\"%s\":{", group);
        at = strstr(line, text);
    }
    snprintf(text, sizeof text, "\"%s\":", key);
    at = at == NULL ? NULL : strstr(at, text);
    if (at == NULL)
        fail_msg("there is no %s in %s", key, group == NULL ? "the line" : group);
    return strncmp(at + strlen(text), "null", 4) == 0 ? NAN : strtod(at + strlen(text), NULL);
}

#define MAX_SECOND 100

struct record {
    char *text;
    const char *last, *plan; /* the last "second", the last "plan" */
    const char *second[MAX_SECOND];
    size_t n_second;
};

static void read_record(struct record *r, const char *path)
{
    FILE *f = fopen(path, "rb");
    size_t room = 0;

    assert_non_null(f);
    *r = (struct record){ 0 };
    assert_true(getdelim(&r->text, &room, '\0', f) > 0);
    fclose(f);
    for (char *line = r->text; *line != '\0';) {
        char *end = strchr(line, '\n');

        assert_non_null(end);
        *end = '\0';
        if (strncmp(line, "{\"event\":\"second\"", 17) == 0) {
            r->last = line;
            if (r->n_second < MAX_SECOND)
                r->second[r->n_second++] = line;
        }
        if (strncmp(line, "{\"event\":\"plan\"", 15) == 0 ||
            strncmp(line, "{\"event\":\"start\"", 16) == 0)
            r->plan = line;
        line = end + 1;
    }
    assert_non_null(r->last);
    assert_non_null(r->plan);
}

/* ---- comparing ---- */

#define A_TIME (-1.0)

struct figure {
    const char *row, *label; /* on the screen */
    bool in_plan;
    const char *group, *key; /* in the file */
    double scale;            /* factor from the file's unit to the screen's; 0: 1 */
    double least; /* allowed difference: half of the last displayed digit; A_TIME: that of a
                     time */
    double share; /* relative difference; 0: 0.6 %, three digits */
};

static void compare(const struct figure *f, double on_screen, const struct record *r)
{
    double wanted = recorded(f->in_plan ? r->plan : r->last, f->group, f->key);
    double least = f->least;

    wanted *= f->scale == 0 ? 1 : f->scale;
    if (isnan(wanted)) {
        if (!isnan(on_screen))
            fail_msg("%s shows %g, but the file has no such figure", f->label, on_screen);
        return;
    }
    if (least == A_TIME) /* milliseconds, then tenths of a second, then seconds */
        least = wanted < 0.0995 ? 0.0006 : wanted < 59.95 ? 0.051 : 0.51;
    if (!(fabs(on_screen - wanted) <= least + wanted * (f->share == 0 ? 0.006 : f->share)))
        fail_msg("\"%s\" shows %g, %s of the file is %g", f->label, on_screen, f->key, wanted);
}

/* A figure of the kernel must be between the smallest and the largest, or within a tenth of
 * them. */
static void compare_range(const struct figure *f, double on_screen, const struct record *r)
{
    double least = NAN, most = NAN;

    for (size_t i = 0; i < r->n_second; i++) {
        double value = recorded(r->second[i], f->group, f->key);

        least = fmin(least, value); /* fmin ignores NAN */
        most = fmax(most, value);
    }
    if (isnan(most) && isnan(on_screen))
        return;
    if (!(on_screen >= least * 0.9 - 1048576 && on_screen <= most * 1.1 + 1048576))
        fail_msg("\"%s\" shows %g, %s of the file is %g to %g", f->label, on_screen, f->key,
                 least, most);
}

static const struct figure bar[] = {
    { " left  |", "context ", false, "kv", "tokens", 0, 0, 1e-9 },
    { " left  |", "MiB of ", true, "run", "budget_bytes", 0, 0, 0 },
    /* memory of the kernel: used, below */
    { " left  |", "BF16  |  ", false, NULL, NULL, 0, 0, 0 },
};

/* Memory of the process: the charge of its group if it has one of its own. */
static const struct figure used[] = {
    { " left  |", "BF16  |  ", false, "os", "charged", 0, 0, 0 },
    { " left  |", "BF16  |  ", false, "os", "own", 0, 0, 0 },
};

static const struct figure dashboard[] = {
    { "mean ", "last ", false, "rate", "decode_last", 0, 0.0051, 0 },
    { "mean ", "mean ", false, "rate", "decode_mean", 0, 0.0051, 0 },
    { "mean ", "prompt", false, "rate", "prefill", 0, 0.0051, 0 },
    { "first token", "first token", false, "rate", "first_s", 0, A_TIME, 0 },
    { "answer ", "answer", false, "token", "n_decoded", 0, 0, 1e-9 },
    { "kv cache \xe2\x94\x80", "\xe2\x94\x80 ", false, "kv", "tokens", 0, 0, 1e-9 },
    { "kv cache \xe2\x94\x80", " of ", false, "kv", "capacity", 0, 0, 1e-9 },
    { "memory \xe2\x94\x80", " of ", true, "run", "budget_bytes", 0, 0, 0 },
    { "t tokenizer", "tokenizer", false, "mem", "used_tokenizer", 0, 0, 0 },
    { "a activations", "activations", false, "mem", "used_activations", 0, 0, 0 },
    { "k full KV", "full KV", false, "mem", "used_kv_global", 0, 0, 0 },
    { "r read buffers", "read buffers", false, "mem", "used_ring", 0, 0, 0 },
    /* of the kernel, at other moments */
    { "rss  ", "rss", false, "os", "rss", 0, 0, 0 },
};

static const struct figure stats[] = {
    { "context   ", "context", false, "kv", "tokens", 0, 0, 1e-9 },
    { "read from disk", "read from disk", false, "io", "bytes_read", 0, 0, 0 },
    { "decoding", "decoding", false, "rate", "decode_mean", 0, 0.0051, 0 },
    { "newest tokens", "newest tokens ", false, "rate", "decode_last", 0, 0.0051, 0 },
    { "prompt   ", "prompt", false, "rate", "prefill", 0, 0.0051, 0 },
    { "waits for disk", "the newest tokens", false, "rate", "stall_share", 0, 0.0051, 0 },
    { "resident", "resident", false, "os", "rss", 0, 0, 0 },
};

/* Items of the plan: names in a recording, and on the screen. */
static const char *const labels[] = { "program",      "tokenizer",      "activations",
                                      "token scores", "read buffers",   "table rows",
                                      "full KV",      "pinned weights", "kernel" };
static const char *const rows[] = { "program", "tokenizer", "activations", "logits", "ring",
                                    "rows",    "kv_global", "pinned",      "reserve" };

#define N_OF(a) (sizeof(a) / sizeof(a)[0])

static void read_all(const struct figure *f, size_t n, double *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = shown(f[i].row, f[i].label);
}

static void compare_all(const struct figure *f, size_t n, const double *on_screen,
                        const struct record *r)
{
    for (size_t i = 0; i < n; i++)
        if (f[i].key != NULL && strcmp(f[i].group, "os") == 0)
            compare_range(&f[i], on_screen[i], r);
        else if (f[i].key != NULL)
            compare(&f[i], on_screen[i], r);
}

/* /plan shows the planned and the used bytes of each row. */
struct plan_row {
    double planned, held;
};

static void read_plan(struct plan_row *out)
{
    program_line(&run, "/plan");
    sees(&run, "held now");
    for (size_t i = 0; i < N_OF(rows); i++) {
        char label[40], name[40];
        const char *text, *at;

        snprintf(name, sizeof name, " %-14s", labels[i]);
        text = pty_row(run.s, pty_find(run.s, name));
        snprintf(label, sizeof label, "%s", strstr(text, labels[i]) + strlen(labels[i]));
        out[i].planned = read_figure(label);
        at = strstr(label, "B "); /* after the first unit */
        assert_non_null(at);
        out[i].held = read_figure(at + 1);
    }
    pty_send(run.s, "q");
    loses(&run, "held now");
}

static void compare_plan(const struct plan_row *plan, const struct record *r)
{
    for (size_t i = 0; i < N_OF(rows); i++) {
        char key[40];
        struct figure f = { .label = rows[i], .in_plan = true, .group = "mem", .key = key };

        snprintf(key, sizeof key, "plan_%s", rows[i]);
        compare(&f, plan[i].planned, r);
        /* Program and reserve are the kernel's figures of that moment. */
        snprintf(key, sizeof key, "used_%s", rows[i]);
        f.in_plan = false;
        f.least = i == 0 || i + 1 == N_OF(rows) ? 2 * 1048576.0 : 0;
        compare(&f, plan[i].held, r);
    }
}

struct size {
    const char *name;
    const char
        *budget; /* NULL: 1 MiB above the smallest budget, so that weights are streamed */
    const char *n;
    bool slow;
};

static struct size sizes[] = {
    { "with_all_weights_in_memory", "256M", "60", false },
    { "with_weights_that_are_streamed", NULL, "40", true },
};

/* The smallest budget depends on the program's libraries, which differ between systems. */
static void small_budget(const char *model, char *budget, size_t n)
{
    const char *build = getenv("MW_BUILDDIR"), *key = "\"smallest_budget_bytes\":", *at;
    char command[4096], text[65536];
    FILE *from;
    size_t len;

    /* OpenBLAS, which may be measured to be faster, would count with the program. */
    snprintf(command, sizeof command, "'%s/memwall' plan '%s' --json -b 1G --blas never",
             build == NULL ? "." : build, model);
    from = popen(command, "re");
    assert_non_null(from);
    len = fread(text, 1, sizeof text - 1, from);
    text[len] = '\0';
    assert_int_equal(pclose(from), 0);
    at = strstr(text, key);
    assert_non_null(at);
    snprintf(budget, n, "%lluM", (strtoull(at + strlen(key), NULL, 10) >> 20) + 2);
}

/* Returns the share in the newest receipt. */
static double share_in_receipt(void)
{
    for (int y = 59; y >= 0; y--) {
        const char *row = pty_row(run.s, y), *at = strstr(row, " % disk wait");

        while (at != NULL && at > row && at[-1] >= '0' && at[-1] <= '9')
            at--;
        if (at != NULL)
            return read_figure(at);
    }
    fail_msg("there is no receipt");
    return NAN;
}

static void equal_what_telemetry_recorded(void **state)
{
    const struct size *size = *state;
    char file[200];
    char budget[32];
    const char *args[] = { "-n",    size->n,       "-b", budget, "--blas",
                           "never", "--telemetry", file, NULL };
    struct program_start start = { 60, 200, NULL, NULL, args, NULL, NULL };
    double in_bar[N_OF(bar)], in_dash[N_OF(dashboard)], in_stats[N_OF(stats)], of_answer,
        of_receipt;
    struct plan_row plan[N_OF(rows)];
    struct record r;

    start.model = size->slow ? program_slow_model() : NULL;
    if (size->budget == NULL)
        small_budget(start.model, budget, sizeof budget);
    else
        snprintf(budget, sizeof budget, "%s", size->budget);
    snprintf(file, sizeof file, "%s.%s.jsonl", program_model(), size->name);
    program_begin(&run, &start);
    sees(&run, "Talker (");
    program_say(&run, "hello");
    program_say(&run, "hello again");
    of_receipt = share_in_receipt();
    program_line(&run, "/view dashboard");
    loses(&run, "> hello");
    program_sync(&run);
    read_all(bar, N_OF(bar), in_bar);
    read_all(dashboard, N_OF(dashboard), in_dash);
    program_line(&run, "/stats");
    sees(&run, "Statistics");
    read_all(stats, N_OF(stats), in_stats);
    of_answer = shown("waits for disk", "waits for disk");
    pty_send(run.s, "q");
    loses(&run, "Statistics");
    read_plan(plan);
    program_quit(&run);

    read_record(&r, file);
    compare_all(bar, N_OF(bar), in_bar, &r);
    compare_all(dashboard, N_OF(dashboard), in_dash, &r);
    compare_all(stats, N_OF(stats), in_stats, &r);
    compare_plan(plan, &r);
    assert_true(of_answer == of_receipt);
    compare_range(&used[isnan(recorded(r.last, "os", "charged")) ? 1 : 0], in_bar[2], &r);
    free(r.text);
}

/* After turns were taken back, and after a chat was opened again, keys and values are not those
 * of the conversation. */
static void the_bar_and_the_panel_count_the_same_tokens(void **state)
{
    const char *args[] = { "-n", "60", NULL }, *again[] = { "-n", "60", "--continue", NULL };
    struct program_start start = { 60, 200, NULL, NULL, args, NULL, NULL };

    (void)state;
    program_begin(&run, &start);
    sees(&run, "Talker");
    program_say(&run, "hello");
    program_say(&run, "hello again");
    program_line(&run, "/undo");
    assert_true(pty_sees_at(run.s, -2, "hello again"));
    pty_send(run.s, "\003");
    assert_true(pty_loses_at(run.s, -2, "hello again"));
    program_sync(&run);
    assert_true(shown(" left  |", "context ") > 32);
    assert_true(shown(" left  |", "context ") == shown("kv cache \xe2\x94\x80", "\xe2\x94\x80 "));
    program_quit(&run);
    start.args = again;
    program_again(&run, &start);
    sees(&run, "to evaluate");
    program_sync(&run);
    assert_true(shown(" left  |", "context ") > 32);
    assert_true(shown(" left  |", "context ") == shown("kv cache \xe2\x94\x80", "\xe2\x94\x80 "));
    program_quit(&run);
}

int main(void)
{
    enum { N = sizeof sizes / sizeof sizes[0] };
    struct CMUnitTest tests[N + 1] = {
        [N] = cmocka_unit_test_teardown(the_bar_and_the_panel_count_the_same_tokens, end_run)
    };

    for (size_t i = 0; i < N; i++)
        tests[i] = (struct CMUnitTest){ sizes[i].name, equal_what_telemetry_recorded, NULL,
                                        end_run, &sizes[i] };
    return cmocka_run_group_tests_name("figures", tests, program_group_setup,
                                       program_group_teardown);
}
