/*
 * Find the marks that open a turn, which end an answer.
 *
 * They are the control tokens, and words in brackets, that follow an answer or come before a
 * system message in a trial conversation.  A format may write other words directly before a
 * message, as in "USER:" and "### Instruction:".  They end an answer at the start of a line.
 */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "engine/text/chat_internal.h"
#include "engine/text/chat_trial.h"

static bool is_mark(const struct chat_format *f, const struct tokenizer *t, uint32_t id)
{
    static const char *const harmony[] = {
        HARMONY_START, HARMONY_CHANNEL, HARMONY_MESSAGE, HARMONY_END, RECIPIENT_END,
    };
    char text[MARK_BYTES];
    size_t n = tokenizer_piece(t, id, true, text, sizeof text);
    struct span s = { text, n };

    if (n >= sizeof text)
        return false;
    for (size_t i = 0; i < sizeof harmony / sizeof harmony[0] && chat_has_messages(f->think); i++)
        if (n == strlen(harmony[i]) && mark_begins(s, harmony[i]))
            return true;
    return (n == strlen(f->open) && mark_begins(s, f->open)) ||
           (n == strlen(f->close) && mark_begins(s, f->close));
}

static bool has_turn_id(const struct chat_format *f, uint32_t id)
{
    for (size_t i = 0; i < f->n_turn_id; i++)
        if (f->turn_id[i] == id)
            return true;
    return false;
}

static void add_turn_ids(struct chat_format *f, const struct tokenizer *t, const uint32_t *id,
                         size_t n)
{
    for (size_t i = 0; i < n && f->n_turn_id < CHAT_N_TURN; i++)
        if (tokenizer_kind(t, id[i]) == TOKEN_CONTROL && !is_mark(f, t, id[i]) &&
            !has_turn_id(f, id[i]))
            f->turn_id[f->n_turn_id++] = id[i];
}

static void drop_turn_id(struct chat_format *f, uint32_t id)
{
    for (size_t i = 0; i < f->n_turn_id; i++)
        if (f->turn_id[i] == id)
            f->turn_id[i--] = f->turn_id[--f->n_turn_id];
}

static bool has_id(const struct ids *ids, size_t from, uint32_t id)
{
    while (from < ids->n && ids->id[from] != id)
        from++;
    return from < ids->n;
}

/* Add word, after a newline if it must be at the start of a line. */
static void add_turn_word(struct chat_format *f, const char *before, struct span word)
{
    char *to = f->turn_word[f->n_turn_word < CHAT_N_TURN ? f->n_turn_word : 0];
    size_t n = strlen(before);

    if (f->n_turn_word == CHAT_N_TURN || n + word.n >= MARK_BYTES)
        return;
    memcpy(to, before, n);
    chat_copy_mark(to + n, word);
    for (size_t i = 0; i < f->n_turn_word; i++)
        if (strcmp(f->turn_word[i], to) == 0)
            return;
    f->n_turn_word++;
}

static bool is_word_of_answer(const struct chat_format *f, const char *word)
{
    return strcmp(word, f->open) == 0 || strcmp(word, f->close) == 0 ||
           strcmp(word, f->reply_open) == 0 || strcmp(word, f->reply_close) == 0;
}

/* Add the words in brackets that the format prints as text. */
static void add_turn_words(struct chat_format *f, const struct tokenizer *t, struct span text)
{
    const char *end = text.s + text.n;
    struct span word;

    for (size_t at = 0; mark_next_word(text, &at, &word);) {
        char name[MARK_BYTES];

        chat_copy_mark(name, word);
        if (is_word_of_answer(f, name) || chat_has_token(t, name))
            continue;
        /* <<SYS>> */
        if (word.s > text.s && word.s[-1] == word.s[0] && word.s + word.n < end &&
            word.s[word.n] == word.s[word.n - 1])
            word = (struct span){ word.s - 1, word.n + 2 };
        add_turn_word(f, "", word);
    }
}

/* Whether this token, which a prompt shows as text, only begins or ends a text. */
static bool is_border(const struct chat_format *f, const struct tokenizer *t, const char *name)
{
    const struct vocab_info *info = tokenizer_info(t);
    int64_t id = tokenizer_find(t, name, strlen(name));

    return id == info->bos || id == info->eos || (f->has_end && id == f->end);
}

/*
 * Returns what follows the borders in the text before a message, without white space.  s NULL:
 * a token opens the message, so words after it belong to the message.  The last n_open bytes also
 * open a conversation.  A mark that is printed as text and begins before them ends the answer.
 */
static struct span after_borders(const struct chat_format *f, const struct tokenizer *t,
                                 struct span s, size_t n_open)
{
    char name[MARK_BYTES];
    struct span word;
    size_t from = 0;

    for (size_t at = 0; mark_next_word(s, &at, &word);) {
        chat_copy_mark(name, word);
        if (!chat_has_token(t, name)) {
            if (word.s < s.s + (s.n - n_open))
                from = at;
            continue;
        }
        if (!is_border(f, t, name))
            return (struct span){ NULL, 0 };
        from = at;
    }
    return chat_trim((struct span){ s.s + from, s.n - from });
}

/* Returns how many bytes at the ends of both texts are the same. */
static size_t same_end(struct span a, struct span b)
{
    size_t n = 0;

    while (n < a.n && n < b.n && a.s[a.n - n - 1] == b.s[b.n - n - 1])
        n++;
    return n;
}

