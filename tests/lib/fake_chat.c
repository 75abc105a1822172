#include "config.h"

#include "tests/lib/fake_chat.h"

#include <sys/eventfd.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/memwall.h"

#define N_LAYER   35
#define HOT_BYTES ((uint64_t)4630 << 20)
#define FIXED     (220 * MIB)

static uint32_t token_us = 1000;
static atomic_int burning, burners;

void fake_chat_pace(uint32_t us)
{
    token_us = us;
}

static void *burn(void *ignored)
{
    volatile unsigned x = 1;

    while (atomic_load(&burners) > 0) {
        while (atomic_load(&burning) > 0)
            for (int i = 0; i < 1000; i++)
                x = x * 1664525u + 1013904223u;
        usleep(1000);
    }
    return ignored;
}

void fake_chat_burn(int n_thread)
{
    atomic_store(&burners, n_thread);
    for (int i = 0; i < n_thread; i++) {
        pthread_t t;

        if (pthread_create(&t, NULL, burn, NULL) == 0)
            pthread_detach(t);
    }
}

/* ---- model and plan ---- */

struct mw_model {
    char path[256];
};

/* A path that contains "until:FILE" opens as soon as FILE exists. */
static void wait_for_file(const char *path)
{
    const char *file = strstr(path, "until:");

    while (file != NULL && access(file + 6, F_OK) != 0)
        usleep(5000);
}

int mw_model_open(struct mw_model **out, const char *path, struct err *e)
{
    *out = NULL;
    if (strstr(path, "missing") != NULL) {
        errno = ENOENT;
        err_sys(e, "cannot open \"%s\"", path);
        return err_at(e, NULL, ERR_NO_OFFSET, NULL);
    }
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return err_set(e, ERR_MEMORY, "no memory");
    snprintf((*out)->path, sizeof(*out)->path, "%s", path);
    wait_for_file(path);
    return 0;
}

int mw_model_open_within(struct mw_model **out, const char *path, uint64_t memory_bytes,
                         struct err *e)
{
    (void)memory_bytes;
    return mw_model_open(out, path, e);
}

void mw_model_close(struct mw_model *m)
{
    free(m);
}

int mw_io_choose(const struct mw_model *m, const struct mw_options *o, struct mw_io_choice *out,
                 struct err *e)
{
    (void)m, (void)o, (void)e;
    *out = (struct mw_io_choice){ .name = "direct", .reason = "made for this test" };
    return 0;
}

bool mw_rotates_alike(const struct mw_model *m, const struct mw_options *a,
                      const struct mw_options *b)
{
    (void)m, (void)a, (void)b;
    return true;
}

void mw_model_limits(const struct mw_model *m, struct mw_limits *out)
{
    (void)m;
    *out = (struct mw_limits){ .disk_bytes_s = 2e9, .memory_bytes_s = 2e10 };
}

void mw_model_info(const struct mw_model *m, struct mw_model_info *out)
{
    *out = (struct mw_model_info){ .arch = "gemma4",
                                   .type = "BF16",
                                   .n_layer = N_LAYER,
                                   .n_embd = 1536,
                                   .n_vocab = 262144,
                                   .n_ctx_train = strstr(m->path, "4k") ? 4096 : 131072,
                                   .n_param = 4600000000u,
                                   .file_bytes = (uint64_t)9300 << 20,
                                   .hot_bytes = HOT_BYTES };
    snprintf(out->name, sizeof out->name, "%s",
             strstr(m->path, "other") != NULL        ? "Other Model"
             : strstr(m->path, "long-name") != NULL ? "Fake Gemma with a long E4B"
                                                    : "Fake Gemma E2B");
}

int mw_plan_fit(struct mw_model *m, const struct mw_options *o, uint64_t *smallest_budget,
                uint32_t *largest_ctx, struct err *e)
{
    (void)m;
    (void)o;
    (void)e;
    *smallest_budget = 256 * MIB;
    *largest_ctx = 8192;
    return 0;
}

/* ---- found models: their headers are not read ---- */

