/*
 * A change of an option costs what it changes: weights that stay pinned are not read again, the
 * process never takes more than before or after, and a change that fails loses nothing.
 *
 * The weights do not fit, so some are pinned and the others are streamed.
 */
#include "config.h"

#include <sys/resource.h>

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/session/options.h"
#include "engine/session/session.h"
#include "tests/lib/calls.h"
#include "tests/lib/fail_with.h"

#define N_PROMPT 24
#define N_TOKEN  4 /* after each of the steps below */
#define MOST     (N_PROMPT + 3 * N_TOKEN)
#define N_CTX    256

static struct mw_model *model;
static uint32_t ids[MOST];
static struct mw_model_info info;

/* ---- a session that pins half of its weights ---- */

/* A chunk of 64 tokens takes as long to compute as to read the weights, times `slower`. */
static void set_limits(double slower)
{
    struct mw_options o = small_options(N_CTX);
    struct mw_limits l = { .disk_bytes_s = 2e9 / slower, .memory_bytes_s = 2e10 };

    mw_rates_list(model, &o, &l);
    for (uint32_t i = 0; i < l.n_rate; i++) {
        l.rate[i].column_bytes_s = 1e10;
        l.rate[i].chunk_flops_s = 5e10;
    }
    mw_model_set_limits(model, &l);
}

/* The limit of the disk keeps the ring small, and is too high to slow the test down. */
static struct mw_options half_pinned(void)
{
    struct mw_options o = small_options(N_CTX);
    struct err e = ERR_INIT;
    struct plan p;

    o.block_bytes = 64 * KIB;
    o.disk_rate = (uint64_t)100 << 30;
    o.memory_bytes = smallest_budget(model, &o);
    do {
        o.memory_bytes += 64 * KIB;
        no_error(mw_plan(model, &o, &p, &e), &e);
    } while (p.pinned_bytes < info.hot_bytes / 2);
    return o;
}

static struct plan plan_now(const struct mw_session *s)
{
    struct plan p;

    mw_session_plan(s, &p);
    return p;
}

static const struct mw_sample *sample_now(const struct mw_session *s)
{
    static struct mw_sample sample;

    mw_session_sample(s, &sample);
    return &sample;
}

/* Bytes of weights that were read. */
static uint64_t weights_read(const struct mw_session *s)
{
    const struct mw_sample *sample = sample_now(s);

    return sample->io.bytes_read - sample->io.lookup_bytes;
}

/* Evaluate the ids up to n, the last N_TOKEN one by one.  Keep the logits of these. */
static void go_on(struct mw_session *s, uint32_t n, float *logits)
{
    uint32_t held = mw_session_tokens(s);

    if (n - N_TOKEN > held)
        eval(s, ids + held, n - N_TOKEN - held);
    for (uint32_t i = n - N_TOKEN; i < n; i++) {
        eval(s, ids + i, 1);
        if (logits != NULL)
            memcpy(logits + (size_t)i * info.n_vocab, mw_session_logits(s),
                   info.n_vocab * sizeof *logits);
    }
}

static float *logits_new(void)
{
    float *logits = calloc((size_t)MOST * info.n_vocab, sizeof *logits);

    assert_non_null(logits);
    return logits;
}

/* ---- bytes ---- */

struct change {
    const char *name;
    void (*make)(struct mw_options *o);
    bool again; /* the tokens are evaluated again */
    bool opens; /* all weights are read again */
};

static void nothing(struct mw_options *o)
{
    (void)o;
}

static void other_limits(struct mw_options *o)
{
    (void)o;
    set_limits(3);
}

static void ctx_shift(struct mw_options *o)
{
    o->ctx_shift = true;
}

static void more_threads(struct mw_options *o)
{
    set_limits(5);
    o->n_thread = 3;
}

static void one_thread(struct mw_options *o)
{
    o->n_thread = 1;
}

static void longer(struct mw_options *o)
{
    set_limits(2);
    o->n_ctx = 700;
}

static void shorter(struct mw_options *o)
{
    o->n_ctx = MOST;
}

