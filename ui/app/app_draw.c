/* The panes, each drawn when it is dirty. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "ui/app/app.h"
#include "ui/app/status.h"
#include "ui/dash/dash.h"
#include "ui/talk/commands.h"
#include "ui/term/box.h"
#include "ui/words/receipt.h"

#define MAX_OFFERS  16 /* rows of the menu */
#define KEYS_WIDTH  60 /* the size from which keys are shown */
#define KEYS_HEIGHT 16
#define KEYS_MARGIN 6 /* columns of the rule around them */

static struct canvas part(const struct canvas *screen, const struct area *a)
{
    return canvas_sub(screen, a->y, a->x, a->height, a->width);
}

static const char *prompt_text(const struct app *a)
{
    static char text[200];

    if (a->mode == MODE_FIND)
        return "search: ";
    if (edit_is_searching() || edit_prompt()[0] != '\0') {
        snprintf(text, sizeof text, "%.180s ", edit_prompt());
        return text;
    }
    return "> ";
}

struct input_line app_typed(const struct app *a)
{
    if (a->mode == MODE_FIND)
        return (struct input_line){ prompt_text(a), a->find, strlen(a->find) };
    return (struct input_line){ prompt_text(a), edit_text(), edit_cursor() };
}

void app_layout(struct app *a)
{
    struct canvas screen = term_canvas(a->term);
    struct input_line in = app_typed(a);
    int y, x, rows = input_rows(&in, screen.width, &y, &x);
    struct layout before = a->layout;

    layout_make(&a->layout, screen.height, screen.width, a->ui.view, a->permille, rows);
    if (memcmp(&before, &a->layout, sizeof before) == 0)
        return;
    transcript_size(a->transcript, a->layout.chat.height, a->layout.chat.width);
    app_dirty(a, DIRT_ALL | DIRT_LARGE);
}

/* ---- the rule above the input line, with a hint in it ---- */

/* Returns the command whose arguments are being typed, or NULL. */
static const struct slash_command *command_of_line(void)
{
    const char *text = edit_text();
    size_t n = strcspn(text, " ");

    return text[0] == '/' && text[n] == ' ' ? command_match(text + 1, n - 1) : NULL;
}

static void search_text(const struct app *a, char *buf, size_t n)
{
    char count[48] = "";

    if (a->matches.of > 0)
        snprintf(count, sizeof count, "%zu of %zu   ", a->matches.now, a->matches.of);
    snprintf(buf, n, "%sn: older match   N: newer match   Esc: close", count);
}

static void rule_text(const struct app *a, char *buf, size_t n)
{
    const struct outbox *o = talk_outbox(a->talk);
    const char *name = o->n_file > 0 ? o->file[o->n_file - 1].name : "";
    char next[200];

    buf[0] = '\0';
    if (a->hint[0] != '\0')
        snprintf(buf, n, "%s", a->hint);
    else if (command_of_line() != NULL)
        snprintf(buf, n, "/%s %s: %s", command_of_line()->name, command_of_line()->args,
                 command_of_line()->help);
    else if (a->mode == MODE_FIND)
        snprintf(buf, n, "Enter: search upwards   Esc: close");
    else if (edit_is_searching())
        snprintf(buf, n, "Ctrl-R: older   Ctrl-S: newer   Enter: accept   Esc: close");
    else if (transcript_is_searching(a->transcript))
        search_text(a, buf, n);
    else if (talk_shell(a->talk) != NULL)
        snprintf(buf, n, "running: %s   Ctrl-C: stop", talk_shell(a->talk));
    else if (a->tour != NULL)
        tour_line(a->tour, buf, n);
    else if (a->cost.text[0] != '\0') /* a file may have come back with a stopped message */
        snprintf(buf, n, "%s%s%s%s", o->n_file > 0 ? "with " : "", name,
                 o->n_file > 1 ? " and others: " : o->n_file > 0 ? ": " : "", a->cost.text);
    else if (o->n_queue > 0) {
        outbox_describe_next(o, next, sizeof next);
        snprintf(buf, n, "%zu queued; next: %s", o->n_queue, next);
    } else if (o->n_file > 0)
        snprintf(buf, n, "with the next message: %s%s", name,
                 o->n_file > 1 ? " and others" : "");
    else if (!transcript_follows(a->transcript))
        snprintf(buf, n, "Ctrl-F: search   End: follow");
}

