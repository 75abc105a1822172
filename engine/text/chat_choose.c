/* Choose the chat format of a model, and give the reason. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/digest.h"
#include "engine/text/chat_internal.h"

struct chat_choice {
    struct chat_format own; /* with the marks of this model */
    enum chat_source source;
    bool has_template; /* the model or the caller gave a template */
    bool is_given;     /* the caller gave the template */
    struct err why;    /* why the template is not evaluated */
};

/* ---- templates that equal a built-in format ---- */

/* Published templates by the SHA-256 of their text.  The tests render each of them both with
 * the template and with the built-in format. */
static const struct known {
    const char *sha256, *format;
} known[] = {
    /* Llama 2 */
    { "ea2472f29dbd93c3eb696795f6403228fcc4b775518869c771f83fbae5c11dbf", "llama2" },
    /* the first version of Mistral 7B and Mixtral */
    { "26a59556925c987317ce5291811ba3b7f32ec4c647c400c6cc7e3a9993007ba7", "mistral-v1-old" },
};

static const char *by_fingerprint(const char *text, size_t len)
{
    char hex[DIGEST_HEX];

    digest_sha256(text, len, hex);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].sha256, hex) == 0)
            return known[i].format;
    return NULL;
}

/* ---- guesses ---- */

/* Words of a template and the format that they indicate.  The first row whose words all
 * occur in the template decides. */
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

/* Control tokens that indicate a format if there is no template. */
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

/* ---- the choice ---- */

static int choose_named(struct chat_choice *x, const char *name, enum chat_source source,
                        struct err *e)
{
    const struct chat_format *named = chat_format_named(name, e);

    if (named == NULL)
        return -1;
    x->own = *named;
    x->source = source;
    return 0;
}

/* Returns true if the vocabulary has the control tokens of this format. */
static bool can_render(const struct tokenizer *t, const char *name)
{
    const struct chat_message m[] = {
        { .role = CHAT_USER, .content = "hello", .len = 5 },
        { .role = CHAT_ASSISTANT, .content = "hello", .len = 5 },
        { .role = CHAT_USER, .content = "hello", .len = 5 },
    };
    const struct chat_options o = { .add_generation_prompt = true };
    struct err ignored = ERR_INIT;
    const struct chat_format *f = chat_format_named(name, &ignored);
    struct ids ids = { 0 };
    bool can = f != NULL && chat_format_render(f, t, m, 3, &o, &ids, &ignored) == 0;

    ids_free(&ids);
    return can;
}

/* Choose a format without evaluating a template. */
static int guess(struct chat_choice *x, const struct tokenizer *t, const char *text, size_t len,
                 struct err *e)
{
    const char *name = text != NULL ? by_template(text, len) : NULL;

    /* The two v7 formats differ only in spaces.  The kind of vocabulary decides. */
    if (name != NULL && strcmp(name, "mistral-v7") == 0 &&
        tokenizer_info(t)->model == VOCAB_BPE_BYTES)
        name = "mistral-v7-tekken";
    if (name != NULL && can_render(t, name))
        return choose_named(x, name, CHAT_BY_WORDS, e);
    name = by_tokens(t);
    if (strcmp(name, "raw") != 0 && can_render(t, name))
        return choose_named(x, name, CHAT_BY_TOKENS, e);
    return choose_named(x, "raw", CHAT_NO_FORMAT, e);
}

static int choose(struct chat_choice *x, const struct tokenizer *t, const char *text,
                  size_t len, bool evaluates, struct err *e)
{
    const char *equal = text != NULL && !evaluates ? by_fingerprint(text, len) : NULL;

    x->has_template = text != NULL;
    if (text == NULL)
        return guess(x, t, NULL, 0, e);
    if (equal != NULL && can_render(t, equal))
        return choose_named(x, equal, CHAT_EQUAL, e);
    if (chat_template_open(&x->own, t, text, len, &x->why) == 0) {
        x->source = CHAT_EVALUATED;
        return 0;
    }
    if (x->why.code == ERR_MEMORY || x->is_given) {
        *e = x->why;
        return -1;
    }
    return guess(x, t, text, len, e);
}