static void smaller_chunk(struct mw_options *o)
{
    o->chunk = 32;
}

static void less_memory(struct mw_options *o)
{
    o->memory_bytes -= MIB;
}

static void more_memory(struct mw_options *o)
{
    o->memory_bytes += MIB;
}

static void all_memory(struct mw_options *o)
{
    o->memory_bytes = 600 * MIB;
}

static void other_kv(struct mw_options *o)
{
    o->kv_k = o->kv_v = MW_KV_Q8_0;
}

static void values_only(struct mw_options *o)
{
    o->kv_v = MW_KV_F32;
    o->n_ctx = 300;
}

static void more_rows(struct mw_options *o)
{
    o->n_logit_row = 8;
}

static void other_io(struct mw_options *o)
{
    o->io = MW_IO_BUFFERED;
}

static const struct change changes[] = {
    { "nothing", nothing, false, false },
    { "other limits", other_limits, false, false },
    { "context shift", ctx_shift, false, false },
    { "more threads", more_threads, false, false },
    { "one thread", one_thread, false, false },
    { "longer context", longer, false, false },
    { "shorter context", shorter, false, false },
    { "smaller chunk", smaller_chunk, false, false },
    { "less memory", less_memory, false, false },
    { "more memory", more_memory, false, false },
    { "memory for all", all_memory, false, false },
    { "other keys and values", other_kv, true, false },
    { "other values and context", values_only, true, false },
    { "rows of logits", more_rows, false, false },
    { "other reads", other_io, false, true },
};

/* The bytes of two steps of the same tokens: after the change, and then without one. */
static void check_bytes(const struct change *c)
{
    struct mw_options o = half_pinned(), unchanged;
    struct mw_session *s = open_session(model, &o), *same;
    struct plan before = plan_now(s), after;
    uint64_t read, first, second, grown, lost, ring;
    float *want = logits_new(), *got = logits_new();
    struct err e = ERR_INIT;
    size_t from = (size_t)(N_PROMPT + N_TOKEN) * info.n_vocab;

    assert_true(before.n_slot > 0 && before.streamed_bytes > 0);
    go_on(s, N_PROMPT, got);
    go_on(s, N_PROMPT + N_TOKEN, got);
    c->make(&o);
    unchanged = o;
    read = weights_read(s);
    no_error(session_set(s, &o, &e), &e);
    after = plan_now(s);
    assert_int_equal(mw_session_tokens(s), c->again ? 0 : N_PROMPT + N_TOKEN);
    go_on(s, N_PROMPT + 2 * N_TOKEN, got);
    first = weights_read(s) - read;
    go_on(s, N_PROMPT + 3 * N_TOKEN, got);
    second = weights_read(s) - read - first;
    ring = before.row[MW_ROW_RING] > after.row[MW_ROW_RING] ? before.row[MW_ROW_RING]
                                                            : after.row[MW_ROW_RING];
    grown = after.pinned_bytes > before.pinned_bytes ? after.pinned_bytes - before.pinned_bytes
                                                     : 0;
    if (grown > info.hot_bytes)
        grown = info.hot_bytes;
    /* Less memory ends in a huge page, which loses its content (area.h). */
    lost = after.pinned_bytes < before.pinned_bytes ? after.pinned_bytes % HUGE_BYTES : 0;
    print_message("%-26s pinned %4lu -> %4lu KiB, read %5lu, then %5lu KiB\n", c->name,
                  (unsigned long)(before.pinned_bytes >> 10),
                  (unsigned long)(after.pinned_bytes >> 10), (unsigned long)(first >> 10),
                  (unsigned long)(second >> 10));
    assert_true(before.pinned_bytes > 3 * ring);
    if (c->opens)
        assert_true(first > second + before.pinned_bytes / 2);
    else if (c->again)
        assert_true(first < second / N_TOKEN * (N_TOKEN + 1) + grown * 5 / 4 + lost +
                            2 * ring);
    else
        assert_true(first < second + grown * 5 / 4 + lost + 2 * ring);
    mw_session_close(s);

    same = open_session(model, &unchanged);
    go_on(same, N_PROMPT + 2 * N_TOKEN, want);
    go_on(same, N_PROMPT + 3 * N_TOKEN, want);
    assert_memory_equal(want + from, got + from,
                        (size_t)(MOST - N_PROMPT - N_TOKEN) * info.n_vocab * sizeof *want);
    mw_session_close(same);
    free(want);
    free(got);
}

