/*
 * Any file of measured limits is read, and the lines taken from it are written so that they are
 * read again.  No file is opened: reading and writing it would take most of the time.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/limits/store.h"

/* A line that was written is read as it was; small numbers are rounded. */
static void write_and_read_again(const struct limits_line *l)
{
    struct limits_store one = { 0 }, s;
    const struct limits_line *found;
    struct json j;

    json_start(&j);
    if (!limits_store_add(&one, l))
        abort();
    limits_store_print(&one, &j);
    json_raw(&j, "", 1);
    limits_store_parse(&s, j.buf);
    found = limits_store_find(&s, l->kind, l->of, l->time_s);
    if (s.n != 1 || found == NULL || found->time_s != l->time_s ||
        found->is_doubtful != l->is_doubtful || strcmp(found->text, l->text) != 0)
        abort();
    for (int i = 0; i < LIMITS_VALUES; i++)
        if (found->value[i] > l->value[i] + 0.001 || found->value[i] < l->value[i] - 0.001)
            if (found->value[i] > l->value[i] * 1.000001 ||
                found->value[i] < l->value[i] / 1.000001)
                abort();
    limits_store_free(&s);
    limits_store_free(&one);
    json_release(&j);
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
    char *text = malloc(size + 1);

    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    limits_store_parse(&s, text);
    free(text);
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
