/* See plan_table.h. */
#include "config.h"

#include "src/plan/plan_table.h"

#include <string.h>

#include "engine/base/numbers.h"
#include "src/plan/plan_print.h"

#define LEAST_CTX   2048
#define UNKNOWN_CTX 32768 /* if the model does not state what it was trained for */
#define STEP_CTX    256   /* bounds are found in steps of a page of keys and values */
#define MAX_TYPES   4

/* The plans of one pair of types. */
struct group {
    struct mw_model *m;
    struct mw_options o;
    struct mw_model_info info;
    uint32_t n_ctx_most;  /* of the table */
    uint32_t largest;     /* context that fits; at most n_ctx_most */
    uint32_t largest_pin; /* context with which nothing is streamed; 0: none */
    bool is_possible;     /* the model can have these types */
    bool has_drafter;     /* a model or a draft head may draft: rows name what they assume */
    struct err why;       /* otherwise */
};

/* Returns 1 if the plan fits, 0 if it is too large, and -1 if there is none. */
static int plan_of(struct group *g, uint32_t n_ctx, struct plan *p)
{
    struct err e = ERR_INIT;

    g->o.n_ctx = n_ctx;
    if (mw_plan(g->m, &g->o, p, &e) == 0)
        return 1;
    if (e.code == ERR_BUDGET)
        return 0;
    g->why = e;
    return -1;
}

/* A context needs more than every smaller one, so the bounds can be bisected. */
static uint32_t find_bound(struct group *g, bool is_pinned)
{
    uint32_t least = 0, most = (g->n_ctx_most + STEP_CTX - 1) / STEP_CTX;
    struct plan p;

    while (least < most) {
        uint32_t middle = least + (most - least + 1) / 2;
        uint32_t n_ctx = middle * STEP_CTX < g->n_ctx_most ? middle * STEP_CTX : g->n_ctx_most;

        if (plan_of(g, n_ctx, &p) == 1 && (!is_pinned || p.streamed_share == 0))
            least = middle;
        else
            most = middle - 1;
    }
    return least * STEP_CTX < g->n_ctx_most ? least * STEP_CTX : g->n_ctx_most;
}

static void open_group(struct group *g, struct mw_model *m, const struct mw_options *o,
                       enum mw_kv k, enum mw_kv v)
{
    struct plan p;

    *g = (struct group){ .m = m, .o = *o, .why = ERR_INIT };
    g->o.kv_k = k;
    g->o.kv_v = v;
    mw_model_info(m, &g->info);
    g->n_ctx_most = g->info.n_ctx_train > 0 ? g->info.n_ctx_train : UNKNOWN_CTX;
    g->is_possible = plan_of(g, g->n_ctx_most, &p) >= 0;
    if (!g->is_possible)
        return;
    g->largest = find_bound(g, false);
    g->largest_pin = g->o.io != MW_IO_MMAP ? find_bound(g, true) : 0;
}

/* The next context of the table; 0 after the last. */
static uint32_t next_ctx(const struct group *g, uint32_t n_ctx)
{
    if (n_ctx >= g->n_ctx_most)
        return 0;
    n_ctx = n_ctx == 0 ? LEAST_CTX : n_ctx * 2;
    return n_ctx < g->n_ctx_most ? n_ctx : g->n_ctx_most;
}

/* List the pairs of KV types: the usual ones, and the types of the options before them if they
 * are another pair. */
static int list_types(const struct mw_options *o, enum mw_kv k[MAX_TYPES],
                      enum mw_kv v[MAX_TYPES])
{
    static const enum mw_kv usual[] = { MW_KV_F16, MW_KV_Q8_0, MW_KV_Q4_0 };
    int n = 0;

    if (o->kv_k != o->kv_v || o->kv_k == MW_KV_F32) {
        k[0] = o->kv_k;
        v[n++] = o->kv_v;
    }
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++, n++)
        k[n] = v[n] = usual[i];
    return n;
}

static uint64_t kv_bytes(const struct plan *p)
{
    return p->row[MW_ROW_KV_GLOBAL] + p->row[MW_ROW_KV_SLIDING];
}

static double pinned_share(const struct group *g, const struct plan *p)
{
    double share = g->info.hot_bytes > 0
                       ? (double)(p->pinned_bytes + p->saved_bytes) / (double)g->info.hot_bytes
                       : 1;

    return p->streamed_share == 0 && p->pinned_bytes > 0 ? 1 : share < 1 ? share : 1;
}

/* --- text --- */

static void print_rate(FILE *to, double tps, bool is_doubtful)
{
    char rate[24];

    fprintf(to, " %7s", tps > 0 ? numbers_predicted(rate, sizeof rate, tps, is_doubtful) : "-");
}

/* Whether a plan has, or could have, a model or a draft head that drafts. */
static bool may_draft(const struct plan *p)
{
    return p->assumed > 0 || p->drafted_tps > 0 || p->no_drafter != MW_DRAFTER_IS_USED;
}

static void print_assumed(FILE *to, const struct plan *p)
{
    char share[8] = "-";

    if (p->assumed > 0)
        snprintf(share, sizeof share, "%.0f%%", 100 * p->assumed);
    fprintf(to, " %4s", share);
}

