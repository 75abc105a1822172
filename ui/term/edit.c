#include "config.h"

#include "ui/term/edit.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <readline/readline.h>

#include "engine/base/utf8.h"
#include "ui/term/history.h"

#define RING_BYTES  4096
#define MAX_MATCHES 500
#define MAX_NEEDLE  128

static struct {
    unsigned char ring[RING_BYTES]; /* bytes of whole keys that readline has not read */
    unsigned head, tail;
    FILE *out; /* where readline would write */
    enum edit_wish wish;
    char *sent; /* the line of the last EDIT_SUBMIT */
    struct history *history;
    size_t at;   /* entry shown; history_count: the line being typed */
    char *typed; /* that line, while an older one is shown */

    bool searching;
    char needle[MAX_NEEDLE];
    char prompt[MAX_NEEDLE + 32];
    char *before_search;

    int find_key; /* f, F, t or T of vi: the next key is the character to find; else 0 */
    int found_key;
    char found[8];

    int vi_operator;  /* d, c or y of vi; twice, it takes text lines */
    bool takes_lines; /* the last motion of an operator took text lines */
    bool took_lines;  /* the present key did */
    bool repeats;     /* it is "." */

    edit_complete_fn *complete;
    void *complete_ctx;
    char *match[MAX_MATCHES]; /* whole lines */
    size_t n_match, shown_from;
    long chosen; /* highlighted match, or -1 */
    bool is_offer;
    bool wants_space; /* after a complete match */
} line;

/* Commands that must not run: they corrupt memory, print, or hang (see edit.h). */
static const char *const gone[] = {
    "beginning-of-history",
    "end-of-history",
    "non-incremental-reverse-search-history",
    "non-incremental-forward-search-history",
    "history-search-backward",
    "history-search-forward",
    "history-substring-search-backward",
    "history-substring-search-forward",
    "yank-last-arg",
    "yank-nth-arg",
    "insert-last-argument",
    "operate-and-get-next",
    "fetch-history",
    "revert-line",
    "vi-fetch-history",
    "vi-search",
    "vi-search-again",
    "vi-yank-arg",
    "vi-undo-all",
    "start-kbd-macro",
    "end-kbd-macro",
    "call-last-kbd-macro",
    "print-last-kbd-macro",
    "re-read-init-file",
    "clear-screen",
    "clear-display",
    "character-search",
    "character-search-backward",
    "insert-comment",
    "tty-status",
    "dump-functions",
    "dump-variables",
    "dump-macros",
};

/* Keys that inputrc need not bind, as keys.h writes them. */
static const struct {
    const char *keyseq, *command;
} bound[] = {
    { "\\e[3~", "delete-char" },     { "\\e[H", "beginning-of-line" },
    { "\\e[F", "end-of-line" },      { "\\e[1;5C", "forward-word" },
    { "\\e[1;5D", "backward-word" }, { "\\e[1;3C", "forward-word" },
    { "\\e[1;3D", "backward-word" }, { "\\e[1;2C", "forward-char" },
    { "\\e[1;2D", "backward-char" }, { "\\e[1;2H", "beginning-of-line" },
    { "\\e[1;2F", "end-of-line" },   { "\\e[3;5~", "kill-word" },
    { "\\e[3;3~", "kill-word" },     { "\\e[3;2~", "delete-char" },
};

/* ---- called by readline instead of the terminal ---- */

static int ring_getc(FILE *f)
{
    (void)f;
    return line.head == line.tail ? EOF : line.ring[line.tail++ % RING_BYTES];
}

static int ring_ready(void)
{
    return line.head != line.tail;
}

static void redisplay(void)
{
}

static int ignore_key(int count, int key)
{
    (void)count;
    (void)key;
    return 0;
}

static void on_line(char *text)
{
    line.wish = text == NULL ? EDIT_EOF : EDIT_SUBMIT;
    free(line.sent);
    line.sent = text;
}

