#include "config.h"

#include "ui/talk/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/lookalike.h"
#include "engine/base/near.h"
#include "engine/base/utf8.h"
#include "ui/look/theme.h"
#include "ui/store/store.h"
#include "ui/talk/command_list.h"
#include "ui/talk/command_settings.h"
#include "ui/talk/files.h"
#include "ui/words/path.h"

/* Rows without words for questions end before them. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

/* clang-format off */
static const struct slash_command own_commands[] = {
    { "answer", "[next|back]", "show another answer that /retry made", ARG_WORDS, "next back",
      { run_answer }, SUBJECT_CHAT, "branch flip alternatives", .asks = "other earlier versions",
      .in_order = true },
    { "chats", "[NAME]", "list saved chats, or open one", ARG_CHAT, NULL,
      { run_chats }, SUBJECT_FILES, "history sessions resume",
      .asks = "old earlier sessions" },
    { "clear", "", "start a new chat", ARG_NONE, NULL, { run_clear }, SUBJECT_CHAT, "new reset",
      .asks = "fresh begin over", .in_order = true },
    { "compact", "[N]", "replace all but the last N exchanges by a summary", ARG_TEXT, NULL,
      { run_compact }, SUBJECT_CHAT, "compress summarize summarise",
      .asks = "shorten summary full", .in_order = true },
    { "continue", "", "resume a stopped answer", ARG_NONE, NULL,
      { run_continue }, SUBJECT_CHAT, "go more", .in_order = true },
    { "copy", "[code]", "copy the answer or its code", ARG_WORDS, "answer code",
      { run_copy }, SUBJECT_FILES, "yank",
      .asks = "clipboard" },
    { "delete", "NAME", "delete a saved chat; asks before", ARG_CHAT, NULL,
      { run_delete }, SUBJECT_FILES, "rm",
      .asks = "remove erase" },
    { "export", "FILE", "write the chat to a .md or .json file", ARG_OUTPUT, NULL,
      { .write = run_export }, SUBJECT_FILES, "write",
      .asks = "markdown json write file" },
    { "file", "[PATH]", "attach a text file to the next message", ARG_PATH, NULL,
      { run_file }, SUBJECT_FILES, "attach add read",
      .asks = "paste attach pdf document upload" },
    { "find", "[TEXT]", "search the chat", ARG_TEXT, NULL, { run_find }, SUBJECT_CHAT,
      "search grep",
      .asks = "search" },
    { "forget", "", "forget the settings kept with this chat and model", ARG_NONE, NULL,
      { run_forget }, SUBJECT_SPEED, NULL,
      .asks = "reset defaults kept settings" },
    { "help", "[WORD]", "show help: a command, keys, dashboard or any word", ARG_COMMAND, NULL,
      { run_help }, SUBJECT_CHAT, "? h commands" },
    { "model", "[NAME]", "switch models, keeping the conversation; one is open at a time", ARG_MODEL, NULL,
      { run_model }, SUBJECT_SPEED, "models list load switch",
      .asks = "models two other another", .in_order = true },
    { "mouse", "[on|off]", "capture the mouse, or release it", ARG_WORDS, "on off",
      { run_mouse }, SUBJECT_SCREEN, NULL },
    { "open", "NAME", "open a saved chat", ARG_CHAT, NULL, { run_open }, SUBJECT_FILES, NULL,
      .asks = "old earlier again", .in_order = true },
    { "plan", "", "show how memory is allocated", ARG_NONE, NULL, { run_plan }, SUBJECT_SPEED,
      NULL,
      .asks = "allocated" },
    { "quit", "", "quit; the chat is saved", ARG_NONE, NULL, { run_quit }, SUBJECT_CHAT,
      "exit bye x",
      .asks = "exit leave close stop" },
    { "record", "[FILE]", "start or stop recording the engine's counters", ARG_OUTPUT, NULL,
      { .write = run_record }, SUBJECT_SPEED, "log",
      .asks = "counters telemetry" },
    { "rename", "NAME", "name this chat, or OLD -> NEW: another one", ARG_CHAT, NULL,
      { run_rename }, SUBJECT_FILES, "title name",
      .asks = "title" },
    { "retry", "", "generate the last answer again", ARG_NONE, NULL,
      { run_retry }, SUBJECT_CHAT, "regenerate regen redo",
      .asks = "again regenerate different", .in_order = true },
    { "rewind", "[N]", "go back to an earlier message and edit it; 1: your last one", ARG_TEXT, NULL,
      { run_rewind }, SUBJECT_CHAT, "back checkpoint",
      .asks = "back earlier edit", .in_order = true },
    { "save", "[FILE]", "show where the chat is saved, or save it to a file", ARG_OUTPUT, NULL,
      { .write = run_save }, SUBJECT_FILES, NULL,
      .asks = "saved stored where folder disk" },
    { "set", "[NAME VALUE]", "list settings, or keep one in the configuration", ARG_SETTING,
      NULL, { run_set }, SUBJECT_SCREEN, "settings config options",
      .asks = "keep permanent permanently remember next time configuration default" },
    { "shell", "COMMAND", "run a command and attach its output, as !COMMAND does", ARG_TEXT, NULL,
      { run_shell }, SUBJECT_FILES, "run sh bash",
      .asks = "execute" },
    { "stats", "", "show statistics", ARG_NONE, NULL, { run_stats }, SUBJECT_SPEED,
      "info show status tokens usage cost",
      .asks = "statistics" },
    { "tried", "", "list the settings that were tried, and go back to some", ARG_NONE, NULL,
      { run_tried }, SUBJECT_SPEED, NULL,
      .asks = "compare faster settings earlier" },
    { "undo", "", "take back the last exchange and edit it", ARG_NONE, NULL,
      { run_undo }, SUBJECT_CHAT, "edit",
      .asks = "take back mistake typo remove last", .in_order = true },
    { "why", "", "explain why the last answer took so long, and how fast it was predicted to be",
      ARG_NONE, NULL,
      { run_why }, SUBJECT_SPEED, "explain diagnose doctor",
      .asks = "slow slower speed faster tok/s" },
};
/* clang-format on */
#pragma GCC diagnostic pop

