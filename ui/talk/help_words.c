#include "config.h"

#include "ui/talk/help_words.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Words that do not narrow down the subject of a question, and names of models. */
static const char common[] =
    " a about actually after all also always am an and another any anything are around as at "
    "be because been before being between bit but button by called can can't cannot change "
    "chat command could default define describe did differ difference different do does "
    "doesnt doing don't dont during each else even every everything exactly explain "
    "explained explaining explanation far figure flag for from function gemma get gets give "
    "gives go goes going good got had happen happens has have heard hello help here hey hi "
    "how however i i'd i'm if im in inside instead into is isn't isnt it it's item its "
    "itself just key kind know let letter letters like llama look made make makes many may "
    "me mean meaning means memwall might mistral more most much must my named need needs "
    "never no not now number numbers of off ok okay on once one ones only option options or "
    "our out over panel panels parameter part parts phi place please pls point possible "
    "press pressing program purpose put question quick quickly qwen really said say says "
    "screen see seen set setting shall shortcut should show shown shows side sign simple "
    "simply since so some something sort still subcommand subcommands such super symbol take "
    "takes tell term than thanks that that's thats the their them then there these they "
    "thing things think this those though through thx to too true try trying turn understand "
    "us use used useful using value values versus very vs wanna want was wat wats way we "
    "well were what what's whats when where whether which while who whole whom wht why will "
    "with without wondering word words work works would wrong you your ";

