/*
 * Make the ids of an answer from its thinking and its text, with the marks that the model would
 * have written around its thinking.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/text/chat_internal.h"

/* Write a mark as its token, or as text if the vocabulary has no such token. */
static void put_mark(struct chat_writer *w, const char *mark)
{
    int64_t id = tokenizer_find(w->t, mark, strlen(mark));

    if (id >= 0)
        chat_control_id(w, (uint32_t)id);
    else
        chat_text(w, mark);
}

static void put_channel(struct chat_writer *w, const char *name)
{
    put_mark(w, HARMONY_CHANNEL);
    chat_text(w, name);
    put_mark(w, HARMONY_MESSAGE);
}

static void harmony(struct chat_writer *w, const struct chat_message *m)
{
    if (m->reasoning_len > 0) {
        put_channel(w, "analysis");
        chat_bytes(w, m->reasoning, m->reasoning_len);
    }
    if (m->reasoning_len > 0 && m->len > 0) {
        put_mark(w, HARMONY_END);
        put_mark(w, HARMONY_START);
        chat_text(w, "assistant");
    }
    if (m->len > 0)
        put_channel(w, HARMONY_FINAL);
    chat_bytes(w, m->content, m->len);
}

/* The prompt has begun the header of the first message. */
static void recipient(struct chat_writer *w, const struct chat_message *m)
{
    if (m->reasoning_len > 0) {
        chat_text(w, " " RECIPIENT_SELF);
        put_mark(w, HARMONY_MESSAGE);
        chat_bytes(w, m->reasoning, m->reasoning_len);
    }
    if (m->reasoning_len > 0 && m->len > 0) {
        put_mark(w, RECIPIENT_END);
        put_mark(w, HARMONY_START);
        chat_text(w, "assistant");
    }
    if (m->len > 0) {
        chat_text(w, " to=user");
        put_mark(w, HARMONY_MESSAGE);
    }
    chat_bytes(w, m->content, m->len);
}

/* Thinking between two marks.  It has no end yet if no text follows. */
static void between_marks(struct chat_writer *w, const struct chat_message *m, bool is_inside)
{
    bool is_channel = w->format->think == THINK_CHANNEL;

    if (m->reasoning_len > 0 && !is_inside) {
        put_mark(w, w->format->open);
        chat_text(w, is_channel ? "thought\n" : "\n");
    }
    chat_bytes(w, m->reasoning, m->reasoning_len);
    if (m->len > 0 && (m->reasoning_len > 0 || is_inside)) {
        if (m->reasoning_len > 0 && m->reasoning[m->reasoning_len - 1] != '\n')
            chat_text(w, "\n");
        put_mark(w, w->format->close);
        chat_text(w, is_channel ? "" : "\n\n");
    }
    chat_bytes(w, m->content, m->len);
}

int chat_answer_again(const struct chat_format *f, const struct tokenizer *t,
                      const struct chat_message *m, bool is_inside, struct ids *out,
                      struct err *e)
{
    struct chat_writer w = {
        .format = f, .t = t, .out = out, .start = out->n, .continues = true, .e = e
    };

    if (f->think == THINK_HARMONY)
        harmony(&w, m);
    else if (f->think == THINK_RECIPIENT)
        recipient(&w, m);
    else if (f->think == THINK_NONE)
        chat_bytes(&w, m->content, m->len);
    else
        between_marks(&w, m, is_inside);
    chat_flush(&w, false);
    free(w.text);
    return w.rc;
}
