/* The words and figures of the dashboard, its curves, and what it leaves out. */
#include "config.h"

#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/made_sample.h"
#include "ui/app/layout.h"
#include "ui/dash/arrange.h"
#include "ui/dash/curve.h"
#include "ui/dash/dash.h"
#include "ui/dash/explain.h"
#include "ui/dash/figure.h"
#include "ui/dash/state.h"
#include "ui/dash/widget.h"
#include "ui/look/theme.h"
#include "ui/term/box.h"
#include "ui/words/cluster.h"

#define assert_near_figure(a, b) assert_true(fabs((a) - (b)) <= 1)

static struct mw_sample sample;

static struct dash *new_dash(enum ui_graph graph)
{
    struct err e = ERR_INIT;
    struct dash *d = dash_new(graph, &e);

    assert_non_null(d);
    return d;
}

static void push_decode(struct dash *d)
{
    for (uint64_t n = 1; n <= 112; n++) {
        made_decode(&sample, n);
        dash_push(d, &sample);
    }
}

/* ---- words and figures ---- */

/* Returns the text of a dashboard.  Valid until the next call. */
static const char *text_of(const struct dash *d, int height, int width)
{
    static char *text;
    struct err e = ERR_INIT;
    struct canvas_target *t = canvas_on_grid(height, width, true, &e);
    struct canvas c = canvas_of(t);
    size_t n = 0;
    FILE *f;

    free(text);
    f = open_memstream(&text, &n);
    dash_draw(d, &c);
    canvas_write_text(t, f);
    fclose(f);
    canvas_target_free(t);
    return text;
}

/* Returns the number after the label in the text; NAN: not shown. */
static double number_after(const char *text, const char *label)
{
    const char *at = strstr(text, label);

    return at == NULL ? NAN : strtod(at + strlen(label), NULL);
}

static bool is_explained(const char *label)
{
    for (const struct dash_note *n = dash_notes(); n->panel != NULL; n++)
        if (strcmp(n->panel, "memory") == 0 && strlen(n->figure) > 2 &&
            strcmp(n->figure + 2, label) == 0)
            return true;
    return false;
}

/* Drafts are shown with what they gain and who makes them; without any there is no such line. */
static void the_speed_panel_shows_drafts(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_ASCII);

    (void)state;
    made_decode(&sample, 20);
    dash_push(d, &sample);
    assert_null(strstr(text_of(d, 70, 250), "tokens a pass"));
    sample.draft = (struct mw_drafts){ .passes = 100, .drafted = 96, .accepted = 84, .by_head = 60 };
    dash_push(d, &sample);
    assert_non_null(strstr(text_of(d, 70, 250), "1.84 tokens a pass, 88 % of 96 accepted, mtp"));
    sample.draft.by_head = 40;
    dash_push(d, &sample);
    assert_non_null(strstr(text_of(d, 70, 250), "1.84 tokens a pass, 88 % of 96 accepted"));
    assert_null(strstr(text_of(d, 70, 250), "accepted, mtp"));
    /* At no width is it cut. */
    sample.draft.by_head = 60;
    dash_push(d, &sample);
    for (int cols = 60; cols < 250; cols++) {
        const char *at = strstr(text_of(d, 70, cols), "of 96 accepted");

        if (at != NULL && at[strlen("of 96 accepted")] == ',')
            assert_memory_equal(at, "of 96 accepted, mtp", strlen("of 96 accepted, mtp"));
    }
    dash_free(d);
}

static void items_have_the_names_of_the_plan(void **state)
{
    static const char *const others[] = { "logits", "ring" };
    struct dash *d = new_dash(UI_GRAPH_ASCII);
    const char *text;

    (void)state;
    made_decode(&sample, 20);
    for (int i = 0; i < MW_PLAN_ROWS; i++)
        sample.mem.plan[i] = sample.mem.used[i] = 10 * MIB;
    dash_push(d, &sample);
    text = text_of(d, 70, 250);
    for (int i = 0; i < MW_PLAN_ROWS; i++) {
        const char *label = mw_plan_row_label((enum mw_plan_row)i);

        if (strstr(text, label) == NULL)
            fail_msg("\"%s\" is not shown", label);
        if (!is_explained(label))
            fail_msg("\"%s\" is not explained", label);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strstr(text, others[i]) != NULL)
            fail_msg("\"%s\" is not a word of the plan", others[i]);
    dash_free(d);
}