int mw_describer_new(struct mw_describer **out, const struct mw_options *o,
                     const struct mw_describe_options *how, struct err *e)
{
    (void)o, (void)how;
    *out = NULL;
    return err_set(e, ERR_UNSUPPORTED, "models are not described here");
}

void mw_describer_free(struct mw_describer *d)
{
    (void)d;
}

void mw_describe(struct mw_describer *d, struct mw_models *m, size_t i)
{
    (void)d, (void)m, (void)i;
}

void mw_describer_set(struct mw_describer *d, const struct mw_options *o)
{
    (void)d, (void)o;
}

void mw_models_undescribe(struct mw_models *m)
{
    (void)m;
}

void mw_sampling_default(const struct mw_model *m, struct mw_sampling *s)
{
    (void)m;
    *s = (struct mw_sampling){ .temp = 1.0f, .top_k = 64, .top_p = 0.95f, .repeat_penalty = 1 };
}

double fake_chat_disk = 2;
static uint64_t kv_token_bytes(const struct mw_options *o)
{
    static const uint64_t quarter[] = { 16, 8, 4, 2 };

    return (quarter[o->kv_k] + quarter[o->kv_v]) * 768;
}

void mw_kv_token_bytes(const struct mw_model *m, const struct mw_options *o, uint64_t *global,
                       uint64_t *sliding)
{
    (void)m;
    *global = kv_token_bytes(o);
    *sliding = 0;
}

uint64_t mw_reads_nothing_budget(struct mw_model *m, const struct mw_options *o)
{
    (void)m;
    (void)o;
    return 213 * MIB + HOT_BYTES;
}

int mw_plan(struct mw_model *m, const struct mw_options *o, struct plan *out, struct err *e)
{
    uint64_t budget = o->memory_bytes != 0 ? o->memory_bytes : 1500 * MIB, sum = 0, left;
    uint32_t ctx = o->n_ctx != 0 ? o->n_ctx : 4096;

    if (strstr(m->path, "huge") != NULL)
        return err_set(e, ERR_BUDGET, "a huge model does not fit");
    *out = (struct plan){ .budget_bytes = budget, .n_ctx = ctx, .chunk = 256, .n_slot = 8 };
    out->row[MW_ROW_PROGRAM] = 60 * MIB;
    out->row[MW_ROW_TOKENIZER] = 40 * MIB;
    out->row[MW_ROW_ACTIVATIONS] = 50 * MIB;
    out->row[MW_ROW_LOGITS] = MIB;
    out->row[MW_ROW_RING] = 32 * MIB;
    out->row[MW_ROW_ROWS] = 4 * MIB;
    out->row[MW_ROW_KV_GLOBAL] = ctx * kv_token_bytes(o);
    out->row[MW_ROW_KV_SLIDING] = 6 * MIB;
    out->row[MW_ROW_RESERVE] = 20 * MIB;
    for (int i = 0; i < MW_PLAN_ROWS; i++)
        sum += out->row[i];
    out->sum_bytes = sum;
    if (sum > budget) {
        char need[16], have[16];

        return err_set(
            e, ERR_BUDGET, "needs %s, the budget is %s. With a context of 2048 it would fit",
            units_size(need, sizeof need, sum), units_size(have, sizeof have, budget));
    }
    left = budget - sum;
    out->row[MW_ROW_PINNED] = left < HOT_BYTES ? left : HOT_BYTES;
    out->pinned_bytes = out->row[MW_ROW_PINNED];
    out->sum_bytes = sum + out->pinned_bytes;
    out->streamed_bytes = HOT_BYTES - out->pinned_bytes;
    out->decode_tps = 1e9 / (0.05e9 + (double)out->streamed_bytes / fake_chat_disk);
    out->prefill_tps = 40;
    out->binds = out->streamed_bytes > 0 ? MW_BINDS_DISK : MW_BINDS_MEMORY;
    return 0;
}

/* ---- the chat ---- */

#define MAX_MESSAGES 1000
#define MAX_EVENTS   4096

enum command_kind { SEND, CONTINUE, RETRY, REWIND, RESTORE, SET };

