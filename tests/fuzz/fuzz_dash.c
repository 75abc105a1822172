/*
 * The dashboard with any figures that a recording or a server may have, at any size.
 *
 * Each four bytes of the input set a figure of a sample, or pass it to the dashboard, or also show
 * it.  The text that is shown must be harmless, and no wider than its canvas.
 */
#include "config.h"

#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "engine/telemetry/fields.h"
#include "tests/lib/made_sample.h"
#include "ui/dash/dash.h"

#define MAX_HEIGHT 70
#define MAX_WIDTH  250
#define SHOWS      2 /* of one input: they take most of the time */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct mw_sample sample;
static struct canvas_target *grid;

static void must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

/* ---- values ---- */

/* Powers of two, those less one, and numbers near 0 and near the largest one. */
static uint64_t number_of(uint8_t v)
{
    uint64_t power = (uint64_t)1 << v % 64;

    switch (v / 64) {
    case 0: return power;
    case 1: return power - 1;
    case 2: return v % 64;
    default: return UINT64_MAX - v % 64;
    }
}

/* A number in JSON may be infinite, as 1e999 is. */
static double real_of(uint8_t v)
{
    static const double odd[] = { INFINITY, -INFINITY, 1e300, -1e300, 1e-300, -1, 0.5, -0.0 };

    return v < sizeof odd / sizeof odd[0] ? odd[v] : (double)number_of(v) / 1000;
}

static void set_text(char *to, size_t size, uint8_t v)
{
    memset(to, 0, size);
    memset(to, v, v % size);
}

/* Set what the reader of recordings accepts. */
static void set(void *at, const struct field *f, uint8_t v)
{
    uint64_t number = number_of(v);
    uint32_t small = (uint32_t)number;
    double real = real_of(v);
    enum mw_state state = (enum mw_state)(v % (MW_ERROR + 1));
    enum mw_binds binds = (enum mw_binds)(v % MW_BINDS_COUNT);
    struct mw_os_value os = { .value = number };

    switch (f->type) {
    case FIELD_U64: memcpy(at, &number, sizeof number); break;
    case FIELD_U32: memcpy(at, &small, sizeof small); break;
    case FIELD_DOUBLE: memcpy(at, &real, sizeof real); break;
    case FIELD_TEXT: set_text(at, f->size, v); break;
    case FIELD_HEX: memset(at, v, f->size); break;
    case FIELD_LIST: memset(at, v, f->size * sizeof number); break;
    case FIELD_STATE: memcpy(at, &state, sizeof state); break;
    case FIELD_BINDS: memcpy(at, &binds, sizeof binds); break;
    case FIELD_KIND: *(uint8_t *)at = v % (MW_LAYER_HEAD + 1); break;
    case FIELD_OS:
        if (v == 255)
            os = (struct mw_os_value){ .why_not = "not recorded" };
        memcpy(at, &os, sizeof os);
    }
}

static void set_of_sample(unsigned which, uint8_t v)
{
    const struct field *f = &sample_fields[which % n_sample_fields];

    set((char *)&sample + f->offset, f, v);
    /* The reader of recordings refuses other numbers. */
    if (sample.run.n_layer > MW_MAX_LAYER)
        sample.run.n_layer = MW_MAX_LAYER;
    sample.n_layer = sample.run.n_layer;
}

static void set_of_layer(unsigned which, unsigned layer, uint8_t v)
{
    const struct field *f = &layer_fields[which % n_layer_fields];

    set((char *)&sample.layer[layer % (sample.n_layer + 1)] + f->offset, f, v);
}

static void set_of_thread(unsigned which, unsigned thread, uint8_t v)
{
    const struct field *f = &thread_fields[which % n_thread_fields];

    thread %= MW_MAX_THREAD;
    if (sample.os.n_thread <= thread)
        sample.os.n_thread = thread + 1;
    set((char *)&sample.os.thread[thread] + f->offset, f, v);
}

/* A token like the last one, but for a figure. */
static void add_token(unsigned which, uint8_t v)
{
    const struct field *f = &token_fields[which % n_token_fields];
    struct mw_token k = sample.recent[(sample.n_token - 1) % MW_RECENT];

    k.t_ns += 300 * 1000000;
    k.n++;
    set((char *)&k + f->offset, f, v);
    sample.recent[sample.n_token++ % MW_RECENT] = k;
}

/* ---- showing ---- */

/* Check the cells before `end`. */
static void check_row(int y, int width, int end)
{
    wchar_t text[CLUSTER_CHARS + 1];
    struct ui_style style;

    for (int x = 0; x < end; x++) {
        canvas_peek(grid, y, x, text, &style);
        must(x < width || text[0] == L' ', "nothing is drawn beside the canvas");
        for (const wchar_t *c = text; *c != L'\0'; c++)
            must(wcwidth(*c) >= 0, "characters that are shown");
    }
}

static void show(struct dash *d, int height, int width, uint8_t v)
{
    struct canvas all = canvas_of(grid), c = canvas_sub(&all, 0, 0, height, width);
    /* The dashboard clears its canvas.  Clearing and reading all cells beside it would take most
     * of the time. */
    bool is_whole = v % 64 == 41;
    int end = is_whole || width == MAX_WIDTH ? MAX_WIDTH : width + 1;
    struct canvas beside = canvas_sub(&all, 0, width, is_whole ? MAX_HEIGHT : height, end - width);
    char text[400];

    canvas_clear(&beside, style_of(ROLE_TEXT));
    if (v % 8 == 0)
        dash_set_cursor(d, v);
    if (v % 8 == 1)
        dash_click(d, height, width, v % 50, v);
    if (v % 8 == 2)
        dash_set_cap(d, (uint32_t)number_of(v));
    dash_push(d, &sample);
    dash_draw(d, &c);
    for (int y = v % 7; y < height; y += 7)
        check_row(y, width, end);
    dash_verdict(text, sizeof text, &sample, v % 2 != 0);
    must(strlen(text) < sizeof text, "a verdict that ends");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct mw_sample usual;
    struct err e = ERR_INIT;
    struct dash *d;
    int n_show = 0;

    if (grid == NULL) {
        setlocale(LC_CTYPE, "C.UTF-8");
        made_decode(&usual, 20);
        grid = canvas_on_grid(MAX_HEIGHT, MAX_WIDTH, false, &e);
    }
    d = dash_new(size % 2 != 0 ? UI_GRAPH_ASCII : UI_GRAPH_BRAILLE, &e);
    if (grid == NULL || d == NULL)
        exit(1);
    sample = usual;
    for (; size >= 4 && n_show < SHOWS; data += 4, size -= 4)
        switch (data[0] % 6) {
        case 0: set_of_sample(data[1] | (unsigned)data[2] << 8, data[3]); break;
        case 1: set_of_layer(data[1], data[2], data[3]); break;
        case 2: set_of_thread(data[1], data[2], data[3]); break;
        case 3: add_token(data[1], data[3]); break;
        case 4: dash_push(d, &sample); break;
        default:
            show(d, 1 + data[1] % (data[0] < 200 ? 30 : MAX_HEIGHT),
                 1 + data[2] % (data[0] < 200 ? 80 : MAX_WIDTH), data[3]);
            n_show++;
        }
    if (n_show == 0)
        show(d, 50, 120, 3);
    dash_free(d);
    return 0;
}
