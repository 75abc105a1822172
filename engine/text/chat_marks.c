/*
 * Find the marks of a chat format around the thinking of an answer.
 *
 * A template prints them around the thinking of an answer in a trial conversation.  If it does
 * not print thinking, its text or the vocabulary name the marks: a mark is a word in brackets,
 * the one that opens thinking has a name like "think", and its partner closes it.  Names like
 * "analysis" count if there is no such name.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/text/chat_internal.h"
#include "engine/text/chat_trial.h"

/* Returns the word in brackets that s ends with.  s NULL: none. */
static struct span last_word(struct span s)
{
    struct span word, last = { NULL, 0 };

    for (size_t at = 0; mark_next_word(s, &at, &word);)
        last = at == s.n ? word : last;
    return last;
}

/* ---- the name of a mark ---- */

/* Make out of word with its bytes [at, at + n) replaced by `by`.  Returns false if it is too
 * long. */
static bool replace(struct span word, size_t at, size_t n, const char *by, char *out)
{
    size_t len = strlen(by);

    if (word.n - n + len >= MARK_BYTES)
        return false;
    memcpy(out, word.s, at);
    memcpy(out + at, by, len);
    memcpy(out + at + len, word.s + at + n, word.n - at - n);
    out[word.n - n + len] = '\0';
    return true;
}

/* Returns the length of the bracket that word begins with. */
static size_t bracket_bytes(struct span word)
{
    return (unsigned char)word.s[0] < 0x80 ? 1 : 3;
}

#define N_PARTNER 7

/* Make partner i of a mark that opens thinking: <x> and </x>, <|x|> and <|/x|>, <|x> and <x|>,
 * <|begin_x|> and <|end_x|>.  Returns false if this mark has none. */
static bool partner(struct span word, int i, char *out)
{
    static const char *const ends[][2] = {
        { "start", "end" },
        { "START", "END" },
        { "begin", "end" },
        { "BEGIN", "END" },
    };
    size_t n = bracket_bytes(word), at;

    if (i == 0)
        return replace(word, n, 0, "/", out);
    if (i == 1)
        return word.s[n] == '|' && replace(word, n + 1, 0, "/", out);
    if (i < 6)
        return chat_find(word, ends[i - 2][0], false, &at) &&
               replace(word, at, strlen(ends[i - 2][0]), ends[i - 2][1], out);
    if (word.s[n] != '|' || word.s[word.n - n - 1] == '|' ||
        !replace(word, word.n - n, 0, "|", out))
        return false;
    memmove(out + n, out + n + 1, strlen(out + n)); /* with its NUL */
    return true;
}

/* Returns true if word closes thinking, with the mark that opens it: </x> and <x>. */
static bool opens_before(struct span word, char *out)
{
    size_t n = bracket_bytes(word);

    n += word.s[n] == '|' ? 1 : 0;
    return word.s[n] == '/' && replace(word, n, 1, "", out);
}

/* ---- thinking ---- */

/* A search for a partner reads all of a text or vocabulary, so a file gets no more of them. */
#define MOST_WORDS 64

typedef bool has_mark_fn(const void *ctx, const char *mark);
typedef bool is_name_fn(struct span word);

static bool has_any_name(struct span word)
{
    return mark_is_thinking(word) || mark_may_be_thinking(word);
}

/* Set the marks of f to word and its partner, if it has one. */
static bool take_pair(struct chat_format *f, struct span word, is_name_fn *is_name,
                      has_mark_fn *has, const void *ctx)
{
    char other[MARK_BYTES];

    if (!is_name(word))
        return false;
    if (opens_before(word, other)) {
        chat_copy_mark(f->close, word);
        strcpy(f->open, other);
        return true;
    }
    for (int i = 0; i < N_PARTNER; i++)
        if (partner(word, i, other) && has(ctx, other)) {
            chat_copy_mark(f->open, word);
            strcpy(f->close, other);
            return true;
        }
    return false;
}

static bool text_has(const void *ctx, const char *mark)
{
    size_t at;

    return chat_find(*(const struct span *)ctx, mark, false, &at);
}

