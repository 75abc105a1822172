/* The limits of this machine in words. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/memwall.h"

static const struct {
    enum mw_doubt doubt;
    const char *name, *text;
} doubts[] = {
    { MW_DOUBT_BUSY, "busy", "the machine was busy" },
    { MW_DOUBT_SPREAD, "spread", "the rate changed while it was measured" },
    { MW_DOUBT_CACHED, "cached", "the file stayed in the page cache" },
    { MW_DOUBT_DIFFERS, "differs", "an earlier rate of this disk is far from it" },
};

const char *mw_doubt_name(enum mw_doubt bit)
{
    for (size_t i = 0; i < sizeof doubts / sizeof doubts[0]; i++)
        if (doubts[i].doubt == bit)
            return doubts[i].name;
    return "";
}

/* Append to buf, which holds at most n bytes. */
static void append(char *buf, size_t n, const char *text)
{
    size_t len = strlen(buf);

    snprintf(buf + len, n - len, "%s", text);
}

void mw_doubt_text(uint32_t doubt, char *buf, size_t n)
{
    const char *before = "doubtful: ";

    buf[0] = '\0';
    for (size_t i = 0; i < sizeof doubts / sizeof doubts[0]; i++) {
        if ((doubt & doubts[i].doubt) == 0)
            continue;
        append(buf, n, before);
        append(buf, n, doubts[i].text);
        before = ", ";
    }
}

bool mw_limits_doubtful(const struct mw_limits *l)
{
    return (l->disk.doubt | l->memory.doubt) != 0;
}

static void age_text(char *buf, size_t n, int64_t s)
{
    if (s < 90)
        snprintf(buf, n, "just now");
    else if (s < 90 * 60)
        snprintf(buf, n, "%lld min ago", (long long)((s + 30) / 60));
    else if (s < 36 * 3600)
        snprintf(buf, n, "%lld h ago", (long long)((s + 1800) / 3600));
    else
        snprintf(buf, n, "%lld days ago", (long long)((s + 43200) / 86400));
}

/* "disk 2 GB/s, spread 4 %" or "disk 2 GB/s, seen at work 3 min ago" */
static void rate_text(char *buf, size_t n, const char *name, double bytes_s,
                      const struct mw_sure *sure, int64_t now_s)
{
    char rate[24], age[32], text[96];

    if (!(bytes_s > 0))
        return;
    units_rate(rate, sizeof rate, bytes_s);
    if (sure->observed_s > 0) {
        age_text(age, sizeof age, now_s - sure->observed_s);
        snprintf(text, sizeof text, "%s%s %s, seen at work %s", buf[0] != '\0' ? "; " : "",
                 name, rate, age);
    } else {
        snprintf(text, sizeof text, "%s%s %s, spread %.0f %%", buf[0] != '\0' ? "; " : "", name,
                 rate, sure->spread * 100);
    }
    append(buf, n, text);
}

void mw_limits_text(const struct mw_limits *l, int64_t now_s, char *buf, size_t n)
{
    char age[32], doubt[MW_DOUBT_TEXT];

    buf[0] = '\0';
    rate_text(buf, n, "disk", l->disk_bytes_s, &l->disk, now_s);
    rate_text(buf, n, "memory", l->memory_bytes_s, &l->memory, now_s);
    if (buf[0] == '\0') {
        append(buf, n, "not measured");
        return;
    }
    if (l->measured_s > 0) {
        age_text(age, sizeof age, now_s - l->measured_s);
        append(buf, n, "; measured ");
        append(buf, n, age);
    }
    mw_doubt_text(l->disk.doubt | l->memory.doubt, doubt, sizeof doubt);
    if (doubt[0] != '\0') {
        append(buf, n, "; ");
        append(buf, n, doubt);
    }
}