static void a_change_reads_only_what_it_needs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        set_limits(1);
        check_bytes(&changes[i]);
    }
    set_limits(1);
}

/* With memory for everything, known tokens read nothing at all, whatever else changes. */
static void a_change_with_all_in_memory_reads_nothing(void **state)
{
    static void (*const make[])(struct mw_options *) = { more_threads, longer, other_kv,
                                                         more_memory, more_rows, shorter };
    struct mw_options o = half_pinned();
    struct err e = ERR_INIT;
    struct mw_session *s;
    uint64_t before;
    uint32_t kept;

    (void)state;
    o.memory_bytes = 90 * MIB; /* later changes cross the bounds of the block size */
    o.block_bytes = 0;
    s = open_session(model, &o);
    go_on(s, N_PROMPT, NULL);
    go_on(s, N_PROMPT + N_TOKEN, NULL);
    assert_int_equal(plan_now(s).streamed_bytes, 0);
    assert_true(plan_now(s).keeps_rows);
    before = sample_now(s)->io.bytes_read;
    for (size_t i = 0; i < sizeof make / sizeof make[0]; i++) {
        make[i](&o);
        o.memory_bytes += 80 * MIB;
        no_error(session_set(s, &o, &e), &e);
        assert_int_equal(mw_session_rewind(s, 0, &kept, &e), 0);
        go_on(s, N_PROMPT + N_TOKEN, NULL);
        assert_int_equal(sample_now(s)->io.bytes_read, before);
    }
    mw_session_close(s);
    set_limits(1);
}

/* ---- budgets ---- */

#define N_MORE   12         /* tokens whose mean counts */
#define A_BUDGET (64 * KIB) /* from one to the next */

/* Bytes of weights that a token reads, without what the reader has read ahead. */
static uint64_t read_per_token(const struct mw_options *o, uint64_t *ring)
{
    struct mw_session *s = open_session(model, o);
    uint64_t before;

    go_on(s, N_PROMPT, NULL);
    before = weights_read(s);
    for (uint32_t i = 0; i < N_MORE; i++)
        eval(s, ids + N_PROMPT + i, 1);
    *ring = (uint64_t)plan_now(s).n_slot * o->block_bytes;
    before = weights_read(s) - before;
    mw_session_close(s);
    return before / N_MORE;
}

/* Weights borrow the memory of keys and values until the first token.  A larger budget reads no
 * more for a token, wherever a huge page of pinned weights ends. */
static void a_larger_budget_reads_no_more(void **state)
{
    struct mw_options o = half_pinned();
    uint64_t least, ring, most;

    (void)state;
    o.memory_bytes = smallest_budget(model, &o);
    most = mw_reads_nothing_budget(model, &o) + A_BUDGET;
    least = read_per_token(&o, &ring);
    assert_true(least > info.hot_bytes * 3 / 4);
    for (; o.memory_bytes < most; o.memory_bytes += A_BUDGET) {
        uint64_t now = read_per_token(&o, &ring);

        if (now > least + ring / N_MORE)
            fail_msg("%lu bytes with a budget of %lu, %lu with less", (unsigned long)now,
                     (unsigned long)o.memory_bytes, (unsigned long)least);
        least = now < least ? now : least;
    }
    assert_int_equal(least, 0);
}

/* ---- in a chat ---- */

static struct mw_chat_options chat_options(void)
{
    struct mw_chat_options o = { .engine = half_pinned(), .n_predict = 16 };

    mw_sampling_default(model, &o.sampling);
    o.sampling.temp = 0;
    o.engine.disk_rate = info.hot_bytes * 25; /* a token takes 20 ms, so a change comes in time */
    return o;
}