/* Returns the columns of the rule that no box of the dashboard ends in. */
static int own_columns(const struct layout *l)
{
    return l->dash.height > 0 && l->dash.y + l->dash.height > l->rule.y ? l->dash.x
                                                                        : l->rule.width;
}

/* ---- the keys that have a meaning now ---- */

#define KEYS_APART 3 /* blanks between two */

/* Append "F1 help" if it fits into width columns. */
static void add_key(char *buf, size_t n, int width, const char *text)
{
    size_t used = strlen(buf);

    if ((int)(used + KEYS_APART + strlen(text)) <= width)
        snprintf(buf + used, n - used, "%*s%s", used > 0 ? KEYS_APART : 0, "", text);
}

static void keys_of_line(const struct app *a, char *buf, size_t n, int width)
{
    bool answers = talk_is_answering(a->talk);
    char setting[40];
    struct mw_diagnosis d;

    if (answers)
        add_key(buf, n, width, "Esc stop");
    add_key(buf, n, width, "F1 help");
    add_key(buf, n, width, "/ commands");
    if (a->layout.height > LAYOUT_MIN_HEIGHT)
        add_key(buf, n, width, "F2 view");
    mw_diagnosis_of_sample(&a->sample, &d);
    if (!talk_has_server(a->talk) &&
        mw_diagnosis_command(&d, setting, sizeof setting)[0] != '\0')
        add_key(buf, n, width, "F10 advice");
    if (!answers && ledger_user(talk_ledger(a->talk), 1) >= 0)
        add_key(buf, n, width, "F9 go back");
    if (a->layout.dash.height > 0 && !dash_has_server(a->dash))
        add_key(buf, n, width, "Tab dashboard");
    add_key(buf, n, width, "@ file");
    add_key(buf, n, width, "! shell");
}

/* Where nothing else is said: the keys that do something, as many as fit.  Returns whether
 * there are any. */
static bool keys_text(const struct app *a, char *buf, size_t n)
{
    int width = own_columns(&a->layout) - KEYS_MARGIN;
    char panels[24];

    buf[0] = '\0';
    if (a->ui.keys == UI_OFF || a->layout.width < KEYS_WIDTH || a->layout.height < KEYS_HEIGHT)
        return false;
    if (a->mode == MODE_LINE && edit_is_empty() && a->tour == NULL) {
        keys_of_line(a, buf, n, width);
    } else if (a->mode == MODE_DASH) {
        add_key(buf, n, width, "Tab back");
        add_key(buf, n, width, "? help");
        add_key(buf, n, width, "Up Down layer");
        snprintf(panels, sizeof panels, "1 to %d panel", dash_panels(a->dash)->n_used);
        add_key(buf, n, width, panels);
    }
    return buf[0] != '\0';
}

/* A hint that covers the boxes of the dashboard is removed by drawing them again. */
static void uncover_dash(struct app *a, const char *hint)
{
    int end = hint[0] == '\0' ? 0 : 4 + cluster_width(hint, strlen(hint));
    bool covers = end > own_columns(&a->layout);

    if (covers || a->hint_covers_dash)
        a->dirt |= DIRT_DASH;
    a->hint_covers_dash = covers;
}

/* Cut a hint that is too wide after a word, so that no number loses digits.  Returns its bytes;
 * 0: its words are too long for that. */
static size_t cut_hint(const char *hint, int width)
{
    size_t n = strlen(hint);

    while (n > 0 && cluster_width(hint, n) > width - 3) {
        do
            n--;
        while (n > 0 && hint[n] != ' ');
    }
    return cluster_width(hint, n) > width / 2 ? n : 0;
}

/* Returns its columns. */
static int draw_hint(const struct canvas *c, const char *hint, struct ui_style style)
{
    size_t n = strlen(hint);
    bool fits = cluster_width(hint, n) <= c->width;
    size_t whole = fits ? n : cut_hint(hint, c->width);
    int x = canvas_put(c, 0, 0, c->width, style, hint, whole > 0 ? whole : n);

    if (!fits && whole > 0)
        x += canvas_put(c, 0, x, c->width - x, style, " ..", 3);
    return x;
}

static void draw_rule(struct app *a, const struct canvas *screen, const char *hint,
                      enum ui_role role)
{
    struct canvas c = part(screen, &a->layout.rule);
    struct canvas own = canvas_sub(&c, 0, 0, 1, own_columns(&a->layout));

