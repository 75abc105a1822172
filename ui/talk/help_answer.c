#include "config.h"

#include "ui/talk/help_answer.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/near.h"
#include "ui/talk/commands.h"
#include "ui/talk/help_entry.h"
#include "ui/talk/help_words.h"

#define QUESTION_BYTES 240 /* longer ones are for the model */

/* How much of a question an entry must explain, and how much at least: common words alone are
 * not enough. */
#define ENOUGH_SHARE 0.5
#define ENOUGH       0.55

/* ---- words and entries ---- */

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
        return e->kind == HELP_SLASH &&
               command_find(sign + 1, strlen(sign + 1)) == command_find(e->name, strlen(e->name));
    if (strncmp(sign, "--", 2) == 0)
        return e->option != NULL && strcmp(e->option->name, sign + 2) == 0;
    if (sign[0] == '-')
        return e->option != NULL && e->option->letter == sign[1];
    return (e->kind == HELP_KEY || e->kind == HELP_NOTE) && has_word(e->name, sign, false);
}

struct question {
    struct word word[WORD_MAX];
    double weight[WORD_MAX]; /* 0: it does not count */
    size_t n;
    double sum;    /* of all weights */
    bool is_asked; /* it asks something, and does not only say it */
    bool follows;  /* it has words of the question before */
};

static bool has(const struct question *q, const char *words)
{
    for (size_t i = 0; i < q->n; i++)
        if (has_word(words, q->word[i].text, false))
            return true;
    return false;
}

#define BY_NAME  1.0 /* it is the name, or another word for it that the text has, too; */
#define BY_ASKS  0.9 /* another word for it; */
#define BY_PLACE 0.7 /* a part of the name, or the panel where it is; */
#define BY_TEXT  0.6 /* its text has the word; */
#define BY_MORE  0.3 /* more text has it */

/* Is the word one of the names of an entry?  They are separated by commas: "k, s" are two.  Of
 * one with several words, such as "first token", a single word is not the name. */
static bool is_name(const struct help_entry *e, const char *word, const struct question *q)
{
    const char *name = e->name;
    struct word w;
    bool has_it = false, has_all = true;

    if (e->kind != HELP_NOTE && e->kind != HELP_KEY)
        return strcmp(name, word) == 0 &&
               (e->kind != HELP_OPTION || strchr(name, '-') != NULL);
    while (word_next(&name, &w)) {
        has_it |= word_same(w.text, word);
        if (has_it && strlen(word) == 1)
            return true;
        has_all &= strlen(w.text) < 3 || word_is_common(w.text) || q == NULL || has(q, w.text);
        if (name[-1] != ',' && *name != '\0')
            continue;
        if (has_it && has_all)
            return true;
        has_it = false;
        has_all = true;
    }
    return false;
}

/*
 * How well does an entry explain a word of the question q?  A key is asked for by what it does, so
 * that its text counts as other words for it.  Without dashes, "text" and "yes" are rarely
 * the options, and without "-bound", "disk" is rarely the verdict.  q is NULL if any question may
 * have the word.
 */
static double match(const struct help_entry *e, const char *word, const struct question *q)
{
    if (word_is_sign(word))
        return has_sign(e, word) ? BY_NAME : 0;
    if (word_is_mark(word))
        return e->kind == HELP_NOTE && is_name(e, word, q) ? BY_NAME : 0;
    if (is_verdict(e) ? is_bound(e, word) : is_name(e, word, q))
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
        n += match(&l->entry[i], word, NULL) >= BY_TEXT;
    return n;
}

