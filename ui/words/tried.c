#include "config.h"

#include "ui/words/tried.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/numbers.h"

void tried_table(struct tried_table *out, const struct mw_tried *list, size_t n, int64_t now_s)
{
    *out = (struct tried_table){ .slowest = mw_tried_slowest(list, n), .now_s = now_s };
    for (size_t i = 0; i < n; i++) {
        out->has_threads |= list[i].n_thread != list[0].n_thread;
        out->has_io |= list[i].io != MW_IO_AUTO;
    }
}

const char *tried_heading(void)
{
    return "  budget context kv        tok/s   gain wait tokens     peak";
}

static const char *kv_text(char *buf, size_t n, const struct mw_tried *t)
{
    const char *k = mw_kv_name((enum mw_kv)t->kv_k), *v = mw_kv_name((enum mw_kv)t->kv_v);

    snprintf(buf, n, t->kv_k == t->kv_v ? "%s" : "%s/%s", k, v);
    return buf;
}

static const char *gain_text(char *buf, size_t n, const struct tried_table *table,
                             const struct mw_tried *t)
{
    double gain = table->slowest != NULL ? t->tps / table->slowest->tps : 1;

    if (gain < 1.005)
        snprintf(buf, n, "-");
    else if (gain < 10)
        snprintf(buf, n, "+%.0f %%", (gain - 1) * 100);
    else
        snprintf(buf, n, "x%.0f", gain);
    return buf;
}

/* ", threads 2, io mmap": settings that have no column. */
static char *other_settings(char *buf, size_t n, const struct tried_table *table,
                            const struct mw_tried *t)
{
    char rate[24] = "", threads[24] = "", io[24] = "", chunk[24] = "", disk[48] = "";

    if (table->has_threads)
        snprintf(threads, sizeof threads, ", threads %.0f", t->n_thread);
    if (table->has_io)
        snprintf(io, sizeof io, ", io %s", mw_io_name((enum mw_io)t->io));
    if (t->chunk > 0)
        snprintf(chunk, sizeof chunk, ", chunk %.0f", t->chunk);
    if (t->disk_rate > 0)
        snprintf(disk, sizeof disk, ", disk rate %s",
                 units_rate(rate, sizeof rate, t->disk_rate));
    snprintf(buf, n, "%s%s%s%s%s", threads, io, chunk, disk, t->exact != 0 ? ", exact" : "");
    return buf;
}

char *tried_row(char *buf, size_t n, const struct tried_table *table, const struct mw_tried *t)
{
    char size[16], ctx[24], kv[16], rate[24], gain[16], peak[16] = "-", age[32], others[120];

    if (t->peak_bytes > 0)
        units_size(peak, sizeof peak, (uint64_t)t->peak_bytes);
    snprintf(buf, n, "%8s %7s %-8s %6s %6s %2.0f %% %6.0f %8s %s%s",
             units_size(size, sizeof size, (uint64_t)t->memory_bytes),
             numbers_count(ctx, sizeof ctx, (uint64_t)t->n_ctx), kv_text(kv, sizeof kv, t),
             numbers_measured(rate, sizeof rate, t->tps),
             gain_text(gain, sizeof gain, table, t), t->wait_share * 100, t->n_token, peak,
             mw_age_text(age, sizeof age, table->now_s - (int64_t)t->measured_s),
             other_settings(others, sizeof others, table, t));
    return buf;
}

char *tried_settings(char *buf, size_t n, const struct tried_table *table,
                     const struct mw_tried *t)
{
    char size[16], ctx[24], kv[16], others[120];

    snprintf(buf, n, "budget %s, context %s, kv %s%s",
             units_size(size, sizeof size, (uint64_t)t->memory_bytes),
             numbers_count(ctx, sizeof ctx, (uint64_t)t->n_ctx),
             kv_text(kv, sizeof kv, t), other_settings(others, sizeof others, table, t));
    return buf;
}