    if (a->layout.frame.height > 0)
        box_line(&own, 0, BOX_BOTTOM, ROLE_BORDER);
    else
        canvas_hline(&own, 0, 0, own.width, style_of(ROLE_BORDER));
    if (hint[0] != '\0' && c.width > 6) {
        struct canvas place = canvas_sub(&c, 0, 3, 1, c.width - 5);

        canvas_blank(&c, 0, 2, 1, style_of(role));
        canvas_blank(&c, 0, 3 + draw_hint(&place, hint, style_of(role)), 1, style_of(role));
    }
}

/* The frame, or the line at the side of a low dashboard. */
static void draw_frame(struct app *a, const struct canvas *screen)
{
    struct canvas c = part(screen, &a->layout.frame);
    int inset = box_inset(c.width);
    struct canvas title = canvas_sub(&c, 0, inset, 1, c.width - 2 * inset);

    if (c.height > 0) {
        canvas_clear(&c, style_of(ROLE_TEXT)); /* a sheet or a menu may have covered it */
        box_line(&c, 0, BOX_TOP, ROLE_BORDER);
        box_sides(&c, 1, c.height - 2, ROLE_BORDER);
        box_title(&title, "chat", "", style_of(ROLE_TEXT));
    } else if (a->layout.is_beside) {
        c = part(screen, &a->layout.divider);
        canvas_vline(&c, 0, 0, c.height, style_of(ROLE_BORDER));
    }
}

/* ---- the menu of completions, over the lowest lines of the chat ---- */

/* Columns of names and of arguments; 0 arguments: there is no room for them. */
struct menu_columns {
    int name, args;
};

static const struct slash_command *command_of_match(size_t i)
{
    const char *text = edit_match(i);

    return text[0] == '/' ? command_find(text + 1, strlen(text + 1)) : NULL;
}

static struct menu_columns fit_menu(size_t n, int width)
{
    struct menu_columns c = { 0, 0 };

    for (size_t i = 0; i < n; i++) {
        const struct slash_command *row = command_of_match(i);
        int name = cluster_width(edit_match(i), strlen(edit_match(i)));
        int args = row == NULL ? 0 : (int)strlen(row->args);

        c.name = name > c.name ? name : c.name;
        c.args = args > c.args ? args : c.args;
    }
    if (c.name + c.args + 40 > width)
        c.args = 0;
    return c;
}

static void draw_match(const struct canvas *c, int y, size_t i, struct menu_columns columns)
{
    const struct slash_command *row = command_of_match(i);
    bool is_chosen = (long)i == edit_match_chosen();
    struct ui_style style = style_of(is_chosen ? ROLE_SELECTED : ROLE_STATUS);
    int x = columns.name + 3;

    canvas_blank(c, y, 0, row != NULL ? c->width : columns.name + 2, style);
    canvas_text(c, y, 1, is_chosen ? style : style_of(ROLE_STATUS_STRONG), edit_match(i));
    if (row == NULL)
        return;
    if (columns.args > 0) {
        canvas_text(c, y, x, style, row->args);
        x += columns.args + 2;
    }
    canvas_text(c, y, x, style, row->help);
}

static void draw_matches(struct app *a, const struct canvas *screen)
{
    size_t n = edit_match_count(), first = 0, shown;
    int bottom = a->layout.rule.height > 0 ? a->layout.rule.y : a->layout.input.y;
    int rows = (int)n < MAX_OFFERS ? (int)n : MAX_OFFERS;
    struct menu_columns columns = fit_menu(n, screen->width - 4);
    struct canvas c;

    if (n == 0 || a->mode == MODE_SHEET || bottom < 2)
        return;
    if (rows > bottom - 1)
        rows = bottom - 1;
    shown = (size_t)rows < n && rows > 1 ? (size_t)rows - 1 : (size_t)rows;
    if (edit_match_chosen() >= (long)shown)
        first = (size_t)edit_match_chosen() - shown + 1;
    c = canvas_sub(screen, bottom - rows, 2, rows, screen->width - 4);
    for (size_t i = 0; i < shown; i++)
        draw_match(&c, (int)i, first + i, columns);
    if (shown < (size_t)rows) {
        canvas_blank(&c, rows - 1, 0, c.width, style_of(ROLE_STATUS));
        canvas_printf(&c, rows - 1, 1, style_of(ROLE_STATUS), "%zu more; Up and Down walk",
                      n - shown);
    }
}

/* ---- all ---- */

