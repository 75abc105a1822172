/*
 * A chat without a thread: its descriptor is a timer, and each time it rings, next() does the
 * next step of the answer.
 */
#include "config.h"

#include "tests/lib/fake_engine.h"

#include <sys/timerfd.h>

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/clock.h"

#define N_LAYER      35
#define HOT_BYTES    ((uint64_t)4630 << 20)
#define MAX_MESSAGES 200
#define MAX_COMMANDS 32
#define MAX_TEXT     1000

uint64_t fake_engine_counted;
uint32_t fake_engine_token_us = 1000;
double fake_engine_disk = 2;

enum command_kind { SEND, RESUME, RETRY, REWIND, STASH, UNSTASH, RESTORE, SET };

struct command {
    enum command_kind kind;
    char text[MAX_TEXT];
    size_t n;
    struct mw_chat_options options;
};

/* The answer that is being made. */
struct answer {
    char text[MAX_TEXT + 20];
    const char *at;     /* of text: what is still to be said */
    const char *format; /* or, without text: "lines", "word" and a number */
    int n, last;        /* of these numbers */
    char gate[300];     /* a file to wait for before text; "": none */
    enum mw_done done;  /* its end */
    uint32_t n_prompt, step, n_step;
    uint64_t start_ns, first_ns;
    bool has_text, loses_drafter;
};

struct fake {
    struct engine engine; /* the first member */
    char path[256];
    int timer; /* -1 before start() */
    bool is_ready, is_answering, is_cancelled;
    struct mw_chat_options options;
    struct plan plan;
    struct command command[MAX_COMMANDS];
    size_t n_command;
    char message[MAX_MESSAGES][MAX_TEXT];
    size_t n_message;
    char stash[MAX_MESSAGES][MAX_TEXT]; /* messages from stash_at on */
    size_t n_stash, stash_at;
    struct answer answer;
    uint32_t tokens;
    pthread_mutex_t lock; /* of sample, which the thread of a recorder reads */
    struct mw_sample sample;
    struct mw_tried tried[MW_TRIED_MOST]; /* the settings of the last answers */
    size_t n_tried;
};

static struct fake *of(struct engine *g)
{
    return (struct fake *)g;
}

/* ---- the model ---- */

static int fake_open(struct engine **out, const struct engine_model *m, struct err *e)
{
    const char *gate = strstr(m->path, "until:");
    struct fake *f = calloc(1, sizeof *f);

    *out = NULL;
    if (f == NULL)
        return err_memory(e, "a fake engine");
    if (strstr(m->path, "missing") != NULL) {
        free(f);
        errno = ENOENT;
        err_sys(e, "cannot open \"%s\"", m->path);
        return err_at(e, NULL, ERR_NO_OFFSET, NULL);
    }
    while (gate != NULL && access(gate + strlen("until:"), F_OK) != 0)
        usleep(5000);
    f->engine.calls = &fake_engine;
    f->timer = -1;
    snprintf(f->path, sizeof f->path, "%s", m->path);
    pthread_mutex_init(&f->lock, NULL);
    *out = &f->engine;
    return 0;
}

static int bare_open(struct engine **out, const struct engine_model *m, struct err *e)
{
    int rc = fake_open(out, m, e);

    if (rc == 0)
        (*out)->calls = &fake_bare_engine;
    return rc;
}

static void fake_close(struct engine *g)
{
    if (of(g)->timer >= 0)
        close(of(g)->timer);
    free(of(g));
}

static void fake_info(struct engine *g, struct mw_model_info *out)
{
    const char *path = of(g)->path;

    *out = (struct mw_model_info){ .arch = "gemma4",
                                   .type = "BF16",
                                   .n_layer = N_LAYER,
                                   .n_ctx_train = strstr(path, "4k") ? 4096 : 131072,
                                   .hot_bytes = HOT_BYTES };
    snprintf(out->name, sizeof out->name, "%s",
             strstr(path, "other") != NULL       ? "Other Model"
             : strstr(path, "long-name") != NULL ? "Fake Gemma with a long E4B"
                                                 : "Fake Gemma E2B");
}