/* Point every key of readline's command name at fn, in all three keymaps. */
static void rebind(const char *name, rl_command_func_t *fn)
{
    static const char *const maps[] = { "emacs", "vi-insert", "vi-command" };
    rl_command_func_t *old = rl_named_function(name);

    for (size_t i = 0; old != NULL && i < sizeof maps / sizeof maps[0]; i++) {
        Keymap map = rl_get_keymap_by_name(maps[i]);
        char **keys = rl_invoking_keyseqs_in_map(old, map);

        for (size_t k = 0; keys != NULL && keys[k] != NULL; k++) {
            rl_set_key(keys[k], fn, map);
            free(keys[k]);
        }
        free(keys);
    }
}

/* Bind a key in the two maps in which text is typed. */
static void bind_typing(const char *keyseq, rl_command_func_t *fn)
{
    rl_set_key(keyseq, fn, rl_get_keymap_by_name("emacs"));
    rl_set_key(keyseq, fn, rl_get_keymap_by_name("vi-insert"));
}

/* ---- text ---- */

static void replace(const char *text)
{
    rl_replace_line(text, 1); /* 1: drop the undo list, which belongs to the old text */
    rl_point = rl_end;
    rl_mark = 0;
}

void edit_insert(const char *text)
{
    rl_begin_undo_group();
    rl_insert_text(text);
    rl_end_undo_group();
}

void edit_set(const char *text)
{
    replace(text);
    line.at = history_count(line.history);
}

const char *edit_text(void)
{
    return rl_line_buffer == NULL ? "" : rl_line_buffer;
}

const char *edit_sent(void)
{
    return line.sent == NULL ? "" : line.sent;
}

size_t edit_cursor(void)
{
    return (size_t)rl_point;
}

void edit_set_cursor(size_t byte)
{
    rl_point = byte < (size_t)rl_end ? (int)byte : rl_end;
}

bool edit_is_empty(void)
{
    return rl_end == 0;
}

static int insert_newline(int count, int key)
{
    (void)count;
    (void)key;
    edit_insert("\n");
    return 0;
}

/* After a backslash at the end of the text, Enter inserts a newline. */
static int accept(int count, int key)
{
    int slashes = 0;

    while (slashes < rl_end && rl_line_buffer[rl_end - 1 - slashes] == '\\')
        slashes++;
    if (slashes % 2 == 0 || rl_point != rl_end)
        return rl_newline(count, key);
    rl_begin_undo_group();
    rl_delete_text(rl_end - 1, rl_end);
    rl_point = rl_end;
    rl_insert_text("\n");
    rl_end_undo_group();
    return 0;
}

static int ask_editor(int count, int key)
{
    (void)count;
    (void)key;
    line.wish = EDIT_EDITOR;
    return 0;
}

/* ---- history ---- */

static void show_entry(size_t i)
{
    if (line.at == history_count(line.history)) {
        free(line.typed);
        line.typed = strdup(edit_text());
    }
    line.at = i;
    if (i < history_count(line.history))
        replace(history_at(line.history, i));
    else
        replace(line.typed == NULL ? "" : line.typed);
}

/* Returns the byte where the text line of the cursor begins. */
static int line_start(int from)
{
    while (from > 0 && rl_line_buffer[from - 1] != '\n')
        from--;
    return from;
}

static int line_end(int from)
{
    while (from < rl_end && rl_line_buffer[from] != '\n')
        from++;
    return from;
}

/* Move to the start of a character of the line [start, end]. */
static int settle(int at, int start, int end)
{
    if (at > end)
        at = end;
    return (int)utf8_start(rl_line_buffer, (size_t)start, (size_t)at);
}

static int older(int count, int key)
{
    int start = line_start(rl_point);

    (void)count;
    (void)key;
    if (start > 0) {
        int above = line_start(start - 1);

        rl_point = settle(above + rl_point - start, above, start - 1);
    } else if (line.at > 0) {
        show_entry(line.at - 1);
    }
    return 0;
}

static int newer(int count, int key)
{
    int start = line_start(rl_point), end = line_end(rl_point);

    (void)count;
    (void)key;
    if (end < rl_end)
        rl_point = settle(end + 1 + rl_point - start, end + 1, line_end(end + 1));
    else if (line.at < history_count(line.history))
        show_entry(line.at + 1);
    return 0;
}

/* ---- ends of a text line ---- */

/* These commands of readline take a text of several lines as one. */

