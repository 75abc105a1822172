#include "config.h"

#include "ui/pick/pick.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/numbers.h"
#include "engine/base/utf8.h"
#include "ui/pick/details.h"
#include "ui/pick/wish.h"

#define CTRL(c)      ((c)-64)
#define CLICK_NS     ((uint64_t)500 * 1000 * 1000) /* between the clicks of a double click */
#define WIDE         96 /* columns from which the details are at the right */
#define TALL         20 /* rows from which the details are below */
#define DETAILS_ROWS 11
#define WHEEL_ROWS   3
#define WORK_NS      ((uint64_t)10 * 1000 * 1000) /* between two looks at the keys */

/* Rows of the canvas. */
#define TITLE_ROW  0
#define FILTER_ROW 1
#define LIST_ROW   2

struct pick {
    struct mw_models *models;
    struct mw_describer *describer;
    struct pick_wish *wish; /* NULL: the settings are fixed */
    /* The path of the open model in the list; NULL: none.  It is compared by its address, since
     * names of Ollama may have the same path. */
    const char *current;
    bool is_in_chat;     /* leaving it does not end the program */
    enum mw_models_order order;
    char filter[64];
    bool has_filter; /* "/" was typed, so that a filter can begin with q */
    size_t *shown;   /* indices of the models that the filter matches */
    size_t n_shown, cursor, top;
    int rows;    /* of the list, when it was drawn */
    size_t next; /* index to describe next */
    bool has_work;
    struct {
        uint64_t at_ns;
        size_t row;
    } click;
};

static const char *const orders[] = {
    [MW_BY_NAME] = "by name", [MW_BY_SIZE] = "largest first", [MW_BY_USE] = "last used first"
};
#define N_ORDER (sizeof orders / sizeof orders[0])

/* ---- the list ---- */

const struct mw_found *pick_chosen(const struct pick *p)
{
    return p->cursor < p->n_shown ? mw_models_at(p->models, p->shown[p->cursor]) : NULL;
}

const char *pick_target(const struct pick *p)
{
    const struct mw_found *f = pick_chosen(p);

    return f->manifest != NULL ? f->name : f->path;
}

/* List the models that the filter matches, with the cursor on the one that has this path, by its
 * address, if it is there. */
static void list(struct pick *p, const char *path)
{
    size_t n = mw_models_count(p->models);

    p->n_shown = p->cursor = 0;
    for (size_t i = 0; i < n; i++) {
        const struct mw_found *f = mw_models_at(p->models, i);

        if (!mw_found_has(f, p->filter))
            continue;
        if (f->path == path)
            p->cursor = p->n_shown;
        p->shown[p->n_shown++] = i;
    }
}

static void list_again(struct pick *p)
{
    const struct mw_found *f = pick_chosen(p);

    list(p, f != NULL ? f->path : NULL);
}

/* Returns the path in the list of the model that is open at path; NULL: it is not listed. */
static const char *find_current(const struct mw_models *m, const char *path, const char *name)
{
    const struct mw_found *any = mw_models_of(m, path), *f;

    for (size_t i = 0; any != NULL && i < mw_models_count(m); i++) {
        f = mw_models_at(m, i);
        if (strcmp(f->path, any->path) == 0 && strcmp(f->name, name) == 0)
            return f->path;
    }
    return any != NULL ? any->path : NULL;
}

struct pick *pick_new(const struct ui_models *models, const struct mw_options *o,
                      const char *current, const char *name, struct err *e)
{
    struct pick *p;

    if (models->places == NULL) {
        err_set(e, ERR_UNSUPPORTED, "the places of models are not known");
        return NULL;
    }
    p = calloc(1, sizeof *p);
    if (p == NULL) {
        err_memory(e, "the list of models");
        return NULL;
    }
    if (mw_models_find(&p->models, models->places, e) != 0 ||
        mw_describer_new(&p->describer, o, &models->describe, e) != 0) {
        pick_free(p);
        return NULL;
    }
    p->shown = malloc((mw_models_count(p->models) + 1) * sizeof *p->shown);
    if (p->shown == NULL) {
        err_memory(e, "the list of models");
        pick_free(p);
        return NULL;
    }
    p->is_in_chat = current != NULL;
    if (current != NULL)
        p->current = find_current(p->models, current, name);
    p->has_work = true;
    p->order = MW_BY_USE;
    mw_models_sort(p->models, p->order);
    list(p, p->current);
    return p;
}

