#include "config.h"

#include "engine/text/chat_format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/text/chat_internal.h"

/*
 * The built-in formats: raw, and templates for the evaluator.  They are for files without a
 * template, so each is for vocabularies with its control tokens (Ollama's files of these
 * families).  The rules follow the models' own templates.
 */
static const struct built_in {
    const char *name, *open, *close; /* the control tokens around a turn */
    const char *template;            /* NULL: raw */
    const char *mark, *unmarked;     /* the template for vocabularies without this token */
} built_in[] = {
    { "gemma4", "<|turn>", "<turn|>",
      /* A system turn; thinking only in answers after the last question; answers in a row are
       * one turn. */
      .template =
      "{{ bos_token }}{% set thinks = enable_thinking is defined and enable_thinking %}"
      "{% set first = messages[0].role == 'system' if messages else false %}"
      "{% set ns = namespace(question=-1) %}{% for m in messages %}{% if m.role == 'user' %}"
      "{% set ns.question = loop.index0 %}{% endif %}{% endfor %}"
      "{% if thinks or first %}{{ '<|turn>system\n' + ('<|think|>\n' if thinks else '') }}"
      "{{ messages[0].content|trim if first else '' }}{{ '<turn|>\n' }}{% endif %}"
      "{% set rest = messages[1:] if first else messages %}{% for m in rest %}"
      "{% set answer = m.role == 'assistant' %}"
      "{% if not answer or loop.first or loop.previtem.role != 'assistant' %}"
      "{{ '<|turn>' + ('model' if answer else m.role) + '\n' }}{% endif %}"
      "{% if answer and m.reasoning_content and loop.index0 + (1 if first else 0) > "
      "ns.question %}{{ '<|channel>thought\n' + m.reasoning_content + '\n<channel|>' }}"
      "{% endif %}{% if answer %}{% set text %}{% for part in m.content.split('<channel|>') %}"
      "{{ part.split('<|channel>')[0] }}{% endfor %}{% endset %}{{ text|trim }}"
      "{% else %}{{ m.content|trim }}{% endif %}"
      "{% if not answer or loop.last or loop.nextitem.role != 'assistant' %}"
      "{{ '<turn|>\n' }}{% endif %}{% endfor %}"
      "{% if add_generation_prompt %}{{ '<|turn>model\n' }}{% endif %}" },
    { "gemma3", "<start_of_turn>", "<end_of_turn>",
      /* The system text goes before the question. */
      .template =
      "{{ bos_token }}{% set ns = namespace(system='') %}{% for m in messages %}"
      "{% if m.role == 'system' and not loop.last %}{% set ns.system = m.content + '\n\n' %}"
      "{% else %}{{ '<start_of_turn>' + ('model' if m.role == 'assistant' else 'user') + '\n' }}"
      "{{ (ns.system if m.role == 'user' else '') + m.content|trim }}{{ '<end_of_turn>\n' }}"
      "{% set ns.system = '' %}{% endif %}{% endfor %}"
      "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}" },
    { "llama3", "<|start_header_id|>", "<|eot_id|>",
      .template =
      "{{ bos_token }}{% for m in messages %}{{ '<|start_header_id|>' + m.role + "
      "'<|end_header_id|>\n\n' + m.content|trim + '<|eot_id|>' }}{% endfor %}"
      "{% if add_generation_prompt %}"
      "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}" },
    { "deepseek", "<\uff5cUser\uff5c>", "<\uff5cAssistant\uff5c>",
      /* V4, which is published without a template.  Old answers have no thinking. */
      .template =
      "{{ bos_token }}{% set thinks = enable_thinking is not defined or enable_thinking %}"
      "{% for m in messages %}{% if m.role == 'user' %}{{ '<\uff5cUser\uff5c>' + m.content }}"
      "{% elif m.role == 'assistant' %}{{ '<\uff5cAssistant\uff5c></think>' + m.content + "
      "eos_token }}{% else %}{{ m.content }}{% endif %}{% endfor %}"
      "{% if add_generation_prompt %}{{ '<\uff5cAssistant\uff5c>' + "
      "('<think>' if thinks else '</think>') }}{% endif %}",
      /* V3, which does not think. */
      .mark = "<think>",
      .unmarked =
      "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}"
      "{{ '<\uff5cUser\uff5c>' + m.content }}{% elif m.role == 'assistant' %}"
      "{{ '<\uff5cAssistant\uff5c>' + m.content + eos_token }}{% else %}{{ m.content }}"
      "{% endif %}{% endfor %}"
      "{% if add_generation_prompt %}{{ '<\uff5cAssistant\uff5c>' }}{% endif %}" },
    { "chatml", "<|im_start|>", "<|im_end|>",
      .template =
      "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}"
      "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}" },
    { .name = "raw" },
};

#define N_FORMAT ((int)(sizeof built_in / sizeof built_in[0]))

static void render_raw(struct chat_writer *w, const struct chat_format *f,
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
            chat_bytes(w, m[i].content, m[i].len);
    }
}

static int no_format(const char *name, struct err *e)
{
    char list[100] = "";

    for (int i = 0; i < N_FORMAT; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), " %s", built_in[i].name);
    return err_set(e, ERR_ARGUMENT, "unknown chat format \"%.30s\"; use%s", name, list);
}