static int go_to_start(int count, int key)
{
    (void)count;
    (void)key;
    rl_point = line_start(rl_point);
    return 0;
}

/* A motion of vi includes the character it arrives at, which must not be the line break. */
static int go_to_end(int count, int key)
{
    int start = rl_point, end = line_end(start);

    (void)count;
    (void)key;
    rl_point = end;
    if (RL_ISSTATE(RL_STATE_VIMOTION) && end < rl_end && end > start)
        rl_point = (int)utf8_start(rl_line_buffer, (size_t)start, (size_t)end - 1);
    return 0;
}

/* Delete to the start, or at the start the line break before it, as in zsh. */
static int kill_to_start(int count, int key)
{
    int to = line_start(rl_point);

    (void)count;
    (void)key;
    if (to == rl_point && to > 0)
        to--;
    rl_kill_text(rl_point, to);
    rl_point = to;
    rl_mark = to;
    return 0;
}

/* Delete to the end, or at the end the line break after it.  A negative argument reverses it.
 */
static int kill_to_end(int count, int key)
{
    int from = rl_point, to = line_end(from);

    if (count < 0)
        return kill_to_start(1, key);
    if (to == from && to < rl_end)
        to++;
    rl_kill_text(from, to);
    rl_point = from;
    rl_mark = from;
    return 0;
}

/*
 * Operators of vi.
 *
 * dd, cc and yy of readline take the whole text.  So the second key becomes the motion below,
 * which selects text lines, and which readline repeats for "." as any motion.
 */
#define LINES_MOTION '|' /* one after which readline leaves the selection as it is */

static int vi_column_or_lines(int count, int key)
{
    int start = line_start(rl_point), end = line_end(rl_point);

    if (!line.takes_lines || !(RL_ISSTATE(RL_STATE_VIMOTION) || line.repeats))
        return rl_vi_column(count, key);
    while (count-- > 1 && end < rl_end)
        end = line_end(end + 1);
    if (line.vi_operator == 'd' && end < rl_end)
        end++;
    else if (line.vi_operator == 'd' && start > 0)
        start--;
    rl_mark = start;
    rl_point = end;
    line.took_lines = true;
    return 0;
}

/* Returns the key that readline gets for this one. */
static unsigned char vi_motion(unsigned char key)
{
    if (!RL_ISSTATE(RL_STATE_VIMOTION) || (key >= '1' && key <= '9'))
        return key;
    line.takes_lines = key == line.vi_operator;
    return line.takes_lines ? LINES_MOTION : key;
}

/* Go where vi goes: the cursor stays for yy, and after dd it is at the start of a line.  cc in an
 * empty line, in which readline finds nothing to change, inserts, too. */
static void vi_took_lines(int before)
{
    bool is_insert = rl_get_keymap() != rl_get_keymap_by_name("vi-command");

    if (line.took_lines && line.vi_operator == 'y')
        rl_point = before;
    else if (line.took_lines && line.vi_operator == 'd')
        rl_point = line_start(rl_point);
    else if (line.took_lines && !is_insert)
        (void)rl_vi_insertion_mode(1, 'i');
    line.took_lines = false;
}

static int vi_repeat(int count, int key)
{
    int rc, start;

    line.repeats = true;
    rc = rl_vi_redo(count, key);
    line.repeats = false;
    if (line.took_lines && line.vi_operator == 'c') { /* its text is inserted, too */
        line.took_lines = false;
        start = line_start(rl_point);
        rl_point = settle(rl_point > start ? rl_point - 1 : start, start, rl_point);
    }
    return rc;
}

static int vi_yank(int count, int key)
{
    line.vi_operator = key;
    return rl_vi_yank_to(count, key);
}

/* D and C; d and c take a motion. */
static int vi_delete(int count, int key)
{
    line.vi_operator = key;
    if (key != 'D')
        return rl_vi_delete_to(count, key);
    rl_kill_text(rl_point, line_end(rl_point));
    return 0;
}

static int vi_change(int count, int key)
{
    line.vi_operator = key;
    if (key != 'C')
        return rl_vi_change_to(count, key);
    rl_kill_text(rl_point, line_end(rl_point));
    return rl_vi_insertion_mode(1, key);
}

