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
static const char *reason(const struct mw_sample *s, bool is_brief)
{
    static const struct {
        enum mw_signal signal;
        const char *text, *brief;
    } reasons[] = {
        { MW_SIGNAL_AVAILABLE, "little free memory", "little free" },
        { MW_SIGNAL_GROUP, "little left of the control group's limit", "group's limit" },
        { MW_SIGNAL_PRESSURE, "programs waited for memory", "others waited" },
        { MW_SIGNAL_SWAP, "this program was being swapped out", "swapped out" },
        { MW_SIGNAL_FREE, "memory is free again", "memory free" },
    };

    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (strcmp(s->budget.signal, mw_signal_name(reasons[i].signal)) == 0)
            return is_brief ? reasons[i].brief : reasons[i].text;
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

/* How much a text says. */
enum detail { DETAIL_FULL, DETAIL_BRIEF, DETAIL_LEAST };

static void write_last(char *buf, size_t n, const struct mw_sample *s, enum detail detail)
{
    uint64_t given = budget_given(s), ns = s->t_ns - s->budget.changed_ns;
    const char *why = reason(s, detail != DETAIL_FULL);
    char size[16], ago[24];

    buf[0] = '\0';
    if (!budget_is_elastic(s))
        return;
    if (s->budget.changed_ns == 0 || s->t_ns < s->budget.changed_ns) {
        snprintf(buf, n, "auto: nothing was given back");
        return;
    }
    numbers_time(ago, sizeof ago, (double)ns / 1e9);
    units_size(size, sizeof size, given);
    if (given == 0 && detail == DETAIL_LEAST)
        snprintf(buf, n, "all taken again");
    else if (given == 0)
        snprintf(buf, n, "all taken again, %s ago: %s", ago, why);
    else if (detail == DETAIL_LEAST)
        snprintf(buf, n, "-%s: %s", size, why);
    else
        snprintf(buf, n, "given back %s, %s ago: %s", size, ago, why);
}

static void write_next(char *buf, size_t n, const struct mw_sample *s, enum detail detail)
{
    const char *label = next_label(s);
    char reserve[16], spare[16];

    buf[0] = '\0';
    if (!budget_is_elastic(s))
        return;
    units_size(reserve, sizeof reserve, s->budget.reserve);
    units_size(spare, sizeof spare, s->budget.spare);
    if (label == NULL || s->run.budget_bytes <= s->budget.least)
        snprintf(buf, n, detail == DETAIL_FULL ? "next: nothing is left to give back"
                                               : "next: nothing is left");
    else if (detail == DETAIL_FULL)
        snprintf(buf, n, "next: %s, below %s spare (now %s)", label, reserve, spare);
    else if (detail == DETAIL_BRIEF)
        snprintf(buf, n, "next: %s, below %s spare", label, reserve);
    else
        snprintf(buf, n, "next: %s", label);
}

char *budget_last(char *buf, size_t n, const struct mw_sample *s)
{
    write_last(buf, n, s, DETAIL_FULL);
    return buf;
}

char *budget_next(char *buf, size_t n, const struct mw_sample *s)
{
    write_next(buf, n, s, DETAIL_FULL);
    return buf;
}

typedef void write_fn(char *buf, size_t n, const struct mw_sample *s, enum detail detail);

static char *write_within(write_fn *write, char *buf, size_t n, const struct mw_sample *s,
                          int columns)
{
    for (int detail = DETAIL_FULL; detail <= DETAIL_LEAST; detail++) {
        write(buf, n, s, (enum detail)detail);
        if (strlen(buf) <= (size_t)columns)
            break;
    }
    return buf;
}

char *budget_last_within(char *buf, size_t n, const struct mw_sample *s, int columns)
{
    return write_within(write_last, buf, n, s, columns);
}

char *budget_next_within(char *buf, size_t n, const struct mw_sample *s, int columns)
{
    return write_within(write_next, buf, n, s, columns);
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
