#include "config.h"

#include "ui/talk/advice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A size in steps of 3 to 6 %.  Measurements change from token to token, and the advice should
 * not, so a size in buf stays while it is within a quarter. */
static void memory(char *buf, size_t n, double bytes, double budget)
{
    bool rounds_up = bytes > budget;
    uint64_t step = 1, mib = (uint64_t)(bytes / MIB + (rounds_up ? 1 : 0));
    double before = MIB * strtod(buf + strcspn(buf, "0123456789"), NULL);

    if (strncmp(buf, "/memory ", 8) == 0 && before > 0.8 * bytes && before < 1.25 * bytes &&
        (before > budget) == rounds_up && before != budget)
        return;
    buf[0] = '\0';

    while (step * 32 <= mib)
        step *= 2;
    mib += rounds_up ? step - 1 : 0;
    if (mib < step)
        return;
    snprintf(buf, n, "/memory %lluM", (unsigned long long)(mib - mib % step));
}

char *advice_command(const struct talk *t, const struct mw_sample *s, char *buf, size_t n)
{
    double budget = (double)talk_plan(t)->budget_bytes, amount = s->verdict.advice_amount;
    uint32_t half = talk_plan(t)->n_ctx / 2;
    const char *key = s->verdict.binds != MW_BINDS_NONE ? s->verdict.advice : "";

    if (strcmp(key, "more_budget") == 0)
        memory(buf, n, budget + amount, budget);
    else if (strcmp(key, "less_budget") == 0)
        memory(buf, n, budget - amount, budget);
    else
        buf[0] = '\0';
    if (strcmp(key, "smaller_kv") == 0)
        snprintf(buf, n, "/kv %s", mw_kv_name(MW_KV_Q8_0));
    else if (strcmp(key, "shorter_context") == 0 && talk_tokens(t) <= half)
        snprintf(buf, n, "/ctx %u", half);
    else if (strcmp(key, "direct_io") == 0)
        snprintf(buf, n, "/io %s", mw_io_name(MW_IO_DIRECT));
    return buf;
}

double advice_rate(struct talk *t, const char *command)
{
    static const char memory_command[] = "/memory ";
    struct err ignored = ERR_INIT;
    struct options o;
    struct plan then;

    if (strncmp(command, memory_command, sizeof memory_command - 1) != 0)
        return 0;
    talk_values(t, &o);
    if (options_set(&o, OPT_MEMORY, command + sizeof memory_command - 1, &ignored) != 0 ||
        talk_try_plan(t, &o.chat.engine, &then, &ignored) != 0)
        return 0;
    return then.decode_tps > 1.01 * talk_plan(t)->decode_tps ? then.decode_tps : 0;
}
