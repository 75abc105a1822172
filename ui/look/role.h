/*
 * role.h - the role of a cell on the screen.
 *
 * Drawing code names a role; a theme (theme.h) defines how the role looks on this terminal:
 * RGB, 256 colours, 16, or attributes alone.  Only themes name colours, and golden tests
 * compare roles.
 */
#ifndef MEMWALL_UI_LOOK_ROLE_H
#define MEMWALL_UI_LOOK_ROLE_H

#include <stdint.h>

enum ui_role {
    ROLE_TEXT,   /* default foreground */
    ROLE_DIM,    /* captions, units, details */
    ROLE_ACCENT, /* titles, keys, focus */
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
    ROLE_TABLE,   /* lines of a table */
    ROLE_RECEIPT, /* cost of an answer */
    ROLE_ODD,     /* a visible control character or hidden mark */
    ROLE_GOOD,
    ROLE_WARN,
    ROLE_BAD,
    ROLE_STATUS,        /* status bar */
    ROLE_STATUS_STRONG, /* figures in the status bar */
    ROLE_NOTICE,        /* messages of the program */
    ROLE_PROMPT,        /* of the input line */
    ROLE_INPUT,         /* text of the input line */
    ROLE_HINT,          /* completions, effects of keys */
    ROLE_MATCH,         /* a match of a search */
    ROLE_MATCH_NOW,     /* the current match */
    ROLE_GRAPH,         /* curves */
    ROLE_GRAPH_2,
    ROLE_LIMIT, /* a limit */

    /* Fills of stacked meters, one per segment; the segment also shows a letter. */
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

#define UI_RAMP 8 /* number of roles in the ramp */

/* Added to the attributes of the theme. */
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

/* Returns the role with this name in theme files, such as "fill_pinned", or -1. */
int ui_role_parse(const char *name);
const char *ui_role_name(enum ui_role role);

/* Returns the role of the ramp for share, 0 (cold) to 1 (hot). */
enum ui_role ui_ramp(double share);

#endif
