/* Servers of models: streams of events, pieces of answers, metrics, and their words. */
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

#include "engine/http/sse.h"
#include "engine/remote/chunk.h"
#include "engine/remote/server_metrics.h"
#include "ui/words/receipt.h"
#include "ui/words/server.h"

/* ---- streams ---- */

struct heard {
    char text[4096]; /* the events, with | after each */
    size_t n;
};

static int hear(void *ctx, const char *data, size_t n, struct err *e)
{
    struct heard *h = ctx;

    if (strcmp(data, "stop") == 0)
        return err_set(e, ERR_CANCELLED, "enough");
    assert_int_equal(data[n], '\0');
    h->n += (size_t)snprintf(h->text + h->n, sizeof h->text - h->n, "%s|", data);
    return 0;
}

/* Feed the text in two pieces that are cut at `cut`, and end it. */
static void feed(struct heard *h, const char *text, size_t n, size_t cut)
{
    struct sse s = { 0 };
    struct err e = ERR_INIT;

    *h = (struct heard){ .n = 0 };
    assert_int_equal(sse_feed(&s, text, cut, hear, h, &e), 0);
    assert_int_equal(sse_feed(&s, text + cut, n - cut, hear, h, &e), 0);
    assert_int_equal(sse_end(&s, hear, h, &e), 0);
    sse_free(&s);
}

static struct {
    const char *name, *text, *events;
} streams[] = {
    { "one_event", "data: a\n\n", "a|" },
    { "without_a_blank", "data:a\n\n", "a|" },
    { "only_one_blank_goes", "data:  a\n\n", " a|" },
    { "lines_of_an_event_are_joined", "data: a\ndata: b\n\ndata: c\n\n", "a\nb|c|" },
    { "crlf", "data: a\r\n\r\ndata: b\r\n\r\n", "a|b|" },
    { "cr", "data: a\r\rdata: b\r\r", "a|b|" },
    { "mixed_ends", "data: a\r\n\ndata: b\n\r\n", "a|b|" },
    { "comments", ": hi\n\n:\ndata: a\n: between\n\n", "a|" },
    { "other_fields", "event: x\nid: 1\nretry: 5\ndata: a\nfoo\ndatax: no\n\n", "a|" },
    { "an_empty_event", "data\n\ndata:\n\n\n\n", "||" },
    { "a_mark_of_the_encoding", "\xef\xbb\xbf" "data: a\n\n", "a|" },
    { "a_mark_later_is_a_name", "\n\xef\xbb\xbf" "data: a\n\n", "" },
    { "the_last_blank_line_may_be_missing", "data: a\n", "a|" },
    { "a_line_without_an_end_does_not_count", "data: a\n\ndata: b", "a|" },
    { "nothing", "", "" },
};

static void streams_are_read_wherever_they_are_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++) {
        size_t n = strlen(streams[i].text);

        for (size_t cut = 0; cut <= n; cut++) {
            struct heard h;

            feed(&h, streams[i].text, n, cut);
            if (strcmp(h.text, streams[i].events) != 0)
                fail_msg("%s cut at %zu: \"%s\"", streams[i].name, cut, h.text);
        }
    }
}

static void an_event_has_a_limit(void **state)
{
    static const char *const heads[] = { "data: ", ": ", "x", "data: a\ndata: " };
    static char bytes[65536];

    (void)state;
    memset(bytes, 'a', sizeof bytes);
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        struct sse s = { 0 };
        struct heard h = { .n = 0 };
        struct err e = ERR_INIT;
        size_t sent = 0;

        assert_int_equal(sse_feed(&s, heads[i], strlen(heads[i]), hear, &h, &e), 0);
        while (sent < 4 * SSE_EVENT_MAX && sse_feed(&s, bytes, sizeof bytes, hear, &h, &e) == 0)
            sent += sizeof bytes;
        assert_int_equal(e.code, ERR_FORMAT);
        assert_true(sent <= SSE_EVENT_MAX + sizeof bytes);
        sse_free(&s);
    }
}

