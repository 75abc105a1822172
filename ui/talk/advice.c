#include "config.h"

#include "ui/talk/advice.h"

#include <stdio.h>
#include <string.h>

/* A size in steps of 3 to 6 %, since what is measured changes from token to token and the
 * advice should not. */
static void memory(char *buf, size_t n, double bytes, bool rounds_up)
{
    uint64_t step = 1, mib = (uint64_t)(bytes / MIB + (rounds_up ? 1 : 0));

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
    const char *key = s->verdict.advice;

    buf[0] = '\0';
    if (s->verdict.binds == MW_BINDS_NONE)
        return buf;
    if (strcmp(key, "more_budget") == 0)
        memory(buf, n, budget + amount, true);
    else if (strcmp(key, "less_budget") == 0)
        memory(buf, n, budget - amount, false);
    else if (strcmp(key, "smaller_kv") == 0)
        snprintf(buf, n, "/kv %s", mw_kv_name(MW_KV_Q8_0));
    else if (strcmp(key, "shorter_context") == 0 && talk_tokens(t) <= half)
        snprintf(buf, n, "/ctx %u", half);
    else if (strcmp(key, "direct_io") == 0)
        snprintf(buf, n, "/io %s", mw_io_name(MW_IO_DIRECT));
    return buf;
}
