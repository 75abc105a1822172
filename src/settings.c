/* See settings.h. */
#include "config.h"

#include "src/settings.h"

#include <stdlib.h>
#include <string.h>

#include "src/command.h"

/* Read the budget in bytes and lower it to the limit of this machine.  0: the engine chooses.
 */
static int read_memory(const char *text, uint64_t *bytes, char *why, size_t n, struct err *e)
{
    struct mw_machine machine;

    why[0] = '\0';
    *bytes = 0;
    if (text == NULL || strcmp(text, "auto") == 0)
        return 0;
    mw_machine_read(&machine);
    if (machine.memory_bytes == 0 && strchr(text, '%') != NULL) {
        err_set(e, ERR_ARGUMENT,
                "\"%.20s\" of an unknown size: neither /proc/meminfo nor sysinfo(2) reports "
                "the memory of this machine. Give a budget in bytes, for example 2G",
                text);
        return err_at(e, NULL, ERR_NO_OFFSET, "--memory");
    }
    if (units_parse_size(text, machine.memory_bytes, bytes, e) != 0)
        return err_at(e, NULL, ERR_NO_OFFSET, "--memory");
    if (*bytes == 0) {
        err_set(e, ERR_ARGUMENT, "the budget must be larger than 0 bytes");
        return err_at(e, NULL, ERR_NO_OFFSET, "--memory");
    }
    mw_budget_lower(bytes, why, n);
    return 0;
}

static int read_kv(const char *own, const char *both, const char *name, enum mw_kv *out,
                   struct err *e)
{
    const char *text = own != NULL ? own : both;
    int type;

    if (text == NULL)
        return 0;
    type = mw_kv_parse(text);
    if (type < 0) {
        err_set(e, ERR_ARGUMENT, "\"%.20s\" is not a KV type; use f32, f16, q8_0 or q4_0",
                text);
        return err_at(e, NULL, ERR_NO_OFFSET, own != NULL ? name : "--kv");
    }
    *out = (enum mw_kv)type;
    return 0;
}

static int check_isa(const char *name, struct err *e)
{
    for (int i = 0; mw_isa(i) != NULL; i++)
        if (strcmp(mw_isa(i), name) == 0)
            return 0;
    err_set(e, ERR_ARGUMENT,
            "kernel set \"%.20s\" is not available on this CPU (see memwall --version)", name);
    return err_at(e, NULL, ERR_NO_OFFSET, "--isa");
}

int settings_engine(const struct options *o, struct mw_options *out,
                    struct settings_notice *notice, struct err *e)
{
    mw_options_default(out);
    if (read_memory(o->memory, &out->memory_bytes, notice->lowered, sizeof notice->lowered,
                    e) != 0 ||
        read_kv(o->kv_k, o->kv, "--kv-k", &out->kv_k, e) != 0 ||
        read_kv(o->kv_v, o->kv, "--kv-v", &out->kv_v, e) != 0)
        return -1;
    if (o->io != NULL) {
        int io = mw_io_parse(o->io, &out->mmap_drop);

        if (io < 0) {
            err_set(e, ERR_ARGUMENT, "\"%.20s\" is not an I/O mode", o->io);
            return err_at(e, NULL, ERR_NO_OFFSET, "--io");
        }
        out->io = (enum mw_io)io;
    }
    if (o->isa != NULL) {
        if (check_isa(o->isa, e) != 0)
            return -1;
        out->isa = o->isa;
    }
    out->n_ctx = o->ctx;
    out->n_thread = (int)o->threads;
    out->exact = o->exact;
    out->blas = (enum mw_blas)o->blas;
    out->chunk = o->chunk;
    out->ctx_shift = o->ctx_shift;
    out->no_uring = o->no_uring;
    notice->is_mapped = out->io == MW_IO_MMAP;
    return 0;
}

void settings_report(const struct options *o, const struct settings_notice *notice)
{
    if (notice->lowered[0] != '\0')
        report_notice(notice->lowered, strlen(notice->lowered));
    if (notice->is_mapped && !o->quiet)
        report_notice(mw_mmap_notice(), strlen(mw_mmap_notice()));
}

void settings_sampling(const struct options *o, const struct mw_model *m,
                       struct mw_sampling *out)
{
    mw_sampling_default(m, out);
    settings_overlay(o, out);
}

void settings_overlay(const struct options *o, struct mw_sampling *out)
{
    if (options_given(o, OPT_TEMP))
        out->temp = (float)o->temp;
    if (options_given(o, OPT_TOP_K))
        out->top_k = (int)o->top_k;
    if (options_given(o, OPT_TOP_P))
        out->top_p = (float)o->top_p;
    if (options_given(o, OPT_MIN_P))
        out->min_p = (float)o->min_p;
    if (options_given(o, OPT_REPEAT_PENALTY))
        out->repeat_penalty = (float)o->repeat_penalty;
    if (options_given(o, OPT_REPEAT_LAST))
        out->repeat_last = o->repeat_last;
    if (options_given(o, OPT_SEED))
        out->seed = o->seed;
}

void settings_chat(const struct options *o, const struct mw_model *m,
                   struct mw_chat_options *out)
{
    *out = (struct mw_chat_options){ .engine = out->engine };
    settings_sampling(o, m, &out->sampling);
    out->system = o->system;
    out->format = o->format;
    out->raw = o->raw;
    out->think = (enum mw_think)o->think;
    out->n_predict = o->predict;
    out->stop = o->stop;
}

/* True if the terminal cannot draw a screen, or the user has set ACCESSIBLE. */
static bool is_plain_terminal(void)
{
    const char *term = getenv("TERM"), *accessible = getenv("ACCESSIBLE");

    return (accessible != NULL && accessible[0] != '\0') || term == NULL || term[0] == '\0' ||
           strcmp(term, "dumb") == 0;
}

void settings_screen(const struct options *o, struct ui_options *out)
{
    *out = (struct ui_options){
        .theme = o->theme,
        .color = (enum ui_color_wish)o->color,
        .graph = (enum ui_graph)o->graph,
        .ascii = o->ascii,
        .utf8 = o->utf8,
        .plain = o->plain || is_plain_terminal(),
        .no_mouse = o->no_mouse,
        .view = (enum ui_view)o->view,
        .split_percent = (int)o->split,
        .refresh_ms = (int)o->refresh,
        .sync_frames = o->sync_frames,
        .count_bytes = o->count_bytes,
    };
}
