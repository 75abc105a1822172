/* See pages.h. */
#include "config.h"

#include "src/serve/pages.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/digest.h"
#include "src/command.h"
#include "src/serve/request.h"

/* The version of Ollama whose protocol this is.  Clients refuse servers with an older one than
 * they need. */
#define OLLAMA_VERSION "0.9.0"

/* A line of a Modelfile without its keyword, as Ollama shows it. */
#define LINE(value) "%-30s " value "\n"

#define PAGE_REST 2048 /* bytes of a page about the model beside its texts */

void pages_health(bool is_ready, struct json *out)
{
    json_object(out, NULL);
    json_string(out, "status", is_ready ? "ok" : "loading");
    json_end(out);
    json_line(out);
}

static void write_model(const struct reply_model *m, struct json *out)
{
    json_object(out, NULL);
    json_string(out, "id", m->id);
    json_string(out, "object", "model");
    json_u64(out, "created", (uint64_t)m->loaded);
    json_string(out, "owned_by", "memwall");
    json_u64(out, "max_model_len", m->n_ctx);
    json_end(out);
}

static void write_models(const struct reply_model *m, struct json *out)
{
    json_object(out, NULL);
    json_string(out, "object", "list");
    json_array(out, "data");
    write_model(m, out);
    json_end(out);
    json_end(out);
    json_line(out);
}

static unsigned no_model(const struct reply_model *m, const char *name, struct err *e)
{
    err_set(e, ERR_ARGUMENT, "there is no model \"%.100s\"; this server has \"%.150s\"", name,
            m->id);
    err_at(e, NULL, ERR_NO_OFFSET, "model");
    return 404;
}

static unsigned one_model(const struct reply_model *m, const char *name, struct json *out,
                          struct err *e)
{
    if (!request_names_model(name, m->id))
        return no_model(m, name, e);
    write_model(m, out);
    json_line(out);
    return 200;
}

/* "7.6B", "135M" */
static void parameters(uint64_t n, char *buf, size_t size)
{
    if (n >= 1000000000)
        snprintf(buf, size, "%.1fB", (double)n / 1e9);
    else
        snprintf(buf, size, "%.0fM", (double)n / 1e6);
}

static void write_details(const struct reply_model *m, struct json *out)
{
    char size[24];

    parameters(m->info.n_param, size, sizeof size);
    json_object(out, "details");
    json_string(out, "format", "gguf");
    json_string(out, "family", m->info.arch);
    json_array(out, "families");
    json_string(out, NULL, m->info.arch);
    json_end(out);
    json_string(out, "parameter_size", size);
    json_string(out, "quantization_level", m->info.type);
    json_end(out);
}

/* Ollama's digest is that of a list of files.  Clients show its beginning, and compare it to see
 * whether a name has another model now. */
static void write_digest(const struct reply_model *m, struct json *out)
{
    char facts[sizeof m->id + 100], digest[DIGEST_HEX];
    int n = snprintf(facts, sizeof facts, "%s %s %" PRIu64 " %" PRIu64, m->id, m->info.type,
                     m->info.n_param, m->info.file_bytes);

    digest_sha256(facts, (size_t)n, digest);
    json_string(out, "digest", digest);
}

#define STAYS_S ((time_t)100 * 365 * 86400) /* a model that is served is not unloaded */

static void write_tags(const struct reply_model *m, bool is_loaded, struct json *out)
{
    char at[40];

    json_object(out, NULL);
    json_array(out, "models");
    json_object(out, NULL);
    json_string(out, "name", m->id);
    json_string(out, "model", m->id);
    if (is_loaded) {
        json_u64(out, "context_length", m->n_ctx);
        json_string(out, "expires_at", reply_time(m->loaded + STAYS_S, at));
        json_u64(out, "size_vram", 0);
    } else {
        json_string(out, "modified_at", reply_time(m->loaded, at));
    }
    json_u64(out, "size", m->info.file_bytes);
    write_digest(m, out);
    write_details(m, out);
    json_end(out);
    json_end(out);
    json_end(out);
    json_line(out);
}

/* Write a text, unless the page would get longer than the memory that a connection has for it. */
static void write_text(struct json *out, const char *key, const char *text, size_t n)
{
    size_t used = out->used;
    bool has_one = out->has_one;

    json_string_n(out, key, text, n);
    if (out->used > WEB_OUT_BYTES - PAGE_REST) {
        out->used = used;
        out->has_one = has_one;
        json_fit(out);
    }
}

/* The values in force as lines of a Modelfile: "stop                           \"<end>\"". */
static void write_parameters(const struct reply_model *m, struct json *out)
{
    const struct mw_sampling *s = &m->chat->sampling;
    struct json text;

    json_start(&text);
    json_print(&text, LINE("%" PRIu32), "num_ctx", m->n_ctx);
    if (m->chat->n_predict > 0)
        json_print(&text, LINE("%" PRIu32), "num_predict", m->chat->n_predict);
    json_print(&text, LINE("%g"), "temperature", (double)s->temp);
    json_print(&text, LINE("%d"), "top_k", s->top_k);
    json_print(&text, LINE("%g"), "top_p", (double)s->top_p);
    json_print(&text, LINE("%g"), "min_p", (double)s->min_p);
    json_print(&text, LINE("%g"), "repeat_penalty", (double)s->repeat_penalty);
    json_print(&text, LINE("%" PRIu32), "repeat_last_n", s->repeat_last);
    if (s->seed.is_set)
        json_print(&text, LINE("%" PRIu64), "seed", s->seed.value);
    for (const char *const *stop = m->chat->stop; stop != NULL && *stop != NULL; stop++) {
        json_print(&text, "%-30s \"", "stop");
        json_inside(&text, *stop, strlen(*stop));
        json_raw(&text, "\"\n", 2);
    }
    out->failed = out->failed || text.failed;
    if (!text.failed)
        write_text(out, "parameters", text.buf, text.used - 1);
    json_release(&text);
}

