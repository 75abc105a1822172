/* Tokens of a tokenizer.json by id.  The vocabulary is an object in any order, and its added
 * tokens come before it. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/format/vocab_json.h"

static int grow(struct json_tokens *t, uint32_t id, struct err *e)
{
    uint32_t cap = t->cap > 0 ? t->cap : 4096;
    struct arena more;
    struct json_token *token;

    if (id >= VOCAB_MAX_TOKEN)
        return err_set(e, ERR_UNSUPPORTED, "token id %u is over the limit of %u", id,
                       VOCAB_MAX_TOKEN);
    while (cap <= id)
        cap *= 2;
    if (cap == t->cap)
        return 0;
    if (arena_map(&more, "tokenizer", arena_size(cap * sizeof *token), false, e) != 0)
        return -1;
    token = arena_take(&more, cap * sizeof *token, e);
    if (token == NULL) {
        arena_unmap(&more);
        return -1;
    }
    if (t->n > 0)
        memcpy(token, t->token, t->n * sizeof *token);
    arena_unmap(&t->arena);
    t->arena = more;
    t->token = token;
    t->cap = cap;
    return 0;
}

static int put(struct json_tokens *t, uint32_t id, const char *text, size_t len, struct err *e)
{
    const char *copy;

    if (grow(t, id, e) != 0)
        return -1;
    if (t->token[id].text != NULL)
        return err_set(e, ERR_FORMAT, "two tokens have the id %u", id);
    copy = name_pool_copy(&t->texts, text, len, e);
    if (copy == NULL)
        return -1;
    t->token[id] = (struct json_token){ .text = copy, .len = (uint16_t)len };
    t->n = id >= t->n ? id + 1 : t->n;
    return 0;
}

int json_tokens_vocab(struct json_tokens *t, uint32_t id, const char *text, size_t len,
                      struct err *e)
{
    if (len > VOCAB_MAX_TEXT)
        return err_set(e, ERR_UNSUPPORTED, "a token of %zu bytes is longer than %zu", len,
                       VOCAB_MAX_TEXT);
    if (put(t, id, text, len, e) != 0)
        return -1;
    t->token[id].kind = TOKEN_NORMAL;
    t->n_vocab++;
    return 0;
}

void json_tokens_free(struct json_tokens *t)
{
    arena_unmap(&t->arena);
    name_pool_free(&t->texts);
    memset(t, 0, sizeof *t);
}

int64_t json_tokens_find(const struct json_tokens *t, const char *text, size_t len)
{
    for (uint32_t id = 0; id < t->n; id++)
        if (t->token[id].text != NULL && t->token[id].len == len &&
            memcmp(t->token[id].text, text, len) == 0)
            return id;
    return -1;
}

static int by_text(const void *a, const void *b)
{
    const struct json_added *x = *(const struct json_added *const *)a;
    const struct json_added *y = *(const struct json_added *const *)b;
    int c = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);

    return c != 0 ? c : x->len < y->len ? -1 : x->len > y->len;
}

static int find_by_text(const void *key, const void *member)
{
    const struct json_added *m = *(const struct json_added *const *)member;
    const struct json_token *k = key;
    int c = memcmp(k->text, m->text, k->len < m->len ? k->len : m->len);

    return c != 0 ? c : k->len < m->len ? -1 : k->len > m->len;
}

/*
 * The tokenizers library ignores the id that a file states for an added token.  It uses the id
 * in the vocabulary, or else the next free one after the number of tokens in the vocabulary.  A
 * file that states other ids is refused: models trained with it cannot have used them.
 */
static int check_ids(const struct json_tokens *t, const struct json_added *const *sorted,
                     uint32_t n, struct err *e)
{
    for (uint32_t id = 0; n > 0 && id < t->n; id++) {
        const struct json_added *const *hit;

        if (t->token[id].text == NULL)
            continue;
        hit = bsearch(&t->token[id], sorted, n, sizeof *sorted, find_by_text);
        if (hit != NULL && (*hit)->id != id)
            return err_set(e, ERR_FORMAT,
                           "added token %u is token %u of the vocabulary" VOCAB_ADVICE,
                           (*hit)->id, id);
    }
    return 0;
}

static bool same_text(const struct json_token *a, const struct json_added *b)
{
    return a->text != NULL && a->len == b->len && memcmp(a->text, b->text, b->len) == 0;
}

/* Whether the token is in the vocabulary under the id that it states. */
static bool is_in_vocab(const struct json_tokens *t, const struct json_added *a)
{
    return a->id < t->n && same_text(&t->token[a->id], a);
}

