/*
 * An answer looks the same in the end, whether it streams in any pieces or comes at once.  No
 * row is wider than the pane, and each run is what it states about the source.
 */
#include "config.h"

#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/text/body.h"
#include "ui/text/markdown.h"
#include "ui/words/cluster.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static void check_rich(const struct rich *r, const char *text, int width)
{
    for (uint32_t i = 0; i < r->n_row; i++) {
        const char *prefix = rich_prefix(r, i);

        must(r->row[i].start <= r->row[i].end && r->row[i].end <= r->n_text, "row in text");
        must(i == 0 || r->row[i].start >= r->row[i - 1].end, "rows in order");
        must(
            cluster_width(prefix, strlen(prefix)) +
                    cluster_width(r->text + r->row[i].start, r->row[i].end - r->row[i].start) <=
                width,
            "row in width");
    }
    for (uint32_t i = 0; i < r->n_run; i++) {
        uint32_t n = rich_run_end(r, &r->run[i]) - r->run[i].at;

        must(n > 0, "run is not empty");
        if (r->run[i].kind == RICH_SAME)
            must(n == r->run[i].src_n &&
                     memcmp(text + r->run[i].src, r->text + r->run[i].at, n) == 0,
                 "run is its source");
    }
}

static bool same_rich(const struct rich *a, const struct rich *b)
{
    return a->n_text == b->n_text && a->n_run == b->n_run && a->n_line == b->n_line &&
           a->n_row == b->n_row &&
           (a->n_text == 0 || memcmp(a->text, b->text, a->n_text) == 0) &&
           (a->n_row == 0 || memcmp(a->row, b->row, a->n_row * sizeof *a->row) == 0);
}

static bool on_code(void *ctx, const char *label, size_t label_n, const char *code, size_t n)
{
    (void)ctx, (void)label, (void)code;
    return label_n <= 128 && n < 1u << 30;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *locale;
    struct body_look look = { .role = ROLE_TEXT };
    struct body whole = { 0 }, cut = { 0 };
    bool markdown;

    if (size < 2)
        return 0;
    if (locale == NULL)
        locale = setlocale(LC_CTYPE, "C.UTF-8");
    look.width = data[0] % 90;
    look.ascii = data[1] % 2 != 0;
    markdown = data[1] % 8 != 0;
    data += 2;
    size -= 2;
    body_start(&whole, markdown);
    body_start(&cut, markdown);
    must(body_append(&whole, (const char *)data, size), "memory");
    body_finish(&whole);
    for (size_t at = 0, step; at < size; at += step) {
        uint32_t n;

        step = 1 + data[at] % 64;
        step = step > size - at ? size - at : step;
        must(body_append(&cut, (const char *)data + at, step), "memory");
        if (data[at] % 5 != 0) /* each look renders the last segment: the input chooses them */
            continue;
        n = body_count(&cut);
        if (n > 0)
            check_rich(body_rich(&cut, n - 1, &look), cut.text, look.width);
    }
    body_finish(&cut);
    must(body_count(&whole) == body_count(&cut), "as many segments");
    for (uint32_t i = 0; i < body_count(&whole); i++) {
        const struct rich *r = body_rich(&whole, i, &look);
        char *copy = NULL;
        size_t n = 0;

        must(memcmp(&whole.segs.seg[i], &cut.segs.seg[i], sizeof(struct segment)) == 0,
             "the same segment");
        check_rich(r, whole.text, look.width);
        must(same_rich(r, body_rich(&cut, i, &look)), "the same look");
        must(rich_copy(r, 0, r->n_text, whole.text, &copy, &n), "memory");
        free(copy);
    }
    markdown_code((const char *)data, size, on_code, NULL);
    body_free(&whole);
    body_free(&cut);
    return 0;
}