/* S is cc, and s is c with the character at the cursor. */
static int vi_substitute(int count, int key)
{
    line.vi_operator = 'c';
    if (key != 'S')
        return rl_vi_subst(count, key);
    line.takes_lines = true;
    if (!line.repeats)
        rl_stuff_char(LINES_MOTION);
    return rl_vi_change_to(count, 'c');
}

/* I and A of vi. */
static int insert_at_start(int count, int key)
{
    go_to_start(count, key);
    return rl_vi_insertion_mode(count, key);
}

static int insert_at_end(int count, int key)
{
    go_to_end(count, key);
    return rl_vi_insertion_mode(count, key);
}

/* ---- history search ---- */

static int search_begin(int count, int key)
{
    (void)count;
    (void)key;
    line.searching = true;
    line.needle[0] = '\0';
    free(line.before_search);
    line.before_search = strdup(edit_text());
    return 0;
}

static void search_from(size_t from, bool is_newer)
{
    long found = history_find(line.history, line.needle, from, is_newer);

    if (found >= 0)
        show_entry((size_t)found);
}

static void search_leave(bool keep)
{
    line.searching = false;
    if (!keep)
        edit_set(line.before_search == NULL ? "" : line.before_search);
    free(line.before_search);
    line.before_search = NULL;
}

/* Returns true if the search used the key. */
static bool search_key(const unsigned char *key, size_t n)
{
    size_t len = strlen(line.needle);

    if (n == 1 && (key[0] == 'R' - 64 || key[0] == 'S' - 64)) {
        search_from(line.at, key[0] == 'S' - 64);
        return true;
    }
    if (n == 1 && (key[0] == 0x7f || key[0] == '\b')) {
        if (len > 0)
            line.needle[utf8_start(line.needle, 0, len - 1)] = '\0';
        search_from(history_count(line.history), false);
        return true;
    }
    if (n == 1 && (key[0] == 'G' - 64 || key[0] == '\033')) {
        search_leave(false);
        return true;
    }
    if (key[0] >= 0x20 && key[0] != 0x7f && len + n < sizeof line.needle) {
        memcpy(line.needle + len, key, n);
        line.needle[len + n] = '\0';
        search_from(line.at < history_count(line.history) ? line.at + 1
                                                          : history_count(line.history),
                    false);
        return true;
    }
    search_leave(true);
    return n == 1 && key[0] == '\r'; /* Enter takes the entry, a second one sends it */
}

bool edit_is_searching(void)
{
    return line.searching;
}

/* ---- f F t T ; , of vi (those of readline sometimes hang on multibyte text) ---- */

static int step(int at, int direction)
{
    do
        at += direction;
    while (at > 0 && at < rl_end && utf8_is_inside(rl_line_buffer[at]));
    return at;
}

static void find_char(int key, const char *what)
{
    int direction = key == 'f' || key == 't' ? 1 : -1;
    size_t n = strlen(what);

    for (int at = step(rl_point, direction); at >= 0 && at < rl_end; at = step(at, direction)) {
        if (strncmp(rl_line_buffer + at, what, n) != 0)
            continue;
        rl_point = key == 't' ? step(at, -1) : key == 'T' ? step(at, 1) : at;
        return;
    }
}

static int vi_find(int count, int key)
{
    (void)count;
    if (RL_ISSTATE(RL_STATE_VIMOTION))
        return 0; /* not supported as a motion of d, c, y */
    if ((key == ';' || key == ',') && line.found_key != 0)
        find_char(key == ';' ? line.found_key : line.found_key ^ 0x20, line.found);
    else if (key != ';' && key != ',')
        line.find_key = key;
    return 0;
}

static bool find_key(const unsigned char *key, size_t n)
{
    if (line.find_key == 0)
        return false;
    if (key[0] >= 0x20 && n < sizeof line.found) {
        memcpy(line.found, key, n);
        line.found[n] = '\0';
        line.found_key = line.find_key;
        find_char(line.found_key, line.found);
    }
    line.find_key = 0;
    return true;
}

/* ---- completion ---- */

static void forget_matches(void)
{
    while (line.n_match > 0)
        free(line.match[--line.n_match]);
    line.chosen = -1;
    line.is_offer = false;
}

