/*
 * sheet_internal.h - the lines of a sheet, shared by their text and keys (sheet.c) and by
 * drawing (sheet_draw.c).
 */
#ifndef MEMWALL_UI_TEXT_SHEET_INTERNAL_H
#define MEMWALL_UI_TEXT_SHEET_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/text/sheet.h"

#define SHEET_PARTS 6

struct sheet_part {
    enum ui_role role;
    char *text;
};

struct sheet_line {
    struct sheet_part part[SHEET_PARTS];
    size_t n_part;
    bool wraps; /* has one part, wrapped at blanks */
    bool is_choice;
    bool is_hidden; /* by the filter */
    long number;
};

struct sheet {
    char title[96], hint[96];
    struct sheet_line *line;
    size_t n, room;
    size_t cursor; /* index of a line; SIZE_MAX: none */
    int top;       /* first visible row */
    int rows, height;
    int most_rows; /* without a filter */
    bool has_choice;
    bool is_unasked;   /* digits choose, and Enter does nothing before a choice */
    bool filters;      /* typing filters the lines */
    char filter[64];   /* words; a line must contain all of them */
    bool is_narrow;    /* wraps its lines to leave the dashboard visible */
    struct canvas box; /* at the last draw */
    sheet_enter_fn *enter;
    void (*release)(void *ctx);
    void *enter_ctx;
    sheet_enter_fn *moved;
    char letters[8];
    sheet_letter_fn *on_letter;
    uint32_t letter; /* that was typed; 0: Enter */
    const char *help;
    char drop[120];
};

#endif
