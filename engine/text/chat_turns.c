/*
 * Formats whose turns all look alike (ChatML, Gemma, Llama 3, Phi-4), and the two formats of
 * Phi-3.  The rules follow the models' own templates.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/text/chat_internal.h"

static struct span content_of(const struct chat_message *m, bool trims)
{
    struct span s = { m->content, m->len };

    return trims ? chat_trim(s) : s;
}

static void put(struct chat_writer *w, struct span s)
{
    chat_bytes(w, s.s, s.n);
}

static void open_turn(struct chat_writer *w, const struct turn_style *s, const char *role)
{
    chat_control(w, s->open);
    chat_text(w, role);
    if (s->role_end != NULL)
        chat_control(w, s->role_end);
    chat_text(w, s->role_text);
}

static void close_turn(struct chat_writer *w, const struct turn_style *s)
{
    chat_control(w, s->close);
    chat_text(w, s->after);
}

static const char *role_name(const struct turn_style *s, enum chat_role role)
{
    switch (role) {
    case CHAT_SYSTEM: return "system";
    case CHAT_USER: return "user";
    case CHAT_ASSISTANT: return s->assistant;
    }
    return "user";
}

/* Returns the index of the last user message, or -1. */
static ptrdiff_t last_user(const struct chat_message *m, size_t n)
{
    for (size_t i = n; i > 0; i--)
        if (m[i - 1].role == CHAT_USER)
            return (ptrdiff_t)i - 1;
    return -1;
}

/* Qwen 3: split an answer into thinking, which is a field or part of the text, and text. */
static void split_thinking(const struct chat_message *m, struct span *think, struct span *text)
{
    size_t at;

    *text = (struct span){ m->content, m->len };
    *think = (struct span){ m->reasoning, m->reasoning != NULL ? m->reasoning_len : 0 };
    if (m->reasoning == NULL && chat_find(*text, "</think>", false, &at)) {
        *think = chat_trim_newlines((struct span){ text->s, at }, false, true);
        if (chat_find(*think, "<think>", true, &at))
            *think = (struct span){ think->s + at + 7, think->n - at - 7 };
    }
    if (m->reasoning == NULL && chat_find(*text, "</think>", true, &at)) {
        *text = (struct span){ text->s + at + 8, text->n - at - 8 };
        *text = chat_trim_newlines(*text, true, false);
    }
    *think = chat_trim_newlines(*think, true, true);
}

static void tagged_answer(struct chat_writer *w, const struct chat_message *m, bool is_recent,
                          bool is_last)
{
    struct span think, text;

    if (m->ids != NULL) {
        chat_answer_ids(w, m);
        return;
    }
    split_thinking(m, &think, &text);
    if (is_recent && (is_last || think.n > 0)) {
        chat_text(w, "<think>\n");
        put(w, think);
        chat_text(w, "\n</think>\n\n");
        text = chat_trim_newlines(text, true, false);
    }
    put(w, text);
}

static void dates(struct chat_writer *w, const struct chat_options *o)
{
    chat_text(w, "Cutting Knowledge Date: December 2023\nToday Date: ");
    chat_text(w, o->date != NULL ? o->date : "26 Jul 2024");
    chat_text(w, "\n\n");
}

/* Write the system turn that the template adds if the conversation has none. */
static void first_system(struct chat_writer *w, const struct chat_format *f,
                         const struct chat_options *o)
{
    if (f->default_system == NULL && !f->has_dates)
        return;
    open_turn(w, f->turn, "system");
    if (f->has_dates)
        dates(w, o);
    chat_text(w, f->default_system);
    close_turn(w, f->turn);
}

void chat_render_turns(struct chat_writer *w, const struct chat_format *f,
                       const struct chat_message *m, size_t n, const struct chat_options *o)
{
    const struct turn_style *s = f->turn;
    ptrdiff_t recent = last_user(m, n);

    if (s->has_bos)
        chat_bos(w);
    if (n == 0 || m[0].role != CHAT_SYSTEM)
        first_system(w, f, o);
    for (size_t i = 0; i < n; i++) {
        if (m[i].role == CHAT_SYSTEM && s->folds_system && i + 1 < n)
            continue;
        open_turn(
            w, s,
            role_name(s, s->folds_system && m[i].role == CHAT_SYSTEM ? CHAT_USER : m[i].role));
        if (i == 0 && m[i].role == CHAT_SYSTEM && f->has_dates)
            dates(w, o);
        if (i > 0 && m[i].role == CHAT_USER && m[i - 1].role == CHAT_SYSTEM &&
            s->folds_system) {
            put(w, content_of(&m[i - 1], false));
            chat_text(w, "\n\n");
        }
        if (m[i].role == CHAT_ASSISTANT && f->can_switch && f->think == THINK_TAGS)
            tagged_answer(w, &m[i], (ptrdiff_t)i > recent, i + 1 == n);
        else if (m[i].ids != NULL)
            chat_answer_ids(w, &m[i]);
        else
            put(w, content_of(&m[i], s->trims));
        close_turn(w, s);
    }
    if (!o->add_generation_prompt)
        return;
    open_turn(w, s, s->assistant);
    if (f->can_switch && f->think == THINK_TAGS && o->think == CHAT_THINK_OFF)
        chat_text(w, "<think>\n\n</think>\n\n");
}

