/* See metrics.h. */
#include "config.h"

#include "src/serve/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/words/budget.h"

#define SECOND 1e9

void metrics_request(struct metrics *m, unsigned status)
{
    m->requests[status / 100 < 6 ? status / 100 : 5]++;
}

void metrics_answer(struct metrics *m, const struct mw_receipt *r)
{
    m->answers++;
    m->cancelled += r->done == MW_DONE_CANCELLED;
    m->prompt_tokens += r->n_prompt_done;
    m->reused_tokens += r->n_reused;
    m->answer_tokens += r->n_decoded;
    m->prefill_ns += r->prefill_ns;
    m->decode_ns += r->decode_ns;
    m->stall_ns += r->stall_ns;
}

/* The lines before the values of a name. */
static void begin(struct json *out, const char *name, const char *type, const char *help)
{
    json_print(out, "# HELP memwall_%s %s\n# TYPE memwall_%s %s\n", name, help, name, type);
}

static void value(struct json *out, const char *name, const char *label, const char *of,
                  double v)
{
    if (label != NULL)
        json_print(out, "memwall_%s{%s=\"%s\"} %.17g\n", name, label, of, v);
    else
        json_print(out, "memwall_%s %.17g\n", name, v);
}

static void gauge(struct json *out, const char *name, const char *help, double v)
{
    begin(out, name, "gauge", help);
    value(out, name, NULL, NULL, v);
}

static void counter(struct json *out, const char *name, const char *help, double v)
{
    begin(out, name, "counter", help);
    value(out, name, NULL, NULL, v);
}

/* A figure that is not known has no value. */
static void gauge_known(struct json *out, const char *name, const char *help, bool is_known,
                        double v)
{
    if (is_known)
        gauge(out, name, help, v);
}

static void gauge_os(struct json *out, const char *name, const char *help,
                     const struct mw_sample *s, const struct mw_os_value *v)
{
    gauge_known(out, name, help, s->os.t_ns != 0 && v->why_not == NULL, (double)v->value);
}

/* The value of a label: quotes, backslashes and line ends are escaped. */
static void label(struct json *out, const char *name, const char *text)
{
    json_print(out, "%s=\"", name);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            json_raw(out, "\\", 1);
        json_raw(out, *text == '\n' ? " " : text, 1);
    }
    json_raw(out, "\"", 1);
}

static void write_info(const struct mw_run *r, struct json *out)
{
    begin(out, "info", "gauge", "The program and its model; the value is 1.");
    json_print(out, "memwall_info{");
    label(out, "version", mw_version());
    json_raw(out, ",", 1);
    label(out, "model", r->model);
    json_raw(out, ",", 1);
    label(out, "type", r->type);
    json_raw(out, ",", 1);
    label(out, "arch", r->arch);
    json_raw(out, ",", 1);
    label(out, "io", r->io);
    json_raw(out, ",", 1);
    label(out, "isa", r->isa);
    json_print(out, "} 1\n");
}

static void write_memory(const struct mw_sample *s, struct json *out)
{
    gauge(out, "budget_bytes", "The memory budget.", (double)s->run.budget_bytes);
    gauge(out, "given_bytes", "Memory that a budget of auto has given back to other programs.",
          (double)budget_given(s));
    gauge_os(out, "charged_bytes", "Memory that the kernel charges to the control group.", s,
             &s->os.charged);
    gauge_os(out, "charged_peak_bytes", "The largest charge.", s, &s->os.charged_peak);
    gauge_os(out, "resident_bytes", "Resident memory of the process.", s, &s->os.rss);
    gauge_os(out, "model_cached_bytes", "Bytes of the model in the page cache.", s,
             &s->os.model_cached);
    begin(out, "plan_bytes", "gauge", "Items of the memory plan.");
    for (int i = 0; i < MW_PLAN_ROWS; i++)
        value(out, "plan_bytes", "item", mw_plan_row_name((enum mw_plan_row)i),
              (double)s->mem.plan[i]);
    begin(out, "used_bytes", "gauge", "Memory that is used of each item of the plan.");
    for (int i = 0; i < MW_PLAN_ROWS; i++)
        value(out, "used_bytes", "item", mw_plan_row_name((enum mw_plan_row)i),
              (double)s->mem.used[i]);
    gauge(out, "pinned_bytes", "Weights that are kept in memory.",
          (double)s->mem.used[MW_ROW_PINNED]);
    gauge(out, "kv_bytes", "Memory of keys and values in use.", (double)s->kv.bytes_used);
    gauge(out, "kv_disk_bytes", "Keys and values on the disk.", (double)s->kv.disk_bytes);
    gauge(out, "kv_tokens", "Tokens whose keys and values are held.", (double)s->kv.tokens);
    gauge(out, "kv_capacity_tokens", "The context in tokens.", (double)s->kv.capacity);
}

