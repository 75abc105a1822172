/*
 * memwall eval: logits of token ids, or the perplexity of a text.
 *
 *   --ids FILE --logits OUT   one row of float32 per id, in the machine's byte order
 *   --ids FILE --greedy N     the next N ids, always the most likely one
 *   --ids FILE --draft-logits OUT
 *                             a row for each of the first drafts after the next id
 *   --text FILE               see eval_text.h
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/greatest.h"
#include "engine/base/json_write.h"
#include "engine/base/new_file.h"
#include "src/base/progress.h"
#include "src/command.h"
#include "src/machine/kept_limits.h"
#include "src/plan/plan_print.h"
#include "src/settings.h"
#include "src/text/eval_text.h"
#include "src/text/id_list.h"

#define LOGIT_ROWS 16 /* computed together with --logits */
#define N_DRAFT    6  /* of --draft-logits */

struct rows {
    FILE *to; /* NULL: only count */
    uint32_t n_vocab;
    size_t n_total;
    uint32_t best; /* the most likely id after the last row */
    struct progress *progress;
};

static int write_row(void *ctx, uint32_t pos, const float *logits, struct err *e)
{
    struct rows *r = ctx;

    if (fwrite(logits, sizeof *logits, r->n_vocab, r->to) != r->n_vocab)
        return err_sys(e, "could not write logits");
    if ((size_t)pos + 1 == r->n_total)
        r->best = greatest_of(logits, r->n_vocab);
    if (progress_is_due(r->progress))
        progress_count(r->progress, "eval", "tokens", (uint64_t)pos + 1, r->n_total);
    return 0;
}

/* Print o->greedy ids, starting with id; each is evaluated for the next one.  j is NULL, or the
 * object that gets them. */
static int print_greedy(struct mw_session *s, const struct options *o, uint32_t n_vocab,
                        uint32_t id, struct json *j, struct progress *p, struct err *e)
{
    if (j != NULL)
        json_array(j, "greedy");
    for (uint32_t i = 0; i < o->greedy; i++) {
        if (j != NULL)
            json_u64(j, NULL, id);
        else
            printf("%s%" PRIu32, i == 0 ? "" : " ", id);
        report_flush();
        if (progress_is_due(p))
            progress_count(p, "greedy", "tokens", i, o->greedy);
        if (i + 1 == o->greedy) /* the logits after the last id are not needed */
            break;
        if (mw_session_eval(s, &id, 1, NULL, NULL, e) != 0)
            return -1;
        id = greatest_of(mw_session_logits(s), n_vocab);
    }
    if (j != NULL)
        json_end(j);
    else
        puts("");
    return 0;
}

/* Close a file of logits.  r: the result of writing them. */
static int end_logits(FILE *to, const char *path, bool is_new, int r, struct err *e)
{
    if (fflush(to) != 0 && r == 0)
        r = err_sys(e, "could not write");
    if (r != 0 && is_new)
        new_file_drop_empty(fileno(to), path);
    if (fclose(to) != 0 && r == 0)
        r = err_sys(e, "could not write");
    return r == 0 ? 0 : err_at(e, path, ERR_NO_OFFSET, NULL);
}

static int write_logits(struct mw_session *s, const struct mw_model *m, const struct options *o,
                        const uint32_t *ids, size_t n, struct rows *rows, struct err *e)
{
    struct mw_output file = { o->logits, o->force, "--force" };
    bool is_new;
    int fd = mw_output_open(m, &file, &is_new, e);

    if (fd < 0)
        return -1;
    rows->to = fdopen(fd, "wb");
    if (rows->to == NULL) {
        close(fd);
        return err_memory(e, "writing logits");
    }
    return end_logits(rows->to, o->logits, is_new,
                      mw_session_eval(s, ids, n, write_row, rows, e), e);
}

struct draft_rows {
    FILE *to;
    uint32_t n_vocab;
};

