/* Collect the merges of a vocabulary, or derive them from its scores. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/text/tokenizer_internal.h"

int pair_list_add(struct pair_list *list, struct pair pair, struct err *e)
{
    uint32_t chunk = list->n / PAIR_CHUNK;

    if (list->n == VOCAB_MAX_MERGE)
        return err_set(e, ERR_UNSUPPORTED, "the vocabulary has more than %u merges",
                       VOCAB_MAX_MERGE);
    if (list->pairs[chunk] == NULL) {
        size_t bytes = PAIR_CHUNK * sizeof(struct pair);

        if (arena_map(&list->chunk[chunk], "tokenizer", arena_size(bytes), true, e) != 0)
            return -1;
        list->pairs[chunk] = arena_take(&list->chunk[chunk], bytes, e);
        if (list->pairs[chunk] == NULL)
            return -1;
    }
    list->pairs[chunk][list->n % PAIR_CHUNK] = pair;
    list->n++;
    return 0;
}

uint64_t pair_list_bytes(uint32_t n)
{
    const uint64_t chunk = arena_size(PAIR_CHUNK * sizeof(struct pair));

    return (n + (uint64_t)PAIR_CHUNK - 1) / PAIR_CHUNK * chunk;
}

void pair_list_free(struct pair_list *list)
{
    for (size_t i = 0; i < VOCAB_MAX_MERGE / PAIR_CHUNK; i++)
        arena_unmap(&list->chunk[i]);
    memset(list, 0, sizeof *list);
}

/* A pair whose joined text is a token.  SentencePiece merges the pair of highest score and has
 * no ranks.  Sorting the pairs gives them ranks. */
struct candidate {
    float score;
    uint16_t left_chars, right_chars;
    struct pair pair;
};

static int by_order(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    if (x->left_chars != y->left_chars)
        return x->left_chars > y->left_chars ? -1 : 1;
    if (x->right_chars != y->right_chars)
        return x->right_chars > y->right_chars ? -1 : 1;
    if (x->pair.merged != y->pair.merged)
        return x->pair.merged < y->pair.merged ? -1 : 1;
    if (x->pair.left != y->pair.left)
        return x->pair.left < y->pair.left ? -1 : 1;
    return x->pair.right < y->pair.right ? -1 : x->pair.right > y->pair.right;
}

uint32_t scores_max_pairs(const struct vocab_info *info)
{
    uint64_t n = 4 * (uint64_t)info->n_token + 1024;

    n = n < info->text_bytes ? n : info->text_bytes;
    return n < VOCAB_MAX_MERGE ? (uint32_t)n : VOCAB_MAX_MERGE;
}

uint64_t scores_build_bytes(const struct vocab_info *info)
{
    uint32_t max = scores_max_pairs(info);

    return arena_size(max * sizeof(struct candidate)) + pair_list_bytes(max);
}

static bool is_part(const struct tokenizer *t, uint32_t id)
{
    enum token_kind kind = id != NO_ID ? token_kind(t, id) : TOKEN_UNUSED;

    return kind == TOKEN_NORMAL || kind == TOKEN_USER;
}

/* Add all pairs of tokens whose texts together are the text of token id. */
static int cut_token(struct candidate *list, uint32_t *n, uint32_t max,
                     const struct tokenizer *t, const struct token_hash *hash, uint32_t id,
                     float score, struct err *e)
{
    size_t len, at = 0;
    const char *text = token_text(t, id, &len);
    uint16_t n_char = 0, before = 0;
    uint32_t cp;

    for (size_t i = 0; i < len; n_char++)
        i += utf8_decode(text + i, len - i, &cp);
    for (;;) {
        uint32_t left, right;

        at += utf8_decode(text + at, len - at, &cp);
        if (at >= len)
            return 0;
        before++;
        left = token_hash_find(hash, t, text, at);
        right = left != NO_ID ? token_hash_find(hash, t, text + at, len - at) : NO_ID;
        if (!is_part(t, left) || !is_part(t, right))
            continue;
        if (*n == max)
            return err_set(e, ERR_UNSUPPORTED,
                           "the scores of %u tokens result in more than %u merges",
                           t->info.n_token, max);
        list[(*n)++] = (struct candidate){
            score, before, (uint16_t)(n_char - before), { left, right, id }
        };
    }
}

int scores_to_pairs(struct pair_list *out, const struct tokenizer *t,
                    const struct token_hash *hash, const float *score,
                    const struct catalogue *c, struct err *e)
{
    uint32_t max = scores_max_pairs(&t->info), n = 0;
    struct candidate *list;
    struct arena a;
    int rc = 0;

    if (arena_map(&a, "tokenizer", arena_size(max * sizeof *list), false, e) != 0)
        return -1;
    list = max > 0 ? arena_take(&a, max * sizeof *list, e) : NULL;
    for (uint32_t id = 0; rc == 0 && list != NULL && id < t->info.n_token; id++) {
        size_t len;
        const char *text = token_text(t, id, &len);
        /* User tokens are matched before any merge.  Where they are parts of each other
         * (runs of spaces), they merge first. */
        float s = token_kind(t, id) == TOKEN_USER ? HUGE_VALF : score[id];

        if (id % 1024 == 0)
            rc = catalogue_go_on(c, e);
        if (rc == 0 && len > 0 && is_part(t, id) && token_hash_find(hash, t, text, len) == id)
            rc = cut_token(list, &n, max, t, hash, id, s, e);
    }
    if (rc == 0 && n > 0)
        qsort(list, n, sizeof *list, by_order);
    for (uint32_t i = 0; rc == 0 && i < n; i++)
        rc = pair_list_add(out, list[i].pair, e);
    arena_unmap(&a);
    return rc;
}