/* Borrowed space is in pinned weights, so it is listed once. */
static void the_list_of_memory_adds_up(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_ASCII);
    struct dash_total total;
    const char *text;
    double sum = 0;

    (void)state;
    push_decode(d);
    sample.mem.lent_bytes = 300 * MIB;
    dash_push(d, &sample);
    text = text_of(d, 70, 250);
    for (int i = 0; i < MW_PLAN_ROWS; i++) {
        double size = number_after(text, mw_plan_row_label((enum mw_plan_row)i));

        if (sample.mem.plan[i] > 0)
            sum += size * (i == MW_ROW_PINNED ? 1024 : 1); /* in GiB */
    }
    sum += number_after(text, "borrowed") + number_after(text, "o other ");
    dash_total(d, &total);
    assert_true(fabs(sum - (double)total.bytes.value / (double)MIB) < 6);
    dash_free(d);
}

/* A budget of auto that has given memory back says how much, why, and what is next. */
static void the_memory_panel_has_the_ladder(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_BRAILLE);
    static const int size[][2] = { { 60, 200 }, { 70, 250 }, { 60, 100 } };

    (void)state;
    push_decode(d);
    sample.budget.most = 4 * GIB;
    sample.budget.chosen = sample.run.budget_bytes;
    sample.budget.reserve = GIB;
    sample.budget.spare = GIB + GIB / 2;
    snprintf(sample.budget.next, sizeof sample.budget.next, "%s",
             mw_plan_row_name(MW_ROW_PINNED));
    dash_push(d, &sample);
    assert_null(strstr(text_of(d, 60, 200), "next:")); /* nothing happened yet */
    sample.run.budget_bytes -= 300 * MIB;
    sample.budget.changed_ns = sample.t_ns - 12000000000u;
    snprintf(sample.budget.signal, sizeof sample.budget.signal, "%s",
             mw_signal_name(MW_SIGNAL_PRESSURE));
    dash_push(d, &sample);
    for (size_t i = 0; i < sizeof size / sizeof size[0]; i++) {
        const char *text = text_of(d, size[i][0], size[i][1]);

        assert_non_null(strstr(text, "given back 300 MiB, 12 s ago"));
        assert_non_null(strstr(text, "next: pinned weights, below 1.00 GiB spare"));
    }
    sample.budget.most = 0;
    sample.run.budget_bytes += 300 * MIB;
    dash_free(d);
}

static void the_kv_panel_counts_what_the_conversation_fills(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_ASCII);
    const char *text;

    (void)state;
    push_decode(d);
    sample.mem.plan[MW_ROW_KV_SLIDING] = 31 * MIB; /* with copies */
    dash_push(d, &sample);
    text = text_of(d, 60, 200);
    assert_non_null(strstr(text, "2,159 of 8,192 tokens"));
    assert_non_null(strstr(text, "size     24.5 MiB of 79.0 MiB"));
    assert_non_null(strstr(text, "a token  6.00 KiB"));
    assert_non_null(strstr(text, "then   ~2.8 tok/s"));
    sample.verdict.full_tps = 0;
    dash_push(d, &sample);
    assert_null(strstr(text_of(d, 60, 200), "then"));
    dash_free(d);
}