/* The chat template in force, unless it is one of memwall. */
static void write_template(const struct reply_model *m, struct json *out)
{
    struct err ignored = ERR_INIT;
    char *text = NULL;
    size_t len = 0;

    if (m->chat->format == NULL && mw_model_template(m->m, &text, &len, &ignored) == 0 &&
        text != NULL)
        write_text(out, "template", text, len);
    free(text);
}

static void write_show(const struct reply_model *m, struct json *out)
{
    char key[64], at[40];

    json_object(out, NULL);
    write_parameters(m, out);
    if (m->chat->system != NULL)
        write_text(out, "system", m->chat->system, strlen(m->chat->system));
    write_template(m, out);
    write_details(m, out);
    json_object(out, "model_info");
    json_string(out, "general.architecture", m->info.arch);
    json_string(out, "general.basename", m->info.name);
    json_u64(out, "general.parameter_count", m->info.n_param);
    snprintf(key, sizeof key, "%s.context_length", m->info.arch);
    json_u64(out, key, m->n_ctx);
    snprintf(key, sizeof key, "%s.block_count", m->info.arch);
    json_u64(out, key, m->info.n_layer);
    snprintf(key, sizeof key, "%s.embedding_length", m->info.arch);
    json_u64(out, key, m->info.n_embd);
    json_end(out);
    json_array(out, "capabilities");
    json_string(out, NULL, "completion");
    if (m->has_tools)
        json_string(out, NULL, "tools");
    if (m->thinks)
        json_string(out, NULL, "thinking");
    json_end(out);
    json_string(out, "modified_at", reply_time(m->loaded, at));
    json_end(out);
    json_line(out);
}

/* {"model": NAME}; older clients write "name". */
static unsigned show(const struct reply_model *m, const char *body, size_t len,
                     struct json *out, struct err *e)
{
    struct json_doc *doc = NULL;
    const struct json_node *name;
    unsigned status = 200;

    if (json_parse(&doc, body, len, e) != 0)
        return 400;
    name = json_get(json_root(doc), "model");
    if (name == NULL)
        name = json_get(json_root(doc), "name");
    if (json_as_string(name) == NULL) {
        err_set(e, ERR_ARGUMENT, "this field is missing");
        err_at(e, NULL, ERR_NO_OFFSET, "model");
        status = 400;
    } else if (!request_names_model(json_as_string(name), m->id)) {
        status = no_model(m, json_as_string(name), e);
    } else {
        write_show(m, out);
    }
    json_free(doc);
    return status;
}

unsigned pages_write(enum web_page page, const struct reply_model *m, const char *body,
                     size_t len, struct json *out, struct err *e)
{
    switch (page) {
    case PAGE_ROOT: json_print(out, "memwall is running\n"); break;
    case PAGE_MODELS: write_models(m, out); break;
    case PAGE_MODEL: return one_model(m, body, out, e);
    case PAGE_OLLAMA_TAGS: write_tags(m, false, out); break;
    case PAGE_OLLAMA_PS: write_tags(m, true, out); break;
    case PAGE_OLLAMA_SHOW: return show(m, body, len, out, e);
    case PAGE_OLLAMA_VERSION:
        json_object(out, NULL);
        json_string(out, "version", OLLAMA_VERSION);
        json_string(out, "memwall", mw_version());
        json_end(out);
        json_line(out);
        break;
    case PAGE_HEALTH:
    case PAGE_METRICS:
    case PAGE_TELEMETRY:
    case PAGE_SETTINGS:
    case PAGE_CHANGES: break; /* of the server */
    }
    return 200;
}

/* "2026-11-27T06:00:00Z 127.0.0.1 POST /v1/chat/completions 200 prompt 12 + 30 reused, answer 20
 * in 3.41 s, stop" */
size_t pages_log(const struct web_record *r, char buf[PAGES_LOG_BYTES])
{
    char at[40];
    const struct job *j = r->job;
    /* Each text is cut, so that all of them fit: a client may send a method of any length. */
    int n = snprintf(buf, PAGES_LOG_BYTES, "%s %.64s %.20s %.200s ", reply_time(time(NULL), at),
                     r->peer, r->method, r->path);

    if (r->status > 0)
        n += snprintf(buf + n, PAGES_LOG_BYTES - (size_t)n, "%u", r->status);
    else
        n += snprintf(buf + n, PAGES_LOG_BYTES - (size_t)n, "-");
    if (j != NULL && j->has_begun)
        n += snprintf(buf + n, PAGES_LOG_BYTES - (size_t)n,
                      " prompt %" PRIu64 " + %" PRIu64 " reused", j->n_prompt - j->n_cached,
                      j->n_cached);
    /* The engine counts tokens until it stops, which may be after the client went away. */
    if (j != NULL && j->has_begun && j->state == JOB_ENDED)
        n += snprintf(buf + n, PAGES_LOG_BYTES - (size_t)n, ", answer %" PRIu32,
                      j->receipt.n_decoded);
    n += snprintf(buf + n, PAGES_LOG_BYTES - (size_t)n, " in %.2f s", (double)r->ns / 1e9);
    if (r->is_cut)
        n += snprintf(buf + n, PAGES_LOG_BYTES - (size_t)n, ", the client went away");
    return (size_t)n;
}
