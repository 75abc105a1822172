#include "config.h"

#include "ui/talk/help_question.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/near.h"
#include "ui/talk/commands.h"

#define QUESTION_BYTES 240 /* longer ones are for the model */

/* ---- words of an entry ---- */

/* Does text have this word?  A part of a word with hyphens is one, too. */
static bool has_word(const char *text, const char *word, bool also_parts)
{
    struct word w;
    char *rest = NULL;

    while (text != NULL && word_next(&text, &w)) {
        if (word_same(w.text, word))
            return true;
        for (char *part = also_parts ? strtok_r(w.text, "-", &rest) : NULL; part != NULL;
             part = strtok_r(NULL, "-", &rest))
            if (strlen(part) > 2 && word_same(part, word))
                return true;
    }
    return false;
}

/* "disk-bound" is the verdict "disk". */
static bool is_bound(const struct help_entry *e, const char *word)
{
    size_t n = strlen(word);

    return n > 6 && strcmp(word + n - 6, "-bound") == 0 && strlen(e->name) == n - 6 &&
           strncmp(e->name, word, n - 6) == 0;
}

static bool is_verdict(const struct help_entry *e)
{
    return e->kind == HELP_NOTE && strcmp(e->panel, "verdict") == 0;
}

static bool has_sign(const struct help_entry *e, const char *sign)
{
    if (sign[0] == '/')
        return e->kind == HELP_SLASH && command_find(sign + 1, strlen(sign + 1)) ==
                                            command_find(e->name, strlen(e->name));
    if (strncmp(sign, "--", 2) == 0)
        return e->option != NULL && strcmp(e->option->name, sign + 2) == 0;
    if (sign[0] == '-')
        return e->option != NULL && e->option->letter == sign[1];
    return (e->kind == HELP_KEY || e->kind == HELP_NOTE) && has_word(e->name, sign, false);
}

bool question_has(const struct question *q, const char *words)
{
    for (size_t i = 0; i < q->n; i++)
        if (has_word(words, q->word[i].text, false))
            return true;
    return false;
}

bool question_begins(const struct question *q, const char *words)
{
    return has_word(words, q->word[0].text, false);
}

/* Is the word one of the names of an entry?  They are separated by commas: "k, s" are two.  Of
 * one with several words, such as "first token", a single word is not the name. */
static bool is_name(const struct help_entry *e, const char *word, const struct question *q)
{
    const char *name = e->name;
    struct word w;
    bool has_it = false, has_all = true;

    if (e->kind != HELP_NOTE && e->kind != HELP_KEY)
        return strcmp(name, word) == 0 && (e->kind != HELP_OPTION || strchr(name, '-') != NULL);
    while (word_next(&name, &w)) {
        has_it |= word_same(w.text, word);
        if (has_it && strlen(word) == 1)
            return true;
        has_all &= strlen(w.text) < 3 || word_is_common(w.text) || q == NULL ||
                   question_has(q, w.text);
        if (name[-1] != ',' && *name != '\0')
            continue;
        if (has_it && has_all)
            return true;
        has_it = false;
        has_all = true;
    }
    return false;
}

bool question_is_name(const struct question *q, const struct help_entry *e, const char *word)
{
    if (is_verdict(e) && (q == NULL || !question_has(q, "verdict")))
        return is_bound(e, word) || strcmp(e->name, word) == 0;
    return is_name(e, word, q);
}

/*
 * How well does an entry explain a word of the question q?  A key is asked for by what it does,
 * so that its text counts as other words for it.  Without dashes, "text" and "yes" are rarely
 * the options, and without "-bound", "disk" is rarely the verdict.  q is NULL if any question
 * may have the word.
 */
double question_match(const struct question *q, const struct help_entry *e, const char *word)
{
    if (word_is_sign(word))
        return has_sign(e, word) ? BY_NAME : 0;
    if (word_is_mark(word))
        return e->kind == HELP_NOTE && is_name(e, word, q) ? BY_NAME : 0;
    if (question_is_name(q, e, word))
        return BY_NAME;
    if (has_word(e->also, word, false) || has_word(e->asks, word, false))
        return has_word(e->text, word, true) ? BY_NAME : BY_ASKS;
    if (e->kind == HELP_KEY && has_word(e->text, word, true))
        return BY_ASKS;
    if (has_word(e->name, word, true) || has_word(e->panel, word, false))
        return BY_PLACE;
    if (has_word(e->text, word, true))
        return BY_TEXT;
    return has_word(e->more, word, true) ? BY_MORE : 0;
}

static size_t count(const struct help_list *l, const char *word)
{
    size_t n = 0;

    for (size_t i = 0; i < l->n; i++)
        n += question_match(NULL, &l->entry[i], word) >= BY_TEXT;
    return n;
}

/* ---- reading ---- */

/* Words that are keys, too, but mostly something else. */
#define DIRECTIONS "left right up down home end"

/* Sizes and names of models are of no entry: "8gb", "12b", "e2b". */
static bool is_number(const char *w)
{
    return isdigit((unsigned char)w[0]) ||
           (w[0] == 'e' && isdigit((unsigned char)w[1]) && w[2] == 'b');
}

/* Compare with the words of a text, with their sign before them. */
static void try_words(struct near *near, char best[WORD_BYTES], const char *text,
                      const char *before)
{
    struct word w;
    char candidate[WORD_BYTES];

    while (text != NULL && word_next(&text, &w)) {
        int was = near->distance;
        bool had = near->name != NULL;

        snprintf(candidate, sizeof candidate, "%s%.24s", before, w.text);
        if (strlen(candidate) < 4)
            continue;
        near_try(near, candidate);
        if (near->name == candidate && (!had || near->distance < was)) {
            memcpy(best, candidate, sizeof candidate);
            near->name = best;
        }
    }
}

