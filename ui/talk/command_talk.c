/* Commands about the conversation, its files and copies. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/store/store.h"
#include "ui/talk/command_list.h"
#include "ui/talk/commands.h"
#include "ui/text/sheet.h"
#include "ui/words/clean.h"
#include "ui/words/path.h"

bool command_is_busy(struct talk *t)
{
    if (talk_is_answering(t))
        talk_error(t, "an answer is being written: stop it first (%s)",
                   talk_has_screen(t) ? "Esc" : "Ctrl-C");
    else if (talk_state(t) == TALK_SWITCHING)
        talk_error(t, "another model is being opened: wait until it is loaded");
    return talk_is_answering(t) || talk_state(t) == TALK_SWITCHING;
}

/* Can the conversation not be changed yet?  Messages may wait for a model that is loaded. */
static bool is_too_early(struct talk *t)
{
    bool is_early = talk_state(t) == TALK_LOADING && talk_outbox(t)->n_queue > 0;

    if (is_early)
        talk_error(t, "a message waits for the model: enter this after its answer");
    return is_early || command_is_busy(t);
}

void run_quit(struct talk *t, const char *args)
{
    (void)args;
    if (saving_may_leave(talk_saving(t)))
        talk_quit(t);
}

void run_clear(struct talk *t, const char *args)
{
    (void)args;
    if (command_is_busy(t))
        return;
    talk_clear(t);
    if (saving_path(talk_saving(t))[0] == '\0')
        talk_notice(t, "a new chat; /chats lists the others");
}

void run_retry(struct talk *t, const char *args)
{
    (void)args;
    if (!is_too_early(t))
        talk_retry(t);
}

void run_continue(struct talk *t, const char *args)
{
    (void)args;
    if (!is_too_early(t))
        talk_continue(t);
}

void run_answer(struct talk *t, const char *args)
{
    if (is_too_early(t))
        return;
    if (args[0] != '\0' && strcmp(args, "next") != 0 && strcmp(args, "back") != 0)
        talk_error(t, "/answer next or /answer back");
    else if (!talk_flip(t, strcmp(args, "back") == 0 ? -1 : 1))
        talk_error(t, "there is only one answer; /retry makes another");
}

void run_compact(struct talk *t, const char *args)
{
    uint64_t n = 1;

    if (is_too_early(t))
        return;
    if (args[0] != '\0' && !units_parse_whole(args, false, 0, UINT32_MAX, &n))
        talk_error(t, "\"%s\" is not a number of exchanges; /compact 2 keeps the last two", args);
    else
        talk_compact(t, n, false);
}

void run_undo(struct talk *t, const char *args)
{
    long last = ledger_user(talk_ledger(t), 1);

    (void)args;
    if (is_too_early(t))
        return;
    if (talk_can_undo_summary(t))
        talk_undo_summary(t);
    else if (last < 0)
        talk_error(t, "there is nothing to take back");
    else
        talk_take_back(t, (size_t)last);
}

/* ---- sheets whose choices are command lines ---- */

#define MAX_CHOICES 200

struct choices {
    struct talk *t;
    struct sheet *sheet;
    char *line[MAX_CHOICES];
    size_t n;
};

static void run_choice(void *ctx, long row)
{
    const struct choices *c = ctx;

    if (row >= 0 && (size_t)row < c->n)
        command_enter(c->t, c->line[row]);
}

static void release_choices(void *ctx)
{
    struct choices *c = ctx;

    while (c->n > 0)
        free(c->line[--c->n]);
    free(c);
}

/* A sheet to be filled; it owns the choices.  NULL: no memory. */
static struct choices *choices_new(struct talk *t, const char *title, const char *hint)
{
    struct choices *c = calloc(1, sizeof *c);

    if (c == NULL)
        return NULL;
    c->t = t;
    c->sheet = sheet_new(title, hint);
    if (c->sheet == NULL) {
        free(c);
        return NULL;
    }
    sheet_on_enter(c->sheet, run_choice, release_choices, c);
    return c;
}

/* Enter on the last line of the sheet runs this command. */
__attribute__((format(printf, 2, 3))) static void choice(struct choices *c, const char *fmt,
                                                         ...)
{
    char line[600];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (c->n == MAX_CHOICES || (c->line[c->n] = strdup(line)) == NULL)
        return;
    sheet_choice(c->sheet, (long)c->n++);
}

/* ---- going back ---- */