static uint64_t fake_text_bytes(struct engine *g, const struct mw_options *o)
{
    (void)g;
    return 65536 + (uint64_t)32 * (o->n_ctx > 0 ? o->n_ctx : 4096);
}

static void fake_recommend(struct engine *g, struct mw_sampling *out)
{
    (void)g;
    *out =
        (struct mw_sampling){ .temp = 1.0f, .top_k = 64, .top_p = 0.95f, .repeat_penalty = 1 };
}

/* Each token is four bytes. */
static int fake_count(struct engine *g, const char *text, size_t n, uint32_t *out,
                      struct err *e)
{
    (void)g, (void)text, (void)e;
    fake_engine_counted += n;
    *out = (uint32_t)(n / 4);
    return 0;
}

/* ---- predictions ---- */

static uint64_t kv_token_bytes(const struct mw_options *o)
{
    static const uint64_t quarter[] = { 16, 8, 4, 2 };

    return (quarter[o->kv_k] + quarter[o->kv_v]) * 768;
}

static int fake_plan(struct engine *g, const struct mw_options *o, struct plan *out,
                     struct err *e)
{
    static const uint16_t mib[MW_PLAN_ROWS] = {
        [MW_ROW_PROGRAM] = 60,   [MW_ROW_TOKENIZER] = 40, [MW_ROW_ACTIVATIONS] = 50,
        [MW_ROW_LOGITS] = 1,     [MW_ROW_RING] = 32,      [MW_ROW_ROWS] = 4,
        [MW_ROW_KV_SLIDING] = 6, [MW_ROW_RESERVE] = 20,
    };
    uint64_t budget = o->memory_bytes != 0 ? o->memory_bytes : 1500 * MIB, sum = 0, left;
    uint32_t ctx = o->n_ctx != 0 ? o->n_ctx : 4096;

    if (strstr(of(g)->path, "huge") != NULL)
        return err_set(e, ERR_BUDGET, "a huge model does not fit");
    *out = (struct plan){ .budget_bytes = budget, .n_ctx = ctx, .chunk = 256, .n_slot = 8 };
    for (int i = 0; i < MW_PLAN_ROWS; i++) {
        out->row[i] = i == MW_ROW_KV_GLOBAL ? ctx * kv_token_bytes(o) : mib[i] * MIB;
        sum += out->row[i];
    }
    if (sum > budget)
        return err_set(e, ERR_BUDGET, "the budget is too small");
    left = budget - sum;
    out->pinned_bytes = out->row[MW_ROW_PINNED] = left < HOT_BYTES ? left : HOT_BYTES;
    out->sum_bytes = sum + out->pinned_bytes;
    out->streamed_bytes = HOT_BYTES - out->pinned_bytes;
    out->decode_tps = 1e9 / (0.05e9 + (double)out->streamed_bytes / fake_engine_disk);
    out->prefill_tps = 40;
    out->binds = out->streamed_bytes > 0 ? MW_BINDS_DISK : MW_BINDS_MEMORY;
    out->n_draft = o->draft == MW_DRAFT_SELF ? 7 : 0;
    return 0;
}

/* The same; of the bare engine, only the context is known. */
static int plan_of(struct fake *f, const struct mw_options *o, struct plan *out, struct err *e)
{
    if (f->engine.calls->plan != NULL)
        return fake_plan(&f->engine, o, out, e);
    *out = (struct plan){ .n_ctx = o->n_ctx != 0 ? o->n_ctx : 4096 };
    return 0;
}

static int fake_fit(struct engine *g, const struct mw_options *o, uint64_t *smallest_budget,
                    uint32_t *largest_ctx, struct err *e)
{
    (void)g, (void)o, (void)e;
    *smallest_budget = 256 * MIB;
    *largest_ctx = 8192;
    return 0;
}

static int fake_diagnose(struct engine *g, const struct mw_options *o,
                         const struct mw_sample *s, struct mw_diagnosis *out, struct err *e)
{
    struct plan plan;

    (void)s;
    if (fake_plan(g, o, &plan, e) != 0)
        return -1;
    *out = (struct mw_diagnosis){ .tps = plan.decode_tps,
                                  .binds = plan.binds,
                                  .read_bytes = plan.streamed_bytes };
    return 0;
}