void pick_free(struct pick *p)
{
    if (p == NULL)
        return;
    mw_describer_free(p->describer);
    mw_models_free(p->models);
    free(p->wish);
    free(p->shown);
    free(p);
}

void pick_set_wish(struct pick *p, const struct options *o, const char *kept_file)
{
    p->wish = malloc(sizeof *p->wish);
    if (p->wish != NULL)
        wish_begin(p->wish, o, kept_file);
}

void pick_take_wish(const struct pick *p, struct options *o)
{
    for (int id = 0; p->wish != NULL && id < N_OPTION; id++) {
        struct err ignored = ERR_INIT;
        char value[40];

        if (!p->wish->chosen[id])
            continue;
        if (id == OPT_KV)
            o->given[OPT_KV_K] = o->given[OPT_KV_V] = false;
        options_print(&p->wish->o, (enum option_id)id, value, sizeof value);
        o->on_line[id] = options_set(o, (enum option_id)id, value, &ignored) == 0;
    }
}

static void describe(struct pick *p, size_t i)
{
    struct options o;

    if (p->wish != NULL) {
        wish_of(p->wish, mw_models_at(p->models, i), &o);
        mw_describer_set(p->describer, &o.chat.engine);
    }
    mw_describe(p->describer, p->models, i);
}

/* Describe one more model.  Returns false once all are described. */
static bool describe_next(struct pick *p)
{
    const struct mw_found *f = pick_chosen(p);
    size_t n = mw_models_count(p->models);

    if (f != NULL && !f->is_described) {
        describe(p, p->shown[p->cursor]);
        return true;
    }
    while (p->next < n && mw_models_at(p->models, p->next)->is_described)
        p->next++;
    if (p->next == n)
        return false;
    describe(p, p->next);
    return true;
}

bool pick_has_work(const struct pick *p)
{
    return p->has_work;
}

bool pick_work(struct pick *p)
{
    uint64_t end = clock_ns() + WORK_NS;
    bool had_work = p->has_work;

    while (p->has_work && clock_ns() < end)
        p->has_work = describe_next(p);
    return had_work;
}

/* ---- keys ---- */

static void move(struct pick *p, int rows)
{
    if (p->n_shown == 0)
        return;
    if (rows < 0)
        p->cursor = p->cursor < (size_t)-rows ? 0 : p->cursor - (size_t)-rows;
    else
        p->cursor =
            p->cursor + (size_t)rows < p->n_shown ? p->cursor + (size_t)rows : p->n_shown - 1;
}

static void sort(struct pick *p, size_t step)
{
    const struct mw_found *f = pick_chosen(p);
    /* The path moves with the entry, but the entry does not stay in its place. */
    const char *path = f != NULL ? f->path : NULL;

    p->order = (enum mw_models_order)((p->order + step) % N_ORDER);
    mw_models_sort(p->models, p->order);
    p->next = 0;
    list(p, path);
}

/* Change a setting; every plan follows. */
static void change(struct pick *p, int step)
{
    const struct mw_found *f = pick_chosen(p);

    if (f == NULL || !wish_step(p->wish, f, step))
        return;
    mw_models_undescribe(p->models);
    p->next = 0;
}

static enum pick_result wish_key(struct pick *p, enum key_name name)
{
    switch (name) {
    case KEYS_F2: wish_next(p->wish); return PICK_STAYS;
    case KEYS_LEFT: change(p, -1); return PICK_STAYS;
    case KEYS_RIGHT: change(p, 1); return PICK_STAYS;
    default: return PICK_IGNORES;
    }
}

static enum pick_result named_key(struct pick *p, enum key_name name)
{
    int page = p->rows > 1 ? p->rows - 1 : 1;

    switch (name) {
    case KEYS_ESC: return PICK_LEAVES;
    case KEYS_UP: move(p, -1); break;
    case KEYS_DOWN: move(p, 1); break;
    case KEYS_PAGE_UP: move(p, -page); break;
    case KEYS_PAGE_DOWN: move(p, page); break;
    case KEYS_HOME: p->cursor = 0; break;
    case KEYS_END: move(p, (int)p->n_shown); break;
    case KEYS_SHIFT_TAB: sort(p, N_ORDER - 1); break;
    default: return p->wish != NULL ? wish_key(p, name) : PICK_IGNORES;
    }
    return PICK_STAYS;
}