/* Whether a line has no marks and cannot be the start of ordinary text. */
static bool is_turn_line(struct span line)
{
    struct span mark;
    size_t at = 0;

    return !mark_next_word(line, &at, &mark) && chat_is_distinctive(line);
}

/* Take the words that come directly before a message.  text: all before it; first: all before the
 * first message of its role, or NULL for the system message. */
static void before_message(struct chat_format *f, const struct tokenizer *t, struct span text,
                           const struct span *first)
{
    size_t n_open = first != NULL ? same_end(text, *first) : text.n;
    struct span words = after_borders(f, t, text, n_open), line, own;

    add_turn_words(f, t, chat_last_line(chat_trim(text)));
    if (words.s == NULL)
        return;
    line = chat_last_line(words);
    /* Some templates begin their system message themselves, with the date for example. */
    if ((first == NULL && line.n < words.n) || !is_turn_line(line))
        return;
    add_turn_word(f, "\n", line);
    /* Words before those that also open the conversation end the answer. */
    while (first != NULL && n_open < first->n && n_open > 0 &&
           !isspace((unsigned char)text.s[text.n - n_open]))
        n_open--;
    own = chat_trim((struct span){ text.s + text.n - n_open, n_open });
    if (own.n < line.n && is_turn_line(own))
        add_turn_word(f, "\n", own);
}

static size_t same_ids(const struct ids *a, const struct ids *b)
{
    size_t n = 0;

    while (n < a->n && n < b->n && a->id[n] == b->id[n])
        n++;
    return n;
}

/* Take the marks after a question. */
static void after_question(struct chat_format *f, const struct tokenizer *t)
{
    struct chat_message m = chat_trial_message(CHAT_USER, TRIAL_QUESTION);
    struct chat_prompt full, other = { 0 };
    size_t from;

    if (chat_trial(f, t, &m, 1, true, &full)) {
        m = chat_trial_message(CHAT_USER, TRIAL_OTHER);
        if (chat_trial(f, t, &m, 1, true, &other)) {
            from = same_ids(&full.ids, &other.ids);
            add_turn_ids(f, t, full.ids.id + from, full.ids.n - from);
        }
    }
    chat_prompt_free(&full);
    chat_prompt_free(&other);
}

/* Take the marks after an answer.  Those before it that its prompt lacks are a part of it. */
static void after_answer(struct chat_format *f, const struct tokenizer *t)
{
    struct chat_message m[] = { chat_trial_message(CHAT_USER, TRIAL_QUESTION),
                                chat_trial_message(CHAT_ASSISTANT, TRIAL_ANSWER),
                                chat_trial_message(CHAT_USER, TRIAL_QUESTION) };
    struct chat_prompt first, full = { 0 }, other = { 0 };
    size_t from, to, at, first_at;

    if (!chat_trial(f, t, m, 1, true, &first) || !chat_trial(f, t, m, 3, true, &full))
        goto end;
    m[1] = chat_trial_message(CHAT_ASSISTANT, TRIAL_OTHER);
    if (!chat_trial(f, t, m, 3, true, &other))
        goto end;
    from = same_ids(&first.ids, &full.ids);
    to = same_ids(&full.ids, &other.ids);
    add_turn_ids(f, t, full.ids.id + to, full.ids.n - to);
    for (size_t i = from; i < to; i++)
        if (!has_id(&first.ids, from, full.ids.id[i]))
            drop_turn_id(f, full.ids.id[i]);
    if (chat_find((struct span){ full.text, full.len }, TRIAL_ANSWER, true, &at)) {
        struct span rest = { full.text + at + strlen(TRIAL_ANSWER),
                             full.len - at - strlen(TRIAL_ANSWER) };

        add_turn_words(f, t, rest);
        if (chat_find(rest, TRIAL_QUESTION, false, &at) &&
            chat_find((struct span){ full.text, full.len }, TRIAL_QUESTION, false, &first_at)) {
            struct span between = { rest.s, at };

            before_message(f, t, between, &(struct span){ full.text, first_at });
        }
    }
end:
    chat_prompt_free(&first);
    chat_prompt_free(&full);
    chat_prompt_free(&other);
}

/* Take the marks before a system message. */
static void before_system(struct chat_format *f, const struct tokenizer *t)
{
    struct chat_message m[] = { chat_trial_message(CHAT_SYSTEM, TRIAL_ANSWER),
                                chat_trial_message(CHAT_USER, TRIAL_QUESTION) };
    struct chat_prompt full, other = { 0 };
    size_t at;

    if (chat_trial(f, t, m, 2, true, &full)) {
        if (chat_find((struct span){ full.text, full.len }, TRIAL_ANSWER, false, &at))
            before_message(f, t, (struct span){ full.text, at }, NULL);
        m[0] = chat_trial_message(CHAT_SYSTEM, TRIAL_OTHER);
        if (chat_trial(f, t, m, 2, true, &other))
            add_turn_ids(f, t, full.ids.id, same_ids(&full.ids, &other.ids));
    }
    chat_prompt_free(&full);
    chat_prompt_free(&other);
}

void chat_find_openings(struct chat_format *f, const struct tokenizer *t)
{
    before_system(f, t);
    after_question(f, t);
    after_answer(f, t);
}