/* Write an answer without its channels: the template drops everything from each <|channel> to
 * the next <channel|>. */
static void channel_answer(struct chat_writer *w, const struct chat_message *m)
{
    struct span rest = { m->content, m->len };
    char *text = malloc(m->len + 1);
    size_t at, opens, used = 0;
    bool has_more = true;

    if (text == NULL) {
        if (w->rc == 0)
            w->rc = err_memory(w->e, "an answer of %zu bytes", m->len);
        return;
    }
    while (has_more) {
        struct span part;

        has_more = chat_find(rest, "<channel|>", false, &at);
        part = (struct span){ rest.s, has_more ? at : rest.n };
        if (chat_find(part, "<|channel>", false, &opens))
            part.n = opens;
        if (part.n > 0)
            memcpy(text + used, part.s, part.n);
        used += part.n;
        if (has_more)
            rest = (struct span){ rest.s + at + 10, rest.n - at - 10 };
    }
    put(w, chat_trim((struct span){ text, used }));
    free(text);
}

void chat_render_gemma4(struct chat_writer *w, const struct chat_format *f,
                        const struct chat_message *m, size_t n, const struct chat_options *o)
{
    const struct turn_style *s = f->turn;
    bool thinks = o->think == CHAT_THINK_ON, has_system = n > 0 && m[0].role == CHAT_SYSTEM;
    ptrdiff_t recent = last_user(m, n);

    chat_bos(w);
    if (thinks || has_system) {
        open_turn(w, s, "system");
        if (thinks) {
            chat_control(w, "<|think|>");
            chat_text(w, "\n");
        }
        if (has_system)
            put(w, content_of(&m[0], true));
        close_turn(w, s);
    }
    for (size_t i = has_system ? 1 : 0; i < n; i++) {
        bool is_answer = m[i].role == CHAT_ASSISTANT;
        bool goes_on = is_answer && i > 0 && m[i - 1].role == CHAT_ASSISTANT;

        if (!goes_on)
            open_turn(w, s, role_name(s, m[i].role));
        if (is_answer && m[i].reasoning != NULL && m[i].reasoning_len > 0 &&
            (ptrdiff_t)i > recent) {
            chat_control(w, "<|channel>");
            chat_text(w, "thought\n");
            chat_bytes(w, m[i].reasoning, m[i].reasoning_len);
            chat_text(w, "\n");
            chat_control(w, "<channel|>");
        }
        if (is_answer && m[i].ids != NULL)
            chat_answer_ids(w, &m[i]);
        else if (is_answer)
            channel_answer(w, &m[i]);
        else
            put(w, content_of(&m[i], true));
        if (!is_answer || i + 1 == n || m[i + 1].role != CHAT_ASSISTANT)
            close_turn(w, s);
    }
    if (!o->add_generation_prompt)
        return;
    open_turn(w, s, s->assistant);
    if (f->is_large && !thinks) {
        chat_control(w, "<|channel>");
        chat_text(w, "thought\n");
        chat_control(w, "<channel|>");
    }
}

static void phi3_turn(struct chat_writer *w, const char *open, const struct chat_message *m)
{
    if (open != NULL) {
        chat_control(w, open);
        chat_text(w, "\n");
    }
    if (m->ids != NULL)
        chat_answer_ids(w, m);
    else
        put(w, content_of(m, false));
    chat_control(w, "<|end|>");
    chat_text(w, "\n");
}

/* A user turn ends with <|assistant|>.  System messages are dropped. */
void chat_render_phi3(struct chat_writer *w, const struct chat_format *f,
                      const struct chat_message *m, size_t n, const struct chat_options *o)
{
    (void)f;
    (void)o;
    chat_bos(w);
    for (size_t i = 0; i < n; i++) {
        if (m[i].role == CHAT_USER) {
            phi3_turn(w, "<|user|>", &m[i]);
            chat_control(w, "<|assistant|>");
            chat_text(w, "\n");
        } else if (m[i].role == CHAT_ASSISTANT) {
            phi3_turn(w, NULL, &m[i]);
        }
    }
}

void chat_render_phi35(struct chat_writer *w, const struct chat_format *f,
                       const struct chat_message *m, size_t n, const struct chat_options *o)
{
    static const char *const marks[] = {
        [CHAT_SYSTEM] = "<|system|>",
        [CHAT_USER] = "<|user|>",
        [CHAT_ASSISTANT] = "<|assistant|>",
    };

    (void)f;
    for (size_t i = 0; i < n; i++)
        if (m[i].role != CHAT_SYSTEM || m[i].len > 0)
            phi3_turn(w, marks[m[i].role], &m[i]);
    if (o->add_generation_prompt) {
        chat_control(w, "<|assistant|>");
        chat_text(w, "\n");
    } else {
        chat_control(w, "<|endoftext|>");
    }
}

void chat_render_raw(struct chat_writer *w, const struct chat_format *f,
                     const struct chat_message *m, size_t n, const struct chat_options *o)
{
    (void)f;
    (void)o;
    if (tokenizer_info(w->t)->add_bos)
        chat_bos(w);
    for (size_t i = 0; i < n; i++) {
        if (m[i].ids != NULL)
            chat_answer_ids(w, &m[i]);
        else
            put(w, content_of(&m[i], false));
    }
}
