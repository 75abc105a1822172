#include "config.h"

#include "ui/talk/help_find.h"

#include <string.h>

/* An entry must explain this share of a question, and words of this weight: common words alone
 * are not enough. */
#define ENOUGH_SHARE 0.5
#define ENOUGH       0.55
/* One other word for a thing is enough only if it is nearly all of the question. */
#define ENOUGH_ALONE 0.7

/* These raise an entry above others that explain the same words. */
#define FOR_NAME   0.2 /* a word is its name */
#define FOR_PHRASE 0.3 /* the words of its name, or of its panel, follow each other */
#define FOR_SIGN   2.0 /* an option, a command or a key means only one thing */

#define COMPARES "difference differ differs vs versus or"

/* ---- one entry ---- */

/* The kind of thing that the question names: "which key ...". */
static double hint(const struct question *q, const struct help_entry *e)
{
    switch (e->kind) {
    case HELP_KEY: return question_has(q, "key keys press hotkey button") ? 0.5 : 0;
    case HELP_OPTION: return question_has(q, "option flag parameter switch") ? 0.2 : 0;
    case HELP_SLASH: return question_has(q, "command chat") ? 0.1 : 0;
    case HELP_SUBCOMMAND: return question_has(q, "subcommand memwall") ? 0.3 : 0;
    case HELP_NOTE:
        return question_has(q, "panel bar mean meaning dashboard screen figure letter say says")
                   ? 0.2
                   : 0;
    }
    return 0;
}

struct score {
    double sum;   /* of the weights of the words that the entry explains */
    double share; /* of those of the question */
    int n_name, n_asks, n_text, n_sign; /* words by how they are explained */
};

/* Returns whether the words of a name follow each other in the question, including common
 * words: "budget in". */
static bool has_phrase(const struct question *q, const char *name)
{
    for (size_t from = 0; name != NULL && from < q->n; from++) {
        const char *rest = name;
        struct word w;
        size_t n = 0;
        bool is_same = true;

        while (is_same && word_next(&rest, &w)) {
            is_same = from + n < q->n && strcmp(w.text, q->word[from + n].text) == 0;
            n++;
        }
        if (is_same && n > 1)
            return true;
    }
    return false;
}

static struct score score_of(const struct question *q, const struct help_entry *e)
{
    struct score s = { 0 };

    for (size_t i = 0; i < q->n; i++) {
        double m = q->weight[i] > 0 ? question_match(q, e, q->word[i].text) : 0;

        s.sum += m * q->weight[i];
        s.n_name += m >= BY_NAME;
        s.n_asks += m >= BY_ASKS && m < BY_NAME;
        s.n_text += m >= BY_TEXT && m < BY_PLACE;
        s.n_sign += m > 0 && word_is_sign(q->word[i].text);
    }
    s.share = q->sum > 0 ? s.sum / q->sum : 0;
    return s;
}

/*
 * Is this what the question is about?  By its name, if something is asked.  By other words for
 * it, if there are two of them, or if the question is for a way to do something and has no
 * other subject.  By its text, only if that has two of the words.
 */
static bool is_enough(const struct score *s, const struct question *q,
                      const struct help_entry *e)
{
    bool is_way =
        question_has(q, "how can could key") && !question_has(q, "what you much many");
    bool is_note = e->kind == HELP_NOTE && question_of_meaning(q);

    if (s->n_sign > 0)
        return true;
    if (s->share < ENOUGH_SHARE || s->sum < (is_way && s->n_name > 0 ? ENOUGH / 2 : ENOUGH))
        return false;
    if (s->n_name > 0)
        return q->is_asked || (q->n == 1 && question_is_name(q, e, q->word[0].text));
    if (s->n_asks > 1 && q->is_asked && (e->kind != HELP_SUBCOMMAND || q->follows))
        return true;
    if (s->n_asks + s->n_text > 1)
        return question_of_way(q) || is_note;
    return s->n_asks > 0 && (is_way ? s->share > ENOUGH_ALONE : is_note);
}

