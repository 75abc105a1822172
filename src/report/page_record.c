/* See page_record.h. */
#include "config.h"

#include "src/report/page_record.h"

#include <stdlib.h>

#include "engine/base/clock.h"
#include "engine/base/greatest.h"
#include "engine/base/json_write.h"

#define LEAST_TOKENS 3

struct run {
    const struct page_record *how;
    struct mw_session *session;
    struct mw_watch *watch;
    struct mw_sample *sample;
    struct json json;
    uint32_t n_vocab;
};

static void record(struct run *r, const char *event)
{
    mw_session_sample(r->session, r->sample);
    mw_watch_complete(r->watch, r->sample);
    mw_sample_json(&r->json, r->sample, event);
    json_line(&r->json);
}

/* The session does not count tokens, since it does not know which ids are an answer. */
static void record_token(struct run *r, uint32_t n)
{
    const struct mw_sample *s = r->sample;
    static const struct mw_expert_trace none;
    struct mw_token token = { .n = n + 1, .n_col = 1 };

    mw_session_sample(r->session, r->sample);
    token.t_ns = clock_ns();
    token.wall_ns = s->pass.wall_ns;
    token.stall_ns = s->pass.stall_ns;
    token.compute_ns = s->pass.compute_ns;
    token.attention_ns = s->pass.attention_ns;
    token.head_ns = s->pass.head_ns;
    token.lookup_ns = s->pass.lookup_ns;
    token.bytes_pass = s->pass.bytes_pass;
    token.kv_tokens = s->kv.tokens;
    token.wait_ns = s->pass.wait_ns;
    token_json(&r->json, &token, &none);
    json_line(&r->json);
}

static int evaluate(struct run *r, const uint32_t *ids, uint32_t n, struct err *e)
{
    if (*r->how->cancelled)
        return err_set(e, ERR_CANCELLED, "stopped");
    return mw_session_eval(r->session, ids, n, NULL, NULL, e);
}

/* Ids from all over the vocabulary, the same in each run. */
static int evaluate_prompt(struct run *r, struct err *e)
{
    uint32_t n = r->how->n_prompt, *ids = calloc(n, sizeof *ids);
    int rc;

    if (ids == NULL)
        return err_memory(e, "a prompt");
    for (uint32_t i = 0; i < n; i++)
        ids[i] = (uint32_t)(((uint64_t)i * 7919 + 1009) % r->n_vocab);
    rc = evaluate(r, ids, n, e);
    free(ids);
    record(r, "second");
    r->how->token(r->how->ctx, 0);
    return rc;
}

static int decode(struct run *r, struct err *e)
{
    uint64_t until = clock_ns() + (uint64_t)(r->how->seconds * 1e9);

    for (uint32_t i = 0; i < r->how->n_token && (i < LEAST_TOKENS || clock_ns() < until); i++) {
        uint32_t id = greatest_of(mw_session_logits(r->session), r->n_vocab);

        if (evaluate(r, &id, 1, e) != 0)
            return -1;
        record_token(r, i);
        record(r, "second");
        r->how->token(r->how->ctx, i + 1);
    }
    return 0;
}

static int work(struct run *r, struct mw_model *m, const struct mw_options *o, struct err *e)
{
    /* Start watching before the session: memory in use now belongs to the program. */
    if (mw_watch_new(&r->watch, m, e) != 0 || mw_session_open(&r->session, m, o, e) != 0)
        return -1;
    r->how->use(r->how->ctx, r->session);
    record(r, "start");
    record(r, "second");
    return evaluate_prompt(r, e) == 0 ? decode(r, e) : -1;
}

int page_record(struct mw_model *m, const struct mw_options *o, const struct page_record *how,
                struct err *e)
{
    struct run r = { .how = how, .sample = calloc(1, sizeof *r.sample) };
    struct mw_model_info info;
    int rc;

    if (r.sample == NULL)
        return err_memory(e, "the figures");
    mw_model_info(m, &info);
    r.n_vocab = info.n_vocab;
    json_start_stream(&r.json, how->to);
    rc = work(&r, m, o, e);
    how->use(how->ctx, NULL);
    mw_session_close(r.session);
    mw_watch_free(r.watch);
    free(r.sample);
    return rc;
}