struct command {
    enum command_kind kind;
    char *text;
    size_t n;
    struct mw_chat_options options;
    struct command *next;
};

struct mw_chat {
    struct mw_model *model;
    struct mw_chat_options options;
    struct plan plan;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int fd;
    bool leaving, cancelled, busy;
    struct command *first;
    struct mw_event event[MAX_EVENTS];
    char *event_text[MAX_EVENTS];
    size_t n_event, event_from;
    char *held; /* of the event that the program has taken last */

    char *message[MAX_MESSAGES];
    size_t n_message;
    uint32_t tokens;
    struct mw_sample sample;
};

static void post(struct mw_chat *c, struct mw_event ev, const char *text)
{
    uint64_t one = 1;
    size_t i;

    pthread_mutex_lock(&c->lock);
    i = (c->event_from + c->n_event) % MAX_EVENTS;
    if (c->n_event < MAX_EVENTS) {
        c->event[i] = ev;
        c->event_text[i] = text == NULL ? NULL : strdup(text);
        c->n_event++;
    }
    pthread_mutex_unlock(&c->lock);
    if (write(c->fd, &one, sizeof one) < 0)
        abort();
}

bool mw_chat_next(struct mw_chat *c, struct mw_event *out)
{
    uint64_t count;
    bool has;

    pthread_mutex_lock(&c->lock);
    has = c->n_event > 0;
    if (has) {
        free(c->held);
        *out = c->event[c->event_from];
        c->held = c->event_text[c->event_from];
        out->text = c->held;
        out->len = c->held == NULL ? 0 : strlen(c->held);
        c->event_from = (c->event_from + 1) % MAX_EVENTS;
        c->n_event--;
    } else if (read(c->fd, &count, sizeof count) < 0 && errno != EAGAIN) {
        abort();
    }
    pthread_mutex_unlock(&c->lock);
    return has;
}

static bool stopped(struct mw_chat *c)
{
    bool yes;

    pthread_mutex_lock(&c->lock);
    yes = c->cancelled || c->leaving;
    pthread_mutex_unlock(&c->lock);
    return yes;
}

int mw_plan_outlook(struct mw_model *m, const struct mw_options *o, const struct plan_run *run,
                    struct plan_outlook *out, struct err *e)
{
    struct plan plan;

    if (mw_plan(m, o, &plan, e) != 0)
        return -1;
    *out = (struct plan_outlook){ .n_token = run->n_token,
                                  .peak_bytes = plan.sum_bytes,
                                  .pinned_bytes = plan.pinned_bytes,
                                  .streamed_bytes = plan.streamed_bytes };
    memcpy(out->row, plan.row, sizeof out->row);
    return 0;
}

static void set_options(struct mw_chat *c, const struct mw_chat_options *o);

/* Apply changes between two tokens, unless they need other keys and values. */
static void apply_changes(struct mw_chat *c)
{
    for (;;) {
        struct command *cmd;

        pthread_mutex_lock(&c->lock);
        cmd = c->first;
        if (cmd == NULL || cmd->kind != SET ||
            !mw_keeps_kv(c->model, &c->options.engine, &cmd->options.engine))
            cmd = NULL;
        else
            c->first = cmd->next;
        pthread_mutex_unlock(&c->lock);
        if (cmd == NULL)
            return;
        set_options(c, &cmd->options);
        free(cmd);
    }
}

