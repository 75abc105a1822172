/* Commands about the conversation, its files and copies. */
#include "config.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ui/store/store.h"
#include "ui/talk/command_list.h"
#include "ui/term/path.h"
#include "ui/text/sheet.h"
#include "ui/text/clean.h"
#include "ui/text/receipt.h"

/* What cannot be done beside an answer; true when one runs. */
static bool is_busy(struct talk *t)
{
    if (t->is_answering)
        talk_error(t, "an answer is being written: stop it first (Esc)");
    return t->is_answering;
}

void run_quit(struct talk *t, const char *args)
{
    (void)args;
    if (saved_may_leave(t))
        t->front.quit(t->front.ctx);
}

void run_clear(struct talk *t, const char *args)
{
    (void)args;
    if (is_busy(t))
        return;
    talk_clear(t);
    if (saved_path(t)[0] == '\0')
        talk_notice(t, "a new conversation; /chats has the others");
}

void run_retry(struct talk *t, const char *args)
{
    (void)args;
    if (!is_busy(t))
        talk_retry(t);
}

void run_continue(struct talk *t, const char *args)
{
    (void)args;
    if (!is_busy(t))
        talk_continue(t);
}

/* The index of the n-th user message from the end, or -1. */
static long user_message(const struct talk *t, uint64_t n)
{
    for (size_t i = t->n_message; i-- > 0;)
        if (talk_is_user(t, i) && n-- == 1)
            return (long)i;
    return -1;
}

void run_undo(struct talk *t, const char *args)
{
    long last = user_message(t, 1);

    (void)args;
    if (is_busy(t))
        return;
    if (last < 0)
        talk_error(t, "there is nothing to take back");
    else
        talk_take_back(t, (size_t)last);
}

static void list_turns(struct talk *t)
{
    struct sheet *s = sheet_new("Go back to a message", "Enter goes there, Esc stays");

    if (s == NULL)
        return;
    talk_choices(t, s);
    for (unsigned n = 1; n <= TALK_MAX_COMMANDS && user_message(t, n) >= 0; n++) {
        char *text = t->front.text_of(t->front.ctx, (size_t)user_message(t, n));
        char line[80];

        clean_line(line, sizeof line, text == NULL ? "" : text,
                   text == NULL ? 0 : strnlen(text, 300));
        free(text);
        sheet_line(s, ROLE_TEXT, "%3u  %s", n, line);
        talk_choice(t, s, "/rewind %u", n);
    }
    t->front.sheet(t->front.ctx, s);
}

void run_rewind(struct talk *t, const char *args)
{
    struct err e = ERR_INIT;
    uint64_t n = 0;

    if (is_busy(t))
        return;
    if (user_message(t, 1) < 0) {
        talk_error(t, "there is nothing to go back to");
    } else if (args[0] == '\0') {
        if (t->front.act(t->front.ctx, ACT_PICK_TURN, "", &e) != 0)
            list_turns(t);
    } else if (!units_parse_whole(args, false, 1, t->n_message, &n) || user_message(t, n) < 0) {
        talk_error(t, "\"%s\" is not one of your messages, counted from the last (1)", args);
    } else {
        talk_take_back(t, (size_t)user_message(t, n));
    }
}

/* ---- saved chats ---- */

static char *age(char *buf, size_t n, time_t then)
{
    double s = difftime(time(NULL), then);

    if (s < 90)
        snprintf(buf, n, "now");
    else if (s < 5400)
        snprintf(buf, n, "%.0f min", s / 60);
    else if (s < 129600)
        snprintf(buf, n, "%.0f h", s / 3600);
    else
        snprintf(buf, n, "%.0f days", s / 86400);
    return buf;
}

static void open_chat(struct talk *t, const char *name)
{
    struct err e = ERR_INIT;

    if (saved_open(t, name, &e) != 0 || saved_restore(t, &e) != 0) {
        talk_err(t, &e);
        return;
    }
    t->front.restored(t->front.ctx);
    t->front.changed(t->front.ctx);
    talk_notice(t, "opened; it is evaluated with the next message");
    talk_send_waiting(t);
}