/* The details of a layer leave out what does not fit, and never cut a figure. */
static void details_of_a_layer_are_whole(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_ASCII);
    struct err e = ERR_INIT;

    (void)state;
    push_decode(d);
    dash_set_cursor(d, 7);
    for (int width = 24; width <= 60; width++) {
        struct canvas_target *t = canvas_on_grid(20, 60, true, &e);
        struct canvas all = canvas_of(t), c = canvas_sub(&all, 0, 0, 20, width);
        static const char *const units[][2] = {
            { "weights", "MiB" }, { "pinned ", "%" }, { "kv", "KiB" }, { "reads", "MiB" }
        };
        char text[4096] = "";
        const char *at;
        FILE *f = fmemopen(text, sizeof text, "w");

        dash_layers_widget.draw(d, &c);
        canvas_write_text(t, f);
        fclose(f);
        canvas_target_free(t);
        at = strstr(text, "layer 7, ");
        assert_non_null(at);
        for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
            const char *label = strstr(at, units[i][0]), *unit, *end;

            if (label == NULL) {
                assert_true(width < 43);
                continue;
            }
            unit = strstr(label, units[i][1]);
            end = strchr(label, '\n');
            if (unit == NULL || end == NULL || unit > end)
                fail_msg("%d columns cut \"%s\":\n%s", width, units[i][0], at);
        }
        if (width >= 38) {
            assert_non_null(strstr(at, "kv "));
            assert_non_null(strstr(at, " ms\n"));
        }
    }
    dash_free(d);
}

/* In few lines a sentence loses whole clauses: the cause, or a remedy that is too long. */
static void a_sentence_is_cut_between_its_clauses(void **state)
{
    static const struct {
        int width;
        const char *text, *shown;
    } rows[] = {
        { 40, "disk: most of it waits; F10: /memory 9M", "disk: most of it waits; F10: /memory 9M" },
        { 36, "disk: most of it waits; F10: /memory 9M", "most of it waits; F10: /memory 9M" },
        { 20, "disk: most of it waits; F10: /memory 9M", "F10: /memory 9M" },
        { 20, "disk: most of it waits; none is larger: the limit of a group",
          "most of it waits" },
    };
    struct err e = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct canvas_target *t = canvas_on_grid(1, rows[i].width, true, &e);
        struct canvas c = canvas_of(t);
        char text[200] = "";
        FILE *f = fmemopen(text, sizeof text, "w");

        widget_wrap(&c, style_of(ROLE_TEXT), rows[i].text);
        canvas_write_text(t, f);
        fclose(f);
        canvas_target_free(t);
        text[strcspn(text, "\n")] = '\0';
        assert_string_equal(text, rows[i].shown);
    }
}

/* A token takes 320 ms, and 250 of them are stalls. */
static void the_bar_of_a_token_shows_its_parts(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_ASCII);
    const char *text, *bar;
    int cells = 0, waiting;

    (void)state;
    push_decode(d);
    text = text_of(d, 60, 200);
    assert_near_figure(number_after(text, "disk wait"), 250);
    assert_non_null(strstr(text, "  320 ms d#"));
    bar = strstr(text, "  320 ms d#") + 9;
    waiting = (int)strcspn(bar, "m");
    cells = (int)strcspn(bar, " ");
    assert_in_range(waiting * 100 / cells, 76, 80);
    /* nothing of this plan was measured yet */
    sample.n_token_before = sample.n_token;
    dash_push(d, &sample);
    assert_null(strstr(text_of(d, 60, 200), "disk wait"));
    dash_free(d);
}

#define N_PARTS 6

/* Put the roles of the parts of an even token into role.  Returns how many there are. */
static size_t roles_of_parts(int role[N_PARTS])
{
    struct err e = ERR_INIT;
    struct canvas_target *t = canvas_on_grid(8, 120, false, &e);
    struct canvas c = canvas_of(t);
    struct dash *d = new_dash(UI_GRAPH_BRAILLE);
    size_t n = 0;

    push_decode(d);
    d->now.verdict.part = (struct mw_shares){ .disk = 1, .memory = 1, .arithmetic = 1,
                                              .attention = 1, .others = 1, .fixed = 1 };
    dash_verdict_widget.draw(d, &c);
    for (int x = 0; x < 120; x++) {
        wchar_t text[CLUSTER_CHARS + 1];
        struct ui_style style;

        canvas_peek(t, 4, x, text, &style);
        if (style.attr == UI_REVERSE && n < N_PARTS)
            role[n++] = style.role;
    }
    dash_free(d);
    canvas_target_free(t);
    return n;
}

