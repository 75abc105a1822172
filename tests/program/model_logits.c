/*
 * Evaluate ids with one model after the other, for tests/lib/logits.py: a script that damages each
 * key of each family opens ten thousand models.
 *
 *     model_logits ID... < LINES      "eval N PATH": the first N ids; or "defaults PATH"
 *
 * The answer to a line is a line "ok BYTES" with so many bytes after it: the rows that `memwall
 * eval --exact --kv f32 -t 1 --chunk 32 -b 256M --blas never --logits` writes, or the names of the
 * defaults that `memwall inspect` lists, a line each.  Or it is a line "error TEXT".
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "engine/memwall.h"

struct bytes {
    char *at;
    size_t n;
};

static uint32_t *ids; /* [n_ids] */
static size_t n_ids;

static struct mw_options options(size_t n)
{
    struct mw_options o;

    mw_options_default(&o);
    o.memory_bytes = 256 * MIB;
    o.n_ctx = (uint32_t)n;
    o.kv_k = o.kv_v = MW_KV_F32;
    o.io = MW_IO_BUFFERED; /* direct reads would wait until the disk has what was just written */
    o.n_thread = 1;
    o.exact = true;
    o.blas = MW_BLAS_NEVER;
    o.chunk = 32;
    o.draft = MW_DRAFT_OFF;
    o.n_logit_row = 16;
    o.is_artificial = true;
    return o;
}

struct rows {
    struct bytes *out; /* n_vocab floats for each id */
    size_t row_bytes;
};

static int take_row(void *ctx, uint32_t pos, const float *logits, struct err *e)
{
    const struct rows *r = ctx;

    (void)e;
    memcpy(r->out->at + pos * r->row_bytes, logits, r->row_bytes);
    return 0;
}

static int evaluate(struct mw_model *m, size_t n, struct bytes *out, struct err *e)
{
    struct mw_options o = options(n), probe = o;
    struct mw_session *s = NULL;
    struct mw_model_info info;
    struct rows rows;
    uint64_t unused;
    uint32_t fits;
    int rc;

    mw_model_info(m, &info);
    probe.n_ctx = 1;
    if (mw_plan_fit(m, &probe, &unused, &fits, e) != 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= info.n_vocab)
            return err_set(e, ERR_ARGUMENT, "id %u is not in the vocabulary", ids[i]);
    rows = (struct rows){ out, info.n_vocab * sizeof(float) };
    out->n = n * rows.row_bytes;
    out->at = malloc(out->n);
    if (out->at == NULL)
        return err_memory(e, "%zu rows of logits", n);
    if (mw_session_open(&s, m, &o, e) != 0)
        return -1;
    rc = mw_session_eval(s, ids, n, take_row, &rows, e);
    mw_session_close(s);
    return rc;
}

static int logits(const char *path, size_t n, struct bytes *out, struct err *e)
{
    struct mw_model *m;
    int rc;

    if (mw_model_open_within(&m, path, options(n).memory_bytes, 0, e) != 0)
        return -1;
    rc = evaluate(m, n, out, e);
    mw_model_close(m);
    return rc;
}

static int defaults(const char *path, struct bytes *out, struct err *e)
{
    const struct summary *s;
    struct mw_inspect *i;
    FILE *to;
    int rc = 0;

    if (mw_inspect_open(&i, path, e) != 0)
        return -1;
    if (mw_inspect_problem(i) != NULL) {
        *e = *mw_inspect_problem(i);
        rc = -1;
    }
    s = mw_inspect_summary(i);
    to = open_memstream(&out->at, &out->n);
    if (to == NULL)
        rc = err_memory(e, "the defaults");
    for (uint32_t k = 0; rc == 0 && k < s->n_default; k++)
        fprintf(to, "%s\n", s->defaults[k].name);
    if (to != NULL)
        fclose(to);
    mw_inspect_close(i);
    return rc;
}

/* Returns -1 if the line is not a request. */
static int answer(const char *line)
{
    char text[sizeof(struct err) + 64];
    struct bytes out = { NULL, 0 };
    struct err e = ERR_INIT;
    int n = 0, at = 0, rc;

    if (sscanf(line, "eval %d %n", &n, &at) == 1 && at > 0 && n > 0 && (size_t)n <= n_ids)
        rc = logits(line + at, (size_t)n, &out, &e);
    else if (strncmp(line, "defaults ", 9) == 0)
        rc = defaults(line + 9, &out, &e);
    else
        return -1;
    if (rc == 0) {
        printf("ok %zu\n", out.n);
        fwrite(out.at, 1, out.n, stdout);
    } else {
        err_text(&e, text, sizeof text);
        printf("error %s\n", text);
    }
    free(out.at);
    return fflush(stdout);
}

int main(int argc, char **argv)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t len;
    int rc = 0;

    n_ids = (size_t)argc - 1;
    ids = calloc(n_ids + 1, sizeof *ids);
    if (ids == NULL)
        return 1;
    for (size_t i = 0; i < n_ids; i++)
        ids[i] = (uint32_t)strtoul(argv[i + 1], NULL, 10);
    while (rc == 0 && (len = getline(&line, &size, stdin)) > 0) {
        line[strcspn(line, "\n")] = '\0';
        rc = answer(line);
    }
    free(line);
    free(ids);
    return rc != 0;
}