static bool named_in_text(struct chat_format *f, struct span text, is_name_fn *is_name)
{
    struct span word;
    int n = 0;

    for (size_t at = 0; n < MOST_WORDS && mark_next_word(text, &at, &word);) {
        n += is_name(word);
        if (take_pair(f, word, is_name, text_has, &text))
            return true;
    }
    return false;
}

/* Returns true for a mark of the answer itself, as in <response>. */
static bool is_about_reply(struct span word)
{
    size_t at;

    return !chat_find(word, "tool", false, &at) &&
           (chat_find(word, "response", false, &at) || chat_find(word, "answer", false, &at) ||
            chat_find(word, "solution", false, &at));
}

/* Find the marks that the text of the template names for the answer after thinking. */
static void find_reply(struct chat_format *f, struct span text)
{
    char other[MARK_BYTES];
    struct span word;
    int n = 0;

    for (size_t at = 0; n < MOST_WORDS && mark_next_word(text, &at, &word);) {
        bool is_mark = is_about_reply(word);

        n += is_mark;
        for (int i = 0; is_mark && i < N_PARTNER; i++)
            if (partner(word, i, other) && text_has(&text, other)) {
                chat_copy_mark(f->reply_open, word);
                strcpy(f->reply_close, other);
                return;
            }
    }
}