/* Wait as long as a token takes.  Returns false if cancelled. */
static bool work(struct mw_chat *c)
{
    uint64_t end = clock_ns() + token_us * 1000ull;

    atomic_store(&burning, 1);
    pthread_mutex_lock(&c->lock);
    while (!c->cancelled && !c->leaving && clock_cond_wait(&c->wake, &c->lock, end))
        continue;
    c->tokens++;
    c->sample.kv.tokens = c->tokens;
    c->sample.kv.bytes_used = c->tokens * kv_token_bytes(&c->options.engine);
    c->sample.mem.used[MW_ROW_KV_GLOBAL] = c->sample.kv.bytes_used;
    c->sample.pass.n_col = 1;
    c->sample.pass.wall_ns = token_us * 1000ull;
    c->sample.pass.stall_ns = c->sample.pass.wall_ns * 7 / 10;
    c->sample.pass.compute_ns = c->sample.pass.wall_ns * 3 / 10;
    c->sample.io.bytes_read += c->plan.streamed_bytes;
    c->sample.layer_now = c->tokens % (N_LAYER + 1);
    for (uint32_t i = 0; i <= N_LAYER; i++) {
        struct mw_sample_layer *l = &c->sample.layer[i];

        l->read_ns = 20000000 + (i * 7919 + c->tokens * 104729) % 15000000;
        l->stall_ns = l->read_ns / 2;
        l->compute_ns = 9000000;
        l->passes++;
    }
    pthread_mutex_unlock(&c->lock);
    atomic_store(&burning, 0);
    apply_changes(c);
    return !stopped(c);
}

static void say(struct mw_chat *c, char **answer, const char *text, bool is_thinking)
{
    size_t len = *answer == NULL ? 0 : strlen(*answer);
    char *longer = is_thinking ? NULL : realloc(*answer, len + strlen(text) + 1);

    if (longer != NULL) {
        strcpy(longer + len, text);
        *answer = longer;
    }
    pthread_mutex_lock(&c->lock);
    if (c->sample.n_decoded++ == 0)
        c->sample.t_first_ns = clock_ns();
    c->sample.t_last_ns = clock_ns();
    c->sample.decode_ns = c->sample.t_last_ns - c->sample.t_first_ns;
    pthread_mutex_unlock(&c->lock);
    post(c, (struct mw_event){ .kind = MW_EVENT_TEXT, .is_thinking = is_thinking }, text);
}

/* Say a text word by word.  Returns false if cancelled. */
static bool say_words(struct mw_chat *c, char **answer, const char *text, bool is_thinking)
{
    while (*text != '\0') {
        size_t n = strcspn(text, " \n");
        char word[256];

        n += strspn(text + n, " \n");
        snprintf(word, sizeof word, "%.*s", (int)n, text);
        if (!work(c))
            return false;
        say(c, answer, word, is_thinking);
        text += n < sizeof word - 1 ? n : sizeof word - 1;
    }
    return true;
}

static const char markdown[] =
    "# A heading\n\nSome *emphasis*, **strength** and `code`, in a paragraph that is long "
    "enough to be wrapped at every width that a terminal is likely to have.\n\n"
    "- first\n- second\n  - nested\n\n1. one\n2. two\n\n> quoted\n\n"
    "```python\ndef f(x):\n    # a comment\n    return \"text\", 42\n```\n\n"
    "| name | value |\n|---|---|\n| a | 1 |\n| b | 2 |\n\nThe end.\n";
static const char wide[] =
    "\xe4\xbd\xa0\xe5\xa5\xbd\xef\xbc\x8c\xe4\xb8\x96\xe7\x95\x8c\xe3\x80\x82 "
    "\xf0\x9f\x98\x80 \xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb e\xcc\x81t\xc3\xa9 "
    "\xe2\x9d\xa4\xef\xb8\x8f \xf0\x9f\x87\xa9\xf0\x9f\x87\xaa "
    "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d "
    "\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5"
    "\xad"
    "\x97\xe6\xbc\xa2\xe5\xad\x97 done";
static const char evil[] = "a\x1b[2J\x1b[31mred\x1b]0;title\x07 b\xc2\x9b"
                           "5n c\xe2\x80\xae"
                           "desrever d\x07\x08 end";

static enum mw_done answer(struct mw_chat *c, const char *text, char **out, struct err *e)
{
    char buf[4096];

