#include "config.h"

#include "ui/words/server.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/numbers.h"
#include "ui/words/receipt.h"

struct rows {
    struct server_row *row;
    size_t n;
};

__attribute__((format(printf, 3, 4))) static struct server_row *add(struct rows *to,
                                                                    const char *label,
                                                                    const char *fmt, ...)
{
    struct server_row *r = &to->row[to->n];
    va_list ap;

    if (to->n == SERVER_ROWS)
        return r - 1;
    to->n++;
    *r = (struct server_row){ .label = label };
    va_start(ap, fmt);
    vsnprintf(r->text, sizeof r->text, fmt, ap);
    va_end(ap);
    return r;
}

static void add_unknown(struct rows *to, const char *label, const char *text)
{
    add(to, label, "%s", text)->is_unknown = true;
}

/* Append to the text of a row, after a comma. */
__attribute__((format(printf, 2, 3))) static void more(struct server_row *r, const char *fmt, ...)
{
    size_t used = strlen(r->text);
    va_list ap;

    if (used > 0 && used + 3 < sizeof r->text) {
        memcpy(r->text + used, ", ", 3);
        used += 2;
    }
    va_start(ap, fmt);
    vsnprintf(r->text + used, sizeof r->text - used, fmt, ap);
    va_end(ap);
}

static char *size_text(double bytes, char buf[16])
{
    return units_size(buf, 16, numbers_whole(bytes));
}

static char *count_text(double n, char buf[32])
{
    return numbers_count(buf, 32, numbers_whole(n));
}

/* "1 token", "2,000 tokens" */
static char *counted(double n, const char *what, char buf[48])
{
    char count[32];

    snprintf(buf, 48, "%s %s%s", count_text(n, count), what, numbers_whole(n) == 1 ? "" : "s");
    return buf;
}

char *server_name(const struct mw_server_figures *f, char *buf, size_t n)
{
    const char *kind = mw_server_kind_name(f->kind);

    snprintf(buf, n, "%s%s%s%s", f->address, kind[0] != '\0' ? " (" : "", kind,
             kind[0] != '\0' ? ")" : "");
    return buf;
}

double server_rate(const struct mw_server_figures *f, const char **unit)
{
    uint64_t n = f->has_usage ? f->n_decoded : f->n_piece;

    *unit = f->has_usage ? "tok/s" : "pieces/s";
    return n > 1 && f->last_ns >= f->first_ns + RECEIPT_REMOTE_NS
               ? (double)(n - 1) * 1e9 / (double)(f->last_ns - f->first_ns)
               : 0;
}

/* ---- the last answer ---- */

static void add_answer(struct rows *to, const struct mw_server_figures *f)
{
    char a[48], b[32], time[32], rate[24];
    const char *unit;
    double per_s = server_rate(f, &unit);
    struct server_row *r;

    if (f->start_ns == 0)
        return;
    if (f->has_usage) {
        r = add(to, "prompt", "%s", counted((double)f->n_prompt, "token", a));
        if (f->has_cached)
            more(r, "%s of them in its cache", count_text((double)f->n_cached, b));
    }
    if (!f->has_usage && f->n_piece == 0)
        return;
    r = add(to, "answer", "%s",
            f->has_usage ? counted((double)f->n_decoded, "token", a)
                         : counted((double)f->n_piece, "piece", a));
    if (per_s > 0)
        more(r, "%s %s", numbers_measured(rate, sizeof rate, per_s), unit);
    if (f->first_ns > f->start_ns)
        more(r, "first after %s",
             numbers_time(time, sizeof time, (double)(f->first_ns - f->start_ns) / 1e9));
    if (!f->has_usage && f->last_ns > 0)
        add_unknown(to, "tokens", "counted at the end of an answer, if the server reports them");
}

/* ---- the server ---- */

static void add_requests(struct rows *to, const struct mw_server_figures *f)
{
    char a[32], b[32];
    struct server_row *r;

    if (isnan(f->running) && isnan(f->waiting))
        return;
    r = add(to, "requests", "%s", "");
    if (!isnan(f->running))
        more(r, "%s running", count_text(f->running, a));
    if (!isnan(f->waiting))
        more(r, "%s waiting", count_text(f->waiting, b));
}

