/* See eval_text.h. */
#include "config.h"

#include "src/text/eval_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/base/clock.h"
#include "engine/base/json_write.h"
#include "engine/base/numbers.h"
#include "src/base/progress.h"
#include "src/text/prompt.h"

#define WINDOW     512
#define WINDOW_MIN 3 /* the first window that has a token to score */
#define LOGIT_ROWS 16
#define TEXT_MAX   GIB /* some hundred million tokens, which take days */

struct score {
    const uint32_t *ids; /* the window */
    uint32_t n, first;   /* number of ids; the first row of logits to score */
    uint32_t n_vocab;
    double sum, sum_squares; /* of -ln p */
    uint64_t n_scored;
    uint64_t n_done, n_total; /* ids evaluated; estimated total, 0: unknown */
    struct progress *progress;
};

/* Returns -ln(softmax(logits)[id]), in double because the vocabulary is large. */
static double surprise(const float *logits, uint32_t n, uint32_t id)
{
    float most = logits[0];
    double sum = 0;

    for (uint32_t i = 1; i < n; i++)
        if (logits[i] > most)
            most = logits[i];
    for (uint32_t i = 0; i < n; i++)
        sum += exp((double)logits[i] - (double)most);
    return log(sum) - ((double)logits[id] - (double)most);
}

/* Returns the first row of logits to score.  As in llama-perplexity, the second half of a
 * window predicts the tokens after it, so its own first token is not scored: a window of 512
 * scores 255. */
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

static void print_score_json(const struct score *s, double mean, double error, double seconds)
{
    struct json j;

    json_start_stream(&j, stdout);
    json_object(&j, NULL);
    json_double(&j, "perplexity", exp(mean), 6);
    json_double(&j, "standard_error", exp(mean) * error, 6);
    json_double(&j, "mean_nll", mean, 8);
    json_u64(&j, "n_scored", s->n_scored);
    json_u64(&j, "n_evaluated", s->n_done);
    json_double(&j, "seconds", seconds, 3);
    json_end(&j);
    json_line(&j);
}

static void print_score(const struct score *s, bool json, double seconds)
{
    double n = (double)s->n_scored;
    double mean = s->sum / n;
    double variance = s->sum_squares / n - mean * mean;
    double error = n > 1 && variance > 0 ? sqrt(variance / (n - 1)) : 0;
    char rate[24];

    if (json)
        print_score_json(s, mean, error, seconds);
    else
        printf(
            "perplexity %.4f +- %.4f over %" PRIu64 " tokens (%" PRIu64
            " evaluated, %s tok/s)\n",
            exp(mean), exp(mean) * error, s->n_scored, s->n_done,
            numbers_measured(rate, sizeof rate, seconds > 0 ? (double)s->n_done / seconds : 0));
}

int eval_max_tokens(struct mw_model *m, const struct mw_options *engine, uint32_t *max,
                    struct err *e)
{
    struct mw_options probe = *engine;
    struct plan floor;
    uint64_t unused;
    uint32_t fits;

    probe.n_ctx = 1;
    if (mw_plan_fit(m, &probe, &unused, &fits, e) != 0)
        return -1;
    if (fits == 0) {
        probe.n_ctx = engine->n_ctx > 0 ? engine->n_ctx : 1;
        return mw_plan(m, &probe, &floor, e);
    }
    *max = engine->n_ctx > 0 && engine->n_ctx < fits ? engine->n_ctx : fits;
    return 0;
}

/* The state while a text is cut into windows. */
struct windows {
    struct mw_model *m;
    struct mw_options *engine;
    const struct options *o;
    struct eval_watch *w;
    struct mw_encoder *encoder;
    struct mw_session *session; /* NULL until the first window is complete */
    uint32_t *ids;              /* [n] the window that is being filled */
    uint32_t n, room, max;
    uint64_t n_id, n_read, n_file; /* ids so far, bytes read, size of the file */
    struct score score;
    uint64_t from_ns;
};

static int open_session(struct windows *x, uint32_t window, struct err *e)
{
    struct mw_model_info info;

    x->engine->n_ctx = window;
    if (mw_session_open(&x->session, x->m, x->engine, e) != 0 ||
        eval_watch_open(x->w, x->session, x->m, x->o, e) != 0)
        return -1;
    mw_model_info(x->m, &info);
    x->score.n = window;
    x->score.first = first_scored(window);
    x->score.n_vocab = info.n_vocab;
    x->from_ns = clock_ns();
    return 0;
}

static int eval_window(struct windows *x, struct err *e)
{
    struct score *s = &x->score;
    uint32_t kept;

    if (x->session == NULL && open_session(x, x->n, e) != 0)
        return -1;
    s->ids = x->ids;
    s->n_total =
        x->n_read > 0 ? (uint64_t)((double)x->n_file / (double)x->n_read * (double)x->n_id) : 0;
    if (mw_begin_id(x->m) >= 0)
        x->ids[0] = (uint32_t)mw_begin_id(x->m);
    x->n = 0;
    return mw_session_rewind(x->session, 0, &kept, e) != 0
               ? -1
               : mw_session_eval(x->session, x->ids, s->n, score_row, s, e);
}