/* Replace a word that no entry has by the nearest one of the names.  Typing errors seldom
 * change the first letter, and in short words two of them make another word. */
static void correct(const struct help_list *l, struct word *w)
{
    const char *before = w->text[0] == '/' ? "/" : w->text[0] == '-' ? "--" : "";
    struct near near = { .word = w->text, .len = strlen(w->text) };
    char best[WORD_BYTES] = "";

    if (near.len < (before[0] == '\0' ? 6 : 5))
        return;
    for (size_t i = 0; i < l->n; i++) {
        const struct help_entry *e = &l->entry[i];

        if (before[0] == '/' ? e->kind == HELP_SLASH : before[0] == '\0' || e->option != NULL) {
            try_words(&near, best, e->name, before);
            try_words(&near, best, before[0] == '\0' ? e->asks : NULL, before);
            try_words(&near, best, before[0] == '\0' ? e->text : NULL, before);
        }
    }
    if (best[0] == w->text[0] && near.distance <= (near.len < 8 ? 1 : 2))
        memcpy(w->text, best, sizeof best);
}

static double weight_of(const struct help_list *l, struct word *w, bool is_key)
{
    double all = log((double)l->n + 1);
    size_t n;

    if ((word_is_common(w->text) && !w->is_quoted) || is_number(w->text) ||
        (has_word(DIRECTIONS, w->text, false) && !is_key))
        return 0;
    if (count(l, w->text) == 0)
        correct(l, w);
    if (word_is_common(w->text) && !w->is_quoted)
        return 0;
    n = count(l, w->text);
    if (word_is_sign(w->text))
        return n > 0 ? 1.5 : 1;
    if (w->is_quoted)
        return 1;
    return n == 0 ? 1 : fmax(0.1, log(((double)l->n + 1) / ((double)n + 0.5)) / all);
}

static const char *const aspect_words[N_ASPECT] = {
    [ASPECT_ALL] = "",
    [ASPECT_APPLIES] = "restart reload immediately running effect apply",
    [ASPECT_DEFAULT] = "default normally",
    [ASPECT_VALUES] = "values value choices possible",
    [ASPECT_KEEP] = "keep permanent permanently remember forever config configuration",
};

static enum aspect aspect_of_word(const char *w)
{
    for (int a = 1; a < N_ASPECT; a++)
        if (has_word(aspect_words[a], w, false))
            return (enum aspect)a;
    return ASPECT_ALL;
}

/* The words after these tell where the thing is that is asked about. */
#define PLACES "in of on at under while when during before after"
#define LESS   0.7

/* Marks and letters mean something only on the screen: "8 - 3" and "plan b" are not about it.
 */
static bool is_about_screen(const struct question *q)
{
    return question_has(q, "mean means meaning mark marks sign symbol letter letters bar panel "
                           "dashboard screen column legend layer layers instead");
}

/* "top p" is "top-p". */
static void join_names(struct question *q, const struct help_list *l)
{
    for (size_t i = 0; i + 1 < q->n; i++) {
        char name[2 * WORD_BYTES];
        bool is_one = false;

        snprintf(name, sizeof name, "%s-%s", q->word[i].text, q->word[i + 1].text);
        for (size_t k = 0; k < l->n && !is_one; k++)
            is_one = strcmp(l->entry[k].name, name) == 0 && strlen(name) < WORD_BYTES;
        if (!is_one)
            continue;
        memcpy(q->word[i].text, name, WORD_BYTES);
        memmove(&q->word[i + 1], &q->word[i + 2], (--q->n - i - 1) * sizeof q->word[0]);
    }
}

bool question_read(struct question *q, const struct help_list *l, const char *text)
{
    double share = 1;
    bool is_key;

    *q = (struct question){ 0 };
    if (strlen(text) > QUESTION_BYTES || strchr(text, '\n') != NULL)
        return false;
    q->n = words_of(text, q->word);
    join_names(q, l);
    is_key = question_has(q, "key keys arrow press");
    for (size_t i = 0; i < q->n; i++) {
        q->weight[i] = weight_of(l, &q->word[i], is_key);
        if (q->weight[i] < 1)
            q->weight[i] *= share;
        if (word_is_mark(q->word[i].text) && !is_about_screen(q))
            q->weight[i] = 0;
        if (aspect_of_word(q->word[i].text) != ASPECT_ALL)
            q->weight[i] = 0;
        q->sum += q->weight[i];
        if (q->sum > 0 && has_word(PLACES, q->word[i].text, false))
            share = LESS;
    }
    return q->n > 0;
}

/* ---- what it asks ---- */

/* Does it ask what something is, or how something is done? */
bool question_of_meaning(const struct question *q)
{
    return question_has(q, "what what's whats wat wats wht explain define describe mean means "
                           "meaning definition about why");
}

bool question_of_way(const struct question *q)
{
    return question_has(q, "how where which can could want need option command key way") ||
           question_begins(q, "make set change show turn switch start stop delete remove copy "
                              "save open attach search find scroll hide");
}

enum aspect question_aspect(const struct question *q)
{
    enum aspect a = ASPECT_ALL;

    for (size_t i = 0; i < q->n && a == ASPECT_ALL; i++)
        a = aspect_of_word(q->word[i].text);
    return a;
}