static double value_of(const struct score *s, const struct question *q,
                       const struct help_entry *e)
{
    double value = s->sum;

    if (value <= 0)
        return 0;
    value += hint(q, e) + FOR_NAME * s->n_name;
    if (s->n_sign > 0)
        value += FOR_SIGN;
    if (has_phrase(q, e->name) || has_phrase(q, e->panel))
        value += FOR_PHRASE;
    return value;
}

/* ---- all entries ---- */

/* The entry that explains most of a question, or NULL; but: it is not this one. */
static const struct help_entry *best(const struct help_list *l, const struct question *q,
                                     const struct help_entry *but)
{
    const struct help_entry *found = NULL;
    double most = 0;

    for (size_t i = 0; i < l->n; i++) {
        const struct help_entry *e = &l->entry[i];
        struct score s = score_of(q, e);
        double value = value_of(&s, q, e);

        if (value > most && e != but && is_enough(&s, q, e)) {
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
        if (q->weight[i] > 0 && question_match(q, e, q->word[i].text) >= BY_ASKS) {
            q->sum -= q->weight[i];
            q->weight[i] = 0;
        }
}

/* Two entries of a question that compares them. */
static void find_two(struct found *f, const struct help_list *l, const struct question *q)
{
    struct question rest = *q;
    const struct help_entry *first = NULL;
    double most = 0;

    for (size_t i = 0; i < l->n; i++) {
        struct score s = score_of(q, &l->entry[i]);
        double value = value_of(&s, q, &l->entry[i]);

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

/* Another panel may have a figure of the same name, another subcommand such an option, and a
 * key may do something else at another time. */
static const struct help_entry *namesake(const struct help_list *l, const struct question *q,
                                         const struct help_entry *e)
{
    struct score s = score_of(q, e), other_s;
    const struct help_entry *other = s.n_name > 0 ? best(l, q, e) : NULL;

    if (other == NULL || other->kind != e->kind)
        return NULL;
    other_s = score_of(q, other);
    return value_of(&other_s, q, other) == value_of(&s, q, e) ? other : NULL;
}

static void find_new(struct found *f, const struct help_list *l, const struct question *q)
{
    if (question_has(q, COMPARES))
        find_two(f, l, q);
    if (f->entry != NULL)
        return;
    f->entry = best(l, q, NULL);
    if (f->entry != NULL)
        f->other = namesake(l, q, f->entry);
}

/* ---- questions about the subject of the one before ---- */

/* Has the question a subject of its own, beside the part of one that it asks about? */
static bool has_subject(const struct question *q)
{
    return q->sum > 0;
}

static bool looks_back(const struct question *q)
{
    return q->n <= 9 && (question_has(q, "it its that this them they one there") ||
                         question_begins(q, "and but so") || question_aspect(q) != ASPECT_ALL);
}

/* Does it ask how the setting before applies, whatever else it says? */
static bool is_of_it(const struct question *q, const struct found *before)
{
    return before->entry->option != NULL && question_aspect(q) != ASPECT_ALL &&
           question_has(q, "it its that this");
}

/* Answer "and for the 12B?" as the question before, which may have been for the model. */
static void find_again(struct found *f, const struct help_list *l, const char *text)
{
    struct question q;

    if (!question_read(&q, l, text))
        return;
    q.is_asked = q.follows = true;
    find_new(f, l, &q);
}

struct found help_find(const struct help_list *l, const char *const question[], size_t n)
{
    struct found f = { 0 }, before = { 0 };
    struct question q;
    bool goes_on;

    if (n == 0 || !question_read(&q, l, question[n - 1]))
        return f;
    goes_on = question_begins(&q, "and but");
    if (looks_back(&q) || goes_on)
        before = help_find(l, question, n - 1);
    q.is_asked = question_has(&q, COMPARES) || question_of_meaning(&q) || question_of_way(&q) ||
                 (before.entry != NULL && goes_on);
    if (before.entry != NULL && looks_back(&q) && (!has_subject(&q) || is_of_it(&q, &before))) {
        f = before;
        f.aspect = question_aspect(&q);
    } else if (goes_on && !has_subject(&q) && n > 1) {
        find_again(&f, l, question[n - 2]);
    } else {
        find_new(&f, l, &q);
    }
    return f;
}