static int add_ids(struct windows *x, const uint32_t *ids, size_t n, struct err *e)
{
    x->n_id += n;
    for (size_t i = 0; i < n; i++) {
        if (x->n == x->room) {
            uint32_t room = x->room < 256 ? 256 : x->room * 2, *more;

            room = room < x->max ? room : x->max;
            more = realloc(x->ids, room * sizeof *more);
            if (more == NULL)
                return err_memory(e, "the ids");
            x->ids = more;
            x->room = room;
        }
        x->ids[x->n++] = ids[i];
        if (x->n < x->max)
            continue;
        if (x->max < x->engine->n_ctx) {
            struct plan unused;

            if (mw_plan(x->m, x->engine, &unused, e) != 0) /* for the error message */
                return -1;
            x->max = x->engine->n_ctx; /* memory has become free */
        } else if (eval_window(x, e) != 0) {
            return -1;
        }
    }
    return 0;
}

static int add_text(void *ctx, const char *text, size_t len, struct err *e)
{
    struct windows *x = ctx;
    const uint32_t *ids;
    char size[16];
    size_t n;

    x->n_read += len;
    if (x->n_read > TEXT_MAX || x->n_file > TEXT_MAX) {
        err_set(e, ERR_ARGUMENT,
                "is longer than %s, the limit of --text; evaluate a part of it: head -c 10M FILE "
                "| memwall eval --text -",
                units_size(size, sizeof size, TEXT_MAX));
        return err_at(e, x->o->text, ERR_NO_OFFSET, NULL);
    }
    if (mw_encoder_push(x->encoder, text, len, &ids, &n, e) != 0)
        return err_at(e, x->o->text, ERR_NO_OFFSET, NULL);
    return add_ids(x, ids, n, e);
}

/* The mean may be finite and the perplexity too large for a number. */
static int check_score(const struct score *s, const struct options *o, struct err *e)
{
    if (isfinite(exp(s->sum / (double)s->n_scored)))
        return 0;
    err_set(e, ERR_FORMAT,
            "the perplexity is not a number: the mean of -ln p is %g over %llu tokens. The file "
            "of the model may be damaged",
            s->sum / (double)s->n_scored, (unsigned long long)s->n_scored);
    return err_at(e, o->text, ERR_NO_OFFSET, NULL);
}

static int eval_all(struct windows *x, struct err *e)
{
    int64_t begin = mw_begin_id(x->m);
    uint32_t first = (uint32_t)begin;

    if (x->engine->n_ctx < WINDOW_MIN)
        return err_set(e, ERR_ARGUMENT,
                       "a context of %u token%s is too short to compute a perplexity; use "
                       "--ctx %d or more",
                       x->engine->n_ctx, x->engine->n_ctx == 1 ? "" : "s", WINDOW_MIN);
    if (eval_max_tokens(x->m, x->engine, &x->max, e) != 0 ||
        mw_encoder_new(&x->encoder, x->m, false, e) != 0 ||
        (begin >= 0 && add_ids(x, &first, 1, e) != 0) ||
        prompt_stream(x->o->text, add_text, x, e) != 0 || add_text(x, NULL, 0, e) != 0)
        return -1;
    if (x->session == NULL && x->n < WINDOW_MIN) {
        err_set(e, ERR_ARGUMENT, "%u token%s too few to compute a perplexity", x->n,
                x->n == 1 ? " is" : "s are");
        return err_at(e, x->o->text, ERR_NO_OFFSET, NULL);
    }
    if (x->session == NULL && eval_window(x, e) != 0)
        return -1;
    return check_score(&x->score, x->o, e);
}

int eval_text(struct mw_model *m, struct mw_options *engine, const struct options *o,
              struct eval_watch *w, struct err *e)
{
    struct progress p;
    struct windows x = { .m = m,
                         .engine = engine,
                         .o = o,
                         .w = w,
                         .n_file = prompt_file_bytes(o->text),
                         .score = { .progress = &p } };
    int r;

    progress_open(&p, o->quiet);
    p.is_about = true;
    if (engine->n_ctx == 0)
        engine->n_ctx = WINDOW;
    engine->n_logit_row = LOGIT_ROWS;
    r = eval_all(&x, e);
    progress_clear(&p);
    if (r == 0)
        print_score(&x.score, o->json, (double)(clock_ns() - x.from_ns) / 1e9);
    if (eval_watch_close(w, r == 0 ? e : NULL) != 0)
        r = -1;
    if (x.session != NULL)
        mw_session_close(x.session);
    mw_encoder_free(x.encoder);
    free(x.ids);
    return r;
}
