/*
 * role.h - what a cell on the screen is for.
 *
 * Drawing code names a role; a theme (theme.h) says how the role looks on this terminal:
 * RGB, 256 colours, 16, or attributes alone.  So no colour is ever named outside of a
 * theme, and what a golden test compares is roles.
 */
#ifndef MEMWALL_UI_TERM_ROLE_H
#define MEMWALL_UI_TERM_ROLE_H

#include <stdint.h>

enum ui_role {
    ROLE_TEXT,   /* default foreground: all text of importance */
    ROLE_DIM,    /* captions, units, what may be overlooked */
    ROLE_ACCENT, /* titles, keys, the focused thing */
    ROLE_BORDER,
    ROLE_SELECTED, /* selection, cursor line of a list */
    ROLE_USER,
    ROLE_MODEL,
    ROLE_THINKING,
    ROLE_HEADING,
    ROLE_CODE,
    ROLE_CODE_LABEL, /* the language of a block */
    ROLE_CODE_KEYWORD,
    ROLE_CODE_STRING,
    ROLE_CODE_COMMENT,
    ROLE_CODE_NUMBER,
    ROLE_LINK,
    ROLE_QUOTE,
    ROLE_TABLE,   /* its lines */
    ROLE_RECEIPT, /* what an answer cost */
    ROLE_ODD,     /* a shown control character or hidden mark */
    ROLE_GOOD,
    ROLE_WARN,
    ROLE_BAD,
    ROLE_STATUS,        /* status bar */
    ROLE_STATUS_STRONG, /* its figures */
    ROLE_NOTICE,        /* the program speaks */
    ROLE_PROMPT,        /* of the input line */
    ROLE_INPUT,         /* what is typed */
    ROLE_HINT,          /* completions, what a key would do */
    ROLE_MATCH,         /* found by a search */
    ROLE_MATCH_NOW,     /* the match that the search stands on */
    ROLE_GRAPH,         /* curves */
    ROLE_GRAPH_2,
    ROLE_LIMIT, /* a line that must not be passed */

    /* Fills of stacked meters, one a segment; the letter drawn with it tells it too. */
    ROLE_FILL_PROGRAM,
    ROLE_FILL_WORK, /* activations, logits, lookup rows */
    ROLE_FILL_RING,
    ROLE_FILL_PINNED,
    ROLE_FILL_KV,
    ROLE_FILL_LENT,
    ROLE_FILL_OTHER,
    ROLE_FILL_FREE,

    /* A ramp from cold to hot, for heat strips and graphs. */
    ROLE_RAMP_0,
    ROLE_RAMP_1,
    ROLE_RAMP_2,
    ROLE_RAMP_3,
    ROLE_RAMP_4,
    ROLE_RAMP_5,
    ROLE_RAMP_6,
    ROLE_RAMP_7,

    UI_ROLES,
};

#define UI_RAMP 8 /* roles of the ramp */

/* On top of what the theme gives the role. */
enum ui_attr {
    UI_BOLD = 1,
    UI_DIM = 2,
    UI_ITALIC = 4,
    UI_UNDERLINE = 8,
    UI_REVERSE = 16,
    UI_STRIKE = 32,
};

/* How one cell looks.  All zero: plain text. */
struct ui_style {
    uint8_t role; /* enum ui_role: foreground, and the role's own background if it has one */
    uint8_t on;   /* 0, or a role whose foreground becomes the background: bars */
    uint8_t attr; /* enum ui_attr */
};

/* "fill_pinned", as theme files write it. */
const char *ui_role_name(enum ui_role role);
/* -1: there is no such role. */
int ui_role_parse(const char *name);

/* The role of the ramp for share, 0 (cold) to 1 (hot). */
enum ui_role ui_ramp(double share);

#endif