    if (strncmp(text, "say ", 4) == 0)
        return say_words(c, out, text + 4, false) ? MW_DONE_STOP : MW_DONE_CANCELLED;
    if (strncmp(text, "lines ", 6) == 0) {
        for (int i = 1; i <= atoi(text + 6); i++) {
            snprintf(buf, sizeof buf, "line %d\n\n", i);
            if (!say_words(c, out, buf, false))
                return MW_DONE_CANCELLED;
        }
        return MW_DONE_STOP;
    }
    if (strstr(text, "[/compact]") != NULL && strcmp(c->message[0], "say ten") != 0)
        return say_words(c, out, "In short: one.", false) ? MW_DONE_STOP : MW_DONE_CANCELLED;
    if (strcmp(text, "endless") == 0 || strstr(text, "[/compact]") != NULL) {
        for (int i = 1;; i++) {
            snprintf(buf, sizeof buf, "word%d ", i);
            if (!say_words(c, out, buf, false))
                return MW_DONE_CANCELLED;
        }
    }
    if (strncmp(text, "until ", 6) == 0 || strncmp(text, "full until ", 11) == 0) {
        while (access(strchr(text, '/'), F_OK) != 0)
            if (!say_words(c, out, "not yet ", false))
                return MW_DONE_CANCELLED;
        if (text[0] == 'f')
            return MW_DONE_CONTEXT;
        return say_words(c, out, "opened", false) ? MW_DONE_STOP : MW_DONE_CANCELLED;
    }
    if (strcmp(text, "think") == 0)
        return say_words(c, out, "let me think about this for a while", true) &&
                       say_words(c, out, "after thought: yes", false)
                   ? MW_DONE_STOP
                   : MW_DONE_CANCELLED;
    if (strcmp(text, "error") == 0) {
        say_words(c, out, "half an", false);
        err_set(e, ERR_IO, "read 4096 bytes less than wanted: Input/output error");
        err_at(e, "model.gguf", 81920, "blk.3.attn_q.weight");
        return MW_DONE_ERROR;
    }
    if (strcmp(text, "full") == 0)
        return say_words(c, out, "as far as it goes", false) ? MW_DONE_CONTEXT
                                                             : MW_DONE_CANCELLED;
    if (strcmp(text, "length") == 0) {
        say_words(c, out, "only so much", false);
        return MW_DONE_LENGTH;
    }
    if (strcmp(text, "markdown") == 0)
        return say_words(c, out, markdown, false) ? MW_DONE_STOP : MW_DONE_CANCELLED;
    if (strcmp(text, "wide") == 0)
        return say_words(c, out, wide, false) ? MW_DONE_STOP : MW_DONE_CANCELLED;
    if (strcmp(text, "evil") == 0)
        return say_words(c, out, evil, false) ? MW_DONE_STOP : MW_DONE_CANCELLED;
    snprintf(buf, sizeof buf, "You said: %.3000s", text);
    return say_words(c, out, buf, false) ? MW_DONE_STOP : MW_DONE_CANCELLED;
}

static uint32_t count_tokens(const char *text)
{
    return (uint32_t)(strlen(text) / 4 + 4);
}

static void run_answer(struct mw_chat *c, const char *text, const char *before)
{
    bool is_slow = strcmp(text, "slow") == 0 || strcmp(text, "say Again: slow") == 0;
    uint32_t n_prompt = is_slow ? 2000 : count_tokens(text), steps = is_slow ? 40 : 2;
    uint64_t start = clock_ns();
    struct mw_event ev = { .kind = MW_EVENT_STARTED, .n = n_prompt };
    struct mw_receipt *r = &ev.receipt;
    char *said = before == NULL ? NULL : strdup(before);
    bool stop = false;
    uint64_t first;

    pthread_mutex_lock(&c->lock);
    c->sample.state = MW_PREFILL;
    c->sample.n_prompt = n_prompt;
    c->sample.n_prompt_done = c->sample.n_decoded = 0;
    c->sample.t_start_ns = start;
    c->sample.t_first_ns = c->sample.t_last_ns = 0;
    pthread_mutex_unlock(&c->lock);
    post(c, ev, NULL);
    for (uint32_t i = 1; i <= steps && !stop; i++) {
        stop = !work(c);
        c->sample.n_prompt_done = (uint64_t)n_prompt * i / steps;
        post(c,
             (struct mw_event){
                 .kind = MW_EVENT_PROGRESS, .n = c->sample.n_prompt_done, .total = n_prompt },
             NULL);
    }
    first = clock_ns();
    c->sample.prefill_ns = first - start;
    c->sample.state = MW_DECODE;
    ev = (struct mw_event){ .kind = MW_EVENT_DONE };
    r->done = stop ? MW_DONE_CANCELLED : answer(c, text, &said, &ev.err);
    r->n_prompt = n_prompt;
    r->n_decoded = (uint32_t)c->sample.n_decoded;
    r->first_ns = first - start;
    r->prefill_ns = first - start;
    r->decode_ns = clock_ns() - first + 1;
    r->stall_ns = r->decode_ns * 7 / 10;
    r->bytes_read = c->plan.streamed_bytes * r->n_decoded;
    fake_watch_answered(&c->options.engine, &c->plan);
    ev.has_answer = said != NULL;
    if (said != NULL && c->n_message < MAX_MESSAGES)
        c->message[c->n_message++] = said;
    pthread_mutex_lock(&c->lock);
    c->sample.state = MW_IDLE;
    c->busy = c->first != NULL;
    pthread_mutex_unlock(&c->lock);
    post(c, ev, NULL);
}