/* A letter is not enough on a bar of 60 cells. */
static void parts_of_a_token_have_their_own_colours_in_every_theme(void **state)
{
    int role[N_PARTS];

    (void)state;
    assert_int_equal(roles_of_parts(role), N_PARTS);
    for (const struct theme_text *t = theme_texts; t->name != NULL; t++) {
        struct err e = ERR_INIT;
        struct theme theme;

        assert_int_equal(theme_parse(&theme, t->name, t->text, &e), 0);
        for (int i = 1; i < N_PARTS; i++)
            if (theme.role[role[i]].fg.rgb == theme.role[role[i - 1]].fg.rgb)
                fail_msg("%s: parts %d and %d look the same", t->name, i - 1, i);
    }
}

static void time_is_left_only_with_a_limit(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_ASCII);

    (void)state;
    push_decode(d);
    assert_null(strstr(text_of(d, 24, 80), " left"));
    assert_null(strstr(text_of(d, 24, 80), "112 /"));
    dash_set_cap(d, 112 + 31 * 60 * 3);
    assert_non_null(strstr(text_of(d, 24, 80), "~30 min left"));
    dash_free(d);
}

static void both_disks_of_a_mirror_are_shown(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_ASCII);

    (void)state;
    push_decode(d);
    assert_null(strstr(text_of(d, 60, 200), "mirror"));
    sample.io.mirror = MW_MIRROR_USED;
    sample.io.disk_bytes[0] = 800000000;
    sample.io.disk_bytes[1] = 395000000;
    sample.io.disk_ns[0] = 2000000000;
    sample.io.disk_ns[1] = 1000000000;
    dash_push(d, &sample);
    assert_non_null(strstr(text_of(d, 60, 200), "disks model 400 MB/s, mirror 395 MB/s"));
    sample.io.mirror = MW_MIRROR_LOST;
    dash_push(d, &sample);
    assert_non_null(strstr(text_of(d, 60, 200), "disks model 400 MB/s, mirror lost"));
    memset(&sample.io, 0, sizeof sample.io);
    dash_free(d);
}

static void rows_of_zeros_fold_away(void **state)
{
    static const char *const zeros[] = { "swap own", "rss anon", "page cache", "io ",
                                         "overlap",  "cpu ",     "disk  0.00", "main" };
    struct dash *d = new_dash(UI_GRAPH_ASCII);
    const char *text;

    (void)state;
    push_decode(d);
    for (uint64_t i = 0; i < MW_RECENT; i++)
        sample.recent[i].bytes_pass = 0;
    for (uint32_t i = 0; i < sample.os.n_thread; i++)
        sample.os.thread[i].busy = 0;
    dash_push(d, &sample);
    text = text_of(d, 60, 200);
    for (size_t i = 0; i < sizeof zeros / sizeof zeros[0]; i++)
        if (strstr(text, zeros[i]) != NULL)
            fail_msg("\"%s\" is shown", zeros[i]);
    for (int i = 0; i < PANELS; i++) /* it can be moved */
        if (strcmp(panels_name(i), "cache") == 0)
            dash_panels(d)->chosen = i;
    assert_non_null(strstr(text_of(d, 60, 200), "page cache"));
    dash_free(d);
}

static void curves_have_four_rows_where_others_have_figures(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_ASCII);
    struct place place[ARRANGE_MAX];
    int n;

    (void)state;
    push_decode(d);
    n = arrange_panels(place, d, 40, 120);
    for (int i = 0; i < n; i++) {
        const struct dash_widget *w = place[i].widget;
        int inside = place[i].width - 2 * box_inset(place[i].width);

        if (w == &dash_speed_widget || w == &dash_memory_widget)
            assert_true(place[i].height >= w->enough(d, inside) + 4);
    }
    dash_free(d);
}

