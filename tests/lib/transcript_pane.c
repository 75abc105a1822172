#include "config.h"

#include "tests/lib/transcript_pane.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ui/term/canvas.h"

const struct mw_receipt pane_receipt = {
    .done = MW_DONE_STOP,
    .n_prompt = 34,
    .n_decoded = 12,
    .decode_ns = 3400000000,
    .bytes_read = 41000000000,
    .stall_ns = 2414000000,
    .peak_charged = 1524713390,
};

struct transcript *begin(void)
{
    struct transcript *t = transcript_new(&(struct transcript_options){ 0 });

    assert_non_null(t);
    transcript_size(t, HEIGHT, WIDTH);
    return t;
}

void say(struct transcript *t, enum transcript_kind kind, const char *text)
{
    assert_true(transcript_add(t, kind, text, strlen(text), TRANSCRIPT_NO_ID));
}

void piece(struct transcript *t, const char *text)
{
    assert_true(transcript_append(t, text, strlen(text), false));
}

void answer(struct transcript *t, const char *text)
{
    assert_true(transcript_begin(t, false));
    piece(t, text);
    transcript_done(t, NULL);
}

/* Returns a letter for each role that tests look at. */
static char letter(struct ui_style style)
{
    static const char letters[UI_ROLES] = {
        [ROLE_TEXT] = '.',         [ROLE_SELECTED] = 's',     [ROLE_MATCH] = 'm',
        [ROLE_MATCH_NOW] = 'M',    [ROLE_USER] = 'u',         [ROLE_CODE] = 'c',
        [ROLE_HEADING] = 'h',      [ROLE_NOTICE] = 'n',       [ROLE_BAD] = 'b',
        [ROLE_HINT] = 'i',         [ROLE_BORDER] = '-',       [ROLE_RECEIPT] = 'r',
        [ROLE_THINKING] = 't',     [ROLE_DIM] = 'd',          [ROLE_ACCENT] = 'a',
        [ROLE_QUOTE] = 'q',        [ROLE_LINK] = 'l',         [ROLE_TABLE] = '|',
        [ROLE_CODE_LABEL] = '_',   [ROLE_CODE_KEYWORD] = 'k', [ROLE_CODE_STRING] = '"',
        [ROLE_CODE_COMMENT] = '/', [ROLE_CODE_NUMBER] = '0',
    };

    return letters[style.role] != '\0' ? letters[style.role] : '?';
}

char *drawn(struct transcript *t, int height, int width, bool ascii, bool roles)
{
    struct err e = ERR_INIT;
    struct canvas_target *g = canvas_on_grid(height, width, ascii, &e);
    struct canvas c;
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);

    assert_non_null(g);
    c = canvas_of(g);
    transcript_draw(t, &c);
    if (!roles)
        canvas_write_text(g, f);
    for (int y = 0; roles && y < height; y++) {
        char row[512];
        int end = width;

        for (int x = 0; x < width; x++) {
            wchar_t ch[CLUSTER_CHARS + 1];
            struct ui_style style;

            canvas_peek(g, y, x, ch, &style);
            row[x] = letter(style);
        }
        while (end > 0 && row[end - 1] == '.')
            end--;
        fprintf(f, "%.*s\n", end, row);
    }
    fclose(f);
    canvas_target_free(g);
    return text;
}

void expect(struct transcript *t, const char *want)
{
    char *got = drawn(t, HEIGHT, WIDTH, true, false);

    assert_string_equal(got, want);
    free(got);
}

bool sees(struct transcript *t, const char *what)
{
    char *got = drawn(t, HEIGHT, WIDTH, true, false);
    bool found = strstr(got, what) != NULL;

    free(got);
    return found;
}

void roles_of_row(struct transcript *t, int y, char *row)
{
    char *got = drawn(t, HEIGHT, WIDTH, true, true), *p = got;

    while (y-- > 0)
        p = strchr(p, '\n') + 1;
    sprintf(row, "%.*s", (int)strcspn(p, "\n"), p);
    free(got);
}

struct transcript *numbered(int n)
{
    struct transcript *t = begin();
    char line[32];

    assert_true(transcript_begin(t, false));
    for (int i = 0; i < n; i++) {
        sprintf(line, "line %d\n\n", i);
        piece(t, line);
    }
    return t;
}
