/* Commands about saved chats: list, open, name and delete them. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/numbers.h"
#include "ui/store/store.h"
#include "ui/talk/command_list.h"
#include "ui/talk/commands.h"
#include "ui/text/sheet.h"
#include "ui/words/clean.h"

#define MAX_SHOWN   200
#define MAX_COUNTED ((uint64_t)32 << 20) /* bytes of chats that are read for the list */

/* The sheet with the list of chats. */
struct menu {
    struct talk *t;
    struct store_entry *list;
    size_t n;
};

/* The sheet with the question whether to delete a chat. */
struct question {
    struct talk *t;
    char name[STORE_NAME_BYTES];
    bool from_menu; /* which then opens again */
};

enum { ANSWER_KEEP, ANSWER_DELETE };

/* Is it the chat on the screen? */
static bool is_own(struct talk *t, const char *name)
{
    char dir[4096], path[4400];

    saving_folder(talk_saving(t), dir, sizeof dir);
    snprintf(path, sizeof path, "%s/%.200s" STORE_SUFFIX, dir, name);
    return saving_is_file(talk_saving(t), path);
}

/* ---- open ---- */

/* Say how long resuming takes, as predicted. */
static void say_opened(struct talk *t)
{
    char count[32], load[24] = "", again[40] = "", time[24];
    struct talk_kv_cost cost;

    if (!talk_kv_cost(t, saving_path(talk_saving(t)), &cost) || !cost.is_of_model) {
        talk_notice(t, "opened; it is evaluated with the next message");
        return;
    }
    if (cost.load_s > 0)
        snprintf(load, sizeof load, " in ~%s", numbers_time(time, sizeof time, cost.load_s));
    if (talk_evaluation_s(t, cost.n_token) > 0)
        snprintf(again, sizeof again, " (~%s to evaluate again)",
                 numbers_time(time, sizeof time, talk_evaluation_s(t, cost.n_token)));
    talk_notice(t, "opened; %s tokens come back from disk%s%s",
                numbers_count(count, sizeof count, cost.n_token), load, again);
}

static void open_chat(struct talk *t, const char *name)
{
    struct err e = ERR_INIT;

    if (command_is_busy(t))
        return;
    if (is_own(t, name)) {
        talk_notice(t, "\"%s\" is the chat on the screen", name);
        return;
    }
    if (talk_open_saved(t, name, &e) != 0) {
        talk_report(t, &e);
        return;
    }
    say_opened(t);
    talk_send_waiting(t);
}

void run_open(struct talk *t, const char *args)
{
    if (args[0] == '\0')
        run_chats(t, "");
    else
        open_chat(t, args);
}

/* ---- delete ---- */

static void delete_chat(void *ctx, long answer)
{
    const struct question *q = ctx;
    struct err e = ERR_INIT;
    char dir[4096];

    if (answer != ANSWER_DELETE)
        return;
    if (is_own(q->t, q->name)) {
        if (command_is_busy(q->t))
            return;
        talk_clear(q->t);
    }
    saving_folder(talk_saving(q->t), dir, sizeof dir);
    if (store_delete(dir, q->name, &e) != 0) {
        talk_report(q->t, &e);
    } else {
        saving_kv_moved(talk_saving(q->t), q->name, NULL);
        talk_notice(q->t, "deleted \"%s\"", q->name);
    }
    if (q->from_menu)
        run_chats(q->t, "");
}

static void ask_to_delete(struct talk *t, const struct store_entry *chat, bool from_menu)
{
    struct question *q = malloc(sizeof *q);
    struct sheet *s =
        q == NULL ? NULL : sheet_new("Delete this chat?", "Enter: choose   Esc: close");
    char drop[STORE_NAME_BYTES + 40];

    if (s == NULL) {
        free(q);
        talk_error(t, "not enough memory to ask");
        return;
    }
    *q = (struct question){ .t = t, .from_menu = from_menu };
    snprintf(q->name, sizeof q->name, "%s", chat->name);
    sheet_on_enter(s, delete_chat, free, q);
    snprintf(drop, sizeof drop, "\"%s\" was not deleted", chat->name);
    sheet_on_drop(s, drop);
    sheet_line(s, ROLE_TEXT, "%s: ", chat->name);
    sheet_more(s, ROLE_DIM, "%s", chat->title);
    if (is_own(t, chat->name))
        sheet_line(s, ROLE_WARN, "This is the chat on the screen. A new one begins.");
    sheet_line(s, ROLE_TEXT, "keep it");
    sheet_choice(s, ANSWER_KEEP);
    sheet_line(s, ROLE_TEXT, "delete it for good");
    sheet_choice_removes(s, ANSWER_DELETE);
    talk_show(t, s);
}