static void draw_chat(struct app *a, const struct canvas *screen)
{
    struct canvas c = part(screen, &a->layout.chat);
    struct talk_progress progress;
    char line[200];
    double share = -1;
    bool ascii = term_is_ascii(a->term);

    if (talk_progress(a->talk, &progress)) {
        const struct mw_sample *s = &a->sample;

        if (s->state == MW_PREFILL && s->n_prompt > 0) /* the same as in the dashboard */
            progress = (struct talk_progress){ s->n_prompt_done, s->n_prompt,
                                               s->t_ns - s->t_start_ns };
        receipt_prefill(line, sizeof line, progress.done, progress.total, progress.ns, ascii,
                        &share);
        transcript_set_status(a->transcript, line, share);
    } else if (talk_state(a->talk) == TALK_LOADING || talk_state(a->talk) == TALK_SWITCHING) {
        transcript_set_status(a->transcript, "loading the model", -1);
    } else {
        transcript_set_status(a->transcript,
                              talk_can_continue(a->talk) ? TALK_CONTINUE_HINT : NULL, -1);
    }
    transcript_draw(a->transcript, &c);
}

static void draw_sheet(struct app *a, const struct canvas *screen)
{
    struct canvas chat = part(screen, &a->layout.chat), all;
    int rule = a->layout.rule.height > 0 ? a->layout.rule.y : a->layout.input.y;

    all = canvas_sub(screen, 0, 0, rule, screen->width);
    sheet_draw(a->sheet, &chat, &all);
}

static void draw_panes(struct app *a, const struct canvas *screen)
{
    struct canvas c;

    if (a->layout.chat.height > 0 && (a->dirt & DIRT_CHAT)) {
        draw_frame(a, screen);
        draw_chat(a, screen);
    }
    if (a->layout.dash.height > 0 && (a->dirt & DIRT_DASH)) {
        c = part(screen, &a->layout.dash);
        dash_draw(a->dash, &c);
    }
    if (a->mode == MODE_SHEET)
        draw_sheet(a, screen);
}

#define MODELS_HEIGHT                                                                          \
    30 /* at most, and at least this size: else the list covers the screen                     \
        */
#define MODELS_WIDTH  120
#define MODELS_LOW    20
#define MODELS_NARROW 90

/* The list of models, in a box in the middle as other sheets. */
static void draw_models(struct app *a, const struct canvas *screen, int *y, int *x)
{
    int room = a->layout.rule.height > 0 ? a->layout.rule.y : a->layout.input.y;
    int height = room - 2 < MODELS_HEIGHT ? room - 2 : MODELS_HEIGHT;
    int width = screen->width - 8 < MODELS_WIDTH ? screen->width - 8 : MODELS_WIDTH;
    struct canvas box = *screen, c;

    if (height >= MODELS_LOW && width >= MODELS_NARROW)
        box =
            canvas_sub(screen, (room - height) / 2, (screen->width - width) / 2, height, width);
    c = box.height < screen->height ? canvas_sub(&box, 0, 1, height - 1, width - 2) : box;
    canvas_clear(&box, style_of(ROLE_TEXT));
    canvas_box(&box, style_of(ROLE_BORDER));
    pick_draw(a->models.pick, &c, y, x);
    a->models.y = c.y;
    a->models.x = c.x;
    *y += c.y;
    *x += c.x;
}

void app_draw(struct app *a, int *cursor_y, int *cursor_x)
{
    struct canvas screen = term_canvas(a->term), c;
    struct input_line in = app_typed(a);
    enum ui_role role = ROLE_HINT;
    char hint[256];

    *cursor_y = -1;
    *cursor_x = 0;
    if (a->layout.is_too_small) {
        canvas_clear(&screen, style_of(ROLE_TEXT));
        canvas_text(&screen, 0, 0, style_of(ROLE_TEXT), "too small");
        return;
    }
    rule_text(a, hint, sizeof hint);
    if (hint[0] == '\0' && keys_text(a, hint, sizeof hint))
        role = ROLE_DIM;
    uncover_dash(a, hint);
    draw_panes(a, &screen);
    draw_matches(a, &screen);
    draw_rule(a, &screen, hint, role);
    c = part(&screen, &a->layout.input);
    input_draw(&in, &c, cursor_y, cursor_x);
    *cursor_y += c.y;
    *cursor_x += c.x;
    c = part(&screen, &a->layout.status);
    if (a->dirt & DIRT_STATUS)
        status_draw(&c, a->talk, &a->sample, edit_mode());
    if (a->mode == MODE_DASH || a->mode == MODE_SHEET)
        *cursor_y = -1;
    if (a->mode == MODE_MODELS)
        draw_models(a, &screen, cursor_y, cursor_x);
}
