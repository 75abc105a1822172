#include "config.h"

#include "engine/telemetry/json.h"

#include <stdio.h>
#include <string.h>

#include "engine/telemetry/fields.h"
#include "engine/telemetry/rates.h"

/* Copies, because the table addresses structs as bytes. */
static uint64_t u64_at(const void *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof v);
    return v;
}

static void write_os(struct json *j, const char *key, const void *p)
{
    struct mw_os_value v;

    memcpy(&v, p, sizeof v);
    if (v.why_not == NULL)
        json_u64(j, key, v.value);
    else
        json_null(j, key);
}

static void write_hex(struct json *j, const char *key, const unsigned char *p, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    char text[2 * MW_HEAT];

    while (n > 0 && p[n - 1] == 0)
        n--;
    for (size_t i = 0; i < n; i++) {
        text[2 * i] = digits[p[i] >> 4];
        text[2 * i + 1] = digits[p[i] & 15];
    }
    json_string_n(j, key, text, 2 * n);
}

static void write_list(struct json *j, const char *key, const char *p, size_t n)
{
    while (n > 0 && u64_at(p + (n - 1) * sizeof(uint64_t)) == 0)
        n--;
    json_array(j, key);
    for (size_t i = 0; i < n; i++)
        json_u64(j, NULL, u64_at(p + i * sizeof(uint64_t)));
    json_end(j);
}

static void write_field(struct json *j, const struct field *f, const void *base)
{
    const char *p = (const char *)base + f->offset;
    uint32_t u32;
    double real;
    enum mw_state state;
    enum mw_binds binds;

    switch (f->type) {
    case FIELD_U64: json_u64(j, f->key, u64_at(p)); break;
    case FIELD_U32:
        memcpy(&u32, p, sizeof u32);
        json_u64(j, f->key, u32);
        break;
    case FIELD_DOUBLE:
        memcpy(&real, p, sizeof real);
        json_double(j, f->key, real, 4);
        break;
    case FIELD_TEXT: json_string_n(j, f->key, p, strnlen(p, f->size)); break;
    case FIELD_HEX: write_hex(j, f->key, (const unsigned char *)p, f->size); break;
    case FIELD_LIST: write_list(j, f->key, p, f->size); break;
    case FIELD_STATE:
        memcpy(&state, p, sizeof state);
        json_string(j, f->key, mw_state_name(state));
        break;
    case FIELD_BINDS:
        memcpy(&binds, p, sizeof binds);
        json_string(j, f->key, mw_binds_name(binds));
        break;
    case FIELD_KIND:
        json_string(j, f->key, mw_layer_kind_name((enum mw_layer_kind)(unsigned char)*p));
        break;
    case FIELD_OS: write_os(j, f->key, p); break;
    }
}

static void write_groups(struct json *j, const struct mw_sample *s, unsigned events)
{
    const char *open = "";

    for (size_t i = 0; i < n_sample_fields; i++) {
        const struct field *f = &sample_fields[i];

        if ((f->events & events) == 0)
            continue;
        if (strcmp(f->group, open) != 0) {
            if (open[0] != '\0')
                json_end(j);
            json_object(j, f->group);
            open = f->group;
        }
        write_field(j, f, s);
    }
    if (open[0] != '\0')
        json_end(j);
}

static void write_reasons(struct json *j, const struct mw_sample *s)
{
    json_object(j, "os_why");
    for (size_t i = 0; i < n_sample_fields; i++) {
        const struct field *f = &sample_fields[i];
        struct mw_os_value v;

        if (f->type != FIELD_OS)
            continue;
        memcpy(&v, (const char *)s + f->offset, sizeof v);
        if (v.why_not != NULL)
            json_string(j, f->key, v.why_not);
    }
    json_end(j);
}

static void write_row(struct json *j, const struct field *fields, size_t n, const void *base)
{
    json_object(j, NULL);
    for (size_t i = 0; i < n; i++)
        write_field(j, &fields[i], base);
    json_end(j);
}

static void write_layers(struct json *j, const struct mw_sample *s)
{
    json_array(j, "layer");
    for (uint32_t i = 0; i <= s->n_layer && s->n_layer > 0; i++)
        write_row(j, layer_fields, n_layer_fields, &s->layer[i]);
    json_end(j);
}

static void write_threads(struct json *j, const struct mw_sample *s)
{
    json_array(j, "thread");
    for (uint32_t i = 0; i < s->os.n_thread; i++)
        write_row(j, thread_fields, n_thread_fields, &s->os.thread[i]);
    json_end(j);
}

/* The order is that of rate_names. */
static void write_rates(struct json *j, const struct mw_sample *s)
{
    struct mw_rates r;
    double value[14];

    mw_rates(s, &r);
    value[0] = r.decode_last;
    value[1] = r.decode_mean;
    value[2] = r.prefill;
    value[3] = r.first_s;
    value[4] = r.read_bytes_s;
    value[5] = r.stall_share;
    value[6] = r.overlap;
    value[7] = r.attention_share;
    value[8] = r.wall_s;
    value[9] = r.read_per_token;
    value[10] = r.loading;
    value[11] = r.expert_hits;
    value[12] = r.expert_bytes;
    value[13] = r.wait_share;
    json_object(j, "rate");
    for (size_t i = 0; i < n_rate_names; i++) {
        if (value[i] < 0)
            json_null(j, rate_names[i]);
        else
            json_double(j, rate_names[i], value[i], 4);
    }
    json_end(j);
}

void mw_sample_json(struct json *j, const struct mw_sample *s, const char *event)
{
    bool is_start = strcmp(event, "start") == 0 || strcmp(event, "plan") == 0;
    bool is_all = strcmp(event, "sample") == 0;

    json_object(j, NULL);
    json_string(j, "event", event);
    if (is_start || is_all)
        json_u64(j, "version", TELEMETRY_VERSION);
    write_groups(j, s, is_all ? IN_ALL : is_start ? IN_START : IN_SECOND);
    if (!is_start) {
        write_reasons(j, s);
        write_rates(j, s);
        write_layers(j, s);
        write_threads(j, s);
    }
    json_end(j);
}

/* The ids of a layer are divided by blanks, and layers by slashes. */
static void write_trace(struct json *j, const struct mw_expert_trace *trace)
{
    char text[6 * MW_TRACE + 1];
    size_t n = 0;

    for (uint16_t i = 0; i < trace->n; i++)
        n += (size_t)(trace->id[i] == MW_TRACE_LAYER
                          ? snprintf(text + n, sizeof text - n, "/")
                          : snprintf(text + n, sizeof text - n, "%s%u",
                                     n > 0 && text[n - 1] != '/' ? " " : "", trace->id[i]));
    if (n > 0)
        json_string_n(j, "experts", text, n);
}

void token_json(struct json *j, const struct mw_token *token,
                const struct mw_expert_trace *trace)
{
    json_object(j, NULL);
    json_string(j, "event", "token");
    for (size_t i = 0; i < n_token_fields; i++)
        write_field(j, &token_fields[i], token);
    write_trace(j, trace);
    json_end(j);
}
