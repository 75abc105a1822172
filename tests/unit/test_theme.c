/* The themes that come with the program, and the background of the terminal. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ui/look/theme.h"
#include "ui/term/background.h"

/* ---- contrast, as WCAG 2.1 defines it ---- */

#define LEGIBLE 4.5 /* text */
#define VISIBLE 3.0 /* bars, curves and lines */

static double light_of(int part)
{
    double c = part / 255.0;

    return c <= 0.03928 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
}

static double luminance(int32_t rgb)
{
    return 0.2126 * light_of(rgb >> 16 & 255) + 0.7152 * light_of(rgb >> 8 & 255) +
           0.0722 * light_of(rgb & 255);
}

static double contrast(int32_t a, int32_t b)
{
    double x = luminance(a), y = luminance(b);

    return (fmax(x, y) + 0.05) / (fmin(x, y) + 0.05);
}

/* xterm's colours. */
static int32_t of_palette(int x)
{
    static const int32_t first[16] = { 0x000000, 0xcd0000, 0x00cd00, 0xcdcd00,
                                       0x0000ee, 0xcd00cd, 0x00cdcd, 0xe5e5e5,
                                       0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00,
                                       0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff };
    static const int32_t cube[6] = { 0, 95, 135, 175, 215, 255 };

    if (x < 16)
        return first[x];
    if (x >= 232)
        return (8 + (x - 232) * 10) * 0x010101;
    x -= 16;
    return cube[x / 36] << 16 | cube[x / 6 % 6] << 8 | cube[x % 6];
}

/* Returns the colour at a depth; otherwise, if the role leaves it to the terminal. */
static int32_t at_depth(struct ui_color c, enum ui_colors depth, int32_t otherwise)
{
    switch (depth) {
    case UI_COLOR_NONE: break;
    case UI_COLOR_16: return c.x16 < 0 ? otherwise : of_palette(c.x16);
    case UI_COLOR_256: return c.x256 < 0 ? otherwise : of_palette(c.x256);
    case UI_COLOR_RGB: return c.rgb < 0 ? otherwise : c.rgb;
    }
    return otherwise;
}

/* Letters are drawn on the fills, so they are text. */
static bool is_text(size_t role)
{
    switch (role) {
    case ROLE_BORDER:
    case ROLE_TABLE:
    case ROLE_GRAPH:
    case ROLE_GRAPH_2:
    case ROLE_FILL_FREE: return false;
    default: return role < ROLE_RAMP_0;
    }
}

/* Returns the roles of a theme without contrast, on a terminal with this background. */
static int count_illegible(const char *name, const struct theme *t, enum ui_colors depth,
                           int32_t terminal)
{
    const struct theme_role *text = &t->role[ROLE_TEXT];
    int32_t ground = at_depth(text->bg, depth, terminal);
    int32_t ink = at_depth(text->fg, depth, luminance(ground) > 0.18 ? 0x000000 : 0xffffff);
    int n = 0;

    for (size_t i = 0; i < UI_ROLES; i++) {
        int32_t fg = at_depth(t->role[i].fg, depth, ink);
        int32_t bg = at_depth(t->role[i].bg, depth, ground);

        if (contrast(fg, bg) < (is_text(i) ? LEGIBLE : VISIBLE)) {
            fprintf(stderr, "%s: role %zu, depth %d: #%06x on #%06x is %.2f\n", name, i,
                    (int)depth, (unsigned)fg, (unsigned)bg, contrast(fg, bg));
            n++;
        }
    }
    return n;
}

static void every_role_of_every_theme_is_legible(void **state)
{
    /* Where the terminal's background stays: black and a usual dark one, or white and a usual
     * light one. */
    static const int32_t grounds[2][2] = { { 0x000000, 0x282c34 }, { 0xffffff, 0xfafafa } };
    int n = 0;

    (void)state;
    for (size_t i = 0; theme_texts[i].name != NULL; i++) {
        const char *name = theme_texts[i].name;
        bool is_light = strstr(name, "light") != NULL;
        struct err e = ERR_INIT;
        struct theme t;

        assert_int_equal(theme_parse(&t, name, theme_texts[i].text, &e), 0);
        for (int g = 0; g < 2; g++)
            for (int depth = UI_COLOR_256; depth <= UI_COLOR_RGB; depth++)
                n += count_illegible(name, &t, (enum ui_colors)depth, grounds[is_light][g]);
        n += count_illegible(name, &t, UI_COLOR_16, grounds[is_light][0]);
    }
    assert_int_equal(n, 0);
}

static void only_dark_and_light_keep_the_background_of_the_terminal(void **state)
{
    (void)state;
    for (size_t i = 0; theme_texts[i].name != NULL; i++) {
        const char *name = theme_texts[i].name;
        bool keeps = strcmp(name, "dark") == 0 || strcmp(name, "light") == 0;
        struct err e = ERR_INIT;
        struct theme t;

        assert_int_equal(theme_parse(&t, name, theme_texts[i].text, &e), 0);
        assert_true((t.role[ROLE_TEXT].bg.rgb < 0) == keeps);
        assert_true((t.role[ROLE_TEXT].bg.x16 < 0) == keeps);
    }
}

/* ---- names ---- */

static void auto_is_dark_or_light_as_the_background_is(void **state)
{
    struct theme t, dark, light;
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(theme_find(&dark, "dark", NULL, true, &e), 0);
    assert_int_equal(theme_find(&light, "light", NULL, false, &e), 0);
    assert_int_equal(theme_find(&t, "auto", NULL, false, &e), 0);
    assert_memory_equal(t.role, dark.role, sizeof t.role);
    assert_int_equal(theme_find(&t, "auto", NULL, true, &e), 0);
    assert_memory_equal(t.role, light.role, sizeof t.role);
    assert_string_equal(t.name, "auto");
}