const char *command_subject_title(enum command_subject subject)
{
    static const char *const titles[N_SUBJECT] = {
        [SUBJECT_CHAT] = "Chat",
        [SUBJECT_SPEED] = "Memory and speed",
        [SUBJECT_SAMPLING] = "Answers and sampling",
        [SUBJECT_FILES] = "Files and chats",
        [SUBJECT_SCREEN] = "Screen",
    };

    return titles[subject];
}

static enum command_subject subject_of(enum option_group group)
{
    return group == GROUP_ANSWER   ? SUBJECT_SAMPLING
           : group == GROUP_SCREEN ? SUBJECT_SCREEN
                                   : SUBJECT_SPEED;
}

enum { N_OWN = sizeof own_commands / sizeof own_commands[0] };

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct slash_command *)a)->name,
                  ((const struct slash_command *)b)->name);
}

const struct slash_command *command_list(void)
{
    static struct slash_command all[N_OWN + N_OPTION + 1];
    static char args[N_OPTION][24];
    size_t n = N_OWN;

    if (all[0].name != NULL)
        return all;
    memcpy(all, own_commands, sizeof own_commands);
    for (int i = 0; i < N_OPTION; i++) {
        const struct option *row = &options_table[i];

        if (row->slash == NULL)
            continue;
        snprintf(args[i], sizeof args[i], "[%s]", option_form(row));
        all[n++] = (struct slash_command){ .name = row->slash,
                                           .args = args[i],
                                           .help = row->help,
                                           .argument = ARG_VALUE,
                                           .setting = (enum option_id)i,
                                           .subject = subject_of(row->group),
                                           .also = row->slash_also,
                                           .asks = row->asks };
    }
    qsort(all, n, sizeof all[0], by_name);
    return all;
}

/* Other programs write "num_ctx" and "top_k". */
static bool is_same(const char *name, const char *word, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (name[i] == '\0' || name[i] != (word[i] == '_' ? '-' : word[i]))
            return false;
    return true;
}

/* Returns the other name of c that word[0 .. n) is, or begins if that is enough; or NULL. */
static const char *other_name(const struct slash_command *c, const char *word, size_t n,
                              bool begins)
{
    for (const char *at = c->also == NULL ? "" : c->also; *at != '\0';) {
        size_t len = strcspn(at, " ");

        if ((len == n || (begins && len > n)) && is_same(at, word, n))
            return at;
        at += len + strspn(at + len, " ");
    }
    return NULL;
}

const struct slash_command *command_find(const char *word, size_t n)
{
    for (const struct slash_command *c = command_list(); c->name != NULL; c++)
        if (strlen(c->name) == n && is_same(c->name, word, n))
            return c;
    for (const struct slash_command *c = command_list(); c->name != NULL; c++)
        if (other_name(c, word, n, false) != NULL)
            return c;
    return NULL;
}

