#include "config.h"

#include "ui/talk/theme_sheet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/look/theme.h"
#include "ui/text/sheet.h"
#include "ui/words/clean.h"

#define MAX_THEMES 64

struct choices {
    struct talk *t;
    struct sheet *sheet;
    void (*keep)(struct talk *t, enum option_id id, const char *value);
    char before[THEME_NAME_MAX]; /* the theme to restore; "": one was kept */
    char *name[MAX_THEMES];
    size_t n;
};

static void add_choice(void *list, const char *name)
{
    struct choices *c = list;
    char line[60];

    if (c->n == MAX_THEMES || (c->name[c->n] = strdup(name)) == NULL)
        return;
    clean_line(line, sizeof line, name, strlen(name));
    sheet_line(c->sheet, ROLE_TEXT, "%s", line);
    if (strcmp(name, THEME_AUTO) == 0)
        sheet_more(c->sheet, ROLE_DIM, " follows the terminal: dark or light");
    sheet_choice(c->sheet, (long)c->n);
    if (strcmp(name, c->before) == 0)
        sheet_set_cursor(c->sheet, (long)c->n);
    c->n++;
}

/* A theme with a mistake is not shown; Enter reports the mistake. */
static void use(struct choices *c, const char *name)
{
    struct ui_options look = { .theme = name };
    struct err ignored = ERR_INIT;

    (void)talk_set_look(c->t, OPT_THEME, &look, &ignored);
}

static void preview(void *ctx, long row)
{
    struct choices *c = ctx;

    use(c, c->name[row]);
}

static void take(void *ctx, long row)
{
    struct choices *c = ctx;

    c->before[0] = '\0';
    c->keep(c->t, OPT_THEME, c->name[row]);
}

static void restore(void *ctx)
{
    struct choices *c = ctx;

    if (c->before[0] != '\0')
        use(c, c->before);
    for (size_t i = 0; i < c->n; i++)
        free(c->name[i]);
    free(c);
}

static void add_sample(struct sheet *s)
{
    sheet_line(s, ROLE_TEXT, "text ");
    sheet_more(s, ROLE_DIM, "details ");
    sheet_more(s, ROLE_USER, "you ");
    sheet_more(s, ROLE_GOOD, "good ");
    sheet_more(s, ROLE_WARN, "slow ");
    sheet_more(s, ROLE_BAD, "failed");
    sheet_gap(s);
}

void theme_sheet(struct talk *t,
                 void (*keep)(struct talk *t, enum option_id id, const char *value))
{
    struct choices *c = calloc(1, sizeof *c);
    struct sheet *s = sheet_new("Themes", "Enter: keep   Esc: close");
    struct options now;

    if (c == NULL || s == NULL) {
        sheet_free(s);
        free(c);
        return;
    }
    talk_values(t, &now);
    snprintf(c->before, sizeof c->before, "%s", now.ui.theme);
    c->t = t;
    c->sheet = s;
    c->keep = keep;
    add_sample(s);
    theme_names(talk_settings(t)->paths.config_dir, add_choice, c);
    sheet_on_enter(s, take, restore, c);
    sheet_on_move(s, preview);
    talk_show(t, s);
}
