/* Commands that change options of the engine. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/talk/change_sheet.h"
#include "ui/talk/command_list.h"
#include "ui/text/clean.h"

/* Parse "8192" or "32k".  false: it is not a number from low to high. */
static bool read_count(const char *text, uint32_t low, uint32_t high, uint32_t *out)
{
    uint64_t n;

    if (!units_parse_whole(text, true, low, high, &n))
        return false;
    *out = (uint32_t)n;
    return true;
}

void run_ctx(struct talk *t, const char *args)
{
    struct mw_chat_options o = *talk_options(t);
    char what[40];

    if (args[0] == '\0') {
        talk_notice(t, "the context is %u tokens; the model was trained for %u",
                    talk_plan(t)->n_ctx, talk_info(t)->n_ctx_train);
        return;
    }
    if (!read_count(args, 1, 1u << 24, &o.engine.n_ctx)) {
        talk_error(t, "\"%s\" is not a number of tokens: /ctx 8192 or /ctx 8k", args);
        return;
    }
    if (talk_info(t)->n_ctx_train > 0 && o.engine.n_ctx > talk_info(t)->n_ctx_train)
        talk_notice(t, "that is more than the %u tokens that the model was trained for",
                    talk_info(t)->n_ctx_train);
    snprintf(what, sizeof what, "context %u", o.engine.n_ctx);
    change_propose(t, &o, what);
}

void run_memory(struct talk *t, const char *args)
{
    struct mw_chat_options o = *talk_options(t);
    struct err e = ERR_INIT;
    struct mw_machine machine;
    char what[40], size[16], why[320];

    if (args[0] == '\0') {
        talk_notice(t, "the budget is %s",
                    units_size(size, sizeof size, talk_plan(t)->budget_bytes));
        return;
    }
    mw_machine_read(&machine);
    if (strcmp(args, "auto") == 0) {
        o.engine.memory_bytes = 0;
    } else if (units_parse_size(args, machine.memory_bytes, &o.engine.memory_bytes, &e) != 0) {
        talk_report(t, &e);
        return;
    }
    if (mw_budget_lower(&o.engine.memory_bytes, why, sizeof why)) {
        talk_notice(t, "%s", why);
        args = units_size(size, sizeof size, o.engine.memory_bytes);
    }
    snprintf(what, sizeof what, "budget %.30s", args);
    change_propose(t, &o, what);
}

void run_kv(struct talk *t, const char *args)
{
    struct mw_chat_options o = *talk_options(t);
    char k[16] = "", v[16] = "", what[48];
    int n = sscanf(args, "%15s %15s", k, v), k_type = mw_kv_parse(k),
        v_type = n == 2 ? mw_kv_parse(v) : k_type;

    if (args[0] == '\0') {
        talk_notice(t, "keys are %s%s, values are %s%s", mw_kv_name(o.engine.kv_k),
                    mw_kv_is_rotated(o.engine.kv_k) ? " (rotated)" : "",
                    mw_kv_name(o.engine.kv_v),
                    mw_kv_is_rotated(o.engine.kv_v) ? " (rotated)" : "");
        return;
    }
    if (k_type < 0 || v_type < 0) {
        talk_error(t, "\"%s\" is not a type of keys and values: f32, f16, q8_0 or q4_0", args);
        return;
    }
    o.engine.kv_k = (enum mw_kv)k_type;
    o.engine.kv_v = (enum mw_kv)v_type;
    snprintf(what, sizeof what, "kv %.40s", args);
    change_propose(t, &o, what);
}

void run_io(struct talk *t, const char *args)
{
    struct mw_chat_options o = *talk_options(t);
    int io = mw_io_parse(args, &o.engine.mmap_drop);
    char what[40];

    if (args[0] == '\0') {
        struct mw_sample s;

        talk_sample(t, &s);
        talk_notice(t, "weights are read by %s (%s)", s.run.io, s.run.io_reason);
        return;
    }
    if (io < 0) {
        talk_error(
            t, "\"%s\" is not a way to read weights: auto, direct, buffered, mmap, mmap:drop",
            args);
        return;
    }
    o.engine.io = (enum mw_io)io;
    snprintf(what, sizeof what, "io %.30s", args);
    change_propose(t, &o, what);
}

void run_threads(struct talk *t, const char *args)
{
    struct mw_chat_options o = *talk_options(t);
    uint32_t n;
    char what[40];

    if (args[0] == '\0') {
        struct mw_sample s;

        talk_sample(t, &s);
        talk_notice(t, s.run.threads == 1 ? "%u thread computes" : "%u threads compute",
                    s.run.threads);
        return;
    }
    if (!read_count(args, 1, 1024, &n)) {
        talk_error(t, "\"%s\" is not a number of threads from 1 to 1024", args);
        return;
    }
    o.engine.n_thread = (int)n;
    snprintf(what, sizeof what, "threads %u", n);
    change_propose(t, &o, what);
}

/* ---- sampling, without a proposal ---- */

static bool read_number(struct talk *t, const char *args, double low, double high, double *out)
{
    if (units_parse_number(args, low, high, out))
        return true;
    talk_error(t, "\"%s\" is not a number from %g to %g", args, low, high);
    return false;
}

