/* See anchors.h. */
#include "config.h"

#include "engine/session/anchors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/plan/factors.h"
#include "engine/plan/outlook.h"
#include "engine/session/model.h"
#include "engine/session/options.h"
#include "engine/session/plan_input.h"
#include "engine/session/product_choice.h"

#define NS           1e9
#define SAME_LOAD_S  600 /* until then, other programs are probably still there */
#define FIRST_TOKENS 32  /* while an answer is this long, its mean is taken more often */

struct anchor_box *anchors_new(void)
{
    struct anchor_box *b = calloc(1, sizeof *b);

    if (b != NULL)
        pthread_mutex_init(&b->lock, NULL);
    return b;
}

void anchors_free(struct anchor_box *b)
{
    if (b == NULL)
        return;
    while (b->texts != NULL) {
        struct anchor_text *next = b->texts->next;

        free(b->texts);
        b->texts = next;
    }
    pthread_mutex_destroy(&b->lock);
    free(b);
}

/* Returns a copy that lives as long as b; NULL for NULL, or without memory. */
static const char *keep_text(struct anchor_box *b, const char *text)
{
    struct anchor_text *t = b->texts;
    size_t n;

    if (text == NULL)
        return NULL;
    while (t != NULL && strcmp(t->text, text) != 0)
        t = t->next;
    if (t != NULL)
        return t->text;
    n = strlen(text) + 1;
    t = malloc(sizeof *t + n);
    if (t == NULL)
        return NULL;
    memcpy(t->text, text, n);
    t->next = b->texts;
    b->texts = t;
    return t->text;
}

void mw_model_anchor(const struct mw_model *m, struct plan_anchor *out)
{
    pthread_mutex_lock(&m->anchors->lock);
    *out = m->anchors->now;
    pthread_mutex_unlock(&m->anchors->lock);
}

static void replace(const struct mw_model *m, const struct plan_anchor *a)
{
    pthread_mutex_lock(&m->anchors->lock);
    m->anchors->now = *a;
    pthread_mutex_unlock(&m->anchors->lock);
}

struct plan_anchor anchors_now(const struct plan_anchor *a)
{
    double age_s = (double)time(NULL) - a->measured_s;

    return age_s >= 0 && age_s < SAME_LOAD_S ? *a : plan_anchor_alone(a);
}

void mw_model_set_anchor(struct mw_model *m, const struct plan_anchor *a)
{
    struct plan_anchor now = anchors_now(a);

    replace(m, &now);
}

bool anchors_in_use(const struct mw_model *m, struct mw_options *out)
{
    bool is_used;

    pthread_mutex_lock(&m->anchors->lock);
    *out = m->anchors->in_use;
    is_used = m->anchors->is_used;
    pthread_mutex_unlock(&m->anchors->lock);
    return is_used;
}

void anchors_use(const struct mw_model *m, const struct mw_options *o)
{
    struct anchor_box *b = m->anchors;

    pthread_mutex_lock(&b->lock);
    b->in_use = *o;
#define NO_NUMBER(...)
#define KEEP_TEXT(name, reach) b->in_use.name = keep_text(b, o->name);
    MW_OPTION_FIELDS(NO_NUMBER, KEEP_TEXT)
    b->is_used = true;
    pthread_mutex_unlock(&b->lock);
}

/* ---- what an anchor holds for ---- */