static void the_taker_ends_a_stream(void **state)
{
    struct sse s = { 0 };
    struct heard h = { .n = 0 };
    struct err e = ERR_INIT;
    const char *text = "data: a\n\ndata: stop\n\ndata: b\n\n";

    (void)state;
    assert_int_equal(sse_feed(&s, text, strlen(text), hear, &h, &e), -1);
    assert_int_equal(e.code, ERR_CANCELLED);
    assert_string_equal(h.text, "a|");
    sse_free(&s);
}

/* ---- pieces ---- */

static struct {
    const char *json, *text; /* thinking in brackets */
} pieces[] = {
    { "{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}", "a" },
    { "{\"choices\":[{\"delta\":{\"reasoning_content\":\"h\",\"content\":\"a\"}}]}", "[h]a" },
    { "{\"choices\":[{\"delta\":{\"reasoning\":\"h\",\"content\":null}}]}", "[h]" },
    { "{\"choices\":[{\"message\":{\"content\":\"a\"}}]}", "a" },
    { "{\"choices\":[{\"delta\":{\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
      "{\"type\":\"thinking\",\"thinking\":[{\"text\":\"h\"}]},{\"thinking\":\"i\"}]}}]}",
      "a[h][i]" },
    { "{\"choices\":[{\"delta\":{\"refusal\":\"no\"}}]}", "no" },
    { "{\"choices\":[{\"delta\":{\"content\":\"\"}},{\"delta\":{\"content\":\"b\"}}]}", "" },
    { "{\"choices\":[]}", "" },
    { "{\"choices\":7}", "" },
    { "{}", "" },
};

static void texts_of_pieces(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        struct chunk c;
        struct err e = ERR_INIT;
        char text[200] = "";

        assert_int_equal(chunk_read(&c, pieces[i].json, strlen(pieces[i].json), &e), 0);
        for (size_t k = 0; k < c.n_text; k++)
            snprintf(text + strlen(text), sizeof text - strlen(text),
                     c.text[k].is_thinking ? "[%.*s]" : "%.*s", (int)c.text[k].len,
                     c.text[k].text);
        assert_string_equal(text, pieces[i].text);
        chunk_free(&c);
    }
}

static void no_text_of_a_piece_is_lost(void **state)
{
    (void)state;
    for (size_t n = 7; n < CHUNK_TEXTS + 3; n++) {
        struct chunk c;
        struct err e = ERR_INIT;
        char json[64 * (CHUNK_TEXTS + 4)] = "{\"choices\":[{\"message\":{\"content\":[";

        for (size_t i = 0; i < n; i++)
            snprintf(json + strlen(json), sizeof json - strlen(json), "%s{\"text\":\"%zu\"}",
                     i > 0 ? "," : "", i);
        strcat(json, "]}}]}");
        assert_int_equal(chunk_read(&c, json, strlen(json), &e), n <= CHUNK_TEXTS ? 0 : -1);
        assert_int_equal(c.n_text, n <= CHUNK_TEXTS ? n : CHUNK_TEXTS);
        chunk_free(&c);
    }
}

static void counts_of_pieces(void **state)
{
    static const char openai[] =
        "{\"choices\":[],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":3,"
        "\"prompt_tokens_details\":{\"cached_tokens\":8}}}";
    static const char llama[] =
        "{\"choices\":[{\"delta\":{}}],\"timings\":{\"cache_n\":5,\"prompt_n\":7,"
        "\"prompt_per_second\":100.5,\"predicted_n\":4,\"predicted_per_second\":20.25},"
        "\"prompt_progress\":{\"total\":12,\"cache\":5,\"processed\":9}}";
    static const char wrong[] =
        "{\"usage\":{\"prompt_tokens\":4294967296,\"completion_tokens\":3},"
        "\"timings\":{\"cache_n\":4294967295,\"prompt_n\":7,\"predicted_n\":4,"
        "\"prompt_per_second\":-3,\"predicted_per_second\":1e999},"
        "\"prompt_progress\":{\"total\":1,\"processed\":9}}";
    struct chunk c;
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(chunk_read(&c, openai, strlen(openai), &e), 0);
    assert_true(c.has_usage && c.has_cached);
    assert_int_equal(c.n_prompt, 12);
    assert_int_equal(c.n_cached, 8);
    assert_int_equal(c.n_decoded, 3);
    assert_true(isnan(c.answer_tps));
    chunk_free(&c);
    assert_int_equal(chunk_read(&c, llama, strlen(llama), &e), 0);
    assert_true(c.has_usage && c.has_cached && c.has_progress);
    assert_int_equal(c.n_prompt, 12);
    assert_int_equal(c.n_cached, 5);
    assert_int_equal(c.n_done, 9);
    assert_true(c.prompt_tps == 100.5 && c.answer_tps == 20.25);
    chunk_free(&c);
    assert_int_equal(chunk_read(&c, wrong, strlen(wrong), &e), 0);
    assert_false(c.has_usage || c.has_cached || c.has_progress);
    assert_true(isnan(c.prompt_tps) && isnan(c.answer_tps));
    chunk_free(&c);
}

