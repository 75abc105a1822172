/*
 * Formats with [INST] ... [/INST]: those of Mistral, whose later versions use control tokens
 * as marks, and the one of Llama 2.  Most of them have no system turn.  The system text goes
 * before the user's text, in the first or the last turn.
 */
#include "config.h"

#include "engine/text/chat_internal.h"

static void mark(struct chat_writer *w, const struct inst_style *s, const char *name)
{
    if (s->is_control)
        chat_control(w, name);
    else
        chat_text(w, name);
}

static size_t last_of(const struct chat_message *m, size_t n, enum chat_role role)
{
    while (n > 0 && m[n - 1].role != role)
        n--;
    return n; /* its index + 1, or 0 */
}

/* Returns the system text that belongs in user turn i, with s NULL if there is none. */
static struct span folded(const struct inst_style *s, const struct chat_message *m, size_t n,
                          size_t i)
{
    bool has_first = m[0].role == CHAT_SYSTEM, is_last = last_of(m, n, CHAT_USER) == i + 1;

    if (s->system == SYSTEM_OWN)
        return (struct span){ 0 };
    if (s->system == SYSTEM_LAST && has_first && is_last)
        return (struct span){ m[0].content, m[0].len };
    if (i > 0 && m[i - 1].role == CHAT_SYSTEM && !(s->system == SYSTEM_LAST && i == 1))
        return (struct span){ m[i - 1].content, m[i - 1].len };
    return (struct span){ 0 };
}

static void put_system(struct chat_writer *w, struct span system)
{
    if (system.s == NULL)
        return;
    chat_bytes(w, system.s, system.n);
    chat_text(w, "\n\n");
}

static void answer(struct chat_writer *w, const struct chat_message *m, const char *before,
                   bool trims, const char *after)
{
    struct span s = { m->content, m->len };

    if (m->ids != NULL) {
        /* The prompt of these ids ended without the text before an answer. */
        chat_answer_ids(w, m);
    } else {
        s = trims ? chat_trim(s) : s;
        chat_text(w, before);
        chat_bytes(w, s.s, s.n);
    }
    chat_text(w, after);
    chat_control(w, "</s>");
}

void chat_render_inst(struct chat_writer *w, const struct chat_format *f,
                      const struct chat_message *m, size_t n, const struct chat_options *o)
{
    const struct inst_style *s = f->inst;

    (void)o;
    chat_bos(w);
    for (size_t i = 0; i < n; i++) {
        if (m[i].role == CHAT_SYSTEM && s->system == SYSTEM_OWN) {
            chat_control(w, "[SYSTEM_PROMPT]");
            chat_text(w, s->open);
            chat_bytes(w, m[i].content, m[i].len);
            chat_control(w, "[/SYSTEM_PROMPT]");
        } else if (m[i].role == CHAT_USER) {
            chat_text(w, s->before);
            mark(w, s, "[INST]");
            chat_text(w, s->open);
            put_system(w, folded(s, m, n, i));
            chat_bytes(w, m[i].content, m[i].len);
            chat_text(w, s->close);
            mark(w, s, "[/INST]");
        } else if (m[i].role == CHAT_ASSISTANT) {
            answer(w, &m[i], s->reply, s->trims_reply, NULL);
        }
    }
}

/* Write the system text and the user's text, trimmed like one text. */
static void llama2_user(struct chat_writer *w, const struct chat_message *m, size_t i)
{
    struct span s = { m[i].content, m[i].len };
    bool has_system = i > 0 && m[i - 1].role == CHAT_SYSTEM;

    chat_text(w, "[INST] ");
    if (has_system) {
        /* The joined text begins with a mark, so only its end is trimmed. */
        struct span both = chat_trim(s);

        chat_text(w, "<<SYS>>\n");
        chat_bytes(w, m[i - 1].content, m[i - 1].len);
        chat_text(w, "\n<</SYS>>");
        if (both.n > 0) {
            chat_text(w, "\n\n");
            chat_bytes(w, s.s, (size_t)(both.s - s.s) + both.n);
        }
    } else {
        s = chat_trim(s);
        chat_bytes(w, s.s, s.n);
    }
    chat_text(w, " [/INST]");
}

void chat_render_llama2(struct chat_writer *w, const struct chat_format *f,
                        const struct chat_message *m, size_t n, const struct chat_options *o)
{
    (void)f;
    (void)o;
    for (size_t i = 0; i < n; i++) {
        if (m[i].role == CHAT_USER) {
            chat_bos(w);
            llama2_user(w, m, i);
        } else if (m[i].role == CHAT_ASSISTANT) {
            answer(w, &m[i], " ", true, " ");
        }
    }
}
