/* See doctor_walls.h. */
#include "config.h"

#include "src/doctor/doctor_walls.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/numbers.h"
#include "src/machine/kept_limits.h"
#include "src/models/known.h"

/* One line of the table. */
struct wall {
    const char *name, *type;
    enum mw_fit fit;
    struct mw_model_info info;
    struct plan plan;     /* MW_FIT_TOO_LARGE: the smallest one */
    uint32_t longest_ctx; /* 0: none fits */
};

static const char *const outlooks[] = {
    [MW_FIT_FITS] = "fits",           [MW_FIT_STREAMS] = "streams",
    [MW_FIT_TOO_LARGE] = "too large", [MW_FIT_UNSUPPORTED] = "not supported yet",
    [MW_FIT_UNKNOWN] = "-",
};

/* Returns the largest budget that the program would choose by itself. */
static uint64_t most_bytes(const struct mw_options *o)
{
    struct mw_machine machine;

    if (o->memory_bytes > 0)
        return o->memory_bytes;
    mw_machine_read(&machine);
    return machine.budget_bytes / 4 * 3;
}

static void find_wall(const struct doctor_walls *w, struct mw_model *m, uint64_t most,
                      struct wall *out)
{
    struct mw_options o = *w->engine;
    struct err e = ERR_INIT;
    uint64_t smallest;

    o.memory_bytes = most;
    mw_model_info(m, &out->info);
    if (mw_plan(m, &o, &out->plan, &e) == 0)
        out->fit = out->plan.streamed_bytes > 0 ? MW_FIT_STREAMS : MW_FIT_FITS;
    else
        out->fit = e.code == ERR_BUDGET ? MW_FIT_TOO_LARGE : MW_FIT_UNSUPPORTED;
    e = (struct err)ERR_INIT;
    if (mw_plan_fit(m, &o, &smallest, &out->longest_ctx, &e) != 0)
        out->longest_ctx = 0;
    if (out->longest_ctx > out->info.n_ctx_train && out->info.n_ctx_train > 0)
        out->longest_ctx = out->info.n_ctx_train;
}

/* --- text --- */

static void print_rate(FILE *to, double tps, bool is_doubtful)
{
    char rate[24];

    fprintf(to, " %8s", tps > 0 ? numbers_predicted(rate, sizeof rate, tps, is_doubtful) : "-");
}

static void print_head(FILE *to, int width)
{
    fprintf(to,
            "  %-*s %-6s %9s  %-9s %9s %8s %8s %9s\n"
            "  %-*s %-6s %9s  %-9s %9s %8s %8s %9s\n",
            width, "model", "type", "file", "", "memory", "answers", "prompts", "longest",
            width, "", "", "", "", "", "tok/s", "tok/s", "context");
}

static void print_wall(FILE *to, int width, const struct wall *w, bool is_first)
{
    char file[16], memory[16];

    fprintf(to, "  %-*s %-6s", width, is_first ? w->name : "", w->type);
    if (w->fit == MW_FIT_UNSUPPORTED) {
        fprintf(to, " %9s  %s\n", "-", outlooks[w->fit]);
        return;
    }
    fprintf(to, " %9s  %-9s %9s", units_size(file, sizeof file, w->info.file_bytes),
            outlooks[w->fit], units_size(memory, sizeof memory, w->plan.sum_bytes));
    if (w->fit == MW_FIT_TOO_LARGE) {
        fputc('\n', to);
        return;
    }
    print_rate(to, w->plan.decode_tps, w->plan.is_doubtful);
    print_rate(to, w->plan.prefill_tps, w->plan.is_doubtful);
    fprintf(to, " %9u\n", w->longest_ctx);
}

/* --- JSON --- */

