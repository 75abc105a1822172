/* See pull_print.h. */
#include "config.h"

#include "src/models/pull_print.h"

#include <inttypes.h>
#include <string.h>

#include "engine/base/json_write.h"
#include "engine/base/visible.h"
#include "ui/words/clean.h"
#include "ui/words/cluster.h"

void pull_outlook(const struct mw_pull_variant *c, char *buf, size_t n)
{
    char text[512];

    if (c->is_described)
        mw_fit_text(&c->model, text, sizeof text);
    else
        snprintf(text, sizeof text, "unknown: %s", c->why);
    clean_line(buf, n, text, strlen(text)); /* reasons quote what is in files of the hub */
}

#define NAME_ROOM 1100 /* for the longest path in a repository */

static const char *name_of(const struct mw_pull_variant *c, char buf[NAME_ROOM])
{
    const char *name = c->label[0] != '\0' ? c->label : c->file;

    visible_line(buf, NAME_ROOM, name, strlen(name));
    return buf;
}

/* How much is there already: "", ", 45 % fetched". */
static void have_text(const struct mw_pull_variant *c, char *buf, size_t n)
{
    buf[0] = '\0';
    if (c->bytes > 0 && c->have_bytes == c->bytes)
        snprintf(buf, n, ", fetched");
    else if (c->have_bytes > 0)
        snprintf(buf, n, ", %.0f %% fetched", 100 * (double)c->have_bytes / (double)c->bytes);
}

/* A draft head that comes with the model, or does not: "", ", with a draft head of 78 MiB". */
static void head_text(const struct mw_pull_variant *c, char *buf, size_t n)
{
    char size[16];

    buf[0] = '\0';
    if (c->head != NULL)
        snprintf(buf, n, ", with a draft head of %s",
                 units_size(size, sizeof size, c->head_bytes));
    else if (c->left_head != NULL)
        snprintf(buf, n, ", without its draft head: %s", c->left_why);
}

static void print_line(FILE *to, const struct mw_pull_variant *c, int width)
{
    char outlook[512], have[32], head[80], size[16], buf[NAME_ROOM];
    const char *name = name_of(c, buf);
    int used = cluster_width(name, strlen(name));

    pull_outlook(c, outlook, sizeof outlook);
    visible_line(outlook, sizeof outlook, outlook, strlen(outlook));
    have_text(c, have, sizeof have);
    head_text(c, head, sizeof head);
    fprintf(to, "%s%*s  %10s  %s%s%s\n", name, used < width ? width - used : 0, "",
            units_size(size, sizeof size, c->bytes), outlook, head, have);
}

static void print_left_out(FILE *to, const struct mw_pull *p, const struct mw_pull_info *info)
{
    const char *why;
    char line[512];
    uint32_t n = 0;

    if (info->n_unsafe > 0)
        fprintf(to, "%" PRIu32 " files have names that are not safe and are left out.\n",
                info->n_unsafe);
    for (; (why = mw_pull_broken(p, n)) != NULL; n++) {
        clean_line(line, sizeof line, why, strlen(why));
        fprintf(to, "Left out: %s.\n", line);
    }
    if (info->n_broken > n)
        fprintf(to, "%" PRIu32 " more models lack files and are left out.\n",
                info->n_broken - n);
}

void pull_print_one(FILE *to, const struct mw_pull *p, size_t i)
{
    struct mw_pull_info info;

    mw_pull_info(p, &info);
    print_line(to, mw_pull_at(p, i), 0);
    if (info.variant[0] == '\0') /* otherwise, the user knows what else there is */
        print_left_out(to, p, &info);
}

void pull_print(FILE *to, const struct mw_pull *p, const char *cache, size_t best)
{
    struct mw_pull_info info;
    char size[16], buf[NAME_ROOM];
    int width = 0;

    mw_pull_info(p, &info);
    fprintf(to, "%s at %s (%.8s), to %s", info.repo, info.revision, info.commit, cache);
    if (info.free_bytes != UINT64_MAX)
        fprintf(to, ", %s free", units_size(size, sizeof size, info.free_bytes));
    fputs("\n\n", to);
    for (size_t i = 0; i < mw_pull_count(p); i++) {
        const char *name = name_of(mw_pull_at(p, i), buf);
        int used = cluster_width(name, strlen(name));

        width = used > width ? used : width;
    }
    for (size_t i = 0; i < mw_pull_count(p); i++) {
        fprintf(to, "%c%3zu  ", i == best ? '*' : ' ', i + 1);
        print_line(to, mw_pull_at(p, i), width);
    }
    print_left_out(to, p, &info);
}

static void json_model(struct json *j, const struct mw_pull_variant *c, const char *path)
{
    char outlook[512];

    pull_outlook(c, outlook, sizeof outlook);
    json_object(j, NULL);
    json_string(j, "label", c->label);
    json_string(j, "file", c->file);
    json_u64(j, "files", c->n_file);
    json_u64(j, "bytes", c->bytes);
    json_u64(j, "have_bytes", path != NULL ? c->bytes : c->have_bytes);
    json_string(j, "here", outlook);
    if (c->head != NULL) {
        json_string(j, "draft_head", c->head);
        json_u64(j, "draft_head_bytes", c->head_bytes);
    }
    if (c->left_head != NULL)
        json_string(j, "draft_head_left_out", c->left_head);
    if (c->is_described) {
        json_string(j, "arch", c->model.arch);
        json_string(j, "type", c->model.type);
        json_u64(j, "n_ctx_train", c->model.n_ctx_train);
        json_u64(j, "n_param", c->model.n_param);
        json_bool(j, "supported", c->model.fit != MW_FIT_UNSUPPORTED);
        json_bool(j, "fits", c->model.fit == MW_FIT_FITS || c->model.fit == MW_FIT_STREAMS);
        json_u64(j, "budget_bytes", c->model.plan.budget_bytes);
        json_u64(j, "sum_bytes", c->model.plan.sum_bytes);
        json_u64(j, "streamed_bytes", c->model.plan.streamed_bytes);
        json_double(j, "decode_tps", c->model.plan.decode_tps, 6);
    }
    if (path != NULL)
        json_string(j, "path", path);
    json_end(j);
}

void pull_print_json(FILE *to, const struct mw_pull *p, const char *cache, size_t i,
                     const char *path)
{
    struct mw_pull_info info;
    struct json j;

    mw_pull_info(p, &info);
    json_start_stream(&j, to);
    json_object(&j, NULL);
    json_string(&j, "repo", info.repo);
    json_string(&j, "revision", info.revision);
    json_string(&j, "commit", info.commit);
    json_string(&j, "cache", cache);
    if (info.free_bytes != UINT64_MAX)
        json_u64(&j, "free_bytes", info.free_bytes);
    else
        json_null(&j, "free_bytes");
    json_u64(&j, "files_left_out", info.n_unsafe);
    json_u64(&j, "sets_left_out", info.n_broken);
    json_array(&j, "models");
    for (size_t k = 0; k < mw_pull_count(p); k++)
        if (path == NULL || k == i)
            json_model(&j, mw_pull_at(p, k), path);
    json_end(&j);
    json_end(&j);
    json_line(&j);
}
