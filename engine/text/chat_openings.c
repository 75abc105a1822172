/*
 * Find the marks that open a turn, which end an answer.
 *
 * They are the control tokens, and words in brackets, that follow an answer or come before a
 * system message in a trial conversation.
 */
#include "config.h"

#include <string.h>

#include "engine/text/chat_internal.h"
#include "engine/text/chat_trial.h"

static bool is_mark(const struct chat_format *f, const struct tokenizer *t, uint32_t id)
{
    static const char *const harmony[] = {
        HARMONY_START, HARMONY_CHANNEL, HARMONY_MESSAGE, HARMONY_END,
    };
    char text[MARK_BYTES];
    size_t n = tokenizer_piece(t, id, true, text, sizeof text);
    struct span s = { text, n };

    if (n >= sizeof text)
        return false;
    for (size_t i = 0; i < 4 && f->think == THINK_HARMONY; i++)
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

/* Add the words in brackets that the format prints as text. */
static void add_turn_words(struct chat_format *f, const struct tokenizer *t, struct span text)
{
    struct span word;

    for (size_t at = 0; f->n_turn_word < CHAT_N_TURN && mark_next_word(text, &at, &word);) {
        char *to = f->turn_word[f->n_turn_word];
        bool is_new = true;

        chat_copy_mark(to, word);
        for (size_t i = 0; i < f->n_turn_word; i++)
            is_new = is_new && strcmp(f->turn_word[i], to) != 0;
        if (is_new && strcmp(to, f->open) != 0 && strcmp(to, f->close) != 0 &&
            !chat_has_token(t, to))
            f->n_turn_word++;
    }
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
    size_t from, to, at;

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
    if (chat_find((struct span){ full.text, full.len }, TRIAL_ANSWER, true, &at))
        add_turn_words(f, t, (struct span){ full.text + at, full.len - at });
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

    if (chat_trial(f, t, m, 2, true, &full)) {
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