void run_delete(struct talk *t, const char *args)
{
    struct store_entry *list = NULL;
    const struct store_entry *chat;
    struct err e = ERR_INIT;
    char dir[4096];
    size_t n = 0;

    if (args[0] == '\0') {
        talk_error(t, "/delete NAME; /chats lists the names");
        return;
    }
    saving_folder(talk_saving(t), dir, sizeof dir);
    if (store_list(dir, &list, &n, &e) != 0 || (chat = store_choose(list, n, args, &e)) == NULL)
        talk_report(t, &e);
    else
        ask_to_delete(t, chat, false);
    free(list);
}

/* ---- rename ---- */

/* Cut "OLD -> NEW" in two.  Returns NEW, or NULL if line is only a name. */
static char *cut_names(char *line)
{
    char *arrow = strstr(line, STORE_NAME_ARROW), *new;

    if (arrow == NULL)
        return NULL;
    new = arrow + strlen(STORE_NAME_ARROW);
    new += strspn(new, " ");
    while (arrow > line && arrow[-1] == ' ')
        arrow--;
    *arrow = '\0';
    return new;
}

static void rename_own(struct talk *t, const char *name)
{
    struct err e = ERR_INIT;

    if (saving_rename(talk_saving(t), name, &e) != 0)
        talk_report(t, &e);
    else if (saving_path(talk_saving(t))[0] == '\0')
        talk_notice(t, "this chat is saved as \"%s\" %s", name,
                    talk_saving(t)->state == SAVING_WORKS ? "with its first message"
                                                          : "when saving resumes");
    else
        talk_notice(t, "this chat is now \"%s\"", name);
}

void run_rename(struct talk *t, const char *args)
{
    char line[300], dir[4096], *new;
    struct err e = ERR_INIT;

    if (args[0] == '\0') {
        talk_error(t, "/rename NAME, or /rename OLD -> NEW for another chat");
        return;
    }
    snprintf(line, sizeof line, "%s", args);
    new = cut_names(line);
    saving_folder(talk_saving(t), dir, sizeof dir);
    if (new == NULL) {
        rename_own(t, args);
    } else if (is_own(t, line)) {
        rename_own(t, new);
    } else if (store_rename_saved(dir, line, new, &e) != 0) {
        talk_report(t, &e);
    } else {
        saving_kv_moved(talk_saving(t), line, new);
        talk_notice(t, "\"%s\" is now \"%s\"", line, new);
    }
}

/* ---- the list ---- */

static void enter_menu(void *ctx, long row)
{
    const struct menu *m = ctx;

    if (row >= 0 && (size_t)row < m->n)
        open_chat(m->t, m->list[row].name);
}

static void menu_letter(void *ctx, uint32_t letter, long row)
{
    const struct menu *m = ctx;
    char line[2 * STORE_NAME_BYTES];

    if (row < 0 || (size_t)row >= m->n)
        return;
    if (letter == 'd') {
        ask_to_delete(m->t, &m->list[row], true);
        return;
    }
    if (is_own(m->t, m->list[row].name))
        snprintf(line, sizeof line, "/rename ");
    else
        snprintf(line, sizeof line, "/rename %s " STORE_NAME_ARROW " ", m->list[row].name);
    talk_draft(m->t, line);
}

static void release_menu(void *ctx)
{
    struct menu *m = ctx;

    free(m->list);
    free(m);
}

/* "13:05" today, "22 Nov" this year, "2025-11" before. */
static char *last_used(char *buf, size_t n, time_t then)
{
    time_t now = time(NULL);
    struct tm a, b;

    buf[0] = '\0';
    if (localtime_r(&then, &a) == NULL || localtime_r(&now, &b) == NULL)
        return buf;
    strftime(buf, n,
             a.tm_year != b.tm_year   ? "%Y-%m"
             : a.tm_yday != b.tm_yday ? "%d %b"
                                      : "%H:%M",
             &a);
    return buf;
}

static int widest_name(const struct menu *m)
{
    size_t widest = 0;

    for (size_t i = 0; i < m->n; i++)
        if (strlen(m->list[i].name) > widest)
            widest = strlen(m->list[i].name);
    return widest > 24 ? 24 : (int)widest;
}

