/*
 * Any file of measured limits is read, and what was taken from it is written so that it is read
 * again.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/limits/store.h"

static char folder[] = "/dev/shm/memwall-fuzz-XXXXXX";
static char in[64], out[64];

static void remove_all(void)
{
    (void)remove(in);
    (void)remove(out);
    (void)rmdir(folder);
}

static void prepare(void)
{
    if (mkdtemp(folder) == NULL)
        abort();
    snprintf(in, sizeof in, "%s/in", folder);
    snprintf(out, sizeof out, "%s/limits", folder);
    atexit(remove_all);
}

/* A line that was written is read as it was; small numbers are rounded. */
static void write_and_read_again(const struct limits_line *l)
{
    const struct limits_line *found;
    struct limits_store s;

    (void)remove(out);
    limits_store_keep(out, l, 1);
    limits_store_read(&s, out);
    found = limits_store_find(&s, l->kind, l->of, l->time_s);
    if (s.n != 1 || found == NULL || found->time_s != l->time_s ||
        found->is_doubtful != l->is_doubtful)
        abort();
    for (int i = 0; i < LIMITS_VALUES; i++)
        if (found->value[i] > l->value[i] + 0.001 || found->value[i] < l->value[i] - 0.001)
            if (found->value[i] > l->value[i] * 1.000001 ||
                found->value[i] < l->value[i] / 1.000001)
                abort();
    limits_store_free(&s);
}

/* Every record that is taken from a file makes sense. */
static void check_tried(const struct limits_store *s)
{
    struct mw_tried list[MW_TRIED_MOST];
    size_t n = limits_store_tried(s, "Some_CPU 7 1 2 3 4", 1800000000, list);

    for (size_t i = 0; i < n; i++)
        if (!mw_tried_is_plausible(&list[i]))
            abort();
    if ((n == 0) != (mw_tried_slowest(list, n) == NULL))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mw_limits l = { .rate = { { .type = "Q4_0" } }, .n_rate = 1 };
    static const struct limits_key key = { .dev = 7, .io = "auto", .n_thread = 2, .cpu = "C",
                                           .build = "b", .kernels = "k", .model = "7 1 2 3 4" };
    struct limits_store s;
    FILE *f;

    if (out[0] == '\0')
        prepare();
    f = fopen(in, "w");
    if (f == NULL || fwrite(data, 1, size, f) != size || fclose(f) != 0)
        abort();
    limits_store_read(&s, in);
    for (size_t i = 0; i < s.n; i++)
        if (limits_store_find(&s, s.line[i].kind, s.line[i].of, s.line[i].time_s) == NULL)
            abort();
    (void)limits_store_get(&s, &key, 1800000000, &l);
    check_tried(&s);
    if (s.n > 0) {
        struct limits_line last = s.line[s.n - 1];

        write_and_read_again(&last);
        if (limits_store_add(&s, &last) && strcmp(s.line[0].of, last.of) != 0)
            abort();
    }
    limits_store_free(&s);
    return 0;
}