/* FNV-1a of the name of the kernels that these options choose. */
static double kernels_number(const struct mw_options *o)
{
    struct err ignored = ERR_INIT;
    const struct kernels *kernels = kernels_of(o, &ignored);
    uint32_t hash = 0x811c9dc5u;

    for (const char *c = kernels != NULL ? kernels->name : ""; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * 0x01000193u;
    return hash;
}

bool anchors_hold(const struct plan_anchor *a, const struct mw_options *o)
{
    /* Tokens of one disk say little about two. */
    return o->mirror == NULL && a->measured_s > 0 && plan_anchor_is_plausible(a) && a->io == (double)o->io &&
           a->exact == (double)o->exact && a->kernels == kernels_number(o);
}

struct mw_options anchors_options(const struct plan_anchor *a, const struct mw_options *o)
{
    struct mw_options then = *o;

    then.memory_bytes = (uint64_t)a->memory_bytes;
    then.n_ctx = (uint32_t)a->n_ctx;
    then.n_thread = (int)a->n_thread;
    then.kv_k = (enum mw_kv)a->kv_k;
    then.kv_v = (enum mw_kv)a->kv_v;
    then.disk_rate = (uint64_t)a->disk_rate;
    return then;
}

double anchors_measured(const struct mw_model *m, const struct mw_options *o,
                        struct mw_options *out, bool *holds)
{
    struct plan_anchor a;

    mw_model_anchor(m, &a);
    *holds = anchors_hold(&a, o);
    if (!(a.measured_s > 0) || !plan_anchor_is_plausible(&a))
        return 0;
    *out = anchors_options(&a, o);
    return a.token_s;
}

/* --disk-rate limits the disk, whatever the disk was seen to do. */
static void limit_disk(const struct plan_anchor *a, double rate, const struct mw_options *o,
                       struct plan_input *in)
{
    double limit = (double)o->disk_rate;
    struct plan_factors *f = &in->factors;

    if (a->disk_rate == limit)
        return;
    if (a->disk_rate > 0) { /* the limit was seen, not the disk */
        f->disk = 1 / f->whole;
        return;
    }
    rate /= f->disk * f->whole;
    if (rate > 0 && limit > 0)
        f->disk = in->disk_bytes_s / fmin(rate, limit) / f->whole;
}

void anchors_correct(const struct plan_anchor *a, const struct plan_input *then,
                     double disk_bytes_s, const struct mw_options *o, struct plan_input *in)
{
    in->factors = plan_factors_of(then, a);
    if (in->factors.is_set)
        limit_disk(a, disk_bytes_s, o, in);
}

void anchors_apply(struct mw_model *m, const struct mw_options *o, struct plan_input *in)
{
    struct err ignored = ERR_INIT;
    struct plan_anchor a;
    struct plan_input then;
    struct mw_options measured;

    mw_model_anchor(m, &a);
    if (!anchors_hold(&a, o))
        return;
    measured = anchors_options(&a, o);
    if (plan_input_formula(m, &measured, &then, &ignored) != 0)
        return;
    anchors_correct(&a, &then, limits_of(m).disk_bytes_s, o, in);
}

/* ---- the tokens of an answer ---- */

void anchors_begin(struct anchor_tokens *t)
{
    t->n = t->n_skipped = 0;
}

bool anchors_add(struct anchor_tokens *t, const struct anchor_token *token)
{
    if (t->n_skipped < ANCHORS_SKIPPED) {
        t->n_skipped++;
        return false;
    }
    t->token[t->n++ % ANCHORS_KEPT] = *token;
    if (t->n < ANCHOR_TOKENS)
        return t->n >= ANCHOR_LEAST;
    return t->n % (t->n < FIRST_TOKENS ? 4 : 16) == 0;
}

/* The means of the newest n tokens, without the settings. */
static struct plan_anchor mean(const struct anchor_tokens *t, uint32_t n)
{
    struct plan_anchor a = { .measured_s = (double)time(NULL),
                             .n_token = n,
                             .crowding = t->crowding };

    for (uint32_t i = 1; i <= n; i++) {
        const struct anchor_token *k = &t->token[(t->n - i) % ANCHORS_KEPT];
        uint64_t stall = k->stall_ns > k->lookup_ns ? k->stall_ns - k->lookup_ns : 0;

        a.token_s += (double)k->token_ns / NS / n;
        a.stall_s += (double)stall / NS / n;
        a.lookup_s += (double)k->lookup_ns / NS / n;
        a.attention_s += (double)k->attention_ns / NS / n;
        a.others_s += (double)k->wait_ns / NS / n;
        a.ran_s += (double)k->ran_ns / NS / n;
        a.fixed_s += (double)(k->token_ns - k->wall_ns) / NS / n;
        a.disk_bytes += (double)k->bytes / n;
    }
    return a;
}

void anchors_take(const struct anchor_tokens *t, uint32_t most, struct mw_model *m,
                  const struct mw_options *o, const struct plan_input *in, const struct plan *p)
{
    uint32_t n = t->n < most ? t->n : most, middle = t->n_seen - n / 2;
    const struct plan_run run = { middle, 0, 1 };
    struct plan_anchor a = mean(t, n), before;
    struct plan_outlook outlook;

    if (in->n_weights == 0 || o->mirror != NULL) /* it could not be made, or two disks read */
        return;
    plan_outlook(in, p, &run, &outlook);
    a.n_thread = o->n_thread;
    a.kernels = kernels_number(o);
    a.io = o->io;
    a.exact = o->exact;
    a.memory_bytes = (double)o->memory_bytes;
    a.n_ctx = o->n_ctx;
    a.chunk = p->chunk;
    a.kv_k = o->kv_k;
    a.kv_v = o->kv_v;
    a.disk_rate = (double)o->disk_rate;
    a.streamed_share = outlook.pass.streamed_share;
    a.missed_share = outlook.pass.missed_share;
    a.keeps_rows = outlook.pass.keeps_rows;
    a.starts_cold = outlook.pass.starts_cold;
    a.n_slot = outlook.pass.n_slot;
    a.n_seen = middle;
    mw_model_anchor(m, &before);
    if (!anchors_hold(&before, o) || before.disk_rate != a.disk_rate)
        before = (struct plan_anchor){ 0 };
    if (!plan_anchor_is_plausible(&a))
        return;
    if (plan_anchor_is_doubtful(&a) && before.measured_s > 0 &&
        before.n_thread == a.n_thread && !plan_anchor_is_doubtful(&before))
        return;
    plan_anchor_finish(in, &before, &a);
    replace(m, &a);
}