static void forget(struct mw_chat *c, size_t keep)
{
    while (c->n_message > keep)
        free(c->message[--c->n_message]);
}

static void fill_sample(struct mw_chat *c)
{
    struct mw_sample *s = &c->sample;
    struct mw_model_info info;

    mw_model_info(c->model, &info);
    snprintf(s->run.model, sizeof s->run.model, "%s", info.name);
    snprintf(s->run.type, sizeof s->run.type, "%s", info.type);
    snprintf(s->run.arch, sizeof s->run.arch, "%s", info.arch);
    snprintf(s->run.io, sizeof s->run.io, "direct/fake");
    snprintf(s->run.kv_k, sizeof s->run.kv_k, "%s", mw_kv_name(c->options.engine.kv_k));
    snprintf(s->run.kv_v, sizeof s->run.kv_v, "%s", mw_kv_name(c->options.engine.kv_v));
    snprintf(s->run.isa, sizeof s->run.isa, "fake");
    snprintf(s->run.products, sizeof s->run.products, "the fake kernels");
    s->run.n_layer = s->n_layer = N_LAYER;
    s->run.ctx = c->plan.n_ctx;
    s->run.predicted_decode = c->plan.decode_tps;
    s->run.predicted_binds = c->plan.binds;
    s->run.budget_bytes = c->plan.budget_bytes;
    s->run.threads = 4;
    s->run.hot_bytes = HOT_BYTES;
    s->run.file_bytes = info.file_bytes;
    for (int i = 0; i < MW_PLAN_ROWS; i++)
        s->mem.plan[i] = s->mem.used[i] = c->plan.row[i];
    s->mem.used[MW_ROW_KV_GLOBAL] = c->tokens * kv_token_bytes(&c->options.engine);
    s->kv.capacity = c->plan.n_ctx;
    s->kv.bytes_reserved = c->plan.row[MW_ROW_KV_GLOBAL];
    s->disk_limit = 2 * GIB;
    for (uint32_t i = 0; i <= N_LAYER; i++)
        s->layer[i] = (struct mw_sample_layer){
            .kind = i == N_LAYER ? MW_LAYER_HEAD
                    : i % 5 == 4 ? MW_LAYER_GLOBAL
                                 : MW_LAYER_SLIDING,
            .bytes = HOT_BYTES / (N_LAYER + 1),
            .pinned_bytes = c->plan.pinned_bytes / (N_LAYER + 1),
        };
}

int mw_chat_plan(struct mw_chat *c, const struct mw_options *o, struct plan *out, struct err *e)
{
    return mw_plan(c->model, o, out, e);
}