static void pieces_that_are_none(void **state)
{
    static const char *const bad[] = { "", "{", "[]", "7", "null", "\"a\"", "{}{}", "{\"a\":1}x",
                                       "{\"\xff\":1}" };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct chunk c;
        struct err e = ERR_INIT;

        assert_int_equal(chunk_read(&c, bad[i], strlen(bad[i]), &e), -1);
        assert_int_equal(e.code, ERR_FORMAT);
        chunk_free(&c);
    }
}

static void errors_in_pieces(void **state)
{
    static const struct {
        const char *json, *error;
    } rows[] = {
        { "{\"error\":{\"message\":\"m\"}}", "m" },
        { "{\"error\":\"m\"}", "m" },
        { "{\"error\":{}}", "it does not say which" },
        { "{\"error\":null}", NULL },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct chunk c;
        struct err e = ERR_INIT;

        assert_int_equal(chunk_read(&c, rows[i].json, strlen(rows[i].json), &e), 0);
        if (rows[i].error == NULL)
            assert_null(c.error);
        else
            assert_string_equal(c.error, rows[i].error);
        chunk_free(&c);
    }
}

/* ---- metrics ---- */

static bool read_metrics(struct mw_server_figures *f, const char *text)
{
    *f = (struct mw_server_figures){ 0 };
    server_metrics_clear(f);
    return server_metrics_read(f, text, strlen(text));
}

static void metrics_of_vllm(void **state)
{
    struct mw_server_figures f;

    (void)state;
    assert_true(read_metrics(
        &f, "# HELP vllm:num_requests_running Number of requests.\n"
            "# TYPE vllm:num_requests_running gauge\n"
            "vllm:num_requests_running{engine=\"0\",model_name=\"a } b\"} 2.0\n"
            "vllm:num_requests_running{engine=\"1\",model_name=\"a\\\"} 9\"} 3.0\n"
            "vllm:num_requests_waiting{engine=\"0\"} 0.0\n"
            "vllm:kv_cache_usage_perc{engine=\"0\"} 0.25\n"
            "vllm:kv_cache_usage_perc{engine=\"1\"} 0.5\n"
            "vllm:prefix_cache_queries_total{engine=\"0\"} 200.0\n"
            "vllm:prefix_cache_hits_total{engine=\"0\"} 50.0 1700000000000\n"
            "python_gc_objects_collected_total{generation=\"0\"} 1e5\n"));
    assert_true(f.running == 5 && f.waiting == 0);
    assert_true(f.kv_share == 0.5 && f.cache_share == 0.25);
    assert_true(isnan(f.budget_bytes));
}

static void metrics_of_llama_and_sglang(void **state)
{
    struct mw_server_figures f;

    (void)state;
    assert_true(read_metrics(&f, "llamacpp:requests_processing 1\nllamacpp:requests_deferred 4\n"
                                 "llamacpp:predicted_tokens_seconds 31.5\n"
                                 "llamacpp:prompt_tokens_seconds 250\r\n"));
    assert_true(f.running == 1 && f.waiting == 4 && f.answer_tps == 31.5);
    assert_true(f.prompt_tps == 250 && isnan(f.kv_share));
    assert_true(read_metrics(&f, "sglang:num_running_reqs{x=\"y\"} 1\nsglang:token_usage 0.75"));
    assert_true(f.running == 1 && f.kv_share == 0.75);
}