/* Budgets and contexts in steps of a quarter of those in use. */
static bool fake_wall_begin(struct engine *g, struct mw_wall *w, const struct mw_options *o,
                            const struct mw_sample *s)
{
    static const uint64_t most[] = { UINT64_MAX, 8192 };
    const struct fake *f = of(g);

    *w = (struct mw_wall){ .here = { s->run.budget_bytes, s->run.ctx },
                           .n_mark = (uint32_t)f->n_tried };
    for (int axis = 0; axis < MW_WALL_AXES; axis++)
        for (uint64_t i = 1; i <= 12 && w->here[axis] / 4 * i <= most[axis]; i++) {
            struct mw_wall_point *p = &w->point[axis][w->n[axis]++];
            struct mw_options then = *o;
            struct err ignored = ERR_INIT;
            struct plan plan;

            p->at = w->here[axis] / 4 * i;
            if (axis == MW_WALL_BUDGET)
                then.memory_bytes = p->at;
            else
                then.n_ctx = (uint32_t)p->at;
            if (fake_plan(g, &then, &plan, &ignored) == 0)
                *p = (struct mw_wall_point){ p->at, plan.decode_tps, plan.decode_tps,
                                             plan.row[MW_ROW_KV_GLOBAL] };
        }
    for (size_t i = 0; i < f->n_tried; i++)
        w->mark[i] = (struct mw_wall_mark){
            .at = { (uint64_t)f->tried[i].memory_bytes, (uint64_t)f->tried[i].n_ctx },
            .tps = f->tried[i].tps,
            .is_session = true,
            .is_same = { f->tried[i].n_ctx == o->n_ctx },
        };
    return true;
}

/* All points were predicted. */
static bool fake_wall_step(struct engine *g, struct mw_wall *w, const struct mw_options *o,
                           const struct mw_sample *s, uint32_t n)
{
    (void)g, (void)w, (void)o, (void)s, (void)n;
    return false;
}

static int fake_cost(struct engine *g, uint32_t n_token, struct mw_cost *out, struct err *e)
{
    const struct fake *f = of(g);

    (void)e;
    *out = (struct mw_cost){ .n_token = n_token + 4 };
    out->n_ctx_left = f->plan.n_ctx > f->tokens ? f->plan.n_ctx - f->tokens : 0;
    out->seconds = out->n_token / 40.0;
    out->bytes = f->plan.streamed_bytes * (out->n_token / 256 + 1);
    return 0;
}

static void fake_cost_again(struct engine *g, const struct plan *plan, struct mw_cost *out)
{
    *out = (struct mw_cost){ .n_again = of(g)->tokens,
                             .seconds = of(g)->tokens / 40.0,
                             .bytes = plan->streamed_bytes };
}

static size_t fake_tried(struct engine *g, struct mw_tried *list)
{
    memcpy(list, of(g)->tried, of(g)->n_tried * sizeof list[0]);
    return of(g)->n_tried;
}

/* ---- the sample ---- */

static void fill_sample(struct fake *f)
{
    struct mw_sample *s = &f->sample;
    struct mw_model_info info;

    fake_info(&f->engine, &info);
    snprintf(s->run.model, sizeof s->run.model, "%s", info.name);
    snprintf(s->run.kv_k, sizeof s->run.kv_k, "%s", mw_kv_name(f->options.engine.kv_k));
    snprintf(s->run.kv_v, sizeof s->run.kv_v, "%s", mw_kv_name(f->options.engine.kv_v));
    s->run.ctx = f->plan.n_ctx;
    s->kv.capacity = f->plan.n_ctx;
    s->run.predicted_decode = f->plan.decode_tps;
    s->run.predicted_binds = f->plan.binds;
    s->run.budget_bytes = f->plan.budget_bytes;
    s->run.threads = 4;
    for (int i = 0; i < MW_PLAN_ROWS; i++)
        s->mem.plan[i] = s->mem.used[i] = f->plan.row[i];
    if (f->plan.budget_bytes == 0)
        return;
    s->verdict.binds = MW_BINDS_DISK;
    s->verdict.share = 0.71;
    snprintf(s->verdict.advice, sizeof s->verdict.advice, "more_budget");
    s->verdict.advice_from = 0.5;
    s->verdict.advice_to = 0.7;
    s->verdict.advice_amount = (double)(800 * MIB);
}