static void scales_are_close_to_the_largest_value(void **state)
{
    static const float values[][2] = { { 0, 1 },      { 1, 1 },      { 1.2F, 1.5F }, { 1.6F, 2 },
                                       { 2.1F, 3 },   { 3.5F, 4 },   { 4.2F, 5 },    { 5.1F, 7.5F },
                                       { 7.6F, 10 },  { 77, 100 },   { 0.012F, 0.015F },
                                       { 1400, 1500 } };

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        assert_true(fabsf(curve_top(values[i][0]) - values[i][1]) < 1e-4F * values[i][1]);
}

/* Returns the cells of the waterfall in the row of a layer. */
static int count_cells(const char *text, const char *row)
{
    const char *at = strstr(text, row);
    int n = 0;

    for (at = at == NULL ? "\n" : at + 24; *at != '\n'; at++)
        n += strchr(":+", *at) != NULL;
    return n;
}

/* Each layer waits 4 to 8 ms; from the 21st token on layer 7 is pinned. */
static void pinned_layers_go_quiet_in_the_waterfall(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_ASCII);
    const char *text;
    int before;

    (void)state;
    for (uint64_t n = 1; n <= 10; n++) {
        made_decode(&sample, n);
        dash_push(d, &sample);
    }
    text = text_of(d, 60, 200);
    before = count_cells(text, "  7  s");
    assert_int_equal(before, 9); /* there is no pass before the first token */
    for (uint64_t n = 11; n <= 100; n++) {
        made_decode(&sample, n);
        sample.layer[7].stall_ns = 0;
        dash_push(d, &sample);
    }
    text = text_of(d, 60, 200);
    assert_int_equal(count_cells(text, "  7  s"), 0);
    assert_true(count_cells(text, "  8  s") > 20);
    /* beside the chat on a screen of 250x70, in place of two figures */
    text = text_of(d, 67, 100);
    assert_true(count_cells(text, "  8  s") > 8 && strstr(text, "|read -wait #compute") != NULL);
    assert_null(strstr(text_of(d, 30, 90), ":::")); /* no room for it */
    dash_free(d);
}

/* Returns the cells of a row that have one of the dots. */
static int count_dots(const char *text, const char *row, unsigned dots)
{
    const unsigned char *at = (const unsigned char *)strstr(text, row);
    int n = 0;

    assert_non_null(at);
    for (; *at != '\n'; at++)
        if (at[0] == 0xe2 && (at[1] & 0xfc) == 0xa0)
            n += (((at[1] & 3u) << 6 | (at[2] & 0x3fu)) & dots) != 0;
    return n;
}

/* Returns the text of a dashboard that can draw braille. */
static const char *text_with_dots(const struct dash *d, int height, int width)
{
    static char text[1 << 17];
    struct err e = ERR_INIT;
    struct canvas_target *t = canvas_on_grid(height, width, false, &e);
    struct canvas c = canvas_of(t);
    FILE *f = fmemopen(text, sizeof text, "w");

    dash_draw(d, &c);
    canvas_write_text(t, f);
    fclose(f);
    canvas_target_free(t);
    return text;
}

/* Waits of all layers, the last 60 tokens without those of layers 6 and 7. */
static void push_with_pinned_layers(struct dash *d)
{
    for (uint64_t n = 1; n <= 100; n++) {
        made_decode(&sample, n);
        if (n > 40)
            sample.layer[6].stall_ns = sample.layer[7].stall_ns = 0;
        dash_push(d, &sample);
    }
}