/* The only row with a name that begins with word[0 .. n); *any: there are several. */
static const struct slash_command *only_one(const char *word, size_t n, bool by_other,
                                            bool *any)
{
    const struct slash_command *only = NULL;

    for (const struct slash_command *c = command_list(); c->name != NULL; c++) {
        if (by_other ? other_name(c, word, n, true) == NULL : !is_same(c->name, word, n))
            continue;
        *any = *any || only != NULL;
        only = c;
    }
    return *any ? NULL : only;
}

const struct slash_command *command_match(const char *word, size_t n)
{
    const struct slash_command *row = command_find(word, n);
    bool any = false;

    if (row != NULL || n == 0)
        return row;
    row = only_one(word, n, false, &any);
    return row != NULL || any ? row : only_one(word, n, true, &any);
}

/* The row of a word that may end in "!".  Only commands that write a file take that. */
static const struct slash_command *find_forced(const char *word, size_t n, bool *replaces)
{
    const struct slash_command *row;

    *replaces = n > 0 && word[n - 1] == '!';
    row = command_match(word, *replaces ? n - 1 : n);
    return row != NULL && *replaces && row->argument != ARG_OUTPUT ? NULL : row;
}

static void run_row(struct talk *t, const struct slash_command *row, const char *args,
                    bool replaces)
{
    char path[4096];

    if (row->argument == ARG_VALUE && (options_table[row->setting].kind == KIND_FILE ||
                                       options_table[row->setting].kind == KIND_DRAFT))
        args = path_typed(path, sizeof path, args, true);
    if (row->argument == ARG_NONE && args[0] != '\0')
        talk_error(t, "/%s takes no argument", row->name);
    else if (row->argument == ARG_OUTPUT)
        row->write(t, args, replaces);
    else if (row->argument == ARG_VALUE)
        setting_enter(t, row->setting, args);
    else
        row->run(t, args);
}

/* Write the names that begin with word[0 .. n), or else the other names: "/memory, /min-p".
 * "" if there are none. */
static char *candidates(char *buf, size_t size, const char *word, size_t n)
{
    size_t used = 0;

    buf[0] = '\0';
    for (int others = 0; others < 2 && used == 0 && n > 0; others++)
        for (const struct slash_command *c = command_list(); c->name != NULL; c++) {
            const char *name = others ? other_name(c, word, n, true) : c->name;

            if (name != NULL && is_same(name, word, n) && used < size)
                used += (size_t)snprintf(buf + used, size - used, "%s/%.*s",
                                         used > 0 ? ", " : "", (int)strcspn(name, " "), name);
        }
    return buf;
}

/* Report that the first n letters after the slash are not a command.  The line is in the
 * history as any other that failed: one that stays would have to be emptied before the next
 * message. */
static void refuse_name(struct talk *t, const char *line, size_t n)
{
    struct near near = { .word = line + 1, .len = n };
    char names[200], note[60];

    if (candidates(names, sizeof names, line + 1, n)[0] != '\0') {
        talk_error(t, "\"%.*s\" is short for several commands: %s", (int)n + 1, line, names);
        return;
    }
    for (const struct slash_command *c = command_list(); c->name != NULL; c++)
        near_try(&near, c->name);
    talk_error(
        t,
        "there is no command \"%.*s\"%s%s%s%s /help lists the commands. To send the line "
        "as a message, begin it with \"//\"%s",
        (int)(n < 40 ? n + 1 : 40), line, lookalike_note(line, note, sizeof note),
        near.name != NULL ? ", did you mean /" : "", near.name != NULL ? near.name : "",
        near.name != NULL ? "?" : ".", talk_has_screen(t) ? "; Up brings it back" : "");
}

/* Is the argument of this command words or nothing, and not a text or a path? */
static bool takes_words(const struct slash_command *row)
{
    return row->argument == ARG_NONE || row->argument == ARG_WORDS ||
           row->argument == ARG_COMMAND ||
           (row->argument == ARG_VALUE && !option_is_text(&options_table[row->setting]));
}

/* Run a command of a name and arguments. */
static void run_words(struct talk *t, const char *name, const char *args)
{
    bool replaces;
    size_t n = strlen(name);
    const struct slash_command *row = find_forced(name + 1, n - 1, &replaces);
    char *copy = row == NULL ? NULL : strdup(args);
    const char *begin = copy;

    if (row == NULL) {
        refuse_name(t, name, n - 1);
        return;
    }
    if (copy == NULL) {
        talk_error(t, "not enough memory for the command");
        return;
    }
    if (takes_words(row))
        (void)lookalike_plain(copy, strlen(copy));
    n = utf8_trim(&begin, strlen(copy));
    copy[(size_t)(begin - copy) + n] = '\0';
    run_row(t, row, begin, replaces);
    free(copy);
}

