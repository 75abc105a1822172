/* Search in the chat: Ctrl-F or /find, then n and N. */
#include "config.h"

#include <string.h>

#include "engine/base/utf8.h"
#include "ui/app/app.h"
#include "ui/words/clean.h"

#define CTRL(c) ((c)-64)

static void count_matches(struct app *a)
{
    if (!transcript_count(a->transcript, &a->matches))
        a->matches.of = 0;
}

static void search(struct app *a)
{
    if (transcript_search(a->transcript, a->find)) {
        count_matches(a);
        return;
    }
    transcript_search(a->transcript, ""); /* n is typed again */
    app_hint(a, "not found: %s", a->find);
}

static void begin_find(struct app *a)
{
    app_enter(a, MODE_FIND);
    a->find[0] = '\0';
}

void app_find(struct app *a, const char *text)
{
    begin_find(a);
    if (text[0] == '\0')
        return;
    app_enter(a, MODE_LINE);
    clean_line(a->find, sizeof a->find, text, strlen(text));
    search(a);
}

bool app_find_key(struct app *a, const struct key *key)
{
    bool is_char = key->kind == KEYS_CHAR && (key->mods & KEYS_ALT) == 0;
    size_t n = strlen(a->find);

    app_dirty(a, DIRT_CHAT | DIRT_INPUT);
    if ((key->kind == KEYS_NAMED && key->name == KEYS_ESC) ||
        (is_char && key->ch == CTRL('C'))) {
        app_enter(a, MODE_LINE);
    } else if (!is_char) {
        return true;
    } else if (key->ch == '\r') {
        app_enter(a, MODE_LINE);
        search(a);
    } else if (key->ch == 0x7f || key->ch == '\b') {
        if (n > 0)
            a->find[utf8_start(a->find, 0, n - 1)] = '\0';
    } else if (key->ch == CTRL('U')) {
        a->find[0] = '\0';
    } else if (key->ch >= 0x20 && n + key->n < sizeof a->find) {
        memcpy(a->find + n, key->bytes, key->n);
        a->find[n + key->n] = '\0';
    }
    return true;
}

/* n and N in an empty line, while there are matches. */
static bool next_match(struct app *a, const struct key *key)
{
    if (key->mods != 0 || !edit_is_empty() || !transcript_is_searching(a->transcript) ||
        (key->ch != 'n' && key->ch != 'N'))
        return false;
    if (transcript_search_next(a->transcript, key->ch == 'n' ? 1 : -1))
        count_matches(a);
    else
        app_hint(a, "no more matches");
    return true;
}

bool app_searches(struct app *a, const struct key *key)
{
    /* Before the end of the line, Ctrl-F is the key of readline for the next character. */
    bool is_ctrl_f = key->kind == KEYS_CHAR && key->mods == 0 && key->ch == CTRL('F') &&
                     edit_text()[edit_cursor()] == '\0';

    if (key->kind != KEYS_CHAR || (!is_ctrl_f && !next_match(a, key)))
        return false;
    if (is_ctrl_f)
        begin_find(a);
    app_dirty(a, DIRT_CHAT | DIRT_INPUT);
    return true;
}
