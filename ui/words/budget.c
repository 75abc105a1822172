#include "config.h"

#include "ui/words/budget.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/numbers.h"
#include "engine/base/units.h"

bool budget_is_elastic(const struct mw_sample *s)
{
    return s->budget.most > 0;
}

uint64_t budget_given(const struct mw_sample *s)
{
    return s->budget.most > 0 && s->budget.chosen > s->run.budget_bytes
               ? s->budget.chosen - s->run.budget_bytes
               : 0;
}

/* Why the last change came. */
static const char *reason(const struct mw_sample *s)
{
    static const struct {
        enum mw_signal signal;
        const char *text;
    } reasons[] = {
        { MW_SIGNAL_AVAILABLE, "little free memory" },
        { MW_SIGNAL_GROUP, "little left of the control group's limit" },
        { MW_SIGNAL_PRESSURE, "programs waited for memory" },
        { MW_SIGNAL_SWAP, "this program was being swapped out" },
        { MW_SIGNAL_FREE, "memory is free again" },
    };

    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (strcmp(s->budget.signal, mw_signal_name(reasons[i].signal)) == 0)
            return reasons[i].text;
    return "";
}

/* The label of the plan item that gives back next; NULL: none. */
static const char *next_label(const struct mw_sample *s)
{
    for (int i = 0; i < MW_PLAN_ROWS; i++)
        if (strcmp(s->budget.next, mw_plan_row_name((enum mw_plan_row)i)) == 0)
            return mw_plan_row_label((enum mw_plan_row)i);
    return NULL;
}

char *budget_last(char *buf, size_t n, const struct mw_sample *s)
{
    uint64_t given = budget_given(s), ns = s->t_ns - s->budget.changed_ns;
    char size[16], ago[24];

    buf[0] = '\0';
    if (!budget_is_elastic(s))
        return buf;
    if (s->budget.changed_ns == 0 || s->t_ns < s->budget.changed_ns) {
        snprintf(buf, n, "auto: nothing was given back");
        return buf;
    }
    numbers_time(ago, sizeof ago, (double)ns / 1e9);
    if (given == 0)
        snprintf(buf, n, "all taken again, %s ago: %s", ago, reason(s));
    else
        snprintf(buf, n, "given back %s, %s ago: %s", units_size(size, sizeof size, given), ago,
                 reason(s));
    return buf;
}

char *budget_next(char *buf, size_t n, const struct mw_sample *s)
{
    const char *label = next_label(s);
    char reserve[16], spare[16];

    buf[0] = '\0';
    if (!budget_is_elastic(s))
        return buf;
    if (label == NULL || s->run.budget_bytes <= s->budget.least)
        snprintf(buf, n, "next: nothing is left to give back");
    else
        snprintf(buf, n, "next: %s, below %s spare (now %s)", label,
                 units_size(reserve, sizeof reserve, s->budget.reserve),
                 units_size(spare, sizeof spare, s->budget.spare));
    return buf;
}

char *budget_sentence(char *buf, size_t n, const struct mw_sample *s)
{
    char last[128], next[128];

    buf[0] = '\0';
    if (budget_is_elastic(s) && budget_given(s) > 0)
        snprintf(buf, n, "The budget follows the free memory: %s; %s.",
                 budget_last(last, sizeof last, s), budget_next(next, sizeof next, s));
    return buf;
}