static void add_rates(struct rows *to, const struct mw_server_figures *f)
{
    char rate[24];
    struct server_row *r;

    if (isnan(f->prompt_tps) && isnan(f->answer_tps))
        return;
    r = add(to, "its rates", "%s", "");
    if (!isnan(f->prompt_tps))
        more(r, "prompt %s tok/s", numbers_measured(rate, sizeof rate, f->prompt_tps));
    if (!isnan(f->answer_tps))
        more(r, "answer %s tok/s", numbers_measured(rate, sizeof rate, f->answer_tps));
}

static void add_kv(struct rows *to, const struct mw_server_figures *f)
{
    char size[16], n[48];
    struct server_row *r;

    if (isnan(f->kv_share) && isnan(f->kv_tokens) && isnan(f->kv_bytes) &&
        isnan(f->cache_share))
        return;
    r = add(to, "kv", "%s", "");
    if (!isnan(f->kv_share))
        more(r, "%.0f %% in use", 100 * fmin(f->kv_share, 1));
    if (!isnan(f->kv_bytes))
        more(r, "%s", size_text(f->kv_bytes, size));
    if (!isnan(f->kv_tokens))
        more(r, "%s", counted(f->kv_tokens, "token", n));
    if (!isnan(f->cache_share))
        more(r, "%.0f %% of prompts from its cache", 100 * f->cache_share);
}

static void add_memwall(struct rows *to, const struct mw_server_figures *f)
{
    char a[16], b[16];
    struct server_row *r;

    if (!isnan(f->budget_bytes)) {
        r = add(to, "memory", "%s", "");
        if (!isnan(f->charged_bytes))
            more(r, "%s charged of %s", size_text(f->charged_bytes, a),
                 size_text(f->budget_bytes, b));
        else if (!isnan(f->resident_bytes))
            more(r, "%s resident of %s", size_text(f->resident_bytes, a),
                 size_text(f->budget_bytes, b));
        else
            more(r, "budget %s", size_text(f->budget_bytes, b));
        if (!isnan(f->pinned_bytes))
            more(r, "%s pinned", size_text(f->pinned_bytes, a));
    }
    if (!isnan(f->read_per_token) || !isnan(f->stall_share)) {
        r = add(to, "reads", "%s", "");
        if (!isnan(f->read_per_token))
            more(r, "%s a token", size_text(f->read_per_token, a));
        if (!isnan(f->stall_share))
            more(r, "stalls %.0f %% of a pass", 100 * fmin(f->stall_share, 1));
    }
    if (f->verdict != MW_BINDS_NONE) {
        r = add(to, "verdict", "%s", mw_binds_label(f->verdict));
        if (f->verdict_share > 0)
            more(r, "%.0f %% of a token's time", 100 * fmin(f->verdict_share, 1));
    }
}

/* Name the figures that this server does not report. */
static void add_missing(struct rows *to, const struct mw_server_figures *f)
{
    bool has_memory = !isnan(f->budget_bytes);

    if (f->no_metrics[0] != '\0')
        add_unknown(to, "no metrics", f->no_metrics);
    else if (!f->is_asked)
        add_unknown(to, "metrics", "being asked for");
    else if (isnan(f->running) && isnan(f->waiting))
        add_unknown(to, "queue", "not known: the server does not report its requests");
    if (!has_memory)
        add_unknown(to, "not known", "its memory, weights, layers and reads, and what limits it: no "
                                     "server reports these but memwall's");
}

size_t server_rows(const struct mw_server_figures *f, const struct mw_model_info *m,
                   struct server_row rows[SERVER_ROWS])
{
    struct rows to = { rows, 0 };
    char name[200], n[32];
    struct server_row *r;

    add(&to, "server", "%s", server_name(f, name, sizeof name));
    r = add(&to, "model", "%s", m->name);
    if (m->arch[0] != '\0')
        more(r, "%s", m->arch);
    if (m->type[0] != '\0')
        more(r, "%s", m->type);
    if (m->n_ctx_train > 0)
        more(r, "context %s", count_text(m->n_ctx_train, n));
    else
        more(r, "context not reported");
    if (f->n_model > 1)
        more(r, "one of %zu", f->n_model);
    add_answer(&to, f);
    add_requests(&to, f);
    add_rates(&to, f);
    add_kv(&to, f);
    add_memwall(&to, f);
    add_missing(&to, f);
    return to.n;
}