/* A forward pass is over. */
static void count_pass(struct fake *f)
{
    struct mw_sample *s = &f->sample;

    f->tokens++;
    s->kv.tokens = s->kv.context = f->tokens;
    s->kv.bytes_used = f->tokens * kv_token_bytes(&f->options.engine);
    s->mem.used[MW_ROW_KV_GLOBAL] = s->kv.bytes_used;
    s->pass.n_col = 1;
    s->pass.wall_ns = fake_engine_token_us * 1000ull;
    s->pass.stall_ns = s->pass.wall_ns * 7 / 10;
    s->io.bytes_read += f->plan.streamed_bytes;
}

static void fake_sample(struct engine *g, struct mw_sample *out)
{
    struct fake *f = of(g);

    pthread_mutex_lock(&f->lock);
    *out = f->sample;
    pthread_mutex_unlock(&f->lock);
    out->t_ns = clock_ns();
}

/* ---- the answer ---- */

static void ring(struct fake *f, uint64_t after_us)
{
    const struct itimerspec at = { .it_value = { (time_t)(after_us / 1000000),
                                                 (long)(after_us % 1000000 * 1000 + 1) } };

    timerfd_settime(f->timer, 0, &at, NULL);
}

static void choose_text(struct answer *a, const char *question, const char *first)
{
    static const struct {
        const char *question, *text;
        enum mw_done done;
    } replies[] = {
        { "full", "as far as it goes", MW_DONE_CONTEXT },
        { "wide",
          "\xe4\xbd\xa0\xe5\xa5\xbd\xef\xbc\x8c\xe4\xb8\x96\xe7\x95\x8c\xe3\x80\x82 "
          "\xf0\x9f\x98\x80 \xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb e\xcc\x81t\xc3\xa9 "
          "\xe2\x9d\xa4\xef\xb8\x8f \xf0\x9f\x87\xa9\xf0\x9f\x87\xaa "
          "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d "
          "\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2"
          "\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97 done",
          MW_DONE_STOP },
        { "evil",
          "a\x1b[2J\x1b[31mred\x1b]0;title\x07 b\xc2\x9b"
          "5n c\xe2\x80\xae"
          "desrever d\x07\x08 end",
          MW_DONE_STOP },
    };
    const char *gate = strstr(question, "until /");
    bool is_compact = strstr(question, "[/compact]") != NULL;

    a->done = MW_DONE_STOP;
    for (size_t i = 0; i < sizeof replies / sizeof replies[0]; i++)
        if (strcmp(question, replies[i].question) == 0) {
            snprintf(a->text, sizeof a->text, "%s", replies[i].text);
            a->done = replies[i].done;
            return;
        }
    if (gate != NULL) {
        snprintf(a->gate, sizeof a->gate, "%s", gate + strlen("until "));
        if (question[0] == 'f')
            a->done = MW_DONE_CONTEXT;
        else
            snprintf(a->text, sizeof a->text, "opened");
    } else if (strcmp(question, "endless") == 0 ||
               (is_compact && strcmp(first, "say ten") == 0)) {
        a->format = "word";
        a->last = INT_MAX;
    } else if (strncmp(question, "lines ", 6) == 0) {
        a->format = "line";
        a->last = atoi(question + 6);
    } else if (is_compact) {
        snprintf(a->text, sizeof a->text, "In short: one.");
    } else if (strncmp(question, "say ", 4) == 0) {
        snprintf(a->text, sizeof a->text, "%s", question + 4);
    } else {
        snprintf(a->text, sizeof a->text, "You said: %s", question);
    }
}

/* Write the next piece of the answer; false: it is over. */
static bool next_piece(struct answer *a, char *buf, size_t n)
{
    size_t len;

    if (a->gate[0] != '\0' && access(a->gate, F_OK) != 0) {
        snprintf(buf, n, "not yet ");
        return true;
    }
    a->gate[0] = '\0';
    if (a->n < a->last) {
        snprintf(buf, n, a->last == INT_MAX ? "word%d " : "line %d\n\n", ++a->n);
        return true;
    }
    len = strcspn(a->at, " \n");
    len += strspn(a->at + len, " \n");
    snprintf(buf, n, "%.*s", (int)len, a->at);
    a->at += strlen(buf);
    return len > 0;
}