static void the_waterfall_is_beside_the_chat_from_160x50_on(void **state)
{
    static const int sizes[][2] = { { 160, 50 }, { 180, 54 }, { 200, 60 } };

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct dash *d = new_dash(UI_GRAPH_BRAILLE);
        struct place place[ARRANGE_MAX];
        struct layout l;
        const char *text;
        int n;

        dash_set_wall(d, NULL);
        push_with_pinned_layers(d);
        layout_make(&l, sizes[i][1], sizes[i][0], UI_VIEW_BOTH, 0, 1);
        assert_true(l.is_beside);
        text = text_with_dots(d, l.dash.height, l.dash.width);
        if (strstr(text, " 4- 7 ") != NULL) { /* a dot for each layer: 4 and 5, then 6 and 7 */
            assert_true(count_dots(text, " 4- 7", 0x09) >= 10);
            assert_true(count_dots(text, " 4- 7", 0x12) >= 10);
            assert_int_equal(count_dots(text, " 4- 7", 0xe4), 0);
            assert_true(count_dots(text, " 8-11", 0xe4) >= 10);
        } else { /* a dot for two layers */
            assert_true(count_dots(text, " 0- 7", 0x09) >= 10);
            assert_true(count_dots(text, " 0- 7", 0x24) >= 10);
            assert_int_equal(count_dots(text, " 0- 7", 0xc0), 0);
            assert_true(count_dots(text, " 8-15", 0xc0) >= 10);
        }
        assert_int_equal(count_dots(text, "32-34", 0xc0), 0); /* there is no layer 35 */
        assert_true(count_dots(text, " head ", 0xff) >= 10);
        /* Not at the cost of the curves, which have four rows, or of the wall. */
        n = arrange_panels(place, d, l.dash.height, l.dash.width);
        for (int k = 0; k < n; k++) {
            const struct dash_widget *w = place[k].widget;
            int inside = place[k].width - 2 * box_inset(place[k].width);

            if (w == &dash_speed_widget || w == &dash_memory_widget)
                assert_true(place[k].height >= w->enough(d, inside) + 5);
            if (w == &dash_wall_widget)
                assert_true(place[k].height >= 7);
            if (w == &dash_verdict_widget) /* with the large figure */
                assert_true(place[k].height >= 6);
        }
        dash_free(d);
    }
}

/* Without braille, a cell is the mean of the layers in its row. */
static void a_waterfall_without_dots_shows_means(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_ASCII);

    (void)state;
    dash_set_wall(d, NULL);
    push_with_pinned_layers(d);
    assert_true(count_cells(text_of(d, 48, 64), " 0- 7") > 8);
    for (uint64_t n = 101; n <= 160; n++) {
        made_decode(&sample, n);
        for (int i = 0; i < 8; i++)
            sample.layer[i].stall_ns = 0;
        dash_push(d, &sample);
    }
    assert_int_equal(count_cells(text_of(d, 48, 64), " 0- 7"), 0);
    assert_true(count_cells(text_of(d, 48, 64), " 8-15") > 8);
    dash_free(d);
}

/* A click on a row with several layers inspects the first, a second one ends it. */
static void layers_in_one_row_can_be_inspected(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_BRAILLE);
    const struct dash_widget *w = &dash_layers_widget;
    int height = 2 + 9;

    (void)state;
    push_with_pinned_layers(d);
    assert_true(w->click(d, height, 60, 3, 5)); /* the third row: 8 to 11 */
    assert_int_equal(dash_cursor(d), 8);
    dash_move_cursor(d, 1);
    /* The details took four lines, so rows have eight layers now. */
    assert_true(w->click(d, height, 60, 2, 5));
    assert_int_equal(dash_cursor(d), -1);
    assert_true(w->click(d, height, 60, 10, 5));
    assert_int_equal(dash_cursor(d), 35); /* the head */
    dash_free(d);
}

/* Strip, border and large figure have the rate of the newest tokens, as the wall and the bar of
 * a token have it; that of the whole answer has the name "mean". */
static void one_rate_is_shown_after_an_answer(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_ASCII);
    const char *text;

    (void)state;
    made_decode(&sample, 60); /* 320 ms a token */
    sample.state = MW_IDLE;
    sample.decode_ns *= 2; /* the first ones were slower */
    dash_push(d, &sample);
    text = text_of(d, 4, 80);
    assert_non_null(strstr(text, "idle  3.12 tok/s"));
    assert_null(strstr(text, "1.56"));
    text = text_of(d, 60, 200);
    assert_non_null(strstr(text, "idle  3.12 tok/s"));
    assert_non_null(strstr(text, "last   3.12  mean   1.56"));
    dash_free(d);
}