static int write_draft(void *ctx, uint32_t pos, const float *logits, struct err *e)
{
    const struct draft_rows *r = ctx;

    (void)pos;
    if (fwrite(logits, sizeof *logits, r->n_vocab, r->to) != r->n_vocab)
        return err_sys(e, "could not write logits");
    return 0;
}

/* Write the logits of the drafts that follow the next id. */
static int write_drafts(struct mw_session *s, const struct mw_model *m, const struct options *o,
                        uint32_t n_vocab, struct err *e)
{
    struct mw_output file = { o->draft_logits, o->force, "--force" };
    struct draft_rows rows = { .n_vocab = n_vocab };
    bool is_new;
    int fd = mw_output_open(m, &file, &is_new, e);

    if (fd < 0)
        return -1;
    rows.to = fdopen(fd, "wb");
    if (rows.to == NULL) {
        close(fd);
        return err_memory(e, "writing logits");
    }
    return end_logits(rows.to, o->draft_logits, is_new,
                      mw_session_draft(s, N_DRAFT, write_draft, &rows, e), e);
}

/* Print the greedy ids, if requested.  With --json, print one object in any case. */
static int print_result(struct mw_session *s, const struct options *o, const struct rows *rows,
                        uint64_t from_ns, struct err *e)
{
    struct json out, *j = o->json ? &out : NULL;

    if (j != NULL) {
        json_start_stream(j, stdout);
        json_object(j, NULL);
        json_u64(j, "n_evaluated", rows->n_total);
        json_double(j, "seconds", (double)(clock_ns() - from_ns) / 1e9, 3);
    }
    if (o->greedy > 0) {
        progress_restart(rows->progress, 0);
        if (print_greedy(s, o, rows->n_vocab, rows->best, j, rows->progress, e) != 0)
            return -1;
    }
    if (j != NULL) {
        json_end(j);
        json_line(j);
    }
    return 0;
}

static int eval_id_list(struct mw_model *m, struct mw_options *engine, const struct options *o,
                        struct eval_watch *w, struct err *e)
{
    struct mw_model_info info;
    struct mw_session *s = NULL;
    struct progress p;
    struct rows rows;
    uint32_t *ids = NULL;
    uint64_t from_ns;
    uint32_t max;
    size_t n = 0;
    int r = -1;

    mw_model_info(m, &info);
    if (o->logits != NULL)
        engine->n_logit_row = LOGIT_ROWS;
    if (eval_max_tokens(m, engine, &max, e) != 0 ||
        id_list_read(o->ids_file, info.n_vocab, max, &ids, &n, e) != 0)
        return -1;
    progress_open(&p, o->quiet);
    rows = (struct rows){ NULL, info.n_vocab, n, 0, &p };
    if (engine->n_ctx == 0) {
        uint64_t n_ctx = (uint64_t)n + o->greedy + (o->draft_logits != NULL ? N_DRAFT : 0);

        engine->n_ctx = n_ctx < UINT32_MAX ? (uint32_t)n_ctx : UINT32_MAX;
    }
    if (mw_session_open(&s, m, engine, e) != 0 || eval_watch_open(w, s, m, o, e) != 0)
        goto done;
    from_ns = clock_ns();
    if (o->logits != NULL)
        r = write_logits(s, m, o, ids, n, &rows, e);
    else
        r = mw_session_eval(s, ids, n, NULL, NULL, e);
    if (r == 0 && o->logits == NULL)
        rows.best = greatest_of(mw_session_logits(s), info.n_vocab);
    if (r == 0 && o->draft_logits != NULL)
        r = write_drafts(s, m, o, info.n_vocab, e);
    if (r == 0)
        r = print_result(s, o, &rows, from_ns, e);
done:
    progress_clear(&p);
    if (eval_watch_close(w, r == 0 ? e : NULL) != 0)
        r = -1;
    if (s != NULL)
        mw_session_close(s);
    free(ids);
    return r;
}

