#include "config.h"

#include "src/models/kv_files_print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/json_write.h"
#include "engine/base/numbers.h"
#include "engine/memwall.h"
#include "src/base/paths.h"
#include "ui/words/clean.h"
#include "ui/words/cluster.h"

#define NAME_BYTES 128

/* "2026-11-27 13:05" */
static char *used_text(const struct mw_kv_file *f, char *buf, size_t n)
{
    time_t used = (time_t)f->used_s;
    struct tm tm;

    buf[0] = '\0';
    if (localtime_r(&used, &tm) != NULL)
        strftime(buf, n, "%Y-%m-%d %H:%M", &tm);
    return buf;
}

/* The name for people: a beginning has the first digits of its fingerprint. */
static void shown_name(const struct mw_kv_file *f, char *buf, size_t n)
{
    if (f->is_beginning)
        snprintf(buf, n, "(beginning %.8s)", f->name + strlen(MW_KV_BEGINNING));
    else
        clean_line(buf, n, f->name, strlen(f->name));
}

static void print_row(const struct mw_kv_file *f, int width)
{
    char name[NAME_BYTES], model[NAME_BYTES], tokens[32], size[16], used[32];

    shown_name(f, name, sizeof name);
    clean_line(model, sizeof model, f->model, strlen(f->model));
    if (f->n_token > 0)
        numbers_count(tokens, sizeof tokens, f->n_token);
    else
        snprintf(tokens, sizeof tokens, "%s", f->is_unfinished ? "unfinished" : "damaged");
    printf("%s%*s  %10s  %10s  %-16s  %s\n", name, width - cluster_width(name, strlen(name)), "",
           tokens, units_size(size, sizeof size, f->bytes), used_text(f, used, sizeof used),
           model);
}

static void print_table(const struct mw_kv_file *all, size_t n, const char *folder)
{
    char size[16], limit[16], name[NAME_BYTES];
    int width = (int)strlen("CHAT");
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++) {
        shown_name(&all[i], name, sizeof name);
        if (cluster_width(name, strlen(name)) > width)
            width = cluster_width(name, strlen(name));
        sum += all[i].bytes;
    }
    printf("%-*s  %10s  %10s  %-16s  %s\n", width, "CHAT", "TOKENS", "SIZE", "USED", "MODEL");
    for (size_t i = 0; i < n; i++)
        print_row(&all[i], width);
    printf("\n%s in %s; without --kv-space, chats keep at most %s\n",
           units_size(size, sizeof size, sum), folder,
           units_size(limit, sizeof limit, mw_kv_limit(folder)));
}

static void print_json(const struct mw_kv_file *all, size_t n)
{
    struct json j;

    json_start_stream(&j, stdout);
    json_array(&j, NULL);
    for (size_t i = 0; i < n; i++) {
        json_object(&j, NULL);
        json_string(&j, "chat", all[i].name);
        json_bool(&j, "beginning", all[i].is_beginning);
        json_string(&j, "model", all[i].model);
        json_u64(&j, "tokens", all[i].n_token);
        json_u64(&j, "bytes", all[i].bytes);
        json_u64(&j, "used", (uint64_t)all[i].used_s);
        json_end(&j);
    }
    json_end(&j);
    json_line(&j);
}

int kv_files_print(bool json, struct err *e)
{
    struct mw_kv_file *all;
    struct paths paths;
    char folder[sizeof paths.cache_dir + 8];
    size_t n;

    if (paths_find(&paths, e) != 0)
        return -1;
    snprintf(folder, sizeof folder, "%s/kv", paths.cache_dir);
    if (mw_kv_list(folder, &all, &n, e) != 0)
        return -1;
    if (json)
        print_json(all, n);
    else if (n == 0)
        puts("There are no keys and values of saved chats.");
    else
        print_table(all, n, folder);
    free(all);
    return 0;
}
