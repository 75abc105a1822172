#include "config.h"

#include "engine/text/chat_format.h"

#include <stdlib.h>
#include <string.h>

#include "engine/text/chat_internal.h"

static const struct turn_style gemma4 = {
    .open = "<|turn>",
    .role_text = "\n",
    .close = "<turn|>",
    .behind = "\n",
    .assistant = "model",
    .has_bos = true,
    .trims = true,
};
static const struct turn_style gemma3 = {
    .open = "<start_of_turn>",
    .role_text = "\n",
    .close = "<end_of_turn>",
    .behind = "\n",
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
    .behind = "\n",
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
      .can_switch = true },
    { .name = "gemma4-large",
      .render = chat_render_gemma4,
      .turn = &gemma4,
      .think = THINK_CHANNEL,
      .can_switch = true,
      .is_large = true },
    { .name = "gemma3", .render = chat_render_turns, .turn = &gemma3 },
    { .name = "gemma2", .render = chat_render_turns, .turn = &gemma3 },
    { .name = "llama3", .render = chat_render_turns, .turn = &llama3 },
    { .name = "llama3.1", .render = chat_render_turns, .turn = &llama3, .has_dates = true },
    { .name = "chatml", .render = chat_render_turns, .turn = &chatml, .think = THINK_TAGS },
    { .name = "qwen2.5",
      .render = chat_render_turns,
      .turn = &chatml,
      .default_system = QWEN_SYSTEM },
    { .name = "qwen3",
      .render = chat_render_turns,
      .turn = &chatml,
      .think = THINK_TAGS,
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

const char *const *chat_format_names(void)
{
    static const char *const names[N_FORMAT + 1] = {
        "gemma4",         "gemma4-large", "gemma3",
        "gemma2",         "llama3",       "llama3.1",
        "chatml",         "qwen2.5",      "qwen3",
        "phi3",           "phi3.5",       "phi4",
        "mistral-v1-old", "mistral-v1",   "mistral-v3",
        "mistral-tekken", "mistral-v7",   "mistral-v7-tekken",
        "llama2",         "raw",
    };

    return names;
}

static const struct chat_format *by_name(const char *name)
{
    for (size_t i = 0; i < N_FORMAT; i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    return NULL;
}

/* Words of a template, and the format that it then is.  The first row whose words are
 * all in the template decides. */
struct clue {
    const char *word[3];
    const char *format;
};

static const struct clue clues[] = {
    { { "<|turn>", "<|channel>thought\\n<channel|>" }, "gemma4-large" },
    { { "<|turn>" }, "gemma4" },
    { { "<start_of_turn>", "System role not supported" }, "gemma2" },
    { { "<start_of_turn>" }, "gemma3" },
    { { "<|start_header_id|>", "Cutting Knowledge Date" }, "llama3.1" },
    { { "<|start_header_id|>" }, "llama3" },
    { { "<|im_start|>", "<|im_sep|>" }, "phi4" },
    { { "<|im_start|>", "enable_thinking" }, "qwen3" },
    { { "<|im_start|>", "You are Qwen, created by Alibaba Cloud" }, "qwen2.5" },
    { { "<|im_start|>" }, "chatml" },
    { { "<|assistant|>", "<|end|>", "<|system|>" }, "phi3.5" },
    { { "<|assistant|>", "<|end|>" }, "phi3" },
    { { "[INST]", "[SYSTEM_PROMPT]" }, "mistral-v7" },
    { { "[INST]", "' [INST] ' + system_message", " [INST]" }, "mistral-v1" },
    { { "[INST]", "[AVAILABLE_TOOLS]", " [INST]" }, "mistral-v1" },
    { { "[INST]", "' [INST] ' + system_message", "\"[INST]\"" }, "mistral-tekken" },
    { { "[INST]", "[AVAILABLE_TOOLS]", "\"[INST]\"" }, "mistral-tekken" },
    { { "[INST]", "' [INST] ' + system_message" }, "mistral-v3" },
    { { "[INST]", "[AVAILABLE_TOOLS]" }, "mistral-v3" },
    { { "[INST]", "<<SYS>>" }, "llama2" },
    { { "[INST]" }, "mistral-v1-old" },
};

/* Control tokens that tell a format where there is no template. */
static const struct clue tokens[] = {
    { { "<|turn>" }, "gemma4" },
    { { "<start_of_turn>" }, "gemma3" },
    { { "<|eot_id|>" }, "llama3" },
    { { "<|im_start|>" }, "chatml" },
};

static const char *by_template(const char *text, size_t len)
{
    struct span s = { text, len };
    size_t at;

    for (size_t i = 0; i < sizeof clues / sizeof clues[0]; i++) {
        size_t k = 0;

        while (k < 3 && clues[i].word[k] != NULL && chat_find(s, clues[i].word[k], false, &at))
            k++;
        if (k == 3 || clues[i].word[k] == NULL)
            return clues[i].format;
    }
    return NULL;
}

static const char *by_tokens(const struct tokenizer *t)
{
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        const char *word = tokens[i].word[0];
        int64_t id = tokenizer_find(t, word, strlen(word));

        if (id >= 0 && tokenizer_kind(t, (uint32_t)id) == TOKEN_CONTROL)
            return tokens[i].format;
    }
    return "raw";
}

const struct chat_format *chat_format_choose(const struct catalogue *c,
                                             const struct tokenizer *t, const char *name,
                                             struct err *e)
{
    const struct chat_format *f = NULL;
    char *text = NULL;
    size_t len = 0;

    if (name != NULL) {
        f = by_name(name);
        if (f == NULL)
            err_set(e, ERR_ARGUMENT, "no chat format is called \"%.40s\"", name);
        return f;
    }
    if (vocab_chat_template(c, &text, &len, e) != 0)
        return NULL;
    name = text != NULL ? by_template(text, len) : NULL;
    free(text);
    if (name == NULL)
        name = by_tokens(t);
    /* The two differ by spaces only, and those by the vocabulary. */
    if (strcmp(name, "mistral-v7") == 0 && tokenizer_info(t)->model == VOCAB_BPE_BYTES)
        name = "mistral-v7-tekken";
    return by_name(name);
}

const char *chat_format_name(const struct chat_format *f)
{
    return f->name;
}

bool chat_format_can_think(const struct chat_format *f)
{
    return f->can_switch;
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

static size_t add_stop(uint32_t *out, size_t used, size_t n, uint32_t id)
{
    for (size_t i = 0; i < used; i++)
        if (out[i] == id)
            return used;
    if (used < n)
        out[used++] = id;
    return used;
}

size_t chat_stop_ids(const struct catalogue *c, const struct tokenizer *t, uint32_t *out,
                     size_t n)
{
    static const char *const ends[] = {
        "<eos>",      "</s>",       "<|endoftext|>",    "<|end_of_text|>", "<|eot_id|>",
        "<|eom_id|>", "<|im_end|>", "<|end|>",          "<end_of_turn>",   "<turn|>",
        "<|return|>", "<EOT>",      "<|tool_response>", "[EOS]",
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
    return used;
}