static void type(struct pick *p, const struct key *key)
{
    size_t n = strlen(p->filter);

    if (n == 0 && !p->has_filter && key->ch == '/') {
        p->has_filter = true;
        return;
    }
    if (n + key->n >= sizeof p->filter)
        return;
    memcpy(p->filter + n, key->bytes, key->n);
    p->filter[n + key->n] = '\0';
    p->has_filter = true;
    list_again(p);
}

static void erase(struct pick *p, bool all)
{
    size_t n = strlen(p->filter);

    p->filter[all || n == 0 ? 0 : utf8_start(p->filter, 0, n - 1)] = '\0';
    p->has_filter = p->filter[0] != '\0';
    list_again(p);
}

static enum pick_result char_key(struct pick *p, const struct key *key)
{
    switch (key->ch) {
    case '\r':
    case '\n': return p->n_shown > 0 ? PICK_OPENS : PICK_STAYS;
    case '\t': sort(p, 1); return PICK_STAYS;
    case 0x7f:
    case '\b': erase(p, false); return PICK_STAYS;
    case CTRL('U'):
    case CTRL('W'): erase(p, true); return PICK_STAYS;
    case CTRL('P'): move(p, -1); return PICK_STAYS;
    case CTRL('N'): move(p, 1); return PICK_STAYS;
    case CTRL('C'):
    case CTRL('D'): return PICK_LEAVES;
    }
    if (key->ch < 0x20)
        return PICK_IGNORES;
    type(p, key);
    return PICK_STAYS;
}

/* A click highlights, a second one opens. */
static enum pick_result click(struct pick *p, const struct key *key)
{
    size_t row = p->top + (size_t)(key->mouse.y - LIST_ROW);
    uint64_t now = clock_ns();
    bool is_second;

    if (key->mouse.y < LIST_ROW || key->mouse.y >= LIST_ROW + p->rows || row >= p->n_shown)
        return PICK_STAYS;
    is_second = row == p->click.row && row == p->cursor && now - p->click.at_ns < CLICK_NS;
    p->cursor = row;
    p->click.row = row;
    p->click.at_ns = now;
    return is_second ? PICK_OPENS : PICK_STAYS;
}

static enum pick_result mouse_key(struct pick *p, const struct key *key)
{
    switch (key->mouse.what) {
    case MOUSE_WHEEL_UP: move(p, -WHEEL_ROWS); break;
    case MOUSE_WHEEL_DOWN: move(p, WHEEL_ROWS); break;
    case MOUSE_PRESS: return key->mouse.button == 0 ? click(p, key) : PICK_IGNORES;
    case MOUSE_RELEASE:
    case MOUSE_DRAG: return PICK_IGNORES;
    }
    return PICK_STAYS;
}

static enum pick_result any_key(struct pick *p, const struct key *key)
{
    switch (key->kind) {
    case KEYS_NAMED: return named_key(p, key->name);
    case KEYS_CHAR: return key->mods == 0 ? char_key(p, key) : PICK_IGNORES;
    case KEYS_MOUSE: return mouse_key(p, key);
    default: return PICK_IGNORES;
    }
}

enum pick_result pick_key(struct pick *p, const struct key *key)
{
    enum pick_result result = any_key(p, key);

    p->has_work |=
        result == PICK_STAYS; /* a setting or the highlighted model may have changed */
    return result;
}

/* ---- drawing ---- */

/* Widths of the columns of a list; 0: left out. */
struct columns {
    int name, type, fit, rate;
};

#define BYTES_WIDTH 10
#define MARK_WIDTH  2

static struct columns fit_columns(int width)
{
    struct columns c = { .name = width - MARK_WIDTH - BYTES_WIDTH - 1 };

    if (width >= 100)
        c.fit = 36;
    else if (width >= 46)
        c.fit = 12;
    if (width >= 60)
        c.type = 8;
    if (width >= 56 && width < 100) /* else the outlook names it */
        c.rate = width >= 72 ? 13 : 8;
    c.name -= c.rate;
    c.name -= (c.fit > 0 ? c.fit + 2 : 0) + (c.type > 0 ? c.type + 1 : 0);
    return c;
}

