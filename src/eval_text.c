/* See eval_text.h. */
#include "config.h"

#include "src/eval_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/progress.h"
#include "src/prompt.h"

#define TEXT_MAX_BYTES ((size_t)1 << 30)
#define WINDOW         512
#define LOGIT_ROWS     16

struct score {
    const uint32_t *ids; /* of the window */
    uint32_t n, first;   /* ids in it; rows of logits from this one on are scored */
    uint32_t n_vocab;
    double sum, sum_squares; /* of -ln p */
    uint64_t n_scored;
    uint64_t n_done, n_total; /* ids evaluated, of all windows */
    struct progress *progress;
};

/* -ln of the share that id has after softmax, in double: the vocabulary is large. */
static double surprise(const float *logits, uint32_t n, uint32_t id)
{
    float most = logits[0];
    double sum = 0;

    for (uint32_t i = 1; i < n; i++)
        if (logits[i] > most)
            most = logits[i];
    for (uint32_t i = 0; i < n; i++)
        sum += exp((double)(logits[i] - most));
    return log(sum) - (double)(logits[id] - most);
}

/* The ids of the text, after the begin token if the model has one. */
static int text_ids(struct mw_model *m, const char *text, size_t len, uint32_t **ids, size_t *n,
                    struct err *e)
{
    uint32_t *wider;
    int64_t begin;

    if (mw_tokenize(m, text, len, false, ids, n, e) != 0)
        return -1;
    begin = mw_begin_id(m);
    if (begin < 0)
        return 0;
    wider = realloc(*ids, (*n + 1) * sizeof **ids);
    if (wider == NULL)
        return err_set(e, ERR_MEMORY, "no memory for the ids");
    memmove(wider + 1, wider, *n * sizeof *wider);
    wider[0] = (uint32_t)begin;
    *ids = wider;
    *n += 1;
    return 0;
}

/* The first row of logits that is scored, as llama-perplexity counts: the second half of a
 * window predicts tokens, so its own first token is not scored.  A window of 512 scores 255. */
static uint32_t first_scored(uint32_t window)
{
    return window / 2;
}

static int score_row(void *ctx, uint32_t pos, const float *logits, struct err *e)
{
    struct score *s = ctx;

    if (pos + 1 < s->n && pos >= s->first) {
        double x = surprise(logits, s->n_vocab, s->ids[pos + 1]);

        if (!isfinite(x))
            return err_set(e, ERR_FORMAT, "the logits after token %u are not numbers", pos);
        s->sum += x;
        s->sum_squares += x * x;
        s->n_scored++;
    }
    s->n_done++;
    if (progress_is_due(s->progress))
        progress_count(s->progress, "eval", "tokens", s->n_done, s->n_total);
    return 0;
}

static void print_score(const struct score *s, bool json, double seconds)
{
    double n = (double)s->n_scored;
    double mean = s->sum / n;
    double variance = s->sum_squares / n - mean * mean;
    double error = n > 1 && variance > 0 ? sqrt(variance / (n - 1)) : 0;

    if (json)
        printf("{\"perplexity\":%.6f,\"standard_error\":%.6f,\"mean_nll\":%.8f,"
               "\"n_scored\":%" PRIu64 ",\"n_evaluated\":%" PRIu64 ",\"seconds\":%.3f}\n",
               exp(mean), exp(mean) * error, mean, s->n_scored, s->n_done, seconds);
    else
        printf("perplexity %.4f +- %.4f over %" PRIu64 " tokens (%" PRIu64
               " evaluated, %.3g tok/s)\n",
               exp(mean), exp(mean) * error, s->n_scored, s->n_done,
               seconds > 0 ? (double)s->n_done / seconds : 0);
}

int eval_text(struct mw_model *m, struct mw_options *wish, const struct options *o,
              struct eval_watch *w, struct err *e)
{
    struct mw_model_info info;
    struct mw_session *s = NULL;
    struct progress p;
    struct score score = { 0 };
    uint32_t *ids = NULL;
    uint32_t window;
    size_t n = 0, len = 0, n_window;
    char *text = NULL;
    uint64_t t0;
    int r = -1;

    mw_model_info(m, &info);
    progress_open(&p, o->quiet);
    if (prompt_read_file(o->text, TEXT_MAX_BYTES, &text, &len, e) != 0)
        return -1;
    if (text_ids(m, text, len, &ids, &n, e) != 0)
        goto done;
    if (n < 3) {
        err_set(e, ERR_ARGUMENT, "%zu tokens are too few for a perplexity", n);
        err_at(e, o->text, ERR_NO_OFFSET, NULL);
        goto done;
    }
    if (wish->n_ctx == 0)
        wish->n_ctx = WINDOW;
    window = n < wish->n_ctx ? (uint32_t)n : wish->n_ctx;
    wish->n_ctx = window;
    n_window = n / window;
    wish->n_logit_row = LOGIT_ROWS;
    if (mw_session_open(&s, m, wish, e) != 0 || eval_watch_open(w, s, m, o, e) != 0)
        goto done;
    score = (struct score){ .n = window,
                            .first = first_scored(window),
                            .n_vocab = info.n_vocab,
                            .n_total = (uint64_t)n_window * window,
                            .progress = &p };
    t0 = progress_now();
    for (size_t i = 0; i < n_window; i++) {
        uint32_t kept;

        score.ids = ids + i * window;
        if (mw_begin_id(m) >= 0)
            ids[i * window] = (uint32_t)mw_begin_id(m);
        if (mw_session_rewind(s, 0, &kept, e) != 0 ||
            mw_session_eval(s, score.ids, window, score_row, &score, e) != 0)
            goto done;
    }
    progress_clear(&p);
    print_score(&score, o->json, (double)(progress_now() - t0) / 1e9);
    r = 0;
done:
    progress_clear(&p);
    if (eval_watch_close(w, r == 0 ? e : NULL) != 0)
        r = -1;
    if (s != NULL)
        mw_session_close(s);
    free(ids);
    free(text);
    return r;
}
