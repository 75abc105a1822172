/* Keys: each goes to the mode that the screen is in. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "ui/app/app.h"
#include "ui/app/editor.h"
#include "ui/dash/dash.h"
#include "ui/talk/commands.h"
#include "ui/talk/files.h"
#include "ui/words/clean.h"

#define LONG_PASTE    ((size_t)8192) /* bytes from which a paste is attached */
#define COST_PAUSE_NS ((uint64_t)150 * 1000 * 1000)
#define LEAVE_NS      ((uint64_t)2000 * 1000 * 1000)
#define CTRL(c)       ((c)-64)

/* ---- modes ---- */

/* Where the box cut a wide character in two, ncurses (6.4) leaves cells of the box on the
 * screen, unless it sends the rows again. */
static void uncover(struct app *a, const struct sheet *s)
{
    int y, n;

    sheet_rows(s, &y, &n);
    term_redraw_rows(a->term, y, n);
}

/* A question that closes without an answer is a decision, too. */
static void say_dropped(struct app *a, const struct sheet *s)
{
    if (sheet_drop(s)[0] != '\0')
        talk_notice(a->talk, "%s", sheet_drop(s));
}

static void close_sheet(struct app *a)
{
    struct sheet *s = a->sheet;

    if (s == NULL)
        return;
    uncover(a, s);
    a->sheet = NULL;
    say_dropped(a, s);
    sheet_free(s);
}

void app_enter(struct app *a, enum app_mode mode)
{
    if (a->mode == MODE_DASH) {
        dash_set_cursor(a->dash, -1);
        dash_wall_leave(a->dash);
        dash_panels(a->dash)->chosen = -1;
    }
    if (a->mode == MODE_PICK)
        transcript_turn_end(a->transcript);
    close_sheet(a);
    app_leave_models(a);
    a->drag = DRAG_NOTHING;
    a->mode = mode;
    app_dirty(a, DIRT_ALL | DIRT_LARGE);
}

void app_open_sheet(struct app *a, struct sheet *s)
{
    app_enter(a, MODE_SHEET);
    a->sheet = s;
    a->wall.asks_at = 0;
}

void app_set_view(struct app *a, enum ui_view view)
{
    a->ui.view = view;
    if (view == UI_VIEW_CHAT && a->mode == MODE_DASH)
        app_enter(a, MODE_LINE);
    app_dirty(a, DIRT_ALL | DIRT_LARGE);
    app_layout(a);
}

static void next_view(struct app *a)
{
    static const enum ui_view after[] = { [UI_VIEW_BOTH] = UI_VIEW_DASH,
                                          [UI_VIEW_DASH] = UI_VIEW_CHAT,
                                          [UI_VIEW_CHAT] = UI_VIEW_BOTH };

    app_set_view(a, after[a->ui.view]);
}

void app_set_mouse(struct app *a, bool on)
{
    a->ui.no_mouse = !on;
    term_set_mouse(a->term, on);
    keys_set_mouse(a->keys, on);
    app_hint(a, on ? "mouse captured; hold Shift for the terminal's own selection"
                   : "mouse released (F6 captures it again)");
}

static bool can_stop(const struct app *a)
{
    return talk_is_answering(a->talk) && talk_state(a->talk) != TALK_STOPPING;
}

void app_stop_or_leave(struct app *a)
{
    uint64_t now = clock_ns();

    if (!edit_is_empty() || edit_is_searching()) {
        edit_clear();
        a->leave_ns = 0;
    } else if (talk_shell(a->talk) != NULL) {
        talk_shell_stop(a->talk);
        a->leave_ns = 0;
    } else if (can_stop(a)) {
        talk_stop(a->talk);
        a->leave_ns = 0;
    } else if (talk_state(a->talk) == TALK_STOPPING) {
        app_hint(a, "stopping the answer; Ctrl-D quits");
    } else if (now < a->leave_ns) {
        a->is_leaving = saving_may_leave(talk_saving(a->talk));
    } else {
        a->leave_ns = now + LEAVE_NS;
        app_hint(a, "Ctrl-C again or Ctrl-D quits");
    }
    app_dirty(a, DIRT_INPUT);
}