static void send(struct mw_chat *c)
{
    static const char text[] = "What is the memory wall?";
    struct err e = ERR_INIT;

    no_error(mw_chat_send(c, text, sizeof text - 1, &e), &e);
}

/* Wait for the first piece of an answer, and add it to text. */
static void wait_for_text(struct mw_chat *c, char *text, size_t n)
{
    struct mw_event event = { .kind = MW_EVENT_STARTED };

    while (event.kind != MW_EVENT_TEXT) {
        struct pollfd p = { .fd = mw_chat_fd(c), .events = POLLIN };

        assert_int_equal(poll(&p, 1, 60000), 1);
        while (event.kind != MW_EVENT_TEXT && mw_chat_next(c, &event))
            if (event.kind == MW_EVENT_TEXT)
                snprintf(text, n, "%.*s", (int)event.len, event.text);
    }
}

static void add(char *text, size_t n, const struct said *said)
{
    size_t len = strlen(text);

    assert_true(said->len < n - len);
    memcpy(text + len, said->text, said->len + 1);
}

/* Options of the answer, and threads, change in the middle of it. */
static void an_answer_and_its_sampling_read_the_same_whatever_changes(void **state)
{
    struct mw_chat_options o = chat_options(), then = o;
    static struct mw_sample sample;
    static char text[2][1000];
    struct said said;
    uint64_t bytes[2], ring = 0;

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct mw_chat *c = open_chat(model, &o);
        struct err e = ERR_INIT;

        send(c);
        wait_for_text(c, text[i], sizeof text[i]);
        for (int n = 0; i == 1 && n < 4; n++) {
            set_limits(n + 2);
            then.sampling.top_k = 10 + (uint32_t)n;
            then.engine.ctx_shift = n % 2 == 0;
            then.engine.n_thread = n < 2 ? 2 : 1;
            no_error(mw_chat_set(c, &then, &e), &e);
            assert_int_equal(wait_for_end(c, &said), MW_EVENT_PLAN);
            add(text[i], sizeof text[i], &said);
        }
        assert_int_equal(wait_for_end(c, &said), MW_EVENT_DONE);
        add(text[i], sizeof text[i], &said);
        mw_chat_sample(c, &sample);
        bytes[i] = sample.io.bytes_read;
        ring = sample.mem.plan[MW_ROW_RING];
        mw_chat_close(c);
    }
    set_limits(1);
    assert_string_equal(text[1], text[0]);
    print_message("read %lu and %lu KiB\n", (unsigned long)(bytes[0] >> 10),
                  (unsigned long)(bytes[1] >> 10));
    assert_true(bytes[1] < bytes[0] + 2 * ring);
}

/* ---- choices that stay ---- */

static void limits_that_change_leave_the_plan_alone(void **state)
{
    struct mw_options o = half_pinned();
    struct mw_session *s = open_session(model, &o);
    struct plan before = plan_now(s), after;
    struct err e = ERR_INIT;

    (void)state;
    set_limits(100);
    o.n_ctx = N_CTX + 1; /* in the same page of positions */
    no_error(session_set(s, &o, &e), &e);
    after = plan_now(s);
    assert_int_equal(after.chunk, before.chunk);
    assert_int_equal(after.row[MW_ROW_RING], before.row[MW_ROW_RING]);
    mw_session_close(s);
    s = open_session(model, &o);
    assert_true(plan_now(s).chunk > before.chunk);
    mw_session_close(s);
    set_limits(1);
}

/* The budget fits two blocks of the size it would get by itself, but not two of the larger. */
static void blocks_get_smaller_if_the_budget_demands_it(void **state)
{
    struct mw_options o = small_options(N_CTX);
    struct err e = ERR_INIT;
    struct mw_session *s;
    uint64_t least = smallest_budget(model, &o);

    (void)state;
    o.memory_bytes = 400 * MIB;
    s = open_session(model, &o);
    go_on(s, N_PROMPT, NULL);
    o.memory_bytes = least;
    no_error(session_set(s, &o, &e), &e);
    go_on(s, N_PROMPT + N_TOKEN, NULL);
    assert_true(plan_now(s).sum_bytes <= least);
    mw_session_close(s);
}