static void an_unknown_theme_is_answered_with_all_names(void **state)
{
    struct theme t;
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(theme_find(&t, "beige", NULL, false, &e), -1);
    assert_non_null(strstr(e.what, "auto, dark, light"));
    assert_non_null(strstr(e.what, "tokyo-night"));
}

/* ---- the background ---- */

struct reply {
    const char *name, *bytes;
    enum background wants;
};

static struct reply replies[] = {
    { "white_is_light", "\033]11;rgb:ffff/ffff/ffff\033\\", BACKGROUND_LIGHT },
    { "black_is_dark", "\033]11;rgb:0000/0000/0000\033\\", BACKGROUND_DARK },
    { "a_bell_ends_a_reply", "\033]11;rgb:fdfd/f6f6/e3e3\a", BACKGROUND_LIGHT },
    { "two_digits_are_read", "\033]11;rgb:28/2c/34\033\\", BACKGROUND_DARK },
    { "one_digit_is_read", "\033]11;rgb:f/f/f\033\\", BACKGROUND_LIGHT },
    { "opacity_is_skipped", "\033]11;rgba:ffff/ffff/ffff/8000\033\\", BACKGROUND_LIGHT },
    { "green_is_light_to_the_eye", "\033]11;rgb:0000/ffff/0000\033\\", BACKGROUND_LIGHT },
    { "blue_is_dark_to_the_eye", "\033]11;rgb:0000/0000/ffff\033\\", BACKGROUND_DARK },
    { "the_foreground_is_another_reply", "\033]10;rgb:ffff/ffff/ffff\033\\",
      BACKGROUND_UNKNOWN },
    { "two_parts_are_not_a_colour", "\033]11;rgb:ffff/ffff\033\\", BACKGROUND_UNKNOWN },
    { "five_digits_are_not_a_part", "\033]11;rgb:fffff/f/f\033\\", BACKGROUND_UNKNOWN },
    { "a_name_is_not_a_colour", "\033]11;white\033\\", BACKGROUND_UNKNOWN },
    { "typed_keys_are_not_a_reply", "11;rgb:ffff/ffff/ffff", BACKGROUND_UNKNOWN },
};

static void reply_is_read(void **state)
{
    const struct reply *r = *state;
    struct keys *k = keys_new();
    struct key key;

    keys_feed(k, (const unsigned char *)r->bytes, strlen(r->bytes), 0);
    assert_true(keys_next(k, 0, &key));
    assert_int_equal(background_of_reply(&key), r->wants);
    assert_false(background_is_last_reply(&key));
    keys_free(k);
}

static void the_device_attributes_are_the_last_reply(void **state)
{
    static const unsigned char bytes[] = "\033[?62;22c";
    struct keys *k = keys_new();
    struct key key;

    (void)state;
    keys_feed(k, bytes, sizeof bytes - 1, 0);
    assert_true(keys_next(k, 0, &key));
    assert_true(background_is_last_reply(&key));
    keys_free(k);
}

static void colorfgbg_is_the_fallback(void **state)
{
    (void)state;
    assert_int_equal(background_of_colorfgbg("15;0"), BACKGROUND_DARK);
    assert_int_equal(background_of_colorfgbg("0;15"), BACKGROUND_LIGHT);
    assert_int_equal(background_of_colorfgbg("0;default;15"), BACKGROUND_LIGHT);
    assert_int_equal(background_of_colorfgbg("12;8"), BACKGROUND_DARK);
    assert_int_equal(background_of_colorfgbg("0;7"), BACKGROUND_LIGHT);
    assert_int_equal(background_of_colorfgbg("15;default"), BACKGROUND_UNKNOWN);
    assert_int_equal(background_of_colorfgbg("15;99"), BACKGROUND_UNKNOWN);
    assert_int_equal(background_of_colorfgbg(""), BACKGROUND_UNKNOWN);
    assert_int_equal(background_of_colorfgbg(NULL), BACKGROUND_UNKNOWN);
}

static void the_console_and_screen_are_not_asked(void **state)
{
    (void)state;
    assert_true(background_can_ask("xterm-256color", false));
    assert_true(background_can_ask("tmux-256color", true));
    assert_true(background_can_ask("screen-256color", true)); /* tmux under its older name */
    assert_false(background_can_ask("screen-256color", false));
    assert_false(background_can_ask("linux", false));
    assert_false(background_can_ask("ansi", false));
    assert_false(background_can_ask("vt220", false));
    assert_true(background_can_ask("vte-256color", false));
}

enum { N_REPLY = sizeof replies / sizeof replies[0] };

int main(void)
{
    static const struct CMUnitTest others[] = {
        cmocka_unit_test(every_role_of_every_theme_is_legible),
        cmocka_unit_test(only_dark_and_light_keep_the_background_of_the_terminal),
        cmocka_unit_test(auto_is_dark_or_light_as_the_background_is),
        cmocka_unit_test(an_unknown_theme_is_answered_with_all_names),
        cmocka_unit_test(the_device_attributes_are_the_last_reply),
        cmocka_unit_test(colorfgbg_is_the_fallback),
        cmocka_unit_test(the_console_and_screen_are_not_asked),
    };
    enum { N_OTHER = sizeof others / sizeof others[0] };
    struct CMUnitTest tests[N_REPLY + N_OTHER];

    for (size_t i = 0; i < N_REPLY; i++)
        tests[i] =
            (struct CMUnitTest){ replies[i].name, reply_is_read, NULL, NULL, &replies[i] };
    memcpy(tests + N_REPLY, others, sizeof others);
    return cmocka_run_group_tests_name("theme", tests, NULL, NULL);
}