/* The outlook in a column that may be too narrow for its figures. */
static void short_outlook(const struct mw_found *f, int width, char *buf, size_t n)
{
    static const char *const words[] = { [MW_FIT_FITS] = "fits",
                                         [MW_FIT_STREAMS] = "streams",
                                         [MW_FIT_TOO_LARGE] = "too large",
                                         [MW_FIT_UNSUPPORTED] = "unsupported",
                                         [MW_FIT_UNKNOWN] = "not read" };

    if (!f->is_described)
        snprintf(buf, n, "...");
    else if (width < 30)
        snprintf(buf, n, "%s", words[f->fit]);
    else
        mw_fit_text(f, buf, n);
}

/* The predicted speed of answers, "~1.2 tok/s"; "?" after it: the limits are doubtful. */
static const char *rate_text(const struct mw_found *f, int width, char *buf, size_t n)
{
    char rate[24];

    buf[0] = '\0';
    if (f->plan.decode_tps > 0 && f->fit < MW_FIT_TOO_LARGE)
        snprintf(buf, n, "%s%s",
                 numbers_predicted(rate, sizeof rate, f->plan.decode_tps, f->plan.is_doubtful),
                 width > 8 ? " tok/s" : "");
    return buf;
}

/* Draw text in width columns; its end shows that it is cut.  Returns the columns drawn. */
static int draw_cut(const struct canvas *c, int y, int x, int width, struct ui_style style,
                    const char *text)
{
    size_t n = strlen(text);
    int drawn;

    if (cluster_width(text, n) <= width)
        return canvas_put(c, y, x, width, style, text, n);
    drawn = canvas_put(c, y, x, width - 2, style, text, n);
    return drawn + canvas_text(c, y, x + drawn, style, "..");
}

static void draw_row(const struct pick *p, const struct canvas *c, int y, size_t row)
{
    const struct mw_found *f = mw_models_at(p->models, p->shown[row]);
    struct columns columns = fit_columns(c->width);
    bool is_cursor = row == p->cursor;
    struct ui_style style = style_of(is_cursor ? ROLE_SELECTED : ROLE_TEXT);
    struct ui_style dim = style_of(is_cursor ? ROLE_SELECTED : ROLE_DIM);
    char text[512];
    int x = MARK_WIDTH;

    canvas_blank(c, y, 0, c->width, style);
    if (p->current == f->path)
        canvas_text(c, y, 0, style, "*");
    else if (is_cursor)
        canvas_text(c, y, 0, style, ">");
    draw_cut(c, y, x, columns.name, style, f->name);
    x += columns.name + BYTES_WIDTH;
    canvas_right(c, y, x, dim, units_size(text, sizeof text, f->file_bytes));
    x++;
    if (columns.type > 0) {
        canvas_put(c, y, x, columns.type, dim, f->type, strlen(f->type));
        x += columns.type + 1;
    }
    x += columns.rate;
    if (columns.rate > 0 && f->is_described)
        canvas_right(c, y, x, dim, rate_text(f, columns.rate, text, sizeof text));
    if (columns.fit == 0)
        return;
    short_outlook(f, columns.fit, text, sizeof text);
    draw_cut(c, y, x + 1, columns.fit, is_cursor ? style : style_of(outlook_role(f)), text);
}

static void draw_list(struct pick *p, const struct canvas *c)
{
    size_t rows = c->height > 0 ? (size_t)c->height : 0;

    p->rows = c->height;
    if (p->cursor < p->top)
        p->top = p->cursor;
    if (rows > 0 && p->cursor >= p->top + rows)
        p->top = p->cursor - rows + 1;
    if (p->top + rows > p->n_shown)
        p->top = p->n_shown > rows ? p->n_shown - rows : 0;
    for (size_t i = 0; i < rows && p->top + i < p->n_shown; i++)
        draw_row(p, c, (int)i, p->top + i);
    if (p->n_shown == 0)
        canvas_text(c, 0, MARK_WIDTH, style_of(ROLE_DIM), "no model matches; Ctrl-U clears");
}