static void a_choice_stays_until_its_own_option_changes(void **state)
{
    const struct mw_options asked = { .isa = "x" };
    const struct mw_options got = { .memory_bytes = 7 * GIB, .n_ctx = 4096, .n_thread = 9 };
    struct mw_options o = asked;

    (void)state;
    o.io = MW_IO_BUFFERED;
    options_keep(&asked, &got, &o);
    assert_int_equal(o.memory_bytes, got.memory_bytes);
    assert_int_equal(o.n_ctx, got.n_ctx);
    assert_int_equal(o.n_thread, got.n_thread);
    assert_int_equal(o.io, MW_IO_BUFFERED);
    assert_string_equal(o.isa, "x");
}

/* The free memory is read once, and the budget that follows from it grows with the context. */
static void a_budget_of_the_free_memory_follows_the_options(void **state)
{
    struct mw_options o = small_options(N_CTX);
    struct settled before, after;
    struct err e = ERR_INIT;
    struct plan p;

    (void)state;
    o.memory_bytes = 0;
    o.block_bytes = 64 * KIB;
    no_error(settled_options(model, &(struct settled){ 0 }, &o, &before, &e), &e);
    no_error(settled_plan(model, &before, NULL, &p, &e), &e);
    assert_int_equal(p.streamed_bytes, 0);
    before.free_bytes = 5 * GIB;
    o.n_ctx = 100000;
    no_error(settled_options(model, &before, &o, &after, &e), &e);
    no_error(settled_plan(model, &after, NULL, &p, &e), &e);
    assert_int_equal(after.free_bytes, 5 * GIB);
    assert_int_equal(after.o.memory_bytes, mw_default_budget(model, &o, 5 * GIB));
    assert_true(after.o.memory_bytes > before.o.memory_bytes);
    o.memory_choice++; /* "/memory auto" */
    no_error(settled_options(model, &before, &o, &after, &e), &e);
    assert_int_not_equal(after.free_bytes, 5 * GIB);
    o.memory_bytes = 300 * MIB;
    no_error(settled_options(model, &before, &o, &after, &e), &e);
    assert_int_equal(after.free_bytes, 0);
    assert_int_equal(after.o.memory_bytes, 300 * MIB);
}

/* ---- memory ---- */

/* A line of /proc/self/status: KiB in bytes, or a number times 1024. */
static uint64_t status(const char *name)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[200];
    uint64_t kib = 0;

    assert_non_null(f);
    while (fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, name, strlen(name)) == 0)
            kib = strtoull(line + strlen(name), NULL, 10);
    fclose(f);
    return kib * KIB;
}

static void forget_peak(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");

    if (f == NULL)
        skip();
    fputs("5", f);
    fclose(f);
}

/* The counters of the kernel lag by some pages of each thread. */
#define LAG MIB

static void old_and_new_parts_are_never_in_memory_together(void **state)
{
    static void (*const make[])(struct mw_options *) = { more_threads, longer, values_only,
                                                         other_kv, shorter };
    struct mw_options o = small_options(2048);
    struct err e = ERR_INIT;
    struct mw_session *s;

    (void)state;
    o.memory_bytes = 300 * MIB;
    o.chunk = 512;
    o.n_logit_row = 512;
    s = open_session(model, &o);
    assert_true(plan_now(s).row[MW_ROW_LOGITS] > 4 * LAG);
    assert_true(plan_now(s).row[MW_ROW_ACTIVATIONS] > 4 * LAG);
    go_on(s, N_PROMPT, NULL);
    for (size_t i = 0; i < sizeof make / sizeof make[0]; i++) {
        uint64_t before = status("VmRSS:"), after, peak;

        forget_peak();
        make[i](&o);
        o.n_logit_row ^= 1;
        no_error(session_set(s, &o, &e), &e);
        peak = status("VmHWM:");
        after = status("VmRSS:");
        print_message("%5lu -> %5lu KiB, peak %5lu KiB\n", (unsigned long)(before >> 10),
                      (unsigned long)(after >> 10), (unsigned long)(peak >> 10));
        assert_true(peak <= (before > after ? before : after) + LAG);
        go_on(s, N_PROMPT, NULL);
    }
    mw_session_close(s);
    set_limits(1);
}

