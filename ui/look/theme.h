/*
 * theme.h - the look of each role.
 *
 * A theme gives each role (role.h) a colour at three depths (true colour, 256, 16) and
 * attributes, with other attributes for terminals without colour.  The depth is chosen when
 * the terminal is opened.  Colour never carries meaning alone: a letter, a pattern or a
 * position says the same.
 *
 * A theme file has one role a line, `#` begins a comment line:
 *
 *     text = #ebdbb2 187 16:7 on #282828 235 16:0
 *     user = #5fafff 75 16:12 bold
 *     match = #000000 16 16:0 on #ffd700 220 16:3 mono reverse
 *
 * in the order foreground, "on" background, attributes, "mono" with the attributes used
 * without colour.  A colour is #rrggbb, a number of the 256 palette, 16:N or 16:default, or
 * several of these; missing depths are computed from the others.  Attributes are bold, dim,
 * italic, underline, reverse, strike.
 *
 * A role without a foreground or a background takes those of "text".  A theme whose text has
 * no colours leaves those of the terminal, and fits only terminals that are dark, or light.
 * Such a theme also writes less: ncurses sends both colours with each change of one.  An answer
 * of 12 tokens at 160x50 was 55 kB with dark at 256 colours, 62 kB with dark at true colour and
 * 100 kB with nord.
 * "auto" is dark or light, as the background of the terminal is (background.h).
 */
#ifndef MEMWALL_UI_LOOK_THEME_H
#define MEMWALL_UI_LOOK_THEME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/memwall.h"
#include "ui/look/role.h"
#include "ui/words/path.h"

enum ui_colors { UI_COLOR_NONE, UI_COLOR_16, UI_COLOR_256, UI_COLOR_RGB };

/* -1: the terminal's default */
struct ui_color {
    int32_t rgb; /* 0xrrggbb */
    int16_t x256;
    int16_t x16; /* 0 to 15 */
};

struct theme_role {
    struct ui_color fg, bg;
    uint8_t attr; /* enum ui_attr, with colour */
    uint8_t mono; /* without colour */
};

#define THEME_NAME_MAX 256

struct theme {
    char name[THEME_NAME_MAX];
    struct theme_role role[UI_ROLES];
};

/* The built-in themes, from share/themes; ended by a NULL name. */
struct theme_text {
    const char *name, *text;
};
extern const struct theme_text theme_texts[];

/* Parse the text of a theme; roles that it does not name are plain.  Returns -1 with *e, whose
 * field is "line N", and leaves *out unchanged. */
int theme_parse(struct theme *out, const char *name, const char *text, struct err *e);

#define THEME_AUTO "auto"

/*
 * Find a theme by name: the file config_dir/themes/NAME.theme, or a built-in one.  A name
 * with a '/' is a path.  config_dir may be NULL.  is_light decides for "auto".
 */
int theme_find(struct theme *out, const char *name, const char *config_dir, bool is_light,
               struct err *e);

/* Calls add(list, name) for each theme that theme_find() finds without a '/'. */
void theme_names(const char *config_dir, path_add_fn *add, void *list);

#endif