int chat_choose(struct chat_choice **out, const struct catalogue *c, const struct tokenizer *t,
                const struct chat_wish *wish, struct err *e)
{
    static const struct chat_wish none = { 0 };
    const struct chat_wish *want = wish != NULL ? wish : &none;
    struct chat_choice *x = calloc(1, sizeof *x);
    char *text = NULL;
    size_t len = 0;
    int rc;

    *out = NULL;
    if (x == NULL)
        return err_memory(e, "a chat format");
    x->why = (struct err)ERR_INIT;
    x->is_given = want->template != NULL;
    if (want->format != NULL)
        rc = choose_named(x, want->format, CHAT_NAMED, e);
    else if (want->template != NULL)
        rc = choose(x, t, want->template, want->len, true, e);
    else if ((rc = vocab_chat_template(c, &text, &len, e)) == 0)
        rc = choose(x, t, text, len, want->evaluates, e);
    if (rc == 0 && strcmp(x->own.name, "raw") != 0)
        chat_find_marks(&x->own, t, want->template != NULL ? want->template : text,
                        want->template != NULL ? want->len : len);
    free(text);
    if (rc != 0) {
        chat_choice_free(x);
        return -1;
    }
    *out = x;
    return 0;
}

void chat_choice_free(struct chat_choice *x)
{
    if (x == NULL)
        return;
    chat_template_close(&x->own);
    free(x);
}

const struct chat_format *chat_choice_format(const struct chat_choice *x)
{
    return &x->own;
}

bool chat_choice_is_named(const struct chat_choice *x, const char *name)
{
    if (name == NULL || x->source != CHAT_NAMED)
        return name == NULL && x->source != CHAT_NAMED;
    return strcmp(x->own.name, name) == 0;
}

enum chat_source chat_choice_source(const struct chat_choice *x)
{
    return x->source;
}

/* "line 3: unknown filter" */
static const char *reason(const struct chat_choice *x)
{
    return x->why.what;
}

const char *chat_choice_text(const struct chat_choice *x, char *buf, size_t n)
{
    const char *name = x->own.name;

    switch (x->source) {
    case CHAT_NAMED: snprintf(buf, n, "%s (built in, chosen by name)", name); break;
    case CHAT_EQUAL:
        snprintf(buf, n, "%s (built in, equal to the model's template)", name);
        break;
    case CHAT_EVALUATED:
        snprintf(buf, n, "%s template (evaluated)", x->is_given ? "the given" : "the model's");
        break;
    case CHAT_BY_WORDS:
        snprintf(buf, n, "%s (guessed from words of the template, which cannot be used: %s)",
                 name, reason(x));
        break;
    case CHAT_BY_TOKENS:
    case CHAT_NO_FORMAT:
        if (x->has_template)
            snprintf(buf, n, "%s (%s; the template cannot be used: %s)", name,
                     x->source == CHAT_BY_TOKENS ? "guessed from control tokens"
                                                 : "no built-in format fits",
                     reason(x));
        else if (x->source == CHAT_BY_TOKENS)
            snprintf(buf, n, "%s (guessed from control tokens; the file has no template)",
                     name);
        else
            snprintf(buf, n, "raw (the file has no template and no known control tokens)");
        break;
    }
    return buf;
}

bool chat_choice_notice(const struct chat_choice *x, bool has_system, char *buf, size_t n)
{
    const struct chat_template *own = x->own.template;

    if (x->source == CHAT_EVALUATED) {
        enum system_kind kind = chat_template_system(own);

        if (!has_system || kind == SYSTEM_PRINTED)
            return false;
        if (kind == SYSTEM_REFUSED)
            snprintf(buf, n,
                     "The model's chat template refuses a system message, so the system "
                     "text goes before the first message.");
        else
            snprintf(buf, n,
                     "The model's chat template leaves the system message out, so the "
                     "model does not see it.");
        return true;
    }
    if (x->has_template && x->why.code != ERR_NONE && x->source != CHAT_NO_FORMAT)
        snprintf(buf, n,
                 "The model's chat template cannot be used (%s). The built-in format %s "
                 "is used instead; choose another one with --format NAME.",
                 reason(x), x->own.name);
    else if (x->has_template && x->why.code != ERR_NONE)
        snprintf(buf, n,
                 "The model's chat template cannot be used (%s), and no built-in format fits "
                 "its vocabulary. Text is sent without a chat format; choose one with "
                 "--format NAME, or use another file of the model.",
                 reason(x));
    else if (x->source == CHAT_NO_FORMAT)
        snprintf(buf, n,
                 "The model has no chat template and no known control tokens. Text is "
                 "sent without a chat format; choose one with --format NAME.");
    else
        return false;
    return true;
}