static void list_turns(struct talk *t)
{
    struct choices *c = choices_new(t, "Go back to a message", "Enter: go there   Esc: close");
    long message;

    if (c == NULL)
        return;
    for (unsigned n = 1; n <= MAX_CHOICES && (message = ledger_user(talk_ledger(t), n)) >= 0;
         n++) {
        char *text = talk_text_of(t, (size_t)message);
        char line[80];

        clean_line(line, sizeof line, text == NULL ? "" : text,
                   text == NULL ? 0 : strnlen(text, 300));
        free(text);
        sheet_line(c->sheet, ROLE_TEXT, "%3u  %s", n, line);
        choice(c, "/rewind %u", n);
    }
    talk_show(t, c->sheet);
}

void run_rewind(struct talk *t, const char *args)
{
    const struct ledger *l = talk_ledger(t);
    struct err e = ERR_INIT;
    unsigned last = 0;
    uint64_t n = 0;

    if (is_too_early(t))
        return;
    while (ledger_user(l, last + 1) >= 0)
        last++;
    if (last == 0) {
        talk_error(t, "there is nothing to go back to");
    } else if (args[0] == '\0') {
        if (talk_act(t, ACTION_PICK_TURN, "", &e) != 0)
            list_turns(t);
    } else if (!units_parse_whole(args, false, 1, last, &n)) {
        talk_error(t,
                   "\"%s\" is not the number of a message: your last one is 1, your first "
                   "one is %u",
                   args, last);
    } else {
        talk_take_back(t, (size_t)ledger_user(l, n));
    }
}

/* ---- copies in files ---- */

/* again: the command that may replace a file. */
static void export_to(struct talk *t, const char *args, bool replaces, const char *again)
{
    const struct saving *saving = talk_saving(t);
    struct err e = ERR_INIT;
    char path[4096];
    struct mw_output file = { path, replaces, again };

    path_typed(path, sizeof path, args, false);
    if (saving->store == NULL)
        talk_error(t, "there was not enough memory to keep this chat, so it cannot be written");
    else if (saving_is_file(saving, path))
        talk_error(t, "%s is where this chat is saved; name another file", path);
    else if (mw_output_check(talk_model(t), &file, &e) != 0 ||
             store_export(saving->store, path, store_format_of(path), replaces, &e) != 0)
        talk_report(t, &e);
    else if (store_oldest(saving->store) > 0)
        talk_notice(t,
                    "written to %s; the oldest %u messages are missing, because this chat is "
                    "not saved and has become long",
                    path, store_missing(saving->store));
    else
        talk_notice(t, "written to %s", path);
}

void run_export(struct talk *t, const char *args, bool replaces)
{
    if (args[0] == '\0')
        talk_error(t, "/export FILE (Markdown, or JSON if it ends in .json)");
    else
        export_to(t, args, replaces, "/export! FILE");
}

void run_save(struct talk *t, const char *args, bool replaces)
{
    struct saving *saving = talk_saving(t);

    if (args[0] != '\0')
        export_to(t, args, replaces, "/save! FILE");
    else if (talk_settings(t)->options->no_save && saving_path(saving)[0] == '\0')
        talk_notice(t, "this chat is not saved (--no-save); /save FILE writes it to a file");
    else if (!saving_retry(saving))
        talk_error(t, "saving is suspended: %s. /save FILE writes the chat somewhere else",
                   saving->why);
    else if (saving_path(saving)[0] != '\0')
        talk_notice(t, "saved as you go, in %s", saving_path(saving));
    else
        talk_notice(t, "nothing to save yet; chats are saved as you go");
}

void run_copy(struct talk *t, const char *args)
{
    struct err e = ERR_INIT;

    if (args[0] != '\0' && strcmp(args, "code") != 0 && strcmp(args, "answer") != 0)
        talk_error(t, "/copy answer or /copy code");
    else if (talk_act(t, ACTION_COPY, args, &e) != 0)
        talk_report(t, &e);
}

void run_find(struct talk *t, const char *args)
{
    struct err e = ERR_INIT;

    if (talk_act(t, ACTION_FIND, args, &e) != 0)
        talk_report(t, &e);
}

void run_forget(struct talk *t, const char *args)
{
    struct err e = ERR_INIT;

    (void)args;
    if (talk_forget_settings(t, &e) != 0)
        talk_report(t, &e);
    else
        talk_notice(t, "the settings of this chat and of its model are forgotten; the next "
                       "start takes the defaults");
}

/* The path that a path or a name means, and what is beside the weights of that model. */
static int find_model(struct talk *t, const char *name, char *path, size_t n,
                      struct mw_beside **beside, struct err *e)
{
    const struct mw_places *places = talk_settings(t)->models.places;
    char expanded[4096];

    *beside = NULL;
    path_typed(expanded, sizeof expanded, name, true);
    if (places != NULL)
        return mw_models_resolve(places, expanded, path, n, beside, NULL, e);
    snprintf(path, n, "%s", expanded);
    return 0;
}

