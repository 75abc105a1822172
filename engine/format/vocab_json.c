/*
 * The vocabulary of a snapshot: tokenizer.json, read as a stream.
 *
 * Tokens are collected, because they come in any order and added tokens come before them.
 * Merges, which are most of the file, go straight to the sink.  This needs all tokens before
 * the first merge, which is the order in every file seen.  In a file with another order the
 * merges are read in a second pass.
 */
#include "config.h"

#include "engine/format/vocab_json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/format/file_open.h"

#define FILE_NAME  "tokenizer.json"
#define LOOK_EVERY 4096 /* events between two looks at whether to go on */

enum section { OTHER, ADDED, NORMALIZER, PRE_TOKENIZER, POST_PROCESSOR, MODEL, N_SECTION };

static const char *const section_names[N_SECTION] = {
    "", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "model",
};

enum model_key {
    M_OTHER,
    M_VOCAB,
    M_MERGES,
    M_TYPE,
    M_UNK,
    M_FALLBACK,
    M_FUSE,
    M_IGNORE,
    M_AFFIX,
};

struct json_vocab {
    const struct catalogue *from;
    uint64_t n_event;
    struct vocab_info *info;
    const struct vocab_sink *sink;
    const struct vocab_config *config;
    enum section section;
    enum model_key key;
    bool seen[N_SECTION], seen_vocab, seen_merges, seen_fallback;
    bool fallback;
    bool is_finished; /* tokens were passed to the sink */
    bool merges_go;   /* merges go to the sink in this read */
    bool merges_done;
    bool second_pass;
    struct steps steps;
    struct json_tokens tokens;
    struct added_list added;
    char text[VOCAB_MAX_TEXT]; /* a key of the vocabulary, or a merge's left text */
    size_t len;
    bool has_left;
    uint32_t n_merge;
    char unk[VOCAB_MAX_TEXT];
    size_t unk_len;
};

static bool is(const char *text, size_t len, const char *want)
{
    return strlen(want) == len && memcmp(text, want, len) == 0;
}

/* ---- passing tokens to the sink ---- */

static int64_t config_id(const struct json_vocab *v, int which)
{
    const struct vocab_config *c = v->config;

    return c->special_len[which] > 0
               ? json_tokens_find(&v->tokens, c->special[which], c->special_len[which])
               : -1;
}

/* Report a needed token that tokenizer_config.json names, but the vocabulary lacks. */
static void note_missing(struct json_vocab *v, const char *what, int which)
{
    const struct vocab_config *c = v->config;

    if (c->special_len[which] > 0)
        vocab_note(v->info,
                   "The %s token \"%.*s\" of tokenizer_config.json is not in the vocabulary, and "
                   "counts as missing.",
                   what, (int)(c->special_len[which] < 40 ? c->special_len[which] : 40),
                   c->special[which]);
}

/* The library prepends U+2581 to such a token before it looks for it. */
static void note_normalized(struct json_vocab *v)
{
    for (uint32_t i = 0; v->steps.has_prepend && i < v->added.n; i++) {
        const struct json_added *a = &v->added.all[i];

        if (!a->normalized || a->special)
            continue;
        vocab_note(v->info,
                   "The added token \"%.*s\" is to be found in normalized text only, but is found "
                   "wherever it is written.",
                   (int)(a->len < 40 ? a->len : 40), a->text);
        return;
    }
}

static void fill_info(struct json_vocab *v)
{
    struct vocab_info *info = v->info;

    info->bos = config_id(v, 0);
    info->eos = config_id(v, 1);
    info->unk = config_id(v, 2);
    info->pad = config_id(v, 3);
    if (info->bos < 0 && v->steps.puts_bos)
        info->bos = json_tokens_find(&v->tokens, v->steps.bos, v->steps.bos_len);
    if (info->unk < 0 && v->unk_len > 0)
        info->unk = json_tokens_find(&v->tokens, v->unk, v->unk_len);
    /* Gemma 4's file leaves the first token to the chat template. */
    info->add_bos = v->config->add_bos >= 0 ? v->config->add_bos == 1 : v->steps.puts_bos;
    if (json_tokens_find(&v->tokens, "<|turn>", 7) >= 0)
        info->add_bos = true;
    if (info->add_bos && info->bos < 0)
        note_missing(v, "begin", 0);
    if (info->eos < 0)
        note_missing(v, "end", 1);
    note_normalized(v);
}