static void print_case(FILE *to, struct group *g, uint32_t n_ctx)
{
    char ctx[24], kv[16], other[16], pinned[16], total[16];
    struct plan p;

    numbers_count(ctx, sizeof ctx, n_ctx);
    if (plan_of(g, n_ctx, &p) != 1) {
        fprintf(to, " %8s %8s  does not fit: needs %s\n", ctx,
                units_size(kv, sizeof kv, kv_bytes(&p)),
                units_size(total, sizeof total, p.sum_bytes));
        return;
    }
    fprintf(to, " %8s %8s %8s %8s %3.0f%% %8s", ctx, units_size(kv, sizeof kv, kv_bytes(&p)),
            units_size(other, sizeof other, p.sum_bytes - kv_bytes(&p) - p.row[MW_ROW_PINNED]),
            units_size(pinned, sizeof pinned, p.row[MW_ROW_PINNED]), 100 * pinned_share(g, &p),
            units_size(total, sizeof total, p.sum_bytes));
    print_rate(to, p.prefill_tps, p.is_doubtful);
    print_rate(to, p.decode_tps, p.is_doubtful);
    if (g->has_drafter)
        print_assumed(to, &p);
    fprintf(to, "  %s\n", p.binds == MW_BINDS_NONE ? "-" : mw_binds_name(p.binds));
}

static void print_bounds(FILE *to, const struct group *g)
{
    uint64_t global, sliding;
    char a[24], b[24];

    mw_kv_token_bytes(g->m, &g->o, &global, &sliding);
    fprintf(to, "%s a token", units_size(a, sizeof a, global));
    if (sliding > 0)
        fprintf(to, " and %s in windows", units_size(b, sizeof b, sliding));
    if (g->largest == 0)
        fputs("; no context fits\n", to);
    else if (g->largest_pin == g->largest)
        fprintf(to, "; up to %s fit, with all weights\n", numbers_count(a, sizeof a, g->largest));
    else if (g->largest_pin > 0)
        fprintf(to, "; up to %s fit, up to %s with all weights\n",
                numbers_count(a, sizeof a, g->largest),
                numbers_count(b, sizeof b, g->largest_pin));
    else
        fprintf(to, "; up to %s fit\n", numbers_count(a, sizeof a, g->largest));
}

void plan_table_print(FILE *to, struct mw_model *m, const struct mw_options *o)
{
    enum mw_kv k[MAX_TYPES], v[MAX_TYPES];
    int n = list_types(o, k, v);
    struct err ignored = ERR_INIT;
    char budget[16];
    struct plan p;
    bool has_drafter;

    fprintf(to, "\nWith %s, by context in tokens",
            units_size(budget, sizeof budget, o->memory_bytes));
    has_drafter = mw_plan(m, o, &p, &ignored) == 0 && may_draft(&p);
    fprintf(to, "%s:\n", has_drafter ? " (if: the share of drafts that is right)" : "");
    /* No row has more than 80 columns. */
    fprintf(to, " %8s %8s %8s %13s %8s %7s %7s%s  %s\n", "context", "KV", "other",
            "pinned weights", "total", "prompts", "answers", has_drafter ? "   if" : "", "limit");
    for (int i = 0; i < n; i++) {
        struct group g;

        open_group(&g, m, o, k[i], v[i]);
        g.has_drafter = has_drafter;
        if (k[i] == v[i])
            fprintf(to, "KV in %s: ", mw_kv_name(k[i]));
        else
            fprintf(to, "keys in %s, values in %s: ", mw_kv_name(k[i]), mw_kv_name(v[i]));
        if (!g.is_possible) {
            fprintf(to, "- (%s)\n", g.why.what);
            continue;
        }
        print_bounds(to, &g);
        for (uint32_t ctx = 0; (ctx = next_ctx(&g, ctx)) != 0;)
            print_case(to, &g, ctx);
    }
}

/* --- JSON --- */

static void json_case(struct json *j, struct group *g, uint32_t n_ctx)
{
    struct plan p;
    bool fits = plan_of(g, n_ctx, &p) == 1;

    json_object(j, NULL);
    json_u64(j, "ctx", n_ctx);
    json_bool(j, "fits", fits);
    plan_print_rows_json(j, &p);
    json_u64(j, "chunk", p.chunk);
    json_u64(j, "pinned_bytes", p.pinned_bytes);
    json_double(j, "pinned_share", pinned_share(g, &p), 4);
    json_u64(j, "streamed_bytes", p.streamed_bytes);
    json_double(j, "decode_tps", fits ? p.decode_tps : 0, 6);
    json_double(j, "assumed", fits ? p.assumed : 0, 6);
    json_double(j, "prefill_tps", fits ? p.prefill_tps : 0, 6);
    json_string(j, "binds", mw_binds_name(p.binds));
    json_end(j);
}

void plan_table_json(struct json *j, struct mw_model *m, const struct mw_options *o)
{
    enum mw_kv k[MAX_TYPES], v[MAX_TYPES];
    int n = list_types(o, k, v);

    json_array(j, "table");
    for (int i = 0; i < n; i++) {
        struct group g;

        open_group(&g, m, o, k[i], v[i]);
        json_object(j, NULL);
        json_string(j, "kv_k", mw_kv_name(k[i]));
        json_string(j, "kv_v", mw_kv_name(v[i]));
        plan_print_kv_json(j, m, &g.o);
        if (!g.is_possible)
            json_string(j, "why", g.why.what);
        json_u64(j, "largest_ctx", g.largest);
        json_u64(j, "largest_pinned_ctx", g.largest_pin);
        json_array(j, "contexts");
        for (uint32_t ctx = 0; g.is_possible && (ctx = next_ctx(&g, ctx)) != 0;)
            json_case(j, &g, ctx);
        json_end(j);
        json_end(j);
    }
    json_end(j);
}