static void write_speed(const struct mw_sample *s, struct json *out)
{
    struct mw_rates r;

    mw_rates(s, &r);
    counter(out, "disk_read_bytes_total", "Bytes read, of files and of keys and values.",
            (double)s->io.bytes_read);
    counter(out, "kv_disk_read_bytes_total", "Keys and values read back, a part of these.",
            (double)s->kv.disk_read);
    gauge_known(out, "read_bytes_per_token", "Bytes read for a token, in the last passes.",
                r.read_per_token >= 0, r.read_per_token);
    gauge_known(out, "stall_share", "Share of a pass spent waiting for the disk.",
                r.stall_share >= 0, r.stall_share);
    gauge_known(out, "decode_tokens_per_second", "Rate of answers, in the last passes.",
                r.decode_last >= 0, r.decode_last);
    gauge_known(out, "prefill_tokens_per_second", "Rate of the last prompt.", r.prefill >= 0,
                r.prefill);
    begin(out, "verdict", "gauge", "What limits the speed: 1 for one of them.");
    for (int i = 0; i < MW_BINDS_COUNT; i++)
        value(out, "verdict", "binds", mw_binds_name((enum mw_binds)i),
              s->verdict.binds == (enum mw_binds)i);
    gauge(out, "verdict_share", "Share of a token's time that this takes.", s->verdict.share);
}

void metrics_write(const struct metrics *m, const struct metrics_now *now, struct json *out)
{
    static const char *const classes[] = { "cut", "1xx", "2xx", "3xx", "4xx", "5xx" };

    write_info(&now->sample->run, out);
    begin(out, "requests_total", "counter", "Requests, by their status.");
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        value(out, "requests_total", "status", classes[i], (double)m->requests[i]);
    counter(out, "answers_total", "Answers that have ended.", (double)m->answers);
    counter(out, "answers_cancelled_total", "Answers whose client went away.",
            (double)m->cancelled);
    gauge(out, "requests_running", "Requests that are being answered.", now->is_running);
    gauge(out, "requests_waiting", "Requests in the queue.", now->waiting);
    gauge(out, "connections", "Connections that are open.", now->connections);
    gauge(out, "held_bytes", "Memory of requests and answers.", (double)now->held_bytes);
    gauge(out, "held_limit_bytes", "The limit of this memory.", (double)now->held_most_bytes);
    counter(out, "prompt_tokens_total", "Prompt tokens that were evaluated.",
            (double)m->prompt_tokens);
    counter(out, "prompt_tokens_reused_total",
            "Prompt tokens whose keys and values were still there.", (double)m->reused_tokens);
    counter(out, "answer_tokens_total", "Tokens of answers.", (double)m->answer_tokens);
    counter(out, "prefill_seconds_total", "Time spent on prompts.",
            (double)m->prefill_ns / SECOND);
    counter(out, "decode_seconds_total", "Time spent on answers.",
            (double)m->decode_ns / SECOND);
    if (!mw_run_is_mapped(&now->sample->run)) /* there, nobody counts it */
        counter(out, "stall_seconds_total", "Part of it spent waiting for the disk.",
                (double)m->stall_ns / SECOND);
    write_memory(now->sample, out);
    write_speed(now->sample, out);
}
