/* The limits of this machine in words. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/memwall.h"

/* Append to buf, which holds at most n bytes. */
static void append(char *buf, size_t n, const char *text)
{
    size_t len = strlen(buf);

    snprintf(buf + len, n - len, "%s", text);
}

bool mw_limits_doubtful(const struct mw_limits *l)
{
    bool is_doubtful = l->is_doubtful || l->steps.is_doubtful;

    for (uint32_t i = 0; i < l->n_rate; i++)
        is_doubtful |= l->rate[i].is_doubtful;
    return is_doubtful;
}

char *mw_age_text(char *buf, size_t n, int64_t s)
{
    if (s < 90)
        snprintf(buf, n, "just now");
    else if (s < 90 * 60)
        snprintf(buf, n, "%lld min ago", (long long)((s + 30) / 60));
    else if (s < 36 * 3600)
        snprintf(buf, n, "%lld h ago", (long long)((s + 1800) / 3600));
    else
        snprintf(buf, n, "%lld days ago", (long long)((s + 43200) / 86400));
    return buf;
}

/* "disk 2 GB/s" */
static void rate_text(char *buf, size_t n, const char *name, double bytes_s)
{
    char rate[24], text[64];

    if (!(bytes_s > 0))
        return;
    units_rate(rate, sizeof rate, bytes_s);
    snprintf(text, sizeof text, "%s%s %s", buf[0] != '\0' ? ", " : "", name, rate);
    append(buf, n, text);
}

/* Append how long a token takes, relative to one thread per core. */
static void times_text(char *buf, size_t n, const char *count, double s, double core_s)
{
    char text[64];

    if (!(s > 0))
        return;
    snprintf(text, sizeof text, "%s%s %.2f", strchr(buf, ':') == NULL ? ": " : ", ", count,
             s / core_s);
    append(buf, n, text);
}

char *mw_threads_text(const struct mw_threads *t, char *buf, size_t n)
{
    const int n_thread = limits_threads(t);

    snprintf(buf, n, "%s",
             n_thread < t->n_core   ? "one fewer than cores"
             : n_thread > t->n_core ? "one per processor"
                                    : "one per core");
    times_text(buf, n, "measured times, one fewer", t->fewer_s, t->core_s);
    times_text(buf, n, t->fewer_s > 0 ? "one per processor" : "measured times, one per processor",
               t->cpu_s, t->core_s);
    if (strchr(buf, ':') != NULL)
        append(buf, n, ", one per core 1");
    return buf;
}

void mw_limits_text(const struct mw_limits *l, int64_t now_s, char *buf, size_t n)
{
    char age[32];

    buf[0] = '\0';
    rate_text(buf, n, "disk", l->disk_bytes_s);
    rate_text(buf, n, "mirror", l->mirror_bytes_s);
    rate_text(buf, n, "memory", l->memory_bytes_s);
    if (buf[0] == '\0') {
        append(buf, n, "not measured");
        return;
    }
    if (l->measured_s > 0) {
        mw_age_text(age, sizeof age, now_s - l->measured_s);
        append(buf, n, ", measured ");
        append(buf, n, age);
    }
    if (mw_limits_doubtful(l))
        append(buf, n, "; doubtful: " MW_DOUBT);
}