static bool has_output(const struct options *o)
{
    return o->text != NULL || o->logits != NULL || o->draft_logits != NULL || o->greedy > 0 ||
           o->telemetry != NULL || o->json;
}

static int run_eval(const struct options *o)
{
    struct err e = ERR_INIT, ignored = ERR_INIT;
    struct eval_watch watch = { 0 };
    struct mw_model *m = NULL;
    struct settings_notice notice;
    struct mw_options engine;
    struct plan p = { 0 };
    int r, code = EXIT_OK;

    if ((o->ids_file != NULL) == (o->text != NULL)) {
        err_set(&e, ERR_ARGUMENT,
                o->text != NULL ? "--ids and --text cannot be combined"
                                : "nothing to evaluate; use --ids or --text");
        return report_usage(&cmd_eval, &e);
    }
    if (o->text != NULL && (o->logits != NULL || o->draft_logits != NULL || o->greedy > 0)) {
        err_set(&e, ERR_ARGUMENT, "--logits, --draft-logits and --greedy need --ids");
        return report_usage(&cmd_eval, &e);
    }
    if (o->draft_logits != NULL &&
        (o->logits != NULL || (o->chat.engine.draft != MW_DRAFT_MTP &&
                               o->chat.engine.draft != MW_DRAFT_FILE))) {
        err_set(&e, ERR_ARGUMENT,
                o->logits != NULL ? "--draft-logits and --logits cannot be combined"
                                  : "--draft-logits needs --draft mtp, or the file of a head");
        return report_usage(&cmd_eval, &e);
    }
    settings_engine(o, &engine, &notice);
    settings_no_screen(&engine);
    engine.is_artificial = true;
    if (o->draft_logits == NULL)
        engine.draft = MW_DRAFT_OFF; /* only answers have drafts */
    settings_report(o, &notice);
    if (settings_open(o->model, &engine, &m, &e) != 0)
        return report_error(&e);
    if (o->draft_logits != NULL && engine.draft == MW_DRAFT_FILE &&
        mw_model_attach(m, engine.draft_file, &e) != 0) { /* no other file has these logits */
        mw_model_close(m);
        return report_error(&e);
    }
    limits_ensure(m, o->model, &engine, LIMITS_KEPT);
    if (!o->quiet && mw_model_key_notice(m)[0] != '\0')
        report_notice(mw_model_key_notice(m), strlen(mw_model_key_notice(m)));
    if (o->text != NULL && !o->quiet && mw_model_notice(m)[0] != '\0')
        report_notice(mw_model_notice(m), strlen(mw_model_notice(m)));
    r = o->text != NULL ? eval_text(m, &engine, o, &watch, &e)
                        : eval_id_list(m, &engine, o, &watch, &e);
    settings_report_products(o, m, &engine);
    if (r != 0) {
        if (e.code == ERR_BUDGET && !o->quiet && mw_plan(m, &engine, &p, &ignored) != 0 &&
            p.sum_bytes > 0)
            plan_print_rows(stderr, &p);
        code = report_error(&e);
    } else if (!has_output(o) && !o->quiet) {
        fputs("memwall: evaluated the ids, but no output was requested; add --logits FILE for the "
              "logits of each id, or --greedy N for the N ids that follow\n",
              stderr);
    }
    mw_model_close(m);
    return code;
}

const struct command cmd_eval = {
    .name = "eval",
    .help = "evaluate token ids or a text: logits, greedy ids, perplexity",
    .about = "With --ids, write a row of logits for each id (--logits) or print the ids\n"
             "that follow (--greedy).  With --text, print the perplexity of a text.",
    .examples = "echo 2 9259 | memwall eval model.gguf --ids - --greedy 8\n"
                "memwall eval model.gguf --ids ids.txt --logits out.f32 --exact --kv f32\n"
                "memwall eval model.gguf --text book.txt\n",
    .bit = CMD_EVAL,
    .needs_model = true,
    .run = run_eval,
};