/* ---- the question ---- */

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

        if (before[0] == '/' ? e->kind == HELP_SLASH
                             : before[0] == '\0' || e->option != NULL) {
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

/* Parts of an entry that a question can be about. */
enum aspect { ASPECT_ALL, ASPECT_APPLIES, ASPECT_DEFAULT, ASPECT_VALUES, ASPECT_KEEP, N_ASPECT };

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

/* Marks and letters mean something only on the screen: "8 - 3" and "plan b" are not about it. */
static bool is_about_screen(const struct question *q)
{
    return has(q, "mean means meaning mark marks sign symbol letter letters bar panel dashboard "
                  "screen column legend layer layers instead");
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

static bool question_read(struct question *q, const struct help_list *l, const char *text)
{
    double share = 1;
    bool is_key;

    *q = (struct question){ 0 };
    if (strlen(text) > QUESTION_BYTES || strchr(text, '\n') != NULL)
        return false;
    q->n = words_of(text, q->word);
    join_names(q, l);
    is_key = has(q, "key keys arrow press");
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

/* Does it ask what something is, or how something is done? */
static bool asks_meaning(const struct question *q)
{
    return has(q, "what what's whats wat wats wht explain define describe mean means meaning "
                  "definition about why");
}

static bool asks_way(const struct question *q)
{
    return has(q, "how where which can could want need option command key way") ||
           has_word("make set change show turn switch start stop delete remove copy save open "
                    "attach search find scroll hide",
                    q->word[0].text, false);
}

/* ---- the entry for it ---- */

/* The kind of thing that the question names: "which key ...". */
static double hint(const struct question *q, const struct help_entry *e)
{
    switch (e->kind) {
    case HELP_KEY: return has(q, "key keys press hotkey button") ? 0.5 : 0;
    case HELP_OPTION: return has(q, "option flag parameter switch") ? 0.2 : 0;
    case HELP_SLASH: return has(q, "command chat") ? 0.1 : 0;
    case HELP_SUBCOMMAND: return has(q, "subcommand memwall") ? 0.3 : 0;
    case HELP_NOTE:
        return has(q, "panel bar mean meaning dashboard screen figure letter say says") ? 0.2 : 0;
    }
    return 0;
}

struct score {
    double sum;                        /* of the weights of the words that the entry explains */
    double share;                      /* of those of the question */
    int n_name, n_asks, n_text, n_sign; /* words by how they are explained */
};

/* Do the words of a name follow each other in the question, common ones, too: "budget in"? */
static bool has_phrase(const struct question *q, const char *name)
{
    struct word w;

    for (size_t from = 0; from < q->n; from++) {
        const char *rest = name;
        size_t i = from, n = 0;

        while (rest != NULL && word_next(&rest, &w) && i < q->n && strcmp(w.text, q->word[i].text) == 0)
            i++, n++;
        if (rest != NULL && n > 1 && i == from + n && *rest == '\0' && strcmp(w.text, q->word[i - 1].text) == 0)
            return true;
    }
    return false;
}

static struct score score_of(const struct question *q, const struct help_entry *e)
{
    struct score s = { 0 };

    for (size_t i = 0; i < q->n; i++) {
        double m = q->weight[i] > 0 ? match(e, q->word[i].text, q) : 0;

        s.sum += m * q->weight[i];
        s.n_name += m >= BY_NAME;
        s.n_asks += m >= BY_ASKS && m < BY_NAME;
        s.n_text += m >= BY_TEXT && m < BY_PLACE;
        s.n_sign += m > 0 && word_is_sign(q->word[i].text);
    }
    s.share = q->sum > 0 ? s.sum / q->sum : 0;
    return s;
}

/* A single word is enough only in a question for it, and only if it is the name, or in one for
 * the way to do something. */
static bool is_enough(const struct score *s, const struct question *q,
                      const struct help_entry *e)
{
    bool is_way = has(q, "how key") && !has(q, "what");

    if (s->n_sign > 0)
        return true;
    if (s->share < ENOUGH_SHARE || s->sum < (is_way && s->n_name > 0 ? ENOUGH / 2 : ENOUGH))
        return false;
    if (s->n_name > 0)
        return q->is_asked ||
               (q->n == 1 && (is_name(e, q->word[0].text, q) || is_bound(e, q->word[0].text)));
    if (s->n_asks > 1 && q->is_asked && (e->kind != HELP_SUBCOMMAND || q->follows))
        return true;
    if (s->n_asks + s->n_text > 1)
        return asks_way(q) || (e->kind == HELP_NOTE && asks_meaning(q));
    return s->n_asks > 0 && (is_way ? s->share > 0.7 : e->kind == HELP_NOTE && asks_meaning(q));
}

static const struct help_entry *best(const struct help_list *l, const struct question *q,
                                     const struct help_entry *but)
{
    const struct help_entry *found = NULL;
    double most = 0;

    for (size_t i = 0; i < l->n; i++) {
        const struct help_entry *e = &l->entry[i];
        struct score s = score_of(q, e);
        double value = s.sum + (s.sum > 0 ? hint(q, e) : 0) +
                       0.2 * s.n_name + (s.n_sign > 0 ? 2 : 0) + (has_phrase(q, e->name) || has_phrase(q, e->panel) ? 0.3 : 0);

        if (e != but && is_enough(&s, q, e) && value > most) {
            most = value;
            found = e;
        }
    }
    return found;
}

/* Leave out the words that the name of an entry explains. */
static void without(struct question *q, const struct help_entry *e)
{
    for (size_t i = 0; i < q->n; i++)
        if (q->weight[i] > 0 && match(e, q->word[i].text, q) >= BY_ASKS) {
            q->sum -= q->weight[i];
            q->weight[i] = 0;
        }
}

struct found {
    const char *text; /* the question */
    const struct help_entry *entry, *other; /* other: of a question about two */
    enum aspect aspect;
};

static enum aspect aspect_of(const struct question *q)
{
    enum aspect a = ASPECT_ALL;

    for (size_t i = 0; i < q->n && a == ASPECT_ALL; i++)
        a = aspect_of_word(q->word[i].text);
    return a;
}

/* Has the question words beside common ones and those of an aspect? */
static bool has_subject(const struct question *q)
{
    for (size_t i = 0; i < q->n; i++)
        if (q->weight[i] > 0 && aspect_of_word(q->word[i].text) == ASPECT_ALL)
            return true;
    return false;
}

/* Is it about how a setting applies or is kept, whatever else it says? */
static bool is_of_it(const struct question *q, const struct found *before)
{
    return before->entry->option != NULL && aspect_of(q) != ASPECT_ALL &&
           has(q, "it its that this");
}

static bool looks_back(const struct question *q)
{
    return q->n <= 9 && (has(q, "it its that this them they one there") ||
                         has_word("and but so", q->word[0].text, false) ||
                         aspect_of(q) != ASPECT_ALL);
}

/* Two entries of a question that compares them. */
static void find_two(struct found *f, const struct help_list *l, const struct question *q)
{
    struct question rest = *q;
    const struct help_entry *first = NULL;
    double most = 0;

    for (size_t i = 0; i < l->n; i++) {
        struct score s = score_of(q, &l->entry[i]);
        double value = s.sum + hint(q, &l->entry[i]);

        if (s.n_name > 0 && s.sum >= ENOUGH && value > most) {
            most = value;
            first = &l->entry[i];
        }
    }
    if (first == NULL)
        return;
    without(&rest, first);
    f->other = best(l, &rest, first);
    f->entry = f->other != NULL ? first : NULL;
}

static void find_new(struct found *f, const struct help_list *l, const struct question *q)
{
    if (has(q, "difference differ differs vs versus or"))
        find_two(f, l, q);
    if (f->entry == NULL)
        f->entry = best(l, q, NULL);
}

/* A question such as "and for the 12B?" asks again what the one before did. */
static void find_again(struct found *f, const struct help_list *l, const char *text)
{
    struct question q;

    if (text == NULL || !question_read(&q, l, text))
        return;
    q.is_asked = q.follows = true;
    find_new(f, l, &q);
}

/* Find what one question is about; before: the subject of the one before. */
static struct found find(const struct help_list *l, const char *text,
                         const struct found *before)
{
    struct found f = { .text = text };
    struct question q;
    bool goes_on;

    if (!question_read(&q, l, text))
        return f;
    goes_on = has_word("and but", q.word[0].text, false);
    q.is_asked = asks_meaning(&q) || asks_way(&q) || (before->entry != NULL && goes_on);
    if (before->entry != NULL && looks_back(&q) && (!has_subject(&q) || is_of_it(&q, before))) {
        f = *before;
        f.aspect = aspect_of(&q);
    } else if (goes_on && !has_subject(&q)) {
        find_again(&f, l, before->text);
    } else {
        find_new(&f, l, &q);
    }
    return f;
}

/* ---- its text ---- */

struct text {
    char *s;
    size_t used, size;
};

static void put(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct text *t, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(t->s + t->used, t->size - t->used, fmt, ap);
    va_end(ap);
    if (n > 0)
        t->used += (size_t)n < t->size - t->used ? (size_t)n : t->size - t->used - 1;
}

static void put_option_name(struct text *t, const struct option *o)
{
    put(t, "`--%s%s%s`", o->name, o->arg == NULL ? "" : " ", o->arg == NULL ? "" : o->arg);
    if (o->letter != 0)
        put(t, " or `-%c`", o->letter);
}

/* The subcommands that take an option, unless the chat does. */
static void put_takers(struct text *t, const struct option *o)
{
#define X(NAME, name) { CMD_##NAME, #name },
    static const struct {
        unsigned bit;
        const char *name;
    } commands[] = { COMMANDS(X) };
#undef X
    const char *before = " of memwall ";

    for (size_t i = 0; i < N_COMMAND && (o->commands & CMD_CHAT) == 0; i++)
        if ((o->commands & commands[i].bit) != 0) {
            put(t, "%s%s", before, commands[i].name);
            before = ", ";
        }
}

static void put_name(struct text *t, const struct help_entry *e)
{
    switch (e->kind) {
    case HELP_SLASH:
        put(t, "`/%s%s%s`", e->name, e->args[0] != '\0' ? " " : "", e->args);
        break;
    case HELP_OPTION:
        put_option_name(t, e->option);
        put_takers(t, e->option);
        break;
    case HELP_KEY: put(t, "%s", e->name); break;
    case HELP_NOTE: put(t, "\"%s\" in the panel %s", e->name, e->panel); break;
    case HELP_SUBCOMMAND: put(t, "`memwall %s`", e->name); break;
    }
}

static void put_aspect(struct text *t, const struct help_entry *e, enum aspect aspect)
{
    const struct option *o = e->option;
    char value[200];

    if (o == NULL)
        return;
    switch (aspect) {
    case ASPECT_ALL:
    case N_ASPECT: break;
    case ASPECT_APPLIES:
        if (o->reach > REACH_FILE)
            put(t, " A running chat applies it %s, without a restart.",
                option_reach_text(o->reach));
        else if (o->reach == REACH_FILE)
            put(t, " It applies %s.", option_reach_text(o->reach));
        break;
    case ASPECT_DEFAULT:
        if (option_default(o, "chat", value, sizeof value)[0] != '\0')
            put(t, " The default is: %s.", value);
        break;
    case ASPECT_VALUES:
        if (o->words != NULL || o->tips != NULL)
            put(t, " %s: %s.", o->words != NULL ? "Values" : "Examples", option_values(o));
        break;
    case ASPECT_KEEP:
        if (o->reach != REACH_LINE)
            put(t, " To keep a value: `/set %s %s`.", o->name, option_form(o));
        break;
    }
}

/* A paragraph whose lines were broken for a terminal. */
static void put_paragraph(struct text *t, const char *s)
{
    put(t, "\n\n");
    for (; *s != '\0'; s++)
        if (*s != '\n')
            put(t, "%c", *s);
        else
            put(t, " ");
}

static void put_lines(struct text *t, const char *s)
{
    while (*s != '\0') {
        size_t n = strcspn(s, "\n");

        put(t, "\n\n%.*s", (int)n, s);
        s += n + (s[n] == '\n');
    }
}

static void put_entry(struct text *t, const struct help_entry *e)
{
    put_name(t, e);
    put(t, " - %s.", e->text);
    for (int a = 1; a < N_ASPECT; a++)
        put_aspect(t, e, (enum aspect)a);
    if (e->kind == HELP_SLASH && e->option != NULL) {
        put(t, " At the start: ");
        put_option_name(t, e->option);
        put(t, ".");
    }
    if (e->more != NULL && e->kind == HELP_SUBCOMMAND)
        put_paragraph(t, e->more);
    else if (e->more != NULL)
        put_lines(t, e->more);
}

static bool put_found(struct text *t, const struct found *f)
{
    size_t before;

    put(t, HELP_ANSWER_SAYS);
    if (f->aspect != ASPECT_ALL && f->other == NULL) {
        put_name(t, f->entry);
        put(t, ":");
        before = t->used;
        put_aspect(t, f->entry, f->aspect);
        return t->used > before;
    }
    put_entry(t, f->entry);
    if (f->other != NULL) {
        put(t, "\n\n");
        put_entry(t, f->other);
    }
    return true;
}

bool help_answer(const struct ui_subcommand *subcommands, const char *const question[],
                 size_t n, char buf[HELP_ANSWER_BYTES])
{
    char *s = malloc(HELP_ANSWER_BYTES);
    struct text t = { s, 0, HELP_ANSWER_BYTES };
    struct found f = { 0 };
    struct help_list l;
    bool is_known;

    if (s == NULL || !help_list_make(&l, subcommands)) {
        free(s);
        return false;
    }
    for (size_t i = 0; i < n; i++)
        f = find(&l, question[i], &f);
    is_known = f.entry != NULL && put_found(&t, &f);
    if (is_known)
        memcpy(buf, s, t.used + 1);
    help_list_free(&l);
    free(s);
    return is_known;
}
