/*
 * The vocabulary of a GGUF file.  Tokens, scores and types are three arrays far apart in the
 * file.  They are read side by side, each through its own buffer.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "engine/format/gguf.h"
#include "engine/format/vocab_rules.h"

#define KEY(name) "tokenizer.ggml." name

static int field(struct err *e, const char *key)
{
    return err_at(e, NULL, ERR_NO_OFFSET, key);
}

/* Gets the number of elements of an array; 0 if it does not exist. */
static int count_of(const struct gguf *g, const char *key, uint64_t max, uint32_t *out,
                    struct err *e)
{
    const struct gguf_value *v = gguf_find(g, key);

    *out = 0;
    if (v == NULL)
        return 0;
    if (v->type != GGUF_ARRAY) {
        err_set(e, ERR_FORMAT, "has type %s, not array", gguf_type_name(v->type));
        return err_at(e, NULL, v->offset, key);
    }
    if (v->count > max) {
        err_set(e, ERR_UNSUPPORTED, "%llu entries are more than the limit of %llu",
                (unsigned long long)v->count, (unsigned long long)max);
        return err_at(e, NULL, v->offset, key);
    }
    *out = (uint32_t)v->count;
    return 0;
}

/*
 * Read the id of a special token; -1 if the file has none.  Converters write -1 as the largest
 * number of the type.  An id outside the vocabulary counts as none, because most files with one
 * never need it.  If the program does (is_used), a notice names it.
 */
static int64_t special_id(const struct gguf *g, const char *key, struct vocab_info *info,
                          bool is_used)
{
    const struct gguf_value *v = gguf_find(g, key);
    struct err ignored = ERR_INIT;
    int64_t id = -1;

    if (v == NULL || gguf_int(g, key, &id, &ignored) == 1) {
        if (id == -1 || id == UINT32_MAX || (id >= 0 && id < (int64_t)info->n_token))
            return id < (int64_t)info->n_token ? id : -1;
        if (is_used)
            vocab_note(info,
                       "%s is %lld, outside the vocabulary of %u tokens, and counts as missing.",
                       key, (long long)id, info->n_token);
    } else if (is_used && !(v->type == GGUF_U64 && v->num.u == UINT64_MAX)) {
        vocab_note(info, "%s is not a token id, and counts as missing.", key);
    }
    return -1;
}

/* Statements of the file about its tokenizer. */
struct stated {
    const char *pre; /* the rule of a byte-level one, or NULL */
    bool is_llama;
};

/* Choose the algorithm. */
static int choose_model(const struct gguf *g, struct vocab_info *info, struct stated *stated,
                        struct err *e)
{
    const char *model = NULL, *pre = NULL;
    size_t model_len = 0, pre_len = 0;

    *stated = (struct stated){ 0 };
    if (gguf_string(g, KEY("model"), &model, &model_len, e) < 0 ||
        gguf_string(g, KEY("pre"), &pre, &pre_len, e) < 0)
        return -1;
    if (model == NULL) {
        err_set(e, ERR_UNSUPPORTED, "the file has no tokenizer");
        return field(e, KEY("model"));
    }
    if (strcmp(model, "gemma4") == 0 || (pre != NULL && strcmp(pre, "gemma4") == 0)) {
        info->model = VOCAB_BPE_CHARS;
        info->add_bos = true;
    } else if (strcmp(model, "llama") == 0) {
        info->model = info->n_merge > 0 ? VOCAB_BPE_CHARS : VOCAB_SCORES;
        info->add_space_prefix = true;
        stated->is_llama = true;
    } else if (strcmp(model, "gpt2") == 0) {
        info->model = VOCAB_BPE_BYTES;
        stated->pre = pre;
    } else {
        err_set(e, ERR_UNSUPPORTED, "the tokenizer \"%.60s\" is not supported", model);
        return field(e, KEY("model"));
    }
    return 0;
}

static const char *arch_of(const struct gguf *g)
{
    struct err ignored = ERR_INIT;
    const char *arch = NULL;

    return gguf_string(g, "general.architecture", &arch, NULL, &ignored) == 1 ? arch : "";
}

/* Set the rule of a byte-level tokenizer, and the normal form, which older Qwen files do not
 * state although they need it. */