/* Granite 3.2 and Apriel write thinking between sentences. */
static bool between_sentences(struct chat_format *f, struct span text)
{
    /* The end of thinking shows them.  The last one ends the answer. */
    static const char *const rows[][3] = {
        { "Here is my thought process:", "Here is my response:", "" },
        { "Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]", "[END FINAL RESPONSE]" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (text_has(&text, rows[i][1])) {
            strcpy(f->open, rows[i][0]);
            strcpy(f->close, rows[i][1]);
            strcpy(f->reply_open, "");
            strcpy(f->reply_close, rows[i][2]);
            return true;
        }
    return false;
}

static bool named_in_vocabulary(struct chat_format *f, const struct tokenizer *t,
                                is_name_fn *is_name)
{
    uint32_t n_token = tokenizer_info(t)->n_token;
    char text[MARK_BYTES];
    int n_word = 0;

    for (uint32_t id = 0; id < n_token && n_word < MOST_WORDS; id++) {
        size_t n = chat_is_added(t, id) ? tokenizer_piece(t, id, true, text, sizeof text) : 0;
        struct span word = { text, n };
        char before[MARK_BYTES];

        if (n == 0 || n >= sizeof text || mark_at(word).n != n || !is_name(word))
            continue;
        n_word++;
        if (opens_before(word, before) && !chat_has_token(t, before))
            continue;
        if (take_pair(f, word, is_name, chat_has_token, t))
            return true;
    }
    return false;
}

/* ---- trial conversations ---- */

/* The texts that a format prints around the parts of an answer, without white space. */
struct around {
    struct chat_prompt with, without, prompt; /* thinking; the prompt of an answer */
    struct span before, between, after;
    struct span header; /* before the answer without thinking */
    size_t same;        /* bytes before the thinking that are the same without thinking */
};

static bool try_thought(struct around *a, const struct chat_format *f,
                        const struct tokenizer *t)
{
    struct chat_message m[] = { chat_trial_message(CHAT_USER, TRIAL_QUESTION),
                                chat_trial_message(CHAT_ASSISTANT, TRIAL_ANSWER) };
    size_t at, end, from;

    *a = (struct around){ 0 };
    if (!chat_trial(f, t, m, 2, false, &a->without) ||
        !chat_trial(f, t, m, 1, true, &a->prompt))
        return false;
    m[1].reasoning = TRIAL_THOUGHT;
    m[1].reasoning_len = strlen(TRIAL_THOUGHT);
    if (!chat_trial(f, t, m, 2, false, &a->with) ||
        !chat_find((struct span){ a->with.text, a->with.len }, TRIAL_THOUGHT, false, &at) ||
        !chat_find((struct span){ a->with.text, a->with.len }, TRIAL_ANSWER, true, &end) ||
        at >= end)
        return false;
    if (chat_find((struct span){ a->without.text, a->without.len }, TRIAL_ANSWER, true, &from))
        a->header = chat_trim((struct span){ a->without.text, from });
    while (a->same < at && a->same < a->without.len &&
           a->with.text[a->same] == a->without.text[a->same])
        a->same++;
    from = at + strlen(TRIAL_THOUGHT);
    a->before = chat_trim((struct span){ a->with.text, at });
    a->between = chat_trim((struct span){ a->with.text + from, end - from });
    from = end + strlen(TRIAL_ANSWER);
    a->after = chat_trim((struct span){ a->with.text + from, a->with.len - from });
    return true;
}

static bool is_mark_line(struct span s)
{
    return s.n < MARK_BYTES && memchr(s.s, '\n', s.n) == NULL && chat_is_distinctive(s);
}

/* Returns the words that open thinking: what is printed only with it, or, if that is nothing,
 * the end of the prompt that is not printed before old answers.  s NULL: they cannot be a mark.
 */
static struct span opening_words(const struct around *a)
{
    struct span own = { a->with.text + a->same, 0 }, words;
    char line[MARK_BYTES];
    size_t at;

    if (a->before.s + a->before.n > own.s)
        own.n = (size_t)(a->before.s + a->before.n - own.s);
    words = chat_trim(own);
    if (words.n > 0)
        return is_mark_line(words) ? words : (struct span){ NULL, 0 };
    words = chat_last_line(chat_trim((struct span){ a->prompt.text, a->prompt.len }));
    if (words.n == 0 || !is_mark_line(words))
        return (struct span){ NULL, 0 };
    chat_copy_mark(line, words);
    return chat_find(a->before, line, false, &at) ? (struct span){ NULL, 0 } : words;
}

/* Take the marks around the answer, as in </think><answer>…</answer>. */
static void take_reply_marks(struct chat_format *f, const struct around *a, struct span close)
{
    struct span rest = { close.s + close.n, a->between.n - close.n };
    struct span open = mark_at(chat_trim(rest)), end = mark_at(a->after);
    char other[MARK_BYTES];

    for (int i = 0; open.s != NULL && end.s != NULL && i < N_PARTNER; i++)
        if (partner(open, i, other) && mark_begins(end, other) && strlen(other) == end.n) {
            chat_copy_mark(f->reply_open, open);
            chat_copy_mark(f->reply_close, end);
            return;
        }
}

/* Find the marks around the thinking of an answer that the format prints. */
static bool around_thinking(struct chat_format *f, const struct tokenizer *t)
{
    bool found = false;

    for (size_t i = 0; !found && chat_template_use_thought(f->template, i); i++) {
        struct around a;

        if (try_thought(&a, f, t)) {
            struct span open = last_word(a.before), close = mark_at(a.between);

            if (open.s == NULL || chat_same(open, last_word(a.header)))
                open = opening_words(&a);
            close = close.s == NULL && is_mark_line(a.between) ? a.between : close;
            found = open.s != NULL && close.s != NULL && !chat_same(open, close);
            if (found) {
                chat_copy_mark(f->open, open);
                chat_copy_mark(f->close, close);
                take_reply_marks(f, &a, close);
            }
        }
        chat_prompt_free(&a.with);
        chat_prompt_free(&a.without);
        chat_prompt_free(&a.prompt);
    }
    return found;
}

struct model_words {
    struct span text; /* of the template */
    const struct tokenizer *t;
};

static bool model_has(const void *ctx, const char *mark)
{
    const struct model_words *x = ctx;

    return text_has(&x->text, mark) || chat_has_token(x->t, mark);
}

static bool both_have(const void *ctx, const char *mark)
{
    const struct model_words *x = ctx;

    return text_has(&x->text, mark) && chat_has_token(x->t, mark);
}

/* Take the mark of thinking that a prompt ends with: the answer begins inside its thinking. */
static bool opened_by_prompt(struct chat_format *f, const struct tokenizer *t, struct span text)
{
    const struct chat_message m = chat_trial_message(CHAT_USER, TRIAL_QUESTION);
    const struct model_words words = { text, t };
    char before[MARK_BYTES];
    struct chat_prompt p;
    struct span open;
    bool found = false;

    if (chat_trial(f, t, &m, 1, true, &p)) {
        open = last_word(chat_trim((struct span){ p.text, p.len }));
        found = open.s != NULL && !opens_before(open, before) &&
                take_pair(f, open, has_any_name, model_has, &words);
    }
    chat_prompt_free(&p);
    return found;
}

/* Take words of the template that are tokens of their own. */
static bool tokens_in_text(struct chat_format *f, const struct tokenizer *t, struct span text,
                           is_name_fn *is_name)
{
    const struct model_words words = { text, t };
    struct span word;
    int n = 0;

    for (size_t at = 0; n < MOST_WORDS && mark_next_word(text, &at, &word);) {
        char open[MARK_BYTES];

        if (!is_name(word) || opens_before(word, open))
            continue;
        n++;
        chat_copy_mark(open, word);
        if (chat_has_token(t, open) && take_pair(f, word, is_name, both_have, &words))
            return true;
    }
    return false;
}

/* MedGemma, and models made from it, think between tokens that Gemma 3 does not use. */
#define UNUSED_OPEN  "<unused94>"
#define UNUSED_CLOSE "<unused95>"

static void find_thinking(struct chat_format *f, const struct tokenizer *t, struct span text)
{
    if (f->think == THINK_CHANNEL)
        return;
    if (text_has(&text, CHANNEL_OPEN) ||
        (chat_has_token(t, CHANNEL_OPEN) && chat_has_token(t, "<|turn>"))) {
        f->think = THINK_CHANNEL;
        strcpy(f->open, CHANNEL_OPEN);
        strcpy(f->close, CHANNEL_CLOSE);
        return;
    }
    if (chat_has_token(t, HARMONY_MESSAGE)) {
        f->think = chat_has_token(t, HARMONY_CHANNEL) ? THINK_HARMONY
                   : chat_has_token(t, HARMONY_START) && chat_has_token(t, RECIPIENT_END)
                       ? THINK_RECIPIENT
                       : f->think;
    }
    if (chat_has_messages(f->think))
        return;
    f->think = THINK_TAGS;
    find_reply(f, text);
    if (opened_by_prompt(f, t, text) || (f->template != NULL && around_thinking(f, t)) ||
        tokens_in_text(f, t, text, mark_is_thinking) || between_sentences(f, text) ||
        named_in_text(f, text, mark_is_thinking) ||
        named_in_vocabulary(f, t, mark_is_thinking) ||
        tokens_in_text(f, t, text, mark_may_be_thinking) ||
        named_in_text(f, text, mark_may_be_thinking) ||
        named_in_vocabulary(f, t, mark_may_be_thinking))
        return;
    /* Models that were trained further may think without a word about it in their files. */
    strcpy(f->open, THINK_OPEN);
    strcpy(f->close, THINK_CLOSE);
    f->has_other = chat_has_token(t, "<start_of_turn>") && chat_has_token(t, UNUSED_OPEN) &&
                   chat_has_token(t, UNUSED_CLOSE);
    if (f->has_other) {
        f->other_open = (uint32_t)tokenizer_find(t, UNUSED_OPEN, strlen(UNUSED_OPEN));
        f->other_close = (uint32_t)tokenizer_find(t, UNUSED_CLOSE, strlen(UNUSED_CLOSE));
    }
}

bool chat_has_messages(enum think_kind kind)
{
    return kind == THINK_HARMONY || kind == THINK_RECIPIENT;
}

bool chat_shows_message(enum think_kind kind, struct span header)
{
    size_t at;

    return kind == THINK_HARMONY ? mark_begins(header, HARMONY_FINAL)
                                 : !chat_find(header, RECIPIENT_SELF, false, &at);
}

void chat_find_marks(struct chat_format *f, const struct tokenizer *t, const char *text,
                     size_t len)
{
    find_thinking(f, t, (struct span){ text, len });
    chat_find_openings(f, t);
}