static int finish_tokens(struct json_vocab *v, struct err *e)
{
    struct vocab_info *info = v->info;
    struct json_tokens *t = &v->tokens;

    info->model = v->steps.has_byte_level ? VOCAB_BPE_BYTES : VOCAB_BPE_CHARS;
    info->byte_fallback = v->fallback;
    if (t->n == 0)
        return err_set(e, ERR_FORMAT, "the file has no tokens");
    if (steps_finish(&v->steps, e) != 0 ||
        json_tokens_config(t, &v->added, &v->config->added, info, e) != 0 ||
        json_tokens_finish(t, info->model, v->added.all, v->added.n, e) != 0)
        return -1;
    info->n_token = t->n;
    for (uint32_t id = 0; id < t->n; id++)
        if (vocab_count(info, id, t->token[id].text, t->token[id].len,
                        (enum token_kind)t->token[id].kind, e) != 0)
            return -1;
    fill_info(v);
    for (uint32_t id = 0; v->sink->token != NULL && id < t->n; id++) {
        const struct json_token *one = &t->token[id];

        if (v->sink->token(v->sink->ctx, id, one->text != NULL ? one->text : "", one->len, 0,
                           (enum token_kind)one->kind, one->lstrip, one->rstrip, e) != 0)
            return -1;
    }
    v->is_finished = true;
    return 0;
}

static int start_merges(struct json_vocab *v, struct err *e)
{
    bool has_all = v->seen[ADDED] && v->seen[PRE_TOKENIZER] && v->seen[NORMALIZER] &&
                   v->seen_vocab && (v->seen_fallback || v->steps.has_byte_level);

    if (v->seen_merges)
        return err_set(e, ERR_FORMAT, "appears twice");
    v->seen_merges = true;
    if (v->second_pass) {
        v->merges_go = true;
        return 0;
    }
    if (!has_all)
        return 0;
    if (finish_tokens(v, e) != 0)
        return -1;
    v->merges_go = v->merges_done = true;
    return 0;
}

static int one_merge(struct json_vocab *v, const char *left, size_t n_left, const char *right,
                     size_t n_right, struct err *e)
{
    if (n_left == 0 || n_right == 0)
        return err_set(e, ERR_FORMAT, "merge %u is not two texts", v->n_merge);
    if (v->n_merge++ == VOCAB_MAX_MERGE)
        return err_set(e, ERR_UNSUPPORTED, "more than %u merges", VOCAB_MAX_MERGE);
    if (!v->merges_go || v->sink->merge == NULL)
        return 0;
    return v->sink->merge(v->sink->ctx, left, n_left, right, n_right, e);
}

/* ---- the model ---- */

static int on_merge(struct json_vocab *v, enum json_event event, const char *text, size_t len,
                    unsigned depth, struct err *e)
{
    const char *space;

    if (event == JSON_STRING && depth == 3) { /* "left right" */
        space = len > 1 ? memchr(text + 1, ' ', len - 1) : NULL;
        if (space == NULL)
            return one_merge(v, text, 0, text, 0, e);
        return one_merge(v, text, (size_t)(space - text), space + 1,
                         len - (size_t)(space - text) - 1, e);
    }
    if (event == JSON_STRING && depth == 4 && !v->has_left && v->len == 0) {
        if (len == 0 || len > sizeof v->text)
            return one_merge(v, text, 0, text, 0, e);
        memcpy(v->text, text, len);
        v->len = len;
        v->has_left = true;
        return 0;
    }
    if (event == JSON_STRING && depth == 4 && v->has_left) {
        v->has_left = false;
        return one_merge(v, v->text, v->len, text, len, e);
    }
    if (event == JSON_ARRAY && depth == 3) {
        v->len = 0;
        v->has_left = false;
        return 0;
    }
    if (event == JSON_ARRAY_END && depth == 3 && v->len > 0 && !v->has_left)
        return 0;
    return one_merge(v, text, 0, text, 0, e);
}

static int on_vocab(struct json_vocab *v, enum json_event event, const char *text, size_t len,
                    unsigned depth, struct err *e)
{
    uint32_t id;

    if (event == JSON_KEY && depth == 3) {
        if (len > sizeof v->text)
            return err_set(e, ERR_UNSUPPORTED, "a token of %zu bytes is longer than %zu", len,
                           sizeof v->text);
        memcpy(v->text, text, len);
        v->len = len;
        return 0;
    }
    if (depth != 3 || event != JSON_NUMBER || !added_id(text, len, &id))
        return err_set(e, ERR_FORMAT, "the id of a token is not an integer");
    return json_tokens_vocab(&v->tokens, id, v->text, v->len, e);
}