static void escape(struct app *a)
{
    if (talk_shell(a->talk) != NULL)
        talk_shell_stop(a->talk);
    else if (can_stop(a))
        talk_stop(a->talk);
    else if (transcript_is_searching(a->transcript))
        transcript_search(a->transcript, "");
    else if (transcript_has_selection(a->transcript))
        transcript_unselect(a->transcript);
    else
        transcript_end(a->transcript);
    app_dirty(a, DIRT_CHAT | DIRT_INPUT);
}

/* Enter a line.  The first reply to a command repeats the command.  A sheet replies after
 * Enter. */
void app_command(struct app *a, const char *line)
{
    a->echo[0] = '\0';
    if (line[0] == '/' && line[1] != '/') {
        size_t n = strlen(line);

        while (n > 0 && line[n - 1] == ' ')
            n--;
        clean_line(a->echo, sizeof a->echo, line, n);
    }
    command_enter(a->talk, line);
    if (a->mode != MODE_SHEET)
        a->echo[0] = '\0';
}

/* ---- keys with a meaning of their own ---- */

static bool scroll_key(struct app *a, const struct key *key)
{
    bool free_line = edit_is_empty() || (key->mods & KEYS_CTRL) != 0;

    switch (key->name) {
    case KEYS_PAGE_UP: transcript_page(a->transcript, -1); break;
    case KEYS_PAGE_DOWN: transcript_page(a->transcript, 1); break;
    case KEYS_UP:
        if ((key->mods & KEYS_SHIFT) == 0)
            return false;
        transcript_scroll(a->transcript, -1);
        break;
    case KEYS_DOWN:
        if ((key->mods & KEYS_SHIFT) == 0)
            return false;
        transcript_scroll(a->transcript, 1);
        break;
    case KEYS_LEFT:
    case KEYS_RIGHT:
        if (!edit_is_empty() || key->mods != 0 ||
            !talk_flip(a->talk, key->name == KEYS_LEFT ? -1 : 1))
            return false;
        break;
    case KEYS_HOME:
        if (!free_line)
            return false;
        transcript_home(a->transcript);
        break;
    case KEYS_END:
        if (!free_line)
            return false;
        transcript_search(a->transcript, ""); /* n is typed again */
        transcript_end(a->transcript);
        break;
    default: return false;
    }
    app_dirty(a, DIRT_CHAT | DIRT_INPUT);
    return true;
}

/* Run the command that the verdict names. */
static void follow_advice(struct app *a)
{
    struct mw_diagnosis d;
    char setting[40], text[MW_DIAGNOSIS_TEXT];

    if (talk_has_server(a->talk)) {
        app_hint(a, "what limits a server cannot be changed from here");
        return;
    }
    mw_diagnosis_of_sample(&a->sample, &d);
    if (mw_diagnosis_command(&d, setting, sizeof setting)[0] != '\0') {
        snprintf(text, sizeof text, "/%s", setting);
        app_command(a, text);
        return;
    }
    if (mw_diagnosis_advice(&d, "", text, sizeof text)[0] == '\0') {
        talk_diagnose_now(a->talk, &d); /* a sample does not know whether limits are doubtful */
        mw_diagnosis_why_not(&d, text, sizeof text);
    }
    app_hint(a, "%s", text);
}