static void json_wall(struct json *j, const struct wall *w)
{
    static const char *const names[] = { [MW_FIT_FITS] = "fits",
                                         [MW_FIT_STREAMS] = "streams",
                                         [MW_FIT_TOO_LARGE] = "too_large",
                                         [MW_FIT_UNSUPPORTED] = "unsupported",
                                         [MW_FIT_UNKNOWN] = "unknown" };

    json_object(j, NULL);
    json_string(j, "name", w->name);
    json_string(j, "type", w->type);
    json_string(j, "outlook", names[w->fit]);
    if (w->fit != MW_FIT_UNSUPPORTED) {
        json_u64(j, "file_bytes", w->info.file_bytes);
        json_u64(j, "hot_bytes", w->info.hot_bytes);
        json_u64(j, "memory_bytes", w->plan.sum_bytes);
        json_u64(j, "budget_bytes", w->plan.budget_bytes);
        json_u64(j, "ctx", w->plan.n_ctx);
        json_u64(j, "longest_ctx", w->longest_ctx);
    }
    if (w->fit == MW_FIT_FITS || w->fit == MW_FIT_STREAMS) {
        json_u64(j, "streamed_bytes", w->plan.streamed_bytes);
        json_double(j, "decode_tps", w->plan.decode_tps, 6);
        json_double(j, "prefill_tps", w->plan.prefill_tps, 6);
        json_string(j, "binds", mw_binds_name(w->plan.binds));
    }
    json_end(j);
}

/* --- all of them --- */

/* Returns the columns of the longest name. */
static int name_width(const struct mw_known *list)
{
    size_t width = strlen("model");

    for (size_t i = 0; i < mw_known_count(list); i++) {
        struct mw_known_info known;

        mw_known_at(list, i, &known);
        if (strlen(known.name) > width)
            width = strlen(known.name);
    }
    return (int)width;
}

static void count_wall(struct doctor_walls_count *n, const struct wall *w)
{
    bool fits = w->fit == MW_FIT_FITS, streams = w->fit == MW_FIT_STREAMS;

    n->n++;
    n->n_fits += fits;
    n->n_streams += streams;
    n->n_too_large += w->fit == MW_FIT_TOO_LARGE;
    if ((fits || streams) && w->plan.decode_tps > 0)
        (fits ? n->fits : n->streams)[w->plan.binds]++;
}

static int do_wall(struct doctor_print *p, const struct doctor_walls *w,
                   const struct mw_known *list, size_t i, uint32_t type,
                   struct doctor_walls_count *count)
{
    char doing[80];
    struct mw_known_info known;
    struct err e = ERR_INIT;
    struct mw_model *m;
    struct wall wall = { .fit = MW_FIT_UNSUPPORTED };

    mw_known_at(list, i, &known);
    wall.name = known.name;
    wall.type = known.types[type];
    if (mw_model_open_known(&m, list, i, wall.type, &e) == 0) {
        snprintf(doing, sizeof doing, "planning %.40s in %.8s", wall.name, wall.type);
        w->step(w->ctx, doing);
        limits_ensure(m, w->folder, w->engine, w->no_disk ? LIMITS_NO_DISK : LIMITS_MEASURE);
        find_wall(w, m, count->budget_bytes, &wall);
        mw_model_close(m);
    } else if (e.code != ERR_UNSUPPORTED) {
        doctor_print_error(p, &e);
        return -1;
    }
    count_wall(count, &wall);
    w->clear(w->ctx);
    if (p->is_json)
        json_wall(&p->json, &wall);
    else
        print_wall(p->to, name_width(list), &wall, type == 0);
    return 0;
}

static void put_bytes(struct doctor_print *p, const char *key, const char *label,
                      uint64_t bytes)
{
    struct mw_fact f = {
        .key = key, .label = label, .unit = MW_UNIT_BYTES, .value = (double)bytes
    };

    doctor_print_fact(p, &f);
}

int doctor_walls_print(struct doctor_print *p, const struct doctor_walls *w,
                       struct doctor_walls_count *count, struct err *e)
{
    struct mw_known *list;
    int rc = 0;

    *count = (struct doctor_walls_count){ .budget_bytes = most_bytes(w->engine) };
    if (known_list(&list, e) != 0)
        return -1;
    if (!w->no_disk) {
        w->step(w->ctx, "measuring the disk for predictions");
        if (limits_measure_folder(w->folder, w->engine, e) != 0) {
            doctor_print_error(p, e);
            *e = (struct err)ERR_INIT;
        }
        w->clear(w->ctx);
    }
    put_bytes(p, "budget_bytes", "budget", count->budget_bytes);
    if (p->is_json)
        json_array(&p->json, "models");
    else
        print_head(p->to, name_width(list));
    for (size_t i = 0; i < mw_known_count(list) && rc == 0; i++) {
        struct mw_known_info known;

        mw_known_at(list, i, &known);
        for (uint32_t type = 0; type < known.n_type && rc == 0 && !*w->cancelled; type++)
            rc = do_wall(p, w, list, i, type, count);
    }
    if (p->is_json)
        json_end(&p->json);
    mw_known_close(list);
    return rc;
}