void run_chats(struct talk *t, const char *args)
{
    struct err e = ERR_INIT;
    struct store_entry *list = NULL;
    struct sheet *s;
    char dir[4096];
    size_t n = 0;

    if (is_busy(t))
        return;
    if (args[0] != '\0') {
        open_chat(t, args);
        return;
    }
    saved_folder(t, dir, sizeof dir);
    if (store_list(dir, &list, &n, &e) != 0) {
        talk_err(t, &e);
        return;
    }
    s = n == 0 ? NULL : sheet_new("Chats", "Enter opens, Esc stays here");
    if (s == NULL) {
        talk_notice(t, "there are no saved chats");
        free(list);
        return;
    }
    talk_choices(t, s);
    for (size_t i = 0; i < n; i++) {
        char when[32], tokens[24];

        sheet_line(s, ROLE_DIM, "%8s ", age(when, sizeof when, list[i].changed));
        sheet_more(s, ROLE_DIM, "%7s tok  ",
                   list[i].context > 0 ? receipt_count(tokens, sizeof tokens, list[i].context)
                                       : "-");
        sheet_more(s, ROLE_TEXT, "%s", list[i].title);
        talk_choice(t, s, "/chats %s", list[i].name);
    }
    free(list);
    t->front.sheet(t->front.ctx, s);
}

/* The file that the chat itself is in, under any name. */
static bool is_own_file(const struct talk *t, const char *path)
{
    struct stat own, st;

    return saved_path(t)[0] != '\0' && stat(saved_path(t), &own) == 0 && stat(path, &st) == 0 &&
           own.st_dev == st.st_dev && own.st_ino == st.st_ino;
}

static void export_to(struct talk *t, const char *args, const char *to_replace)
{
    struct err e = ERR_INIT;
    char path[4096];
    struct mw_output file = { path, t->replaces, to_replace };

    path_expand(path, sizeof path, args);
    if (t->store == NULL)
        talk_error(t, "there is no memory for a copy of this chat, so none can be written");
    else if (is_own_file(t, path))
        talk_error(t, "%s is where this chat is saved; name another file", path);
    else if (mw_output_check(t->model, &file, &e) != 0 ||
             store_export(t->store, path, store_format_of(path), t->replaces, &e) != 0)
        talk_err(t, &e);
    else
        talk_notice(t, "written to %s", path);
}

void run_export(struct talk *t, const char *args)
{
    if (args[0] == '\0')
        talk_error(t, "/export FILE (Markdown, or JSON if it ends in .json)");
    else
        export_to(t, args, "/export! FILE");
}

void run_save(struct talk *t, const char *args)
{
    if (args[0] != '\0')
        export_to(t, args, "/save! FILE");
    else if (t->o.no_save && saved_path(t)[0] == '\0')
        talk_notice(t, "this chat is not saved (--no-save); /save FILE writes it to a file");
    else if (!saved_retry(t))
        talk_error(t, "saving is suspended: %s. /save FILE writes the chat somewhere else",
                   t->unsaved_why);
    else if (saved_path(t)[0] != '\0')
        talk_notice(t, "saved as it happens, in %s", saved_path(t));
    else
        talk_notice(t, "nothing was said yet; chats are saved as they happen");
}

/* ---- files ---- */

/* A text file of at most room bytes whole; NULL with *e. */
static char *read_text(const struct talk *t, const char *path, size_t *n, struct err *e)
{
    size_t max, room = talk_text_room(t, &max);
    int fd =
        open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* not to wait for a FIFO */
    FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
    char *text = NULL;
    struct stat st;

    if (f == NULL || fstat(fileno(f), &st) != 0) {
        err_sys(e, "cannot open \"%s\"", path);
    } else if (!S_ISREG(st.st_mode)) {
        err_set(e, ERR_ARGUMENT, "\"%s\" is not a file", path);
    } else if ((uint64_t)st.st_size > room) {
        err_set(e, ERR_CONTEXT,
                "\"%.200s\" has %lld bytes; with what waits already, %zu fit the context of %u "
                "tokens",
                path, (long long)st.st_size, room, t->plan.n_ctx);
    } else if ((text = malloc((size_t)st.st_size + 1)) == NULL) {
        err_memory(e, "\"%s\"", path);
    } else {
        *n = fread(text, 1, (size_t)st.st_size, f);
        text[*n] = '\0';
        if (memchr(text, '\0', *n) != NULL) {
            err_set(e, ERR_FORMAT, "\"%s\" is not text", path);
            free(text);
            text = NULL;
        }
    }
    if (f != NULL)
        fclose(f);
    return text;
}