static int read_rule(const struct gguf *g, struct vocab_info *info, const char *stated,
                     const struct vocab_signs *signs, struct err *e)
{
    if (info->model == VOCAB_BPE_BYTES &&
        (stated == NULL || strcmp(stated, "default") == 0 || !vocab_pre_name(info, stated)))
        vocab_pre_guess(info, signs, arch_of(g), stated);
    info->nfc = (strcmp(info->pre, "qwen2") == 0 || strcmp(info->pre, "qwen35") == 0) &&
                strncmp(arch_of(g), "qwen", 4) == 0;
    return gguf_bool(g, KEY("normalizer.nfc"), &info->nfc, e) < 0 ? -1 : 0;
}

/* Does text begin with the begin token if the file does not say so?  Older converters left that to
 * the kind of the vocabulary: those of Llama 3, Tekken and their relatives, which find whole words
 * without merges, have one. */
static bool adds_bos(const struct stated *stated)
{
    struct vocab_info rule = { 0 };

    return stated->is_llama ||
           (stated->pre != NULL && vocab_pre_name(&rule, stated->pre) && rule.ignore_merges);
}

static int read_flags(const struct gguf *g, struct vocab_info *info, const struct stated *stated,
                      struct err *e)
{
    bool is_chars = info->model != VOCAB_BPE_BYTES, add_bos = adds_bos(stated);

    if (gguf_bool(g, KEY("add_space_prefix"), &info->add_space_prefix, e) < 0 ||
        gguf_bool(g, KEY("add_bos_token"), &add_bos, e) < 0)
        return -1;
    info->add_space_prefix = info->add_space_prefix && is_chars;
    info->prefix_scheme = PREFIX_ALWAYS;
    info->byte_fallback = is_chars;
    info->fuse_unk = info->model == VOCAB_SCORES;
    info->chat_adds_bos = gguf_find(g, KEY("add_bos_token")) != NULL && add_bos;
    /* Early Gemma 4 files state false, but need true. */
    info->add_bos = info->add_bos || add_bos;
    info->bos = special_id(g, KEY("bos_token_id"), info, info->add_bos);
    info->eos = special_id(g, KEY("eos_token_id"), info, true);
    info->unk = special_id(g, KEY("unknown_token_id"), info, false);
    info->pad = special_id(g, KEY("padding_token_id"), info, false);
    if (stated->is_llama) {
        info->bos = info->bos < 0 && info->n_token > 1 ? 1 : info->bos;
        info->eos = info->eos < 0 && info->n_token > 2 ? 2 : info->eos;
        info->unk = info->unk < 0 ? 0 : info->unk;
    }
    return 0;
}

/* The arrays of a vocabulary, read together. */
struct walk {
    struct gguf_array tokens, scores, types;
    bool has_scores, has_types;
    const struct vocab_info *info;
    bool is_phi3;
    char spaces[VOCAB_MAX_TEXT];
};

struct token {
    const char *text;
    size_t len;
    float score;
    enum token_kind kind;
    bool rstrip;
};

static int walk_open(struct walk *w, const struct gguf *g, const struct vocab_info *info,
                     struct err *e)
{
    int rc;

    memset(w, 0, sizeof *w);
    w->info = info;
    if (gguf_array_open(&w->tokens, g, KEY("tokens"), e) < 0)
        return -1;
    rc = gguf_array_open(&w->scores, g, KEY("scores"), e);
    if (rc < 0)
        return -1;
    w->has_scores = rc == 1 && info->model == VOCAB_SCORES;
    rc = gguf_array_open(&w->types, g, KEY("token_type"), e);
    if (rc < 0)
        return -1;
    w->has_types = rc == 1;
    return 0;
}

static void walk_close(struct walk *w)
{
    gguf_array_close(&w->tokens);
    gguf_array_close(&w->scores);
    gguf_array_close(&w->types);
}

/* User tokens of Gemma 3 that are runs of U+2581 are real spaces in GGUF files. */
static void restore_blocks(struct walk *w, struct token *t)
{
    size_t n = 0;

    if (t->len == 0 || t->len * 3 > sizeof w->spaces)
        return;
    while (n < t->len && t->text[n] == ' ')
        n++;
    if (n != t->len)
        return;
    for (size_t i = 0; i < n; i++)
        memcpy(w->spaces + 3 * i, "\xe2\x96\x81", 3);
    t->text = w->spaces;
    t->len = 3 * n;
}

/* GGUF has no field for it: Phi-3's control tokens remove the white space after them, except
 * <unk>, <s> and <|endoftext|>. */
static bool phi3_strips(const struct token *t)
{
    static const char *const not [] = { "<unk>", "<s>", "<|endoftext|>" };

    /* A mark may have a wrong type, which the tokenizer repairs. */
    if (t->kind != TOKEN_CONTROL &&
        (t->len < 5 || memcmp(t->text, "<|", 2) != 0 || memcmp(t->text + t->len - 2, "|>", 2) != 0))
        return false;
    for (size_t i = 0; i < sizeof not / sizeof not [0]; i++)
        if (t->len == strlen(not [i]) && memcmp(t->text, not [i], t -> len) == 0)
            return false;
    return true;
}