/* Report the parts beside the weights of a model that a running chat opens. */
static void report_beside(struct talk *t, const struct mw_beside *b)
{
    bool has_defaults = b->system != NULL || b->n_param > 0;
    unsigned lost = b->parts & ~(unsigned)MW_PART_TEMPLATE;
    char words[100];

    if (has_defaults)
        talk_notice(t, "Ollama keeps settings for this model, which a running chat does not "
                       "take over; memwall -m NAME starts with them");
    if (lost != 0)
        talk_notice(t, "not applied from beside the model's weights: %s",
                    mw_parts_text(lost, words, sizeof words));
}

/* Show the models of the server, to choose one. */
static void list_server_models(struct talk *t)
{
    struct mw_server_figures f;
    char title[200], name[256], hint[] = "Enter: use it   Esc: close";
    const char *id;
    struct choices *c;

    if (!talk_server(t, &f))
        return;
    snprintf(title, sizeof title, "Models at %s", f.address);
    c = choices_new(t, title, hint);
    if (c == NULL)
        return;
    for (size_t i = 0; (id = talk_server_model(t, i)) != NULL; i++) {
        bool is_used = i == f.used;

        clean_line(name, sizeof name, id, strlen(id));
        sheet_line(c->sheet, ROLE_TEXT, "%s", name);
        if (is_used)
            sheet_more(c->sheet, ROLE_DIM, "  in use");
        choice(c, "/model %s", id);
        if (is_used)
            sheet_set_cursor(c->sheet, (long)c->n - 1);
    }
    talk_show(t, c->sheet);
}

void command_begin(struct talk *t)
{
    const struct ui_chat_options *o = talk_settings(t);

    if (o->server != NULL && o->options->model[0] == '\0' && o->first == NULL &&
        talk_server_model(t, 1) != NULL)
        list_server_models(t);
}

static void run_server_model(struct talk *t, const char *args)
{
    struct mw_server_figures f;
    struct err e = ERR_INIT;

    if (command_is_busy(t) || !talk_server(t, &f))
        return;
    if (args[0] == '\0')
        list_server_models(t);
    else if (strcmp(args, talk_server_model(t, f.used)) == 0)
        talk_notice(t, "%s is in use", talk_info(t)->name);
    else if (talk_open_model(t, args, args, &e) != 0)
        talk_report(t, &e);
}

void run_model(struct talk *t, const char *args)
{
    const struct mw_model_info *info = talk_info(t);
    struct err e = ERR_INIT;
    struct mw_beside *beside = NULL;
    char path[4096], size[16];

    if (talk_has_server(t)) {
        run_server_model(t, args);
        return;
    }
    if (args[0] == '\0' && !talk_has_screen(t)) /* the list of models shows the same */
        talk_notice(t, "%s: %s, %s, %u layers, %s; /model NAME opens another", info->name,
                    info->arch, info->type, info->n_layer,
                    units_size(size, sizeof size, info->file_bytes));
    if (command_is_busy(t))
        return;
    if (talk_state(t) == TALK_LOADING)
        talk_error(t, "the model is being loaded: wait until it is ready");
    else if (args[0] == '\0') {
        if (talk_act(t, ACTION_PICK_MODEL, "", &e) != 0 && talk_has_screen(t))
            talk_report(t, &e);
    } else if (find_model(t, args, path, sizeof path, &beside, &e) != 0 ||
               talk_open_model(t, path, args, &e) != 0)
        talk_report(t, &e);
    else if (beside != NULL)
        report_beside(t, beside);
    mw_beside_free(beside);
}

/* End the recording; false: there was none. */
static bool end_recording(struct talk *t)
{
    struct err e = ERR_INIT;
    char path[256];

    if (talk_recording(t) == NULL)
        return false;
    snprintf(path, sizeof path, "%s", talk_recording(t));
    if (talk_record_end(t, &e) != 0)
        talk_report(t, &e);
    else
        talk_notice(t, "the recording is in %s; memwall replay plays it", path);
    return true;
}

void run_record(struct talk *t, const char *args, bool replaces)
{
    bool has_ended = end_recording(t);
    struct err e = ERR_INIT;
    char path[4096];
    struct mw_output file = { path, replaces, "/record! FILE" };

    if (args[0] == '\0') {
        if (!has_ended)
            talk_error(t, "/record FILE begins, /record ends");
        return;
    }
    if (talk_state(t) == TALK_SWITCHING && command_is_busy(t))
        return;
    path_typed(path, sizeof path, args, false);
    if (talk_record(t, &file, &e) != 0)
        talk_report(t, &e);
    else
        talk_notice(t, "recording to %s; /record ends it", path);
}