/* The number of places of a mark in the panel of the wall. */
static int count_marks(const struct dash *d, char mark)
{
    struct err e = ERR_INIT;
    struct canvas_target *t = canvas_on_grid(10, 60, true, &e);
    struct canvas c = canvas_of(t);
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    int n = 0;

    dash_wall_widget.draw(d, &c);
    canvas_write_text(t, f);
    fclose(f);
    canvas_target_free(t);
    for (const char *row = strchr(text, '\n'); row != NULL; row = strchr(row + 1, '\n')) {
        if (strstr(row, "MiB") != NULL && strstr(row, "MiB") < strchr(row + 1, '\n'))
            break; /* the axis, below the plot */
        for (const char *at = row + 1; *at != '\n'; at++)
            n += *at == mark;
    }
    free(text);
    return n;
}

/* An answer measures the budget in use, beside others: that one has the mark of the settings in
 * use and no second one at another rate. */
static void the_budget_in_use_has_one_mark(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_ASCII);
    struct mw_wall w = { .n = { 8 }, .here = { 500 * MIB, 4096 }, .n_mark = 4 };

    (void)state;
    for (uint64_t i = 0; i < 8; i++)
        w.point[MW_WALL_BUDGET][i] = (struct mw_wall_point){ .at = (i + 1) * 100 * MIB,
                                                             .tps = (double)(i + 1) };
    w.mark[0] = (struct mw_wall_mark){ { 500 * MIB, 4096 }, 1.5, true, { true, true } };
    w.mark[1] = (struct mw_wall_mark){ { 700 * MIB, 4096 }, 2.5, true, { true, false } };
    w.mark[2] = (struct mw_wall_mark){ { 500 * MIB, 2048 }, 0.5, true, { false, true } };
    w.mark[3] = (struct mw_wall_mark){ { 300 * MIB, 2048 }, 6.5, true, { false, false } };
    dash_set_wall(d, &w);
    assert_int_equal(count_marks(d, '@'), 1);
    assert_int_equal(count_marks(d, 'o'), 1);
    w.here[MW_WALL_BUDGET] = 600 * MIB;
    dash_set_wall(d, &w);
    assert_int_equal(count_marks(d, '@'), 1);
    assert_int_equal(count_marks(d, 'o'), 2);
    dash_free(d);
}

static void the_budget_is_known_while_a_model_is_loaded(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_ASCII);
    const char *text;

    (void)state;
    memset(&sample, 0, sizeof sample);
    sample.state = MW_LOADING;
    sample.t_ns = sample.os.t_ns = 1;
    sample.run.budget_bytes = 600 * MIB;
    sample.os.own.value = sample.mem.used[MW_ROW_PROGRAM] = 97 * MIB;
    sample.os.charged.why_not = "other processes share the control group";
    dash_push(d, &sample);
    text = text_of(d, 24, 80);
    assert_non_null(strstr(text, "97.0 MiB of  600 MiB"));
    assert_non_null(strstr(text, "gives it back"));
    dash_free(d);
}

/* The process has 1400 MiB, and 1250 of them are pages of the mapped file. */
static void mapped_pages_are_not_compared_with_the_budget(void **state)
{
    static const char *const why[] = { NULL, "other processes share the control group" };

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct dash *d = new_dash(UI_GRAPH_ASCII);
        const char *text;

        made_decode(&sample, 20);
        memset(sample.mem.used, 0, sizeof sample.mem.used);
        sample.mem.used[MW_ROW_PROGRAM] = 140 * MIB;
        sample.run.budget_bytes = 600 * MIB;
        snprintf(sample.run.io, sizeof sample.run.io, "mmap");
        sample.os.charged = (struct mw_os_value){ 1400 * MIB, why[i] };
        sample.os.own = sample.os.rss = (struct mw_os_value){ .value = 1400 * MIB };
        sample.os.model_charged = (struct mw_os_value){ .value = 1250 * MIB };
        dash_push(d, &sample);
        text = text_of(d, 50, 80);
        assert_non_null(strstr(text, "own  150 MiB of  600 MiB"));
        assert_non_null(strstr(text, "1.22 GiB/exempt"));
        assert_non_null(strstr(text, "10.0 MiB   6.7 %")); /* other */
        dash_free(d);
    }
}