static bool function_key(struct app *a, const struct key *key)
{
    switch (key->name) {
    case KEYS_F1:
        command_enter(a->talk, a->sheet != NULL ? sheet_help(a->sheet) : "/help");
        break;
    case KEYS_F2: next_view(a); break;
    case KEYS_F3: transcript_set_raw(a->transcript, !transcript_is_raw(a->transcript)); break;
    case KEYS_F4:
        transcript_set_thinking(a->transcript, !transcript_shows_thinking(a->transcript));
        break;
    case KEYS_F5:
        transcript_set_receipts(a->transcript, !transcript_shows_receipts(a->transcript));
        break;
    case KEYS_F6: app_set_mouse(a, a->ui.no_mouse); break;
    case KEYS_F7: app_copy_part(a, false); break;
    case KEYS_F8: app_copy_part(a, true); break;
    case KEYS_F9: app_pick_turn(a); break;
    case KEYS_F10: follow_advice(a); break;
    default: return false;
    }
    app_dirty(a, DIRT_CHAT | DIRT_INPUT);
    return true;
}

/* A box over the screen hides what the other keys would change.  F6 is about the terminal. */
static bool has_function_key(const struct app *a, enum key_name name)
{
    switch (a->mode) {
    case MODE_LINE:
    case MODE_DASH: return true;
    case MODE_PICK: return name == KEYS_F9 || name == KEYS_F6;
    case MODE_SHEET:
        return name == KEYS_F6 || (name == KEYS_F1 && sheet_help(a->sheet) != NULL);
    case MODE_FIND:
    case MODE_MODELS: break;
    }
    return name == KEYS_F6;
}

/* Keys of the screen as a whole, which every mode has. */
static bool screen_key(struct app *a, const struct key *key)
{
    if (key->kind != KEYS_CHAR || key->mods != 0)
        return false;
    switch (key->ch) {
    case CTRL('L'):
        term_redraw(a->term);
        app_dirty(a, DIRT_ALL | DIRT_LARGE);
        return true;
    case CTRL('Z'):
        term_stop(a->term);
        app_layout(a);
        app_dirty(a, DIRT_ALL | DIRT_LARGE);
        return true;
    case CTRL('\\'): a->is_leaving = true; return true;
    }
    return false;
}

static bool control_key(struct app *a, const struct key *key)
{
    if (key->kind != KEYS_CHAR)
        return false;
    if (key->mods == KEYS_ALT && (key->ch == ',' || key->ch == '.')) {
        a->permille = layout_step(&a->layout, key->ch == ',' ? 1 : -1);
        app_set_view(a, a->ui.view);
        app_save_panels(a);
        return true;
    }
    if (key->mods != 0)
        return false;
    switch (key->ch) {
    case CTRL('C'): app_stop_or_leave(a); return true;
    case CTRL('T'): next_view(a); return true;
    case CTRL('S'):
    case CTRL('Q'): return !edit_is_searching();
    case CTRL('D'):
        if (!edit_is_empty())
            return false;
        a->is_leaving = saving_may_leave(talk_saving(a->talk));
        return true;
    }
    return false;
}

/* ---- the line ---- */

/* Someone who wants to leave has no use for an answer: ask once before "exit" is sent. */
static bool asks_to_leave(struct app *a, const char *line)
{
    bool asks = command_means_to_leave(line) && !a->has_asked_to_leave;

    a->has_asked_to_leave = asks;
    if (!asks)
        return false;
    edit_set(line);
    app_hint(a, "/quit or Ctrl-D leaves; Enter again sends \"%s\" to the model", line);
    return true;
}

static void submit(struct app *a)
{
    struct err e = ERR_INIT;
    char *line = strdup(edit_sent());

    edit_clear();
    if (line == NULL || asks_to_leave(a, line)) {
        free(line);
        return;
    }
    if (history_add(a->history, line, &e) != 0)
        talk_report(a->talk, &e);
    edit_clear(); /* the history has one more entry now */
    a->leave_ns = 0;
    app_command(a, line);
    free(line);
}

void app_price(struct app *a)
{
    a->cost.text[0] = '\0';
    a->cost.due_ns =
        !edit_is_empty() || talk_outbox(a->talk)->n_file > 0 ? clock_ns() + COST_PAUSE_NS : 0;
    app_dirty(a, DIRT_INPUT | DIRT_STATUS);
}