/* line begins with a slash of `slash` bytes. */
static void run_line(struct talk *t, const char *line, size_t slash)
{
    size_t n = lookalike_word(line, strlen(line));
    char *name = malloc(n + 2);

    if (name == NULL) {
        talk_error(t, "not enough memory for the command");
        return;
    }
    name[0] = '/';
    memcpy(name + 1, line + slash, n - slash);
    (void)lookalike_plain(name + 1, n - slash);
    run_words(t, name, line + n);
    free(name);
}

/* Does a command follow the wide slash of an input method?  It also begins texts. */
static bool is_wide_command(const char *line, size_t slash)
{
    uint32_t cp;

    return utf8_decode(line, slash, &cp) == slash && lookalike_of(cp) == '/' &&
           command_find(line + slash, lookalike_word(line, strlen(line)) - slash) != NULL;
}

bool command_is_in_order(const char *line)
{
    const char *seen = lookalike_seen(line);
    const struct slash_command *row;
    bool replaces;

    if (seen[0] != '/' || seen[1] == '/')
        return false;
    row = find_forced(seen + 1, lookalike_word(seen, strlen(seen)) - 1, &replaces);
    return row != NULL && row->in_order;
}

bool command_means_to_leave(const char *line)
{
    static const char *const words[] = { "exit", "quit", ":q", ":wq", "bye" };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(line, words[i]) == 0)
            return true;
    return false;
}

/* Send a message with the files that it names. */
static void send_line(struct talk *t, const char *line)
{
    if (files_attach_named(t, line))
        talk_send(t, line);
    else
        talk_draft(t, line);
}

void command_enter(struct talk *t, const char *line)
{
    const char *seen = lookalike_seen(line), *text = line;
    uint32_t first;
    size_t n = *seen == '\0' ? 0 : utf8_decode(seen, strlen(seen), &first);

    if (seen[0] == '/' && seen[1] == '/')
        send_line(t, seen + 1);
    else if (seen[0] == '!' && talk_is_person(t))
        run_shell(t, seen + 1 + strspn(seen + 1, " "));
    else if (seen[0] == '/' || (n > 1 && is_wide_command(seen, n)))
        run_line(t, seen, n);
    else if (utf8_trim(&text, strlen(text)) > 0 || talk_outbox(t)->n_file > 0)
        send_line(t, line);
}

/* ---- completion ---- */

/* An offer completes the argument of line; edit.h wants whole lines. */
struct offer {
    command_add_fn *add;
    void *list;
    const char *line;
    size_t head;       /* bytes of the line before the argument */
    const char *typed; /* the argument so far */
};

static void offer(void *ctx, const char *word)
{
    const struct offer *o = ctx;
    char text[8500];

    if (strncmp(word, o->typed, strlen(o->typed)) != 0)
        return;
    snprintf(text, sizeof text, "%.*s%s", (int)o->head, o->line, word);
    o->add(o->list, text);
}

static void offer_words(struct offer *o, const char *words)
{
    while (*words != '\0') {
        size_t n = strcspn(words, " ");
        char word[40];

        snprintf(word, sizeof word, "%.*s", (int)n, words);
        offer(o, word);
        words += n + strspn(words + n, " ");
    }
}

static void offer_chats(struct offer *o, struct talk *t)
{
    struct store_entry *list = NULL;
    struct err ignored = ERR_INIT;
    char dir[4096];
    size_t n = 0;

    saving_folder(talk_saving(t), dir, sizeof dir);
    if (store_list(dir, &list, &n, &ignored) != 0)
        return;
    for (size_t i = 0; i < n; i++)
        if (!list[i].is_damaged)
            offer(o, list[i].name);
    free(list);
}

/* Files, and the names of the models on this machine. */
static void offer_models(struct offer *o, struct talk *t)
{
    const struct mw_places *places = talk_settings(t)->models.places;
    struct err ignored = ERR_INIT;
    struct mw_models *m;

    path_complete(o->typed, offer, o);
    if (places == NULL || mw_models_find(&m, places, &ignored) != 0)
        return;
    for (size_t i = 0; i < mw_models_count(m); i++)
        offer(o, mw_models_at(m, i)->name);
    mw_models_free(m);
}

/* Is it the beginning of a path, and not of a word? */
static bool is_path(const char *typed)
{
    return strchr(typed, '/') != NULL || (typed[0] != '\0' && strchr(".~$", typed[0]) != NULL);
}