/* "  resumes in ~0.4 s, 123 MiB" with a KV file, "  ~4 min to evaluate" without; "": not known. */
static char *resume_text(struct talk *t, const char *path, const struct store_entry *chat,
                         const char *model, char *buf, size_t n)
{
    bool is_of_model = strcmp(model, talk_info(t)->name) == 0;
    double again_s = is_of_model ? talk_evaluation_s(t, chat->context) : 0;
    struct talk_kv_cost cost;
    char size[16], time[24];

    buf[0] = '\0';
    if (talk_kv_cost(t, path, &cost)) {
        units_size(size, sizeof size, cost.bytes);
        if (cost.is_of_model && cost.load_s > 0)
            snprintf(buf, n, "  resumes in ~%s, %s",
                     numbers_time(time, sizeof time, cost.load_s), size);
        else
            snprintf(buf, n, "  %s of keys and values", size);
    } else if (again_s > 0) {
        snprintf(buf, n, "  ~%s to evaluate", numbers_time(time, sizeof time, again_s));
    }
    return buf;
}

static void fill_menu(const struct menu *m, struct sheet *s, const char *dir)
{
    int width = widest_name(m);
    uint64_t bytes = 0;

    sheet_line(s, ROLE_DIM, "%-*s  %-7s  %8s  %-14s  %s", width, "name", "used", "messages",
               "model", "first words");
    for (size_t i = 0; i < m->n && i < MAX_SHOWN; i++) {
        const struct store_entry *chat = &m->list[i];
        char path[4400], when[32], count[16] = "-", model[64], resume[64];
        struct store_facts facts = { .settings = "" };
        uint32_t n;

        bytes += chat->bytes;
        snprintf(path, sizeof path, "%.4200s/%s" STORE_SUFFIX, dir, chat->name);
        if (bytes <= MAX_COUNTED) {
            store_facts_of(path, &facts);
            if (store_count_saved(dir, chat->name, &n))
                snprintf(count, sizeof count, "%u", n);
        }
        clean_line(model, sizeof model, facts.model.name, strlen(facts.model.name));
        sheet_line(s, chat->is_named ? ROLE_ACCENT : ROLE_DIM, "%-*s", width, chat->name);
        sheet_more(s, ROLE_DIM, "  %-7s  %8s  %-14.14s  ",
                   last_used(when, sizeof when, chat->changed), count, model);
        if (chat->is_damaged)
            sheet_more(s, ROLE_WARN, "damaged: it cannot be read");
        else
            sheet_more(s, ROLE_TEXT, "%s", chat->title);
        sheet_more(s, ROLE_DIM, "%s",
                   is_own(m->t, chat->name)
                       ? " (on the screen)"
                       : resume_text(m->t, path, chat, facts.model.name, resume,
                                     sizeof resume));
        sheet_choice(s, (long)i);
    }
    if (m->n > MAX_SHOWN)
        sheet_line(s, ROLE_DIM, "%zu older chats are not shown; /open NAME opens one",
                   m->n - MAX_SHOWN);
}

/* Show the list, which the sheet takes over. */
static void show_menu(struct talk *t, struct store_entry *list, size_t n, const char *dir)
{
    struct menu *m = malloc(sizeof *m);
    struct sheet *s =
        m == NULL ? NULL
                  : sheet_new("Chats", "Enter: open   d: delete   r: rename   Esc: close");

    if (s == NULL) {
        free(m);
        free(list);
        talk_error(t, "not enough memory to list the chats");
        return;
    }
    *m = (struct menu){ .t = t, .list = list, .n = n };
    sheet_on_enter(s, enter_menu, release_menu, m);
    sheet_on_letters(s, "dr", menu_letter);
    fill_menu(m, s, dir);
    talk_show(t, s);
}

void run_chats(struct talk *t, const char *args)
{
    struct err e = ERR_INIT;
    struct store_entry *list = NULL;
    char dir[4096];
    size_t n = 0;

    if (args[0] != '\0') {
        open_chat(t, args);
        return;
    }
    saving_folder(talk_saving(t), dir, sizeof dir);
    if (store_list(dir, &list, &n, &e) != 0)
        talk_report(t, &e);
    else if (n == 0)
        talk_notice(t, "there are no saved chats");
    else
        show_menu(t, list, n, dir);
}