static int walk_next(struct walk *w, uint32_t id, struct token *t, struct err *e)
{
    double score = 0;
    int64_t kind = TOKEN_NORMAL;

    if (gguf_array_string(&w->tokens, &t->text, &t->len, e) != 1 ||
        (w->has_scores && gguf_array_float(&w->scores, &score, e) != 1) ||
        (w->has_types && gguf_array_int(&w->types, &kind, e) != 1))
        return -1;
    if (kind < 0 || kind > TOKEN_BYTE) {
        err_set(e, ERR_FORMAT, "token %u has the unknown type %lld", id, (long long)kind);
        return field(e, KEY("token_type"));
    }
    if (isnan(score)) {
        err_set(e, ERR_FORMAT, "the score of token %u is not a number", id);
        return field(e, KEY("scores"));
    }
    t->score = (float)score;
    t->kind = vocab_kind(w->info->model, id, t->text, t->len,
                         kind == 0 ? TOKEN_NORMAL : (enum token_kind)kind);
    if (t->kind == TOKEN_USER && w->info->model != VOCAB_BPE_BYTES)
        restore_blocks(w, t);
    t->rstrip = w->is_phi3 && phi3_strips(t);
    return 0;
}

/* Recognises Phi-3's vocabulary by its marks, because the model's name is free text. */
struct phi3_marks {
    bool assistant, end, user;
};

static void phi3_look(struct phi3_marks *m, const struct token *t)
{
    m->assistant |= t->len == 13 && memcmp(t->text, "<|assistant|>", 13) == 0;
    m->end |= t->len == 7 && memcmp(t->text, "<|end|>", 7) == 0;
    m->user |= t->len == 8 && memcmp(t->text, "<|user|>", 8) == 0;
}

/* Reads the tokens once to count them and to recognise their vocabulary. */
static int count_tokens(const struct gguf *g, struct vocab_info *info, bool *is_phi3,
                        struct vocab_signs *signs, struct err *e)
{
    struct phi3_marks m = { false, false, false };
    struct walk w;
    struct token t;
    int rc = walk_open(&w, g, info, e);

    for (uint32_t id = 0; rc == 0 && id < info->n_token; id++) {
        rc = walk_next(&w, id, &t, e);
        if (rc == 0 && vocab_count(info, id, t.text, t.len, t.kind, e) != 0)
            rc = field(e, KEY("tokens"));
        if (rc == 0) {
            phi3_look(&m, &t);
            vocab_signs_look(signs, id, t.text, t.len, t.kind);
        }
    }
    walk_close(&w);
    *is_phi3 = m.assistant && m.end && m.user && info->model != VOCAB_BPE_BYTES;
    return rc;
}

static int read_info(const struct catalogue *c, struct vocab_info *info, bool *is_phi3,
                     struct err *e)
{
    static const char *const beside[] = { KEY("scores"), KEY("token_type") };
    struct vocab_signs signs = { 0 };
    const struct gguf *g = c->gguf;
    struct stated stated;
    uint32_t n;

    *info = (struct vocab_info){ .bos = -1, .eos = -1, .unk = -1, .pad = -1 };
    if (count_of(g, KEY("tokens"), VOCAB_MAX_TOKEN, &info->n_token, e) != 0 ||
        count_of(g, KEY("merges"), VOCAB_MAX_MERGE, &info->n_merge, e) != 0)
        return -1;
    if (choose_model(g, info, &stated, e) != 0)
        return -1;
    if (info->n_token == 0) {
        err_set(e, ERR_UNSUPPORTED, "the file has no vocabulary");
        return field(e, KEY("tokens"));
    }
    for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++) {
        if (count_of(g, beside[i], VOCAB_MAX_TOKEN, &n, e) != 0)
            return -1;
        if (n != info->n_token && gguf_find(g, beside[i]) != NULL) {
            err_set(e, ERR_FORMAT, "has %u entries for %u tokens", n, info->n_token);
            return field(e, beside[i]);
        }
    }
    /* Tokens without an embedding, as of images in Ollama's files, cannot be used. */
    if (c->hparams.n_vocab != 0 && info->n_token > c->hparams.n_vocab)
        info->n_token = c->hparams.n_vocab;
    if (info->model == VOCAB_SCORES && gguf_find(g, KEY("scores")) == NULL) {
        err_set(e, ERR_FORMAT, "a tokenizer of type llama needs scores or merges");
        return field(e, KEY("scores"));
    }
    if (count_tokens(g, info, is_phi3, &signs, e) != 0 ||
        read_rule(g, info, stated.pre, &signs, e) != 0 || read_flags(g, info, &stated, e) != 0)
        return -1;
    return vocab_check_merges(info, e) == 0 ? 0 : field(e, KEY("merges"));
}