/* Set the ids that texts have in the vocabulary. */
static int set_vocab_ids(const struct json_tokens *t, struct json_added *all, uint32_t n,
                         struct err *e)
{
    struct json_added **sorted = calloc(n + 1, sizeof *sorted);

    if (sorted == NULL)
        return err_memory(e, "%u added tokens", n);
    for (uint32_t i = 0; i < n; i++)
        sorted[i] = &all[i];
    qsort(sorted, n, sizeof *sorted, by_text);
    for (uint32_t id = 0; n > 0 && id < t->n; id++) {
        struct json_added **hit = NULL;

        if (t->token[id].text != NULL)
            hit = bsearch(&t->token[id], sorted, n, sizeof *sorted, find_by_text);
        if (hit != NULL)
            (*hit)->id = id;
    }
    free(sorted);
    return 0;
}

/* Append the tokens of config that added lacks. */
static int append_new(struct added_list *added, const struct added_list *config, struct err *e)
{
    struct name_index known = { .slots = NULL };
    int rc = 0;

    for (uint32_t i = 0; rc >= 0 && i < added->n; i++)
        rc = name_index_add(&known, added->all[i].text, i, e);
    for (uint32_t i = 0; rc >= 0 && i < config->n; i++) {
        rc = name_index_add(&known, config->all[i].text, i, e);
        if (rc == 0 && (rc = added_new(added, e)) == 0)
            added->all[added->n - 1] = config->all[i];
    }
    name_index_free(&known);
    return rc < 0 ? -1 : 0;
}

int json_tokens_config(const struct json_tokens *t, struct added_list *added,
                       const struct added_list *config, struct vocab_info *info, struct err *e)
{
    uint32_t n_file = added->n, n = n_file, next = t->n_vocab;
    bool is_noted = false;

    if (config->n == 0)
        return 0;
    if (append_new(added, config, e) != 0 ||
        set_vocab_ids(t, added->all + n_file, added->n - n_file, e) != 0)
        return -1;
    for (uint32_t i = 0; i < n_file; i++)
        next += !is_in_vocab(t, &added->all[i]);
    for (uint32_t i = n_file; i < added->n; i++) {
        const struct json_added *a = &added->all[i];
        bool is_next = !is_in_vocab(t, a) && a->id == next;

        if (!a->single_word && (is_next || is_in_vocab(t, a))) {
            next += is_next;
            added->all[n++] = *a;
        } else if (!is_noted) {
            is_noted = true;
            vocab_note(info,
                       "The added token \"%.*s\" of tokenizer_config.json does not fit the "
                       "vocabulary, and is not used.",
                       (int)(a->len < 40 ? a->len : 40), a->text);
        }
    }
    added->n = n;
    return 0;
}

int json_tokens_finish(struct json_tokens *t, enum vocab_model model,
                       const struct json_added *added, uint32_t n_added, struct err *e)
{
    const struct json_added **sorted = calloc(n_added + 1, sizeof *sorted);
    uint32_t next = t->n_vocab;
    int rc;

    if (sorted == NULL)
        return err_memory(e, "%u added tokens", n_added);
    for (uint32_t i = 0; i < n_added; i++)
        sorted[i] = &added[i];
    qsort(sorted, n_added, sizeof *sorted, by_text);
    rc = check_ids(t, sorted, n_added, e);
    free(sorted);
    for (uint32_t i = 0; rc == 0 && i < n_added; i++) {
        const struct json_added *a = &added[i];
        struct json_token *token;

        if (!is_in_vocab(t, a)) {
            if (a->id != next)
                return err_set(e, ERR_FORMAT,
                               "added token %u is not in the vocabulary, so the tokenizers "
                               "library would give it the id %u" VOCAB_ADVICE,
                               a->id, next);
            if (put(t, a->id, a->text, a->len, e) != 0)
                return -1;
            next++;
        }
        token = &t->token[a->id];
        token->kind = a->special ? TOKEN_CONTROL : TOKEN_USER;
        token->lstrip = a->lstrip;
        token->rstrip = a->rstrip;
    }
    for (uint32_t id = 0; rc == 0 && id < t->n; id++) {
        struct json_token *token = &t->token[id];

        token->kind = token->text == NULL
                          ? TOKEN_UNUSED
                          : (uint8_t)vocab_kind(model, id, token->text, token->len,
                                                (enum token_kind)token->kind);
    }
    return rc;
}