static bool is_control(const struct tokenizer *t, const char *name)
{
    int64_t id = tokenizer_find(t, name, strlen(name));

    return id >= 0 && tokenizer_kind(t, (uint32_t)id) == TOKEN_CONTROL;
}

int chat_format_open(struct chat_format *f, const char *name, const struct tokenizer *t,
                     struct err *e)
{
    const struct built_in *b = built_in;
    const char *text;

    *f = (struct chat_format){ .name = "raw", .render = render_raw };
    while (b < built_in + N_FORMAT && strcmp(b->name, name) != 0)
        b++;
    if (b == built_in + N_FORMAT)
        return no_format(name, e);
    if (b->template == NULL)
        return 0;
    if (!is_control(t, b->open) || !is_control(t, b->close))
        return err_set(e, ERR_UNSUPPORTED,
                       "the vocabulary has no control token %s, which the chat format \"%s\" "
                       "needs; choose another one with --format",
                       is_control(t, b->open) ? b->close : b->open, name);
    text = b->mark == NULL || tokenizer_find(t, b->mark, strlen(b->mark)) >= 0 ? b->template
                                                                               : b->unmarked;
    return chat_template_open(f, b->name, t, text, strlen(text), e);
}

const char *chat_format_name(const struct chat_format *f)
{
    return f->name;
}

const char *chat_format_at(int i)
{
    return i >= 0 && i < N_FORMAT ? built_in[i].name : NULL;
}

int chat_format_render(const struct chat_format *f, const struct tokenizer *t,
                       const struct chat_message *messages, size_t n_message,
                       const struct chat_options *options, struct ids *out, struct err *e)
{
    struct chat_writer w = { .format = f, .t = t, .out = out, .start = out->n, .e = e };

    f->render(&w, f, messages, n_message, options);
    chat_flush(&w, false);
    free(w.text);
    if (w.rc != 0)
        out->n = w.start;
    return w.rc;
}

int chat_format_show(const struct chat_format *f, const struct tokenizer *t,
                     const struct chat_message *messages, size_t n_message,
                     const struct chat_options *options, struct chat_prompt *out,
                     struct err *e)
{
    struct chat_writer w = { .format = f, .t = t, .out = &out->ids, .shown = out, .e = e };

    f->render(&w, f, messages, n_message, options);
    chat_flush(&w, false);
    free(w.text);
    return w.rc;
}

void chat_prompt_free(struct chat_prompt *p)
{
    free(p->text);
    ids_free(&p->ids);
    *p = (struct chat_prompt){ 0 };
}

static size_t add_stop(uint32_t *out, size_t used, size_t n, uint32_t id)
{
    for (size_t i = 0; i < used; i++)
        if (out[i] == id)
            return used;
    if (used < n)
        out[used++] = id;
    return used;
}

static size_t drop_stop(uint32_t *out, size_t used, int64_t id)
{
    size_t n = 0;

    for (size_t i = 0; i < used; i++)
        if ((int64_t)out[i] != id)
            out[n++] = out[i];
    return n;
}

const char *chat_turn_word(const struct chat_format *f, size_t i)
{
    return i < f->n_turn_word ? f->turn_word[i] : NULL;
}

size_t chat_stop_ids(const struct catalogue *c, const struct tokenizer *t,
                     const struct chat_format *f, uint32_t *out, size_t n)
{
    static const char *const ends[] = {
        "<eos>",      "</s>",       "<|endoftext|>", "<|end_of_text|>",  "<|eot_id|>",
        "<|eom_id|>", "<|im_end|>", "<|end|>",       "<end_of_turn>",    "<turn|>",
        "<|return|>", "<|call|>",   "<EOT>",         "<|tool_response>", "[EOS]",
        "<|flush|>",  "<|calls|>",  "[EOT]",         "_<EOT>",           "[e~[",
        "<|observation|>",          "<end_of_utterance>",
        "<\uff5cend\u2581of\u2581sentence\uff5c>",
    };
    const struct vocab_info *info = tokenizer_info(t);
    size_t used = 0;

    for (uint32_t i = 0; i < c->generation.n_stop; i++)
        used = add_stop(out, used, n, c->generation.stop[i]);
    if (info->eos >= 0)
        used = add_stop(out, used, n, (uint32_t)info->eos);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        int64_t id = tokenizer_find(t, ends[i], strlen(ends[i]));

        if (id < 0 || tokenizer_kind(t, (uint32_t)id) != TOKEN_CONTROL)
            continue;
        if (strcmp(ends[i], "</s>") != 0 || id == 2)
            used = add_stop(out, used, n, (uint32_t)id);
    }
    if (f != NULL && f->has_end)
        used = add_stop(out, used, n, f->end);
    for (size_t i = 0; f != NULL && i < f->n_turn_id; i++)
        used = add_stop(out, used, n, f->turn_id[i]);
    /* These only end a message: another one follows. */
    if (f != NULL && f->think == THINK_HARMONY)
        used = drop_stop(out, used, tokenizer_find(t, HARMONY_END, strlen(HARMONY_END)));
    if (f != NULL && f->think == THINK_RECIPIENT)
        used = drop_stop(out, used, tokenizer_find(t, RECIPIENT_END, strlen(RECIPIENT_END)));
    return used;
}