static void metrics_of_memwall(void **state)
{
    struct mw_server_figures f;

    (void)state;
    assert_true(read_metrics(&f, "memwall_requests_running 1\nmemwall_requests_waiting 2\n"
                                 "memwall_budget_bytes 2147483648\nmemwall_charged_bytes 1e9\n"
                                 "memwall_pinned_bytes 800000000\nmemwall_stall_share 0.71\n"
                                 "memwall_prompt_tokens_total 30\n"
                                 "memwall_prompt_tokens_reused_total 10\n"
                                 "memwall_verdict{binds=\"memory\"} 0\n"
                                 "memwall_verdict{binds=\"disk\"} 1\n"
                                 "memwall_verdict_share 0.7\n"));
    assert_true(f.budget_bytes == 2147483648.0 && f.pinned_bytes == 800000000);
    assert_true(f.cache_share == 0.25);
    assert_int_equal(f.verdict, MW_BINDS_DISK);
    assert_true(f.verdict_share == 0.7);
}

static void metrics_that_are_none(void **state)
{
    static const char *const bad[] = {
        "", "\n\n", "<html>", "vllm:num_requests_running", "vllm:num_requests_running{",
        "vllm:num_requests_running{a=\"", "vllm:num_requests_running NaN",
        "vllm:num_requests_running +Inf", "vllm:num_requests_running -1",
        "vllm:num_requests_running x", "# vllm:num_requests_running 1", "x 1",
        "vllm:num_requests_running_more 1", " vllm:num_requests_running 1",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct mw_server_figures f;

        assert_false(read_metrics(&f, bad[i]));
        assert_true(isnan(f.running));
    }
}

/* ---- words ---- */

/* All rows as one text. */
static char *rows_text(const struct mw_server_figures *f, const struct mw_model_info *m,
                       char buf[4000])
{
    struct server_row rows[SERVER_ROWS];
    size_t n = server_rows(f, m, rows);

    buf[0] = '\0';
    for (size_t i = 0; i < n; i++)
        snprintf(buf + strlen(buf), 4000 - strlen(buf), "%s%s: %s\n",
                 rows[i].is_unknown ? "?" : "", rows[i].label, rows[i].text);
    return buf;
}

static void words_about_a_server_that_says_little(void **state)
{
    struct mw_server_figures f;
    struct mw_model_info m = { .name = "alpha" };
    char text[4000];

    (void)state;
    f = (struct mw_server_figures){ .address = "host:1", .is_asked = true, .n_piece = 3,
                                    .start_ns = 1, .first_ns = 500000001,
                                    .last_ns = 1500000001,
                                    .no_metrics = "the server has no /metrics (status 404)" };
    server_metrics_clear(&f);
    assert_string_equal(rows_text(&f, &m, text),
                        "server: host:1\n"
                        "model: alpha, context not reported\n"
                        "answer: 3 pieces, 2.00 pieces/s, first after 0.5 s\n"
                        "?tokens: counted at the end of an answer, if the server reports them\n"
                        "?no metrics: the server has no /metrics (status 404)\n"
                        "?not known: its memory, weights, layers and reads, and what limits it: "
                        "no server reports these but memwall's\n");
}

static void one_of_something_is_not_plural(void **state)
{
    struct mw_server_figures f;
    struct mw_model_info m = { .name = "alpha" };
    char text[4000];

    (void)state;
    assert_true(read_metrics(&f, "memwall_kv_tokens 1\n"));
    f.is_asked = true;
    f.start_ns = 1;
    f.n_piece = f.n_prompt = f.n_decoded = 1;
    assert_non_null(strstr(rows_text(&f, &m, text), "\nanswer: 1 piece\n"));
    f.has_usage = true;
    assert_non_null(strstr(rows_text(&f, &m, text), "\nprompt: 1 token\nanswer: 1 token\n"));
    assert_non_null(strstr(text, "\nkv: 1 token\n"));
}

