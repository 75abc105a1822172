/*
 * Read a recording line by line into one sample, which each line changes.
 *
 * Lines are parsed with callbacks, so a hostile line uses no more memory than its own length
 * and no recursion.  Deeper nesting than in any line of ours is refused.  Unknown keys are
 * skipped, because a newer program may write more.
 *
 *     {"event":"second", "state":"decode", "io":{"reads":7,…}, "layer":[{…},{…}], …}
 *      depth 1                             depth 2             depth 2  depth 3
 */
#include "config.h"

#include "engine/telemetry/replay.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yajl/yajl_parse.h>

#include "engine/base/encoding.h"
#include "engine/base/json_text_end.h"
#include "engine/telemetry/fields.h"

#define LINE_MAX_BYTES (1u << 20)
#define DEPTH_MAX      8
#define REASONS        32 /* maximum number of different reasons of os values */

enum event { EVENT_UNKNOWN, EVENT_START, EVENT_PLAN, EVENT_TOKEN, EVENT_SECOND };

struct mw_replay {
    char *path;
    FILE *file;
    char *text;
    size_t text_size;
    unsigned long line; /* number of the line read last */
    struct mw_sample sample;
    struct err err; /* a broken recording stays broken */

    /* the line being read */
    enum event event;
    bool has_event;
    int depth;
    char group[24];         /* at depth 2 and below */
    const struct field *at; /* the field of the next value; NULL to skip it */
    bool at_event, at_version;
    uint64_t version;
    bool in_reasons, in_list;
    size_t n_list; /* numbers of the list so far */
    uint32_t n_layer, n_thread; /* in the line so far; the last one is being read */
    struct mw_token token;

    char reason[REASONS][64];
    int n_reason;
};

/* ---- errors ---- */