static void draw_title(const struct pick *p, const struct canvas *c)
{
    char text[64];

    canvas_hline(c, TITLE_ROW, 0, c->width, style_of(ROLE_BORDER));
    canvas_text(c, TITLE_ROW, 1, style_with(ROLE_ACCENT, UI_BOLD), " models ");
    snprintf(text, sizeof text, " %zu of %zu, %s ", p->n_shown, mw_models_count(p->models),
             orders[p->order]);
    canvas_right(c, TITLE_ROW, c->width - 1, style_of(ROLE_HINT), text);
}

static void draw_filter(const struct pick *p, const struct canvas *c, int *y, int *x)
{
    int at = canvas_text(c, FILTER_ROW, 1, style_of(ROLE_PROMPT), "filter: ") + 1;

    *y = FILTER_ROW;
    *x = at + canvas_text(c, FILTER_ROW, at, style_of(ROLE_INPUT), p->filter);
    if (p->filter[0] == '\0' && (p->wish == NULL || c->width >= WIDE))
        at = canvas_text(c, FILTER_ROW, at + 1, style_of(ROLE_DIM), "type a part of a name") +
             at + 1;
    else
        at = *x;
    if (p->wish != NULL && pick_chosen(p) != NULL)
        wish_draw(p->wish, pick_chosen(p), c, FILTER_ROW, at + 2);
}

static void draw_keys(const struct pick *p, const struct canvas *c)
{
    static const char *const all[][4] = {
        { "Enter opens, Up Down move, Left Right change the setting, F2 the next one, Tab sorts, "
          "Esc quits",
          "Enter opens, Up Down move, Left Right F2: settings, Tab sorts, Esc quits",
          "Enter opens, Tab sorts, Esc quits", "" },
        { "Enter opens, Up Down PgUp PgDn Home End move, Tab sorts, Esc closes the list",
          "Enter opens, Up Down move, Tab sorts, Esc closes",
          "Enter opens, Tab sorts, Esc closes", "" },
    };
    const char *const *keys = all[p->is_in_chat];
    int y = c->height - 1, i = 0;

    canvas_blank(c, y, 0, c->width, style_of(ROLE_STATUS));
    while ((int)strlen(keys[i]) + 2 > c->width && keys[i][0] != '\0')
        i++;
    canvas_text(c, y, 1, style_of(ROLE_STATUS), keys[i]);
}

/* The outlook of the highlighted model in the rule above the keys, where nothing else fits. */
static void draw_rule(const struct pick *p, const struct canvas *c, int y)
{
    const struct mw_found *f = pick_chosen(p);
    char text[512];
    int x = 2;

    canvas_hline(c, y, 0, c->width, style_of(ROLE_BORDER));
    if (f == NULL || !f->is_described || c->width < 12)
        return;
    mw_fit_text(f, text, sizeof text);
    canvas_blank(c, y, 1, 1, style_of(ROLE_HINT));
    x += draw_cut(c, y, x, c->width - 4, style_of(ROLE_HINT), text);
    canvas_blank(c, y, x, 1, style_of(ROLE_HINT));
}

void pick_draw(struct pick *p, const struct canvas *c, int *y, int *x)
{
    int rows = c->height - LIST_ROW - 1, width = c->width;
    const struct mw_found *f = pick_chosen(p);
    struct canvas part;

    canvas_clear(c, style_of(ROLE_TEXT));
    if (width >= WIDE) {
        int details = width * 2 / 5 < 60 ? width * 2 / 5 : 60;

        width -= details + 1;
        part = canvas_sub(c, LIST_ROW, width + 2, rows, details - 2);
        canvas_vline(c, LIST_ROW, width, rows, style_of(ROLE_BORDER));
    } else if (c->height >= TALL) {
        rows -= DETAILS_ROWS + 1;
        canvas_hline(c, LIST_ROW + rows, 0, width, style_of(ROLE_BORDER));
        part = canvas_sub(c, LIST_ROW + rows + 1, 1, DETAILS_ROWS, width - 2);
    } else {
        rows--;
        draw_rule(p, c, LIST_ROW + rows);
        part = canvas_sub(c, 0, 0, 0, 0);
    }
    if (f != NULL && part.height > 0)
        details_draw(&part, f);
    part = canvas_sub(c, LIST_ROW, 0, rows, width);
    draw_list(p, &part);
    draw_title(p, c);
    draw_filter(p, c, y, x);
    draw_keys(p, c);
}