static bool has_said_all(const struct answer *a)
{
    return a->step == a->n_step && a->gate[0] == '\0' && a->n >= a->last && *a->at == '\0';
}

static void begin_answer(struct fake *f, const char *question, bool resumes,
                         struct mw_event *out)
{
    bool is_slow = strcmp(question, "slow") == 0 || strcmp(question, "say Again: slow") == 0;
    struct answer *a = &f->answer;
    struct mw_sample *s = &f->sample;

    *a = (struct answer){ .start_ns = clock_ns(), .has_text = resumes };
    a->at = a->text;
    a->n_prompt = is_slow ? 2000 : (uint32_t)(strlen(question) / 4 + 4);
    a->n_step = is_slow ? 40 : 2;
    a->loses_drafter = strcmp(question, "losing") == 0;
    choose_text(a, question, f->n_message > 0 ? f->message[0] : "");
    s->state = MW_PREFILL;
    s->n_prompt = a->n_prompt;
    s->n_prompt_done = s->n_decoded = 0;
    s->t_start_ns = a->start_ns;
    s->t_first_ns = s->t_last_ns = 0;
    f->is_answering = true;
    if (strcmp(question, "trying") == 0 && f->options.engine.draft == MW_DRAFT_SELF) {
        f->plan.n_draft = 7;
        f->plan.no_drafter = MW_DRAFTER_IS_USED;
    }
    *out = (struct mw_event){ .kind = MW_EVENT_STARTED, .n = a->n_prompt, .plan = f->plan };
}

static void keep_tried(struct fake *f)
{
    struct mw_tried t = { .n_token = 24, .wait_share = 0.71, .is_session = true };

    mw_tried_of_options(&t, &f->options.engine);
    t.memory_bytes = (double)f->plan.budget_bytes;
    t.n_ctx = f->plan.n_ctx;
    t.n_thread = 4;
    t.tps = f->plan.decode_tps;
    t.measured_s = (double)time(NULL);
    mw_tried_put(f->tried, &f->n_tried, &t);
}

static void add_message(struct fake *f, const char *text)
{
    if (f->n_message < MAX_MESSAGES)
        snprintf(f->message[f->n_message++], MAX_TEXT, "%s", text);
}

static void end_answer(struct fake *f, enum mw_done done, struct mw_event *out)
{
    const struct answer *a = &f->answer;
    uint64_t first = a->first_ns > 0 ? a->first_ns : clock_ns();
    struct mw_receipt *r = &out->receipt;

    if (a->loses_drafter && f->plan.n_draft > 0) {
        f->plan.n_draft = 0;
        f->plan.no_drafter = MW_DRAFTER_CLOSED;
    }
    *out = (struct mw_event){ .kind = MW_EVENT_DONE, .has_answer = a->has_text, .plan = f->plan };
    r->done = done;
    r->n_prompt = a->n_prompt;
    r->n_decoded = (uint32_t)f->sample.n_decoded;
    r->first_ns = r->prefill_ns = first - a->start_ns;
    r->decode_ns = clock_ns() - first + 1;
    r->stall_ns = r->decode_ns * 7 / 10;
    r->bytes_read = f->plan.streamed_bytes * r->n_decoded;
    r->peak_charged = 1408 * MIB;
    keep_tried(f);
    if (a->has_text)
        add_message(f, "an answer");
    f->sample.state = MW_IDLE;
    f->is_answering = f->is_cancelled = false;
}