static void edit_in_editor(struct app *a)
{
    struct err e = ERR_INIT;
    char *text = editor_run(a->term, edit_text(), &e);

    if (text != NULL)
        edit_set(text);
    else
        app_hint(a, "%s", e.what);
    free(text);
    app_dirty(a, DIRT_ALL | DIRT_LARGE);
}

/* Does the line end in the name of a command, or of a file after "@"? */
static bool offers_words(void)
{
    const char *text = edit_text();
    bool is_quoted;

    if (text[0] == '/')
        return text[1] != '/' && strpbrk(text, " \n") == NULL;
    return files_typed(text, strlen(text), &is_quoted) > 0;
}

static void line_key(struct app *a, const struct key *key)
{
    bool had_matches = edit_match_count() > 0;
    /* A user may have bound the sequence of this terminal. */
    bool is_raw =
        key->raw[0] == '\033' && key->n_raw > 1 && edit_is_bound(key->raw, key->n_raw);

    switch (is_raw ? edit_key(key->raw, key->n_raw) : edit_key(key->bytes, key->n)) {
    case EDIT_SUBMIT: submit(a); break;
    case EDIT_EOF: a->is_leaving = saving_may_leave(talk_saving(a->talk)); break;
    case EDIT_EDITOR: edit_in_editor(a); break;
    case EDIT_NOTHING:
    case EDIT_UNKNOWN: break;
    }
    if (key->kind == KEYS_CHAR && edit_match_count() == 0 && offers_words())
        edit_offer();
    app_price(a);
    if (had_matches || edit_match_count() > 0)
        app_dirty(a, DIRT_CHAT | DIRT_DASH);
}

/* Keys of the menu of completions: arrows walk, Enter and Tab take the highlighted row. */
static bool menu_key(struct app *a, const struct key *key)
{
    if (edit_match_count() == 0 || key->mods != 0)
        return false;
    if (key->kind == KEYS_NAMED && (key->name == KEYS_UP || key->name == KEYS_DOWN))
        edit_match_move(key->name == KEYS_DOWN ? 1 : -1);
    else if (key->kind == KEYS_NAMED && key->name == KEYS_ESC)
        edit_match_close();
    else if (key->kind == KEYS_CHAR && (key->ch == '\r' || key->ch == '\t') &&
             edit_match_chosen() >= 0)
        edit_match_take();
    else
        return false;
    app_price(a);
    app_dirty(a, DIRT_CHAT | DIRT_DASH);
    return true;
}

/* A long paste is attached like a file; a short one goes into the line. */
static void paste(struct app *a, const struct key *key)
{
    char *text = malloc(key->n * 3 + 1);
    size_t n;

    if (text == NULL)
        return;
    n = clean_controls(text, (const char *)key->bytes, key->n);
    if (n > talk_text_room(a->talk)) {
        app_hint(a, "the pasted text of %zu bytes is too long for the context", n);
    } else if (n > LONG_PASTE) {
        app_hint(a, "the pasted text of %zu bytes goes with the message; /file - removes it",
                 n);
        if (!talk_attach(a->talk, "pasted text", text, n))
            app_hint(a, "no more than %d texts go with a message", OUTBOX_MAX_FILES);
        text = NULL;
    } else {
        edit_insert(text);
    }
    free(text);
    app_price(a);
}

/* ---- F9: go back to an earlier message ---- */

#define PICK_HINT "Up, Down: choose a message   Enter: go back to it   Esc: close"

void app_pick_turn(struct app *a)
{
    bool has_turn;

    if (a->mode != MODE_PICK)
        app_enter(a, MODE_PICK);
    has_turn = transcript_turn(a->transcript, -1);
    if (!has_turn)
        app_enter(a, MODE_LINE);
    app_hint(a, has_turn ? PICK_HINT : "there is nothing to go back to");
    app_dirty(a, DIRT_CHAT);
}