static void add_match(void *list, const char *text)
{
    (void)list;
    if (line.n_match < MAX_MATCHES && (line.match[line.n_match] = strdup(text)) != NULL)
        line.n_match++;
}

static char *next_match(const char *text, int state)
{
    static size_t i;

    (void)text;
    if (state == 0)
        i = 0;
    return i < line.n_match ? strdup(line.match[i++]) : NULL;
}

static char **attempt(const char *text, int start, int end)
{
    rl_attempted_completion_over = 1; /* no file name completion by readline */
    forget_matches();
    if (start != line_start(end) || line.complete == NULL)
        return NULL;
    line.wants_space = false;
    line.shown_from = line.complete(line.complete_ctx, text, strlen(text), add_match, NULL,
                                    &line.wants_space);
    rl_completion_append_character = line.wants_space ? ' ' : '\0';
    return rl_completion_matches(text, next_match);
}

/* The caller reads them from line.match. */
static void show_matches(char **matches, int n, int longest)
{
    (void)matches;
    (void)n;
    (void)longest;
}

void edit_offer(void)
{
    forget_matches();
    if (line.complete != NULL && rl_point == rl_end && line_start(rl_point) == 0)
        line.shown_from = line.complete(line.complete_ctx, rl_line_buffer, (size_t)rl_end,
                                        add_match, NULL, &line.wants_space);
    line.is_offer = true;
}

/* A single match found by Tab is in the text already; an offered one is not. */
size_t edit_match_count(void)
{
    return line.n_match > 1 || line.is_offer ? line.n_match : 0;
}

const char *edit_match(size_t i)
{
    const char *m = line.match[i];

    return strlen(m) >= line.shown_from ? m + line.shown_from : m;
}

void edit_match_move(int direction)
{
    long n = (long)edit_match_count();

    if (n > 0)
        line.chosen =
            line.chosen < 0 ? (direction > 0 ? 0 : n - 1) : (line.chosen + direction + n) % n;
}

long edit_match_chosen(void)
{
    return line.chosen;
}

void edit_match_take(void)
{
    if (line.chosen < 0)
        return;
    replace(line.match[line.chosen]);
    if (line.wants_space)
        rl_insert_text(" ");
    forget_matches();
}

void edit_match_close(void)
{
    forget_matches();
}

/* ---- opening and keys ---- */

/* The whole text line up to the cursor is one word. */
static char breaks[] = "\n";
static char no_quotes[] = "";

void edit_open(FILE *tty_in, struct history *h, edit_complete_fn *complete, void *ctx)
{
    line.history = h;
    line.at = history_count(h);
    line.complete = complete;
    line.complete_ctx = ctx;
    line.out = fopen("/dev/null", "we");
    rl_readline_name = "memwall"; /* for "$if memwall" in inputrc */
    rl_catch_signals = 0;
    rl_catch_sigwinch = 0;
    rl_change_environment = 0; /* or it exports LINES and COLUMNS, which ncurses obeys */
    rl_instream = tty_in;      /* used only for its special characters */
    rl_outstream = line.out;
    rl_redisplay_function = redisplay; /* set before rl_initialize: no termcap at all */
    rl_getc_function = ring_getc;
    rl_input_available_hook = ring_ready; /* without it Esc blocks and lines submit early */
    rl_prep_term_function = NULL;
    rl_deprep_term_function = NULL;
    rl_initialize();

    for (size_t i = 0; i < sizeof bound / sizeof bound[0]; i++)
        rl_bind_keyseq_if_unbound(bound[i].keyseq, rl_named_function(bound[i].command));
    rebind("previous-history", older);
    rebind("next-history", newer);
    rebind("previous-screen-line", older);
    rebind("next-screen-line", newer);
    rebind("beginning-of-line", go_to_start);
    rebind("end-of-line", go_to_end);
    rebind("kill-line", kill_to_end);
    rebind("unix-line-discard", kill_to_start);
    rebind("backward-kill-line", kill_to_start);
    rebind("vi-delete-to", vi_delete);
    rebind("vi-change-to", vi_change);
    rebind("vi-yank-to", vi_yank);
    rebind("vi-subst", vi_substitute);
    rebind("vi-column", vi_column_or_lines);
    rebind("vi-redo", vi_repeat);
    rebind("vi-insert-beg", insert_at_start);
    rebind("vi-append-eol", insert_at_end);
    rebind("reverse-search-history", search_begin);
    rebind("forward-search-history", search_begin);
    rebind("accept-line", accept);
    rebind("vi-char-search", vi_find);
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++)
        rebind(gone[i], ignore_key);
    bind_typing("\\C-j", insert_newline);
    bind_typing("\\C-x\\C-e", ask_editor);
    rl_set_key("v", ask_editor, rl_get_keymap_by_name("vi-command"));

    rl_attempted_completion_function = attempt;
    rl_completion_display_matches_hook = show_matches;
    rl_completer_word_break_characters = breaks;
    rl_basic_quote_characters = no_quotes;
    rl_completer_quote_characters = no_quotes;
    rl_sort_completion_matches = 0;
    rl_callback_handler_install("", on_line);
}