/* ---- failures ---- */

/* Leave the process too few addresses for a context of 2^22 tokens, which the budget fits. */
static void a_change_that_fails_loses_nothing(void **state)
{
    const enum mw_kv kinds[] = { MW_KV_F16, MW_KV_F32 };
    const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
    struct rlimit most = { 0, RLIM_INFINITY };
    struct mw_options o = half_pinned();
    struct mw_session *s = open_session(model, &o), *same = open_session(model, &o);
    struct plan before = plan_now(s), after;
    float *want = logits_new(), *got = logits_new();
    uint64_t read, n_thread;

    (void)state;
    go_on(same, N_PROMPT, want);
    go_on(s, N_PROMPT, got);
    n_thread = status("Threads:");
    for (int i = 0; i < 2; i++) {
        struct mw_options large = o;
        struct err e = ERR_INIT;

        large.memory_bytes = (uint64_t)64 << 30;
        large.n_ctx = 1u << 22;
        large.kv_k = kinds[i];
        large.n_thread = 5;
        large.chunk = 40;
        read = weights_read(s);
        most.rlim_cur = status("VmSize:") + 512 * MIB;
        assert_int_equal(setrlimit(RLIMIT_AS, &most), 0);
        assert_int_equal(session_set(s, &large, &e), -1);
        assert_int_equal(setrlimit(RLIMIT_AS, &unlimited), 0);
        assert_true(e.code != ERR_NONE && e.what[0] != '\0');
        after = plan_now(s);
        assert_memory_equal(&after, &before, sizeof after);
        assert_int_equal(mw_session_tokens(s), N_PROMPT + i * N_TOKEN);
        assert_int_equal(status("Threads:"), n_thread);
        go_on(same, N_PROMPT + (i + 1) * N_TOKEN, want);
        go_on(s, N_PROMPT + (i + 1) * N_TOKEN, got);
        assert_true(weights_read(s) - read < N_TOKEN * info.hot_bytes);
    }
    assert_memory_equal(want, got, (size_t)MOST * info.n_vocab * sizeof *want);
    mw_session_close(s);
    mw_session_close(same);
    free(want);
    free(got);
}

static int begin(void **state)
{
    const char *src = getenv("MW_SRCDIR");
    struct err e = ERR_INIT;
    char path[4096];

    (void)state;
    snprintf(path, sizeof path, "%s/share/models/memwall-guide.gguf", src != NULL ? src : ".");
    no_error(mw_model_open(&model, path, &e), &e);
    mw_model_info(model, &info);
    for (uint32_t i = 0; i < MOST; i++)
        ids[i] = 300 + i * 7919 % 2000;
    return 0;
}

static int end(void **state)
{
    (void)state;
    mw_model_close(model);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_reads_only_what_it_needs),
        cmocka_unit_test(a_change_with_all_in_memory_reads_nothing),
        cmocka_unit_test(a_larger_budget_reads_no_more),
        cmocka_unit_test(an_answer_and_its_sampling_read_the_same_whatever_changes),
        cmocka_unit_test(limits_that_change_leave_the_plan_alone),
        cmocka_unit_test(blocks_get_smaller_if_the_budget_demands_it),
        cmocka_unit_test(a_choice_stays_until_its_own_option_changes),
        cmocka_unit_test(a_budget_of_the_free_memory_follows_the_options),
        cmocka_unit_test(old_and_new_parts_are_never_in_memory_together),
        cmocka_unit_test(a_change_that_fails_loses_nothing),
    };

    return cmocka_run_group_tests_name("reread", tests, begin, end);
}