/* One forward pass. */
static void go_on(struct fake *f, struct mw_event *out)
{
    static char piece[MAX_TEXT];
    struct answer *a = &f->answer;
    struct mw_sample *s = &f->sample;

    count_pass(f);
    if (f->is_cancelled) {
        end_answer(f, MW_DONE_CANCELLED, out);
    } else if (a->step < a->n_step) {
        a->step++;
        s->n_prompt_done = (uint64_t)a->n_prompt * a->step / a->n_step;
        *out = (struct mw_event){ .kind = MW_EVENT_PROGRESS,
                                  .n = s->n_prompt_done,
                                  .total = a->n_prompt };
        if (a->step == a->n_step) {
            a->first_ns = clock_ns();
            s->prefill_ns = a->first_ns - a->start_ns;
            s->state = MW_DECODE;
        }
    } else if (next_piece(a, piece, sizeof piece)) {
        a->has_text = true;
        s->t_last_ns = clock_ns();
        if (s->n_decoded++ == 0)
            s->t_first_ns = s->t_last_ns;
        s->decode_ns = s->t_last_ns - s->t_first_ns;
        *out = (struct mw_event){ .kind = MW_EVENT_TEXT, .text = piece, .len = strlen(piece) };
    } else {
        end_answer(f, a->done, out);
    }
}

/* ---- commands ---- */

static void set_options(struct fake *f, const struct mw_chat_options *o, struct mw_event *out)
{
    *out = (struct mw_event){ .kind = MW_EVENT_PLAN };
    if (plan_of(f, &o->engine, &out->plan, &out->err) != 0) {
        out->kind = MW_EVENT_REFUSED;
        return;
    }
    f->options = *o;
    f->plan = out->plan;
    fill_sample(f);
}

static void keep_messages(struct fake *f, size_t n)
{
    if (f->n_message > n)
        f->n_message = n;
}

/* Returns whether the command posts an event. */
static bool run_command(struct fake *f, const struct command *c, struct mw_event *out)
{
    char again[MAX_TEXT];

    switch (c->kind) {
    case SEND:
        add_message(f, c->text);
        begin_answer(f, c->text, false, out);
        return true;
    case RESUME:
        keep_messages(f, f->n_message > 0 ? f->n_message - 1 : 0);
        begin_answer(f, "say  and so on to the end", true, out);
        return true;
    case RETRY:
        keep_messages(f, f->n_message > 1 ? f->n_message - 1 : 1);
        snprintf(again, sizeof again, "say Again: %.900s", f->message[f->n_message - 1]);
        begin_answer(f, again, false, out);
        return true;
    case REWIND: keep_messages(f, c->n); return false;
    case STASH:
        f->stash_at = c->n;
        f->n_stash = f->n_message > c->n ? f->n_message - c->n : 0;
        memcpy(f->stash, f->message[c->n], f->n_stash * MAX_TEXT);
        keep_messages(f, c->n);
        return false;
    case UNSTASH:
        keep_messages(f, f->stash_at);
        for (size_t i = 0; i < f->n_stash; i++)
            add_message(f, f->stash[i]);
        return false;
    case RESTORE:
        keep_messages(f, 0);
        for (size_t i = 0; i < c->n; i++)
            add_message(f, "restored");
        return false;
    case SET:
        set_options(f, &c->options, out);
        return c->options.engine.memory_bytes != FAKE_LONG_CHANGE; /* else it is still made */
    }
    return false;
}

/* An answer goes on with other options, unless they need other keys and values. */
static bool can_run_command(const struct fake *f)
{
    const struct command *c = &f->command[0];

    return f->n_command > 0 &&
           (!f->is_answering ||
            (c->kind == SET && mw_keeps_kv(NULL, &f->options.engine, &c->options.engine)));
}

static bool do_step(struct fake *f, struct mw_event *out)
{
    struct command c;

    if (!f->is_ready) {
        f->is_ready = true;
        count_pass(f);
        *out = (struct mw_event){ .kind = MW_EVENT_READY, .plan = f->plan };
        return true;
    }
    while (can_run_command(f)) {
        c = f->command[0];
        memmove(f->command, f->command + 1, --f->n_command * sizeof c);
        if (run_command(f, &c, out))
            return true;
    }
    if (f->is_answering)
        go_on(f, out);
    return f->is_answering || out->kind == MW_EVENT_DONE;
}

static bool fake_next(struct engine *g, struct mw_event *out)
{
    struct fake *f = of(g);
    uint64_t n_ring;
    bool has_event;

    if (f->timer < 0 || read(f->timer, &n_ring, sizeof n_ring) < 0)
        return false;
    *out = (struct mw_event){ .kind = MW_EVENT_READY };
    pthread_mutex_lock(&f->lock);
    has_event = do_step(f, out);
    pthread_mutex_unlock(&f->lock);
    if (f->is_answering && !has_said_all(&f->answer))
        ring(f, fake_engine_token_us);
    else if (f->is_answering || f->n_command > 0)
        ring(f, 0);
    return has_event;
}

