#include "config.h"

#include "engine/text/chat_format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/text/chat_internal.h"

static const struct turn_style gemma4 = {
    .open = "<|turn>",
    .role_text = "\n",
    .close = "<turn|>",
    .after = "\n",
    .assistant = "model",
    .has_bos = true,
    .trims = true,
};
static const struct turn_style gemma3 = {
    .open = "<start_of_turn>",
    .role_text = "\n",
    .close = "<end_of_turn>",
    .after = "\n",
    .assistant = "model",
    .has_bos = true,
    .trims = true,
    .folds_system = true,
};
static const struct turn_style llama3 = {
    .open = "<|start_header_id|>",
    .role_end = "<|end_header_id|>",
    .role_text = "\n\n",
    .close = "<|eot_id|>",
    .assistant = "assistant",
    .has_bos = true,
    .trims = true,
};
static const struct turn_style chatml = {
    .open = "<|im_start|>",
    .role_text = "\n",
    .close = "<|im_end|>",
    .after = "\n",
    .assistant = "assistant",
};
static const struct turn_style phi4 = {
    .open = "<|im_start|>",
    .role_end = "<|im_sep|>",
    .close = "<|im_end|>",
    .assistant = "assistant",
};

static const struct inst_style v1_old = { .open = " ", .close = " ", .system = SYSTEM_FIRST };
static const struct inst_style v1 = {
    .before = " ",
    .open = " ",
    .close = " ",
    .reply = " ",
    .system = SYSTEM_FIRST,
};
static const struct inst_style v3 = {
    .is_control = true,
    .open = " ",
    .reply = " ",
    .trims_reply = true,
    .system = SYSTEM_LAST,
};
static const struct inst_style tekken = { .is_control = true, .system = SYSTEM_LAST };
static const struct inst_style v7 = {
    .is_control = true,
    .open = " ",
    .reply = " ",
    .system = SYSTEM_OWN,
};
static const struct inst_style v7_tekken = { .is_control = true, .system = SYSTEM_OWN };

#define QWEN_SYSTEM "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."

static const struct chat_format formats[] = {
    { .name = "gemma4",
      .render = chat_render_gemma4,
      .turn = &gemma4,
      .think = THINK_CHANNEL,
      .open = CHANNEL_OPEN,
      .close = CHANNEL_CLOSE,
      .can_switch = true },
    { .name = "gemma4-large",
      .render = chat_render_gemma4,
      .turn = &gemma4,
      .think = THINK_CHANNEL,
      .open = CHANNEL_OPEN,
      .close = CHANNEL_CLOSE,
      .can_switch = true,
      .is_large = true },
    { .name = "gemma3", .render = chat_render_turns, .turn = &gemma3 },
    { .name = "gemma2", .render = chat_render_turns, .turn = &gemma3 },
    { .name = "llama3", .render = chat_render_turns, .turn = &llama3 },
    { .name = "llama3.1", .render = chat_render_turns, .turn = &llama3, .has_dates = true },
    { .name = "chatml",
      .render = chat_render_turns,
      .turn = &chatml,
      .think = THINK_TAGS,
      .open = THINK_OPEN,
      .close = THINK_CLOSE },
    { .name = "qwen2.5",
      .render = chat_render_turns,
      .turn = &chatml,
      .default_system = QWEN_SYSTEM },
    { .name = "qwen3",
      .render = chat_render_turns,
      .turn = &chatml,
      .think = THINK_TAGS,
      .open = THINK_OPEN,
      .close = THINK_CLOSE,
      .can_switch = true },
    { .name = "phi3", .render = chat_render_phi3 },
    { .name = "phi3.5", .render = chat_render_phi35 },
    { .name = "phi4", .render = chat_render_turns, .turn = &phi4 },
    { .name = "mistral-v1-old", .render = chat_render_inst, .inst = &v1_old },
    { .name = "mistral-v1", .render = chat_render_inst, .inst = &v1 },
    { .name = "mistral-v3", .render = chat_render_inst, .inst = &v3 },
    { .name = "mistral-tekken", .render = chat_render_inst, .inst = &tekken },
    { .name = "mistral-v7", .render = chat_render_inst, .inst = &v7 },
    { .name = "mistral-v7-tekken", .render = chat_render_inst, .inst = &v7_tekken },
    { .name = "llama2", .render = chat_render_llama2 },
    { .name = "raw", .render = chat_render_raw },
};

#define N_FORMAT (sizeof formats / sizeof formats[0])

static int no_format(const char *name, struct err *e)
{
    size_t n = 0;
    char list[200];

    for (size_t i = 0; i < N_FORMAT && n < sizeof list; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i > 0 ? " " : "",
                              formats[i].name);
    return err_set(e, ERR_ARGUMENT, "unknown chat format \"%.30s\"; use %s", name, list);
}

const struct chat_format *chat_format_named(const char *name, struct err *e)
{
    for (size_t i = 0; i < N_FORMAT; i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    no_format(name, e);
    return NULL;
}

const char *chat_format_name(const struct chat_format *f)
{
    return f->name;
}

const char *chat_format_at(int i)
{
    return i >= 0 && (size_t)i < N_FORMAT ? formats[i].name : NULL;
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
    /* In harmony it only ends a message: another one follows. */
    if (f != NULL && f->think == THINK_HARMONY)
        used = drop_stop(out, used, tokenizer_find(t, HARMONY_END, strlen(HARMONY_END)));
    return used;
}