static int fail(struct mw_replay *r, enum err_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static int fail(struct mw_replay *r, enum err_code code, const char *fmt, ...)
{
    char what[200], where[32];
    va_list ap;

    if (r->err.code != ERR_NONE)
        return -1; /* the first one is the cause */
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    snprintf(where, sizeof where, "line %lu", r->line);
    err_set(&r->err, code, "%s", what);
    return err_at(&r->err, r->path, ERR_NO_OFFSET, where);
}

/* A callback returns 0 to stop the parser. */
static int refuse(int failed)
{
    (void)failed;
    return 0;
}

/* ---- values ---- */

/* Returns the address for the value of the current field. */
static void *target(struct mw_replay *r)
{
    if (r->at >= token_fields && r->at < token_fields + n_token_fields)
        return (char *)&r->token + r->at->offset;
    if (r->at >= layer_fields && r->at < layer_fields + n_layer_fields)
        return (char *)&r->sample.layer[r->n_layer - 1] + r->at->offset;
    if (r->at >= thread_fields && r->at < thread_fields + n_thread_fields)
        return (char *)&r->sample.os.thread[r->n_thread - 1] + r->at->offset;
    return (char *)&r->sample + r->at->offset;
}

static int wrong_value(struct mw_replay *r)
{
    return refuse(fail(r, ERR_FORMAT, "invalid value of \"%s\"", r->at->key));
}

static const char *keep_reason(struct mw_replay *r, const char *text, size_t n)
{
    char one[sizeof r->reason[0]];

    snprintf(one, sizeof one, "%.*s", (int)(n < sizeof one ? n : sizeof one - 1), text);
    for (int i = 0; i < r->n_reason; i++)
        if (strcmp(r->reason[i], one) == 0)
            return r->reason[i];
    if (r->n_reason == REASONS)
        return "not recorded";
    memcpy(r->reason[r->n_reason], one, sizeof one);
    return r->reason[r->n_reason++];
}

static bool set_number(struct mw_replay *r, const char *digits, size_t n)
{
    char text[40], *end;
    uint64_t value;
    double real;
    uint32_t small;

    if (n >= sizeof text)
        return false;
    memcpy(text, digits, n);
    text[n] = '\0';
    if (r->at->type == FIELD_DOUBLE) {
        real = strtod(text, &end);
        memcpy(target(r), &real, sizeof real);
        return *end == '\0';
    }
    errno = 0;
    value = strtoull(text, &end, 10);
    if (text[0] == '-' || *end != '\0' || errno != 0)
        return false;
    switch (r->at->type) {
    case FIELD_U64: memcpy(target(r), &value, sizeof value); return true;
    case FIELD_LIST:
        if (!r->in_list || r->n_list == r->at->size)
            return false;
        memcpy((uint64_t *)target(r) + r->n_list++, &value, sizeof value);
        return true;
    case FIELD_U32:
        small = (uint32_t)value;
        memcpy(target(r), &small, sizeof small);
        return value <= UINT32_MAX;
    case FIELD_OS: {
        struct mw_os_value os = { .value = value };

        memcpy(target(r), &os, sizeof os);
        return true;
    }
    case FIELD_DOUBLE:
    case FIELD_TEXT:
    case FIELD_HEX:
    case FIELD_STATE:
    case FIELD_BINDS:
    case FIELD_KIND: break;
    }
    return false;
}

static bool is_text(const char *text, size_t n, const char *name)
{
    return strlen(name) == n && memcmp(text, name, n) == 0;
}

static bool set_state(struct mw_replay *r, const char *text, size_t n)
{
    for (enum mw_state s = MW_IDLE; s <= MW_ERROR; s++)
        if (is_text(text, n, mw_state_name(s))) {
            memcpy(target(r), &s, sizeof s);
            return true;
        }
    return false;
}

static bool set_binds(struct mw_replay *r, const char *text, size_t n)
{
    for (enum mw_binds b = MW_BINDS_NONE; b < MW_BINDS_COUNT; b++)
        if (is_text(text, n, mw_binds_name(b))) {
            memcpy(target(r), &b, sizeof b);
            return true;
        }
    return false;
}

static bool set_kind(struct mw_replay *r, const char *text, size_t n)
{
    for (enum mw_layer_kind k = MW_LAYER_SLIDING; k <= MW_LAYER_HEAD; k++)
        if (is_text(text, n, mw_layer_kind_name(k))) {
            *(unsigned char *)target(r) = (unsigned char)k;
            return true;
        }
    return false;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool set_hex(struct mw_replay *r, const char *text, size_t n)
{
    unsigned char *to = target(r);

    if (n % 2 != 0 || n / 2 > r->at->size)
        return false;
    memset(to, 0, r->at->size);
    for (size_t i = 0; i < n; i += 2) {
        int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);

        if (high < 0 || low < 0)
            return false;
        to[i / 2] = (unsigned char)(high << 4 | low);
    }
    return true;
}

static bool set_text(struct mw_replay *r, const char *text, size_t n)
{
    char *to = target(r);

    switch (r->at->type) {
    case FIELD_TEXT:
        memset(to, 0, r->at->size);
        memcpy(to, text, n < r->at->size ? n : r->at->size - 1);
        return true;
    case FIELD_HEX: return set_hex(r, text, n);
    case FIELD_STATE: return set_state(r, text, n);
    case FIELD_BINDS: return set_binds(r, text, n);
    case FIELD_KIND: return set_kind(r, text, n);
    case FIELD_U64:
    case FIELD_U32:
    case FIELD_DOUBLE:
    case FIELD_LIST:
    case FIELD_OS: break;
    }
    return false;
}

static int set_event(struct mw_replay *r, const char *text, size_t n)
{
    static const struct {
        const char *name;
        enum event event;
    } names[] = { { "start", EVENT_START },
                  { "plan", EVENT_PLAN },
                  { "token", EVENT_TOKEN },
                  { "second", EVENT_SECOND },
                  { "sample", EVENT_SECOND } };

    r->has_event = true;
    r->event = EVENT_UNKNOWN;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (is_text(text, n, names[i].name))
            r->event = names[i].event;
    return 1;
}

/* ---- callbacks of the parser ---- */

static int on_null(void *ctx)
{
    struct mw_replay *r = ctx;

    if (r->at != NULL && r->at->type == FIELD_OS) {
        struct mw_os_value none = { .why_not = "not recorded" };

        memcpy(target(r), &none, sizeof none);
    } else if (r->at != NULL) {
        return wrong_value(r);
    }
    return 1;
}

static int on_bool(void *ctx, int value)
{
    struct mw_replay *r = ctx;

    (void)value;
    return r->at != NULL ? wrong_value(r) : 1;
}

static int on_number(void *ctx, const char *digits, size_t n)
{
    struct mw_replay *r = ctx;

    if (r->at_version)
        r->version = n == 1 ? (uint64_t)(digits[0] - '0') : UINT64_MAX;
    if (r->at == NULL)
        return 1;
    return set_number(r, digits, n) ? 1 : wrong_value(r);
}

static int on_string(void *ctx, const unsigned char *s, size_t n)
{
    struct mw_replay *r = ctx;
    const char *text = (const char *)s;

    if (r->at_event)
        return set_event(r, text, n);
    if (r->at == NULL)
        return 1;
    if (r->in_reasons) {
        struct mw_os_value none = { .why_not = keep_reason(r, text, n) };

        memcpy(target(r), &none, sizeof none);
        return 1;
    }
    return set_text(r, text, n) ? 1 : wrong_value(r);
}

static const struct field *find(const struct field *fields, size_t n_field, const char *group,
                                const char *key, size_t n)
{
    for (size_t i = 0; i < n_field; i++)
        if (strcmp(fields[i].group, group) == 0 && is_text(key, n, fields[i].key))
            return &fields[i];
    return NULL;
}

static int on_key(void *ctx, const unsigned char *s, size_t n)
{
    struct mw_replay *r = ctx;
    const char *key = (const char *)s;

    r->at = NULL;
    r->at_event = r->depth == 1 && is_text(key, n, "event");
    r->at_version = r->depth == 1 && is_text(key, n, "version");
    if (r->depth == 1) {
        snprintf(r->group, sizeof r->group, "%.*s",
                 (int)(n < sizeof r->group ? n : sizeof r->group - 1), key);
        if (r->event == EVENT_TOKEN)
            r->at = find(token_fields, n_token_fields, "", key, n);
        else if (r->event != EVENT_UNKNOWN)
            r->at = find(sample_fields, n_sample_fields, "", key, n);
    } else if (r->event == EVENT_UNKNOWN || r->event == EVENT_TOKEN) {
        return 1;
    } else if (r->depth == 2) {
        r->at = find(sample_fields, n_sample_fields, r->in_reasons ? "os" : r->group, key, n);
        if (r->in_reasons && r->at != NULL && r->at->type != FIELD_OS)
            r->at = NULL;
    } else if (r->depth == 3 && strcmp(r->group, "layer") == 0) {
        r->at = find(layer_fields, n_layer_fields, "layer", key, n);
    } else if (r->depth == 3 && strcmp(r->group, "thread") == 0) {
        r->at = find(thread_fields, n_thread_fields, "thread", key, n);
    }
    return 1;
}

static int enter(struct mw_replay *r)
{
    if (r->at != NULL)
        return wrong_value(r);
    if (++r->depth > DEPTH_MAX)
        return refuse(fail(r, ERR_FORMAT, "is nested too deeply for a recording"));
    r->at_event = r->at_version = false;
    return 1;
}

static int on_map(void *ctx)
{
    struct mw_replay *r = ctx;

    if (!r->has_event && r->depth >= 1)
        return refuse(fail(r, ERR_FORMAT, "does not begin with \"event\""));
    if (enter(r) == 0)
        return 0;
    if (r->depth == 2)
        r->in_reasons = strcmp(r->group, "os_why") == 0;
    if (r->depth == 3 && strcmp(r->group, "layer") == 0) {
        if (r->n_layer > MW_MAX_LAYER)
            return refuse(fail(r, ERR_FORMAT, "has more than %d layers", MW_MAX_LAYER));
        r->n_layer++;
    }
    if (r->depth == 3 && strcmp(r->group, "thread") == 0) {
        if (r->n_thread == MW_MAX_THREAD)
            return refuse(fail(r, ERR_FORMAT, "has more than %d threads", MW_MAX_THREAD));
        r->n_thread++;
    }
    return 1;
}

static int leave(void *ctx)
{
    struct mw_replay *r = ctx;

    r->depth--;
    r->at = NULL;
    r->in_list = false;
    if (r->depth < 2)
        r->in_reasons = false;
    return 1;
}

static int on_array(void *ctx)
{
    struct mw_replay *r = ctx;
    const struct field *list = r->at;

    if (list == NULL || list->type != FIELD_LIST || r->in_list)
        return enter(r);
    memset(target(r), 0, list->size * sizeof(uint64_t));
    r->at = NULL;
    if (enter(r) == 0)
        return 0;
    r->at = list;
    r->in_list = true;
    r->n_list = 0;
    return 1;
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_bool,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_map,
    .yajl_map_key = on_key,
    .yajl_end_map = leave,
    .yajl_start_array = on_array,
    .yajl_end_array = leave,
};

/* ---- lines ---- */

static int parse(struct mw_replay *r, const char *text, size_t n)
{
    yajl_handle h = yajl_alloc(&callbacks, NULL, r);
    yajl_status status;

    if (h == NULL)
        return fail(r, ERR_MEMORY, "not enough memory for reading the line");
    r->event = EVENT_UNKNOWN;
    r->has_event = false;
    r->depth = 0;
    r->at = NULL;
    r->at_event = r->at_version = r->in_reasons = false;
    r->n_layer = r->n_thread = 0;
    memset(&r->token, 0, sizeof r->token);
    status = yajl_parse(h, (const unsigned char *)text, n);
    if (status == yajl_status_ok)
        status = json_text_end(h);
    yajl_free(h);
    if (status != yajl_status_ok || r->err.code != ERR_NONE)
        return fail(r, ERR_FORMAT, "not a complete line of a recording");
    if (!r->has_event)
        return fail(r, ERR_FORMAT, "has no \"event\"");
    return 0;
}

/* Remove the mark of the encoding from the first line. */
static int drop_mark(struct mw_replay *r, size_t *n)
{
    struct err e = ERR_INIT;
    int mark = encoding_mark(r->text, *n, &e);

    if (mark < 0)
        return fail(r, e.code, "%s", e.what);
    *n -= (size_t)mark;
    if (mark > 0)
        memmove(r->text, r->text + mark, *n);
    return 0;
}

/* Read a line of *n bytes into r->text.  Returns 1, 0 at the end of the file, or -1. */
static int read_line(struct mw_replay *r, size_t *n)
{
    size_t used = 0;
    int c = 0;

    r->line++;
    while ((c = getc(r->file)) != EOF && c != '\n') {
        if (used == r->text_size) {
            size_t size = r->text_size == 0 ? 8192 : 2 * r->text_size;
            char *text = size <= LINE_MAX_BYTES ? realloc(r->text, size) : NULL;

            if (text == NULL)
                return fail(r, ERR_FORMAT, "is too long for a line of a recording");
            r->text = text;
            r->text_size = size;
        }
        r->text[used++] = (char)c;
    }
    if (ferror(r->file))
        return fail(r, ERR_IO, "cannot be read");
    if (r->line == 1 && drop_mark(r, &used) != 0)
        return -1;
    *n = used;
    if (c == EOF && used > 0)
        return fail(r, ERR_FORMAT, "is incomplete; the recording was cut off here");
    return c == EOF ? 0 : 1;
}

/* Update the sample from the line of a token. */
static void apply_token(struct mw_replay *r)
{
    struct mw_sample *s = &r->sample;
    const struct mw_token *k = &r->token;

    s->t_ns = k->t_ns;
    s->state = MW_DECODE;
    s->recent[s->n_token++ % MW_RECENT] = *k;
    s->n_decoded = k->n;
    s->t_last_ns = k->t_ns;
    if (k->n <= 1 || s->t_first_ns == 0)
        s->t_first_ns = k->t_ns;
    s->decode_ns = k->t_ns > s->t_first_ns ? k->t_ns - s->t_first_ns : 0;
    s->kv.tokens = s->kv.context = k->kv_tokens;
    s->pass.wall_ns = k->wall_ns;
    s->pass.stall_ns = k->stall_ns;
    s->pass.compute_ns = k->compute_ns;
    s->pass.attention_ns = k->attention_ns;
    s->pass.head_ns = k->head_ns;
    s->pass.sample_ns = k->sample_ns;
    s->pass.lookup_ns = k->lookup_ns;
    s->pass.bytes_pass = k->bytes_pass;
    s->pass.n_col = k->n_col;
    s->pass.expert_hits = k->expert_hits;
    s->pass.expert_misses = k->expert_misses;
    s->pass.expert_bytes = k->expert_bytes;
    s->pass.wait_ns = k->wait_ns;
}

static int check_sample(struct mw_replay *r)
{
    struct mw_sample *s = &r->sample;

    if (s->run.n_layer > MW_MAX_LAYER)
        return fail(r, ERR_FORMAT, "has %u layers; the maximum is %d", s->run.n_layer,
                    MW_MAX_LAYER);
    if (r->n_layer > 0 && r->n_layer != s->run.n_layer + 1)
        return fail(r, ERR_FORMAT, "has figures for %u layers, expected %u and the head",
                    r->n_layer, s->run.n_layer);
    s->n_layer = s->run.n_layer;
    if (r->event == EVENT_SECOND)
        s->os.n_thread = r->n_thread;
    return 0;
}

static int check_start(struct mw_replay *r)
{
    if (r->event != EVENT_START)
        return fail(r, ERR_FORMAT, "is not the \"start\" line of a recording");
    if (r->version != TELEMETRY_VERSION)
        return fail(r, ERR_UNSUPPORTED,
                    "the recording does not have version %d, the only supported one",
                    TELEMETRY_VERSION);
    return 0;
}

/* Programs read a recording twice: for its end, and to play it. */
static FILE *open_file(const char *path, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    FILE *f;

    if (fd >= 0 && fstat(fd, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
        err_set(e, ERR_IO, "is a FIFO or a device; give a recording that is a file");
        err_at(e, path, ERR_NO_OFFSET, NULL);
        close(fd);
        return NULL;
    }
    f = fd >= 0 ? fdopen(fd, "rb") : NULL;
    if (f == NULL) {
        err_sys(e, "cannot open \"%s\"", path);
        if (fd >= 0)
            close(fd);
    }
    return f;
}

int mw_replay_begin(struct mw_replay **out, const char *name, struct err *e)
{
    struct mw_replay *r = calloc(1, sizeof *r);

    *out = NULL;
    if (r == NULL || (r->path = strdup(name)) == NULL) {
        free(r);
        return err_memory(e, "a recording");
    }
    for (size_t i = 0; i < n_sample_fields; i++)
        if (sample_fields[i].type == FIELD_OS) {
            struct mw_os_value none = { .why_not = "not recorded" };

            memcpy((char *)&r->sample + sample_fields[i].offset, &none, sizeof none);
        }
    *out = r;
    return 0;
}

int mw_replay_open(struct mw_replay **out, const char *path, struct err *e)
{
    struct mw_replay *r;
    size_t n;
    int got;

    *out = NULL;
    if (mw_replay_begin(&r, path, e) != 0)
        return -1;
    r->file = open_file(path, e);
    if (r->file == NULL) {
        mw_replay_close(r);
        return -1;
    }
    got = read_line(r, &n);
    if (got == 0)
        fail(r, ERR_FORMAT, "the recording is empty");
    if (got != 1 || parse(r, r->text, n) != 0 || check_start(r) != 0 || check_sample(r) != 0) {
        *e = r->err;
        mw_replay_close(r);
        return -1;
    }
    *out = r;
    return 0;
}

void mw_replay_close(struct mw_replay *r)
{
    if (r == NULL)
        return;
    if (r->file != NULL)
        fclose(r->file);
    free(r->text);
    free(r->path);
    free(r);
}

/* Take the line of n bytes.  Returns 1 if the sample is a new one, 0, or -1 with r->err. */
static int take_line(struct mw_replay *r, const char *text, size_t n)
{
    if (parse(r, text, n) != 0 || check_sample(r) != 0)
        return -1;
    if (r->event == EVENT_TOKEN)
        apply_token(r);
    return r->event == EVENT_TOKEN || r->event == EVENT_SECOND;
}

int mw_replay_next(struct mw_replay *r, struct mw_sample *out, struct err *e)
{
    size_t n;

    while (r->err.code == ERR_NONE) {
        int got = read_line(r, &n);

        if (got == 0)
            return 0;
        if (got > 0)
            got = take_line(r, r->text, n);
        if (got > 0)
            *out = r->sample;
        if (got != 0)
            break;
    }
    if (r->err.code == ERR_NONE)
        return 1;
    *e = r->err;
    return -1;
}

int mw_replay_line(struct mw_replay *r, const char *line, size_t n, struct mw_sample *out,
                   struct err *e)
{
    bool is_first = r->line == 0;
    int got = -1;

    if (r->err.code == ERR_NONE) {
        r->line++;
        got = take_line(r, line, n);
    }
    if (got >= 0 && is_first && check_start(r) != 0)
        got = -1;
    if (got > 0)
        *out = r->sample;
    if (got < 0)
        *e = r->err;
    return got;
}