static void take_turn(struct app *a)
{
    long keep = transcript_turn_keep(a->transcript);

    app_enter(a, MODE_LINE);
    if (talk_is_answering(a->talk)) {
        app_hint(a, "an answer is being written: stop it first (Esc)");
    } else if (talk_state(a->talk) == TALK_SWITCHING) {
        app_hint(a, "another model is being opened: wait until it is loaded");
    } else if (keep >= 0) {
        talk_take_back(a->talk, (size_t)keep); /* with its files */
        transcript_end(a->transcript);
    }
}

static bool turn_key(struct app *a, const struct key *key)
{
    app_dirty(a, DIRT_CHAT | DIRT_INPUT);
    if (key->kind == KEYS_NAMED && (key->name == KEYS_UP || key->name == KEYS_DOWN)) {
        transcript_turn(a->transcript, key->name == KEYS_UP ? -1 : 1);
        app_hint(a, PICK_HINT);
    } else if (key->kind == KEYS_CHAR && key->ch == '\r') {
        take_turn(a);
    } else {
        bool closes = (key->kind == KEYS_NAMED && key->name == KEYS_ESC) ||
                      (key->kind == KEYS_CHAR && key->ch == CTRL('C'));

        app_enter(a, MODE_LINE);
        return closes;
    }
    return true;
}

/* ---- the dashboard ---- */

static bool dash_key(struct app *a, const struct key *key)
{
    app_dirty(a, DIRT_DASH);
    if (app_wall_key(a, key) || app_panels_key(a, key))
        return true;
    if (key->kind == KEYS_NAMED)
        switch (key->name) {
        case KEYS_UP: dash_move_cursor(a->dash, -1); return true;
        case KEYS_DOWN: dash_move_cursor(a->dash, 1); return true;
        case KEYS_PAGE_UP: dash_move_cursor(a->dash, -10); return true;
        case KEYS_PAGE_DOWN: dash_move_cursor(a->dash, 10); return true;
        case KEYS_ESC: app_enter(a, MODE_LINE); return true;
        default: break;
        }
    if (key->kind == KEYS_CHAR && key->mods == 0 && key->ch == '?') {
        command_enter(a->talk, "/help dashboard");
        return true;
    }
    if (key->kind == KEYS_CHAR && key->mods == 0 && (key->ch == 'k' || key->ch == 'j')) {
        dash_move_cursor(a->dash, key->ch == 'k' ? -1 : 1);
        return true;
    }
    app_enter(a, MODE_LINE);
    return key->kind == KEYS_CHAR && key->ch == '\t';
}

/* Tab on an empty line. */
static bool enter_dash(struct app *a, const struct key *key)
{
    if (key->kind != KEYS_CHAR || key->ch != '\t' || key->mods != 0 || !edit_is_empty() ||
        a->layout.dash.height == 0)
        return false;
    if (dash_has_server(a->dash)) {
        app_hint(a, "the dashboard of a server has no panels to choose");
        return true;
    }
    app_enter(a, MODE_DASH);
    if (dash_cursor(a->dash) < 0)
        dash_set_cursor(a->dash, 0);
    app_choose_panel(a);
    return true;
}

/* ---- the mode takes the key ---- */

static bool sheet_mode_key(struct app *a, const struct key *key)
{
    struct sheet *s = a->sheet;
    enum sheet_result result = sheet_key(s, key);
    uint64_t asked_at = a->wall.asks_at;

    app_dirty(a, DIRT_ALL);
    if (result == SHEET_STAYS)
        return true;
    uncover(a, s);
    a->sheet = NULL; /* its action may open another sheet */
    app_enter(a, MODE_LINE);
    if (result == SHEET_ENTERS)
        sheet_enter(s);
    if (result == SHEET_TYPED)
        say_dropped(a, s);
    if (result != SHEET_ENTERS)
        a->echo[0] = '\0';
    if (result == SHEET_CLOSES)
        app_wall_return(a, asked_at);
    sheet_free(s);
    return result != SHEET_TYPED;
}