/* Values of a setting. */
static void offer_values(struct offer *o, struct talk *t, enum option_id id)
{
    const struct option *row = &options_table[id];

    if (id == OPT_THEME)
        theme_names(talk_settings(t)->paths.config_dir, offer, o);
    else if (id == OPT_MODEL)
        offer_models(o, t);
    else if (row->kind == KIND_DRAFT && is_path(o->typed))
        path_complete(o->typed, offer, o);
    else if (option_values(row) != NULL)
        offer_words(o, option_values(row));
    else if (row->arg == NULL)
        offer_words(o, "on off");
    else if (row->kind == KIND_FILE)
        path_complete(o->typed, offer, o);
}

/* The name of a setting, or after it its values. */
static void offer_settings(struct offer *o, struct talk *t)
{
    size_t n = strcspn(o->typed, " ");
    int id = options_find_setting(o->typed, n);

    if (o->typed[n] == ' ') {
        o->head += n + 1;
        o->typed += n + 1;
        if (id >= 0)
            offer_values(o, t, (enum option_id)id);
        return;
    }
    for (int i = 0; i < N_OPTION; i++)
        if (options_table[i].reach != REACH_LINE)
            offer(o, options_table[i].name);
}

static void offer_commands(const char *line, size_t n, command_add_fn *add, void *list)
{
    char text[64];

    size_t found = 0;

    for (const struct slash_command *c = command_list(); c->name != NULL; c++)
        if (is_same(c->name, line + 1, n - 1)) {
            snprintf(text, sizeof text, "/%s", c->name);
            add(list, text);
            found++;
        }
    for (const struct slash_command *c = command_list(); found == 0 && c->name != NULL; c++) {
        const char *other = other_name(c, line + 1, n - 1, true);

        if (other != NULL) {
            snprintf(text, sizeof text, "/%.*s", (int)strcspn(other, " "), other);
            add(list, text);
        }
    }
}

/* A path after "@".  One with a blank gets quotes. */
struct at_offer {
    struct offer o;
    bool is_quoted;
};

static void offer_at(void *ctx, const char *path)
{
    struct at_offer *at = ctx;
    size_t n = strlen(path);
    bool needs = at->is_quoted || strchr(path, ' ') != NULL;
    char word[8500];

    if (strncmp(path, at->o.typed, strlen(at->o.typed)) != 0)
        return;
    snprintf(word, sizeof word, "%.*s%s%s%s", (int)at->o.head, at->o.line,
             needs && !at->is_quoted ? "\"" : "", path,
             needs && path[n - 1] != '/' ? "\"" : "");
    at->o.add(at->o.list, word);
}

static size_t complete_at(const char *line, size_t n, command_add_fn *add, void *list)
{
    bool is_quoted;
    size_t head = files_typed(line, n, &is_quoted);
    struct at_offer at = { { add, list, line, head, line + head }, is_quoted };

    if (head > 0)
        path_complete(at.o.typed, offer_at, &at);
    return head;
}

size_t command_complete(void *ctx, const char *line, size_t n, command_add_fn *add, void *list,
                        bool *space)
{
    struct talk *t = ctx;
    size_t word = strcspn(line, " ");
    struct offer o = { add, list, line, word + strspn(line + word, " "), "" };
    const struct slash_command *row;
    bool replaces;

    if (n == 0 || line[0] != '/')
        return complete_at(line, n, add, list);
    *space = word == n;
    if (word == n) {
        offer_commands(line, n, add, list);
        return 0;
    }
    row = find_forced(line + 1, word - 1, &replaces);
    if (row == NULL)
        return 0;
    o.typed = line + o.head;
    switch (row->argument) {
    case ARG_NONE: break;
    case ARG_TEXT: break;
    case ARG_PATH:
    case ARG_OUTPUT: path_complete(o.typed, offer, &o); break;
    case ARG_MODEL: offer_models(&o, t); break;
    case ARG_WORDS: offer_words(&o, row->words); break;
    case ARG_VALUE: offer_values(&o, t, row->setting); break;
    case ARG_CHAT: offer_chats(&o, t); break;
    case ARG_COMMAND:
        for (const struct slash_command *c = command_list(); c->name != NULL; c++)
            offer(&o, c->name);
        offer(&o, "dashboard");
        offer(&o, "keys");
        break;
    case ARG_SETTING:
        *space = strchr(o.typed, ' ') == NULL;
        offer_settings(&o, t);
        break;
    }
    return o.head;
}