void edit_close(void)
{
    rl_callback_handler_remove();
    forget_matches();
    free(line.typed);
    free(line.sent);
    free(line.before_search);
    if (line.out != NULL)
        fclose(line.out);
    rl_outstream = NULL;
    memset(&line, 0, sizeof line);
}

void edit_clear(void)
{
    line.searching = false;
    line.find_key = 0;
    forget_matches();
    rl_callback_sigcleanup();
    rl_callback_handler_remove();
    rl_callback_handler_install("", on_line);
    rl_replace_line("", 1);
    rl_point = 0;
    free(line.typed);
    line.typed = NULL;
    line.at = history_count(line.history);
}

bool edit_is_bound(const unsigned char *key, size_t n)
{
    int type;

    return !RL_ISSTATE(RL_STATE_MULTIKEY) &&
           rl_function_of_keyseq_len((const char *)key, n, rl_get_keymap(), &type) != NULL &&
           type != ISKMAP;
}

/* F5 would type "~" if it is not bound, and the start of a sequence would take the next key. */
static bool means_something(const unsigned char *key, size_t n)
{
    return n == 1 || key[0] != '\033' || RL_ISSTATE(RL_STATE_MULTIKEY) || edit_is_bound(key, n);
}

enum edit_wish edit_key(const unsigned char *key, size_t n)
{
    int before;

    if (n == 0 || n > RING_BYTES)
        return EDIT_UNKNOWN;
    if (line.searching && search_key(key, n))
        return EDIT_NOTHING;
    if (find_key(key, n))
        return EDIT_NOTHING;
    if (n == 2 && key[0] == '\033' && key[1] == '\r') { /* Alt-Enter */
        edit_insert("\n");
        return EDIT_NOTHING;
    }
    if (!means_something(key, n))
        return EDIT_UNKNOWN;
    forget_matches();
    line.wish = EDIT_NOTHING;
    line.head = line.tail = 0;
    for (size_t i = 0; i < n; i++)
        line.ring[line.head++ % RING_BYTES] = n == 1 ? vi_motion(key[i]) : key[i];
    before = rl_point;
    while (line.head != line.tail && line.wish != EDIT_SUBMIT && line.wish != EDIT_EOF)
        rl_callback_read_char();
    vi_took_lines(before);
    return line.wish;
}

const char *edit_prompt(void)
{
    if (line.searching) {
        snprintf(line.prompt, sizeof line.prompt, "history: %s", line.needle);
        return line.prompt;
    }
    return rl_display_prompt == NULL ? "" : rl_display_prompt;
}

const char *edit_mode(void)
{
    if (rl_editing_mode == 0)
        return rl_get_keymap() == rl_get_keymap_by_name("vi-command") ? "vi command"
                                                                      : "vi insert";
    return RL_ISSTATE(RL_STATE_OVERWRITE) ? "overwrite" : "";
}

bool edit_wants_esc(void)
{
    return line.searching || line.find_key != 0 ||
           (rl_editing_mode == 0 &&
            (rl_get_keymap() != rl_get_keymap_by_name("vi-command") ||
             RL_ISSTATE(RL_STATE_NUMERICARG | RL_STATE_MULTIKEY | RL_STATE_VIMOTION)));
}
