/* memwall tried: list the settings with which a model answered, as sessions measured them. */
#include "config.h"

#include <stdio.h>
#include <time.h>

#include "engine/base/json_write.h"
#include "src/command.h"
#include "src/machine/kept_limits.h"
#include "src/settings.h"
#include "ui/words/tried.h"

static void print_record(struct json *j, const struct mw_tried *t,
                         const struct mw_tried *slowest)
{
    json_object(j, NULL);
    json_u64(j, "budget_bytes", (uint64_t)t->memory_bytes);
    json_u64(j, "ctx", (uint64_t)t->n_ctx);
    json_string(j, "kv_k", mw_kv_name((enum mw_kv)t->kv_k));
    json_string(j, "kv_v", mw_kv_name((enum mw_kv)t->kv_v));
    json_u64(j, "threads", (uint64_t)t->n_thread);
    json_string(j, "io", mw_io_name((enum mw_io)t->io));
    json_u64(j, "chunk", (uint64_t)t->chunk);
    json_u64(j, "disk_rate", (uint64_t)t->disk_rate);
    json_bool(j, "exact", t->exact != 0);
    json_u64(j, "tokens", (uint64_t)t->n_token);
    json_double(j, "tps", t->tps, 6);
    json_double(j, "gain", t->tps / slowest->tps, 4);
    json_double(j, "wait_share", t->wait_share, 4);
    if (t->peak_bytes > 0)
        json_u64(j, "peak_bytes", (uint64_t)t->peak_bytes);
    else
        json_null(j, "peak_bytes");
    json_u64(j, "time", (uint64_t)t->measured_s);
    json_end(j);
}

static void print_json(const char *model, const struct mw_tried *list, size_t n)
{
    struct json j;

    json_start_stream(&j, stdout);
    json_object(&j, NULL);
    json_string(&j, "model", model);
    json_array(&j, "tried");
    for (size_t i = 0; i < n; i++)
        print_record(&j, &list[i], mw_tried_slowest(list, n));
    json_end(&j);
    json_end(&j);
    json_line(&j);
}

static void print_table(const struct mw_tried *list, size_t n)
{
    struct tried_table table;
    char row[TRIED_LINE];

    tried_table(&table, list, n, (int64_t)time(NULL));
    puts(tried_heading());
    for (size_t i = 0; i < n; i++)
        puts(tried_row(row, sizeof row, &table, &list[i]));
    printf("\n%s\n%s\n", TRIED_NOTE);
}

static int run_tried_command(const struct options *o)
{
    struct mw_tried list[MW_TRIED_MOST];
    struct settings_notice notice;
    struct mw_options engine;
    struct mw_model *m;
    struct err e = ERR_INIT;
    size_t n;

    settings_engine(o, &engine, &notice);
    if (mw_model_open(&m, o->model, &e) != 0)
        return report_error(&e);
    mw_model_close(m);
    n = limits_tried(o->model, &engine, list);
    if (o->json)
        print_json(o->model, list, n);
    else if (n == 0)
        printf("Nothing was measured with this model yet: an answer of more than %d tokens "
               "without drafts is, in a chat, run, bench or sweep.\n",
               MW_TRIED_TOKENS);
    else
        print_table(list, n);
    return report_end(EXIT_OK);
}

const struct command cmd_tried = {
    .name = "tried",
    .help = "list the settings that were tried, and how fast each was",
    .about =
        "Print a line for each combination of settings with which the model answered in\n"
        "the last 30 days: budget, context, types of keys and values, tokens per second,\n"
        "the share of waiting for the disk, and the largest memory.  The newest comes\n"
        "first, of at most 64.  Nothing is measured now.  /tried in a chat shows the same\n"
        "and goes back to settings with Enter.",
    .examples = "memwall tried model.gguf\n"
                "memwall tried model.gguf --json\n",
    .bit = CMD_TRIED,
    .needs_model = true,
    .reads_config = true,
    .run = run_tried_command,
};
