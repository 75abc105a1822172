/* The KV file of a saved chat: its keys and values, so that it goes on without being evaluated.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/numbers.h"
#include "ui/talk/talk_internal.h"

/* ---- saving ---- */

/* The limit of all KV files of a folder. */
static uint64_t space_of(const struct talk *t, const char *folder)
{
    uint64_t space = t->o->options->kv_space;

    return space > 0 ? space : mw_kv_limit(folder);
}

void kv_share(struct talk *t)
{
    const struct engine_calls *calls = t->engine->calls;
    char folder[KV_PATH_BYTES];
    struct err e = ERR_INIT;

    if (calls->share_kv != NULL && saving_kv_folder(&t->saving, folder, sizeof folder) &&
        calls->share_kv(t->engine, folder, space_of(t, folder), &e) != 0)
        talk_report(t, &e);
}

void kv_save(struct talk *t)
{
    const struct engine_calls *calls = t->engine->calls;
    char path[KV_PATH_BYTES], folder[KV_PATH_BYTES];
    struct err e = ERR_INIT;

    if (calls->save_kv == NULL || !saving_kv_folder(&t->saving, folder, sizeof folder) ||
        !saving_kv_path(&t->saving, saving_path(&t->saving), path, sizeof path))
        return;
    if (calls->save_kv(t->engine, path, space_of(t, folder), &e) != 0)
        talk_report(t, &e);
}

void kv_saved(struct talk *t, const struct mw_event *ev)
{
    char why[300];

    if (ev->err.code == ERR_NONE) {
        t->kv.said_failed = false;
        return;
    }
    /* A folder in memory was chosen by a person, and keeps nothing anyway. */
    if (t->kv.said_failed || ev->err.code == ERR_UNSUPPORTED || t->o->options->quiet)
        return;
    t->kv.said_failed = true;
    err_text(&ev->err, why, sizeof why);
    talk_notice(t,
                "the keys and values of this chat are not saved: %s. The chat is, and is "
                "evaluated again when it is resumed",
                why);
}

/* ---- loading ---- */

/* Bytes of weights that are still read before the first token needs them. */
static uint64_t ahead_bytes(const struct talk *t)
{
    struct mw_sample *s = malloc(sizeof *s);
    uint64_t left = 0;

    if (s == NULL)
        return 0;
    t->engine->calls->sample(t->engine, s);
    if (s->mem.ahead_bytes > s->mem.ahead_done_bytes)
        left = s->mem.ahead_bytes - s->mem.ahead_done_bytes;
    free(s);
    return left;
}

void kv_load(struct talk *t)
{
    const struct engine_calls *calls = t->engine->calls;
    char path[KV_PATH_BYTES];
    struct err e = ERR_INIT;

    t->kv.said_failed = false;
    t->kv.is_alone = ahead_bytes(t) == 0;
    if (calls->load_kv != NULL &&
        saving_kv_path(&t->saving, saving_path(&t->saving), path, sizeof path) &&
        calls->load_kv(t->engine, path, &e) != 0)
        talk_report(t, &e);
}

void kv_load_if_own(struct talk *t)
{
    struct talk_kv_cost cost;

    if (talk_kv_cost(t, saving_path(&t->saving), &cost) && cost.is_of_model)
        kv_load(t);
}

#define FEW_BYTES ((uint64_t)4 << 20) /* that say little of a rate */

static void note_rate(struct talk *t, const struct mw_event *ev)
{
    if (ev->total >= FEW_BYTES && ev->ns > 0 && t->kv.is_alone)
        t->kv.bytes_s = (double)ev->total * 1e9 / (double)ev->ns;
}

/* "1,003 tokens of this chat were read from disk in 0.2 s; evaluating them takes ~4 s" */
static void say_read(struct talk *t, const struct mw_event *ev, const char *of)
{
    char count[32], time[24], again[24], instead[60] = "";
    double again_s = talk_evaluation_s(t, ev->n);

    if (again_s > 0)
        snprintf(instead, sizeof instead, "; evaluating them takes ~%s",
                 numbers_time(again, sizeof again, again_s));
    talk_notice(t, "%s tokens of %s were read from disk in %s%s",
                numbers_count(count, sizeof count, ev->n), of,
                numbers_time(time, sizeof time, (double)ev->ns / 1e9), instead);
}

void kv_loaded(struct talk *t, const struct mw_event *ev)
{
    struct err e = ev->err;
    char why[300];

    if (e.code == ERR_NONE)
        note_rate(t, ev);
    if (e.code == ERR_CANCELLED || t->o->options->quiet)
        return;
    if (e.code == ERR_NONE) {
        say_read(t, ev, "this chat");
        return;
    }
    err_text(&e, why, sizeof why);
    talk_notice(t,
                "the saved keys and values of this chat are not used: %s. The next message "
                "evaluates the conversation",
                why);
}

void kv_shared(struct talk *t, const struct mw_event *ev)
{
    char why[300];

    if (t->o->options->quiet)
        return;
    if (ev->err.code == ERR_NONE) {
        say_read(t, ev, "this beginning, which other chats share,");
        return;
    }
    err_text(&ev->err, why, sizeof why);
    talk_notice(t, "the kept beginning of this chat is not used: %s. It is evaluated", why);
}

/* ---- what resuming costs ---- */

bool talk_kv_cost(const struct talk *t, const char *chat_path, struct talk_kv_cost *out)
{
    char path[KV_PATH_BYTES];
    struct mw_limits limits;
    struct mw_kv_file file;

    *out = (struct talk_kv_cost){ .n_token = 0 };
    if (t->engine == NULL || t->engine->calls->load_kv == NULL ||
        !saving_kv_path(&t->saving, chat_path, path, sizeof path) || !mw_kv_look(path, &file))
        return false;
    talk_limits(t, &limits);
    out->n_token = file.n_token;
    out->bytes = file.bytes;
    out->is_of_model = strcmp(file.model, t->info.name) == 0;
    if (t->kv.bytes_s > 0) /* with all that takes time */
        out->load_s = mw_kv_read_s(file.bytes, ahead_bytes(t), t->kv.bytes_s, 0);
    else
        out->load_s = mw_kv_read_s(file.bytes, ahead_bytes(t), limits.disk_bytes_s,
                                   limits.fresh_bytes_s);
    return true;
}

double talk_evaluation_s(const struct talk *t, uint64_t n_token)
{
    return t->plan.prefill_tps > 0 ? (double)n_token / t->plan.prefill_tps : 0;
}