/* During the tour: go on, or end it.  Keys that scroll or type do what they always do, and
 * typing ends the tour. */
static bool tour_key(struct app *a, const struct key *key)
{
    bool is_char = key->kind == KEYS_CHAR && key->mods == 0;

    if (a->tour == NULL || !edit_is_empty())
        return false;
    if (key->kind == KEYS_NAMED && key->name == KEYS_ESC) {
        tour_end(a->tour);
        return true;
    }
    if (is_char && key->ch == CTRL('C'))
        tour_end(a->tour);
    if ((is_char && (key->ch == ' ' || key->ch == '\r' || key->ch == '\t')) ||
        (key->kind == KEYS_NAMED && key->mods == 0 && key->name >= KEYS_UP &&
         key->name <= KEYS_LEFT)) {
        tour_next(a->tour);
        return true;
    }
    return false;
}

static bool line_mode_key(struct app *a, const struct key *key)
{
    if (tour_key(a, key))
        return true;
    if (menu_key(a, key) || enter_dash(a, key))
        return true;
    if (key->kind == KEYS_NAMED && key->name == KEYS_ESC && !edit_wants_esc()) {
        escape(a);
    } else if (key->kind == KEYS_NAMED && key->name == KEYS_NEWLINE) {
        edit_insert("\n");
        app_price(a);
    } else if (!(key->kind == KEYS_NAMED && scroll_key(a, key)) && !control_key(a, key) &&
               !app_searches(a, key)) {
        line_key(a, key);
    }
    return true;
}

/* The handler of each mode.  false: the mode was left, and the key is for the line. */
static bool (*const mode_keys[])(struct app *a, const struct key *key) = {
    [MODE_LINE] = line_mode_key, [MODE_DASH] = dash_key,        [MODE_FIND] = app_find_key,
    [MODE_PICK] = turn_key,      [MODE_SHEET] = sheet_mode_key, [MODE_MODELS] = app_models_key,
};

/* Everything that is not a key on the keyboard; false: it is one. */
static bool other_input(struct app *a, const struct key *key)
{
    switch (key->kind) {
    case KEYS_MOUSE:
        if (a->mode == MODE_MODELS)
            app_models_key(a, key);
        else
            app_mouse(a, key);
        return true;
    case KEYS_FOCUS_IN:
    case KEYS_FOCUS_OUT: a->has_focus = key->kind == KEYS_FOCUS_IN; return true;
    case KEYS_REPLY:
        if (term_take_reply(a->term, key))
            app_dirty(a, DIRT_ALL | DIRT_LARGE);
        return true;
    case KEYS_UNKNOWN: return true;
    case KEYS_PASTE:
        if (a->mode == MODE_SHEET)
            app_enter(a, MODE_LINE);
        if (a->mode != MODE_MODELS)
            paste(a, key);
        return true;
    case KEYS_PASTE_LONG:
        app_hint(a, "the pasted text of %zu bytes is too long", key->n);
        return true;
    case KEYS_PASTE_BROKEN:
        app_hint(a, "Ctrl-C cancelled a paste of %zu bytes", key->n);
        return true;
    case KEYS_CHAR:
    case KEYS_NAMED: break;
    }
    return false;
}

/* Run a function key that the mode has. */
static bool mode_function_key(struct app *a, const struct key *key)
{
    return key->kind == KEYS_NAMED && key->name >= KEYS_F1 && has_function_key(a, key->name) &&
           function_key(a, key);
}

void app_key(struct app *a, const struct key *key)
{
    if (other_input(a, key))
        return;
    if (a->hint[0] != '\0') {
        a->hint[0] = '\0';
        app_dirty(a, DIRT_INPUT);
    }
    a->has_asked_to_leave = a->has_asked_to_leave && key->kind == KEYS_CHAR && key->ch == '\r';
    if (screen_key(a, key) || mode_function_key(a, key))
        return;
    if (!mode_keys[a->mode](a, key) && !mode_function_key(a, key))
        line_mode_key(a, key);
}