static void words_about_memwall(void **state)
{
    struct mw_server_figures f;
    struct mw_model_info m = {
        .name = "alpha", .arch = "gemma4", .type = "Q4_0", .n_ctx_train = 4096
    };
    char text[4000];

    (void)state;
    assert_true(read_metrics(&f, "memwall_requests_running 1\nmemwall_requests_waiting 2\n"
                                 "memwall_budget_bytes 2147483648\n"
                                 "memwall_charged_bytes 1073741824\n"
                                 "memwall_pinned_bytes 536870912\n"
                                 "memwall_read_bytes_per_token 1048576\n"
                                 "memwall_stall_share 0.71\nmemwall_kv_bytes 2097152\n"
                                 "memwall_kv_tokens 412\nmemwall_verdict{binds=\"disk\"} 1\n"
                                 "memwall_verdict_share 0.7\n"));
    f.kind = MW_SERVER_MEMWALL;
    f.is_asked = f.has_usage = f.has_cached = true;
    f.n_prompt = 12;
    f.n_cached = 8;
    f.n_decoded = 21;
    f.start_ns = 1;
    f.first_ns = 1000000001;
    f.last_ns = 3000000001;
    snprintf(f.address, sizeof f.address, "host:1");
    assert_string_equal(rows_text(&f, &m, text),
                        "server: host:1 (memwall)\n"
                        "model: alpha, gemma4, Q4_0, context 4,096\n"
                        "prompt: 12 tokens, 8 of them in its cache\n"
                        "answer: 21 tokens, 10.0 tok/s, first after 1.0 s\n"
                        "requests: 1 running, 2 waiting\n"
                        "kv: 2.00 MiB, 412 tokens\n"
                        "memory: 1.00 GiB charged of 2.00 GiB, 512 MiB pinned\n"
                        "reads: 1.00 MiB a token, stalls 71 % of a pass\n"
                        "verdict: disk-bound, 70 % of a token's time\n");
}

static void receipts_of_a_server_claim_nothing_about_its_disk(void **state)
{
    struct mw_receipt r = { .is_remote = true, .n_decoded = 21, .n_prompt = 4, .n_reused = 8,
                            .first_ns = 800000000, .decode_ns = 2000000000 };
    char text[1024];

    (void)state;
    assert_string_equal(receipt_line(text, sizeof text, &r, true),
                        "21 tokens - 2.0 s - 10 tok/s - first after 0.8 s");
    assert_string_equal(receipt_short(text, sizeof text, &r), "10 tok/s");
    receipt_why(text, sizeof text, &r, 0, NULL);
    assert_non_null(strstr(text, "21 tokens came in 2.0 s (10 tok/s), the first after 0.8 s"));
    assert_null(strstr(text, "disk"));
    r.is_in_pieces = true;
    assert_string_equal(receipt_line(text, sizeof text, &r, true),
                        "21 pieces - 2.0 s - first after 0.8 s");
    assert_string_equal(receipt_short(text, sizeof text, &r), "21 pieces");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_are_read_wherever_they_are_cut),
        cmocka_unit_test(an_event_has_a_limit),
        cmocka_unit_test(the_taker_ends_a_stream),
        cmocka_unit_test(texts_of_pieces),
        cmocka_unit_test(no_text_of_a_piece_is_lost),
        cmocka_unit_test(counts_of_pieces),
        cmocka_unit_test(pieces_that_are_none),
        cmocka_unit_test(errors_in_pieces),
        cmocka_unit_test(metrics_of_vllm),
        cmocka_unit_test(metrics_of_llama_and_sglang),
        cmocka_unit_test(metrics_of_memwall),
        cmocka_unit_test(metrics_that_are_none),
        cmocka_unit_test(words_about_a_server_that_says_little),
        cmocka_unit_test(one_of_something_is_not_plural),
        cmocka_unit_test(words_about_memwall),
        cmocka_unit_test(receipts_of_a_server_claim_nothing_about_its_disk),
    };

    return cmocka_run_group_tests_name("remote", tests, NULL, NULL);
}
