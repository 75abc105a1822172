/* The prompt of an answer that goes on where it was cut, and the state of its text there. */
#include "config.h"

#include <string.h>

#include "engine/session/answer_internal.h"

/* With tools the marks of calls are a part of the text, where the caller reads them. */
static bool has_tools(const struct answer_state *r)
{
    const struct asked *asked = r->a->conversation->asked;

    return asked != NULL && asked->tools != NULL;
}

/* Bring the parser and the search for stop strings to the end of the prompt.  An answer begins
 * inside its thinking if the prompt opens it; one that continues may be past it.  Returns
 * whether a stop string ends the answer at once. */
static bool replay(struct answer_state *r)
{
    bool was_inside;

    do {
        was_inside = r->is_inside;
        r->parser = (struct answer_parser){ .format = r->a->parser_format,
                                            .tokenizer = r->a->rendering.tokenizer,
                                            .shows_marks = has_tools(r) };
        r->n_held = r->n_said[false] = r->n_said[true] = 0;
        r->differs = r->found_stop = false;
        answer_parser_start(&r->parser, r->prompt.id, r->prompt.n - r->answer.n, was_inside);
        for (size_t i = 0; i < r->answer.n && r->is_inside == was_inside; i++)
            if (answer_say_id(r, r->answer.id[i]))
                return true;
    } while (r->is_inside != was_inside);
    return false;
}

/* The same without a word: bytes are counted only. */
static void replay_muted(struct answer_state *r)
{
    r->is_muted = true;
    replay(r);
    r->is_muted = r->found_stop = false;
}

/* Whether the answer has ids, and this model may have chosen them. */
static bool has_possible_ids(const struct answer_state *r)
{
    const struct vocab_info *info = tokenizer_info(r->a->rendering.tokenizer);

    for (size_t i = 0; i < r->answer.n; i++)
        if (r->answer.id[i] >= info->n_token || answer_is_stop_id(r->a, r->answer.id[i]))
            return false;
    return r->answer.n > 0;
}

/* Whether the text of the turn comes out of the answer's ids. */
static bool is_text_of_ids(struct answer_state *r)
{
    const struct turn *t = answer_turn(r);

    replay_muted(r);
    return !r->differs && r->n_said[false] >= t->len && r->n_said[true] >= t->thinking_len;
}

/* Text that is held back may be at the end of the turn, where it was cut.  It is not said
 * again. */
static void skip_held(struct answer_state *r)
{
    const struct turn *t = answer_turn(r);
    struct answer_parser p = r->parser;
    char buf[TURN_HELD_MAX];
    bool is_thinking;
    size_t n = answer_take_held(r, &p, buf, &is_thinking);
    size_t known = is_thinking ? t->thinking_len : t->len;

    if (n > 0 && n <= known &&
        memcmp((is_thinking ? t->thinking : t->text) + known - n, buf, n) == 0)
        r->n_said[is_thinking] -= n;
}

/* Make the prompt of an answer whose ids are not known: of an old chat, of another model, or
 * before a stop string.  They are made from its text. */
static int prompt_from_text(struct answer_state *r, struct err *e)
{
    struct turn *t = answer_turn(r);
    struct answer_parser p = { .format = r->a->parser_format,
                               .tokenizer = r->a->rendering.tokenizer };
    char held[TURN_HELD_MAX];
    size_t n_held = t->n_held;
    struct chat_message m = { .role = CHAT_ASSISTANT,
                              .content = t->text,
                              .len = t->len,
                              .reasoning = t->thinking,
                              .reasoning_len = t->thinking_len };

    r->answer.n = 0;
    r->is_inside = false;
    if (answer_fit_prompt(r, e) != 0)
        return -1;
    answer_parser_start(&p, r->prompt.id, r->prompt.n, false);
    if (chat_answer_again(p.format, p.tokenizer, &m, answer_parser_thinks(&p), &r->answer, e) !=
            0 ||
        answer_fit_prompt(r, e) != 0)
        return -1;
    /* The marks around the thinking may bring white space that the turn does not have. */
    replay_muted(r);
    t = answer_turn(r);
    turn_take_back(t, held);
    r->n_said[false] = t->len;
    r->n_said[true] = t->thinking_len;
    answer_say(r, held, n_held, t->holds_thinking);
    skip_held(r);
    return 0;
}

/* The same with the ids.  Returns false, with the turn as before, if they do not make the text
 * of the turn: they are of another vocabulary, or a person changed the saved chat. */
static bool take_ids(struct answer_state *r, bool *is_over)
{
    struct turn *t = answer_turn(r);
    size_t n_held = t->n_held;
    char held[TURN_HELD_MAX];

    turn_take_back(t, held);
    if (is_text_of_ids(r)) {
        *is_over = replay(r);
        return true;
    }
    t->n_held = turn_append(t, t->holds_thinking, held, n_held, &(struct err)ERR_INIT) == 0
                    ? n_held
                    : 0;
    return false;
}

int answer_begin(struct answer_state *r, bool is_continued, bool *is_over, struct err *e)
{
    bool takes_ids = !is_continued || has_possible_ids(r);

    *is_over = false;
    if (takes_ids && answer_fit_prompt(r, e) != 0)
        return -1;
    if ((!takes_ids || !take_ids(r, is_over)) && prompt_from_text(r, e) != 0)
        return -1;
    r->is_ready = true;
    return 0;
}
