/* See what_if.h. */
#include "config.h"

#include "src/plan/what_if.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define OTHERS_BYTES                                                                           \
    GIB /* of the system and other programs, at most a quarter of the memory                   \
         */
#define MAX_CORES 256

static uint64_t others_bytes(const struct what_if *w)
{
    return w->ram_bytes / 4 < OTHERS_BYTES ? w->ram_bytes / 4 : OTHERS_BYTES;
}

/* --- parsing --- */

static int parse_one(const char *key, const char *value, struct what_if *out, struct err *e)
{
    uint64_t n = 0;

    if (strcasecmp(key, "RAM") == 0) {
        if (units_parse_size(value, 0, &out->ram_bytes, e) != 0)
            return -1;
        return out->ram_bytes >= MIB ? 0 : err_set(e, ERR_ARGUMENT, "RAM is at least 1M");
    }
    if (strcasecmp(key, "DISK") == 0 || strcasecmp(key, "BW") == 0) {
        uint64_t *rate =
            strcasecmp(key, "DISK") == 0 ? &out->disk_bytes_s : &out->memory_bytes_s;

        if (units_parse_rate(value, rate) && *rate > 0)
            return 0;
        return err_set(e, ERR_ARGUMENT, "\"%.40s\" is not a rate such as 500M/s or 40G/s",
                       value);
    }
    if (strcasecmp(key, "CORES") == 0) {
        if (!units_parse_whole(value, false, 1, MAX_CORES, &n))
            return err_set(e, ERR_ARGUMENT, "CORES is 1 to %d, not \"%.40s\"", MAX_CORES,
                           value);
        out->n_core = (int)n;
        return 0;
    }
    return err_set(e, ERR_ARGUMENT, "\"%.40s\" is not RAM, DISK, BW or CORES", key);
}

int what_if_parse(const char *text, struct what_if *out, struct err *e)
{
    char part[80];

    *out = (struct what_if){ 0 };
    for (const char *end; *text != '\0'; text = *end == ',' ? end + 1 : end) {
        char *equals;

        end = text + strcspn(text, ",");
        snprintf(part, sizeof part, "%.*s", (int)(end - text), text);
        equals = strchr(part, '=');
        if (equals == NULL && isdigit((unsigned char)part[0]))
            return err_set(e, ERR_ARGUMENT,
                           "\"%.40s\" has no name; expected something like RAM=8G, with the "
                           "name RAM, DISK, BW or CORES",
                           part);
        if (equals == NULL || (size_t)(end - text) >= sizeof part)
            return err_set(e, ERR_ARGUMENT,
                           "\"%.40s\" has no value; expected something like "
                           "RAM=8G,DISK=500M/s,BW=40G/s,CORES=4",
                           part);
        *equals = '\0';
        if (parse_one(part, equals + 1, out, e) != 0)
            return -1;
    }
    return 0;
}

/* --- applying --- */

/* All rates of a weight type are limited by computing, and the one of a single column also by
 * memory. */
static void scale_rate(struct mw_rate *r, double factor, double memory_bytes_s)
{
    r->chunk_flops_s *= factor;
    r->few_bytes_s *= factor;
    r->column_bytes_s *= factor;
    if (memory_bytes_s > 0 && r->column_bytes_s > memory_bytes_s)
        r->column_bytes_s = memory_bytes_s;
}

void what_if_apply(const struct what_if *w, struct mw_model *m, struct mw_options *o)
{
    struct mw_machine machine;
    struct mw_limits l;

    mw_machine_read(&machine);
    mw_model_limits(m, &l);
    if (w->n_core > 0) {
        int measured = o->n_thread > 0 ? o->n_thread : machine.n_thread;

        for (uint32_t i = 0; i < l.n_rate; i++)
            scale_rate(&l.rate[i], (double)w->n_core / measured,
                       w->memory_bytes_s > 0 ? (double)w->memory_bytes_s : l.memory_bytes_s);
        o->n_thread = l.n_thread = w->n_core;
    }
    if (w->memory_bytes_s > 0) {
        l.memory_bytes_s = (double)w->memory_bytes_s;
    }
    if (w->disk_bytes_s > 0) {
        l.disk_bytes_s = (double)w->disk_bytes_s;
        l.direct_bytes_s = l.buffered_bytes_s = 0;
    }
    mw_model_set_limits(m, &l);
    mw_model_set_anchor(m, &(struct plan_anchor){ 0 }); /* it is of this machine */
    if (w->ram_bytes == 0)
        return;
    if (o->memory_bytes == 0)
        o->memory_bytes = mw_default_budget(m, o, w->ram_bytes - others_bytes(w));
    if (o->memory_bytes > w->ram_bytes - others_bytes(w))
        o->memory_bytes = w->ram_bytes - others_bytes(w);
}

/* --- printing --- */

/* Calls fn for each assumption. */
static void each_assumption(const struct what_if *w, void (*fn)(void *ctx, const char *text),
                            void *ctx)
{
    char text[120], size[16];

    if (w->ram_bytes > 0) {
        snprintf(text, sizeof text, "%s of the memory is in use by others",
                 units_size(size, sizeof size, others_bytes(w)));
        fn(ctx, text);
    }
    if (w->disk_bytes_s > 0)
        fn(ctx, "small reads take as long as on this machine");
    else
        fn(ctx, "the disk is the one of this machine");
    if (w->memory_bytes_s == 0)
        fn(ctx, "memory is as fast as on this machine");
    if (w->n_core > 0)
        fn(ctx, "each core is as fast as one of this machine, and all of them scale");
    else
        fn(ctx, "the cores are those of this machine");
}

static void print_assumption(void *ctx, const char *text)
{
    fprintf(ctx, "assumed %s\n", text);
}

void what_if_print(FILE *to, const struct what_if *w)
{
    const char *before = "";
    char text[24];

    fputs("what if ", to);
    if (w->ram_bytes > 0) {
        fprintf(to, "%s of memory", units_size(text, sizeof text, w->ram_bytes));
        before = ", ";
    }
    if (w->disk_bytes_s > 0) {
        fprintf(to, "%sdisk %s", before,
                units_rate(text, sizeof text, (double)w->disk_bytes_s));
        before = ", ";
    }
    if (w->memory_bytes_s > 0) {
        fprintf(to, "%smemory %s", before,
                units_rate(text, sizeof text, (double)w->memory_bytes_s));
        before = ", ";
    }
    if (w->n_core > 0)
        fprintf(to, "%s%d cores", before, w->n_core);
    fputc('\n', to);
    each_assumption(w, print_assumption, to);
}

static void json_assumption(void *ctx, const char *text)
{
    json_string(ctx, NULL, text);
}

void what_if_json(struct json *j, const struct what_if *w)
{
    json_object(j, "what_if");
    json_u64(j, "ram_bytes", w->ram_bytes);
    json_u64(j, "disk_bytes_s", w->disk_bytes_s);
    json_u64(j, "memory_bytes_s", w->memory_bytes_s);
    json_u64(j, "cores", (uint64_t)w->n_core);
    json_array(j, "assumed");
    each_assumption(w, json_assumption, j);
    json_end(j);
    json_end(j);
}
