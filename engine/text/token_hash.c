/* Find ids by token text or by character. */
#include "config.h"

#include <string.h>

#include "engine/base/utf8.h"
#include "engine/text/tokenizer_internal.h"

static uint32_t slots_for(uint32_t n_token)
{
    uint32_t n = 16;

    while (n < n_token + n_token / 2)
        n *= 2;
    return n;
}

size_t token_hash_bytes(uint32_t n_token)
{
    return arena_size((size_t)slots_for(n_token) * 4);
}

static uint32_t hash_of(const struct token_hash *h, const char *text, size_t len)
{
    return (uint32_t)(keyed_hash(&h->key, text, len) >> 32);
}

/* A slot has the id in the low bits and part of the hash above it, so that different texts are
 * rarely compared. */
#define ID_BITS 20
#define EMPTY   UINT32_MAX
_Static_assert(VOCAB_MAX_TOKEN <= (uint32_t)1 << ID_BITS, "ids fit their bits");

static uint32_t slot_of(uint32_t hash, uint32_t id)
{
    uint32_t tag = hash >> ID_BITS;

    return (tag == EMPTY >> ID_BITS ? 0 : tag) << ID_BITS | id;
}

static uint32_t slot_id(uint32_t slot)
{
    return slot & (((uint32_t)1 << ID_BITS) - 1);
}

static bool has_text(const struct tokenizer *t, uint32_t id, const char *text, size_t len)
{
    size_t n;
    const char *own = token_text(t, id, &n);

    return n == len && memcmp(own, text, len) == 0;
}

/* Returns the slot of a text, or the free slot where it belongs. */
static uint32_t find_slot(const struct token_hash *h, const struct tokenizer *t,
                          const char *text, size_t len, uint32_t hash)
{
    uint32_t i = hash & (h->n_slot - 1), want = slot_of(hash, 0);

    while (h->slot[i] != EMPTY && ((h->slot[i] ^ want) >> ID_BITS != 0 ||
                                   !has_text(t, slot_id(h->slot[i]), text, len)))
        i = (i + 1) & (h->n_slot - 1);
    return i;
}

uint32_t token_hash_begin(const struct token_hash *h, const char *text, size_t len)
{
    uint32_t hash = hash_of(h, text, len);

    __builtin_prefetch(&h->slot[hash & (h->n_slot - 1)]);
    return hash;
}

void token_hash_fetch_place(const struct token_hash *h, const struct tokenizer *t,
                            uint32_t hash)
{
    uint32_t slot = h->slot[hash & (h->n_slot - 1)];

    if (slot != EMPTY)
        __builtin_prefetch(&t->start[slot_id(slot)]);
}

void token_hash_fetch_text(const struct token_hash *h, const struct tokenizer *t, uint32_t hash)
{
    uint32_t slot = h->slot[hash & (h->n_slot - 1)];

    if (slot != EMPTY)
        __builtin_prefetch(t->text + t->start[slot_id(slot)]);
}

static void enter(struct token_hash *h, const struct tokenizer *t, bool text_tokens)
{
    enum { AHEAD = 8 }; /* number of slots prefetched */
    uint32_t hashes[AHEAD] = { 0 };

    for (uint32_t at = 0; at < t->info.n_token + AHEAD; at++) {
        uint32_t id = at - AHEAD, hash = hashes[at % AHEAD], i;
        size_t len;
        const char *text;

        if (at < t->info.n_token) {
            text = token_text(t, at, &len);
            hashes[at % AHEAD] = token_hash_begin(h, text, len);
        }
        if (at < AHEAD)
            continue;
        text = token_text(t, id, &len);
        if (len == 0 || is_text_token(t, id) != text_tokens)
            continue;
        i = find_slot(h, t, text, len, hash);
        if (h->slot[i] == EMPTY) /* the first token with a text wins */
            h->slot[i] = slot_of(hash, id);
    }
}

int token_hash_start(struct token_hash *h, struct arena *a, uint32_t n_token, struct err *e)
{
    *h = (struct token_hash){ .n_slot = slots_for(n_token), .key = *hash_key() };
    h->slot = arena_take(a, (size_t)h->n_slot * 4, e);
    if (h->slot == NULL)
        return -1;
    memset(h->slot, 0xff, (size_t)h->n_slot * 4);
    return 0;
}

void token_hash_fill(struct token_hash *h, const struct tokenizer *t, bool with_others)
{
    enter(h, t, true);
    if (with_others)
        enter(h, t, false);
}

bool token_hash_is_sound(const struct token_hash *h, uint32_t n_token)
{
    uint32_t n_free = 0, n_wrong = 0;

    for (uint32_t i = 0; i < h->n_slot; i++) {
        n_free += h->slot[i] == EMPTY;
        n_wrong += h->slot[i] != EMPTY && slot_id(h->slot[i]) >= n_token;
    }
    return h->n_slot == 0 || (n_free > 0 && n_wrong == 0);
}

uint32_t token_hash_finish(const struct token_hash *h, const struct tokenizer *t,
                           const char *text, size_t len, uint32_t hash)
{
    uint32_t slot = h->slot[find_slot(h, t, text, len, hash)];

    return slot != EMPTY ? slot_id(slot) : NO_ID;
}

uint32_t token_hash_find(const struct token_hash *h, const struct tokenizer *t,
                         const char *text, size_t len)
{
    return token_hash_finish(h, t, text, len, hash_of(h, text, len));
}

static uint32_t char_slots(uint32_t n_char)
{
    return n_char + n_char / 2 + 16;
}

size_t char_ids_bytes(uint32_t n_char)
{
    return arena_size((size_t)char_slots(n_char) * 8);
}

static uint64_t char_slot(const struct char_ids *x, uint32_t cp)
{
    return (keyed_mix(&x->key, cp) >> 32) * x->n_slot >> 32;
}

int char_ids_start(struct char_ids *x, struct arena *a, uint32_t n_char, struct err *e)
{
    *x = (struct char_ids){ .n_slot = char_slots(n_char), .key = *hash_key() };
    x->slot = arena_take(a, (size_t)x->n_slot * 8, e);
    if (x->slot == NULL)
        return -1;
    memset(x->slot, 0xff, (size_t)x->n_slot * 8);
    return 0;
}

void char_ids_fill(struct char_ids *x, const struct tokenizer *t)
{
    for (uint32_t id = 0; id < t->info.n_token; id++) {
        size_t len;
        const char *text = token_text(t, id, &len);
        enum token_kind kind = token_kind(t, id);
        uint32_t cp;
        uint64_t i;

        if ((kind != TOKEN_NORMAL && kind != TOKEN_USER) || !utf8_is_single(text, len, &cp))
            continue;
        i = char_slot(x, cp);
        while (x->slot[i] != UINT64_MAX && x->slot[i] >> 32 != cp)
            i = i + 1 == x->n_slot ? 0 : i + 1;
        if (x->slot[i] == UINT64_MAX)
            x->slot[i] = (uint64_t)cp << 32 | id;
    }
}

uint32_t char_ids_find(const struct char_ids *x, uint32_t cp)
{
    uint64_t i = char_slot(x, cp);

    while (x->slot[i] != UINT64_MAX) {
        if (x->slot[i] >> 32 == cp)
            return (uint32_t)x->slot[i];
        i = i + 1 == x->n_slot ? 0 : i + 1;
    }
    return NO_ID;
}
