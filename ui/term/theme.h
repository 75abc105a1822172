/*
 * theme.h - which look each role has here.
 *
 * A theme gives each role (role.h) a colour in three strengths (true colour, 256, 16) and
 * attributes, with others for terminals without colour; which strength is used is decided
 * once, when the terminal is opened.  Colour never carries meaning alone: the drawer also
 * says it by a letter, a pattern or a place.
 *
 * A theme file has one role a line, `#` begins a comment line:
 *
 *     user = #5fafff 75 16:12 bold
 *     match = #000000 16 16:0 on #ffd700 220 16:3 mono reverse
 *
 * that is: foreground, "on" background, attributes, "mono" and the attributes without
 * colour.  A colour is #rrggbb, a number of the 256 palette, 16:N or 16:default, any of
 * them; strengths that are not given are computed from the others.  Attributes are bold,
 * dim, italic, underline, reverse, strike.
 */
#ifndef MEMWALL_UI_TERM_THEME_H
#define MEMWALL_UI_TERM_THEME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/memwall.h"
#include "ui/term/role.h"

enum ui_colors { UI_COLOR_NONE, UI_COLOR_16, UI_COLOR_256, UI_COLOR_RGB };

/* -1: the terminal's own. */
struct ui_color {
    int32_t rgb; /* 0xrrggbb */
    int16_t x256;
    int16_t x16; /* 0 to 15 */
};

struct theme_role {
    struct ui_color fg, bg;
    uint8_t attr; /* enum ui_attr, where there are colours */
    uint8_t mono; /* where there are none */
};

struct theme {
    char name[48];
    struct theme_role role[UI_ROLES];
};

/* The themes that are compiled in: the files of share/themes.  A name NULL ends them. */
struct theme_text {
    const char *name, *text;
};
extern const struct theme_text theme_texts[];

/* The first of them. */
void theme_default(struct theme *out);

/* Read a theme's text; roles that it does not name are plain.  -1 with *e, whose field is
 * "line N"; *out is untouched then. */
int theme_parse(struct theme *out, const char *name, const char *text, struct err *e);

/*
 * By name: a file config_dir/themes/NAME.theme, else one that is compiled in; or a path,
 * if it holds a '/'.  config_dir may be NULL.
 */
int theme_find(struct theme *out, const char *name, const char *config_dir, struct err *e);

#endif