static int queue(struct fake *f, const struct command *c)
{
    if (f->n_command < MAX_COMMANDS)
        f->command[f->n_command++] = *c;
    if (!f->is_answering) {
        f->is_cancelled = false;
        ring(f, f->is_ready ? 0 : fake_engine_token_us);
    }
    return 0;
}

static int fake_send(struct engine *g, const char *text, size_t len, uint32_t n_predict,
                     struct err *e)
{
    struct command c = { .kind = SEND };

    (void)n_predict, (void)e;
    snprintf(c.text, sizeof c.text, "%.*s", (int)(len < MAX_TEXT ? len : MAX_TEXT), text);
    return queue(of(g), &c);
}

static int fake_resume(struct engine *g, struct err *e)
{
    (void)e;
    return queue(of(g), &(struct command){ .kind = RESUME });
}

static int fake_retry(struct engine *g, struct err *e)
{
    (void)e;
    return queue(of(g), &(struct command){ .kind = RETRY });
}

static int fake_aside(struct engine *g, struct err *e)
{
    (void)g, (void)e;
    return 0;
}

static int fake_rewind(struct engine *g, size_t n, struct err *e)
{
    (void)e;
    return queue(of(g), &(struct command){ .kind = REWIND, .n = n });
}

static int fake_stash(struct engine *g, size_t n, size_t n_all, struct err *e)
{
    (void)n_all, (void)e;
    return queue(of(g), &(struct command){ .kind = STASH, .n = n });
}

static int fake_unstash(struct engine *g, struct err *e)
{
    (void)e;
    return queue(of(g), &(struct command){ .kind = UNSTASH });
}

static int fake_restore(struct engine *g, const struct mw_message *messages, size_t n,
                        size_t n_before, struct err *e)
{
    (void)messages, (void)e;
    return queue(of(g), &(struct command){ .kind = RESTORE, .n = n_before + n });
}

static int fake_set(struct engine *g, const struct mw_chat_options *o, struct err *e)
{
    (void)e;
    return queue(of(g), &(struct command){ .kind = SET, .options = *o });
}

static void fake_cancel(struct engine *g)
{
    of(g)->is_cancelled = true;
    if (of(g)->timer >= 0)
        ring(of(g), 0);
}

static int fake_start(struct engine *g, const struct mw_chat_options *o, struct err *e)
{
    struct fake *f = of(g);

    f->options = *o;
    if (plan_of(f, &o->engine, &f->plan, e) != 0)
        return -1;
    fill_sample(f);
    f->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (f->timer < 0)
        return err_sys(e, "cannot make a timer");
    ring(f, fake_engine_token_us);
    return 0;
}

static int fake_fd(struct engine *g)
{
    return of(g)->timer;
}

static uint32_t fake_tokens(struct engine *g)
{
    return of(g)->tokens;
}

#define CHAT                                                                                   \
    .close = fake_close, .info = fake_info, .text_bytes = fake_text_bytes,                     \
    .start = fake_start, .fd = fake_fd, .next = fake_next, .tokens = fake_tokens,              \
    .sample = fake_sample, .send = fake_send, .resume = fake_resume, .retry = fake_retry,      \
    .aside = fake_aside, .rewind = fake_rewind, .stash = fake_stash,                           \
    .unstash = fake_unstash, .restore = fake_restore, .set = fake_set, .cancel = fake_cancel

const struct engine_calls fake_engine = {
    CHAT,
    .open = fake_open,
    .recommend = fake_recommend,
    .count = fake_count,
    .plan = fake_plan,
    .fit = fake_fit,
    .diagnose = fake_diagnose,
    .wall_begin = fake_wall_begin,
    .wall_step = fake_wall_step,
    .cost = fake_cost,
    .cost_again = fake_cost_again,
    .tried = fake_tried,
};

const struct engine_calls fake_bare_engine = { CHAT, .open = bare_open };