void run_file(struct talk *t, const char *args)
{
    struct err e = ERR_INIT;
    char path[4096], tokens[24];
    struct mw_cost cost = { 0 };
    const char *name;
    char *text;
    size_t n = 0;

    if (args[0] == '\0' || strcmp(args, "-") == 0) {
        if (args[0] == '-')
            talk_drop_files(t);
        if (t->n_file == 0)
            talk_notice(t, "no file goes with the next message; /file PATH attaches one");
        for (size_t i = 0; i < t->n_file; i++)
            talk_notice(t, "with the next message: %s (%zu bytes)", t->file[i].name,
                        t->file[i].n);
        t->front.changed(t->front.ctx);
        return;
    }
    path_expand(path, sizeof path, args);
    text = read_text(t, path, &n, &e);
    if (text == NULL) {
        talk_err(t, &e);
        return;
    }
    name = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
    if (t->is_ready && mw_chat_cost(t->chat, text, n, &cost, &e) == 0)
        receipt_cost(tokens, sizeof tokens, &cost);
    if (!talk_attach(t, name, text, n))
        talk_error(t, "no more than %d files go with a message", TALK_MAX_FILES);
    else if (cost.n_token > 0)
        talk_notice(t, "%s goes with the next message, about %s tokens; /file - drops it", name,
                    receipt_count(tokens, sizeof tokens, cost.n_token));
    else
        talk_notice(t, "%s goes with the next message; /file - drops it", name);
}

void run_copy(struct talk *t, const char *args)
{
    struct err e = ERR_INIT;

    if (args[0] != '\0' && strcmp(args, "code") != 0 && strcmp(args, "answer") != 0)
        talk_error(t, "/copy answer or /copy code");
    else if (t->front.act(t->front.ctx, ACT_COPY, args, &e) != 0)
        talk_err(t, &e);
}

void run_model(struct talk *t, const char *args)
{
    struct err e = ERR_INIT;
    char path[4096], size[16];

    if (args[0] == '\0') {
        talk_notice(t, "%s: %s, %s, %u layers, %s", t->info.name, t->info.arch, t->info.type,
                    t->info.n_layer, units_size(size, sizeof size, t->info.file_bytes));
        return;
    }
    if (is_busy(t))
        return;
    path_expand(path, sizeof path, args);
    if (talk_open_model(t, path, &e) != 0)
        talk_err(t, &e);
    else
        talk_notice(t, "loading %s; the conversation is evaluated with the next message",
                    t->info.name);
    t->front.changed(t->front.ctx);
}

void run_record(struct talk *t, const char *args)
{
    struct err e = ERR_INIT;
    struct mw_output file;
    char path[4096];

    if (t->recorder != NULL) {
        if (mw_recorder_close(t->recorder, &e) != 0)
            talk_err(t, &e);
        else
            talk_notice(t, "the recording is in %s; memwall replay plays it", t->recorder_path);
        t->recorder = NULL;
        if (args[0] == '\0')
            return;
    }
    if (args[0] == '\0') {
        talk_error(t, "/record FILE begins, /record ends");
        return;
    }
    path_expand(path, sizeof path, args);
    file = (struct mw_output){ path, t->replaces, "/record! FILE" };
    if (talk_record(t, &file, &e) != 0) {
        talk_err(t, &e);
        return;
    }
    snprintf(t->recorder_path, sizeof t->recorder_path, "%.250s", path);
    talk_notice(t, "recording to %s; /record ends it", path);
}