bool word_is_common(const char *w)
{
    char key[WORD_BYTES + 2];

    if (strcmp(w, "I") == 0)
        return true;
    snprintf(key, sizeof key, " %s ", w);
    return strstr(common, key) != NULL;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Punctuation before and after words.  A word of nothing else is a mark that is asked about. */
static size_t trim_end(const char *s, size_t n)
{
    while (n > 1 && strchr("\"'`),;:.?!]", s[n - 1]) != NULL)
        n--;
    return n;
}

bool word_next(const char **s, struct word *out)
{
    const char *at = *s;
    size_t n = 0, len;

    while (is_blank(*at))
        at++;
    while (at[n] != '\0' && !is_blank(at[n]))
        n++;
    *s = at + n;
    if (n == 0)
        return false;
    out->is_quoted = strchr("\"'`", at[0]) != NULL;
    while (n > 1 && strchr("\"'`([", at[0]) != NULL)
        at++, n--;
    n = trim_end(at, n);
    len = n < WORD_BYTES ? n : WORD_BYTES - 1;
    memcpy(out->text, at, len);
    out->text[len] = '\0';
    for (size_t i = 0; i < len && len > 1 && !(len == 2 && at[0] == '-'); i++)
        out->text[i] = (char)tolower((unsigned char)out->text[i]);
    if (len > 3 && strcmp(out->text + len - 2, "'s") == 0)
        out->text[len - 2] = '\0';
    return true;
}

/* "ctrl x" and "ctrl + x" are keys, too. */
static bool is_modifier(const char *w)
{
    return strcmp(w, "ctrl") == 0 || strcmp(w, "control") == 0 || strcmp(w, "alt") == 0 ||
           strcmp(w, "strg") == 0;
}

static bool is_key_name(const char *w)
{
    static const char *const names[] = {
        "enter", "space", "tab", "left", "right", "up", "down"
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(w, names[i]) == 0)
            return true;
    return strlen(w) == 1;
}

static void join_key(struct word *modifier, const struct word *key)
{
    const char *name = strcmp(modifier->text, "alt") == 0 ? "alt" : "ctrl";
    char text[WORD_BYTES];

    snprintf(text, sizeof text, "%s-%c%s", name, tolower((unsigned char)key->text[0]),
             strlen(key->text) < 8 ? key->text + 1 : "");
    memcpy(modifier->text, text, sizeof text);
}

static void join(struct word *first, const struct word *second)
{
    size_t n = strlen(first->text);

    snprintf(first->text + n, WORD_BYTES - n, "-%s", second->text);
}

/* Make "ctrl+x" and "^x" one form. */
static void plain_key(struct word *w)
{
    char *plus = strchr(w->text, '+'), text[WORD_BYTES];

    if (plus != NULL && plus > w->text && plus[1] != '\0')
        *plus = '-';
    if (w->text[0] == '^' && strlen(w->text) == 2) {
        snprintf(text, sizeof text, "ctrl-%c", tolower((unsigned char)w->text[1]));
        memcpy(w->text, text, sizeof text);
    }
    if (strncmp(w->text, "control-", 8) == 0 || strncmp(w->text, "strg-", 5) == 0) {
        snprintf(text, sizeof text, "ctrl%.8s", strchr(w->text, '-'));
        memcpy(w->text, text, sizeof text);
    }
    if (strcmp(w->text, "escape") == 0)
        memcpy(w->text, "esc", 4);
}

size_t words_of(const char *text, struct word word[WORD_MAX])
{
    struct word w;
    size_t n = 0;

    while (word_next(&text, &w)) {
        plain_key(&w);
        if (strcmp(w.text, "+") == 0 && n > 0 && is_modifier(word[n - 1].text))
            continue;
        if (n > 0 && is_modifier(word[n - 1].text) && is_key_name(w.text)) {
            join_key(&word[n - 1], &w);
            continue;
        }
        if (n > 0 && strcmp(w.text, "bound") == 0) {
            join(&word[n - 1], &w);
            continue;
        }
        if (n == WORD_MAX)
            return 0;
        word[n++] = w;
    }
    /* A blank before the question mark does not make it a word. */
    if (n > 1 && strcmp(word[n - 1].text, "?") == 0 && !word[n - 1].is_quoted)
        n--;
    return n;
}

/* Cut the endings of English words, in the same way from all: "copied", "copies", "copying". */
static void stem(char *w)
{
    size_t n = strlen(w);

    if (n < 4 || !isalpha((unsigned char)w[n - 1]))
        return;
    if (n > 4 && (strcmp(w + n - 3, "ies") == 0 || strcmp(w + n - 3, "ied") == 0)) {
        memcpy(w + n - 3, "y", 2);
        return;
    }
    if (w[n - 1] == 's' && w[n - 2] != 's')
        w[--n] = '\0';
    if (n > 5 && strcmp(w + n - 3, "ing") == 0)
        w[n -= 3] = '\0';
    else if (n > 4 && strcmp(w + n - 2, "ed") == 0)
        w[n -= 2] = '\0';
    if (n > 3 && w[n - 1] == 'e')
        w[--n] = '\0';
    if (n > 3 && w[n - 1] == w[n - 2] && w[n - 1] != 's')
        w[--n] = '\0';
}

bool word_same(const char *a, const char *b)
{
    char one[WORD_BYTES], other[WORD_BYTES];

    if (strcmp(a, b) == 0)
        return true;
    if (strlen(a) < 3 || strlen(b) < 3 || a[0] != b[0])
        return false;
    snprintf(one, sizeof one, "%s", a);
    snprintf(other, sizeof other, "%s", b);
    stem(one);
    stem(other);
    return strcmp(one, other) == 0;
}

static bool is_function_key(const char *w)
{
    return w[0] == 'f' && isdigit((unsigned char)w[1]) &&
           (w[2] == '\0' || (isdigit((unsigned char)w[2]) && w[3] == '\0'));
}

bool word_is_sign(const char *w)
{
    size_t n = strlen(w);

    if (is_function_key(w) || strncmp(w, "ctrl-", 5) == 0 || strncmp(w, "alt-", 4) == 0)
        return true;
    if (w[0] == '/')
        return n > 1 && isalpha((unsigned char)w[1]) && strchr(w + 1, '/') == NULL;
    if (w[0] == '-' && w[1] == '-')
        return n > 3 && isalpha((unsigned char)w[2]);
    return n == 2 && w[0] == '-' && isalpha((unsigned char)w[1]);
}

bool word_is_mark(const char *w)
{
    for (size_t i = 1; w[0] != '\0' && w[i] != '\0'; i++)
        if (isalnum((unsigned char)w[i]) || (unsigned char)w[i] >= 0x80)
            return false;
    return w[0] != '\0' && (w[1] == '\0' || !isalnum((unsigned char)w[0])) &&
           !isdigit((unsigned char)w[0]);
}