static void predictions_have_two_digits(void **state)
{
    (void)state;
    assert_string_equal(figure_rate6(-1, 38168).text, "~38000");
    assert_string_equal(figure_rate6(-1, 373).text, "  ~370");
    assert_string_equal(figure_rate6(-1, 1.894).text, "  ~1.9");
    assert_string_equal(figure_rate6(-1, 0.6666).text, " ~0.67");
    assert_string_equal(figure_rate6(-1, 9.96).text, "   ~10");
    assert_string_equal(figure_rate6(1.894, 373).text, "  1.89");
    assert_string_equal(figure_rate6(-1, 0).text, "     -");
    assert_string_equal(figure_left10(1889).text, "    31 min");
    assert_string_equal(figure_left10(7020).text, "1 h 57 min");
    assert_string_equal(figure_left10(45.2).text, "      45 s");
    assert_string_equal(figure_left10(-1).text, "         -");
}

/* A recording names its experts, and has no map of them. */
static void a_cache_of_experts_may_have_no_map(void **state)
{
    static const uint64_t bins[] = { 0, (uint64_t)1 << 32, UINT64_MAX, MW_HEAT_BINS };

    (void)state;
    for (size_t i = 0; i < sizeof bins / sizeof bins[0]; i++) {
        struct dash *d = new_dash(UI_GRAPH_ASCII);

        made_decode(&sample, 20);
        sample.experts.all = sample.experts.held = 64;
        sample.experts.bins = bins[i];
        dash_push(d, &sample);
        assert_non_null(strstr(text_of(d, 60, 120), "64 of 64"));
        dash_free(d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_speed_panel_shows_drafts),
        cmocka_unit_test(items_have_the_names_of_the_plan),
        cmocka_unit_test(both_disks_of_a_mirror_are_shown),
        cmocka_unit_test(the_list_of_memory_adds_up),
        cmocka_unit_test(a_cache_of_experts_may_have_no_map),
        cmocka_unit_test(the_memory_panel_has_the_ladder),
        cmocka_unit_test(the_kv_panel_counts_what_the_conversation_fills),
        cmocka_unit_test(details_of_a_layer_are_whole),
        cmocka_unit_test(a_sentence_is_cut_between_its_clauses),
        cmocka_unit_test(the_bar_of_a_token_shows_its_parts),
        cmocka_unit_test(parts_of_a_token_have_their_own_colours_in_every_theme),
        cmocka_unit_test(time_is_left_only_with_a_limit),
        cmocka_unit_test(rows_of_zeros_fold_away),
        cmocka_unit_test(curves_have_four_rows_where_others_have_figures),
        cmocka_unit_test(scales_are_close_to_the_largest_value),
        cmocka_unit_test(pinned_layers_go_quiet_in_the_waterfall),
        cmocka_unit_test(the_waterfall_is_beside_the_chat_from_160x50_on),
        cmocka_unit_test(a_waterfall_without_dots_shows_means),
        cmocka_unit_test(layers_in_one_row_can_be_inspected),
        cmocka_unit_test(one_rate_is_shown_after_an_answer),
        cmocka_unit_test(the_budget_in_use_has_one_mark),
        cmocka_unit_test(the_budget_is_known_while_a_model_is_loaded),
        cmocka_unit_test(mapped_pages_are_not_compared_with_the_budget),
        cmocka_unit_test(predictions_have_two_digits),
    };

    setlocale(LC_CTYPE, "C.UTF-8");
    return cmocka_run_group_tests_name("dash_figures", tests, NULL, NULL);
}