static int on_model_key(struct json_vocab *v, const char *text, size_t len)
{
    static const struct {
        const char *name;
        enum model_key key;
    } names[] = {
        { "vocab", M_VOCAB },
        { "merges", M_MERGES },
        { "type", M_TYPE },
        { "unk_token", M_UNK },
        { "byte_fallback", M_FALLBACK },
        { "fuse_unk", M_FUSE },
        { "ignore_merges", M_IGNORE },
        { "continuing_subword_prefix", M_AFFIX },
        { "end_of_word_suffix", M_AFFIX },
    };

    v->key = M_OTHER;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (is(text, len, names[i].name))
            v->key = names[i].key;
    return 0;
}

static int on_model_value(struct json_vocab *v, enum json_event event, const char *text,
                          size_t len, struct err *e)
{
    switch (v->key) {
    case M_TYPE:
        if (event == JSON_STRING && !is(text, len, "BPE"))
            return err_set(e, ERR_UNSUPPORTED, "the type \"%.*s\" is not supported",
                           (int)(len < 40 ? len : 40), text);
        return 0;
    case M_UNK:
        if (event == JSON_STRING && len <= sizeof v->unk) {
            memcpy(v->unk, text, len);
            v->unk_len = len;
        }
        return 0;
    case M_FALLBACK:
        v->fallback = event == JSON_TRUE;
        v->seen_fallback = true;
        return 0;
    case M_FUSE: v->info->fuse_unk = event == JSON_TRUE; return 0;
    case M_IGNORE: v->info->ignore_merges = event == JSON_TRUE; return 0;
    case M_AFFIX:
        if (event == JSON_STRING && len > 0)
            return err_set(e, ERR_UNSUPPORTED,
                           "prefixes and suffixes of words are not supported");
        return 0;
    case M_VOCAB:
        if (event == JSON_OBJECT && v->seen_vocab)
            return err_set(e, ERR_FORMAT, "vocab appears twice");
        v->seen_vocab = v->seen_vocab || event == JSON_OBJECT;
        if (event != JSON_OBJECT && event != JSON_OBJECT_END)
            return err_set(e, ERR_UNSUPPORTED, "vocab is not an object");
        return 0;
    case M_MERGES:
        if (event == JSON_ARRAY)
            return start_merges(v, e);
        if (event != JSON_ARRAY_END)
            return err_set(e, ERR_FORMAT, "merges is not an array");
        return 0;
    case M_OTHER: break;
    }
    return 0;
}

static int on_model(struct json_vocab *v, enum json_event event, const char *text, size_t len,
                    unsigned depth, struct err *e)
{
    if (depth == 2)
        return event == JSON_KEY ? on_model_key(v, text, len)
                                 : on_model_value(v, event, text, len, e);
    if (v->key == M_MERGES && depth > 2)
        return on_merge(v, event, text, len, depth, e);
    if (v->key == M_VOCAB && depth > 2 && !v->second_pass)
        return on_vocab(v, event, text, len, depth, e);
    return 0;
}

/* ---- added tokens ---- */

static int on_added(struct json_vocab *v, enum json_event event, const char *text, size_t len,
                    unsigned depth, struct err *e)
{
    if (depth == 1 && event != JSON_ARRAY && event != JSON_ARRAY_END && event != JSON_NULL)
        return err_set(e, ERR_FORMAT, "is not an array");
    if (depth == 2 && event != JSON_OBJECT && event != JSON_OBJECT_END)
        return err_set(e, ERR_FORMAT, "entry %u is not an object", v->added.n);
    if (event == JSON_OBJECT && depth == 2)
        return added_new(&v->added, e);
    if (event == JSON_OBJECT_END && depth == 2) {
        const struct json_added *a = &v->added.all[v->added.n - 1];

        if (a->id >= VOCAB_MAX_TOKEN || a->text == NULL)
            return err_set(e, ERR_FORMAT, "added token %u has no id or no content",
                           v->added.n - 1);
        if (a->single_word)
            return err_set(e, ERR_UNSUPPORTED,
                           "added token %u matches single words only, which is not supported"
                           VOCAB_ADVICE,
                           v->added.n - 1);
        return 0;
    }
    if (event == JSON_KEY && depth == 3) {
        added_key(&v->added, text, len);
        return 0;
    }
    return depth == 3 ? added_value(&v->added, event, text, len, e) : 0;
}

/* ---- the file ---- */

static int on_top_key(struct json_vocab *v, const char *text, size_t len, struct err *e)
{
    v->section = OTHER;
    for (int i = 1; i < N_SECTION; i++)
        if (is(text, len, section_names[i]))
            v->section = (enum section)i;
    if (v->section == OTHER)
        return 0;
    if (v->seen[v->section])
        return err_set(e, ERR_FORMAT, "appears twice");
    v->seen[v->section] = true;
    v->key = M_OTHER;
    return 0;
}