int vocab_gguf_info(const struct catalogue *c, struct vocab_info *info, struct err *e)
{
    bool is_phi3;

    return read_info(c, info, &is_phi3, e);
}

static int read_merges(const struct gguf *g, const struct vocab_sink *sink, struct err *e)
{
    struct gguf_array a;
    const char *text;
    size_t len;
    uint32_t rank = 0;
    int rc = gguf_array_open(&a, g, KEY("merges"), e);

    while (rc == 1 && (rc = gguf_array_string(&a, &text, &len, e)) == 1) {
        const char *space = len > 1 ? memchr(text + 1, ' ', len - 1) : NULL;
        size_t left = space != NULL ? (size_t)(space - text) : 0;

        if (space == NULL || left + 1 == len)
            rc = err_set(e, ERR_FORMAT, "merge %u is not two texts with a space between them",
                         rank);
        else if (sink->merge(sink->ctx, text, left, space + 1, len - left - 1, e) != 0)
            rc = -1;
        rank++;
        if (rc < 0)
            field(e, KEY("merges"));
    }
    gguf_array_close(&a);
    return rc < 0 ? -1 : 0;
}

int vocab_gguf_read(const struct catalogue *c, struct vocab_info *info,
                    const struct vocab_sink *sink, struct err *e)
{
    const struct gguf *g = c->gguf;
    struct walk w;
    struct token t;
    bool is_phi3;
    int rc;

    if (read_info(c, info, &is_phi3, e) != 0)
        return -1;
    rc = walk_open(&w, g, info, e);
    w.is_phi3 = is_phi3;
    for (uint32_t id = 0; rc == 0 && sink->token != NULL && id < info->n_token; id++) {
        rc = walk_next(&w, id, &t, e);
        if (rc == 0)
            rc = sink->token(sink->ctx, id, t.text, t.len, t.score, t.kind, false, t.rstrip, e);
    }
    walk_close(&w);
    if (rc != 0 || sink->merge == NULL || info->model == VOCAB_SCORES)
        return rc;
    return read_merges(g, sink, e);
}

/* --- the check at opening, which reads counts only --- */

/* Returns 1 if the array exists and is right, 0 if it does not exist, -1 if it is wrong. */
static int check_array(const struct gguf *g, const char *key, bool (*fits)(enum gguf_type),
                       const char *what, uint64_t count, struct err *e)
{
    const struct gguf_value *v = gguf_find(g, key);

    if (v == NULL)
        return 0;
    if (v->type != GGUF_ARRAY || !fits(v->elem)) {
        err_set(e, ERR_FORMAT, "is %s%s, not an array of %s",
                v->type == GGUF_ARRAY ? "an array of " : "",
                gguf_type_name(v->type == GGUF_ARRAY ? v->elem : v->type), what);
        return err_at(e, NULL, v->offset, key);
    }
    if (v->count < count) {
        err_set(e, ERR_FORMAT, "has %llu entries for %llu tokens (rows of token_embd.weight)",
                (unsigned long long)v->count, (unsigned long long)count);
        return err_at(e, NULL, v->offset, key);
    }
    return 1;
}

static bool is_string(enum gguf_type t)
{
    return t == GGUF_STRING;
}

/* Some converters write whole numbers. */
static bool is_score(enum gguf_type t)
{
    return t == GGUF_F32 || t == GGUF_I32;
}

static bool is_id(enum gguf_type t)
{
    return t == GGUF_I32 || t == GGUF_U32;
}

int vocab_gguf_check(const struct catalogue *c, struct err *e)
{
    const struct gguf *g = c->gguf;
    uint64_t n = c->hparams.n_vocab;
    int tokens = check_array(g, "tokenizer.ggml.tokens", is_string, "strings", n, e);

    if (tokens < 0)
        return -1;
    if (tokens == 0) /* the model runs without a vocabulary; text is refused later */
        return 0;
    if (check_array(g, "tokenizer.ggml.scores", is_score, "f32", n, e) < 0 ||
        check_array(g, "tokenizer.ggml.token_type", is_id, "i32", n, e) < 0)
        return -1;
    return 0;
}