/* Show a float of the sampling, or set it to the argument. */
static void number(struct talk *t, const char *args, const char *name, size_t at, double low,
                   double high)
{
    struct mw_chat_options o = *talk_options(t);
    float *field = (float *)(void *)((char *)&o.sampling + at);
    double value;

    if (args[0] == '\0') {
        talk_notice(t, "%s is %g", name, (double)*field);
        return;
    }
    if (!read_number(t, args, low, high, &value))
        return;
    *field = (float)value;
    talk_change(t, &o, THEN_NOTHING);
    talk_notice(t, "%s is %g from the next answer on", name, value);
}

void run_temp(struct talk *t, const char *args)
{
    number(t, args, "the temperature", offsetof(struct mw_sampling, temp), 0, 100);
}

void run_top_p(struct talk *t, const char *args)
{
    number(t, args, "top-p", offsetof(struct mw_sampling, top_p), 0, 1);
}

void run_min_p(struct talk *t, const char *args)
{
    number(t, args, "min-p", offsetof(struct mw_sampling, min_p), 0, 1);
}

void run_repeat_penalty(struct talk *t, const char *args)
{
    number(t, args, "the repeat penalty", offsetof(struct mw_sampling, repeat_penalty), 0.01,
           100);
}

void run_top_k(struct talk *t, const char *args)
{
    struct mw_chat_options o = *talk_options(t);
    uint32_t n;

    if (args[0] == '\0') {
        talk_notice(t, "top-k is %d", o.sampling.top_k);
        return;
    }
    if (!read_count(args, 0, INT32_MAX, &n)) {
        talk_error(t, "\"%s\" is not a number of tokens (0: all)", args);
        return;
    }
    o.sampling.top_k = (int)n;
    talk_change(t, &o, THEN_NOTHING);
    talk_notice(t, "top-k is %u from the next answer on", n);
}

void run_seed(struct talk *t, const char *args)
{
    struct mw_chat_options o = *talk_options(t);

    if (args[0] == '\0') {
        if (o.sampling.seed == 0)
            talk_notice(t, "every answer gets a new random seed");
        else
            talk_notice(t, "the seed is %llu", (unsigned long long)o.sampling.seed);
        return;
    }
    if (!units_parse_whole(args, false, 0, UINT64_MAX, &o.sampling.seed)) {
        talk_error(t, "\"%s\" is not a seed (a number; 0: a new one each time)", args);
        return;
    }
    talk_change(t, &o, THEN_NOTHING);
    talk_notice(t, o.sampling.seed == 0 ? "every answer gets a new random seed"
                                        : "the seed is set");
}

void run_predict(struct talk *t, const char *args)
{
    struct mw_chat_options o = *talk_options(t);

    if (args[0] == '\0') {
        if (o.n_predict == 0)
            talk_notice(t, "an answer may fill the context");
        else
            talk_notice(t, "answers are limited to %u tokens", o.n_predict);
        return;
    }
    if (!read_count(args, 0, UINT32_MAX, &o.n_predict)) {
        talk_error(t, "\"%s\" is not a number of tokens (0: until the context is full)", args);
        return;
    }
    talk_change(t, &o, THEN_NOTHING);
    run_predict(t, "");
}

void run_shift(struct talk *t, const char *args)
{
    struct mw_chat_options o = *talk_options(t);

    if (args[0] != '\0') {
        if (strcmp(args, "on") != 0 && strcmp(args, "off") != 0) {
            talk_error(t, "/shift on or /shift off");
            return;
        }
        o.engine.ctx_shift = strcmp(args, "on") == 0;
        talk_change(t, &o, THEN_NOTHING);
    }
    talk_notice(
        t,
        o.engine.ctx_shift
            ? "when the context is full, the oldest turns are dropped and a notice names them"
            : "when the context is full, the answer ends");
}

void run_think(struct talk *t, const char *args)
{
    static const char *const words[] = {
        [MW_THINK_DEFAULT] = "default", [MW_THINK_ON] = "on", [MW_THINK_OFF] = "off"
    };
    struct mw_chat_options o = *talk_options(t);

    if (args[0] == '\0') {
        talk_notice(t, "thinking: %s", words[o.think]);
        return;
    }
    for (int i = 0; i < 3; i++)
        if (strcmp(args, words[i]) == 0) {
            o.think = (enum mw_think)i;
            talk_change(t, &o, THEN_NOTHING);
            talk_notice(t, "thinking: %s, from the next answer on", args);
            return;
        }
    talk_error(t, "/think on, /think off or /think default");
}

void run_system(struct talk *t, const char *args)
{
    struct mw_chat_options o = *talk_options(t);

    if (args[0] == '\0') {
        if (o.system == NULL)
            talk_notice(t, "there is no system message; /system TEXT gives one");
        else
            talk_notice(t, "the system message is:\n%s", o.system);
        return;
    }
    o.system = strcmp(args, "none") == 0 ? NULL : args;
    talk_change(t, &o, THEN_NOTHING);
    talk_notice(t, o.system == NULL ? "system message removed"
                                    : "the system message applies from the next message on, "
                                      "which evaluates the conversation again");
}
