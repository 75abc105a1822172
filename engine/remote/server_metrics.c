#include "config.h"

#include "engine/remote/server_metrics.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A server with several models or engines has a line for each of them. */
enum how { SUM, MOST };

/* Counters from which a share is made. */
struct cache {
    double hits, asked;
};

#define OF(member) offsetof(struct mw_server_figures, member)

static const struct {
    const char *name;
    enum how how;
    size_t at; /* of a double in the figures */
} gauges[] = {
    { "vllm:num_requests_running", SUM, OF(running) },
    { "vllm:num_requests_waiting", SUM, OF(waiting) },
    { "vllm:kv_cache_usage_perc", MOST, OF(kv_share) },
    { "vllm:gpu_cache_usage_perc", MOST, OF(kv_share) },
    { "llamacpp:requests_processing", SUM, OF(running) },
    { "llamacpp:requests_deferred", SUM, OF(waiting) },
    { "llamacpp:kv_cache_usage_ratio", MOST, OF(kv_share) },
    { "llamacpp:kv_cache_tokens", SUM, OF(kv_tokens) },
    { "llamacpp:prompt_tokens_seconds", MOST, OF(prompt_tps) },
    { "llamacpp:predicted_tokens_seconds", MOST, OF(answer_tps) },
    { "sglang:num_running_reqs", SUM, OF(running) },
    { "sglang:num_queue_reqs", SUM, OF(waiting) },
    { "sglang:token_usage", MOST, OF(kv_share) },
    { "sglang:cache_hit_rate", MOST, OF(cache_share) },
    { "memwall_requests_running", SUM, OF(running) },
    { "memwall_requests_waiting", SUM, OF(waiting) },
    { "memwall_budget_bytes", SUM, OF(budget_bytes) },
    { "memwall_charged_bytes", SUM, OF(charged_bytes) },
    { "memwall_resident_bytes", SUM, OF(resident_bytes) },
    { "memwall_pinned_bytes", SUM, OF(pinned_bytes) },
    { "memwall_kv_bytes", SUM, OF(kv_bytes) },
    { "memwall_kv_tokens", SUM, OF(kv_tokens) },
    { "memwall_read_bytes_per_token", SUM, OF(read_per_token) },
    { "memwall_stall_share", MOST, OF(stall_share) },
    { "memwall_verdict_share", MOST, OF(verdict_share) },
    { "memwall_prefill_tokens_per_second", MOST, OF(prompt_tps) },
    { "memwall_decode_tokens_per_second", MOST, OF(answer_tps) },
};

static const struct {
    const char *name;
    bool is_hit, is_miss; /* a miss and a hit are both asked for */
} counters[] = {
    { "vllm:prefix_cache_queries_total", false, true },
    { "vllm:prefix_cache_hits_total", true, false },
    { "vllm:gpu_prefix_cache_queries_total", false, true },
    { "vllm:gpu_prefix_cache_hits_total", true, false },
    { "memwall_prompt_tokens_reused_total", true, true },
    { "memwall_prompt_tokens_total", false, true },
};

static double *number_at(struct mw_server_figures *f, size_t at)
{
    return (double *)((char *)f + at);
}

void server_metrics_clear(struct mw_server_figures *f)
{
    for (size_t i = 0; i < sizeof gauges / sizeof gauges[0]; i++)
        *number_at(f, gauges[i].at) = NAN;
    f->cache_share = NAN;
    f->verdict = MW_BINDS_NONE;
}

static bool is_name(const char *name, size_t n, const char *of)
{
    return strlen(of) == n && memcmp(name, of, n) == 0;
}

static bool take_gauge(struct mw_server_figures *f, const char *name, size_t n, double value)
{
    for (size_t i = 0; i < sizeof gauges / sizeof gauges[0]; i++) {
        double *to = number_at(f, gauges[i].at);

        if (!is_name(name, n, gauges[i].name))
            continue;
        if (isnan(*to))
            *to = value;
        else
            *to = gauges[i].how == SUM ? *to + value : fmax(*to, value);
        return true;
    }
    return false;
}

static bool take_counter(struct cache *c, const char *name, size_t n, double value)
{
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++)
        if (is_name(name, n, counters[i].name)) {
            c->hits += counters[i].is_hit ? value : 0;
            c->asked += counters[i].is_miss ? value : 0;
            return true;
        }
    return false;
}

/* memwall_verdict{binds="disk"} 1 */
static bool take_verdict(struct mw_server_figures *f, const char *name, size_t n,
                         const char *labels, size_t n_label, double value)
{
    static const char before[] = "{binds=\"";
    size_t at = sizeof before - 1;

    if (!is_name(name, n, "memwall_verdict") || n_label < at ||
        memcmp(labels, before, at) != 0)
        return false;
    for (int b = MW_BINDS_NONE; b < MW_BINDS_COUNT && value > 0; b++) {
        const char *word = mw_binds_name((enum mw_binds)b);

        if (n_label >= at + strlen(word) + 2 && memcmp(labels + at, word, strlen(word)) == 0 &&
            labels[at + strlen(word)] == '"')
            f->verdict = (enum mw_binds)b;
    }
    return true;
}

/* The length of the labels, with their brackets; a bracket may be in a text. */
static size_t labels_length(const char *s, size_t n)
{
    bool is_inside = false;

    if (n == 0 || s[0] != '{')
        return 0;
    for (size_t i = 1; i < n; i++) {
        if (is_inside && s[i] == '\\')
            i++;
        else if (s[i] == '"')
            is_inside = !is_inside;
        else if (s[i] == '}' && !is_inside)
            return i + 1;
    }
    return n;
}

static bool take_line(struct mw_server_figures *f, struct cache *c, const char *line, size_t n)
{
    size_t name = 0, labels, at;
    char number[40], *end;
    double value;

    while (name < n && line[name] != '{' && line[name] != ' ')
        name++;
    labels = labels_length(line + name, n - name);
    at = name + labels;
    while (at < n && line[at] == ' ')
        at++;
    if (name == 0 || line[0] == '#' || at == n)
        return false;
    n = n - at < sizeof number - 1 ? n - at : sizeof number - 1;
    memcpy(number, line + at, n);
    number[n] = '\0';
    value = strtod(number, &end);
    if (end == number || !isfinite(value) || value < 0)
        return false;
    return take_gauge(f, line, name, value) || take_counter(c, line, name, value) ||
           take_verdict(f, line, name, line + name, labels, value);
}

bool server_metrics_read(struct mw_server_figures *f, const char *text, size_t n)
{
    struct cache cache = { 0 };
    bool any = false;

    for (size_t at = 0; at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t len = end != NULL ? (size_t)(end - text) - at : n - at;

        any |= take_line(f, &cache, text + at, len);
        at += len + 1;
    }
    if (cache.asked > 0)
        f->cache_share = fmin(cache.hits / cache.asked, 1);
    return any;
}