static void set_options(struct mw_chat *c, const struct mw_chat_options *o)
{
    struct mw_event ev = { .kind = MW_EVENT_PLAN };

    if (mw_plan(c->model, &o->engine, &ev.plan, &ev.err) != 0) {
        ev.kind = MW_EVENT_REFUSED;
    } else {
        pthread_mutex_lock(&c->lock);
        c->options = *o;
        c->plan = ev.plan;
        fill_sample(c);
        pthread_mutex_unlock(&c->lock);
    }
    post(c, ev, NULL);
}

static void run_command(struct mw_chat *c, struct command *cmd)
{
    switch (cmd->kind) {
    case SEND:
        if (c->n_message + 2 < MAX_MESSAGES)
            c->message[c->n_message++] = strdup(cmd->text);
        run_answer(c, cmd->text, NULL);
        break;
    case CONTINUE: {
        char *before = c->n_message > 0 ? strdup(c->message[c->n_message - 1]) : NULL;

        if (c->n_message > 0)
            forget(c, c->n_message - 1);
        run_answer(c, "say  and so on to the end", before);
        free(before);
        break;
    }
    case RETRY: {
        char again[600] = "say Again: ";

        if (c->n_message >= 2) {
            forget(c, c->n_message - 1);
            snprintf(again, sizeof again, "say Again: %.500s", c->message[c->n_message - 1]);
        }
        run_answer(c, again, NULL);
        break;
    }
    case REWIND: forget(c, cmd->n); break;
    case RESTORE:
        forget(c, 0);
        c->n_message = 0;
        for (size_t i = 0; i < cmd->n && c->n_message < MAX_MESSAGES; i++)
            c->message[c->n_message++] = strdup("restored");
        break;
    case SET: set_options(c, &cmd->options); break;
    }
}