static int on_section(struct json_vocab *v, enum json_event event, const char *text, size_t len,
                      unsigned depth, struct err *e)
{
    if (v->second_pass && v->section != MODEL)
        return 0;
    switch (v->section) {
    case OTHER: return 0;
    case ADDED: return on_added(v, event, text, len, depth, e);
    case NORMALIZER: return steps_event(&v->steps, STEPS_NORMALIZER, event, text, len, e);
    case PRE_TOKENIZER: return steps_event(&v->steps, STEPS_PRE_TOKENIZER, event, text, len, e);
    case POST_PROCESSOR:
        return steps_event(&v->steps, STEPS_POST_PROCESSOR, event, text, len, e);
    case MODEL: return on_model(v, event, text, len, depth, e);
    case N_SECTION: break;
    }
    return 0;
}

static int on_event(void *ctx, enum json_event event, const char *text, size_t len,
                    unsigned depth, struct err *e)
{
    struct json_vocab *v = ctx;
    int rc;

    if (v->n_event++ % LOOK_EVERY == 0 && catalogue_go_on(v->from, e) != 0)
        return -1;
    if (depth == 0) {
        if (event == JSON_OBJECT || event == JSON_OBJECT_END)
            return 0;
        return err_set(e, ERR_FORMAT, "is not a JSON object");
    }
    if (depth == 1 && event == JSON_KEY)
        rc = on_top_key(v, text, len, e);
    else
        rc = on_section(v, event, text, len, depth, e);
    return rc == 0 ? 0 : err_at(e, NULL, ERR_NO_OFFSET, section_names[v->section]);
}

static int read_file(struct json_vocab *v, const struct model_file *f, struct err *e)
{
    if (json_stream(f->fd, f->size, 0, f->size, on_event, v, e) != 0)
        return -1;
    if (v->tokens.n == 0 && v->added.n == 0 && !v->seen_vocab)
        return err_set(e, ERR_FORMAT, "has no vocabulary");
    if (!v->is_finished && finish_tokens(v, e) != 0)
        return -1;
    v->info->n_merge = v->n_merge;
    if (vocab_check_merges(v->info, e) != 0)
        return err_at(e, NULL, ERR_NO_OFFSET, "model.merges");
    if (v->merges_done || v->sink->merge == NULL || v->n_merge == 0)
        return 0;
    v->second_pass = true;
    v->seen_merges = v->seen_vocab = false;
    memset(v->seen, 0, sizeof v->seen);
    v->n_merge = 0;
    return json_stream(f->fd, f->size, 0, f->size, on_event, v, e);
}

/* Report that the folder has no tokenizer.json, and which file does not replace it. */
static void no_file(const struct catalogue *c, const char *shown, struct err *e)
{
    static const char *const others[] = { "tokenizer.model", "tekken.json", "vocab.json" };
    const char *other = NULL;

    for (size_t i = 0; other == NULL && i < sizeof others / sizeof others[0]; i++)
        if (model_file_is_there(c->dir_fd, others[i]))
            other = others[i];
    if (other != NULL)
        err_set(e, ERR_IO,
                "the file is missing, and %s cannot replace it; fetch a folder that has both, or "
                "a GGUF file of the model",
                other);
    else
        err_set(e, ERR_IO, "the file is missing; fetch it into the folder of the model");
    err_at(e, shown, ERR_NO_OFFSET, NULL);
}

int vocab_json_read(const struct catalogue *c, struct vocab_info *info,
                    const struct vocab_sink *sink, struct err *e)
{
    struct vocab_config *config = calloc(1, sizeof *config);
    struct json_vocab *v = calloc(1, sizeof *v);
    struct model_file f = { .fd = -1 };
    char *shown = vocab_file_name(c, FILE_NAME);
    int rc = -1;

    *info = (struct vocab_info){ .bos = -1, .eos = -1, .unk = -1, .pad = -1 };
    if (config == NULL || v == NULL || shown == NULL) {
        err_memory(e, "a buffer for the vocabulary");
    } else if (!model_file_is_there(c->dir_fd, FILE_NAME)) {
        no_file(c, shown, e);
    } else if (vocab_config_read(c, config, e) == 0 &&
               model_file_open(&f, c->dir_fd, FILE_NAME, shown, e) == 0) {
        v->info = v->steps.info = info;
        v->from = c;
        v->sink = sink;
        v->config = config;
        rc = read_file(v, &f, e);
        info->n_merge = v->n_merge;
        if (rc != 0)
            file_not_json(&f, e);
        model_file_close(&f);
    }
    if (v != NULL) {
        json_tokens_free(&v->tokens);
        added_free(&v->added);
    }
    free(v);
    if (config != NULL)
        vocab_config_free(config);
    free(config);
    free(shown);
    return rc;
}