static void *engine(void *arg)
{
    struct mw_chat *c = arg;

    work(c);
    post(c, (struct mw_event){ .kind = MW_EVENT_READY, .plan = c->plan }, NULL);
    pthread_mutex_lock(&c->lock);
    while (!c->leaving) {
        struct command *cmd = c->first;

        if (cmd == NULL) {
            c->busy = false;
            pthread_cond_wait(&c->wake, &c->lock);
            continue;
        }
        c->first = cmd->next;
        c->cancelled = false;
        pthread_mutex_unlock(&c->lock);
        run_command(c, cmd);
        free(cmd->text);
        free(cmd);
        pthread_mutex_lock(&c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

int mw_chat_open(struct mw_chat **out, struct mw_model *m, const struct mw_chat_options *o,
                 struct err *e)
{
    struct mw_chat *c = calloc(1, sizeof *c);

    *out = NULL;
    if (c == NULL)
        return err_set(e, ERR_MEMORY, "no memory");
    c->model = m;
    c->options = *o;
    if (mw_plan(m, &o->engine, &c->plan, e) != 0) {
        free(c);
        return -1;
    }
    fill_sample(c);
    c->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    pthread_mutex_init(&c->lock, NULL);
    clock_cond_init(&c->wake);
    if (c->fd < 0 || pthread_create(&c->thread, NULL, engine, c) != 0) {
        free(c);
        return err_set(e, ERR_MEMORY, "cannot start a thread");
    }
    *out = c;
    return 0;
}

bool mw_chat_stop(struct mw_chat *c, unsigned ms)
{
    (void)c;
    (void)ms;
    return true; /* closing never waits for the disk */
}

void mw_chat_close(struct mw_chat *c)
{
    if (c == NULL)
        return;
    pthread_mutex_lock(&c->lock);
    c->leaving = true;
    pthread_cond_broadcast(&c->wake);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
    while (c->first != NULL) {
        struct command *next = c->first->next;

        free(c->first->text);
        free(c->first);
        c->first = next;
    }
    for (; c->n_event > 0; c->n_event--, c->event_from = (c->event_from + 1) % MAX_EVENTS)
        free(c->event_text[c->event_from]);
    free(c->held);
    forget(c, 0);
    close(c->fd);
    free(c);
}

int mw_chat_fd(struct mw_chat *c)
{
    return c->fd;
}

static int queue(struct mw_chat *c, struct command like, const char *text, size_t len,
                 struct err *e)
{
    struct command *cmd = malloc(sizeof *cmd), **at;

    if (cmd == NULL)
        return err_set(e, ERR_MEMORY, "no memory");
    *cmd = like;
    cmd->text = text == NULL ? NULL : strndup(text, len);
    pthread_mutex_lock(&c->lock);
    for (at = &c->first; *at != NULL; at = &(*at)->next)
        ;
    *at = cmd;
    if (like.kind == SEND || like.kind == CONTINUE || like.kind == RETRY)
        c->busy = true;
    pthread_cond_broadcast(&c->wake);
    pthread_mutex_unlock(&c->lock);
    return 0;
}

int mw_chat_send(struct mw_chat *c, const char *text, size_t len, struct err *e)
{
    return queue(c, (struct command){ .kind = SEND }, text, len, e);
}

int mw_chat_send_within(struct mw_chat *c, const char *text, size_t len, uint32_t n_predict,
                        struct err *e)
{
    (void)n_predict;
    return mw_chat_send(c, text, len, e);
}

int mw_chat_continue(struct mw_chat *c, struct err *e)
{
    return queue(c, (struct command){ .kind = CONTINUE }, NULL, 0, e);
}

int mw_chat_retry(struct mw_chat *c, struct err *e)
{
    return queue(c, (struct command){ .kind = RETRY }, NULL, 0, e);
}

int mw_chat_aside(struct mw_chat *c, struct err *e)
{
    (void)c;
    (void)e;
    return 0;
}

int mw_chat_rewind(struct mw_chat *c, size_t n, struct err *e)
{
    return queue(c, (struct command){ .kind = REWIND, .n = n }, NULL, 0, e);
}

uint64_t mw_text_bytes(const struct mw_model *m, const struct mw_options *o)
{
    (void)m;
    return 65536 + (uint64_t)32 * (o->n_ctx > 0 ? o->n_ctx : 4096);
}

int mw_chat_restore(struct mw_chat *c, const struct mw_message *messages, size_t n,
                    size_t n_before, struct err *e)
{
    (void)messages;
    return queue(c, (struct command){ .kind = RESTORE, .n = n_before + n }, NULL, 0, e);
}

int mw_chat_set(struct mw_chat *c, const struct mw_chat_options *o, struct err *e)
{
    return queue(c, (struct command){ .kind = SET, .options = *o }, NULL, 0, e);
}

void mw_chat_cancel(struct mw_chat *c)
{
    pthread_mutex_lock(&c->lock);
    c->cancelled = true;
    pthread_cond_broadcast(&c->wake);
    pthread_mutex_unlock(&c->lock);
}

void mw_chat_sample(struct mw_chat *c, struct mw_sample *out)
{
    pthread_mutex_lock(&c->lock);
    *out = c->sample;
    out->kv.context = c->tokens;
    pthread_mutex_unlock(&c->lock);
    out->t_ns = clock_ns();
}

bool mw_chat_is_busy(struct mw_chat *c)
{
    return c->busy;
}

int mw_chat_cost(struct mw_chat *c, uint32_t n_token, struct mw_cost *out, struct err *e)
{
    uint32_t tokens = mw_chat_tokens(c);

    (void)e;
    *out = (struct mw_cost){ .n_token = n_token + 4 };
    out->n_ctx_left = c->plan.n_ctx > tokens ? c->plan.n_ctx - tokens : 0;
    out->seconds = out->n_token / 40.0;
    out->bytes = c->plan.streamed_bytes * (out->n_token / 256 + 1);
    return 0;
}

void mw_chat_cost_again(struct mw_chat *c, const struct plan *plan, struct mw_cost *out)
{
    uint32_t tokens = mw_chat_tokens(c);

    *out = (struct mw_cost){ .n_again = tokens,
                             .seconds = tokens / 40.0,
                             .bytes = plan->streamed_bytes };
}

uint32_t mw_chat_tokens(struct mw_chat *c)
{
    uint32_t tokens;

    pthread_mutex_lock(&c->lock);
    tokens = c->tokens;
    pthread_mutex_unlock(&c->lock);
    return tokens;
}
